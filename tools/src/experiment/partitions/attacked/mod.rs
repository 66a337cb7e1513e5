//! Isolation of partitions: random systems, each with honest partitions, and with all threads of one of them replaced by
//! hostile ones. The windows of the others and their results are compared.
//!
//! Both run on the kernel that records traces, in virtual time, and their traces are checked: so windows are those that
//! threads really ran in.

mod random;
pub mod report;
mod supply;

use anyhow::{bail, ensure, Context, Result};

use self::random::System;
use self::supply::Supply;
use crate::arch::Arch;
use crate::qemu::End;
use crate::side_by_side;
use crate::system::{self, Source};
use crate::trace::check;
use crate::trace::{self, Traced};
use crate::workspace;

/// What an attack may move the windows of others by, beside `finish`, and what one request of each other partition takes,
/// which is in service at the end of a window at other times than before: instructions, which are ticks here.
pub const EDGE: u64 = 10_000;
/// The longest that a system may take, of its own time, µs: an honest thread that is not done by then has come to grief.
const LONGEST_US: u64 = 2_000_000;
/// Lines of the console that a failure shows.
const SHOWN_LINES: usize = 20;

/// A system that was attacked.
#[derive(Debug, Clone)]
pub struct Outcome {
    pub seed: u64,
    pub order: &'static str,
    pub attacks: String,
    /// ticks.
    pub finish: u64,
    /// Windows of the other partitions.
    pub windows: usize,
    /// The most by which one of them has moved, and may move, ticks.
    pub moved: u64,
    pub bound: u64,
    /// What is wrong.
    pub failures: Vec<String>,
}

/// Attacks systems of the seeds from 0 on.
///
/// # Errors
/// One does not build, or does not run.
pub fn run(arch: Arch, systems: u64) -> Result<Vec<Outcome>> {
    let seeds: Vec<u64> = (0..systems).collect();
    let attack = |&seed: &u64| attack(arch, &System::of(seed));
    side_by_side::run(&seeds, attack, |outcome, done| {
        eprintln!(
            "{done} of {systems}: system {} by {}: windows moved by at most {} instructions, the bound is {}",
            outcome.seed, outcome.order, outcome.moved, outcome.bound
        );
    })
}

/// Runs a system with honest partitions, and with a hostile one.
fn attack(arch: Arch, system: &System) -> Result<Outcome> {
    let seed = system.seed;
    let [honest, attacked] = [false, true].map(|is_attacked| {
        traced(arch, &system.text(is_attacked)).with_context(|| {
            let who = if is_attacked { "attacked" } else { "honest" };
            format!("system {seed}, {who}")
        })
    });
    let (honest, attacked) = (honest?, attacked?);
    let (windows, moved) = compare(system, &honest, &attacked)?;
    let finish = system.finish_us * honest.history.per_us;
    let bound = finish + EDGE + system.honest_requests_us() * honest.history.per_us;
    let mut failures = failures(system, &honest, &attacked)?;
    if moved > bound {
        failures.push(format!(
            "a window moved by {moved} instructions, more than {bound}"
        ));
    }
    let said = |failure| format!("system {seed} ({}): {failure}", system.attacks());
    Ok(Outcome {
        seed,
        order: system.order,
        attacks: system.attacks(),
        finish,
        windows,
        moved,
        bound,
        failures: failures.into_iter().map(said).collect(),
    })
}

/// How many windows others have beside a hostile partition, and by how many ticks one of them has moved at most.
fn compare(system: &System, honest: &Traced, attacked: &Traced) -> Result<(usize, u64)> {
    let (mut windows, mut moved) = (0, 0);
    for name in system.others() {
        let supply = |traced: &Traced| {
            let supply = Supply::of(&traced.history, &name);
            supply.with_context(|| format!("system {}: no windows of `{name}`", system.seed))
        };
        let (before, after) = (supply(honest)?, supply(attacked)?);
        windows += after.windows();
        moved = moved.max(after.moved_from(&before));
    }
    Ok((windows, moved))
}

/// What is wrong with results, or found in a trace.
fn failures(system: &System, honest: &Traced, attacked: &Traced) -> Result<Vec<String>> {
    let mut failures = Vec::new();
    let [expected, results] = [honest, attacked].map(|traced| results(&traced.console));
    ensure!(
        !expected.is_empty(),
        "system {} has no results",
        system.seed
    );
    if results != expected {
        failures.push(format!("results are {results:?}, not {expected:?}"));
    }
    for (who, traced) in [("honest", honest), ("attacked", attacked)] {
        let verdict = check::check_with(&traced.history, &traced.expected);
        let found = verdict.violations.first();
        failures.extend(found.map(|found| format!("the {who} system's trace: {found}")));
    }
    Ok(failures)
}

fn traced(arch: Arch, text: &str) -> Result<Traced> {
    let source = Source {
        arch: Some(arch),
        name: "attacked".to_owned(),
        text: text.to_owned(),
        folder: workspace::root().to_owned(),
    };
    let options = trace::Options {
        end_us: Some(LONGEST_US),
        ..trace::Options::default()
    };
    let traced = trace::trace_checked(system::check(&source)?, &options)?;
    if traced.end != End::Guest(0) {
        let lines: Vec<&str> = traced.console.lines().collect();
        bail!(
            "it ended with {:?}; the end of its console:\n{}",
            traced.end,
            lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
        );
    }
    Ok(traced)
}

/// Of each honest thread: its row, its jobs, and what it computed.
fn results(console: &str) -> Vec<[u64; 3]> {
    let rows = console.lines().filter_map(|line| {
        let numbers = line.trim_end().strip_prefix("row ")?.split(' ');
        let numbers = numbers.map(str::parse).collect::<Result<Vec<u64>, _>>();
        numbers.ok()?.try_into().ok()
    });
    rows.collect()
}
