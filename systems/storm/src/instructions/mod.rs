//! The storm of instructions: its threads execute batches of random ones that are made by a grammar.
//!
//! | module | what |
//! | --- | --- |
//! | [`class`] | what the instructions are of, and what may become of them |
//! | [`grammar`] | makes them |
//! | [`batch`] | what a thread and its handler know of a batch |
//! | [`handler`] | the handler of the threads' faults: the supervisor's |
//! | [`low`] | descriptors at address 0 |
//! | [`ring0`] | where gates lead to, and a kernel that lets them must not |
//!
//! A thread writes a batch to its code pages, loads random registers, and goes through the items. An
//! item that faults is counted by the handler, which lets the thread go on behind it. Behind the last
//! item the thread starts anew. As [`crate::actor`], this code runs without the runtime.

pub mod batch;
pub mod class;
mod grammar;
pub mod handler;
pub mod low;
pub mod ring0;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::actor::Dice;
use crate::area::{
    area_address, stack_top, write_words, Area, CODE_BYTES, EDGE_ADDRESS, LOW_ADDRESS,
};
use batch::MOST_ITEMS;
use class::Class;
use grammar::Composer;

/// Bytes of a page.
const PAGE: usize = 4096;
/// Fewest items of a batch.
const FEWEST_ITEMS: usize = 6;
/// Threads that write to the edge of user memory: one in each address space.
const EDGE_OWNERS: u64 = crate::ground::SPACES as u64;
const RAX: u8 = 0;
const RSP: u8 = 4;
const RDI: u8 = 7;

core::arch::global_asm!(
    // Where a thread starts, and starts anew: its area's address is in rdi.
    "storm_instructions:",
    "push 0x202",
    "popfq",
    "xor ebp, ebp",
    "call {thread}",
    "ud2",
    thread = sym thread,
);

extern "C" {
    /// Code, not data: only its address is used.
    static storm_instructions: u8;
}

/// Where a thread starts, with its area's address in rdi and a stack.
pub fn entry_address() -> u64 {
    &raw const storm_instructions as u64
}

/// Composes a batch and executes it.
extern "C" fn thread(area: *const Area) -> ! {
    // SAFETY: the supervisor has set the area up; what changes in it is atomic.
    let area = unsafe { &*area };
    let control = &area.control;
    control.made.store(area.batch.settle(), Relaxed);
    if !control.is_alone {
        // The emulator goes to another core here: so that threads meet in the kernel.
        core::hint::spin_loop();
    }
    let starts = control.starts.fetch_add(1, Relaxed);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(control.seed.wrapping_add(starts));
    let mut dice = Dice(&mut random);
    renew_descriptors(&mut dice);
    let address = compose(area, dice);
    // SAFETY: not needed: the thread has nothing to lose that is not the storm's.
    unsafe {
        let code: extern "C" fn() -> ! = core::mem::transmute(address);
        code()
    }
}

/// Writes some new descriptors to the table at address 0.
fn renew_descriptors(dice: &mut Dice) {
    const PAIRS: usize = 2;
    for _ in 0..PAIRS {
        let pair = dice.below(low::TABLE_WORDS as u64 / 2);
        for (i, word) in (0..).zip(low::pair_of_words(dice)) {
            let address = LOW_ADDRESS + 8 * (2 * pair + i);
            // SAFETY: mapped for all threads of the storm, who access it atomically.
            unsafe {
                AtomicU64::from_ptr(core::ptr::with_exposed_provenance_mut(address as usize))
            }
            .store(word, Relaxed);
        }
    }
}

/// Writes a batch, its description and its code; returns where that begins.
fn compose(area: &Area, dice: Dice) -> u64 {
    let index = area.control.index;
    let mut composer = Composer::new(area, dice);
    composer.registers();
    let mut items = [(Class::Noise, 0); MOST_ITEMS];
    let span = MOST_ITEMS - FEWEST_ITEMS + 1;
    let count = FEWEST_ITEMS + composer.dice.index(span);
    let at_edge = index < EDGE_OWNERS && composer.dice.one_in(24);
    let first = composer.code.len();
    for (i, item) in items[..count].iter_mut().enumerate() {
        let class = match at_edge && i + 1 == count {
            true => Class::Edge,
            false => composer.class(),
        };
        let counter = area.batch.begun.get(i).map_or(0, |c| c.as_ptr() as u32);
        composer.count(counter);
        composer.item(class);
        *item = (class, composer.code.len());
    }
    let cut = if at_edge { composer.dice.index(3) } else { 0 };
    if !at_edge {
        leave(&mut composer, index);
    }
    let bytes = composer.code.as_bytes();
    let length = bytes.len() - cut;
    let code = match at_edge {
        true => write_to_edge(&bytes[..length]),
        false => {
            let at = place(&mut composer.dice, first, length);
            area.code
                .write(at, composer.code.as_bytes().iter().copied());
            area.code.0.as_ptr() as u64 + at as u64
        }
    };
    area.batch.describe(code, items[..count].iter().copied());
    code
}

/// Starts the thread anew.
fn leave(composer: &mut Composer, index: u64) {
    const JUMP_TO_RAX: [u8; 2] = [0xff, 0xe0];
    let code = &mut composer.code;
    code.load_verbatim(RSP, stack_top(index as usize));
    code.load_verbatim(RDI, area_address(index as usize));
    code.load_verbatim(RAX, entry_address());
    code.bytes(&JUMP_TO_RAX);
}

/// Where to put `length` bytes of code into the code pages, whose items begin at `first`: anywhere, or
/// so that the border of the pages is in the items.
fn place(dice: &mut Dice, first: usize, length: usize) -> usize {
    const WORD: usize = 8;
    let at = match dice.below(4) {
        0 => PAGE - first - dice.index(length - first),
        _ => dice.index(CODE_BYTES - length),
    };
    at / WORD * WORD
}

/// Writes code whose last byte is the last of user memory.
fn write_to_edge(bytes: &[u8]) -> u64 {
    const NOP: u8 = 0x90;
    let words = bytes.len().div_ceil(8);
    let address = EDGE_ADDRESS as usize + PAGE - 8 * words;
    // SAFETY: the page is mapped in every address space, and each has one thread that writes to it.
    let memory =
        unsafe { core::slice::from_raw_parts(core::ptr::with_exposed_provenance(address), words) };
    let padding = 8 * words - bytes.len();
    let padded = core::iter::repeat_n(NOP, padding).chain(bytes.iter().copied());
    write_words(memory.iter(), padded);
    (address + padding) as u64
}

/// Instructions that were begun in these areas, whose threads have ended, by class.
pub fn begun_in(areas: impl Iterator<Item = &'static Area>) -> [u64; Class::COUNT] {
    let mut sums = [0u64; Class::COUNT];
    for area in areas {
        area.batch.settle();
        for (sum, count) in sums.iter_mut().zip(area.batch.attempts()) {
            *sum = sum.wrapping_add(count);
        }
    }
    sums
}
