//! What the supervisor does when an instruction of the storm faults.

use sandglass::abi::fault;
use sandglass::message::Message;

use crate::actor::Dice;
use crate::arch::instructions::class::{outcome, Class, OUTCOMES};
use crate::arch::instructions::{registers, TRAP_FLAG};
use crate::area::{stack_top, Area};

/// Faults of each class, by what they were.
pub type Outcomes = [[u64; OUTCOMES]; Class::COUNT];

pub const NO_OUTCOMES: Outcomes = [[0; OUTCOMES]; Class::COUNT];

/// How a thread goes on.
pub enum Next {
    /// With a fault's own answer: instruction, stack pointer, flags.
    Answer(Message),
    /// With the first of these registers, in the order of a user context.
    Registers([u64; 3], usize),
    /// From its entry.
    Anew,
}

/// Counts a fault of the thread with this area, and decides how the thread goes on: behind the item
/// that faulted, if it is known, else anew. Mostly it has a good stack then and no single steps.
pub fn handle(message: &Message, area: &Area, outcomes: &mut Outcomes, dice: &mut Dice) -> Next {
    let (ip, stack, flags) = registers(message);
    let Some(item) = area.batch.item_at(ip) else {
        return Next::Anew;
    };
    let row = outcomes.get_mut(area.batch.class_of(item));
    if let Some(count) = row.and_then(|row| row.get_mut(outcome(message))) {
        *count += 1;
    }
    let Some(behind) = area.batch.behind(item) else {
        return Next::Anew;
    };
    let stack = match dice.below(4) {
        0 => stack,
        _ => stack_top(area.control.index as usize) - 0x4000,
    };
    let flags = match dice.below(16) {
        0 => flags,
        _ => flags & !TRAP_FLAG,
    };
    let registers = [behind, stack, flags];
    match message.label() {
        fault::USER_EXCEPTION => Next::Answer(Message::new(0, registers)),
        // Two fit into a message's registers.
        _ if dice.one_in(2) => Next::Registers(registers, 2),
        _ => Next::Registers(registers, 3),
    }
}
