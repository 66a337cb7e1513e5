//! Which turn runs next: a state machine without a system call.
//!
//! Each client has a constant-bandwidth server, or none. Its turns ([`sandglass_allocations::server`]) wait until they
//! are eligible, and then run by their deadlines; of equal deadlines, that of the client with the lower number. All
//! times are ticks.

use alloc::vec;
use alloc::vec::Vec;

use sandglass_allocations::{Server, Turn};
use sandglass_edf::queue::Queue;
use sandglass_edf::TaskId;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The time has come that was asked for, or nothing in particular.
    Timer,
    /// The job of a client is done, and it waits for the next, which is a period after it.
    Done(TaskId),
    /// The budget of a turn is used up, and its job is not done.
    Overran(TaskId),
    /// The turn that is to run does not: its client waits for something else. It has lost the turn.
    Blocked(TaskId),
}

/// A turn that is to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub client: TaskId,
    /// Of the client's turns, from 0, also those that other servers of its had.
    pub number: u64,
    pub turn: Turn,
}

/// What to do until the next event.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// `None`: no turn is eligible.
    pub run: Option<Chosen>,
    /// When to call again unless something else happens.
    pub wake_at: Option<u64>,
}

/// A client's server, and its turn that is not over.
#[derive(Clone, Copy, Debug)]
struct Served {
    server: Server,
    turn: Option<Turn>,
}

/// The turns of all clients. A client's turn is in `waiting` until it is eligible, then in `ready`.
#[derive(Clone, Debug)]
pub struct Turns {
    served: Vec<Option<Served>>,
    /// Turns that each client has had, the one that is not over included.
    counts: Vec<u64>,
    waiting: Queue,
    ready: Queue,
    idle_at: u64,
}

impl Turns {
    /// For so many clients, none of which has a server.
    pub fn new(clients: usize) -> Self {
        Self {
            served: vec![None; clients],
            counts: vec![0; clients],
            waiting: Queue::new(clients),
            ready: Queue::new(clients),
            idle_at: 0,
        }
    }

    /// Gives a client a server, in place of the one that it may have. It has a turn when it asks for one.
    ///
    /// # Panics
    /// There is no such client.
    pub fn serve(&mut self, client: TaskId, server: Server) {
        self.drop_turn(client);
        self.served[client.0] = Some(Served { server, turn: None });
    }

    /// Takes a client's server away. Its current deadline, if it had a turn.
    ///
    /// # Panics
    /// There is no such client.
    pub fn dismiss(&mut self, client: TaskId) -> Option<u64> {
        self.drop_turn(client);
        self.served[client.0].take()?.server.deadline()
    }

    /// Whether a client has a server.
    pub fn is_served(&self, client: TaskId) -> bool {
        self.served.get(client.0).is_some_and(Option::is_some)
    }

    /// The last instant at which nothing that was released before was unfinished
    /// ([`sandglass_allocations::Manager::settle`]), as far as events show.
    pub const fn idle_at(&self) -> u64 {
        self.idle_at
    }

    /// What to do now that `event` has happened. O(log n) for each turn that becomes eligible, and O(n) to see whether
    /// the processor is idle; `now` does not go back. Events of clients without a server count as [`Event::Timer`].
    pub fn step(&mut self, now: u64, event: Event) -> Decision {
        match event {
            Event::Timer => {}
            Event::Done(client) => self.next(now, client, |turn| turn.release),
            Event::Overran(client) => self.next(now, client, |turn| turn.eligible_at),
            Event::Blocked(client) if self.is_served(client) => self.drop_turn(client),
            Event::Blocked(_) => {}
        }
        self.make_ready(now);
        if self.is_idle(now) {
            self.idle_at = now;
        }
        Decision {
            run: self.first(),
            wake_at: self.waiting.first().map(|(time, _)| time),
        }
    }

    /// The next turn of a client, which waits until `eligible`.
    fn next(&mut self, now: u64, client: TaskId, eligible: impl Fn(&Turn) -> u64) {
        if !self.is_served(client) {
            return;
        }
        self.drop_turn(client);
        if let Some(served) = &mut self.served[client.0] {
            let turn = served.server.next_turn(now);
            served.turn = Some(turn);
            self.counts[client.0] += 1;
            self.waiting.insert(eligible(&turn), client);
        }
    }

    fn drop_turn(&mut self, client: TaskId) {
        self.waiting.remove(client);
        self.ready.remove(client);
        if let Some(served) = &mut self.served[client.0] {
            served.turn = None;
        }
    }

    fn make_ready(&mut self, now: u64) {
        while let Some((time, client)) = self.waiting.first().filter(|(time, _)| *time <= now) {
            self.waiting.remove(client);
            let turn = self.served[client.0].and_then(|served| served.turn);
            self.ready
                .insert(turn.map_or(time, |turn| turn.deadline), client);
        }
    }

    fn is_idle(&self, now: u64) -> bool {
        let mut turns = self
            .served
            .iter()
            .flatten()
            .filter_map(|served| served.turn);
        turns.all(|turn| turn.release >= now)
    }

    fn first(&self) -> Option<Chosen> {
        let (_, client) = self.ready.first()?;
        let served = self.served[client.0]?;
        Some(Chosen {
            client,
            number: self.counts[client.0] - 1,
            turn: served.turn?,
        })
    }
}
