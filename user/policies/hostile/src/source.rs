//! The bytes of a script, as choices.

use std::ops::RangeInclusive;

use arbitrary::Unstructured;

/// What is left of the bytes. Past their end every choice is the first one, so that all bytes are a whole script.
pub struct Source<'a>(Unstructured<'a>);

impl<'a> Source<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Unstructured::new(bytes))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A number; past the end the least.
    pub fn number(&mut self, range: RangeInclusive<u64>) -> u64 {
        let least = *range.start();
        self.0.int_in_range(range).unwrap_or(least)
    }

    /// An index below `len`, which is not 0.
    pub fn index(&mut self, len: usize) -> usize {
        self.number(0..=len as u64 - 1) as usize
    }

    /// True once in `times`; past the end never.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.number(0..=times - 1) == times - 1
    }

    /// One of these, which are some.
    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.index(items.len())]
    }
}
