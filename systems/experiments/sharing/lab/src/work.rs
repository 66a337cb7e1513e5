//! Work: instructions that are executed, however long that takes.

use core::hint::black_box;
use core::sync::atomic::Ordering::Relaxed;

use sandglass::{time, Environment};

use crate::board::Board;

/// An interruption of at least so many µs is another's work, and a preemption. The conductor's
/// interrupts and what the proxy does are shorter.
const PREEMPTION_US: u64 = 15;

/// Somebody who works.
#[derive(Clone)]
pub struct Worker {
    board: &'static Board,
    /// Rounds of the loop in a µs of undisturbed work.
    rounds_per_us: u64,
    preemption_ticks: u64,
}

impl Worker {
    /// Finds out how fast it works. The shortest of several attempts is the undisturbed one.
    pub fn new(env: &Environment) -> Self {
        const ROUNDS: u64 = 10_000;
        let tsc = env.tsc().expect("the kernel reports the clock's frequency");
        let mut worker = Self {
            board: Board::of(env),
            rounds_per_us: 0,
            preemption_ticks: tsc.us_to_ticks(PREEMPTION_US),
        };
        let attempt = || {
            let start = time::ticks();
            worker.rounds(ROUNDS);
            time::ticks() - start
        };
        let ticks = (0..5).map(|_| attempt()).min().unwrap_or(1);
        worker.rounds_per_us = ROUNDS * tsc.us_to_ticks(1) / ticks.max(1);
        worker
    }

    /// Works for `us` µs of its own time, and notes how often it was preempted.
    pub fn work(&self, us: u64) {
        let preemptions = self.rounds(us * self.rounds_per_us);
        self.board.preemptions.fetch_add(preemptions, Relaxed);
    }

    /// Returns the preemptions.
    #[inline(never)]
    fn rounds(&self, count: u64) -> u64 {
        let mut preemptions = 0;
        let mut last = time::ticks();
        for _ in 0..count {
            let now = black_box(time::ticks());
            if now - last > self.preemption_ticks {
                preemptions += 1;
            }
            last = now;
        }
        preemptions
    }
}
