//! Two copies of a state, of which one is always whole (thesis 8.3.2: "the server alternates
//! between two buffers, using an atomic swap").

use core::sync::atomic::{AtomicU64, Ordering};

/// `N` words that change together. One thread publishes; others may read what it published last,
/// also while it is stopped in the middle of publishing, as long as it does not run meanwhile.
#[derive(Debug)]
#[repr(C)]
pub struct Twin<const N: usize> {
    /// Index of the whole copy is the lowest bit.
    current: AtomicU64,
    copies: [[AtomicU64; N]; 2],
}

impl<const N: usize> Twin<N> {
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self {
            current: AtomicU64::new(0),
            copies: [const { [const { AtomicU64::new(0) }; N] }; 2],
        }
    }

    /// Replaces the words: writes the copy that is not being read, then swaps.
    #[inline]
    pub fn publish(&self, words: [u64; N]) {
        let swapped = self.current.load(Ordering::Relaxed) & 1 ^ 1;
        for (cell, word) in self.copies[swapped as usize].iter().zip(words) {
            cell.store(word, Ordering::Relaxed);
        }
        self.current.store(swapped, Ordering::Release);
    }

    /// The words published last.
    #[inline]
    pub fn read(&self) -> [u64; N] {
        let current = self.current.load(Ordering::Acquire) & 1;
        core::array::from_fn(|i| self.copies[current as usize][i].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_last_is_read() {
        let twin = Twin::<3>::new();
        assert_eq!(twin.read(), [0; 3]);
        for round in 0..5 {
            twin.publish([round, round + 1, round + 2]);
            assert_eq!(twin.read(), [round, round + 1, round + 2]);
        }
    }

    /// A publisher that is stopped after any of its stores leaves the previous state readable.
    #[test]
    fn a_half_written_copy_is_not_read() {
        let twin = Twin::<3>::new();
        twin.publish([1, 2, 3]);
        let other = twin.current.load(Ordering::Relaxed) & 1 ^ 1;
        for cell in &twin.copies[other as usize] {
            cell.store(99, Ordering::Relaxed);
            assert_eq!(twin.read(), [1, 2, 3]);
        }
    }

    #[test]
    fn a_wild_index_reads_some_copy() {
        let twin = Twin::<1>::new();
        twin.current.store(u64::MAX, Ordering::Relaxed);
        assert_eq!(twin.read(), [0]);
    }
}
