//! Two tasks, one on each core, that share a passive server. The periodic one, on core 1, releases the
//! one on core 0, which also asks an active server on core 1. What a component is, its name says.

#![no_std]
#![no_main]

use sandglass::cap::{Endpoint, Notification};
use sandglass::trace::{mark, Mark};
use sandglass::{println, sys, time, Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x1000);

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "tally" => tally(env),
        "oracle" => oracle(env),
        "judge" => judge(env),
        "periodic" => periodic(env),
        _ => sporadic(env),
    }
}

/// Requests with this badge, and with those above, are not counted: it is the judge's.
const COUNTED: u64 = 3;

/// Works for so many steps.
fn work(steps: u64) {
    time::work(steps);
}

/// Counts the requests of each client whose badge is below [`COUNTED`], wherever it runs, and answers with their sum. What a
/// client says does not matter, so that none can spoil what the others count.
fn tally(env: &'static Environment) -> ! {
    let steps = env.parameter("steps");
    let mut sum: u64 = 0;
    env.service("count").serve(|request| {
        work(steps);
        sum += u64::from(request.badge < COUNTED);
        Message::new(0, [sum])
    })
}

/// Answers on its own time, on its own core.
fn oracle(env: &'static Environment) -> ! {
    let steps = env.parameter("steps");
    env.service("ask").serve(|request| {
        work(steps);
        Message::new(0, [2 * request.message.word(0)])
    })
}

/// A job in each period: it releases the other one's, works, and has that counted.
fn periodic(env: &'static Environment) -> u8 {
    let (count, next): (Endpoint, Notification) = (env.capability("count"), env.capability("turn"));
    for job in 0..env.parameter("jobs") {
        let at = time::ticks();
        mark(Mark::Release { job, at });
        next.signal();
        work(env.parameter("steps"));
        count.call(Message::EMPTY);
        mark(Mark::End { job });
        // Until the next period.
        sys::yield_now();
    }
    env.capability::<Notification>("done").signal();
    0
}

/// A job whenever the other task begins one; several while it is late are one.
fn sporadic(env: &'static Environment) -> ! {
    let (count, ask): (Endpoint, Endpoint) = (env.capability("count"), env.capability("ask"));
    let turn: Notification = env.capability("turn");
    for job in 0.. {
        turn.wait();
        work(env.parameter("steps"));
        count.call(Message::EMPTY);
        assert_eq!(ask.call(Message::new(0, [job])).word(0), 2 * job);
    }
    unreachable!("nobody has 2^64 jobs")
}

/// When the periodic task is done, none of its jobs may be lost.
fn judge(env: &'static Environment) -> u8 {
    env.capability::<Notification>("done").wait();
    let count: Endpoint = env.capability("count");
    let sum = count.call(Message::EMPTY).word(0);
    println!("{sum} jobs on two cores");
    u8::from(sum < env.parameter("jobs"))
}
