//! Runs in the hosted kernel's parallel virtual time (`assurance/gates`), where each core has a clock of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{ensure, Context, Result};
use serde::Deserialize;

use super::runs::{Outcome, Request, Run, PHASES};
use crate::experiment::simulation;
use crate::side_by_side;

/// The simulation's package, and its binary.
const PACKAGE: &str = "sandglass-gates";

/// The outcomes of these runs, in their order.
///
/// # Errors
/// The simulation does not build or fails, or says something else.
pub fn outcomes(runs: &[Run], phase_ms: u64) -> Result<Vec<Outcome>> {
    let program = simulation::build(PACKAGE, Some(simulation::SMP))?;
    eprintln!(
        "simulating {} runs of {} s",
        runs.len(),
        PHASES as u64 * phase_ms / 1000
    );
    side_by_side::run(
        runs,
        |run| outcome(&program, run, phase_ms),
        |of, number| {
            let Run {
                cores,
                protocol,
                seed,
                ..
            } = of.run;
            eprintln!(
                "{number} of {}: {}, cores: {cores}, seed: {seed}",
                runs.len(),
                protocol.name()
            );
        },
    )
}

/// What requests take on one core, in ticks.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Calibration {
    pub request: u64,
    pub behind_another: u64,
}

/// What requests take on one core; the second one behind an operation of `long` ticks.
///
/// # Errors
/// The simulation does not build or fails, or says something else.
pub fn calibration(long: u64) -> Result<Calibration> {
    let mut command = Command::new(simulation::build(PACKAGE, Some(simulation::SMP))?);
    command.args(["costs", "--long", &long.to_string()]);
    let output = simulation::ended(&mut command)?;
    let mut lines = csv::Reader::from_reader(&output[..]);
    let line = lines.deserialize().next();
    let line = line.with_context(|| format!("{command:?} says nothing"))?;
    line.with_context(|| format!("from {command:?}"))
}

fn outcome(program: &Path, run: &Run, phase_ms: u64) -> Result<Outcome> {
    let mut command = Command::new(program);
    command
        .arg("study")
        .args(["--protocol", run.protocol.argument()])
        .args(["--time", run.time.argument()])
        .args(["--cores", &run.cores.to_string()])
        .args(["--seed", &run.seed.to_string()])
        .args(["--phase", &phase_ms.to_string()]);
    let output = simulation::ended(&mut command)?;
    parse(*run, &output).with_context(|| format!("from {command:?}"))
}

/// A request, as the simulation writes it: times in ns.
#[derive(Debug, Deserialize)]
struct Line {
    phase: usize,
    at: u64,
    delay: u64,
    bound: u64,
}

fn parse(run: Run, text: &[u8]) -> Result<Outcome> {
    let mut outcome = Outcome {
        run,
        bound_ns: 0,
        requests: Vec::new(),
    };
    for line in csv::Reader::from_reader(text).deserialize() {
        let line: Line = line.context("a line is no request")?;
        ensure!(
            (1..=PHASES).contains(&line.phase),
            "{line:?}: there are {PHASES} phases"
        );
        outcome.bound_ns = line.bound;
        outcome.requests.push(Request {
            phase: line.phase,
            at_ns: line.at,
            delay_ns: line.delay,
        });
    }
    ensure!(!outcome.requests.is_empty(), "there are no requests");
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::super::runs::{Protocol, Time};
    use super::*;

    #[test]
    fn requests_are_read_and_anything_else_is_refused() {
        let run = Run {
            cores: 4,
            protocol: Protocol::Fifo,
            time: Time::Server,
            seed: 3,
        };
        let header = "phase,at,delay,bound";
        let parsed = parse(run, format!("{header}\n1,5,7,28\n8,6,9,28\n").as_bytes()).unwrap();
        assert_eq!((parsed.run, parsed.bound_ns), (run, 28));
        let last = parsed.requests[1];
        assert_eq!((last.phase, last.at_ns, last.delay_ns), (8, 6, 9));
        for wrong in ["", "9,5,7,28", "0,5,7,28", "1,5,7", "1,5,late,28"] {
            assert!(
                parse(run, format!("{header}\n{wrong}\n").as_bytes()).is_err(),
                "{wrong}"
            );
        }
    }
}
