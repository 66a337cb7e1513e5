//! Runs in the emulator, on four cores in virtual time, with a server that makes real signatures.
//!
//! - [`system`] is the study as a described system;
//! - [`record`] is what its clients recorded, and [`verify`] has `openssl` verify the signatures;
//! - [`report`] is what must hold, and how it is shown.
//!
//! Cores take turns there, and the clock is that of all. So how long an operation takes depends on who else has something to do,
//! and no bound in time can be held. What the bound is about can: how many operations there are between a request and its
//! answer.

mod record;
mod report;
mod system;
mod verify;

use anyhow::{ensure, Context, Result};
use key_server_study as study;
use key_server_study::record::Request;

use super::runs::Protocol;
use crate::arch::Arch;
use crate::experiment::machines;
use record::Record;
pub use report::add;

/// What is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    pub protocols: &'static [Protocol],
    /// Phases, from 1 on; both included.
    pub first: usize,
    pub last: usize,
    /// Cycles of each.
    pub cycles: u64,
}

impl Extent {
    /// Ticks of the study in a phase.
    const fn ticks(&self) -> u64 {
        self.cycles * study::CYCLE_MS / study::TICK_MS
    }

    fn phases(&self) -> std::ops::RangeInclusive<usize> {
        self.first..=self.last
    }
}

/// A request of a client that was answered. Times in ns of the emulator's clock, since the first phase began; what was before is
/// at 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Served {
    client: usize,
    phase: usize,
    called_ns: u64,
    /// When the server began with it.
    signed_ns: u64,
    answered_ns: u64,
    sequence: u64,
    /// Operations that the server was at between the request and its answer, this one included.
    operations: u64,
    is_right: bool,
}

impl Served {
    const fn delay_ns(&self) -> u64 {
        self.answered_ns - self.called_ns
    }
}

/// What a run had for a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    protocol: Protocol,
    extent: Extent,
    /// The names of clients, and how many requests each made.
    clients: Vec<(String, u64)>,
    /// In the order of their sequence numbers.
    served: Vec<Served>,
}

impl Outcome {
    /// The requests of a client, by its number.
    fn of(&self, client: usize) -> impl Iterator<Item = &Served> {
        self.served.iter().filter(move |of| of.client == client)
    }

    /// Those of the client that is observed in a phase.
    fn observed(&self, phase: usize) -> impl Iterator<Item = &Served> {
        self.of(0).filter(move |of| of.phase == phase)
    }
}

/// Runs the study, and has all signatures verified.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn outcomes(arch: Arch, extent: &Extent) -> Result<Vec<Outcome>> {
    let protocols = extent.protocols.iter();
    let systems: Vec<_> = protocols
        .clone()
        .map(|protocol| system::source(*protocol, extent))
        .collect();
    let ended = machines::run_all(arch, "key servers", &systems, 0, None)?;
    let records = ended.iter().zip(&systems).map(|(ended, system)| {
        record::parse(&ended.output).with_context(|| format!("the record of `{}`", system.name))
    });
    let records = records.collect::<Result<Vec<Record>>>()?;
    let all = records.iter().flat_map(|record| &record.clients);
    let all: Vec<&Request> = all.flat_map(|client| &client.requests).collect();
    let mut accepted = verify::all(&all)?.into_iter();
    let names = system::names(extent);
    let outcomes = protocols.zip(&records).map(|(protocol, record)| {
        ensure!(
            record.clients.len() == names.len(),
            "{} of {} clients left a record",
            record.clients.len(),
            names.len()
        );
        ensure_phases(record, extent)?;
        let asked = record.clients.iter().map(|client| client.asked);
        Ok(Outcome {
            protocol: *protocol,
            extent: *extent,
            clients: names.iter().cloned().zip(asked).collect(),
            served: served(record, extent, &mut accepted),
        })
    });
    outcomes.collect()
}

/// Ticks of the study's length, in ns of the emulator's clock.
const TICK_NS: u64 = study::TICK_MS * system::FACTOR * 1_000_000;

/// Ns since the first phase began; 0 for what was before.
fn since_beginning(record: &Record, ticks: u64) -> u64 {
    let began = record.phases.first().copied().unwrap_or(0);
    ticks.saturating_sub(began) * 1_000 / record.ticks_per_us
}

/// What a client does depends on the phase, as the director tells it; what is claimed of it, on the clock.
///
/// # Errors
/// A phase did not begin when it was to.
fn ensure_phases(record: &Record, extent: &Extent) -> Result<()> {
    let wanted = extent.phases().count();
    ensure!(
        record.phases.len() == wanted,
        "{} of {wanted} phases began",
        record.phases.len()
    );
    for (number, began) in record.phases.iter().enumerate() {
        let (at, wanted) = (
            since_beginning(record, *began),
            number as u64 * extent.ticks() * TICK_NS,
        );
        ensure!(
            at.abs_diff(wanted) < TICK_NS / 4,
            "phase {} began after {} ms: it was to after {}",
            extent.first + number,
            at / 1_000_000,
            wanted / 1_000_000
        );
    }
    Ok(())
}

/// All requests of a record, in the order in which they were served.
fn served(
    record: &Record,
    extent: &Extent,
    accepted: &mut impl Iterator<Item = bool>,
) -> Vec<Served> {
    let ns = |ticks: u64| since_beginning(record, ticks);
    let all = record.clients.iter().enumerate();
    let all = all.flat_map(|(client, log)| log.requests.iter().map(move |of| (client, of)));
    let mut served: Vec<Served> = all
        .map(|(client, request)| Served {
            client,
            phase: phase(extent, ns(request.called)),
            called_ns: ns(request.called),
            signed_ns: ns(verify::signed_at(request)),
            answered_ns: ns(request.answered),
            sequence: verify::sequence(request),
            operations: 0,
            is_right: accepted.next().unwrap_or(false),
        })
        .collect();
    served.sort_by_key(|of| of.sequence);
    // An operation has ended when its client has the answer, or when the next one begins: a client need not run at once.
    let next = served.iter().skip(1).map(|next| next.signed_ns);
    let ends = served.iter().zip(next.chain([u64::MAX]));
    let operations: Vec<(u64, u64)> = ends
        .map(|(of, next)| (of.signed_ns, of.answered_ns.min(next)))
        .collect();
    for of in &mut served {
        let during = operations
            .iter()
            .filter(|(begin, end)| *begin < of.answered_ns && *end > of.called_ns);
        of.operations = during.count() as u64;
    }
    served
}

/// In which phase something was. A phase begins with a cycle; where slots begin a little before it does, what is in them belongs
/// to it.
fn phase(extent: &Extent, ns: u64) -> usize {
    let ticks = (ns + TICK_NS / 4) / TICK_NS;
    extent.first + (ticks / extent.ticks()) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system as described;
    use record::Log;

    const EXTENT: Extent = Extent {
        protocols: &[Protocol::McIpc, Protocol::Fifo, Protocol::Priority],
        first: 1,
        last: study::PHASES,
        cycles: 2,
    };

    #[test]
    fn every_system_is_a_right_description() {
        for protocol in EXTENT.protocols {
            let source = system::source(*protocol, &EXTENT);
            if let Err(report) = described::check(&source) {
                panic!("{}: {report}", source.name);
            }
        }
    }

    /// Three operations, one after the other, of three clients.
    #[test]
    fn operations_between_a_request_and_its_answer_are_counted() {
        let request = |called, signed_at, answered, sequence| {
            let mut request = Request::from_words(&[0; Request::WORDS]);
            (request.called, request.answered) = (called, answered);
            (request.signed[0], request.signed[1]) = (signed_at, sequence);
            Log {
                asked: 1,
                requests: vec![request],
            }
        };
        let record = Record {
            ticks_per_us: 1,
            phases: vec![100],
            clients: vec![
                request(115, 130, 140, 3),
                // It has its answer late.
                request(101, 110, 170, 1),
                request(101, 120, 130, 2),
            ],
        };
        let accepted = [true, false, true];
        let served = served(&record, &EXTENT, &mut accepted.into_iter());
        let told: Vec<_> = served
            .iter()
            .map(|of| (of.client, of.sequence, of.operations, of.is_right))
            .collect();
        assert_eq!(told, [(1, 1, 3, false), (2, 2, 2, true), (0, 3, 3, true)]);
        assert_eq!((served[0].called_ns, served[0].delay_ns()), (1_000, 69_000));
    }

    #[test]
    fn phases_that_begin_when_they_are_not_to_are_found() {
        let ns = |phase: u64| 1_000 + phase * EXTENT.ticks() * TICK_NS;
        let good = Record {
            ticks_per_us: 1_000,
            phases: (0..8).map(ns).collect(),
            clients: Vec::new(),
        };
        assert!(ensure_phases(&good, &EXTENT).is_ok());
        let found = |change: fn(&mut Vec<u64>)| {
            let mut bad = good.clone();
            change(&mut bad.phases);
            ensure_phases(&bad, &EXTENT).unwrap_err().to_string()
        };
        assert!(found(|phases| phases[6] -= TICK_NS / 2).contains("phase 7 began after 47000 ms"));
        assert!(found(|phases| phases[2] += TICK_NS / 2).contains("phase 3 began after 17000 ms"));
        assert!(found(|phases| _ = phases.pop()).contains("7 of 8 phases"));
    }

    #[test]
    fn a_slot_that_begins_a_little_early_belongs_to_the_phase_that_begins() {
        let ms = |ms: u64| ms * system::FACTOR * 1_000_000;
        let phases = [0, 199, 200, 1_599].map(|at| phase(&EXTENT, ms(at)));
        assert_eq!(phases, [1, 2, 2, 9]);
        assert_eq!(phase(&EXTENT, ms(187)), 1);
    }
}
