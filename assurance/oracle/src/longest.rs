//! The longest of what happened in a window that slides.

use std::collections::VecDeque;

use crate::Ticks;

/// Lengths with the times at which they were known, of which no later one is larger.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Longest {
    kept: VecDeque<(Ticks, Ticks)>,
}

impl Longest {
    /// Something of `length` ended at `end`, not before what ended last.
    pub fn add(&mut self, end: Ticks, length: Ticks) {
        while self.kept.back().is_some_and(|&(_, other)| other <= length) {
            self.kept.pop_back();
        }
        self.kept.push_back((end, length));
    }

    /// The longest of what ended at `from` or later; what ended before is forgotten.
    pub fn since(&mut self, from: Ticks) -> Ticks {
        while self.kept.front().is_some_and(|&(end, _)| end < from) {
            self.kept.pop_front();
        }
        self.kept.front().map_or(0, |&(_, length)| length)
    }
}
