//! How windows are kept: the loop that asks the [`Hierarchy`], and gives processor time to the thread that it names.
//!
//! Each partition has one scheduling context, and its threads have none. Whoever the context is bound to runs, and
//! nobody else of the partition can; outside its windows it is bound to nobody. So a switch is one context taken from a
//! thread and another given to a thread: its cost does not depend on how many threads there are, and no thread runs
//! outside its partition's windows, whatever it does. A thread can lend the context, by calling a passive server, and
//! cannot give it away.
//!
//! Why not otherwise:
//!
//! - *A context for each thread*, stopped and started at the edges of windows: a switch would cost as many system calls as
//!   there are threads.
//! - *Raising and lowering priorities*: the same, and a partition that leaves its window unused would give it to another.
//! - *Domains*: their schedule is a table, which rules out deadlines; and nobody outside the partitions, however urgent,
//!   would run before the domain's time is over.
//! - *The context's budget instead of a timer*: the kernel splits and postpones what is left when a window is preempted,
//!   and knows no window below 20 µs. The contexts here never run out. What ends a window is the scheduler, which is
//!   woken by a timer above all threads of partitions: so a window is longer than it should by the way from the
//!   interrupt to the scheduler, at most, and that is charged to its partition.
//!
//! **A request that is in service** when something happens holds its partition's context: a server works with it, above
//! the threads of all partitions. It may finish, within a bound, before the scheduler decides anything: that time is its
//! partition's, and counts as overrun if the window is over. The kernel keeps the bound, as the budget of the context. A
//! request that has not ended then is rolled back, if the server has a handler for timeouts that does so; else it waits
//! in the server until its partition's next window. Without [`Servers`] a request is abandoned: its server stops for
//! good.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use sandglass::cap::{Endpoint, Notification, Reply, SchedContext, SchedControl, SchedParams, Tcb};
use sandglass::replies::Replies;
use sandglass::timer::TimerError;
use sandglass::{time, Message, Received};
use sandglass_timers::clock::{Alarm, Clock};

pub use sandglass_description::policy::partitions::Sender;

use crate::decision::PartitionId;
use crate::hierarchy::{Decision, Event, Hierarchy};
use crate::local::{ThreadEvent, ThreadId};

/// Budget and period of a partition's context, µs: equal, so that it never runs out, and so long that the kernel has no
/// slices to change.
pub const FULL_US: u64 = 3_600_000_000;

/// A partition as the driver sees it.
#[derive(Clone, Debug)]
pub struct Partition {
    /// Configured with [`FULL_US`], and bound to nothing.
    pub context: SchedContext,
    /// Without contexts of their own, at one priority below the scheduler's.
    pub threads: Vec<Tcb>,
    /// What timeouts on its time report.
    pub badge: u64,
    /// Its threads call passive servers.
    pub calls_servers: bool,
}

/// What is done about requests that are in service.
#[derive(Clone, Copy, Debug)]
pub struct Servers {
    /// Over the core of the partitions.
    pub control: SchedControl,
    /// How long a request may still take, µs; at least 20.
    pub bound_us: u64,
    /// Wakes a thread that runs [`watch`], below the servers and above the threads of partitions.
    pub watcher: Notification,
}

/// What the scheduler works with.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Where threads call, with the badges of [`Sender`]. The calling thread is bound to the clock's notification.
    pub endpoint: Endpoint,
    pub clock: Clock,
    pub partitions: Vec<Partition>,
    /// One more than there are threads.
    pub replies: Replies,
    /// `None`: no thread calls a server.
    pub servers: Option<Servers>,
}

/// What the watcher does, for good, with time of its own that never runs out: it says that it runs, which means that no
/// server does. It is woken through `wake`, and tells `scheduler`, where threads call, with the badge of
/// [`Sender::Idle`].
pub fn watch(wake: Notification, scheduler: Endpoint) -> ! {
    loop {
        wake.wait();
        // The scheduler waits whenever another thread runs.
        scheduler.nb_send(Message::EMPTY);
    }
}

/// Is told what happens; it may end the loop.
pub trait Observer {
    /// After a decision, before it is done. `now` is the time at which it was made.
    fn decided(&mut self, _now: u64, _event: Event, _decision: &Decision) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Sees nothing, and never ends it.
impl Observer for () {}

/// A thread of a partition.
#[derive(Clone, Copy, Debug)]
struct Place {
    partition: PartitionId,
    thread: ThreadId,
    tcb: Tcb,
}

/// The scheduler at work.
#[derive(Debug)]
pub struct Driver {
    parts: Parts,
    alarm: Alarm,
    /// Of each thread, through all partitions.
    places: Vec<Place>,
    /// Of each partition: its first thread in `places`.
    first: Vec<usize>,
    /// Of each thread: how to let its next job begin, while it waits for that.
    waiting: Vec<Option<Reply>>,
    /// Of each partition: the thread for which a server still works, after the bound.
    in_service: Vec<Option<usize>>,
    /// Who has its partition's context.
    current: Option<usize>,
    /// Of each thread: something arrived for it before the start.
    arrived_early: Vec<bool>,
}

impl Driver {
    /// # Panics
    /// There are too few replies.
    pub fn new(parts: Parts) -> Self {
        let mut places = Vec::new();
        let mut first = Vec::new();
        for (partition, of) in parts.partitions.iter().enumerate() {
            first.push(places.len());
            places.extend(of.threads.iter().enumerate().map(|(thread, &tcb)| Place {
                partition: PartitionId(partition),
                thread: ThreadId(thread),
                tcb,
            }));
        }
        assert!(
            parts.replies.count() > places.len(),
            "each thread needs a reply object, and receiving another one"
        );
        Self {
            alarm: Alarm::new(parts.clock),
            waiting: vec![None; places.len()],
            in_service: vec![None; parts.partitions.len()],
            current: None,
            arrived_early: vec![false; places.len()],
            places,
            first,
            parts,
        }
    }

    /// Lets each thread run until it says that it is ready, for `within` ticks at most. One that is not is let run when
    /// its first job is released, and has done that job when it is.
    ///
    /// # Errors
    /// The kernel refuses something, or the timer fails.
    pub fn gather(&mut self, within: u64) -> Result<(), TimerError> {
        for thread in 0..self.places.len() {
            let end = time::ticks().saturating_add(within);
            self.give(thread);
            while self.waiting[thread].is_none() && !self.alarm.set(Some(end)) {
                let received = self.receive();
                if let Sender::Arrival(arrived) = Sender::of(received.badge) {
                    self.note_early(arrived);
                }
                self.take(received)?;
            }
            self.take_back();
        }
        self.alarm.silence()
    }

    /// Waits until all threads have said that they are ready, for `within` ticks at most. They run on time of their own
    /// until then.
    ///
    /// # Errors
    /// The timer fails.
    pub fn await_all(&mut self, within: u64) -> Result<(), TimerError> {
        let end = time::ticks().saturating_add(within);
        while self.waiting.iter().any(Option::is_none) && !self.alarm.set(Some(end)) {
            let received = self.receive();
            if let Sender::Arrival(arrived) = Sender::of(received.badge) {
                self.note_early(arrived);
            }
            self.take(received)?;
        }
        self.alarm.silence()
    }

    /// Schedules until `observer` ends it.
    ///
    /// # Errors
    /// The timer fails.
    pub fn run(
        &mut self,
        hierarchy: &mut Hierarchy<'_>,
        observer: &mut impl Observer,
    ) -> Result<(), TimerError> {
        self.tell_early(hierarchy);
        let mut event = Event::Timer;
        loop {
            let Some(decision) = self.decide(hierarchy, event, observer) else {
                self.take_back();
                return self.alarm.silence();
            };
            let received = self.dispatch(&decision);
            event = self.take(received)?;
            self.finish_request(hierarchy)?;
        }
    }

    fn note_early(&mut self, thread: usize) {
        if let Some(arrived) = self.arrived_early.get_mut(thread) {
            *arrived = true;
        }
    }

    /// What arrived before the start has arrived now.
    fn tell_early(&mut self, hierarchy: &mut Hierarchy<'_>) {
        for (arrived, place) in self.arrived_early.iter_mut().zip(&self.places) {
            if core::mem::take(arrived) {
                hierarchy.note(place.partition, ThreadEvent::Arrived(place.thread));
            }
        }
    }

    /// Asks the scheduler, again if the alarm would be too late. `None` if the observer ends it.
    fn decide(
        &mut self,
        hierarchy: &mut Hierarchy<'_>,
        mut event: Event,
        observer: &mut impl Observer,
    ) -> Option<Decision> {
        loop {
            let now = time::ticks();
            let decision = hierarchy.decide(event, now);
            if observer.decided(now, event, &decision).is_break() {
                return None;
            }
            if !self.alarm.set(decision.wake_at) {
                return Some(decision);
            }
            event = Event::Timer;
        }
    }

    /// Gives the processor to the thread that was decided for, and waits.
    fn dispatch(&mut self, decision: &Decision) -> Received {
        let Some(thread) = self.thread_of(decision) else {
            self.take_back();
            return self.receive();
        };
        if self.current == Some(thread) {
            return match self.waiting[thread].take() {
                Some(reply) => self.reply(reply),
                None => self.receive(),
            };
        }
        self.take_back();
        self.give(thread);
        match self.waiting[thread].take_if(|_| self.current == Some(thread)) {
            Some(reply) => self.reply(reply),
            None => self.receive(),
        }
    }

    fn thread_of(&self, decision: &Decision) -> Option<usize> {
        let partition = decision.window?.partition.0;
        // Its context is with a server: nobody else of the partition can run before that has ended.
        if let Some(served) = *self.in_service.get(partition)? {
            return Some(served);
        }
        Some(self.first[partition] + decision.thread?.0)
    }

    /// Gives a thread its partition's context, or lets the server go on that has it.
    #[inline(always)] // As the other parts of each switch: calls would be a large part of its user code.
    fn give(&mut self, thread: usize) {
        let Place { partition, tcb, .. } = self.places[thread];
        let context = self.parts.partitions[partition.0].context;
        self.current = Some(thread);
        if self.in_service[partition.0].is_some() {
            self.refill(partition);
            self.wake_watcher();
        } else {
            // The context is bound to nobody, and the thread has none: nothing is left to refuse.
            let _ = context.bind(tcb);
        }
    }

    /// Takes the context of the thread that has one.
    #[inline(always)]
    fn take_back(&mut self) {
        let Some(thread) = self.current.take() else {
            return;
        };
        let Place { partition, .. } = self.places[thread];
        if self.in_service[partition.0].is_some() {
            return;
        }
        // Also of a server that nothing is known of, and that must not work in somebody else's window. Nothing is left to
        // refuse.
        let _ = self.parts.partitions[partition.0].context.unbind();
    }

    /// If the thread that has its context has lent it to a server, the request is finished, within the bound.
    fn finish_request(&mut self, hierarchy: &mut Hierarchy<'_>) -> Result<(), TimerError> {
        let (Some(thread), Some(servers)) = (self.current, self.parts.servers) else {
            return Ok(());
        };
        let Place { partition, tcb, .. } = self.places[thread];
        let of = &self.parts.partitions[partition.0];
        let (context, badge) = (of.context, of.badge);
        if !of.calls_servers {
            return Ok(());
        }
        if context.unbind_tcb(tcb).is_ok() {
            self.current = None;
            self.in_service[partition.0] = None;
            return Ok(());
        }
        let bound = SchedParams::new(servers.bound_us, FULL_US).badge(badge);
        // Refused parameters are the description's, and checked.
        let _ = servers.control.configure(context, bound);
        self.await_watcher(hierarchy)?;
        let has_ended = context.unbind_tcb(tcb).is_ok();
        self.in_service[partition.0] = (!has_ended).then_some(thread);
        self.current = None;
        if has_ended {
            self.refill(partition);
        }
        Ok(())
    }

    /// Waits until no server works any more.
    fn await_watcher(&mut self, hierarchy: &mut Hierarchy<'_>) -> Result<(), TimerError> {
        self.wake_watcher();
        loop {
            let received = self.receive();
            let is_idle = Sender::of(received.badge) == Sender::Idle;
            let event = self.take(received)?;
            if is_idle {
                return Ok(());
            }
            // Of the clock nothing is kept: the time is looked at before every decision.
            if let Event::Thread(partition, event) = event {
                hierarchy.note(partition, event);
            }
        }
    }

    fn wake_watcher(&self) {
        if let Some(servers) = self.parts.servers {
            servers.watcher.signal();
        }
    }

    /// Gives a partition's context time that does not run out.
    fn refill(&self, partition: PartitionId) {
        let of = &self.parts.partitions[partition.0];
        if let Some(servers) = self.parts.servers {
            let full = SchedParams::new(FULL_US, FULL_US).badge(of.badge);
            // Refused parameters are constants.
            let _ = servers.control.configure(of.context, full);
        }
    }

    /// Lets a thread begin its job, and waits.
    fn reply(&mut self, reply: Reply) -> Received {
        let Parts {
            replies, endpoint, ..
        } = &mut self.parts;
        replies.reply_recv(reply, *endpoint, Message::EMPTY)
    }

    fn receive(&mut self) -> Received {
        self.parts.replies.recv(self.parts.endpoint)
    }

    /// What a message means; keeps the reply of a thread that waits from now on.
    #[inline(always)]
    fn take(&mut self, received: Received) -> Result<Event, TimerError> {
        match Sender::of(received.badge) {
            Sender::Clock => {
                self.alarm.acknowledge()?;
                Ok(Event::Timer)
            }
            Sender::Idle | Sender::Ended(_) => Ok(Event::Timer),
            Sender::Done(thread) => Ok(self.done(thread)),
            Sender::Arrival(thread) => Ok(self.arrived(thread)),
        }
    }

    #[inline(never)]
    fn done(&mut self, thread: usize) -> Event {
        let Some(&place) = self.places.get(thread) else {
            return Event::Timer;
        };
        // Whoever calls in its name while it waits takes its place.
        if let Some(forged) = self.waiting[thread].take() {
            self.parts.replies.forget(forged);
        }
        self.waiting[thread] = self.parts.replies.keep();
        Event::Thread(place.partition, ThreadEvent::Completed(place.thread))
    }

    #[inline(never)]
    fn arrived(&mut self, thread: usize) -> Event {
        self.parts.replies.answer(Message::EMPTY);
        let place = self.places.get(thread);
        place.map_or(Event::Timer, |place| {
            Event::Thread(place.partition, ThreadEvent::Arrived(place.thread))
        })
    }
}
