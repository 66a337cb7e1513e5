//! The server that waits for a device (`sandglass_sharing::blocking`), with clients that leave their requests.
//!
//! - Each client can always have as many requests waiting as are described, whatever others do; one more is refused.
//! - A request is answered exactly once, to whom it belongs; with a device that takes one request after the other, after
//!   as many completions as there were requests before it, which the limits bound.
//! - The server's context goes with the answer of the request that lent it, and with no other.

use sandglass_sharing::blocking::{Completion, Requests, Ticket};

use crate::promise::promise;
use crate::{Held, Journal, Source};

pub const WHAT: &str = "requests to a server that waits for a device";

const KEPT: &str = "a request waits";
const AT_ONCE: &str = "answered at once";
const BUSY: &str = "one too many";
const UNKNOWN: &str = "an unknown badge";
const ANSWERED: &str = "answered when completed";
const WITH_WAIT: &str = "answered with its context";
const LEFT: &str = "a request is left";
const NOBODY: &str = "nobody to answer any more";
const AGAIN: &str = "completed once more";

pub const SITUATIONS: &[&str] = &[
    KEPT, AT_ONCE, BUSY, UNKNOWN, ANSWERED, WITH_WAIT, LEFT, NOBODY, AGAIN,
];

const FIRST_BADGE: u64 = 2;

/// A thread of a client.
#[derive(Clone, Copy, Debug)]
struct Thread {
    badge: u64,
    is_honest: bool,
    waits: bool,
    /// Completions of the device after which its request is answered at the latest.
    due_after: usize,
}

/// A request that waits for the device.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    ticket: Ticket,
    badge: u64,
    /// Whose it is, unless that has left.
    thread: Option<usize>,
}

struct World {
    requests: Requests,
    limits: Vec<(u64, usize)>,
    threads: Vec<Thread>,
    /// In order of arrival.
    queue: Vec<Waiting>,
    /// The ticket whose request lent the context on which the server runs, if one did.
    lender: Option<Ticket>,
    /// The device takes requests in the order of their arrival.
    in_order: bool,
}

pub fn play(source: &mut Source, journal: &mut Journal) -> Held {
    let mut world = World::new(source, journal);
    while !source.is_empty() {
        match source.number(0..=6) {
            0..=2 => world.request(source, journal)?,
            3 => world.interrupt(1, source, journal)?,
            4 => {
                let completed = source.index(4);
                world.interrupt(completed, source, journal)?;
            }
            5 => world.leave(source, journal),
            _ => world.unknown(source, journal)?,
        }
    }
    // In the end everybody is served.
    while !world.queue.is_empty() {
        world.interrupt(1, source, journal)?;
    }
    promise!(
        !world.threads.iter().any(|thread| thread.waits),
        "nothing is left to do, but somebody waits: {:?}",
        world.threads
    );
    Ok(())
}

impl World {
    fn new(source: &mut Source, journal: &Journal) -> Self {
        let mut threads = Vec::new();
        let mut limits = Vec::new();
        for client in 0..source.number(1..=4) {
            let badge = FIRST_BADGE + client;
            let limit = source.number(1..=3) as usize;
            let is_honest = source.once_in(2);
            journal.note(format_args!(
                "badge {badge}: {limit} threads, honest: {is_honest}"
            ));
            limits.push((badge, limit));
            let thread = Thread {
                badge,
                is_honest,
                waits: false,
                due_after: 0,
            };
            threads.extend([thread].repeat(limit));
        }
        Self {
            // One for each thread, as the builder has it, and one to receive with.
            requests: Requests::new(threads.len() + 1, limits.clone()),
            limits,
            threads,
            queue: Vec::new(),
            lender: None,
            in_order: source.once_in(2),
        }
    }

    fn waiting_of(&self, badge: u64) -> usize {
        self.queue.iter().filter(|of| of.badge == badge).count()
    }

    /// What is true whenever the server waits.
    fn check(&self) -> Held {
        let current = self.requests.current();
        promise!(
            self.queue.iter().all(|waiting| waiting.ticket != current),
            "it receives with {current:?}, which stands for a request"
        );
        let is_overdue = |thread: &Thread| thread.waits && thread.due_after == 0;
        promise!(
            !self.in_order || !self.threads.iter().any(is_overdue),
            "somebody waits for longer than for those before him: {:?}",
            self.threads
        );
        for &(badge, limit) in &self.limits {
            let (waiting, admits) = (self.waiting_of(badge), self.requests.admits(badge));
            promise!(
                admits == (waiting < limit),
                "badge {badge} has {waiting} of {limit} requests waiting; admitted is another: {admits}"
            );
        }
        Ok(())
    }

    /// A thread that does not wait makes a request.
    fn request(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        self.check()?;
        let number = source.index(self.threads.len());
        let Thread {
            badge,
            is_honest,
            waits,
            ..
        } = self.threads[number];
        if waits {
            return Ok(());
        }
        let ticket = self.requests.current();
        journal.step(format_args!("thread {number}, badge {badge}, asks: {ticket:?}"));
        if !self.requests.admits(badge) {
            promise!(!is_honest, "thread {number} is honest, and refused");
            journal.saw(BUSY);
            return self.check();
        }
        if source.once_in(4) {
            journal.saw(AT_ONCE);
            return self.check();
        }
        self.requests.keep(badge);
        journal.saw(KEPT);
        // A server that has a context is lent none.
        self.lender.get_or_insert(ticket);
        self.threads[number].waits = true;
        self.threads[number].due_after = self.queue.len() + 1;
        self.queue.push(Waiting {
            ticket,
            badge,
            thread: Some(number),
        });
        self.check()
    }

    /// Somebody asks with a badge that nobody has.
    fn unknown(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        let badge = FIRST_BADGE + self.limits.len() as u64 + source.number(0..=3);
        journal.step(format_args!("badge {badge} asks"));
        journal.saw(UNKNOWN);
        promise!(
            !self.requests.admits(badge),
            "badge {badge}, of whom nothing is described, is admitted"
        );
        self.check()
    }

    /// A thread leaves its request: somebody stopped it, say. The server does not notice.
    fn leave(&mut self, source: &mut Source, journal: &mut Journal) {
        let number = source.index(self.threads.len());
        let thread = &mut self.threads[number];
        if thread.is_honest || !thread.waits {
            return;
        }
        thread.waits = false;
        journal.note(format_args!("thread {number} leaves its request"));
        journal.saw(LEFT);
        let mut queue = self.queue.iter_mut();
        if let Some(left) = queue.find(|waiting| waiting.thread == Some(number)) {
            left.thread = None;
        }
    }

    /// The device has completed so many requests; then the server waits.
    fn interrupt(&mut self, completed: usize, source: &mut Source, journal: &mut Journal) -> Held {
        let mut with_wait = None;
        for _ in 0..completed.min(self.queue.len()) {
            let index = match self.in_order {
                true => 0,
                false => source.index(self.queue.len()),
            };
            let waiting = self.queue.remove(index);
            for thread in &mut self.threads {
                thread.due_after = thread.due_after.saturating_sub(1);
            }
            let completion = self.requests.complete(waiting.ticket);
            journal.step(format_args!("{waiting:?} is completed: {completion:?}"));
            let expected = match self.lender == Some(waiting.ticket) {
                true => Completion::WithWait,
                false => Completion::Now,
            };
            promise!(
                completion == expected,
                "the answer of {waiting:?} is sent {completion:?}, not {expected:?}"
            );
            if completion == Completion::WithWait {
                with_wait = Some(waiting);
            }
            if source.once_in(8) {
                let again = self.requests.complete(waiting.ticket);
                journal.step(format_args!("{:?} again: {again:?}", waiting.ticket));
                journal.saw(AGAIN);
                promise!(
                    again == Completion::Nobody,
                    "what is completed twice is answered twice"
                );
            }
            if completion == Completion::Now {
                self.answer(waiting, journal)?;
            }
        }
        let last = self.requests.take_last();
        promise!(
            last == with_wait.map(|waiting| waiting.ticket),
            "with the wait, {last:?} is answered, not {with_wait:?}"
        );
        if let Some(waiting) = with_wait {
            journal.saw(WITH_WAIT);
            self.lender = None;
            self.answer(waiting, journal)?;
        }
        self.check()
    }

    /// The thread whose request this is, if it is still there, gets its answer.
    fn answer(&mut self, waiting: Waiting, journal: &mut Journal) -> Held {
        let Some(thread) = waiting.thread else {
            journal.saw(NOBODY);
            return Ok(());
        };
        promise!(
            self.threads[thread].waits,
            "thread {thread} is answered, and does not wait"
        );
        self.threads[thread].waits = false;
        journal.saw(ANSWERED);
        Ok(())
    }
}
