//! A task on core 0, beside attackers of the lowest priority that do one long operation of the
//! kernel over and over on all other cores, and share nothing with it: for `sandglass bounds
//! --cores N`, and a test.
//!
//! The task ([`victim`]) must end every job within its period, and pay no more for the kernel than where
//! nobody attacks. For each attack ([`attacks`]) there is a window between two marks ([`marks`]), in which
//! a plugin of the emulator measures how long cores wait for their turns in the kernel; a line `waiting
//! NAME` is printed for each, in the order of the marks.

#![no_std]
#![no_main]

extern crate alloc;

mod attacks;
mod crew;
mod deep;
mod isa;
mod marks;
mod victim;

use alloc::format;

use sandglass::firmware::Files;
use sandglass::testing::{Suite, TestResult};
use sandglass::{ensure, println, BootInfo, SetupError};

use attacks::Attack;
use crew::Crew;
use victim::Outcome;

sandglass::entry!(main, stack = 0x2_0000, heap = 0x20_0000);

/// Jobs of a window, if nobody asks for another number. With fewer, what the emulator executes for other cores in the
/// middle of an event weighs too much.
const JOBS: u64 = 8;

/// What the task may pay for the kernel beside an attack, µs for each job, besides what it pays where
/// nobody attacks: some 6 µs.
///
/// Not nothing: a core that has waited for its turn executes some more instructions, which are its own,
/// in each of 20 system calls; and virtual time passes for all cores at once, so that the task pays for
/// what others execute when the emulator goes on with them in the middle of an event. For that reason what
/// it pays for its user code is not compared: no kernel could change it.
const MOST_EXTRA_US: u64 = 4;

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut crew = Crew::new(boot)?;
    let jobs = Files::open(&mut crew.process)?.number("opt/sandglass/jobs")?;
    let jobs = jobs.unwrap_or(JOBS).min(victim::MOST_JOBS);
    let mut suite = Suite::titled("waiting");
    let mut undisturbed = 0;
    for attack in Attack::ALL {
        let name = format!("beside_attackers_that_{}", attack.name());
        suite.run(&name, || {
            let outcome = run(&mut crew, attack, jobs)?;
            if attack == Attack::Rest {
                undisturbed = outcome.kernel_us();
            }
            judge(&outcome, undisturbed)
        });
    }
    Ok(suite.finish())
}

/// The task beside `attack`.
fn run(crew: &mut Crew, attack: Attack, jobs: u64) -> Result<Outcome, SetupError> {
    println!("bounds: waiting beside attackers that {}", attack.name());
    for core in crew.attacked_cores() {
        attack.prepare(crew, core)?;
    }
    let outcome = victim::run(crew, jobs)?;
    println!("waiting {}", attack.name());
    println!(
        "{} of {jobs} jobs in time, the longest after {} us; paid {} us, for the kernel {} us; attacks {:?}",
        outcome.in_time,
        outcome.worst_us,
        outcome.paid_us,
        outcome.kernel_us(),
        outcome.rounds,
    );
    Ok(outcome)
}

fn judge(outcome: &Outcome, undisturbed: u64) -> TestResult {
    ensure!(
        outcome.rounds.iter().all(|&rounds| rounds > 0),
        "an attacker attacks less than once: {:?}",
        outcome.rounds
    );
    if !isa::JUDGES_TIMES {
        return Ok(());
    }
    ensure!(
        outcome.in_time == outcome.jobs,
        "{} of {} jobs end within their periods, the longest after {} us",
        outcome.in_time,
        outcome.jobs,
        outcome.worst_us
    );
    ensure!(
        outcome.kernel_us() <= undisturbed + MOST_EXTRA_US * outcome.jobs,
        "it pays {} us for the kernel, and {undisturbed} us where nobody attacks",
        outcome.kernel_us()
    );
    Ok(())
}
