//! Events of several threads, as any bytes, for the kernel and its specification in lock step.
//!
//! The bytes are read as for [`crate::system_calls`]; the world is the one in which `sandglass
//! assure` runs its scripts.

use std::fmt::Write;

use sandglass_abi::syscall::Syscall;
use sandglass_assurance::pair::Checks;
use sandglass_assurance::script::{Action, Call, Source};
use sandglass_assurance::world;

use crate::system_calls::event::Event;
use crate::system_calls::events;
use crate::Target;

pub const TARGET: Target = Target {
    name: "lock-step",
    what: "events for the kernel and its specification",
    run,
    explain,
};

/// Longest time in ticks that passes at once: a tenth of a second.
const LONGEST: u64 = 100_000_000;
/// Longest time in ticks that passes at once inside an event.
const LONGEST_DELAY: u64 = 2_000_000;
/// Number of the first interrupt that there is not.
const IRQS: u8 = 128;

/// Whatever threads do, kernel and specification agree on the whole state after every event, and
/// the invariants hold.
fn run(input: &[u8]) {
    let mut pair = world::create(Checks::None).expect("the world is made");
    pair.set_checks(Checks::All);
    let script = script(input);
    for action in &script {
        if let Err(failure) = pair.perform(action) {
            panic!("{failure}\n{}", Source(&script));
        }
    }
}

fn script(input: &[u8]) -> Vec<Action> {
    let mut pending = false;
    events(input)
        .filter_map(|event| action(&event, &mut pending))
        .collect()
}

/// What `event` is in a script; `pending` says whether the next system call finds an interrupt.
fn action(event: &Event, pending: &mut bool) -> Option<Action> {
    Some(match *event {
        Event::SystemCall(ref made) => {
            let call = call(made)?;
            if std::mem::take(pending) {
                Action::Preempted(0, call)
            } else {
                Action::Call(call)
            }
        }
        Event::ReceiveSlot {
            cnode,
            index,
            depth,
        } => Action::ReceiveSlot(place(cnode), place(index), place(depth)),
        Event::SoftwareInterrupt { vector, .. } => Action::SoftwareInterrupt(vector),
        Event::Exception { number, code } => Action::Exception(number, code),
        Event::PageFault { address, code } => Action::PageFault(address, code),
        Event::Interrupt { irq } => Action::Interrupt(irq % IRQS),
        Event::Pass { ticks } => Action::Pass(ticks % LONGEST),
        Event::Pending(now) => {
            *pending = now;
            return None;
        }
        Event::Delay { ticks } => Action::Delays(vec![0, ticks % LONGEST_DELAY]),
        // A script's thread repeats by itself, and its timer fires when it is due.
        Event::Again | Event::Store { .. } | Event::Timer => return None,
    })
}

/// A system call of a script; `None` for the calls of the debug kernel, which are not specified.
fn call(made: &Call) -> Option<Call> {
    if Syscall::from_raw(made.number as u64).is_some_and(Syscall::is_debug) {
        return None;
    }
    let places = |words: &[u64]| words.iter().copied().map(place).collect();
    Some(Call {
        number: made.number,
        cap: place(made.cap),
        info: made.info,
        reply: place(made.reply),
        destination: place(made.destination),
        words: places(&made.words),
        caps: places(&made.caps),
    })
}

/// Bytes name the slots that this world uses, besides the root task's first ones.
fn place(word: u64) -> u64 {
    const KEPT: u64 = 32;
    const LAST: u64 = 0xdf;
    match word {
        KEPT..=LAST => word - KEPT + world::FIRST,
        other => other,
    }
}

fn explain(input: &[u8]) -> String {
    let mut text = String::new();
    for (i, action) in script(input).iter().enumerate() {
        writeln!(text, "{i:>4}  {action}").expect("a string takes everything");
    }
    text
}
