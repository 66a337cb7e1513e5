//! What happens while a script is played.

use std::collections::BTreeMap;
use std::fmt;

/// Counts what happens, and tells it if it is to.
#[derive(Clone, Debug, Default)]
pub struct Journal {
    steps: u64,
    seen: BTreeMap<&'static str, u64>,
    tells: bool,
}

impl Journal {
    /// One that prints each step.
    pub fn telling() -> Self {
        Self {
            tells: true,
            ..Self::default()
        }
    }

    /// Something happens to the state machine.
    pub(crate) fn step(&mut self, what: fmt::Arguments) {
        self.steps += 1;
        if self.tells {
            println!("{:>5}  {what}", self.steps);
        }
    }

    /// Something is so, before the first step or between two.
    pub(crate) fn note(&self, what: fmt::Arguments) {
        if self.tells {
            println!("       {what}");
        }
    }

    /// One of the script's situations comes about.
    pub(crate) fn saw(&mut self, situation: &'static str) {
        *self.seen.entry(situation).or_default() += 1;
    }

    /// Events that the state machine was given.
    pub const fn steps(&self) -> u64 {
        self.steps
    }

    /// How often each situation came about.
    pub const fn seen(&self) -> &BTreeMap<&'static str, u64> {
        &self.seen
    }
}
