//! The threads of a partition beside the simulation.

use sandglass_partitions::local::{
    Grid, Kind, Local, LocalQueues, Step, Thread, ThreadEvent, ThreadId, READY_SLOTS,
};

use crate::simulation::Threads;
use sandglass_partitions::queue::Owned;

pub struct Memory {
    releases: Owned,
    ready: Owned,
    threads: Vec<Thread>,
}

impl Memory {
    pub fn new(kinds: &[Kind]) -> Self {
        Self {
            releases: Owned::new(64, kinds.len()),
            ready: Owned::new(READY_SLOTS, kinds.len()),
            threads: kinds.iter().copied().map(Thread::new).collect(),
        }
    }

    pub fn local(&mut self, grid: Grid) -> Local<'_> {
        let queues = LocalQueues {
            releases: self.releases.lend(),
            ready: self.ready.lend(),
        };
        Local::new(grid, &mut self.threads, queues).unwrap()
    }
}

fn any(random: &mut fastrand::Rng) -> Kind {
    let priority = random.u8(10..14);
    match random.u8(0..4) {
        0 => Kind::BestEffort,
        1 => Kind::Sporadic {
            priority,
            interval: random.u64(1..=64),
        },
        _ => Kind::Periodic {
            priority,
            period: random.u64(1..=64),
            offset: random.u64(0..=64) * random.u64(0..=1),
        },
    }
}

/// Steps until there is nothing left to look at.
fn settle(local: &mut Local<'_>, now: u64) -> (Option<usize>, Option<u64>) {
    loop {
        if let Step::Run { thread, wake_at } = local.step(now) {
            return (thread.map(|thread| thread.0), wake_at);
        }
    }
}

fn equal_the_simulation(configurations: u64) {
    for seed in 0..configurations {
        let mut random = fastrand::Rng::with_seed(seed);
        let kinds: Vec<Kind> = (0..random.usize(1..=8)).map(|_| any(&mut random)).collect();
        let grid = Grid {
            granule: random.u64(1..=4),
            start: random.u64(0..100),
            slice: random.u64(1..20),
        };
        let mut memory = Memory::new(&kinds);
        let mut local = memory.local(grid);
        let mut simulation = Threads::new(grid.granule, grid.start, grid.slice, &kinds);
        let mut now = grid.start;
        for look in 0..150 {
            for _ in 0..random.usize(0..3) {
                let thread = random.usize(0..kinds.len());
                if random.bool() {
                    local.note(ThreadEvent::Completed(ThreadId(thread)));
                    simulation.complete(thread);
                } else {
                    local.note(ThreadEvent::Arrived(ThreadId(thread)));
                    simulation.arrive(thread);
                }
            }
            let decided = settle(&mut local, now);
            let expected = simulation.settle(now);
            assert_eq!(
                decided, expected,
                "seed {seed}, look {look} at {now}: {kinds:?} {grid:?}"
            );
            let wake_at = decided.1.unwrap_or(now + 50);
            let ran_until = random.u64(now..=wake_at + 2);
            local.charge(ran_until - now);
            simulation.charge(ran_until - now);
            // Now and then the partition is without the processor for long.
            now = ran_until + random.u64(0..300) * u64::from(random.u8(0..8) == 0);
        }
        for thread in 0..kinds.len() {
            let missed = local.missed(ThreadId(thread));
            assert_eq!(missed, simulation.missed(thread), "seed {seed}");
        }
    }
}

#[test]
fn every_decision_equals_the_simulation() {
    equal_the_simulation(1_000);
}

#[test]
#[ignore = "ten times as long: for changes of the scheduler"]
fn every_decision_of_many_equals_the_simulation() {
    equal_the_simulation(10_000);
}

const GRID: Grid = Grid {
    granule: 1,
    start: 0,
    slice: 5,
};

/// However many threads are due, a step makes one release.
#[test]
fn a_step_makes_one_release() {
    let periodic = Kind::Periodic {
        priority: 1,
        period: 10,
        offset: 0,
    };
    let kinds = [periodic; 16];
    let mut memory = Memory::new(&kinds);
    let mut local = memory.local(GRID);
    let steps = core::iter::repeat_with(|| local.step(0));
    let again = steps.take_while(|step| *step == Step::Again).count();
    assert_eq!(again, kinds.len() - 1);
}

/// A signal is a flag: what arrives while a job runs, however often, is one job more, after the interval.
#[test]
fn arrivals_are_no_closer_than_the_interval() {
    let sporadic = Kind::Sporadic {
        priority: 1,
        interval: 20,
    };
    let mut memory = Memory::new(&[sporadic]);
    let mut local = memory.local(GRID);
    assert_eq!(settle(&mut local, 3), (None, None));
    for _ in 0..3 {
        local.note(ThreadEvent::Arrived(ThreadId(0)));
        assert_eq!(settle(&mut local, 4), (Some(0), None));
    }
    local.note(ThreadEvent::Completed(ThreadId(0)));
    assert_eq!(settle(&mut local, 6), (None, Some(24)));
    assert_eq!(settle(&mut local, 24), (Some(0), None));
    local.note(ThreadEvent::Completed(ThreadId(0)));
    assert_eq!(settle(&mut local, 50), (None, None));
}

/// A thread that does not exist changes nothing.
#[test]
fn threads_that_do_not_exist_are_ignored() {
    let mut memory = Memory::new(&[Kind::BestEffort]);
    let mut local = memory.local(GRID);
    local.note(ThreadEvent::Completed(ThreadId(1)));
    local.note(ThreadEvent::Arrived(ThreadId(usize::MAX)));
    assert_eq!(settle(&mut local, 0), (Some(0), None));
}
