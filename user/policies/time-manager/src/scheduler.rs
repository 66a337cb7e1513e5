//! The scheduler's loop: receives what happens, asks [`Turns`] what is to run, and does it.
//!
//! - A client whose turn has not begun waits for a reply, which begins it; its context then gets the turn's budget.
//! - A client that was preempted is put at the head of its priority's queue by a directed yield.
//! - A turn ends when its client asks for the next, or by a timeout fault. A client that waits for something else in its
//!   turn loses it: the admission, which runs below all turns, says when none can run. It is best effort until it asks
//!   for the next.
//!
//! What a client does, dies of, or leaves undone is its own trouble: no error of its objects ends the loop.
//!
//! **A client that lends its context** is a scheduler of other threads: in its turns it gives its context to one of them
//! after the other. If nobody runs on it, the client is told, and can give it to another; a turn is lost only when that
//! has happened too often. When a turn is over before the client gives the context back, it is taken from whoever has it.

use alloc::vec;
use alloc::vec::Vec;

use sandglass::cap::{Endpoint, Notification, Reply, SchedContext, SchedControl, SchedParams, Tcb};
use sandglass::replies::Replies;
use sandglass::time::{self, Tsc};
use sandglass::timeout;
use sandglass::timer::TimerError;
use sandglass::trace::{self, Mark};
use sandglass::{Message, Received};
use sandglass_allocations::{Kind, Server, Task};
use sandglass_description::policy::edf::Sender;
use sandglass_description::policy::partitions::MOST_WINDOWS;
use sandglass_edf::TaskId;
use sandglass_timers::clock::{Alarm, Clock};

use crate::turns::{Chosen, Decision, Event, Turns};

/// What a client without a turn runs on, µs: a slice among others of its priority.
const SLICE_US: u64 = 10_000;

/// What a trace says of a client that is served no more.
const NO_RESERVATION: Mark = Mark::Reservation {
    budget_us: 0,
    period_us: 0,
    deadline_us: 0,
    hard: false,
};

/// Labels of what the admission says.
pub mod command {
    /// `[client, budget, period, deadline | is_hard << 63]`, µs.
    pub const SERVE: u64 = 1;
    /// `[client]`, answered `[had a turn, deadline]`, ticks.
    pub const DISMISS: u64 = 2;
    /// Answered `[now, idle at]`, ticks.
    pub const TIMES: u64 = 3;
    /// Of a hard server.
    pub const HARD: u64 = 1 << 63;
}

/// Labels of what a client is answered that asks for its next turn.
pub mod turn {
    /// `[number, release, deadline]`, ticks.
    pub const BEGINS: u64 = 0;
    /// It is attached to no reservation, or no more.
    pub const NONE: u64 = 1;
}

/// A client as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    pub context: SchedContext,
    pub thread: Tcb,
    pub timeout_badge: u64,
    pub best_effort_priority: u8,
    /// Of one that lends its context: tells it that nobody runs on it.
    pub hint: Option<Notification>,
}

/// How often in a turn a client is told that nobody runs on its context: once in each of as many windows as the builder
/// admits.
const MOST_HINTS: u32 = MOST_WINDOWS as u32;

/// How often it is tried to give a context back to its owner, which a client above this thread may undo each time.
const TRIES: u32 = 4;

/// What the scheduler works with.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Where clients and the admission call. The calling thread is bound to the clock's notification.
    pub endpoint: Endpoint,
    pub clock: Clock,
    pub tsc: Tsc,
    pub clients: Vec<Client>,
    /// One more than there are clients.
    pub replies: Replies,
    pub control: SchedControl,
    /// The scheduler's own thread, which may give priorities up to its own.
    pub own: Tcb,
    pub turn_priority: u8,
    /// Wakes the admission.
    pub wake: Notification,
}

/// A client that waits for a turn.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    reply: Reply,
    by_fault: bool,
}

/// What a client's turns have, µs.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    budget_us: u64,
    period_us: u64,
}

/// The scheduler at work.
#[derive(Debug)]
pub struct Scheduler {
    parts: Parts,
    alarm: Alarm,
    turns: Turns,
    waiting: Vec<Option<Waiting>>,
    budgets: Vec<Budget>,
    /// Of each client: its turn that has begun and not ended.
    begun: Vec<Option<u64>>,
    /// How often whose turn it is was told that nobody runs on its context.
    hints: u32,
    /// Whose turn was let run last, while it does not wait.
    running: Option<TaskId>,
    /// The admission will say when no turn can run.
    is_watched: bool,
}

impl Scheduler {
    /// # Panics
    /// There are too few replies.
    pub fn new(parts: Parts) -> Self {
        let count = parts.clients.len();
        assert!(
            parts.replies.count() > count,
            "each client needs a reply object, and the next message one more"
        );
        Self {
            alarm: Alarm::new(parts.clock),
            turns: Turns::new(count),
            waiting: vec![None; count],
            budgets: vec![Budget::default(); count],
            begun: vec![None; count],
            hints: 0,
            running: None,
            is_watched: false,
            parts,
        }
    }

    /// Schedules, for good.
    ///
    /// # Errors
    /// The timer fails.
    pub fn run(&mut self) -> Result<core::convert::Infallible, TimerError> {
        let mut event = Event::Timer;
        loop {
            let decision = self.decide(event);
            let received = self.dispatch(decision.run);
            event = self.take(received)?;
        }
    }

    /// Asks for a decision, again if the alarm would be too late.
    fn decide(&mut self, mut event: Event) -> Decision {
        loop {
            let decision = self.turns.step(time::ticks(), event);
            if !self.alarm.set(decision.wake_at) {
                return decision;
            }
            event = Event::Timer;
        }
    }

    /// Lets a turn run, and waits.
    fn dispatch(&mut self, chosen: Option<Chosen>) -> Received {
        let Some(chosen) = chosen else {
            return self.receive();
        };
        let client = chosen.client;
        let was_running = self.running.replace(client) == Some(client);
        self.watch();
        if let Some(waiting) = self.waiting[client.0].take() {
            self.begin(chosen);
            let answer = if waiting.by_fault {
                self.go_on(client)
            } else {
                let turn = chosen.turn;
                Message::new(turn::BEGINS, [chosen.number, turn.release, turn.deadline])
            };
            let Parts {
                replies, endpoint, ..
            } = &mut self.parts;
            return replies.reply_recv(waiting.reply, *endpoint, answer);
        }
        if !was_running {
            // Refused while its time is with a server above this thread, which then runs anyway.
            let _ = self.parts.clients[client.0].context.yield_to();
        }
        self.receive()
    }

    /// A turn begins: the client has its priority and its budget. (The kernel refuses parameters only, which were
    /// checked when the reservation was made.)
    fn begin(&mut self, chosen: Chosen) {
        let Client {
            context,
            thread,
            timeout_badge,
            ..
        } = self.parts.clients[chosen.client.0];
        let Budget {
            budget_us,
            period_us,
        } = self.budgets[chosen.client.0];
        let params = SchedParams::new(budget_us, period_us).badge(timeout_badge);
        let _ = self.parts.control.configure(context, params);
        let _ = thread.set_priority(self.parts.own, self.parts.turn_priority);
        let job = chosen.number;
        self.hints = 0;
        self.begun[chosen.client.0] = Some(job);
        let (release, deadline) = (chosen.turn.release, chosen.turn.deadline);
        trace::mark_of(context, Mark::Release { job, at: release });
        trace::mark_of(context, Mark::Deadline { job, at: deadline });
    }

    /// A turn has ended.
    fn end(&mut self, client: TaskId) {
        if self.running == Some(client) {
            self.running = None;
        }
        if let Some(job) = self.begun[client.0].take() {
            trace::mark_of(self.parts.clients[client.0].context, Mark::End { job });
        }
    }

    /// A client is best effort.
    fn demote(&mut self, client: TaskId) {
        self.end(client);
        let Client {
            context,
            thread,
            timeout_badge,
            best_effort_priority,
            hint,
        } = self.parts.clients[client.0];
        if let Some(hint) = hint {
            give_back(context, thread);
            hint.signal();
        }
        let slice = SchedParams::new(SLICE_US, SLICE_US).badge(timeout_badge);
        let _ = thread.set_priority(self.parts.own, best_effort_priority);
        let _ = self.parts.control.configure(context, slice);
    }

    fn receive(&mut self) -> Received {
        self.parts.replies.recv(self.parts.endpoint)
    }

    /// What a message means; keeps the reply of a client that waits from now on.
    fn take(&mut self, received: Received) -> Result<Event, TimerError> {
        match Sender::of(received.badge) {
            Sender::Timer => {
                self.alarm.acknowledge()?;
                Ok(Event::Timer)
            }
            Sender::Idle => Ok(self.pass_over()),
            // The admission is one client more.
            Sender::Call(client) if client == self.parts.clients.len() => {
                self.obey(&received.message);
                Ok(Event::Timer)
            }
            Sender::Call(client) => Ok(self.called(client, false)),
            Sender::Fault(client) => Ok(self.called(client, true)),
        }
    }

    /// A client asks for its next turn, or its budget has run out.
    fn called(&mut self, client: usize, by_fault: bool) -> Event {
        if client >= self.parts.clients.len() {
            return Event::Timer;
        }
        let id = TaskId(client);
        let had_turn = self.begun[client].is_some();
        self.end(id);
        let is_served = self.turns.is_served(id);
        if !is_served || (by_fault && !had_turn) {
            // It is best effort already, and gets no slice for asking: others of its priority want theirs.
            self.parts.replies.answer(if by_fault {
                self.go_on(id)
            } else {
                Message::new(turn::NONE, [])
            });
            return Event::Timer;
        }
        // It cannot wait twice, unless its thread was written to.
        if let Some(forgotten) = self.waiting[client].take() {
            self.parts.replies.forget(forgotten.reply);
        }
        let kept = self.parts.replies.keep();
        self.waiting[client] = kept.map(|reply| Waiting { reply, by_fault });
        if by_fault {
            Event::Overran(id)
        } else {
            Event::Done(id)
        }
    }

    /// No turn can run: the one that was let run is lost, unless its client lends its context, and can do better.
    fn pass_over(&mut self) -> Event {
        self.is_watched = false;
        let hint = self
            .running
            .and_then(|client| self.parts.clients[client.0].hint);
        if let Some(hint) = hint.filter(|_| self.hints < MOST_HINTS) {
            self.hints += 1;
            hint.signal();
            return Event::Timer;
        }
        let Some(blocked) = self.running.take() else {
            return Event::Timer;
        };
        self.demote(blocked);
        Event::Blocked(blocked)
    }

    /// What the admission says.
    fn obey(&mut self, message: &Message) {
        let client = TaskId(message.word(0) as usize);
        match message.label() {
            command::SERVE if client.0 < self.parts.clients.len() => {
                self.serve(client, message);
                self.parts.replies.answer(Message::EMPTY);
            }
            command::DISMISS if client.0 < self.parts.clients.len() => {
                let deadline = self.dismiss(client);
                self.parts.replies.answer(Message::new(
                    0,
                    [u64::from(deadline.is_some()), deadline.unwrap_or(0)],
                ));
            }
            command::TIMES => {
                // What has happened until now counts: the processor may be idle since the last event.
                let now = time::ticks();
                let _same = self.turns.step(now, Event::Timer);
                self.parts
                    .replies
                    .answer(Message::new(0, [now, self.turns.idle_at()]));
            }
            _ => self.parts.replies.answer(Message::EMPTY),
        }
    }

    fn serve(&mut self, client: TaskId, message: &Message) {
        let (budget_us, period_us, last) = (message.word(1), message.word(2), message.word(3));
        let deadline_us = last & !command::HARD;
        let kind = if last & command::HARD == 0 {
            Kind::Soft
        } else {
            Kind::Hard
        };
        let ticks = |us| self.parts.tsc.us_to_ticks(us);
        if let Ok(task) = Task::new(ticks(budget_us), ticks(period_us), ticks(deadline_us)) {
            self.budgets[client.0] = Budget {
                budget_us,
                period_us,
            };
            self.turns.serve(client, Server::new(task, kind));
            let reservation = Mark::Reservation {
                budget_us,
                period_us,
                deadline_us,
                hard: kind == Kind::Hard,
            };
            trace::mark_of(self.parts.clients[client.0].context, reservation);
        }
    }

    fn dismiss(&mut self, client: TaskId) -> Option<u64> {
        let deadline = self.turns.dismiss(client);
        self.demote(client);
        trace::mark_of(self.parts.clients[client.0].context, NO_RESERVATION);
        if let Some(waiting) = self.waiting[client.0].take() {
            let message = if waiting.by_fault {
                self.go_on(client)
            } else {
                Message::new(turn::NONE, [])
            };
            self.parts.replies.send(waiting.reply, message);
        }
        deadline
    }

    /// A turn is let run: the admission is to notice if it does not.
    fn watch(&mut self) {
        if !self.is_watched {
            self.parts.wake.signal();
            self.is_watched = true;
        }
    }

    /// What a client is answered to a timeout.
    fn go_on(&self, client: TaskId) -> Message {
        timeout::go_on(self.parts.clients[client.0].thread).unwrap_or(Message::EMPTY)
    }
}

/// Takes a context from whoever has it, and gives it back to its owner.
fn give_back(context: SchedContext, owner: Tcb) {
    for _ in 0..TRIES {
        // Refused if nobody has it.
        let _ = context.unbind();
        if context.bind(owner).is_ok() {
            return;
        }
    }
}
