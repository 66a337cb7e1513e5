//! What requests cost: a component is what its name says.

#![no_std]
#![no_main]

extern crate alloc;

mod turns;

use core::hint::black_box;

use sandglass::cap::{Endpoint, Notification};
use sandglass::{println, time, Environment, Message};
use sandglass_mc_ipc::client::Gate;
use sandglass_mc_ipc::driver::{Job, WORDS};

sandglass::entry!(main, stack = 0x8000, heap = 0x20_0000);

/// Requests that are not counted, and those that are: together within the clients' allowance.
const WARM_UP: usize = 4;
const SAMPLES: usize = 8;
/// Instructions of a long operation.
const LONG: u64 = 20_000;

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "keys" => keys(env),
        "plain" => plain(env),
        "slow" => slow(env),
        _ => client(env),
    }
}

/// The first word says how long it takes. A long operation says that it has begun.
fn keys(env: &'static Environment) -> u8 {
    let asked: Notification = env.capability("asked");
    let operation = move |job: &Job, answer: &mut [u64; WORDS]| {
        if job.words[0] != 0 {
            asked.signal();
        }
        spend(job.words[0]);
        answer[0] = 1;
        1
    };
    let Err(error) = sandglass_mc_ipc::component::serve(env, operation);
    panic!("cannot have a gate: {error}");
}

/// Instructions of a step of [`spend`].
const STEP: u64 = 4;

fn spend(instructions: u64) {
    for step in 0..instructions / STEP {
        black_box(step);
    }
}

fn plain(env: &'static Environment) -> u8 {
    env.service("call").serve(|_| Message::new(0, [1]))
}

/// Its requests take long.
fn slow(env: &'static Environment) -> u8 {
    let gate = Gate::described(env, "sign");
    let go: Notification = env.capability("go");
    loop {
        go.wait();
        gate.call(0, &[LONG], &mut [0]).expect("an answer");
    }
}

/// Ticks of `SAMPLES` runs: least, mean and most.
fn report(name: &str, mut run: impl FnMut() -> u64) {
    for _ in 0..WARM_UP {
        run();
    }
    let (mut least, mut sum, mut most) = (u64::MAX, 0, 0);
    for _ in 0..SAMPLES {
        let ticks = run();
        least = least.min(ticks);
        sum += ticks;
        most = most.max(ticks);
    }
    println!("cost {name} {least} {} {most}", sum / SAMPLES as u64);
}

fn timed(run: impl FnOnce()) -> u64 {
    let start = time::ticks();
    run();
    time::ticks() - start
}

fn client(env: &'static Environment) -> u8 {
    let gate = Gate::described(env, "sign");
    let call: Endpoint = env.capability("call");
    report("nothing", || timed(|| {}));
    report("call", || {
        timed(|| {
            call.call(Message::new(0, [0]));
        })
    });
    let plain = Gate::described(env, "call");
    // What a client of a gate does beside the system call.
    report("call-as-to-a-gate", || {
        timed(|| {
            plain.call(0, &[0], &mut [0]).expect("an answer");
        })
    });
    report("request", || {
        timed(|| {
            gate.call(0, &[0], &mut [0]).expect("an answer");
        })
    });
    // Another client's request is in service: it is finished on this one's time first.
    let go: Notification = env.capability("go");
    let asked: Notification = env.capability("asked");
    report("request-behind-another", || {
        go.signal();
        asked.wait();
        timed(|| {
            gate.call(0, &[0], &mut [0]).expect("an answer");
        })
    });
    println!("long {}", timed(|| spend(LONG)));
    turns::report_job();
    turns::report();
    0
}
