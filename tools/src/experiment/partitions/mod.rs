//! `sandglass experiment partitions`: the partition scheduler (Åsberg and Nolte, Figures 8 and 10), with up to 256
//! partitions of up to 16 threads.
//!
//! - [`machine`] boots the system in `systems/experiments/partitions`; [`measured`] is what it prints;
//! - [`simulation`] says what is to run with the parameters of Figure 10, independently;
//! - [`attacked`] has random systems, of which one partition is hostile;
//! - [`report`] shows it, and [`timeline`] draws what ran.

mod attacked;
mod machine;
mod measured;
mod report;
mod simulation;
mod timeline;

use anyhow::{ensure, Result};

use super::{report::Report, Extent, Size};
use machine::Work;

/// Why no untrusted client can be added.
const NO_ROGUE: &str = "the scheduler and the partitions' threads are one program, which is no described system: they \
     share their memory and their capabilities, and so trust each other; experiments with described systems can have a \
     rogue client";

/// Fails if an invocation costs more than the bounds allow, if the number of partitions makes it dearer, if anything but
/// the simulation's partition runs, if a window drifts, or if a hostile partition moves another one's window by more than the
/// bound, or changes a result there.
///
/// # Errors
/// Something does not build, or the run does not end well.
pub fn run(extent: &Extent) -> Result<Report> {
    ensure!(extent.rogue.is_none(), "`--rogue`: {NO_ROGUE}");
    let work = match extent.size {
        Size::Smoke => Work::SMOKE,
        Size::Quick => Work::QUICK,
        Size::Full => Work::FULL,
    };
    let systems = extent.sets.map_or(
        match extent.size {
            Size::Smoke => 3,
            Size::Quick => 12,
            Size::Full => 100,
        },
        u64::from,
    );
    let console = machine::run(extent.arch, work)?;
    report::of(
        extent.arch,
        &measured::Measured::read(&console)?,
        &attacked::run(extent.arch, systems)?,
    )
}
