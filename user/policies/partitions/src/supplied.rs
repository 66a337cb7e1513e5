//! Windows in time that is supplied: a frame of partitions within the turns that a time manager gives.
//!
//! The scheduler has a thread of its own, above everybody, and an *owner*: a thread that is the time manager's client and
//! has a turn in each period. In its turn the owner calls the scheduler, which takes the owner's scheduling context and
//! gives it to threads of partitions, window after window, in the order of the frame; then the owner has it back, and its
//! turn is over. So a window is a length of supplied time: whoever has an earlier deadline at the manager may run in
//! between, and takes nothing of it.
//!
//! The kernel keeps windows: when one begins, the context's budget is the window's length, and its end is the timeout
//! fault of whoever runs. All that happens in a window is on that budget, so no partition can have more than its windows,
//! and nothing is measured. When no thread of the partition can run, the *filler* does: windows are time, not work, and
//! what one partition leaves over gives another no more and no earlier time.
//!
//! The time manager says when nobody runs on the context ([`Sender::Idle`]): whoever has it waits for something, and the
//! rest of the window is the filler's. The same is said when a turn is over before the frame is: the rest of the frame is
//! lost.

use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use sandglass::cap::{Endpoint, Reply, SchedContext, SchedControl, SchedParams, Tcb};
use sandglass::replies::Replies;
use sandglass::timer::TimerError;
use sandglass::{time, timeout, Message, Received};
use sandglass_description::policy::partitions::{Sender, SUPPLY_US};
use sandglass_timers::clock::{Alarm, Clock};

use crate::decision::PartitionId;
use crate::local::{Local, Step, ThreadEvent, ThreadId};

/// A window of the frame.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    pub partition: PartitionId,
    /// µs of supplied time.
    pub length_us: u64,
}

/// What the scheduler works with.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Where all threads, the filler and the owner call, with the badges of [`Sender`]: the filler's number is that of all
    /// threads, and the owner's is one more. Timeouts of threads and the filler are told here. The calling thread is bound
    /// to the clock's notification.
    pub endpoint: Endpoint,
    pub clock: Clock,
    /// Of each partition, its threads: without contexts, at the priority of turns.
    pub partitions: Vec<Vec<Tcb>>,
    /// As a thread of no partition: computes for good, after it has called once.
    pub filler: Tcb,
    pub owner: Tcb,
    /// The owner's.
    pub context: SchedContext,
    pub control: SchedControl,
    /// In order; all together less than the owner's budget, by what it takes itself.
    pub windows: Vec<Window>,
    /// Of the owner's turns, µs.
    pub period_us: u64,
    /// Two more than there are threads with the filler.
    pub replies: Replies,
}

/// How a thread is let go on.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    reply: Reply,
    /// A window has ended with it; else it waits for its next job.
    by_fault: bool,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    /// `None`: the filler.
    member: Option<(PartitionId, ThreadId)>,
    tcb: Tcb,
}

/// A frame that has begun.
#[derive(Clone, Copy, Debug)]
struct InFrame {
    /// Lets the owner end its turn.
    owner: Reply,
    /// Index of the window.
    window: usize,
    /// Who had the context in this window waits for something: the filler has the rest.
    is_left: bool,
}

/// The scheduler at work.
#[derive(Debug)]
pub struct Supplied<'m> {
    parts: Parts,
    locals: &'m mut [Local<'m>],
    alarm: Alarm,
    /// Threads through all partitions, and the filler.
    places: Vec<Place>,
    /// Of each partition: its first thread in `places`.
    first: Vec<usize>,
    waiting: Vec<Option<Waiting>>,
    /// Of each: it has called for its first job. Nobody waits for that: a thread begins in its partition's windows, too.
    has_begun: Vec<bool>,
    frame: Option<InFrame>,
    /// Who has the context, and since when that is charged to its partition's slices.
    current: Option<usize>,
    since: u64,
}

impl<'m> Supplied<'m> {
    /// # Panics
    /// There are no windows, or too few replies.
    pub fn new(parts: Parts, locals: &'m mut [Local<'m>]) -> Self {
        let mut places = Vec::new();
        let mut first = Vec::new();
        for (partition, threads) in parts.partitions.iter().enumerate() {
            first.push(places.len());
            places.extend(threads.iter().enumerate().map(|(thread, &tcb)| Place {
                member: Some((PartitionId(partition), ThreadId(thread))),
                tcb,
            }));
        }
        places.push(Place {
            member: None,
            tcb: parts.filler,
        });
        assert!(!parts.windows.is_empty(), "a frame has windows");
        assert!(
            parts.replies.count() > places.len() + 1,
            "each thread, the filler and the owner need a reply object, and receiving another one"
        );
        Self {
            alarm: Alarm::new(parts.clock),
            waiting: vec![None; places.len()],
            has_begun: vec![false; places.len()],
            frame: None,
            current: None,
            since: 0,
            places,
            first,
            locals,
            parts,
        }
    }

    /// Schedules, for good.
    ///
    /// # Errors
    /// The timer fails.
    pub fn run(&mut self) -> Result<Infallible, TimerError> {
        loop {
            let chosen = self.choose();
            let received = self.dispatch(chosen);
            self.take(&received)?;
        }
    }

    /// Who is to have the context: in a window the thread that its partition's scheduler says, or the filler.
    fn choose(&mut self) -> Option<usize> {
        let frame = self.frame?;
        let PartitionId(partition) = self.parts.windows[frame.window].partition;
        let filler = self.places.len() - 1;
        let Some(local) = self.locals.get_mut(partition).filter(|_| !frame.is_left) else {
            return Some(filler);
        };
        loop {
            let now = time::ticks();
            local.charge(now.saturating_sub(self.since));
            self.since = now;
            // Each `Again` is a release or an arrival; the next is a period later.
            let Step::Run { thread, wake_at } = local.step(now) else {
                continue;
            };
            if !self.alarm.set(wake_at) {
                let thread = thread.map(|ThreadId(thread)| self.first[partition] + thread);
                return Some(thread.unwrap_or(filler));
            }
        }
    }

    /// Gives the context to whoever is chosen, and waits.
    fn dispatch(&mut self, chosen: Option<usize>) -> Received {
        if chosen != self.current {
            self.take_back();
            if let Some(thread) = chosen {
                // The context is bound to nobody, and the thread has none. If the time manager has taken it, it says so.
                let _ = self.parts.context.bind(self.places[thread].tcb);
                self.current = chosen;
            }
        }
        let waiting = chosen.and_then(|thread| self.waiting[thread].take());
        let Some(Waiting { reply, by_fault }) = waiting else {
            return self.parts.replies.recv(self.parts.endpoint);
        };
        let tcb = chosen.map(|thread| self.places[thread].tcb);
        let answer = tcb
            .filter(|_| by_fault)
            .and_then(|tcb| timeout::go_on(tcb).ok());
        let Parts {
            replies, endpoint, ..
        } = &mut self.parts;
        replies.reply_recv(reply, *endpoint, answer.unwrap_or(Message::EMPTY))
    }

    fn take_back(&mut self) {
        if let Some(thread) = self.current.take() {
            // Refused if the time manager has taken it: then it stays its owner's.
            let _ = self.parts.context.unbind_tcb(self.places[thread].tcb);
        }
    }

    /// What a message means.
    fn take(&mut self, received: &Received) -> Result<(), TimerError> {
        match Sender::of(received.badge) {
            Sender::Clock => return self.alarm.acknowledge(),
            Sender::Idle => {
                self.alarm.acknowledge()?;
                self.look();
            }
            Sender::Done(number) if number == self.places.len() => self.begin_frame(),
            Sender::Done(thread) => self.done(thread),
            Sender::Arrival(thread) => self.arrived(thread),
            Sender::Ended(thread) => self.ended(thread),
        }
        Ok(())
    }

    /// The owner has a turn.
    fn begin_frame(&mut self) {
        let Some(owner) = self.parts.replies.keep() else {
            return;
        };
        // The owner cannot call twice, unless its turn was lost without a word.
        self.abandon_frame();
        if self.parts.context.unbind_tcb(self.parts.owner).is_err() {
            self.parts.replies.send(owner, Message::EMPTY);
            return;
        }
        self.frame = Some(InFrame {
            owner,
            window: 0,
            is_left: false,
        });
        self.since = time::ticks();
        self.begin_window();
    }

    /// Gives the context the length of the window as its budget.
    fn begin_window(&mut self) {
        if let Some(frame) = self.frame {
            self.configure(self.parts.windows[frame.window].length_us);
        }
    }

    fn configure(&self, budget_us: u64) {
        let Parts {
            control,
            context,
            period_us,
            ..
        } = self.parts;
        // Refused parameters are the description's, and checked.
        let _ = control.configure(context, SchedParams::new(budget_us, period_us));
    }

    /// A window has ended with the thread that had the context.
    fn ended(&mut self, thread: usize) {
        if thread >= self.places.len() {
            return;
        }
        self.keep(thread, true);
        if self.current == Some(thread) {
            self.take_back();
            self.next_window();
        }
    }

    fn next_window(&mut self) {
        let Some(frame) = &mut self.frame else {
            return;
        };
        frame.window += 1;
        frame.is_left = false;
        if frame.window < self.parts.windows.len() {
            self.begin_window();
        } else {
            self.end_frame();
        }
    }

    /// Gives the owner its context back, with what it needs to end its turn.
    fn end_frame(&mut self) {
        self.configure(SUPPLY_US / 2);
        // Refused if it has it already.
        let _ = self.parts.context.bind(self.parts.owner);
        self.abandon_frame();
    }

    /// Lets the owner go on, whose the context is.
    fn abandon_frame(&mut self) {
        self.current = None;
        if let Some(InFrame { owner, .. }) = self.frame.take() {
            self.parts.replies.send(owner, Message::EMPTY);
        }
    }

    /// Nobody runs on the context: whoever has it waits for something, or it was taken.
    fn look(&mut self) {
        let (Some(frame), Some(thread)) = (self.frame.as_mut(), self.current) else {
            return;
        };
        if self
            .parts
            .context
            .unbind_tcb(self.places[thread].tcb)
            .is_err()
        {
            self.abandon_frame();
            return;
        }
        self.current = None;
        if frame.is_left {
            // Not even the filler can run.
            self.end_frame();
        } else {
            frame.is_left = true;
        }
    }

    fn done(&mut self, thread: usize) {
        let Some(&place) = self.places.get(thread) else {
            return;
        };
        self.keep(thread, false);
        let has_begun = core::mem::replace(&mut self.has_begun[thread], true);
        if let Some((PartitionId(partition), thread)) = place.member.filter(|_| has_begun) {
            self.locals[partition].note(ThreadEvent::Completed(thread));
        }
    }

    fn arrived(&mut self, thread: usize) {
        self.parts.replies.answer(Message::EMPTY);
        let member = self.places.get(thread).and_then(|place| place.member);
        if let Some((PartitionId(partition), thread)) = member {
            self.locals[partition].note(ThreadEvent::Arrived(thread));
        }
    }

    /// Keeps the reply of a thread that waits from now on. Whoever calls in its name while it waits takes its place.
    fn keep(&mut self, thread: usize, by_fault: bool) {
        if let Some(forged) = self.waiting[thread].take() {
            self.parts.replies.forget(forged.reply);
        }
        let kept = self.parts.replies.keep();
        self.waiting[thread] = kept.map(|reply| Waiting { reply, by_fault });
    }
}
