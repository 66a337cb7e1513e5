//! `sandglass experiment policies`: one task set under each policy, honest and with a hostile task in it.
//!
//! - [`systems`] are the policies, their descriptions, and what is changed in them for each run;
//! - [`measured`] is what a run printed; [`compared`] is what of that is a cost, and what isolation;
//! - [`switches`] counts what a trace shows of the kernel's work;
//! - [`report`] shows it, [`timeline`] draws it, and [`figures`] is what of it is in the book.

mod compared;
mod figures;
mod measured;
mod report;
mod switches;
mod systems;
mod timeline;

use anyhow::{ensure, Result};

use super::machines;
use super::report::Report;
use super::{Extent, Size};
use crate::arch::Arch;
use compared::Compared;
use measured::Run;
use systems::{Case, Conduct, TaskSet, CONDUCTS, POLICIES};

/// What the book shows is measured for so long, in whole periods of all tasks, ms.
const SHOWN_MS: u64 = 60;

/// Why no untrusted client can be added.
const NO_ROGUE: &str = "each system has a hostile task of its own, and what is left to best effort is measured, which a rogue \
     client would share; other experiments with described systems can have one";

/// Fails if a policy does not isolate as its page says, or if the book shows other figures.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn run(extent: &Extent) -> Result<Report> {
    ensure!(extent.rogue.is_none(), "`--rogue`: {NO_ROGUE}");
    let tasks = TaskSet::read()?;
    let shown = measure(extent.arch, &tasks, SHOWN_MS)?;
    let switches = switches::count_all(extent.arch, &tasks)?;
    let longer = match extent.size {
        Size::Smoke => None,
        Size::Quick => Some(measure(extent.arch, &tasks, 200)?),
        Size::Full => Some(measure(extent.arch, &tasks, 2_000)?),
    };
    let mut failures: Vec<String> = shown.iter().flat_map(Compared::failures).collect();
    for longer in longer.iter().flatten() {
        failures.extend(longer.failures());
    }
    let figures = figures::of(&tasks, &shown, &switches);
    failures.extend(extent.hold(figures::PAGE, &figures)?);
    Ok(report::of(&tasks, &shown, &switches, failures))
}

/// Runs each policy with each conduct for so long, and compares.
fn measure(arch: Arch, tasks: &TaskSet, length_ms: u64) -> Result<Vec<Compared>> {
    let mut cases = Vec::new();
    for policy in &POLICIES {
        cases.extend(CONDUCTS.map(|conduct| Case { policy, conduct }));
    }
    let sources = cases.iter().map(|case| case.source(length_ms));
    let sources = sources.collect::<Result<Vec<_>>>()?;
    let ended = machines::run_all(arch, "policies", &sources, 0, None)?;
    let runs = ended.iter().map(|ended| Run::of(tasks, &ended.console));
    let runs = runs.collect::<Result<Vec<_>>>()?;
    let of_policies = POLICIES.iter().zip(runs.chunks(CONDUCTS.len()));
    Ok(of_policies
        .map(|(policy, runs)| Compared::new(tasks, policy, &with_conducts(runs)))
        .collect())
}

fn with_conducts(runs: &[Run]) -> Vec<(Conduct, Run)> {
    CONDUCTS.into_iter().zip(runs.iter().cloned()).collect()
}
