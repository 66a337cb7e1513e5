//! A periodic task that counts its jobs, and those that were late; or, if it has a parameter `below`, one
//! that has primes counted by a server until it has them all, however many budgets that takes. The
//! component `judge` waits until all tasks have done what they should, prints the counts and ends the
//! system: with status 0 if no job was late.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{Endpoint, Notification};
use sandglass::{println, time, Environment, Message};
use sandglass_edf::Task;

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

fn main(env: &'static Environment) -> u8 {
    match env.find_parameter("row") {
        Some(row) => match env.find_parameter("below") {
            Some(end) => counting(env, row, end),
            None => task(env, row),
        },
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
        time::work(work);
        late.fetch_add(u64::from(time::ticks() > job.deadline), Relaxed);
        if jobs.fetch_add(1, Relaxed) + 1 == wanted {
            done.signal();
        }
    })
}

/// Counts the primes below `end`, once.
fn counting(env: &'static Environment, number: u64, end: u64) -> ! {
    let Row { jobs, .. } = row(env, number);
    let task = Task::described(env);
    task.next();
    let (primes, requests) = count(env.capability("primes"), end);
    jobs.fetch_add(1, Relaxed);
    println!("{}: {primes} primes, in {requests} requests", env.name());
    env.capability::<Notification>("done").signal();
    task.run(|_| {})
}

/// The primes below `end`, and the requests that it took. A request that ran out of time is answered
/// with how far it came.
fn count(server: Endpoint, end: u64) -> (u64, u64) {
    const DONE: u64 = 0x51;
    const PARTIAL: u64 = 0x52;
    let (mut next, mut primes) = (0, 0);
    for ticket in 1.. {
        let answer = server.call(Message::new(0, [ticket, next, end]));
        assert!(
            matches!(answer.label(), DONE | PARTIAL),
            "the answer is not lost: {answer:?}"
        );
        if answer.word(0) == ticket {
            next = answer.word(1);
            primes += answer.word(2);
        }
        if next == end {
            return (primes, ticket);
        }
    }
    unreachable!("no task asks 2^64 times")
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
