//! What the experiment `edf` is told, and what it records: shared by its program and the tools.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Most tasks of a set: so many threads the system has.
pub const MAX_TASKS: usize = 20;

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Jobs never call: they end when their budget runs out.
    pub preemptive: bool,
    /// Decisions to record of each set.
    pub decisions: u32,
    pub sets: Vec<Set>,
}

/// Tasks that are scheduled together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Set {
    pub tasks: Vec<Task>,
}

/// Times in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub period_us: u64,
    pub deadline_us: u64,
    /// What a job executes, or its budget in preemptive mode.
    pub budget_us: u64,
}

/// What happened with a set. Times in ticks of the time-stamp counter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Index in [`Plan::sets`].
    pub set: u32,
    /// When the tasks started: offsets count from here.
    pub start: u64,
    pub decisions: Vec<Decision>,
}

/// What a decision followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Event {
    Timer,
    Completed(u32),
    Overran(u32),
    Removed(u32),
    Blocked(u32),
}

/// A decision, and who noticed it. Times in ticks since [`Outcome::start`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    pub at: u64,
    pub event: Event,
    /// The task that is to run.
    pub run: Option<u32>,
    pub wake_at: Option<u64>,
    /// The last time that a task looked at the clock before.
    pub last: u64,
    pub noticed: Option<Noticed>,
}

/// The first look at the clock after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noticed {
    /// Whose.
    pub task: u32,
    pub at: u64,
}

/// Encodes a plan or an outcome.
///
/// # Errors
/// Never for these types: they have no maps of unknown length.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_allocvec(value)
}

/// Decodes a plan; what is behind it is ignored.
///
/// # Errors
/// `bytes` is no plan.
pub fn decode_plan(bytes: &[u8]) -> Result<Plan, postcard::Error> {
    postcard::from_bytes(bytes)
}

/// Decodes outcomes, one behind the other.
///
/// # Errors
/// `bytes` is anything else, or cut off.
pub fn decode_outcomes(mut bytes: &[u8]) -> Result<Vec<Outcome>, postcard::Error> {
    let mut outcomes = Vec::new();
    while !bytes.is_empty() {
        let (outcome, rest) = postcard::take_from_bytes(bytes)?;
        outcomes.push(outcome);
        bytes = rest;
    }
    Ok(outcomes)
}
