//! A task, the logger, or the helper of a partition, by the parameters. A task works in each of its jobs, under whichever
//! policy its description names; or it is hostile, after some honest jobs.

#![no_std]
#![no_main]

extern crate alloc;

mod board;
mod chunk;
mod logger;
mod source;

use sandglass::Environment;
use sandglass_partitions::Member;

use board::{Board, TASKS};
use source::Source;

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

/// Jobs that a hostile task does before it attacks, so that all runs begin alike.
const HONEST_JOBS: u64 = 2;
/// Every so many jobs, and not the first ones, a task with a parameter `more` has more to do.
const RARELY: u64 = 4;

/// What a task does in place of its jobs: the parameter `hostile`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conduct {
    Honest,
    /// It never ends a job.
    Spins,
    /// It asks whoever schedules, as often as it can.
    Floods,
    /// It does jobs of twice its reservation.
    Overruns,
}

impl Conduct {
    fn of(env: &Environment) -> Self {
        match env.find_parameter("hostile") {
            None | Some(0) => Self::Honest,
            Some(1) => Self::Spins,
            Some(2) => Self::Floods,
            Some(3) => Self::Overruns,
            Some(other) => panic!("`hostile = {other}` means nothing; 0 to 3 do"),
        }
    }
}

fn main(env: &'static Environment) {
    if env.find_parameter("task").is_some() {
        task(env);
    }
    if env.find_parameter("helps").is_some() {
        // Of best effort, in its partition: something to report arrivals for.
        Member::described(env).run(|| {});
    }
    logger::run(env);
}

fn task(env: &'static Environment) -> ! {
    let board = Board::of(env);
    let row = &board.rows[env.parameter("task") as usize % TASKS];
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let chunk = chunk::calibrate();
    let chunks = |us| tsc.us_to_ticks(us) / chunk;
    let (work, reserved) = (
        chunks(env.parameter("work")),
        chunks(env.parameter("reserved")),
    );
    let more = env.find_parameter("more").map_or(work, chunks);
    let conduct = Conduct::of(env);
    let mut source = Source::described(env, board);
    for number in 0u64.. {
        let release = source.next();
        let begun = board.begin();
        match conduct {
            Conduct::Spins if number >= HONEST_JOBS => chunk::execute(&row.chunks, u64::MAX),
            Conduct::Floods if number >= HONEST_JOBS => source.flood(env),
            Conduct::Overruns if number >= HONEST_JOBS => {
                chunk::execute(&row.chunks, 2 * reserved);
            }
            _ => {
                let is_rare = number % RARELY == RARELY - 1;
                chunk::execute(&row.chunks, if is_rare { more } else { work });
            }
        }
        row.note(release, begun);
    }
    unreachable!("no task has 2^64 jobs")
}
