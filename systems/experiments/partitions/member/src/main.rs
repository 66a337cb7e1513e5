//! A component of the systems in which partitions are attacked, by its parameters:
//!
//! - `jobs`: an honest thread, whose results are in its `row` of the board when it has done so many jobs;
//! - `attack`: a hostile one ([`hostile`]);
//! - `report`: one that reports arrivals for another thread of its partition for good;
//! - `serve`: the server that all share, of which a handler ends requests that take too long, if there is one;
//! - `rows`: the judge, which waits until all honest ones are done, prints what they have done, and ends the system.

#![no_std]
#![no_main]

mod hostile;

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{Endpoint, Notification};
use sandglass::sys::yield_now;
use sandglass::{println, time, Environment, Message};
use sandglass_partitions::{Arrivals, Member};
use sandglass_timeouts::{Answers, Handler, TIMED_OUT};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

/// What a row of the board has: jobs, and a sum over what they computed.
const COLUMNS: u64 = 2;

fn main(env: &'static Environment) -> u8 {
    if let Some(jobs) = env.find_parameter("jobs") {
        do_jobs(env, jobs);
    } else if let Some(attack) = env.find_parameter("attack") {
        hostile::attack(env, attack);
    } else if env.find_parameter("report").is_some() {
        report(env);
    } else if env.find_parameter("serve").is_some() {
        serve(env);
    }
    judge(env)
}

fn cell(env: &Environment, row: u64, column: u64) -> &'static AtomicU64 {
    let board = env.memory("board");
    let place = row * COLUMNS + column;
    assert!((place + 1) * 8 <= board.len, "the board has room");
    // SAFETY: inside of the board, which stays mapped; all who see it use atomics.
    unsafe { AtomicU64::from_ptr(board.as_mut_ptr().add(place as usize * 8).cast()) }
}

/// Computes for so many steps.
fn compute(mut sum: u64, steps: u64) -> u64 {
    for step in 0..steps {
        sum = black_box(sum.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(step));
    }
    sum
}

/// Does its jobs, with a request in each if it has the server. If it has a row, its results are there, and it says so when it
/// has done `wanted` jobs.
fn do_jobs(env: &'static Environment, wanted: u64) -> ! {
    let (row, steps) = (env.find_parameter("row"), env.parameter("work"));
    let server: Option<Endpoint> = env.find_capability("server");
    let done: Option<Notification> = env.find_capability("done");
    let (mut jobs, mut sum) = (0, 0);
    Member::described(env).run(|| {
        sum = compute(sum, steps);
        if let Some(server) = server {
            let answer = server.call(Message::new(0, [env.parameter("request"), sum]));
            // An honest request is never ended.
            sum = sum
                .wrapping_add(answer.word(0))
                .wrapping_add(answer.label());
        }
        jobs += 1;
        if let (Some(row), Some(done)) = (row.filter(|_| jobs <= wanted), done) {
            cell(env, row, 0).store(jobs, Relaxed);
            cell(env, row, 1).store(sum, Relaxed);
            if jobs == wanted {
                done.signal();
            }
        }
    })
}

/// Reports arrivals for the thread that it has that of, for good.
fn report(env: &'static Environment) -> ! {
    let arrivals = hostile::arrivals(env).expect("somebody's arrivals are described");
    Member::described(env).run(|| loop {
        let _ = compute(0, 2_000);
        Arrivals::report(arrivals);
    })
}

/// Nothing is left of a request that ended early.
struct TellThem;

impl Answers for TellThem {
    fn rolled_back(&mut self, _caller: Option<u64>) -> Message {
        Message::new(TIMED_OUT, [])
    }
}

fn serve(env: &'static Environment) -> ! {
    // Without one, requests that are not over in time wait for their next windows.
    if let Some(ready) = env.find_capability("handler.ready") {
        let handler = Handler::new(env, "server");
        env.thread("handler")
            .prepare(move || handler.serve(ready, TellThem, |_, _| {}));
    }
    env.service("server").serve(|request| {
        let sum = compute(request.message.word(1), request.message.word(0));
        Message::new(0, [sum])
    })
}

fn judge(env: &'static Environment) -> u8 {
    let done: Notification = env.capability("done");
    let rows = env.parameter("rows");
    let mut seen = 0;
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let end = time::ticks() + tsc.us_to_ticks(env.parameter("least"));
    while seen != (1 << rows) - 1 {
        seen |= done.wait();
    }
    // Windows are compared for so long, at least.
    while time::ticks() < end {
        yield_now();
    }
    for row in 0..rows {
        let [jobs, sum] = [0, 1].map(|column| cell(env, row, column).load(Relaxed));
        println!("row {row} {jobs} {sum}");
    }
    0
}
