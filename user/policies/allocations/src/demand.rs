//! The admission test: invariants 1 and 2 (paper, section 3.2) for one allocation, one more function in it.
//!
//! What an allocation holds is the sum of the functions in it. The sum is never written down: its points are a list in
//! the order of their intervals, which is kept from one admission to the next ([`crate::records`]). The test follows
//! three functions along time at once, what is allowed, what is held, and what is to be added, and looks at what is
//! left at every point and before it: between points all is linear. So an admission takes a step for each point that
//! is held, where evaluating the sum at each point takes as many times more as there are functions (appendix A.2).

use crate::allowance::{on_segment, Point};
use crate::rate::{ticks_up, Rate, Scaled};

/// How a function changes at a point: a jump, in scaled ticks, and a change of the slope, in parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    jump: Scaled,
    slope: Scaled,
}

impl Change {
    /// At the point with this index.
    pub(crate) fn at(points: &[Point], index: usize) -> Self {
        let point = points[index];
        let (reached, slope) = match index.checked_sub(1).map(|before| points[before]) {
            None => (0, 0),
            Some(before) => (
                on_segment(before, point.at),
                Scaled::from(before.rate.parts()),
            ),
        };
        Self {
            jump: point.value.scaled() - reached,
            slope: Scaled::from(point.rate.parts()) - slope,
        }
    }
}

/// What would be demanded beyond what is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// Invariant 1: in the long run, by this much.
    Utilisation { by: Rate },
    /// Invariant 2: in intervals of this length, by so many ticks, rounded up. The shortest such interval.
    Demand { interval: u64, by: u64 },
}

/// What is left of an allowance, followed along the lengths of intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slack {
    at: u64,
    value: Scaled,
    slope: Scaled,
    /// The shortest interval in which too much is demanded, and how much.
    short: Option<(u64, Scaled)>,
}

impl Slack {
    /// Goes on to the interval of the next point. The last tick before it is looked at; what comes at the point is
    /// not yet in.
    pub(crate) fn reach(&mut self, at: u64) {
        if at > self.at {
            self.look(at - 1);
            self.value += self.slope.wrapping_mul(Scaled::from(at - self.at));
            self.at = at;
        }
    }

    /// More is allowed.
    pub(crate) fn gain(&mut self, change: Change) {
        self.value += change.jump;
        self.slope += change.slope;
    }

    /// More is demanded.
    pub(crate) fn lose(&mut self, change: Change) {
        self.value -= change.jump;
        self.slope -= change.slope;
    }

    /// Looks at an interval that is on the current segment.
    pub(crate) fn look(&mut self, at: u64) {
        let value = self.value + self.slope.wrapping_mul(Scaled::from(at - self.at));
        if value < 0 && self.short.is_none() {
            self.short = Some((at, -value));
        }
    }

    /// After the last point.
    pub(crate) fn end(mut self) -> Result<(), Excess> {
        self.look(self.at);
        if self.slope < 0 {
            let by = u64::try_from(-self.slope).ok().and_then(Rate::of_parts);
            let by = by.unwrap_or(Rate::WHOLE);
            return Err(Excess::Utilisation { by });
        }
        match self.short {
            None => Ok(()),
            Some((interval, by)) => Err(Excess::Demand {
                interval,
                by: ticks_up(by),
            }),
        }
    }
}
