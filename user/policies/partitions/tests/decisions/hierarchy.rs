//! Both levels together.

use sandglass_partitions::cyclic::{Cyclic, Placed, Schedule};
use sandglass_partitions::local::{Grid, Kind};
use sandglass_partitions::{Event, Hierarchy, PartitionId, ThreadEvent, ThreadId, Windows};

use crate::local::Memory;

const KINDS: [[Kind; 3]; 2] = [[
    Kind::Periodic {
        priority: 3,
        period: 7,
        offset: 0,
    },
    Kind::Sporadic {
        priority: 2,
        interval: 5,
    },
    Kind::BestEffort,
]; 2];
const GRID: Grid = Grid {
    granule: 1,
    start: 0,
    slice: 2,
};
const WINDOWS: [Placed; 3] = [placed(0, 0, 10), placed(1, 10, 15), placed(0, 30, 10)];
const FRAME: u64 = 45;

const fn placed(partition: usize, offset: u64, length: u64) -> Placed {
    Placed {
        partition: PartitionId(partition),
        offset,
        length,
    }
}

/// Windows, from when and until when they lasted, while events happen as `random` says with this probability.
fn windows(seed: u64, probability: f32) -> Vec<(usize, u64, u64)> {
    let mut random = fastrand::Rng::with_seed(seed);
    let schedules = [Schedule {
        frame: FRAME,
        windows: &WINDOWS,
    }];
    let mut debts = [0; 2];
    let cyclic = Cyclic::new(&schedules, &mut debts, 0).unwrap();
    let mut memories = KINDS.map(|kinds| Memory::new(&kinds));
    let mut locals = memories.each_mut().map(|memory| memory.local(GRID));
    let mut hierarchy = Hierarchy::new(Windows::Cyclic(cyclic), &mut locals);
    let mut seen: Vec<(usize, u64, u64)> = Vec::new();
    let mut now = 0;
    let mut event = Event::Timer;
    while now < 20 * FRAME {
        let decision = hierarchy.decide(event, now);
        if let Some(window) = decision.window {
            let span = (window.partition.0, now, window.until);
            match seen.last() {
                Some(&(partition, _, end)) if (partition, end) == (span.0, span.2) => {}
                _ => seen.push(span),
            }
        }
        let at = decision.wake_at.unwrap();
        if at > now && random.f32() < probability {
            now = random.u64(now..at);
            let thread = ThreadId(random.usize(0..4));
            let event_of = [ThreadEvent::Completed, ThreadEvent::Arrived][random.usize(0..2)];
            event = Event::Thread(PartitionId(random.usize(0..3)), event_of(thread));
        } else {
            now = at;
            event = Event::Timer;
        }
    }
    seen
}

/// Whatever threads do, every window begins and ends when it does without them.
#[test]
fn no_thread_moves_a_window() {
    let undisturbed = windows(0, 0.0);
    assert_eq!(undisturbed.len(), 60);
    for seed in 0..50 {
        assert_eq!(windows(seed, 0.7), undisturbed, "seed {seed}");
    }
}
