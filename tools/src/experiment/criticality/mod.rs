//! `sandglass experiment criticality`: three real workloads under static mixed criticality, in
//! three stages (thesis 8.4.1, Table 8.16).
//!
//! [`stages`] are what each has to do, and what became of it; [`report`] shows it.

mod report;
mod stages;

use anyhow::{Context, Result};
use toml::{Table, Value};

use super::machines;
use super::report::Report;
use super::{Extent, Size};
use crate::system::Source;
use crate::workspace;
use stages::{Amount, Jobs, Outcome, Stage, STAGES, TASKS};

/// Where the system is, from the root of the repository.
const SYSTEM: &str = "systems/experiments/criticality/SYSTEM.toml";
/// Length of a tick, µs.
const TICK_US: u64 = 200;

/// Fails if a task at or above a stage's criticality misses a deadline, or if the stages do not
/// overload those below.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn run(extent: &Extent) -> Result<Report> {
    let milliseconds = match extent.size {
        Size::Smoke => 400,
        Size::Quick => 2_000,
        Size::Full => 20_000,
    };
    let source = Source::read(&workspace::root().join(SYSTEM))?;
    // How long a job takes that is alone, once for each task and amount; then the stages.
    let mut amounts: Vec<(usize, Amount)> = Vec::new();
    for stage in &STAGES {
        amounts.extend(stage.amounts(extent.arch).into_iter().enumerate());
    }
    amounts.sort_unstable();
    amounts.dedup();
    let mut systems = Vec::new();
    for &(task, Amount { units, .. }) in &amounts {
        let mut alone = [0; TASKS.len()];
        alone[task] = units;
        let name = format!("alone-{}-{units}", TASKS[task].name);
        systems.push(with_units(&source, &name, alone, 200)?);
    }
    for stage in &STAGES {
        let units = stage.amounts(extent.arch).map(|amount| amount.units);
        systems.push(with_units(&source, stage.name, units, milliseconds)?);
    }
    let ended = machines::run_all(extent.arch, "criticality", &systems, 0, extent.rogue(0))?;
    let jobs = ended
        .iter()
        .map(|ended| Jobs::read(&ended.console))
        .collect::<Result<Vec<_>>>()?;
    let (alone, together) = jobs.split_at(amounts.len());
    let alone_in = |stage: &Stage| {
        let of_stage = amounts
            .iter()
            .zip(alone)
            .filter(|((task, amount), _)| stage.amounts(extent.arch)[*task] == *amount);
        of_stage.map(|(_, jobs)| *jobs).collect::<Vec<_>>()
    };
    let outcomes: Vec<Outcome> = STAGES
        .iter()
        .zip(together)
        .map(|(stage, jobs)| Outcome::new(stage, &alone_in(stage), jobs, milliseconds))
        .collect();
    let mut report = report::of(&outcomes)?;
    let took = amounts.iter().zip(alone);
    report
        .failures
        .extend(took.filter_map(|((task, amount), jobs)| {
            stages::miscalibrated(*task, *amount, jobs[*task].longest_us)
        }));
    Ok(report)
}

/// The system in which each task has so many units to do.
fn with_units(
    source: &Source,
    name: &str,
    units: [u64; TASKS.len()],
    milliseconds: u64,
) -> Result<Source> {
    let mut document: Table = source.text.parse().context("the system is no TOML")?;
    let components = document
        .get_mut("component")
        .and_then(Value::as_array_mut)
        .context("the system has no components")?;
    let mut set = |component: &str, key: &str, value: u64| {
        let found = components
            .iter_mut()
            .find(|table| table.get("name").and_then(Value::as_str) == Some(component));
        let parameters = found
            .and_then(|table| table.get_mut("parameters"))
            .and_then(Value::as_table_mut)
            .with_context(|| format!("`{component}` has no parameters"))?;
        // Far below 2^63.
        parameters.insert(key.to_owned(), Value::Integer(value as i64));
        Ok::<_, anyhow::Error>(())
    };
    for (task, units) in TASKS.iter().zip(units) {
        set(task.name, "units", units)?;
    }
    set("timer", "ticks", milliseconds * 1000 / TICK_US)?;
    Ok(Source {
        arch: None,
        name: format!("criticality-{name}"),
        text: document.to_string(),
        folder: source.folder.clone(),
    })
}
