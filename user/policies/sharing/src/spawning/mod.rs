//! Stack spawning (thesis 6.4.2): migrating threads, as COMPOSITE has them, with a stack that is made
//! when a request finds all of them busy.
//!
//! "The proxy server spawns new worker threads instead of manipulating priorities. The
//! stack-spawning proxy would also be at a lower priority than the worker threads, such that it would
//! only be activated when all worker threads are blocked."
//!
//! All threads of the server wait at one endpoint, whose queue is ordered by priority. The main thread,
//! the *spawner*, has a lower priority than those it made: it gets a request only if no other
//! thread waits. It then makes one, on the time of the client whose request that is, and hands the
//! request on to it, with the client's context and the right to answer. What is decided is
//! [`stacks`]; when nothing is left to make a thread of, the spawner serves the request itself, and
//! others queue.
//!
//! A thread without time of its own cannot begin. To get to where it waits for what is handed on,
//! a new one runs on what the server was started on: for less than 2,000 instructions, once.

pub mod stacks;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use sandglass::cap::{nb_send_recv, nb_send_wait, Endpoint, Notification, Reply, SchedContext};
use sandglass::server::make_passive;
use sandglass::trace::{self, Parameter};
use sandglass::{time, Environment, Error, Message, Received};

pub use sandglass::spawning::Spawning;

use self::stacks::{Decision, Stacks};
use crate::stored::Stored;

/// What it cost to make threads.
#[derive(Debug)]
pub struct Meter {
    made: AtomicU32,
    most: AtomicU64,
}

impl Meter {
    /// Of a server that has made no threads yet; may be a `static`.
    pub const fn new() -> Self {
        Self {
            made: AtomicU32::new(0),
            most: AtomicU64::new(0),
        }
    }

    /// Threads that were made.
    pub fn made(&self) -> u32 {
        self.made.load(Relaxed)
    }

    /// What the most expensive one cost its client, from its request's arrival to where it is handed
    /// on, in ticks ([`time::ticks`]).
    pub fn most_ticks(&self) -> u64 {
        self.most.load(Relaxed)
    }

    /// There is one writer: the spawner.
    fn note(&self, ticks: u64) {
        self.most.store(ticks.max(self.most_ticks()), Relaxed);
        self.made.store(self.made() + 1, Relaxed);
    }
}

impl Default for Meter {
    fn default() -> Self {
        Self::new()
    }
}

/// Serves the resource `resource`, whose protocol is `stack-spawning`, for good. `handle` is called by
/// all threads, side by side; `meter` says how many were made.
///
/// If `handle` uses the heap, see [`sandglass::heap::share`]; the server itself does not, once it
/// serves.
///
/// # Panics
/// If this component does not serve the resource, or may not make threads.
pub fn serve(
    env: &'static Environment,
    resource: &str,
    meter: &'static Meter,
    handle: impl Fn(Received) -> Message + Sync + 'static,
) -> ! {
    let spawning = env.spawning();
    let numbers = 1..=spawning.threads();
    // They live as long as the threads: for good.
    let server: &'static Server<_> = Box::leak(Box::new(Server {
        endpoint: env.capability(resource),
        handover: env.capability(&format!("{resource}.handover")),
        ready: env.ready(),
        handle,
    }));
    let workers = numbers.clone().map(|n| Worker {
        server,
        name: format!("{}/spawned.{n}", env.name()),
        request_badge: AtomicU64::new(0),
        reply: AtomicU64::new(0),
    });
    let spares = numbers.map(|n| env.capability(&format!("{resource}.reply.{n}")));
    let spawner = Spawner {
        server,
        meter,
        context: env.capability("self.context"),
        stacks: Stacks::new(spawning.threads()),
        workers: workers.collect::<Vec<_>>().leak(),
        spares: spares.collect(),
        spawning,
    };
    spawner.run(env.capability(&format!("{resource}.reply")))
}

/// What all threads of a server have.
struct Server<H> {
    endpoint: Endpoint,
    /// Where a new thread waits for its first request.
    handover: Endpoint,
    /// Signalled by a thread that needs no time any more.
    ready: Notification,
    handle: H,
}

/// A thread that can be made.
struct Worker<H: 'static> {
    server: &'static Server<H>,
    /// In the trace.
    name: String,
    /// What the message of its first request does not say: the client's badge, and the reply object
    /// for which that waits.
    request_badge: AtomicU64,
    reply: AtomicU64,
}

/// What a spawned thread does.
extern "C" fn work<H: Fn(Received) -> Message>(worker: &'static Worker<H>) -> ! {
    let server = worker.server;
    let first = nb_send_wait(server.ready, Message::EMPTY, server.handover);
    let reply = Reply::at(worker.reply.load(Relaxed));
    let mut request = Received {
        badge: worker.request_badge.load(Relaxed),
        ..first
    };
    loop {
        let answer = (server.handle)(request);
        request = reply.reply_recv(server.endpoint, answer);
    }
}

/// The main thread.
struct Spawner<H: 'static> {
    server: &'static Server<H>,
    meter: &'static Meter,
    spawning: Spawning,
    /// On which a new thread gets ready.
    context: SchedContext,
    stacks: Stacks,
    workers: &'static [Worker<H>],
    /// By number of the thread with which the spawner gives its own away.
    spares: Vec<Reply>,
}

impl<H: Fn(Received) -> Message + Sync> Spawner<H> {
    fn run(mut self, mut reply: Reply) -> ! {
        let endpoint = self.server.endpoint;
        let mut kept = Stored::default();
        let mut request = nb_send_recv(self.server.ready, Message::EMPTY, endpoint, reply);
        loop {
            let Decision::Spawn(number) = self.stacks.decide() else {
                let answer = (self.server.handle)(request);
                request = reply.reply_recv(endpoint, answer);
                continue;
            };
            let start = time::ticks();
            kept.store(request.message);
            let worker = &self.workers[number];
            worker.request_badge.store(request.badge, Relaxed);
            worker.reply.store(reply.address(), Relaxed);
            let made = self.make(number);
            self.stacks.tried(number, made.is_ok());
            let message = kept.message();
            if made.is_ok() {
                reply = self.spares[number];
                self.meter.note(time::ticks() - start);
                request = nb_send_recv(self.server.handover, message, endpoint, reply);
            } else {
                // The next is tried, or none is left.
                request.message = message;
            }
        }
    }

    /// Makes a thread that waits for what is handed on. If this fails, nothing is left of it.
    fn make(&self, number: usize) -> Result<(), Error> {
        let worker = &self.workers[number];
        let tcb = self
            .spawning
            .make(number, self.context, work::<H>, worker)?;
        trace::name(tcb, &worker.name);
        trace::parameter(tcb, Parameter::Passive, 1);
        // It has a higher priority, and gets ready at once.
        let is_ready = tcb
            .resume()
            .and_then(|()| make_passive(self.server.ready, tcb, self.context));
        if is_ready.is_err() {
            // The memory is this component's own: nothing can fail.
            let _ = self.spawning.free(number);
        }
        is_ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_meter_keeps_the_most_expensive() {
        let meter = Meter::new();
        for ticks in [5, 9, 7] {
            meter.note(ticks);
        }
        assert_eq!((meter.made(), meter.most_ticks()), (3, 9));
    }
}
