//! Memory at address 0 of the storm's address spaces: descriptors in all of the first 64 KiB, where a
//! processor whose register of the local descriptor table was left as it is after a reset finds
//! that table; behind them a stack for [`super::summit`], and INT3.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::summit;
use crate::actor::Dice;
use crate::arch::code::word_without_iret;

/// Words of the table.
pub const TABLE_WORDS: usize = 0x1_0000 / 8;
/// Selectors of the kernel's table (01, section 4.1, of the ABI).
const KERNEL_CODE: u64 = 0x08;
const USER_CODE: u64 = 0x2b;
/// Fills the rest.
const INT3: u64 = 0xcccc_cccc_cccc_cccc;

const PRESENT: u64 = 1 << 47;
const ORDINARY: u64 = 1 << 44;
const LONG_MODE: u64 = 1 << 53;
const LARGE: u64 = 1 << 55 | 0xf << 48 | 0xffff;

/// What a page or more of memory holds that was not written yet.
pub fn fill(memory: &[AtomicU64]) {
    memory.iter().for_each(|word| word.store(INT3, Relaxed));
}

/// Writes new descriptors to a whole table.
pub fn renew(table: &[AtomicU64], dice: &mut Dice) {
    for pair in table.chunks_exact(2) {
        for (slot, word) in pair.iter().zip(pair_of_words(dice)) {
            slot.store(word, Relaxed);
        }
    }
}

/// Two descriptors, or one that has two words: half of them a call gate that leads into the kernel's
/// code segment at [`summit::address`], if anything follows it.
pub fn pair_of_words(dice: &mut Dice) -> [u64; 2] {
    any_pair(dice).map(word_without_iret)
}

fn any_pair(dice: &mut Dice) -> [u64; 2] {
    match dice.below(16) {
        0..8 => gate(0xc, 3, KERNEL_CODE, summit::address()),
        8 => gate(0xc, dice.below(4), selector(dice).into(), summit::address()),
        // Interrupt, trap and task gates, and those of 16 bits.
        9 => {
            let kind = dice.choose([0xe, 0xf, 0x5, 0x4, 0x6, 0x7]);
            gate(kind, dice.below(4), KERNEL_CODE, summit::address())
        }
        // Task states, tables.
        10 => {
            let kind = dice.choose([0x9, 0xb, 0x2]);
            [system(kind, dice.below(4), dice.below(1 << 24)), 0]
        }
        11..15 => [segment(dice), segment(dice)],
        _ => [dice.word(), dice.wild()],
    }
}

/// A selector: of the local table, of the global one, or anything.
pub fn selector(dice: &mut Dice) -> u16 {
    const LOCAL: u64 = 4;
    let level = dice.below(4);
    let selector = match dice.below(16) {
        0..8 => dice.below(TABLE_WORDS as u64) << 3 | LOCAL | level,
        8..12 => dice.below(11) << 3 | level,
        12 => USER_CODE,
        13 => KERNEL_CODE | level,
        14 => level,
        _ => dice.word(),
    };
    selector as u16
}

fn gate(kind: u64, level: u64, selector: u64, target: u64) -> [u64; 2] {
    let low = (target & 0xffff)
        | (selector & 0xffff) << 16
        | kind << 40
        | level << 45
        | PRESENT
        | (target >> 16 & 0xffff) << 48;
    [low, target >> 32]
}

fn system(kind: u64, level: u64, base: u64) -> u64 {
    PRESENT | 0xffff | (base & 0xff_ffff) << 16 | kind << 40 | level << 45
}

/// Code or data, of level 0 or 3, of 16, 32 or 64 bits, with any base.
fn segment(dice: &mut Dice) -> u64 {
    let kind = dice.below(16);
    let level = dice.choose([0, 3, 3, 3]);
    let size = dice.choose([0, 1 << 54, LONG_MODE, LONG_MODE]);
    let base = match dice.below(2) {
        0 => 0,
        _ => dice.word(),
    };
    let base = (base & 0xff_ffff) << 16 | (base & 0xff00_0000) << 32;
    PRESENT | ORDINARY | LARGE | kind << 40 | level << 45 | size | base
}
