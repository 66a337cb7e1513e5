//! A periodic task. It computes for so many steps as the parameter `steps` says, and `more` steps
//! in every eighth job; or, if it is a client of the server `primes`, it has primes counted, up to
//! the number that they say.

#![no_std]
#![no_main]

use core::convert::Infallible;

use sandglass::cap::Endpoint;
use sandglass::{time, Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

/// Every so many jobs there is more to do.
const RARELY: u64 = 8;

fn main(env: &'static Environment) -> Infallible {
    let server: Option<Endpoint> = env.find_capability("primes");
    let steps = env.parameter("steps");
    let more = env.find_parameter("more").unwrap_or(steps);
    releases::run(env, |job| {
        let amount = if job % RARELY == RARELY - 1 {
            more
        } else {
            steps
        };
        match server {
            Some(server) => count(server, job, amount),
            None => compute(amount),
        }
    })
}

/// Some 1000 instructions a step.
fn compute(steps: u64) {
    time::work(250 * steps);
}

/// Has the primes below `end` counted, in as many requests as it takes.
fn count(server: Endpoint, job: u64, end: u64) {
    let mut next = 0;
    while next < end {
        // Only this job's progress counts.
        let ticket = job % 256;
        let answer = server.call(Message::new(0, [ticket, next, end]));
        if answer.word(0) == ticket {
            next = answer.word(1).max(next);
        }
    }
}
