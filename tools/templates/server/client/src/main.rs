//! Has the primes below `below` counted. If a request ended early, it continues from there. The
//! component that has a notification `done` to wait for waits for the other one, and ends the system.

#![no_std]
#![no_main]

use primes::{DONE, PARTIAL};
use sandglass::cap::{Endpoint, Notification};
use sandglass::sys::yield_now;
use sandglass::{println, Environment, Message};

sandglass::entry!(main, stack = 0x4000, heap = 0x4000);

fn main(env: &'static Environment) -> u8 {
    let (primes, requests) = count(env.capability("primes"), env.parameter("below"));
    // With a whole budget, so that the line is printed at once.
    yield_now();
    println!("{}: {primes} primes, in {requests} requests", env.name());
    let done: Notification = env.capability("done");
    match env.find_parameter("last") {
        Some(_) => drop(done.wait()),
        None => done.signal(),
    }
    0
}

/// The primes below `end`, and the requests that it took.
fn count(server: Endpoint, end: u64) -> (u64, u64) {
    let (mut next, mut primes, mut requests) = (0, 0, 0);
    while next < end {
        requests += 1;
        // So that what is said of an earlier request is not taken for this one's.
        let ticket = requests % 256;
        let answer = server.call(Message::new(0, [ticket, next, end]));
        assert!([DONE, PARTIAL].contains(&answer.label()), "{answer:?}");
        if answer.word(0) == ticket {
            next = answer.word(1);
            primes += answer.word(2);
        }
    }
    (primes, requests)
}
