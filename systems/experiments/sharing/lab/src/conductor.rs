//! Releases the tasks at chosen moments, round by round, and prints what happened.
//!
//! Lines are `probe,LEAST,MEAN,MOST`; `spawned,THREADS,MOST` if servers made threads, with the ticks of the
//! most expensive one; and a line for each round: offsets of the releases (high, middle, low, lowest;
//! empty if not released), responses, ticks of requests, preemptions, and whether the watchdog bit.

use alloc::format;
use alloc::string::String;
use core::sync::atomic::Ordering::Relaxed;

use sandglass::cap::Notification;
use sandglass::timer::Timer;
use sandglass::{println, time, Environment};

use crate::board::{Board, TASKS};

/// Calls that are measured.
const PROBES: u64 = 16;
/// Release of each task, µs after the round's start; `None`: not in this round.
type Releases = [Option<u64>; TASKS.len()];

struct Conductor {
    board: &'static Board,
    timer: Timer,
    releases: [Notification; TASKS.len()],
    ended: Notification,
    deadline_us: u64,
    /// Idle time between two rounds, µs, after which budgets are full again.
    pause_us: u64,
}

pub fn conduct(env: &'static Environment) -> u8 {
    let conductor = Conductor {
        board: Board::of(env),
        timer: Timer::device(env).expect("the timer is given"),
        releases: TASKS.map(|task| env.capability(&format!("release.{task}"))),
        ended: env.capability("ended"),
        deadline_us: env.parameter("deadline"),
        pause_us: env.parameter("pause"),
    };
    // Everybody has found out how fast he works before it counts.
    let _ = conductor.run([Some(0); TASKS.len()]);
    conductor.probe();
    for task in 0..TASKS.len() {
        let mut alone = Releases::default();
        alone[task] = Some(0);
        conductor.round(alone);
    }
    let step = env.parameter("step") as usize;
    if env.parameter("pair") != 0 {
        for high in (40..=240).step_by(step.max(40)) {
            conductor.round([Some(high), None, None, Some(0)]);
        }
        conductor.print_spawned();
        return 0;
    }
    // The lowest is in the middle of its request when the low one comes, and so on.
    for low in [30, 130, 230] {
        for high in (20..=640).step_by(step) {
            for middle in [high - 10, high + 30] {
                conductor.round([Some(high), Some(middle), Some(low), Some(0)]);
            }
        }
    }
    conductor.print_spawned();
    0
}

impl Conductor {
    /// What a request costs that asks for nothing.
    fn probe(&self) {
        self.board.probes.store(PROBES, Relaxed);
        let _ = self.run([Some(0), None, None, None]);
        self.board.probes.store(0, Relaxed);
        let [least, sum, most] = [0, 1, 2].map(|i| self.board.probed[i].load(Relaxed));
        println!("probe,{least},{},{most}", sum / PROBES);
    }

    /// Prints what was made while it ran, if anything was.
    fn print_spawned(&self) {
        let board = self.board;
        let threads: u64 = board.spawned.iter().map(|made| made.load(Relaxed)).sum();
        let costs = board.spawn_ticks.iter().map(|ticks| ticks.load(Relaxed));
        if threads > 0 {
            println!("spawned,{threads},{}", costs.max().unwrap_or(0));
        }
    }

    fn round(&self, releases: Releases) {
        let has_bitten = self.run(releases);
        let board = self.board;
        let text = |values: [Option<u64>; TASKS.len()]| {
            let mut line = String::new();
            for value in values {
                line.push(',');
                if let Some(value) = value {
                    line += &format!("{value}");
                }
            }
            line
        };
        let of = |task: usize, value: u64| releases[task].map(|_| value);
        let responses = core::array::from_fn(|task| {
            let released = board.released[task].load(Relaxed);
            of(task, board.done[task].load(Relaxed) - released)
        });
        let requests = core::array::from_fn(|task| of(task, board.requests[task].load(Relaxed)));
        println!(
            "round{}{}{},{},{}",
            text(releases),
            text(responses),
            text(requests),
            board.preemptions.load(Relaxed),
            u64::from(has_bitten)
        );
    }

    /// Runs a round to its end; returns whether the high task was not done at its deadline. The Pathfinder's
    /// watchdog then reset the machine; this one lets the round end, to see how long it takes.
    fn run(&self, releases: Releases) -> bool {
        self.board.clear();
        let hpet = self.timer.clock();
        let start = hpet.now() + hpet.us_to_ticks(self.pause_us);
        let mut has_bitten = false;
        let mut order: [usize; TASKS.len()] = core::array::from_fn(|task| task);
        order.sort_by_key(|&task| releases[task]);
        for task in order {
            let Some(offset) = releases[task] else {
                continue;
            };
            self.wait_until(start + hpet.us_to_ticks(offset));
            self.board.released[task].store(time::ticks(), Relaxed);
            self.releases[task].signal();
        }
        if let Some(offset) = releases[0] {
            self.wait_until(start + hpet.us_to_ticks(offset + self.deadline_us));
            has_bitten = self.board.done[0].load(Relaxed) == 0;
        }
        self.collect(releases);
        has_bitten
    }

    fn wait_until(&self, deadline: u64) {
        self.timer
            .wait_until(deadline)
            .expect("the timer is this component's");
    }

    /// Waits for all that were released.
    fn collect(&self, releases: Releases) {
        let mut missing = (0..TASKS.len())
            .filter(|&task| releases[task].is_some())
            .map(|task| 1 << task)
            .sum::<u64>();
        while missing != 0 {
            missing &= !self.ended.wait();
        }
    }
}
