//! Tests that run on the host: the workspace's unit, integration and documentation tests.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use cargo_metadata::Message;

use super::lines::{self, Verdict};
use super::report::Report;
use super::Filter;
use crate::toolchain;

/// A compiled test harness.
struct Harness {
    /// Prefix of its tests' names: `host::PACKAGE`, and the target if it is not the library.
    prefix: String,
    executable: PathBuf,
    /// Folder of its package: where its tests run.
    folder: PathBuf,
}

/// Builds and runs the host's tests.
pub fn run(filter: &Filter, report: &mut Report) -> Result<()> {
    match build()? {
        Ok(harnesses) => {
            for harness in &harnesses {
                run_harness(harness, filter, report)?;
            }
        }
        Err(messages) => report.failed("host::build", &messages),
    }
    run_doc_tests(filter, report)
}

/// Builds all harnesses; the inner error is the compiler's.
fn build() -> Result<Result<Vec<Harness>, String>> {
    eprintln!("building the host's tests");
    let mut cargo = toolchain::host_cargo();
    cargo.args([
        "test",
        "--workspace",
        "--no-run",
        "--message-format",
        "json-render-diagnostics",
    ]);
    let artifacts = match toolchain::build(&mut cargo, "the host's tests") {
        Ok(artifacts) => artifacts,
        Err(error) => return Ok(Err(format!("{error:#}"))),
    };
    let mut harnesses = Vec::new();
    for message in Message::parse_stream(artifacts.as_slice()) {
        let Message::CompilerArtifact(artifact) = message.context("cannot read cargo's output")?
        else {
            continue;
        };
        let (true, Some(executable)) = (artifact.profile.test, artifact.executable) else {
            continue;
        };
        let folder = artifact
            .manifest_path
            .parent()
            .context("a manifest stands in a folder")?;
        let package = folder
            .file_name()
            .context("a package's folder has a name")?;
        let prefix = if artifact.target.is_lib() {
            format!("host::{package}")
        } else {
            format!("host::{package}::{}", artifact.target.name)
        };
        harnesses.push(Harness {
            prefix,
            executable: executable.into_std_path_buf(),
            folder: folder.as_std_path().to_path_buf(),
        });
    }
    harnesses.sort_by(|a, b| a.prefix.cmp(&b.prefix));
    Ok(Ok(harnesses))
}

/// Runs the wanted tests of one harness. A test that reports nothing, because its process died,
/// has failed.
fn run_harness(harness: &Harness, filter: &Filter, report: &mut Report) -> Result<()> {
    let full_name = |test: &str| format!("{}::{test}", harness.prefix);
    let mut pending: BTreeSet<String> = list(harness)?;
    pending.retain(|test| filter.accepts(&full_name(test)));
    if pending.is_empty() {
        return Ok(());
    }
    report.started(&harness.prefix);
    let mut command = Command::new(&harness.executable);
    command.arg("--exact").args(&pending);
    let details = follow(in_folder(&mut command, harness), |line| {
        let Some((test, verdict)) = lines::result(line) else {
            return;
        };
        if pending.remove(test) {
            record(report, &full_name(test), verdict, "its output is below");
        }
    })?;
    for test in pending {
        report.failed(
            &full_name(&test),
            "the test's process ended before it reported",
        );
    }
    if let Some(details) = details {
        println!("{details}");
    }
    Ok(())
}

/// Names of a harness's tests.
fn list(harness: &Harness) -> Result<BTreeSet<String>> {
    let mut command = Command::new(&harness.executable);
    let out = in_folder(command.args(["--list", "--format", "terse"]), harness)
        .output()
        .with_context(|| format!("cannot run {}", harness.executable.display()))?;
    let text = String::from_utf8_lossy(&out.stdout);
    Ok(text
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect())
}

fn in_folder<'c>(command: &'c mut Command, harness: &Harness) -> &'c mut Command {
    command
        .current_dir(&harness.folder)
        .env("CARGO_MANIFEST_DIR", &harness.folder)
}

/// Runs the examples of the documentation. Their names begin with their file.
fn run_doc_tests(filter: &Filter, report: &mut Report) -> Result<()> {
    let mut cargo = toolchain::host_cargo();
    cargo.args([
        "test",
        "--workspace",
        "--doc",
        "--no-fail-fast",
        "--quiet",
        "--",
    ]);
    cargo.args(["--format", "pretty"]);
    if let Some(pattern) = &filter.0 {
        cargo.arg(pattern.trim_start_matches("doc::"));
    }
    let mut reported = false;
    let details = follow(&mut cargo, |line| {
        let Some((test, verdict)) = lines::result(line) else {
            return;
        };
        reported = true;
        record(
            report,
            &format!("doc::{test}"),
            verdict,
            "its output is below",
        );
    })?;
    match details {
        Some(details) if reported => println!("{details}"),
        Some(details) => report.failed("doc::build", &details),
        None => {}
    }
    Ok(())
}

fn record(report: &mut Report, name: &str, verdict: Verdict, reason: &str) {
    match verdict {
        Verdict::Passed => report.passed(name),
        Verdict::Ignored => report.skipped(name, "marked as ignored"),
        Verdict::Failed(_) => report.failed(name, reason),
    }
}

/// Runs `command`, shows each line of its output to `see`, and returns what it said about
/// failures if it failed.
fn follow(command: &mut Command, mut see: impl FnMut(&str)) -> Result<Option<String>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let mut stderr = child
        .stderr
        .take()
        .context("the test has no standard error")?;
    let complaints = std::thread::spawn(move || {
        let mut text = Vec::new();
        // A read error ends the text like its end does.
        let _ = std::io::Read::read_to_end(&mut stderr, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let stdout = child
        .stdout
        .take()
        .context("the test has no standard output")?;
    let mut details = String::new();
    for line in BufReader::new(stdout).split(b'\n') {
        let line = line.context("cannot read the test's output")?;
        let line = String::from_utf8_lossy(&line);
        see(&line);
        if line.starts_with("failures:") || !details.is_empty() {
            details.push_str(&line);
            details.push('\n');
        }
    }
    let status = child.wait().context("cannot wait for the test")?;
    details.push_str(&complaints.join().unwrap_or_default());
    Ok((!status.success()).then_some(details))
}
