//! A component of the example, by its parameters: a thread that does `jobs` and counts how long they took altogether; one
//! that works for good; one that makes requests for good; the server; or the judge, which waits until the jobs are done,
//! prints what became of them and ends the system, with status 0 if none was missing.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{Endpoint, Notification};
use sandglass::time;
use sandglass::{println, Environment, Message};
use sandglass_partitions::Member;

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

/// Rows of the board: ticks from the first job of each thread to its last one.
const ROWS: u64 = 2;

fn main(env: &'static Environment) -> u8 {
    if let Some(jobs) = env.find_parameter("jobs") {
        do_jobs(env, jobs);
    } else if let Some(request) = env.find_parameter("request") {
        ask(env, request);
    } else if env.find_parameter("serve").is_some() {
        serve(env);
    } else if env.find_parameter("spin").is_some() {
        Member::described(env).run(|| loop {
            time::pass();
        });
    }
    judge(env)
}

fn row(env: &Environment, row: u64) -> &'static AtomicU64 {
    let board = env.memory("board");
    assert!(
        (row + 1) * 8 <= board.len,
        "the board has room for row {row}"
    );
    // SAFETY: inside of the board, which stays mapped; all who see it use atomics.
    unsafe { AtomicU64::from_ptr(board.as_mut_ptr().add(row as usize * 8).cast()) }
}

fn work(steps: u64) {
    time::work(steps);
}

/// Does its jobs, and says so when it has done `wanted` of them.
fn do_jobs(env: &'static Environment, wanted: u64) -> ! {
    let (row, steps) = (row(env, env.parameter("row")), env.parameter("work"));
    let done: Notification = env.capability("done");
    let (mut jobs, mut first) = (0, 0);
    Member::described(env).run(|| {
        if jobs == 0 {
            first = time::ticks();
        }
        work(steps);
        jobs += 1;
        if jobs == wanted {
            row.store(time::ticks() - first, Relaxed);
            done.signal();
        }
    })
}

/// Makes one request after the other, of so many steps each.
fn ask(env: &'static Environment, request: u64) -> ! {
    let server: Endpoint = env.capability("adder");
    Member::described(env).run(|| loop {
        server.call(Message::new(0, [request]));
    })
}

fn serve(env: &'static Environment) -> ! {
    env.service("adder").serve(|received| {
        work(received.message.word(0));
        Message::EMPTY
    })
}

fn judge(env: &'static Environment) -> u8 {
    let done: Notification = env.capability("done");
    let all = (1 << ROWS) - 1;
    let mut seen = 0;
    while seen != all {
        seen |= done.wait();
    }
    let tsc = env.tsc().expect("the kernel reports the clock's frequency");
    let mut is_right = true;
    for (number, [jobs, period]) in [["jobs-0", "period-0"], ["jobs-1", "period-1"]]
        .into_iter()
        .enumerate()
    {
        let took = row(env, number as u64).load(Relaxed);
        let (jobs, period) = (env.parameter(jobs), tsc.us_to_ticks(env.parameter(period)));
        // From the first job to the last one: all periods but one, and less than one more or fewer.
        let periods = took.div_ceil(period);
        is_right &= took.abs_diff((jobs - 1) * period) < period;
        println!("row {number}: {jobs} jobs in {periods} periods");
    }
    u8::from(!is_right)
}
