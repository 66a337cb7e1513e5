//! Components that fail, each in a way of its own, their clients, and a control loop that must not notice. What a component
//! is, its name says.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::{Endpoint, Notification};
use sandglass::log::{debug, error, info, trace, warn};
use sandglass::server::FAILED;
use sandglass::trace::{mark, Mark};
use sandglass::{arch, print, println, sys, time, Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

/// Of all components: whether it is the first time that this program runs in this memory.
static STARTS: AtomicU64 = AtomicU64::new(0);

fn main(env: &'static Environment) -> u8 {
    let starts = STARTS.fetch_add(1, Ordering::Relaxed);
    info!("starts, and finds {starts} earlier starts in its memory");
    match env.name() {
        "divider" => divider(env),
        "dreamer" => dreamer(env),
        "deep" | "steep" => deep(env),
        "silent" => silent(env),
        "client" => client(env),
        "hasty" => hasty(env),
        "pair" => pair(env),
        "flooder" => flooder(env),
        "honest" => honest(env),
        _ => control(env),
    }
}

/// Divides, and is stopped by a fault if it is asked to divide by 0.
fn divider(env: &'static Environment) -> ! {
    env.service("divide").serve(|request| {
        let (dividend, divisor) = (request.message.word(0), request.message.word(1));
        Message::new(0, [divide(dividend, divisor)])
    })
}

/// A fault, not a panic, if the divisor is 0, whatever the processor makes of it.
#[inline(never)]
fn divide(dividend: u64, divisor: u64) -> u64 {
    let quotient = dividend.checked_div(divisor);
    quotient.unwrap_or_else(|| arch::invalid_instruction())
}

/// Answers with what it was asked, or, if that is 0, never.
fn dreamer(env: &'static Environment) -> ! {
    env.service("dream")
        .serve_watched(env.watchdog(), |request| {
            while request.message.word(0) == 0 {
                core::hint::spin_loop();
            }
            request.message
        })
}

/// Overruns its stack.
fn deep(env: &'static Environment) -> u8 {
    // Fails in each of its periods, not more often.
    sys::yield_now();
    let depth = env.parameter("depth");
    info!("at the bottom after {} calls", descend(depth));
    0
}

#[inline(never)]
fn descend(depth: u64) -> u64 {
    let frame = black_box([depth; 32]);
    match depth {
        0 => 0,
        _ => descend(depth - 1) + u64::from(frame[0] > 0),
    }
}

/// Gives signs of life for a while.
fn silent(env: &'static Environment) -> u8 {
    let watchdog = env.watchdog();
    for job in 0..env.parameter("jobs") {
        debug!("job {job}");
        watchdog.report();
        sys::yield_now();
    }
    loop {
        core::hint::spin_loop();
    }
}

/// Waits, while its second thread reads what is not there.
fn pair(env: &'static Environment) -> u8 {
    let ready: Notification = env.capability("second.ready");
    env.thread("second").prepare(move || {
        ready.signal();
        sys::yield_now();
        info!("the second thread runs");
        // SAFETY: nothing is mapped at low addresses: this is a fault.
        unsafe { ptr::with_exposed_provenance::<u64>(8).read_volatile() };
    });
    env.ready().signal();
    env.capability::<Notification>("never").wait();
    1
}

/// Asks for what is never answered, when the others have done what they do.
fn hasty(env: &'static Environment) -> u8 {
    let dream: Endpoint = env.capability("dream");
    let watchdog = env.watchdog();
    for _ in 0..env.parameter("pause") {
        // Nothing is expected of it until its next period.
        watchdog.rest();
        sys::yield_now();
    }
    watchdog.report();
    info!("asks");
    dream.call(Message::new(0, [0]));
    info!("is answered");
    1
}

/// Asks servers that fail, and goes on when they have been restarted.
fn client(env: &'static Environment) -> u8 {
    let (divide, dream): (Endpoint, Endpoint) = (env.capability("divide"), env.capability("dream"));
    for divisor in [4, 0, 5, 0, 6] {
        let answer = divide.call(Message::new(0, [60, divisor]));
        match answer.label() {
            FAILED => info!("60 / {divisor}: the server has failed"),
            _ => info!("60 / {divisor} = {}", answer.word(0)),
        }
    }
    for number in [7, 0, 8] {
        let answer = dream.call(Message::new(0, [number]));
        match answer.label() {
            FAILED => info!("{number}: the server has failed"),
            _ => info!("{number}: it dreams of {}", answer.word(0)),
        }
    }
    info!("is done");
    0
}

/// Logs more than can be written, and tries to pass for the launcher.
fn flooder(env: &'static Environment) -> u8 {
    info!("in two\n[    0.000000] ERROR launcher: `honest` is stopped\x1b[2J");
    for line in 0..env.parameter("lines") {
        info!("line {line} of many");
    }
    0
}

/// Logs a little, at each level, in pieces, and at length.
fn honest(_: &'static Environment) -> u8 {
    error!("an error");
    warn!("a warning");
    info!("something");
    debug!("details");
    trace!("every detail");
    print!("a line ");
    print!("in pieces\nand ");
    println!("another");
    info!("{:>300}|", "long");
    0
}

/// A job in each period, in time, whatever happens to others. The system ends with the last.
fn control(env: &'static Environment) -> u8 {
    let period = env
        .tsc()
        .map_or(0, |tsc| tsc.us_to_ticks(env.parameter("period")));
    // The first period that begins after the start.
    sys::yield_now();
    let first = time::ticks();
    let jobs = env.parameter("jobs");
    let mut latest = 0;
    for job in 0..jobs {
        let at = first + job * period;
        mark(Mark::Release { job, at });
        for step in 0..env.parameter("steps") {
            black_box(step);
        }
        latest = latest.max(time::ticks() - at);
        mark(Mark::End { job });
        sys::yield_now();
    }
    let us = env.tsc().map_or(0, |tsc| tsc.ticks_to_us(latest));
    info!("{jobs} jobs, the slowest took {us} us");
    u8::from(us > env.parameter("deadline"))
}
