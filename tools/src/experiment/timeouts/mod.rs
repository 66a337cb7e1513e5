//! `sandglass experiment timeouts`: the cost of each way to handle a timeout, for the handler, from its
//! waking up until it waits again (thesis 8.3.4, Table 8.14).
//!
//! [`points`] are the policies and what was measured of each; [`report`] shows them beside the
//! thesis's.

mod points;
mod report;

use anyhow::{Context, Result};

use super::machines;
use super::report::Report;
use super::{Extent, Size};
use crate::system::Source;
use crate::workspace;
use points::{Case, Cost, CASES};

/// Where the system is, from the root of the repository.
const SYSTEM: &str = "systems/experiments/timeouts/SYSTEM.toml";
/// Faults in the table of the thesis's experiment, and in this one's.
const SAMPLES: usize = 1000;

/// Fails if fewer faults were measured than asked for, or if extending a budget is not the
/// cheapest.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn run(extent: &Extent) -> Result<Report> {
    let samples = match extent.size {
        Size::Smoke => 50,
        Size::Quick | Size::Full => SAMPLES,
    };
    let path = workspace::root().join(SYSTEM);
    let source = Source::read(&path)?;
    let systems = CASES
        .iter()
        .map(|case| adapted(&source, case, samples))
        .collect::<Result<Vec<_>>>()?;
    let ended = machines::run_all(
        extent.arch,
        "timeout handlers",
        &systems,
        0,
        extent.rogue(0),
    )?;
    let costs = CASES
        .iter()
        .zip(&ended)
        .map(|(case, ended)| Cost::of(case, &ended.console))
        .collect::<Result<Vec<_>>>()?;
    report::of(&costs, samples)
}

/// The system for one case.
fn adapted(source: &Source, case: &Case, samples: usize) -> Result<Source> {
    let mut text = source.text.clone();
    let mut replace = |old: &str, new: &str| {
        let found = text.matches(old).count() == 1;
        text = text.replace(old, new);
        found.then_some(()).with_context(|| {
            let name = &source.name;
            format!("`{old}` does not occur once in `{name}`")
        })
    };
    replace("policy = \"rollback\"", case.policy)?;
    replace("samples = 1000", &format!("samples = {samples}"))?;
    replace("waits = 0", &format!("waits = {}", u8::from(case.waits)))?;
    replace("steps = 1000000", &format!("steps = {}", case.steps))?;
    Ok(Source {
        arch: None,
        name: format!("timeouts-{}", case.name.replace([' ', ','], "-")),
        text,
        folder: source.folder.clone(),
    })
}
