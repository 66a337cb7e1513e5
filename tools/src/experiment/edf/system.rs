//! The described system that schedules task sets, one after the other.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{ensure, Context, Result};
use edf_record::{Outcome, Plan, Set, MAX_TASKS};
use sandglass_description::policy::edf::Sender;

use super::super::machines;
use super::{Mode, DECISIONS, SHIFT};
use crate::arch::Arch;
use crate::system::rogue::Rogue;
use crate::system::Source;
use crate::workspace;

/// Sets of a machine: some for every core of the host, and none that takes long.
const SETS: usize = 50;
/// Machines for each mode at least, if there are so many sets.
const LEAST_MACHINES: usize = 2;

/// Schedules every set in both modes, with the rogue beside them if there is one; returns mode, index and record of each.
///
/// # Errors
/// Something does not build, a machine does not end well, or sets are missing from a record.
pub fn run_all(
    arch: Arch,
    sets: &[Set],
    rogue: Option<Rogue>,
) -> Result<Vec<(Mode, usize, Outcome)>> {
    let folder = workspace::target_dir().join(format!("edf-{}", std::process::id()));
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    let outcomes = run_in(arch, &folder, sets, rogue);
    // Only we have read it; a folder that stays behind is no failure.
    let _ = fs::remove_dir_all(&folder);
    outcomes
}

fn run_in(
    arch: Arch,
    folder: &Path,
    sets: &[Set],
    rogue: Option<Rogue>,
) -> Result<Vec<(Mode, usize, Outcome)>> {
    let machines = sets
        .len()
        .div_ceil(SETS)
        .max(LEAST_MACHINES)
        .min(sets.len());
    let mut parts = Vec::new();
    for mode in Mode::ALL {
        // Large sets and small ones on every machine.
        parts.extend((0..machines).map(|first| (mode, first)));
    }
    let indices = |first: usize| (first..sets.len()).step_by(machines);
    let mut sources = Vec::new();
    for &(mode, first) in &parts {
        let plan = Plan {
            preemptive: mode == Mode::Preemptive,
            decisions: DECISIONS,
            sets: indices(first).map(|index| sets[index].clone()).collect(),
        };
        let name = format!("{}-{first}", mode.name());
        let path = folder.join(format!("{name}.plan"));
        fs::write(&path, edf_record::encode(&plan)?)
            .with_context(|| format!("cannot write `{}`", path.display()))?;
        sources.push(Source {
            arch: None,
            text: describe(&name),
            name,
            folder: folder.to_owned(),
        });
    }
    let ended = machines::run_all(arch, "scheduling by deadlines", &sources, SHIFT, rogue)?;
    let mut outcomes = Vec::new();
    for ((mode, first), ended) in parts.into_iter().zip(ended) {
        let recorded = edf_record::decode_outcomes(&ended.output)
            .context("the system's output is no record")?;
        ensure!(
            recorded.len() == indices(first).len(),
            "{} of {} sets are recorded",
            recorded.len(),
            indices(first).len()
        );
        outcomes.extend(
            indices(first)
                .zip(recorded)
                .map(|(index, outcome)| (mode, index, outcome)),
        );
    }
    Ok(outcomes)
}

/// One component: its main thread is the scheduler, the others are the tasks.
fn describe(name: &str) -> String {
    let controlled: Vec<String> = (0..MAX_TASKS)
        .map(|task| format!("\"bench/t{task}\""))
        .collect();
    let (mut threads, mut clients) = (String::new(), String::new());
    for task in 0..MAX_TASKS {
        // A full reservation, unless the scheduler says otherwise. Writing to a string cannot fail.
        let _ = write!(
            threads,
            "\n[[component.thread]]\nname = \"t{task}\"\npriority = 100\nbudget = \"3600s\"\n\
             period = \"3600s\"\n"
        );
        let capabilities = [
            (Sender::Call(task), "call", "call"),
            (Sender::Fault(task), "fault", "handler"),
        ];
        for (sender, prefix, rights) in capabilities {
            let badge = sender.badge();
            let _ = writeln!(
                clients,
                "  {{ component = \"bench\", badge = {badge}, as = \"{prefix}{task}\", rights = \"{rights}\" }},"
            );
        }
    }
    let mut text = format!(
        r#"name = "{name}"
machine = {{ memory = 64 }}

[[component]]
name = "bench"
executable = "edf-experiment"
priority = 150
mcp = 150
budget = "10ms"
period = "10ms"
ready = true
exit = true
controls = ["bench", {controlled}]
scheduling-control = [0]
{threads}
[timer-device]
component = "bench"

[[output]]
name = "record"
component = "bench"

[[file]]
name = "plan"
path = "{name}.plan"
components = ["bench"]
"#,
        controlled = controlled.join(", ")
    );
    let _ = write!(
        text,
        "\n[[endpoint]]\nname = \"tasks\"\nserver = \"bench\"\nclients = [\n{clients}]\n"
    );
    // For their reply objects: one for each task, and one more.
    for job in 0..=MAX_TASKS {
        let _ = write!(
            text,
            "\n[[endpoint]]\nname = \"job{job}\"\nserver = \"bench\"\n"
        );
    }
    text
}
