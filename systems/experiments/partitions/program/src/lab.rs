//! Runs a set of partitions with the library's scheduler and driver.

use alloc::vec::Vec;

use sandglass::time::{self, Tsc};
use sandglass::timer::Timer;
use sandglass::SetupError;
use sandglass_partitions::driver::{Driver, Parts};
use sandglass_partitions::hierarchy::{Hierarchy, Windows};
use sandglass_partitions::local::{Grid, Kind, Local, LocalQueues, Thread, READY_SLOTS};
use sandglass_partitions::periodic::{Order, Parameters, Periodic, Queues, Reservation};
use sandglass_partitions::queue::{Owned, LEAST_SLOTS};
use sandglass_timers::clock::Clock;

use crate::crew::{Conduct, Crew};
use crate::looks;
use crate::recorder::Recorder;
use crate::service::Service;

/// What is scheduled.
pub struct Set<'a> {
    /// In units; budgets in ticks.
    pub parameters: &'a [Parameters],
    /// Of each partition.
    pub threads: usize,
    /// Ticks.
    pub unit: u64,
    /// What a job of a periodic thread takes, in ticks.
    pub job: u64,
    /// What the first partition does in place of its jobs.
    pub conduct: Option<Conduct>,
}

pub struct Lab {
    pub crew: Crew,
    pub service: Service,
    pub timer: Timer,
    pub tsc: Tsc,
}

/// How long threads may take to be ready, µs.
const GATHERING_US: u64 = 10_000;

/// How long before the start of a set it is made, µs.
const LEAD_US: u64 = 20_000;

impl Lab {
    /// Schedules the set for so many ticks.
    pub fn run(&self, set: &Set<'_>, length: u64) -> Result<Recorder, SetupError> {
        let partitions = set.parameters.len();
        looks::set_job(set.job);
        let bound_us = match set.conduct {
            Some(Conduct::Asks { bound_us }) => Some(bound_us),
            _ => None,
        };
        let mut driver = Driver::new(Parts {
            endpoint: self.crew.endpoint,
            clock: Clock::own(self.timer, self.tsc),
            partitions: self.crew.partitions(partitions, set.threads, set.conduct)?,
            replies: self.crew.replies[..=partitions * set.threads]
                .iter()
                .copied()
                .collect(),
            servers: bound_us.map(|bound_us| self.service.servers(bound_us)),
        });
        driver.gather(self.tsc.us_to_ticks(GATHERING_US))?;
        let mut memories: Vec<_> = set.parameters.iter().map(|of| Own::new(set, of)).collect();
        let mut global = Global::new(set.parameters);
        // Later than all that is still to be made.
        let start = time::ticks() + self.tsc.us_to_ticks(LEAD_US);
        let mut locals: Vec<_> = memories.iter_mut().map(|own| own.local(start)).collect();
        let windows = Windows::Periodic(global.periodic(set.unit, start));
        let mut hierarchy = Hierarchy::new(windows, &mut locals);
        let mut recorder = Recorder::new(set, start, length);
        driver.run(&mut hierarchy, &mut recorder)?;
        self.crew.stop(partitions * set.threads)?;
        Ok(recorder)
    }
}

/// The memory of the partitions' scheduler.
struct Global {
    releases: Owned,
    ready: Owned,
    reservations: Vec<Reservation>,
}

impl Global {
    fn new(parameters: &[Parameters]) -> Self {
        let longest = parameters.iter().map(|of| of.period).max().unwrap_or(1);
        let slots = (longest as usize).next_power_of_two().max(LEAST_SLOTS);
        Self {
            releases: Owned::new(slots, parameters.len()),
            ready: Owned::new(slots, parameters.len()),
            reservations: parameters.iter().copied().map(Reservation::new).collect(),
        }
    }

    fn periodic(&mut self, unit: u64, start: u64) -> Periodic<'_> {
        let queues = Queues {
            releases: self.releases.lend(),
            ready: self.ready.lend(),
        };
        let order = Order::EarliestDeadline;
        let periodic = Periodic::new(order, unit, start, &mut self.reservations, queues);
        periodic.expect("the sets of this experiment are in range")
    }
}

/// The memory of the threads of a partition: the last one is of best effort, the others are periodic, one released with
/// each release of the partition.
struct Own {
    releases: Owned,
    ready: Owned,
    threads: Vec<Thread>,
    grid: Grid,
}

impl Own {
    fn new(set: &Set<'_>, of: &Parameters) -> Self {
        let kind = |index: usize| match index + 1 == set.threads {
            true => Kind::BestEffort,
            false => Kind::Periodic {
                priority: index as u8,
                period: set.threads as u64,
                offset: index as u64,
            },
        };
        Self {
            releases: Owned::new(LEAST_SLOTS, set.threads),
            ready: Owned::new(READY_SLOTS, set.threads),
            threads: (0..set.threads)
                .map(|index| Thread::new(kind(index)))
                .collect(),
            grid: Grid {
                granule: of.period * set.unit,
                start: 0,
                slice: set.unit,
            },
        }
    }

    fn local(&mut self, start: u64) -> Local<'_> {
        let queues = LocalQueues {
            releases: self.releases.lend(),
            ready: self.ready.lend(),
        };
        let grid = Grid { start, ..self.grid };
        let local = Local::new(grid, &mut self.threads, queues);
        local.expect("the sets of this experiment are in range")
    }
}
