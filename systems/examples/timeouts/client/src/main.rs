//! Has primes counted, and says what comes of it. If it is told that its request ended early, it
//! continues from there; if it is told of a failure, it gives up. One that controls another, `gone`,
//! suspends that one while the server works for it. `stray` calls no server, and never ends.

#![no_std]
#![no_main]

use sandglass::cap::{Endpoint, Notification, Tcb};
use sandglass::sys::yield_now;
use sandglass::{println, time, Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

const DONE: u64 = 0x51;
const PARTIAL: u64 = 0x52;

fn main(env: &'static Environment) -> u8 {
    if let Some(victim) = env.find_capability::<Tcb>("gone.tcb") {
        // Until its next budget: meanwhile, the other calls.
        yield_now();
        return u8::from(victim.suspend().is_err());
    }
    if env.name() == "stray" {
        // As above: in the middle of another's request.
        yield_now();
        loop {
            time::pass();
        }
    }
    let outcome = count(env.capability("primes"), env.parameter("below"));
    // With a whole budget, so that nothing comes between the parts of the line.
    yield_now();
    let name = env.name();
    match outcome {
        Ok((primes, 1)) => println!("{name}: {primes} primes, in one request"),
        Ok((primes, requests)) => println!("{name}: {primes} primes, in {requests} requests"),
        Err(label) => println!("{name}: gives up: the answer is {label:#x}"),
    }
    let done: Notification = env.capability("done");
    match env.find_parameter("awaits") {
        None => done.signal(),
        Some(awaited) => {
            let mut seen = 0;
            while seen != awaited {
                seen |= done.wait();
            }
        }
    }
    0
}

/// The primes below `end`, and the requests that it took; or the label of a failure.
fn count(server: Endpoint, end: u64) -> Result<(u64, u64), u64> {
    let (mut next, mut primes) = (0, 0);
    for ticket in 1.. {
        let answer = server.call(Message::new(0, [ticket, next, end]));
        let is_mine = answer.word(0) == ticket;
        match answer.label() {
            DONE | PARTIAL if is_mine => {
                next = answer.word(1);
                primes += answer.word(2);
            }
            // Nothing was noted of this request.
            PARTIAL => {}
            label => return Err(label),
        }
        if next == end {
            return Ok((primes, ticket));
        }
    }
    unreachable!("no client asks 2^64 times")
}
