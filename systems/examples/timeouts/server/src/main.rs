//! Counts primes for its clients, on their time, in steps. After each step it notes how far it is,
//! in one word: so at any instruction it can be stopped, and what was noted last is true.
//!
//! A request is a ticket, the first number, and the number to stop before. The answer is
//! [`DONE`] or [`PARTIAL`], the request's ticket, the number that comes next, and the primes up to
//! there.

#![no_std]
#![no_main]

extern crate alloc;

use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::Notification;
use sandglass::{println, Environment, Message, Received};
use sandglass_timeouts::{Action, Answers, Event, Handler};

sandglass::entry!(main, stack = 0x8000, heap = 0x8000);

// Apart from the labels of the kernel's errors.
const DONE: u64 = 0x51;
const PARTIAL: u64 = 0x52;
/// Numbers between two notes.
const STEP: u64 = 100;

/// How far the current request is.
static NOTED: AtomicU64 = AtomicU64::new(0);

/// What a word says: for whom the server works, and how far it is.
#[derive(Clone, Copy, Default)]
struct Progress {
    caller: u64,
    ticket: u64,
    next: u64,
    primes: u64,
}

impl Progress {
    const BITS: [u32; 4] = [8, 8, 24, 24];

    fn note(self) {
        let fields = [self.caller, self.ticket, self.next, self.primes];
        let word = fields
            .into_iter()
            .zip(Self::BITS)
            .fold(0, |word, (field, bits)| {
                word << bits | field & ((1 << bits) - 1)
            });
        NOTED.store(word, Ordering::Relaxed);
    }

    fn noted() -> Self {
        let mut word = NOTED.load(Ordering::Relaxed);
        let mut take = |bits: u32| {
            let field = word & ((1 << bits) - 1);
            word >>= bits;
            field
        };
        let primes = take(Self::BITS[3]);
        let next = take(Self::BITS[2]);
        let ticket = take(Self::BITS[1]);
        Self {
            caller: take(Self::BITS[0]),
            ticket,
            next,
            primes,
        }
    }

    const fn answer(self, label: u64) -> Message {
        Message::new(label, [self.ticket, self.next, self.primes])
    }
}

fn main(env: &'static Environment) -> Infallible {
    let handler = Handler::new(env, "counter");
    let ready = env.capability("handler.ready");
    let stopped: Option<Notification> = env.find_capability("done");
    env.thread("handler").prepare(move || {
        handler.serve(ready, Clean, |handler, event| {
            report(handler, event);
            if let Event::Timeout {
                action: Action::Killed,
                ..
            } = event
            {
                if let Some(stopped) = stopped {
                    stopped.signal();
                }
            }
        })
    });
    env.service("primes").serve(|request| count(&request))
}

/// Counts the primes of a request.
fn count(request: &Received) -> Message {
    let end = request.message.word(2);
    let mut progress = Progress {
        caller: request.badge,
        ticket: request.message.word(0),
        next: request.message.word(1),
        primes: 0,
    };
    while progress.next < end {
        progress.note();
        let stop = end.min(progress.next + STEP);
        let primes = (progress.next..stop).filter(|&number| is_prime(number));
        progress.primes += primes.count() as u64;
        progress.next = stop;
    }
    progress.answer(DONE)
}

/// By division, to take its time.
fn is_prime(number: u64) -> bool {
    let mut divisors = (2..).take_while(|divisor| divisor * divisor <= number);
    number >= 2 && divisors.all(|divisor| !number.is_multiple_of(divisor))
}

/// Answers from the last note.
struct Clean;

impl Answers for Clean {
    fn rolled_back(&mut self, caller: Option<u64>) -> Message {
        let noted = Progress::noted();
        // The request may have ended before anything was noted of it; an old ticket tells.
        let own = caller == Some(noted.caller);
        let progress = if own { noted } else { Progress::default() };
        progress.answer(PARTIAL)
    }
}

/// Says what happened.
fn report(handler: &Handler, event: Event) {
    match event {
        Event::Timeout {
            badge,
            consumed_us,
            action,
        } => {
            let clients = handler.clients();
            let client = clients.iter().find(|client| client.badge == badge);
            let name = client.map_or("the emergency", |client| client.name.as_str());
            println!("handler: {name} ran out (consumed {consumed_us} us): {action:?}");
        }
        Event::Fault { fault } => println!("handler: the server was stopped: {fault:?}"),
        Event::Other(received) => {
            println!("handler: this is no timeout of the server: {received:?}");
        }
    }
}
