//! Counts primes for its clients, on their time. When a client's time runs out, the thread `handler`
//! rolls the server back and answers with how far it came.

#![no_std]
#![no_main]

use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use primes::{Progress, DONE, PARTIAL};
use sandglass::{println, Environment, Message, Received};
use sandglass_timeouts::{Answers, Event, Handler};

sandglass::entry!(main, stack = 0x8000, heap = 0x8000);

/// How far the current request is.
static NOTED: AtomicU64 = AtomicU64::new(0);

fn main(env: &'static Environment) -> Infallible {
    let handler = Handler::new(env, "counter");
    let ready = env.capability("handler.ready");
    env.thread("handler")
        .prepare(move || handler.serve(ready, Noted, report));
    env.service("primes").serve(|request| count(&request))
}

/// Counts the primes of a request.
fn count(request: &Received) -> Message {
    let mut progress = Progress {
        caller: request.badge,
        ticket: request.message.word(0),
        next: request.message.word(1),
        primes: 0,
    };
    loop {
        NOTED.store(progress.to_word(), Relaxed);
        if !progress.step(request.message.word(2)) {
            return answer(DONE, progress);
        }
    }
}

fn answer(label: u64, progress: Progress) -> Message {
    Message::new(label, [progress.ticket, progress.next, progress.primes])
}

/// Answers from the last note.
struct Noted;

impl Answers for Noted {
    fn rolled_back(&mut self, caller: Option<u64>) -> Message {
        let noted = Progress::of_word(NOTED.load(Relaxed));
        // The request may have ended before anything was noted of it.
        let is_own = caller == Some(noted.caller);
        answer(PARTIAL, if is_own { noted } else { Progress::default() })
    }
}

/// Says what happened.
fn report(handler: &Handler, event: Event) {
    if let Event::Timeout { badge, action, .. } = event {
        let clients = handler.clients();
        let client = clients.iter().find(|client| client.badge == badge);
        let name = client.map_or("a stranger", |client| client.name.as_str());
        println!("handler: {name} ran out: {action:?}");
    }
}
