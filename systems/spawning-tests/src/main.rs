//! One program in all roles of a system that tests threads made at run time: each component's name says
//! which. The conductor runs the tests, and ends the system.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::format;
use core::ptr;

use sandglass::cap::{Endpoint, Notification, SchedContext};
use sandglass::testing::{Suite, TestResult};
use sandglass::{ensure, ensure_eq, Environment, Message, Received};
use sandglass_sharing::spawning::{self, Meter};

sandglass::entry!(main, stack = 0x8000, heap = 0x8000);

/// Labels of requests to the hall.
mod request {
    /// Answer the badge, the sum of the words, and how many threads were made.
    pub const SUM: u64 = 1;
    /// Answer when told to.
    pub const HOLD: u64 = 2;
    /// Fault.
    pub const FAULT: u64 = 3;
    /// Panic: it is the end of the hall.
    pub const PANIC: u64 = 4;
}

/// Nothing is mapped there.
const FORBIDDEN: u64 = 0xdead_0000;
/// Words of a long message, and their sum.
const WORDS: [u64; 100] = {
    let mut words = [0; 100];
    let mut i = 0;
    while i < 100 {
        words[i] = i as u64;
        i += 1;
    }
    words
};
const SUM: u64 = 4950;
/// The conductor's badge.
const BADGE: u64 = 7;

fn main(env: &'static Environment) -> u8 {
    match env.name() {
        "conductor" => conduct(env),
        "hall" => hall(env),
        "first" | "second" | "third" => client(env, Message::new(request::HOLD, [])),
        "queued" => client(env, Message::new(request::SUM, [])),
        "faulty" => client(env, Message::new(request::FAULT, [])),
        "fatal" => client(env, Message::new(request::PANIC, [])),
        other => panic!("no role is called {other}"),
    }
}

fn hall(env: &'static Environment) -> ! {
    static METER: Meter = Meter::new();
    // What a new thread would get ready on is not free yet: it cannot be made, and nothing is left.
    let context: SchedContext = env.capability("self.context");
    assert!(env.spawning().make(0, context, never, &()).is_err());
    let go: Notification = env.capability("go");
    spawning::serve(env, "hall", &METER, move |request: Received| {
        match request.message.label() {
            request::HOLD => {
                go.wait();
            }
            // SAFETY: nothing is mapped there: it is a fault.
            request::FAULT => unsafe {
                ptr::read_volatile(FORBIDDEN as *const u8);
            },
            request::PANIC => panic!("somebody wanted it"),
            _ => {}
        }
        let message = request.message;
        let sum = (0..message.len()).map(|i| message.word(i)).sum();
        Message::new(0, [request.badge, sum, METER.made().into()])
    })
}

extern "C" fn never(_: &'static ()) -> ! {
    panic!("a thread that could not be made runs")
}

/// Waits to be told, asks, and tells; again and again.
fn client(env: &Environment, request: Message) -> ! {
    let name = format!("start.{}", env.name());
    let start: Notification = env.capability(&name);
    let hall: Endpoint = env.capability("hall");
    loop {
        start.wait();
        hall.call(request);
        env.capability::<Notification>("done").signal();
    }
}

fn conduct(env: &Environment) -> u8 {
    let mut suite = Suite::new();
    suite.run("the_first_request_gets_a_thread", || asked(env, 1));
    suite.run("so_does_one_that_finds_it_busy", || {
        start(env, "first");
        asked(env, 2)
    });
    suite.run("at_the_limit_the_spawner_serves", || {
        start(env, "second");
        asked(env, 2)
    });
    suite.run("and_then_clients_queue", || queue(env));
    suite.run("threads_that_are_done_serve_again", || {
        for _ in 0..3 {
            asked(env, 2)?;
        }
        Ok(())
    });
    suite.run("a_fault_stops_one_thread_only", || {
        start(env, "faulty");
        asked(env, 2)
    });
    suite.run("the_end_of_a_component_is_that_of_its_threads", || {
        start(env, "fatal");
        start(env, "queued");
        ensure_eq!(env.capability::<Notification>("done").poll(), 0);
        Ok(())
    });
    suite.finish()
}

/// Lets a client ask: it is above, and asks at once.
fn start(env: &Environment, client: &str) {
    let name = format!("start.{client}");
    env.capability::<Notification>(&name).signal();
}

/// A long message is answered, by a hall of so many threads.
fn asked(env: &Environment, made: u64) -> TestResult {
    let hall: Endpoint = env.capability("hall");
    let answer = hall.call(Message::long(request::SUM, &WORDS));
    let words = [answer.word(0), answer.word(1), answer.word(2)];
    ensure_eq!(words, [BADGE, SUM, made]);
    Ok(())
}

/// The spawner is busy too: who asks now waits until somebody is done.
fn queue(env: &Environment) -> TestResult {
    let (go, done): (Notification, Notification) = (env.capability("go"), env.capability("done"));
    start(env, "third");
    start(env, "queued");
    ensure_eq!(done.poll(), 0);
    // Whoever is told first takes the next request before the others are told.
    go.signal();
    let first = done.poll();
    ensure!(first & 8 != 0, "{first:#x}: somebody still waits");
    go.signal();
    go.signal();
    ensure_eq!(first | done.poll(), 0b1111);
    Ok(())
}
