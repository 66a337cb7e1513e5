//! `sandglass experiment mc-ipc`: the case study of Brandenburg's paper on MC-IPC (section VI, Figure 2): a key server whose
//! clients fail in eight phases, and the delays of one client that does not.
//!
//! - [`runs`] are the runs, and the requests that they consist of; [`simulated`] has them from parallel virtual time;
//! - [`emulated`] has the whole system run for real, with signatures that are verified;
//! - [`costs`] is what a request costs on the bare kernel, and whether the simulation agrees;
//! - [`statements`] are what the paper says of each phase, beside what was seen;
//! - [`report`] shows them, and says what must hold.

mod costs;
mod emulated;
mod report;
mod runs;
mod simulated;
mod statements;

use anyhow::{ensure, Result};

use super::report::Report;
use super::{Extent, Size};
use costs::Costs;
use runs::{Protocol, Run, Time};

/// Why no untrusted client can be added.
const NO_ROGUE: &str =
    "its systems run in parallel virtual time, and have failing clients of their own";

/// How much is done.
struct Work {
    /// Runs of the paper's machine, each with another seed.
    seeds: u64,
    /// Length of a phase, ms.
    phase_ms: u64,
    /// In the emulator.
    emulated: emulated::Extent,
}

/// All phases in the emulator, in every order.
const fn emulated(cycles: u64) -> emulated::Extent {
    emulated::Extent {
        protocols: &[Protocol::McIpc, Protocol::Fifo, Protocol::Priority],
        first: 1,
        last: runs::PHASES,
        cycles,
    }
}

/// Fails if a request waits longer than MC-IPC's bound, if in the emulator a signature is wrong, a request is not answered, or
/// more operations are before one of T1's than MC-IPC allows, if the bare kernel and the simulation disagree about what requests
/// cost, or if the book shows other figures.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn run(extent: &Extent) -> Result<Report> {
    ensure!(extent.rogue.is_none(), "`--rogue`: {NO_ROGUE}");
    let work = match extent.size {
        Size::Smoke => Work {
            seeds: 1,
            phase_ms: 1_000,
            // The phase with the most clients at a time for its length.
            emulated: emulated::Extent {
                protocols: &[Protocol::McIpc],
                first: 6,
                last: 6,
                cycles: 1,
            },
        },
        Size::Quick => Work {
            seeds: 2,
            phase_ms: 6_000,
            emulated: emulated(3),
        },
        Size::Full => Work {
            seeds: 10,
            phase_ms: 60_000,
            emulated: emulated(4),
        },
    };
    let outcomes = simulated::outcomes(&wanted(&work), work.phase_ms)?;
    let emulated = emulated::outcomes(extent.arch, &work.emulated)?;
    let costs = Costs::measure(extent.arch)?;
    let mut report = report::of(&outcomes, work.phase_ms)?;
    emulated::add(&mut report, &emulated)?;
    report.failures.extend(costs.failures());
    let figures = extent.hold(costs::PAGE, &costs.figures())?;
    report.failures.extend(figures);
    report.table += &costs.lines();
    Ok(report)
}

/// On the paper's four cores every order with as many seeds as the paper has runs, also on the time of clients; on fewer,
/// MC-IPC alone.
fn wanted(work: &Work) -> Vec<Run> {
    let mut runs = Vec::new();
    for seed in 1..=work.seeds {
        for (protocol, time) in runs::PAPER {
            runs.push(Run {
                cores: runs::PAPER_CORES,
                protocol,
                time,
                seed,
            });
        }
    }
    for protocol in [Protocol::Fifo, Protocol::Priority] {
        runs.push(Run {
            cores: runs::PAPER_CORES,
            protocol,
            time: Time::Clients,
            seed: 1,
        });
    }
    for cores in [2, 1] {
        for seed in 1..=work.seeds {
            runs.push(Run {
                cores,
                protocol: Protocol::McIpc,
                time: Time::Clients,
                seed,
            });
        }
    }
    runs
}
