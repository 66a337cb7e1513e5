//! A server with as little state as possible, and a handler that measures itself: the
//! instructions from when it wakes up with a timeout until it waits for the next.

#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use core::convert::Infallible;
use core::sync::atomic::{AtomicU64, Ordering};

use sandglass::cap::{nb_send_recv, Endpoint, Notification, Reply, Tcb};
use sandglass::fault::Fault;
use sandglass::time::ticks;
use sandglass::{exit, println, time, Environment, Message, Received};
use sandglass_timeouts::{Action, Answers, Event, Handler};

sandglass::entry!(main, stack = 0x8000, heap = 0x1_0000);

/// The client whose timeouts are measured.
const MEASURED: &str = "client";

/// Steps of the current request that are done.
static NOTED: AtomicU64 = AtomicU64::new(0);

fn main(env: &'static Environment) -> Infallible {
    let samples = Samples::new(env);
    let handler = Handler::new(env, "server");
    let clients = handler.clients().iter();
    let others = clients.filter(|client| client.name != MEASURED);
    let others: Vec<u64> = others.map(|client| client.badge).collect();
    if env.parameter("waits") == 0 {
        env.thread("handler")
            .prepare(move || measure(env, handler, &others, samples));
    } else {
        env.thread("handler")
            .prepare(move || measure_waiting(env, &others, samples));
    }
    env.service("work").serve(|request| work(&request))
}

/// So many steps, each of which is noted.
fn work(request: &Received) -> Message {
    for step in 0..request.message.word(0) {
        NOTED.store(step, Ordering::Relaxed);
        // What a step does: some 1000 instructions.
        time::work(250);
    }
    Message::EMPTY
}

/// Answers with what was noted.
struct Noted;

impl Answers for Noted {
    fn rolled_back(&mut self, _caller: Option<u64>) -> Message {
        Message::new(0, [NOTED.load(Ordering::Relaxed)])
    }
}

/// The policies of the library. Timeouts of `others`, badges of their time, are handled and not measured.
fn measure(env: &'static Environment, mut handler: Handler, others: &[u64], mut samples: Samples) {
    let ready: Notification = env.capability("handler.ready");
    let client: Option<Tcb> = env.find_capability("client.tcb");
    handler.begin().expect("the server waits");
    ready.signal();
    loop {
        let received = handler.receive();
        let start = ticks();
        let event = handler.handle(&received, &mut Noted);
        let end = ticks();
        match event.expect("the policy can be carried out") {
            Event::Timeout { badge, .. } if others.contains(&badge) => continue,
            Event::Timeout { action, .. } => {
                if let (Action::Killed, Some(client)) = (action, client) {
                    client.resume().expect("the client can be revived");
                }
            }
            Event::Fault { fault } => panic!("the server has no bug: {fault:?}"),
            Event::Other(received) => panic!("this is no timeout: {received:?}"),
        }
        samples.take(end - start);
    }
}

/// Rollback as in the thesis: the handler waits for the server, and takes the spare context away. `others` as in
/// [`measure`].
fn measure_waiting(env: &'static Environment, others: &[u64], mut samples: Samples) {
    let timeouts: Endpoint = env.capability("timeouts");
    let fault: Reply = env.capability("timeouts.reply");
    let rollback = env.rollback("server", "work").expect("the server waits");
    let ready: Notification = env.capability("handler.ready");
    let mut received = nb_send_recv(ready, Message::EMPTY, timeouts, fault);
    loop {
        let start = ticks();
        let Some(Fault::Timeout { badge, .. }) = Fault::decode(&received.message) else {
            panic!("this is no timeout: {received:?}");
        };
        let answer = Noted.rolled_back(None);
        rollback
            .perform(fault, answer)
            .expect("the server can be sent back");
        let end = ticks();
        if !others.contains(&badge) {
            samples.take(end - start);
        }
        received = timeouts.recv(fault);
    }
}

/// What was measured.
struct Samples {
    warm_up: u64,
    taken: Vec<u64>,
    /// Of two reads of the counter, one right after the other.
    reading: u64,
}

impl Samples {
    fn new(env: &Environment) -> Self {
        let start = ticks();
        let reading = ticks() - start;
        Self {
            warm_up: env.parameter("warm-up"),
            taken: Vec::with_capacity(env.parameter("samples") as usize),
            reading,
        }
    }

    /// Keeps a measurement; ends the system with the last.
    fn take(&mut self, instructions: u64) {
        if self.warm_up > 0 {
            self.warm_up -= 1;
            return;
        }
        self.taken.push(instructions - self.reading);
        if self.taken.len() == self.taken.capacity() {
            for sample in &self.taken {
                println!("sample {sample}");
            }
            exit::exit(0);
        }
    }
}
