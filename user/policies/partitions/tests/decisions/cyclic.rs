//! Windows by table beside a list of all windows, and what is promised of them.

use sandglass_partitions::cyclic::{Cyclic, NoSuchSchedule, Placed, Schedule, ScheduleId};
use sandglass_partitions::{PartitionId, Refusal, Turn};

/// Partition, offset, length.
type Table = (u64, Vec<(usize, u64, u64)>);

fn placed(windows: &[(usize, u64, u64)]) -> Vec<Placed> {
    let placed = |&(partition, offset, length): &(usize, u64, u64)| Placed {
        partition: PartitionId(partition),
        offset,
        length,
    };
    windows.iter().map(placed).collect()
}

/// Partition, number of its frame, end.
fn window(turn: Turn) -> Option<(usize, u64, u64)> {
    let window = turn.window?;
    Some((window.partition.0, window.number, window.until))
}

/// What is written into the future: windows of frames that have begun, one after the other.
struct Simulation<'t> {
    tables: &'t [Table],
    requested: usize,
    /// Number, beginning and schedule of the last frame that has begun.
    frame: (u64, u64, usize),
    /// Those to come in it: partition, beginning, length.
    to_come: Vec<(usize, u64, u64)>,
    balances: Vec<i64>,
    /// Partition, end.
    running: Option<(usize, u64)>,
    free_from: u64,
}

impl<'t> Simulation<'t> {
    fn new(tables: &'t [Table], partitions: usize, start: u64) -> Self {
        let mut simulation = Self {
            tables,
            requested: 0,
            frame: (0, start, 0),
            to_come: Vec::new(),
            balances: vec![0; partitions],
            running: None,
            free_from: start,
        };
        simulation.write_frame();
        simulation
    }

    fn write_frame(&mut self) {
        let (_, start, schedule) = self.frame;
        let windows = self.tables[schedule].1.iter();
        self.to_come = windows
            .map(|&(partition, offset, length)| (partition, start + offset, length))
            .collect();
    }

    /// The window, the overrun, and when to look again.
    #[allow(clippy::type_complexity)]
    fn decide(&mut self, now: u64) -> (Option<(usize, u64, u64)>, Option<(usize, u64)>, u64) {
        let mut overrun = None;
        if let Some((partition, end)) = self.running.filter(|&(_, end)| end <= now) {
            self.running = None;
            self.free_from = now;
            self.balances[partition] -= (now - end) as i64;
            overrun = (now > end).then(|| (partition, now - end));
        }
        while self.running.is_none() {
            if self.to_come.is_empty() {
                let boundary = self.frame.1 + self.tables[self.frame.2].0;
                if boundary.max(self.free_from) > now && boundary > now {
                    return (None, overrun, boundary);
                }
                self.frame = (self.frame.0 + 1, boundary, self.requested);
                self.write_frame();
            }
            let (partition, begin, length) = self.to_come[0];
            let begin = begin.max(self.free_from);
            if begin > now {
                return (None, overrun, begin);
            }
            self.to_come.remove(0);
            // What it has is its length and its balance, which is never above 0.
            let has = (length as i64 + self.balances[partition]).max(0) as u64;
            self.balances[partition] += (length - has) as i64;
            let end = begin + has;
            if end > now {
                self.running = Some((partition, end));
            } else {
                self.free_from = end;
            }
        }
        let (partition, end) = self.running.unwrap();
        (Some((partition, self.frame.0, end)), overrun, end)
    }
}

const PARTITIONS: usize = 4;

fn any_table(random: &mut fastrand::Rng) -> Table {
    let mut end = 0;
    let count = random.usize(1..=6);
    let windows = (0..count).map(|_| {
        // Half of the windows follow at once.
        let offset = end + random.u64(0..20) * random.u64(0..=1);
        let length = random.u64(1..30);
        end = offset + length;
        (random.usize(0..PARTITIONS), offset, length)
    });
    let windows: Vec<_> = windows.collect();
    (end + random.u64(0..20) * random.u64(0..=1), windows)
}

fn equal_the_simulation(configurations: u64) {
    for seed in 0..configurations {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.usize(1..=3);
        let tables: Vec<Table> = (0..count).map(|_| any_table(&mut random)).collect();
        let windows: Vec<Vec<Placed>> = tables.iter().map(|table| placed(&table.1)).collect();
        let frames = tables.iter().map(|table| table.0);
        let schedules: Vec<_> = frames
            .zip(&windows)
            .map(|(frame, windows)| Schedule { frame, windows })
            .collect();
        let start = random.u64(0..1000);
        let mut debts = [0; PARTITIONS];
        let mut cyclic = Cyclic::new(&schedules, &mut debts, start).unwrap();
        let mut simulation = Simulation::new(&tables, PARTITIONS, start);
        let mut now = start;
        for look in 0..200 {
            if random.u8(0..20) == 0 {
                simulation.requested = random.usize(0..count);
                let schedule = ScheduleId(simulation.requested);
                cyclic.switch_to(schedule).unwrap();
            }
            let turn = cyclic.decide(now);
            let overrun = turn.overrun.map(|of| (of.partition.0, of.ticks));
            let decided = (window(turn), overrun, turn.wake_at.unwrap());
            let expected = simulation.decide(now);
            assert_eq!(
                decided, expected,
                "seed {seed}, look {look} at {now}: {tables:?}"
            );
            now = match random.u8(0..16) {
                0 => now,
                1 | 2 => random.u64(now..=decided.2),
                3 | 4 => decided.2 + random.u64(0..4),
                5 => decided.2 + random.u64(0..100) * random.u64(0..=1),
                _ => decided.2,
            };
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

/// A frame without gaps, looked at late by up to 3 ticks: the next frame begins at most that much late, also after
/// 100,000 of them, since every overrun is paid for.
#[test]
fn frames_do_not_drift() {
    let windows = placed(&[(0, 0, 10), (1, 10, 10), (0, 20, 10), (2, 30, 10)]);
    let schedule = Schedule {
        frame: 40,
        windows: &windows,
    };
    let schedules = [schedule];
    let mut debts = [0; 3];
    let mut cyclic = Cyclic::new(&schedules, &mut debts, 0).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut now = 0;
    while now < 4_000_000 {
        let turn = cyclic.decide(now);
        let window = turn.window.unwrap();
        // Each of three partitions has overrun once, and has not paid for it yet.
        let late = now.saturating_sub(window.number * 40);
        assert!(late <= 40 + 3 * 3, "frame {} at {now}", window.number);
        now = window.until + random.u64(0..=3);
    }
}

/// Two partitions without gaps. The first overruns: the second begins late and has its whole length, and the first pays.
#[test]
fn an_overrun_shortens_nobody_elses_window() {
    let windows = placed(&[(0, 0, 10), (1, 10, 10)]);
    let schedules = [Schedule {
        frame: 20,
        windows: &windows,
    }];
    let mut debts = [0; 2];
    let mut cyclic = Cyclic::new(&schedules, &mut debts, 0).unwrap();
    assert_eq!(window(cyclic.decide(0)), Some((0, 0, 10)));
    assert_eq!(window(cyclic.decide(14)), Some((1, 0, 24)));
    assert_eq!(cyclic.debt(PartitionId(0)), 4);
    assert_eq!(window(cyclic.decide(24)), Some((0, 1, 30)));
    assert_eq!(window(cyclic.decide(30)), Some((1, 1, 40)), "on time again");
}

#[test]
fn a_schedule_takes_effect_when_the_next_frame_begins() {
    let tables = [placed(&[(0, 0, 10), (1, 10, 5)]), placed(&[(2, 0, 7)])];
    let [first, second] = &tables;
    let schedules = [(20, first), (7, second)].map(|(frame, windows)| Schedule { frame, windows });
    let mut debts = [0; 3];
    let mut cyclic = Cyclic::new(&schedules, &mut debts, 0).unwrap();
    assert_eq!(window(cyclic.decide(0)), Some((0, 0, 10)));
    assert_eq!(cyclic.switch_to(ScheduleId(2)), Err(NoSuchSchedule));
    cyclic.switch_to(ScheduleId(1)).unwrap();
    assert_eq!(window(cyclic.decide(10)), Some((1, 0, 15)));
    assert_eq!((window(cyclic.decide(15)), cyclic.schedule().0), (None, 0));
    assert_eq!(window(cyclic.decide(20)), Some((2, 1, 27)));
    cyclic.switch_to(ScheduleId(0)).unwrap();
    // Of several requests the last one counts.
    cyclic.switch_to(ScheduleId(1)).unwrap();
    assert_eq!(window(cyclic.decide(27)), Some((2, 2, 34)));
}

#[test]
fn what_is_no_table_is_refused() {
    let refused = |frame, windows: &[(usize, u64, u64)]| -> Option<Refusal> {
        let windows = placed(windows);
        let schedules = [Schedule {
            frame,
            windows: &windows,
        }];
        Cyclic::new(&schedules, &mut [0; 2], 0).err()
    };
    let schedule = 0;
    let misplaced = |window, earliest| {
        Some(Refusal::Placed {
            schedule,
            window,
            earliest,
            latest: 20,
        })
    };
    assert_eq!(refused(20, &[(0, 0, 10), (1, 10, 10)]), None);
    assert_eq!(refused(20, &[]), Some(Refusal::EmptyFrame { schedule }));
    assert_eq!(refused(20, &[(0, 0, 10), (1, 9, 5)]), misplaced(1, 10));
    assert_eq!(refused(20, &[(0, 0, 21)]), misplaced(0, 0));
    assert_eq!(refused(20, &[(0, 5, 0)]), misplaced(0, 0));
    let nobody = Refusal::NoSuchPartition {
        schedule,
        window: 0,
    };
    assert_eq!(refused(20, &[(2, 0, 5)]), Some(nobody));
    assert_eq!(
        Cyclic::new(&[], &mut [], 0).err(),
        Some(Refusal::NoSchedule)
    );
}
