//! Points of the hosted kernel's parallel virtual time (`assurance/parallel/`), which simulates the same
//! scenarios.
//!
//! They come as comma-separated values, the first line `scenario,spin,cores,work,time`: a scenario
//! is `single`, `multiple` or `pairs`; `spin` are the most instructions between two calls of a
//! pair, else 0; `work` are bytes encrypted or calls; `time` is what they took, in any unit that
//! is the same in all lines.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context, Result};
use serde::Deserialize;

use super::points::{Point, Source};
use super::window::Scenario;
use crate::cores::MOST_CORES;
use crate::experiment::simulation;

/// The simulation's package, and its binary.
const PACKAGE: &str = "sandglass-parallel";

const HEADER: [&str; 5] = ["scenario", "spin", "cores", "work", "time"];

/// Simulates.
///
/// # Errors
/// The simulation does not build or fails, or says something else.
pub fn simulate() -> Result<Vec<Point>> {
    let mut command = Command::new(simulation::build(PACKAGE, Some(simulation::SMP))?);
    command.args(["--csv", "--cores", &MOST_CORES.to_string()]);
    eprintln!("simulating on 1 to {MOST_CORES} cores");
    let output = simulation::ended(&mut command)?;
    parse(&String::from_utf8_lossy(&output)).with_context(|| format!("from {PACKAGE}"))
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
