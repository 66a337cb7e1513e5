//! The storm of instructions: its threads execute batches of random ones that are made by a grammar.
//!
//! | module | what |
//! | --- | --- |
//! | [`batch`] | what a thread and its handler know of a batch |
//! | [`handler`] | the handler of the threads' faults: the supervisor's |
//! | [`places`] | addresses that batches load |
//!
//! and of each architecture, in [`crate::arch::instructions`]
//!
//! | module | what |
//! | --- | --- |
//! | `class` | what the instructions are of, and what may become of them |
//! | `grammar` | makes them |
//! | `low` | what is at address 0 |
//! | `summit` | where ways out of user level would lead to: who arrives there says so |
//!
//! A thread writes a batch to its code pages, loads random registers, and goes through the items. An
//! item that faults is counted by the handler, which lets the thread go on behind it. Behind the last
//! item the thread starts anew. As [`crate::actor`], this code runs without the runtime.

pub mod batch;
pub mod handler;
pub mod places;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::actor::Dice;
use crate::arch::code::{nops, MOST_CUT};
use crate::arch::gate::synchronise;
use crate::arch::instructions::class::Class;
use crate::arch::instructions::{low, Composer};
use crate::area::{write_words, Area, CODE_BYTES, EDGE_ADDRESS, LOW_ADDRESS};
use batch::MOST_ITEMS;

/// Bytes of a page.
const PAGE: usize = 4096;
/// Fewest items of a batch.
const FEWEST_ITEMS: usize = 6;
/// Threads that write to the edge of user memory: one in each address space.
const EDGE_OWNERS: u64 = crate::ground::SPACES as u64;

/// Composes a batch and executes it.
pub extern "C" fn thread(area: *const Area) -> ! {
    // SAFETY: the supervisor has set the area up; what changes in it is atomic.
    let area = unsafe { &*area };
    let control = &area.control;
    control.made.store(area.batch.settle(), Relaxed);
    if !control.is_alone {
        // The emulator goes to another core here: so that threads meet in the kernel.
        sandglass::time::pause();
    }
    let starts = control.starts.fetch_add(1, Relaxed);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(control.seed.wrapping_add(starts));
    let mut dice = Dice(&mut random);
    renew_descriptors(&mut dice);
    let (address, bytes) = compose(area, dice);
    synchronise(address, bytes);
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

/// Writes a batch, its description and its code; returns where that begins, and its bytes.
fn compose(area: &Area, dice: Dice) -> (u64, usize) {
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
        let counter = area.batch.begun.get(i).map_or(0, |c| c.as_ptr() as u64);
        composer.count(counter);
        composer.item(class);
        *item = (class, composer.code.len());
    }
    let cut = if at_edge {
        composer.dice.index(MOST_CUT + 1)
    } else {
        0
    };
    if !at_edge {
        composer.leave();
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
    (code, length)
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
    let words = bytes.len().div_ceil(8);
    let address = EDGE_ADDRESS as usize + PAGE - 8 * words;
    // SAFETY: the page is mapped in every address space, and each has one thread that writes to it.
    let memory =
        unsafe { core::slice::from_raw_parts(core::ptr::with_exposed_provenance(address), words) };
    let padding = 8 * words - bytes.len();
    let padded = nops(padding).chain(bytes.iter().copied());
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
