//! A periodic task that counts its jobs, and those that were late. The component `judge` waits until
//! all tasks have done as many as they should, prints the counts and ends the system: with status 0
//! if no job was late.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::Notification;
use sandglass::{println, time, Environment};
use sandglass_edf::Task;

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

fn main(env: &'static Environment) -> u8 {
    match env.find_parameter("row") {
        Some(row) => task(env, row),
        None => judge(env),
    }
}

/// What is counted of a task.
struct Row<'b> {
    jobs: &'b AtomicU64,
    late: &'b AtomicU64,
}

/// Row `row` of the board that tasks and judge share.
fn row(env: &Environment, row: u64) -> Row<'static> {
    let board = env.memory("board");
    assert!(
        (row + 1) * 16 <= board.len,
        "the board has room for row {row}"
    );
    let word = |index: u64| {
        // SAFETY: inside of the board, which stays mapped; all who see it use atomics.
        unsafe { AtomicU64::from_ptr(board.as_mut_ptr().add(index as usize * 8).cast()) }
    };
    Row {
        jobs: word(row * 2),
        late: word(row * 2 + 1),
    }
}

fn task(env: &'static Environment, number: u64) -> ! {
    let Row { jobs, late } = row(env, number);
    let work = env.parameter("work");
    let wanted = env.parameter("jobs");
    let done: Notification = env.capability("done");
    Task::described(env).run(|job| {
        for step in 0..work {
            black_box(step);
        }
        late.fetch_add(u64::from(time::ticks() > job.deadline), Relaxed);
        if jobs.fetch_add(1, Relaxed) + 1 == wanted {
            done.signal();
        }
    })
}

fn judge(env: &'static Environment) -> u8 {
    let done: Notification = env.capability("done");
    let all = env.parameter("all");
    let mut seen = 0;
    while seen != all {
        seen |= done.wait();
    }
    let mut total = 0;
    for number in 0..u64::from(all.count_ones()) {
        let Row { jobs, late } = row(env, number);
        let (jobs, late) = (jobs.load(Relaxed), late.load(Relaxed));
        println!("task {number}: {jobs} jobs, {late} late");
        total += late;
    }
    u8::from(total > 0)
}
