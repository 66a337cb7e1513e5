//! A set of priorities: a bitmap of four words, and what is asked of it most at hand.
//!
//! Invariant: `levels` is one more than the highest priority of the set, 0 if it is empty.

use core::cell::Cell;
use core::num::NonZeroU64;

/// A set of priorities. Everything is O(1).
#[repr(C)]
pub struct Priorities {
    words: [Cell<u64>; 4],
    levels: Cell<u16>,
}

impl Priorities {
    /// None.
    pub const fn new() -> Self {
        Priorities {
            words: [const { Cell::new(0) }; 4],
            levels: Cell::new(0),
        }
    }

    fn word(&self, priority: u8) -> &Cell<u64> {
        &self.words[usize::from(priority >> 6)]
    }

    #[inline(always)]
    pub fn highest(&self) -> Option<u8> {
        self.levels
            .get()
            .checked_sub(1)
            .map(|highest| highest as u8)
    }

    /// Whether there is one above `priority`.
    pub fn has_above(&self, priority: u8) -> bool {
        self.levels.get() > u16::from(priority) + 1
    }

    /// Whether there is `priority` or a higher one.
    pub fn has_from(&self, priority: u8) -> bool {
        self.levels.get() > u16::from(priority)
    }

    /// Whether `priority` is in the set.
    #[cfg(not(target_os = "none"))]
    pub fn has(&self, priority: u8) -> bool {
        self.word(priority).get() & 1 << (priority & 63) != 0
    }

    #[inline(always)]
    pub fn insert(&self, priority: u8) {
        let word = self.word(priority);
        word.set(word.get() | 1 << (priority & 63));
        self.levels
            .set(self.levels.get().max(u16::from(priority) + 1));
    }

    #[inline(always)]
    pub fn remove(&self, priority: u8) {
        self.clear(priority);
        if !self.has_above(priority) {
            self.recount();
        }
    }

    #[inline(never)]
    fn recount(&self) {
        self.levels.set(self.count_levels());
    }

    /// Removes the highest one, which is `priority`.
    #[inline(always)]
    pub fn remove_highest(&self, priority: u8) {
        self.clear(priority);
        self.levels.set(self.count_levels());
    }

    #[inline(always)]
    fn clear(&self, priority: u8) {
        let word = self.word(priority);
        word.set(word.get() & !(1 << (priority & 63)));
    }

    /// What `levels` is to be, by the bitmap: what is urgent is found in the first step.
    #[inline(always)]
    fn count_levels(&self) -> u16 {
        self.levels_in(3)
            .or_else(|| self.levels_in(2))
            .or_else(|| self.levels_in(1))
            .or_else(|| self.levels_in(0))
            .unwrap_or(0)
    }

    /// One more than the highest priority of word `word` of the bitmap.
    #[inline(always)]
    fn levels_in(&self, word: usize) -> Option<u16> {
        let bits = NonZeroU64::new(self.words[word & 3].get())?;
        Some(word as u16 * 64 + bits.ilog2() as u16 + 1)
    }
}
