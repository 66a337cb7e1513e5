//! `sandglass experiment timers`: what the timer service costs, against the number of timers, beside the HPET without it;
//! and that nothing drifts in a system with schedulers, time-triggered tasks and modes on one HPET.
//!
//! [`measured`] is what the systems print; [`report`] shows it.

mod measured;
mod report;

use std::path::Path;

use anyhow::{ensure, Result};

use super::machines;
use super::report::Report;
use super::{Extent, Size};
use crate::system::Source;
use crate::workspace;
use measured::{Drift, Figures};

/// Where the systems are, from the root of the repository: with the service, without, and the example.
const SERVED: &str = "systems/experiments/timers/SYSTEM.toml";
const OWN: &str = "systems/experiments/timers/OWN.toml";
const EXAMPLE: &str = "systems/examples/timers/SYSTEM.toml";
/// How long the example runs as it is written, s.
const WRITTEN: &str = "seconds = 2 ";

/// Fails if a request or an expiry takes longer than the builder counts, if the cost of one doubles from 10 timers to
/// 10,000, or if a release is not on its grid.
///
/// # Errors
/// Something does not build, or a run does not end.
pub fn run(extent: &Extent) -> Result<Report> {
    let seconds = match extent.size {
        Size::Smoke => 10,
        Size::Quick => 100,
        Size::Full => 1000,
    };
    let mut example = read("timers-example", EXAMPLE)?;
    ensure!(
        example.text.matches(WRITTEN).count() == 1,
        "`{WRITTEN}` does not occur once in `{EXAMPLE}`"
    );
    example.text = example
        .text
        .replace(WRITTEN, &format!("seconds = {seconds} "));
    let systems = [
        read("timers-served", SERVED)?,
        read("timers-own", OWN)?,
        example,
    ];
    let ended = machines::run_all(extent.arch, "timers", &systems, 0, extent.rogue(0))?;
    let [served, own, example] = ended.as_slice() else {
        unreachable!("each system ends once");
    };
    report::of(
        &Figures::of(&served.console)?,
        &Figures::of(&own.console)?,
        &Drift::of(&example.console)?,
        seconds,
    )
}

/// The system at `path`, whose image is to have a name of its own.
fn read(name: &str, path: &str) -> Result<Source> {
    Ok(Source {
        arch: None,
        name: name.to_owned(),
        ..Source::read(&workspace::root().join(Path::new(path)))?
    })
}
