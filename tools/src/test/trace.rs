//! Execution traces: every example system's, and the demo's, is accepted by the checker; the demo's,
//! and that of an example with two cores, are rejected when they are tampered with; a monitor's
//! figures agree with the trace; and a trace point is short.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{ensure, Context, Result};

use super::monitor;
use super::report::Report;
use super::{run_side_by_side, Filter};
use crate::arch::Arch;
use crate::bench;
use crate::qemu::End;
use crate::trace::{self, check, tamper, Options};
use crate::workspace;

/// The demo's description.
const DEMO: &str = "systems/demo/SYSTEM.toml";
/// The example with several cores.
const TWO_CORES: &str = "systems/examples/two-cores/SYSTEM.toml";
/// The example that reports its own consumption.
const MONITOR: &str = "systems/examples/monitor/SYSTEM.toml";
/// How much of a system's time is traced, µs.
const TRACED_US: u64 = 150_000;
/// Longest run, of the host's time.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Traces each wanted system.
pub(super) fn run(filter: &Filter, report: &mut Report) -> Result<()> {
    for (arch, of) in [
        (Arch::X86_64, "trace::"),
        (Arch::Aarch64, "trace::aarch64::"),
    ] {
        let systems = systems()?.into_iter();
        let tests = systems.map(|(name, path)| (format!("{of}{name}"), path));
        run_side_by_side(tests, filter, report, |path| findings(arch, path))?;
    }
    let name = "trace::instructions_of_a_point";
    if filter.accepts(name) {
        report.started(name);
        match bench::findings_of_traces() {
            Ok(findings) if findings.is_empty() => report.passed(name),
            Ok(findings) => report.failed(name, &findings.join("\n")),
            Err(error) => report.failed(name, &format!("{error:#}")),
        }
    }
    Ok(())
}

/// The example systems and the demo, by name.
fn systems() -> Result<Vec<(String, PathBuf)>> {
    let root = workspace::root();
    let examples = root.join("systems/examples");
    let folders = std::fs::read_dir(&examples)
        .with_context(|| format!("cannot read {}", examples.display()))?;
    let mut systems = vec![("demo".to_owned(), root.join(DEMO))];
    for folder in folders {
        let folder = folder.context("cannot read an example's folder")?;
        let path = folder.path().join("SYSTEM.toml");
        if path.is_file() {
            systems.push((folder.file_name().to_string_lossy().into_owned(), path));
        }
    }
    systems.sort();
    ensure!(systems.len() > 1, "there are no example systems");
    Ok(systems)
}

/// What the checker finds in the trace of a system on `arch`.
fn findings(arch: Arch, path: &std::path::Path) -> Result<Vec<String>> {
    let options = Options {
        end_us: Some(TRACED_US),
        timeout: Some(TIMEOUT),
        ..Options::default()
    };
    let traced = trace::trace(path, Some(arch), &options)?;
    let verdict = check::check_with(&traced.history, &traced.expected);
    let mut findings: Vec<String> = verdict.violations.iter().map(ToString::to_string).collect();
    if let End::Guest(status @ 1..) = traced.end {
        findings.push(format!("the system ended with status {status}"));
    }
    // They have everything that can be tampered with.
    if [DEMO, TWO_CORES]
        .iter()
        .any(|system| path.ends_with(system))
    {
        findings.extend(tamper::unnoticed(&traced.history));
    }
    if path.ends_with(MONITOR) {
        findings.extend(monitor::departures(&traced));
    }
    // A system may have no budgets, deadlines or donations; it has a scheduler.
    if verdict.looked.decisions == 0 {
        findings.push("no decision of the scheduler was checked".to_owned());
    }
    Ok(findings)
}
