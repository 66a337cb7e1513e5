//! `sandglass experiment edf`: earliest deadline first at user level (thesis 8.4.2, Figure 8.8).
//!
//! - [`sets`] makes random task sets; [`system`] schedules them in a described system, many in one
//!   boot, and reads what was recorded;
//! - [`reference`] simulates each set off-line, and compares decision by decision;
//! - [`measured`] is what the records say of latency and overhead; [`report`] shows it.

mod measured;
mod reference;
mod report;
pub mod sets;
mod system;

use anyhow::Result;
use edf_record::Set;
use fastrand::Rng;

use super::{report::Report, Extent, Size};
use measured::Measured;

/// An instruction takes 32 ns: a second has 31 million, so that a thousand sets, with periods of up to a
/// second, take minutes. Scheduling takes ten times the part of the time that it would on a processor of
/// 300 million instructions a second.
pub const SHIFT: u8 = 5;
/// Tasks of a set.
const TASKS: [usize; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20];
/// Decisions of each set, as in the thesis.
const DECISIONS: u32 = 100;
const SEED: u64 = 0x5a4d_6c55;

/// How a job ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// By a call.
    Cooperative,
    /// By a timeout: tasks never call.
    Preemptive,
}

impl Mode {
    const ALL: [Self; 2] = [Self::Preemptive, Self::Cooperative];

    /// As the thesis calls it.
    const fn name(self) -> &'static str {
        match self {
            Self::Cooperative => "coop",
            Self::Preemptive => "pre-empt",
        }
    }
}

/// Fails if a decision differs from the simulation's, or if a set that has time for everything misses
/// a deadline.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn run(extent: &Extent) -> Result<Report> {
    let count = match (extent.sets, extent.size) {
        (Some(sets), _) => sets as usize,
        (None, Size::Smoke) => 12,
        (None, Size::Quick) => 120,
        (None, Size::Full) => 1200,
    };
    let mut rng = Rng::with_seed(SEED);
    let sets: Vec<Set> = (0..count)
        .map(|index| sets::random(&mut rng, TASKS[index % TASKS.len()]))
        .collect();
    let mut measured = Vec::new();
    for (mode, set, outcome) in system::run_all(extent.arch, &sets, extent.rogue(SHIFT))? {
        measured.push(Measured::of(mode, &sets[set], &outcome));
    }
    report::of(&measured)
}
