//! The partition scheduler (`sandglass-partitions`): rogues are the threads of all partitions but one. They say that they
//! have jobs done which they never had, report arrivals as often as they like, for whom they like, and name threads and
//! partitions that do not exist; and the scheduler looks late. In the last partition an honest periodic thread does its jobs,
//! beside a rogue of best effort.
//!
//! - Whose window it is does not depend on any thread: it is what another scheduler says that never hears of one.
//! - When the honest thread has a job and its partition the processor, it runs, and never without a job.
//! - Of its releases, each is a job or counted as missed; none is lost, and none is made up.
//! - A decision settles after as many steps as there are releases and arrivals to look at.

use sandglass_partitions::cyclic::{Cyclic, Placed, Schedule};
use sandglass_partitions::local::{Grid, Kind, Local, LocalQueues, Thread, READY_SLOTS};
use sandglass_partitions::periodic::{Order, Parameters, Periodic, Queues, Reservation};
use sandglass_partitions::queue::{Owned, LEAST_SLOTS};
use sandglass_partitions::{
    Decision, Event, Hierarchy, PartitionId, ThreadEvent, ThreadId, Windows,
};

use crate::promise::promise;
use crate::{Held, Journal, Source};

pub const WHAT: &str = "partitions, and what their threads say while time passes";

const WINDOW: &str = "a window";
const UNUSED: &str = "a window without a job";
const NOBODY: &str = "nobody's window";
const OVERRUN: &str = "an overrun";
const UNKNOWN: &str = "somebody who does not exist";
const JOB: &str = "an honest job";
const MISSED: &str = "an honest release missed";
const PREEMPTED: &str = "a look while an honest job runs";

pub const SITUATIONS: &[&str] = &[
    WINDOW, UNUSED, NOBODY, OVERRUN, UNKNOWN, JOB, MISSED, PREEMPTED,
];

const PARTITIONS: usize = 3;
/// The last partition's first thread.
const HONEST: (PartitionId, ThreadId) = (PartitionId(PARTITIONS - 1), ThreadId(0));
const THREADS: usize = 3;
/// Ticks that the scheduler looks late at most.
const LATE: u64 = 12;

/// The memory of windows, of whichever form.
struct OfWindows {
    releases: Owned,
    ready: Owned,
    reservations: Vec<Reservation>,
    debts: Vec<u64>,
}

impl OfWindows {
    fn new(described: &Described) -> Self {
        let parameters = match described {
            Described::Periodic(_, parameters) => parameters.as_slice(),
            Described::Cyclic(..) => &[],
        };
        Self {
            releases: Owned::new(LEAST_SLOTS, PARTITIONS),
            ready: Owned::new(256, PARTITIONS),
            reservations: parameters.iter().copied().map(Reservation::new).collect(),
            debts: vec![0; PARTITIONS],
        }
    }
}

/// The memory of a partition's threads.
struct OfThreads {
    releases: Owned,
    ready: Owned,
    threads: Vec<Thread>,
    grid: Grid,
}

impl OfThreads {
    fn new(source: &mut Source, partition: usize, period: u64) -> Self {
        let mut kinds: Vec<Kind> = (0..THREADS).map(|_| kind(source)).collect();
        if partition == HONEST.0 .0 {
            kinds.fill(Kind::BestEffort);
            kinds[HONEST.1 .0] = Kind::Periodic {
                priority: 255,
                period,
                offset: 0,
            };
        }
        Self {
            releases: Owned::new(LEAST_SLOTS, THREADS),
            ready: Owned::new(READY_SLOTS, THREADS),
            threads: kinds.into_iter().map(Thread::new).collect(),
            grid: Grid {
                granule: 1,
                start: 0,
                slice: source.number(1..=10),
            },
        }
    }

    fn local(&mut self) -> Local<'_> {
        let queues = LocalQueues {
            releases: self.releases.lend(),
            ready: self.ready.lend(),
        };
        let local = Local::new(self.grid, &mut self.threads, queues);
        local.expect("the threads are in range")
    }
}

/// The windows of a system; two with the same description are two of them.
#[derive(Clone, Debug)]
enum Described {
    Periodic(Order, Vec<Parameters>),
    Cyclic(u64, Vec<Placed>),
}

impl Described {
    fn new(source: &mut Source) -> Self {
        let form = source.index(3);
        if form == 2 {
            let mut end = 0;
            let windows = (0..source.number(1..=5)).map(|_| {
                let offset = end + source.number(0..=10);
                let length = source.number(1..=20);
                end = offset + length;
                Placed {
                    partition: PartitionId(source.index(PARTITIONS)),
                    offset,
                    length,
                }
            });
            let windows: Vec<_> = windows.collect();
            return Self::Cyclic(end + source.number(0..=10), windows);
        }
        let parameters = (0..PARTITIONS).map(|_| {
            let period = source.number(2..=40);
            let deadline = source.number(1..=period);
            Parameters {
                period,
                deadline,
                offset: 0,
                budget: source.number(1..=deadline),
                priority: source.number(0..=3) as u8,
            }
        });
        let order = [Order::EarliestDeadline, Order::FixedPriority][form];
        Self::Periodic(order, parameters.collect())
    }

    fn windows<'m>(
        &self,
        memory: &'m mut OfWindows,
        schedules: &'m [Schedule<'m>],
    ) -> Windows<'m> {
        match self {
            Self::Periodic(order, _) => {
                let queues = Queues {
                    releases: memory.releases.lend(),
                    ready: memory.ready.lend(),
                };
                let periodic = Periodic::new(*order, 1, 0, &mut memory.reservations, queues);
                Windows::Periodic(periodic.expect("the parameters are in range"))
            }
            Self::Cyclic(..) => {
                let cyclic = Cyclic::new(schedules, &mut memory.debts, 0);
                Windows::Cyclic(cyclic.expect("the windows are in order"))
            }
        }
    }

    /// Of a cyclic form.
    fn schedule(&self) -> Option<Schedule<'_>> {
        match self {
            Self::Periodic(..) => None,
            Self::Cyclic(frame, windows) => Some(Schedule {
                frame: *frame,
                windows,
            }),
        }
    }
}

struct World<'m> {
    hierarchy: Hierarchy<'m>,
    /// Never hears of a thread.
    undisturbed: Windows<'m>,
    /// Of the honest thread.
    period: u64,
    /// It has a job, and has had so many.
    has_job: bool,
    jobs: u64,
    missed: u64,
    now: u64,
}

pub fn play(source: &mut Source, journal: &mut Journal) -> Held {
    let described = Described::new(source);
    let period = source.number(1..=60);
    journal.note(format_args!(
        "{described:?}, an honest thread every {period}"
    ));
    let schedules: Vec<_> = described.schedule().into_iter().collect();
    let [mut memory, mut other] = [(); 2].map(|()| OfWindows::new(&described));
    let partitions = 0..PARTITIONS;
    let threads = partitions.map(|partition| OfThreads::new(source, partition, period));
    let mut threads: Vec<_> = threads.collect();
    let mut locals: Vec<_> = threads.iter_mut().map(OfThreads::local).collect();
    let windows = described.windows(&mut memory, &schedules);
    let mut world = World {
        hierarchy: Hierarchy::new(windows, &mut locals),
        undisturbed: described.windows(&mut other, &schedules),
        period,
        has_job: false,
        jobs: 0,
        missed: 0,
        now: 0,
    };
    let mut event = Event::Timer;
    while !source.is_empty() {
        let decision = world.decide(event, journal)?;
        event = world.next(source, &decision, journal);
    }
    Ok(())
}

fn kind(source: &mut Source) -> Kind {
    let priority = source.number(0..=3) as u8;
    match source.index(3) {
        0 => Kind::Periodic {
            priority,
            period: source.number(1..=60),
            offset: source.number(0..=60),
        },
        1 => Kind::Sporadic {
            priority,
            interval: source.number(1..=60),
        },
        _ => Kind::BestEffort,
    }
}

impl World<'_> {
    /// Decides until it is settled, and checks what was promised.
    fn decide(&mut self, event: Event, journal: &mut Journal) -> Result<Decision, crate::Broken> {
        let mut event = event;
        // Each thread may have a release for each tick at the worst, and an arrival.
        let most = (self.now + 2) * THREADS as u64 + 2;
        for _ in 0..most {
            let decision = self.hierarchy.decide(event, self.now);
            let expected = self.undisturbed.decide(self.now);
            promise!(
                decision.window == expected.window,
                "it is the window of {:?}, not {:?}",
                expected.window,
                decision.window
            );
            if decision.overrun.is_some() {
                journal.saw(OVERRUN);
            }
            event = Event::Timer;
            if decision.wake_at.is_none_or(|at| at > self.now) {
                journal.step(format_args!("at {}: {decision:?}", self.now));
                self.check(&decision, journal)?;
                return Ok(decision);
            }
        }
        Err(crate::Broken(format!("it does not settle in {most} steps")))
    }

    fn check(&mut self, decision: &Decision, journal: &mut Journal) -> Held {
        let Some(window) = decision.window else {
            journal.saw(NOBODY);
            promise!(decision.thread.is_none(), "a thread runs in nobody's window");
            return Ok(());
        };
        journal.saw(if decision.thread.is_some() { WINDOW } else { UNUSED });
        promise!(
            decision.thread.is_none_or(|thread| thread.0 < THREADS),
            "{:?} does not exist",
            decision.thread
        );
        if window.partition != HONEST.0 {
            return Ok(());
        }
        // Releases until now that were neither jobs nor missed before: the first is a job, if there is none.
        let released = self.now / self.period + 1;
        let new = released - self.jobs - self.missed;
        if new > 0 && !self.has_job {
            self.has_job = true;
            self.jobs += 1;
            journal.saw(JOB);
        }
        self.missed = released - self.jobs;
        if self.missed > 0 {
            journal.saw(MISSED);
        }
        promise!(
            (decision.thread == Some(HONEST.1)) == self.has_job,
            "the honest thread has {} job, and {:?} runs",
            if self.has_job { "a" } else { "no" },
            decision.thread
        );
        Ok(())
    }

    /// Lets time pass until something happens.
    fn next(&mut self, source: &mut Source, decision: &Decision, journal: &mut Journal) -> Event {
        let wake_at = decision.wake_at.unwrap_or(self.now + 1);
        let honest_runs =
            self.has_job && decision.window.is_some_and(|of| of.partition == HONEST.0);
        match source.number(0..=9) {
            0..=3 => {
                let late = source.number(0..=LATE) * source.number(0..=1);
                self.now = wake_at + late;
                if honest_runs {
                    journal.saw(PREEMPTED);
                }
                Event::Timer
            }
            4..=5 if honest_runs => {
                self.now = source.number(self.now..=wake_at);
                self.has_job = false;
                Event::Thread(HONEST.0, ThreadEvent::Completed(HONEST.1))
            }
            _ => {
                self.now = source.number(self.now..=wake_at);
                self.rogue(source, journal)
            }
        }
    }

    /// What a rogue says: anything about anybody but the honest thread, whose name it has no capability to.
    fn rogue(&self, source: &mut Source, journal: &mut Journal) -> Event {
        let partition = PartitionId(source.index(PARTITIONS + 1));
        let mut thread = ThreadId(source.index(THREADS + 1));
        if (partition, thread) == HONEST {
            thread = ThreadId(1);
        }
        if partition.0 == PARTITIONS || thread.0 == THREADS {
            journal.saw(UNKNOWN);
        }
        let event = source.one_of(&[ThreadEvent::Completed(thread), ThreadEvent::Arrived(thread)]);
        Event::Thread(partition, event)
    }
}
