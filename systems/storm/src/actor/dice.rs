//! Random choices.

use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Random choices from a thread's generator.
pub struct Dice<'a>(pub &'a mut Xoshiro256PlusPlus);

impl Dice<'_> {
    pub fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`, which is at most 2^32; 0 for none. The bias is below 2^−24 for
    /// the limits used here.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((self.0.next_u64() >> 32) * limit) >> 32
    }

    pub fn index(&mut self, limit: usize) -> usize {
        self.below(limit as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`, which must not be empty.
    pub fn choose<T: Copy, const N: usize>(&mut self, choices: [T; N]) -> T {
        const { assert!(N > 0) };
        choices[self.index(N)]
    }

    /// The index of one of `weights`, each as likely as its weight.
    pub fn weighted<const N: usize>(&mut self, weights: [u64; N]) -> usize {
        let mut rest = self.below(weights.iter().sum());
        for (index, weight) in weights.into_iter().enumerate() {
            if rest < weight {
                return index;
            }
            rest -= weight;
        }
        0
    }

    /// A word that programs do not pass: limits, bits, addresses that are not theirs, noise.
    pub fn wild(&mut self) -> u64 {
        let bit = 1u64 << self.below(64);
        match self.below(12) {
            0 => 0,
            1 => self.below(256),
            2 => bit,
            3 => bit - 1,
            4 => bit.wrapping_neg(),
            5 => u64::MAX - self.below(64),
            // Around the end of user addresses, and of canonical ones.
            6 => 0x7fff_ffff_f000u64.wrapping_add(self.below(0x4000).wrapping_sub(0x2000)),
            7 => 0x8000_0000_0000u64.wrapping_add(self.below(64).wrapping_sub(32)),
            // The kernel's memory.
            8 => 0xffff_ffff_8000_0000 | self.below(1 << 30),
            9 => 0xffff_ff80_0000_0000 | self.below(1 << 32),
            10 => self.word() >> self.below(64),
            _ => self.word(),
        }
    }
}
