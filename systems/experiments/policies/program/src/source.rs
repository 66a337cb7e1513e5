//! Where jobs come from: the policy that a task finds.

use alloc::format;

use sandglass::cap::Endpoint;
use sandglass::Environment;
use sandglass_allocations::Kind;
use sandglass_edf::Task;
use sandglass_partitions::Member;
use sandglass_tasks::releases::{Missed, Releases};
use sandglass_time_manager::{Denial, Reservation, TimeManager};
use sandglass_timers::Timer;

use crate::board::Board;

/// All tasks that are released by timers have made them by then, µs after the first of them.
const LEAD_US: u64 = 20_000;
/// A name in all descriptions that have a time manager.
const MANAGER: &str = "time";

pub enum Source {
    /// A timer of the service: fixed priorities, and modes.
    Timer(Timer, Releases),
    Edf(Task),
    Partition(Member),
    Turns(TimeManager),
}

impl Source {
    /// What the description says of this component.
    ///
    /// # Panics
    /// It says nothing, or the policy refuses what it says.
    pub fn described(env: &Environment, board: &Board) -> Self {
        if env.find_capability::<Endpoint>(Task::SCHEDULER).is_some() {
            return Self::Edf(Task::described(env));
        }
        if env.find_capability::<Endpoint>("partition").is_some() {
            return Self::Partition(Member::described(env));
        }
        if env.find_capability::<Endpoint>(MANAGER).is_some() {
            return Self::Turns(attached(env).expect("the description gives it what it reserves"));
        }
        let tsc = env.tsc().expect("the kernel reports the clock's frequency");
        let period = tsc.us_to_ticks(env.parameter("period"));
        let first = board.origin(tsc.us_to_ticks(LEAD_US));
        let timer = Timer::described(env, "tick");
        timer
            .every(first, period)
            .expect("the period is the description's");
        Self::Timer(timer, Releases::new(first, period, Missed::CatchUp))
    }

    /// Says that the job is done, if there was one, and waits for the next: its release, or 0 if the policy does not say
    /// it.
    ///
    /// # Panics
    /// The reservation was taken back.
    pub fn next(&mut self) -> u64 {
        match self {
            Self::Timer(timer, releases) => {
                let release = releases.next(0).at;
                while sandglass::time::ticks() < release {
                    timer.wait();
                }
                release
            }
            Self::Edf(task) => task.next().release,
            Self::Partition(member) => {
                member.next();
                0
            }
            Self::Turns(time) => time.next().expect("nobody takes it back").release,
        }
    }

    /// Asks whoever schedules for something, as often as it can, and never does a job again.
    pub fn flood(mut self, env: &Environment) -> ! {
        match self {
            Self::Timer(timer, _) => loop {
                // What becomes of it does not matter.
                let _ = timer.at(u64::MAX / 2);
                let _ = timer.cancel();
            },
            Self::Partition(_) => {
                let arrivals = sandglass_partitions::Arrivals::described(
                    env,
                    &format!("{}-helper", env.name()),
                );
                loop {
                    arrivals.report();
                }
            }
            Self::Turns(time) => loop {
                let _ = time.capability();
            },
            // There is no call but this one, and it waits.
            Self::Edf(_) => loop {
                let _ = self.next();
            },
        }
    }
}

/// Reserves what the parameters say, and attaches this thread to it.
fn attached(env: &Environment) -> Result<TimeManager, Denial> {
    let time = TimeManager::described(env, MANAGER);
    let capability = time.capability()?;
    let allocation = time.allocation(capability, 0)?;
    let period_us = env.parameter("period");
    let reservation = time.reserve(
        capability,
        allocation,
        Reservation {
            budget_us: env.parameter("reserved"),
            period_us,
            deadline_us: period_us,
            kind: Kind::Hard,
        },
    )?;
    time.attach(capability, reservation)?;
    Ok(time)
}
