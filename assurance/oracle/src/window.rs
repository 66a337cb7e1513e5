//! The sum of what happened in a window that slides.

use std::collections::VecDeque;

use crate::Ticks;

/// Stretches in the order of time, as far as the windows of one length that are still to come can
/// contain them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    length: Ticks,
    stretches: VecDeque<(Ticks, Ticks)>,
    /// Sum of all that are kept, the parts that are out of the window included.
    sum: Ticks,
}

impl Window {
    /// Windows of `length`, in which nothing happened.
    pub fn new(length: Ticks) -> Window {
        Window {
            length,
            stretches: VecDeque::new(),
            sum: 0,
        }
    }

    /// Length of the windows.
    pub fn length(&self) -> Ticks {
        self.length
    }

    /// Something happened from `start` to `end`, which is not before what happened last. Returns the
    /// sum in the window that ends at `end`: of all windows that end in this stretch none has more,
    /// since what enters a window at its end is at least what leaves it.
    pub fn add(&mut self, start: Ticks, end: Ticks) -> Ticks {
        match self.stretches.back_mut() {
            Some(last) if last.1 == start => last.1 = end,
            _ => self.stretches.push_back((start, end)),
        }
        self.sum += end - start;
        self.until(end)
    }

    /// The sum in the window that ends at `end`, which is not before what happened last.
    pub fn until(&mut self, end: Ticks) -> Ticks {
        let from = end.saturating_sub(self.length);
        while let Some(&(start, stop)) = self.stretches.front() {
            if stop > from {
                break;
            }
            self.sum -= stop - start;
            self.stretches.pop_front();
        }
        let outside = self
            .stretches
            .front()
            .map_or(0, |&(start, _)| from.saturating_sub(start));
        self.sum - outside
    }

    /// Windows of at most `length` from now on, with the same history.
    pub fn shorten(&mut self, length: Ticks) {
        self.length = self.length.min(length);
    }
}
