//! Points of the hosted kernel's parallel virtual time (`assurance/parallel/`), which simulates the same
//! scenarios.
//!
//! They come as comma-separated values, the first line `scenario,spin,cores,work,time`: a scenario
//! is `single`, `multiple` or `pairs`; `spin` are the most instructions between two calls of a
//! pair, else 0; `work` are bytes encrypted or calls; `time` is what they took, in any unit that
//! is the same in all lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};
use cargo_metadata::Message;
use serde::Deserialize;

use super::points::{Point, Source};
use super::window::Scenario;
use crate::cores::MOST_CORES;
use crate::toolchain;
use crate::workspace;

/// The simulation's package, and its binary.
const PACKAGE: &str = "sandglass-parallel";

const HEADER: [&str; 5] = ["scenario", "spin", "cores", "work", "time"];

/// Simulates.
///
/// # Errors
/// The simulation does not build or fails, or says something else.
pub fn simulate() -> Result<Vec<Point>> {
    let mut command = Command::new(build()?);
    command.args(["--csv", "--cores", &MOST_CORES.to_string()]);
    eprintln!("simulating on 1 to {MOST_CORES} cores");
    let output = command
        .output()
        .with_context(|| format!("cannot run {PACKAGE}"))?;
    ensure!(
        output.status.success(),
        "{PACKAGE} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    parse(&String::from_utf8_lossy(&output.stdout)).with_context(|| format!("from {PACKAGE}"))
}

/// Builds the simulation and returns its executable.
fn build() -> Result<PathBuf> {
    let mut cargo = toolchain::linted_cargo();
    cargo.args([
        "build",
        "--profile",
        toolchain::HOST_PROFILE,
        "--package",
        PACKAGE,
    ]);
    cargo.args(["--features", "smp", "--bin", PACKAGE]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    cargo.arg("--target-dir").arg(workspace::target_dir());
    eprintln!("building {PACKAGE}");
    let artifacts = toolchain::build(&mut cargo, PACKAGE)?;
    for message in Message::parse_stream(artifacts.as_slice()) {
        let message = message.context("cannot read cargo's output")?;
        if let Message::CompilerArtifact(artifact) = message {
            let is_ours = artifact.target.name == PACKAGE;
            if let Some(executable) = artifact.executable.filter(|_| is_ours) {
                return Ok(executable.into_std_path_buf());
            }
        }
    }
    anyhow::bail!("cargo built no {PACKAGE}")
}

/// Reads a file of what was simulated before.
///
/// # Errors
/// It cannot be read, or a line is not as above.
pub fn read(path: &Path) -> Result<Vec<Point>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    parse(&text).with_context(|| format!("in `{}`", path.display()))
}

fn parse(text: &str) -> Result<Vec<Point>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().context("it has no first line")?;
    ensure!(
        header == HEADER.as_slice(),
        "the first line is not {HEADER:?}"
    );
    let mut points = Vec::new();
    for line in reader.deserialize() {
        let line: Line = line.with_context(|| format!("a line is not {HEADER:?}"))?;
        points.push(
            line.point()
                .with_context(|| format!("{line:?} is no point"))?,
        );
    }
    Ok(points)
}

/// A run, as the simulation writes it.
#[derive(Debug, Deserialize)]
struct Line {
    scenario: String,
    spin: u64,
    cores: u32,
    work: u64,
    time: u64,
}

impl Line {
    fn point(&self) -> Option<Point> {
        (self.time > 0).then_some(())?;
        Some(Point {
            source: Source::Hosted,
            scenario: Scenario::parse(&self.scenario, self.spin)?,
            cores: self.cores,
            work: self.work,
            time: self.time,
            limit: None,
            counts: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_read_and_anything_else_is_refused() {
        let header = HEADER.join(",");
        let points = parse(&format!(
            "{header}\nsingle,0,4,1048576,99\npairs,500,2,7,8\n"
        ));
        let points = points.unwrap();
        assert_eq!(points[0].scenario, Scenario::Single);
        assert_eq!((points[0].work, points[0].time), (1_048_576, 99));
        assert_eq!(points[1].scenario, Scenario::Pairs { spin: 500 });
        for wrong in ["", "single,0,4,5,6\n"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for wrong in ["double,0,1,2,3", "single,0,1,2", "single,0,1,2,0"] {
            assert!(parse(&format!("{header}\n{wrong}\n")).is_err(), "{wrong}");
        }
    }
}
