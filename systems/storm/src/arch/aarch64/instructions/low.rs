//! Memory at address 0 of the storm's address spaces: any instructions in all of the first 64 KiB, for who jumps there;
//! behind them those that there will never be.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::actor::Dice;
use crate::arch::code::without_the_host;

/// Words of the instructions.
pub const TABLE_WORDS: usize = 0x1_0000 / 8;

/// What a page or more of memory holds that was not written yet: UDF.
pub fn fill(memory: &[AtomicU64]) {
    memory.iter().for_each(|word| word.store(0, Relaxed));
}

/// Writes new instructions to all of it.
pub fn renew(table: &[AtomicU64], dice: &mut Dice) {
    for pair in table.chunks_exact(2) {
        for (slot, word) in pair.iter().zip(pair_of_words(dice)) {
            slot.store(word, Relaxed);
        }
    }
}

/// Four instructions.
pub fn pair_of_words(dice: &mut Dice) -> [u64; 2] {
    [(); 2].map(|()| {
        let word = dice.word();
        let [low, high] = [word as u32, (word >> 32) as u32].map(without_the_host);
        u64::from(high) << 32 | u64::from(low)
    })
}
