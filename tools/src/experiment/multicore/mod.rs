//! `sandglass experiment multicore`: the multiprocessor benchmarks of the thesis (8.5, Figures 8.9
//! and 8.10) on 1 to 4 cores.
//!
//! - [`machine`] boots the system in `systems/multicore` with the emulator's plugin, and checks
//!   what was encrypted; [`window`] is what one measurement says;
//! - [`points`] are throughputs, from the emulator or from another source ([`hosted`]), and the
//!   verdict on them; [`table`], [`report`] and [`chart`] show them.

mod chart;
mod hosted;
mod machine;
mod points;
mod report;
mod table;
mod window;

use anyhow::{ensure, Result};

use super::{report::Report, Extent, Size};
use machine::{Bench, Work};
use points::Points;

/// Why no untrusted client can be added.
const NO_ROGUE: &str = "clients and servers are threads of one program, which is no described system: they share \
     their memory and their capabilities, and so trust each other; experiments with described systems can have a rogue client";

/// Fails if a ciphertext differs, or if the throughputs do not scale as they must.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn run(extent: &Extent) -> Result<Report> {
    ensure!(extent.rogue.is_none(), "`--rogue`: {NO_ROGUE}");
    let mut points = Points::default();
    points.add(match &extent.hosted {
        Some(path) => hosted::read(path)?,
        None => hosted::simulate()?,
    });
    let work = match extent.size {
        Size::Smoke | Size::Quick => Work::QUICK,
        Size::Full => Work::FULL,
    };
    points.add(Bench::prepare(extent.arch, work)?.run_all()?);
    report::of(&points)
}
