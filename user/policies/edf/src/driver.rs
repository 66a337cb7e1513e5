//! The loop of Listing 8.1: receives what happens, asks the [`Scheduler`], does what it decides.
//!
//! - A job that has not begun is a task that waits for a reply: the reply releases it.
//! - A task that was preempted is put at the head of its priority's queue by a directed yield; the
//!   one that was preempted last is there already.
//! - A job ends when its task calls, or, in preemptive mode, by a timeout fault. The task gets its
//!   budget anew when its next job begins, so what the kernel replenishes does not matter.
//!
//! - A job that is let run and does not, since its task waits for something else, panicked or was stopped, is noticed
//!   by a thread below the tasks: when that runs, none of them can. The job is passed over then.
//!
//! What a task does, dies of, or leaves undone is its own trouble: no error of its objects ends the loop.
//!
//! Each task waits for at most one reply, so a reply object more than there are tasks is enough. The
//! one that is received with becomes the caller's; a reply frees its own for receiving.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::ControlFlow;

use sandglass::cap::{Endpoint, Notification, Reply, SchedContext, SchedControl, SchedParams, Tcb};
use sandglass::fault::Fault;
use sandglass::replies::Replies;
use sandglass::time;
use sandglass::timeout;
use sandglass::timer::TimerError;
use sandglass::trace::{self, Mark};
use sandglass::{Message, Received};
use sandglass_description::policy::edf::Sender;

use crate::clock::{Alarm, Clock};
use crate::scheduler::{Decision, Event, Job, Late, Parameters, Scheduler, TaskId};
use crate::task;

/// A task as the scheduler sees it.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    /// In ticks of the time-stamp counter.
    pub parameters: Parameters,
    pub context: SchedContext,
    /// The thread, if it calls servers: it may have an answer there when its budget has run out.
    pub thread: Option<Tcb>,
    /// What every job gets at its beginning; `None`: the context is full and never runs out.
    pub budget: Option<SchedParams>,
}

/// What is done about a task whose budget runs out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overrun {
    /// It is suspended until the release of its next job, and continues on that job's budget.
    Suspend,
    /// It is stopped for good.
    Stop,
}

/// What the scheduler works with.
#[derive(Clone, Debug)]
pub struct Parts {
    /// Where tasks call with the badges of [`Sender`]. The calling thread is bound to the timer's
    /// notification.
    pub endpoint: Endpoint,
    pub clock: Clock,
    pub clients: Vec<Client>,
    /// One more than there are tasks that call.
    pub replies: Replies,
    /// Over the core of the tasks; used for those that have a `budget`.
    pub control: Option<SchedControl>,
    pub late: Late,
    pub overrun: Overrun,
    /// Wakes the thread that runs [`below`]; without one, a task that blocks keeps jobs from beginning until it goes
    /// on.
    pub below: Option<Notification>,
}

/// What a thread below the tasks does, for good, with time of its own that never runs out: it says that it
/// runs, which means that no task can. It is woken through `wake`, and tells `scheduler`, where the tasks call, with
/// the badge of [`Sender::Idle`]; before that it does `more`.
pub fn below(wake: Notification, scheduler: Endpoint, mut more: impl FnMut()) -> ! {
    loop {
        wake.wait();
        more();
        // The scheduler waits whenever another thread runs.
        scheduler.nb_send(Message::EMPTY);
    }
}

/// Periods of the task with the longest one after which a set begins without those that have not called.
const GATHERING: u64 = 10;

/// Is told what happens; it may end the loop.
pub trait Observer {
    /// Every task has called, and offsets count from `start`.
    fn started(&mut self, _start: u64) {}

    /// After a decision, before it is done. `now` is the time at which it was made.
    fn decided(&mut self, _now: u64, _event: Event, _decision: &Decision) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// A task is removed: it overran and is to stop, or it had another fault.
    fn removed(&mut self, _task: TaskId, _fault: Fault) {}
}

/// A task that has called, or had a fault.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    reply: Reply,
    /// The answer to a timeout says where it continues, and nothing of a job: words would be taken for
    /// registers.
    by_fault: bool,
}

/// Sees nothing, and never ends it.
impl Observer for () {}

/// The scheduler at work.
#[derive(Debug)]
pub struct Driver {
    parts: Parts,
    alarm: Alarm,
    /// Of each task: how to let it go on, while it waits for that.
    waiting: Vec<Option<Waiting>>,
    /// Tasks that were removed.
    gone: Vec<TaskId>,
    /// Of each task: the number of its job that has begun and not ended.
    begun: Vec<Option<u64>>,
    /// Who was let run last, while it does not wait.
    running: Option<TaskId>,
    /// The thread below will say when no task can run.
    is_watched: bool,
}

impl Driver {
    /// # Panics
    /// There are too few replies.
    pub fn new(parts: Parts) -> Self {
        assert!(
            parts.replies.count() > parts.clients.len(),
            "each task needs a reply object, and the next message one more"
        );
        let tasks = parts.replies.count() - 1;
        Self {
            alarm: Alarm::new(parts.clock),
            waiting: vec![None; tasks],
            gone: Vec::with_capacity(tasks),
            begun: vec![None; tasks],
            running: None,
            is_watched: false,
            parts,
        }
    }

    /// From the next run on, these are scheduled: the first of those that call.
    ///
    /// # Panics
    /// They are more than there are replies for.
    pub fn schedule(&mut self, clients: Vec<Client>) {
        assert!(
            clients.len() <= self.waiting.len(),
            "each task needs a reply object"
        );
        self.parts.clients = clients;
    }

    /// Waits until every task has called, but no longer than ten of the longest period, then schedules them until
    /// `observer` ends it. The start, from which offsets count, is the end of the waiting. Whoever calls later
    /// has ended its first job then.
    ///
    /// # Errors
    /// The kernel refuses something, or the timer fails.
    pub fn run(&mut self, observer: &mut impl Observer) -> Result<(), TimerError> {
        self.gather(observer)?;
        let parameters: Vec<_> = self.parts.clients.iter().map(|c| c.parameters).collect();
        let start = time::ticks();
        observer.started(start);
        let mut scheduler = Scheduler::new(&parameters, self.parts.late, start);
        for &task in self.gone.iter().filter(|task| task.0 < parameters.len()) {
            scheduler.remove(task);
        }
        let mut event = Event::Timer;
        loop {
            let Some(decision) = self.decide(&mut scheduler, event, observer) else {
                return self.alarm.silence();
            };
            let received = self.dispatch(decision.run)?;
            event = self.take(received, observer)?;
        }
    }

    /// Waits until every task has called that was not removed, for a bounded time if the tasks are known; lets them
    /// run until then, on what time they have: nothing is added to it.
    ///
    /// # Errors
    /// As of [`Self::run`].
    pub fn gather(&mut self, observer: &mut impl Observer) -> Result<(), TimerError> {
        for task in (0..self.waiting.len()).map(TaskId) {
            self.let_go(task);
        }
        let longest = self.parts.clients.iter().map(|c| c.parameters.period).max();
        let end =
            longest.map(|longest| time::ticks().saturating_add(longest.saturating_mul(GATHERING)));
        let missing = |driver: &Self| {
            let mut waiting = driver.waiting.iter().enumerate();
            waiting.any(|(task, waiting)| waiting.is_none() && !driver.gone.contains(&TaskId(task)))
        };
        while missing(self) && !self.alarm.set(end) {
            let received = self.receive();
            // Its start takes longer than a job may: it continues when its budget comes back.
            if let Event::Overran(task) = self.take(received, observer)? {
                self.let_go(task);
            }
        }
        self.running = None;
        Ok(())
    }

    /// Lets a task go on that was suspended by a timeout, when its budget comes back.
    fn let_go(&mut self, task: TaskId) {
        let suspended = |waiting: &mut Waiting| waiting.by_fault;
        if self.gone.contains(&task) {
            return;
        }
        if let Some(waiting) = self.waiting[task.0].take_if(suspended) {
            let answer = self.go_on(task);
            self.parts.replies.send(waiting.reply, answer);
        }
    }

    /// Asks the scheduler, again if the alarm would be too late. `None` if the observer ends it.
    fn decide(
        &mut self,
        scheduler: &mut Scheduler,
        mut event: Event,
        observer: &mut impl Observer,
    ) -> Option<Decision> {
        loop {
            let now = time::ticks();
            let decision = scheduler.step(now, event);
            if observer.decided(now, event, &decision).is_break() {
                return None;
            }
            if !self.alarm.set(decision.wake_at) {
                return Some(decision);
            }
            event = Event::Timer;
        }
    }

    /// Lets a job run, and waits.
    fn dispatch(&mut self, job: Option<Job>) -> Result<Received, TimerError> {
        let Some(job) = job else {
            return Ok(self.receive());
        };
        let task = job.task;
        let was_running = self.running.replace(task) == Some(task);
        let client = self.parts.clients[task.0];
        self.watch();
        if let Some(waiting) = self.waiting[task.0].take() {
            self.renew(task);
            self.begin(job);
            let answer = if waiting.by_fault {
                self.go_on(task)
            } else {
                task::answer(job)
            };
            let Parts {
                replies, endpoint, ..
            } = &mut self.parts;
            return Ok(replies.reply_recv(waiting.reply, *endpoint, answer));
        }
        if !was_running {
            // Refused while its time is with a server above this thread, which then runs anyway.
            let _ = client.context.yield_to();
        }
        Ok(self.receive())
    }

    /// A task is let run: the thread below is to notice if it does not.
    fn watch(&mut self) {
        if let Some(below) = self.parts.below.filter(|_| !self.is_watched) {
            below.signal();
            self.is_watched = true;
        }
    }

    /// Notes that a job begins.
    fn begin(&mut self, job: Job) {
        let context = self.parts.clients[job.task.0].context;
        self.begun[job.task.0] = Some(job.number);
        let (number, at) = (job.number, job.release);
        trace::mark_of(context, Mark::Release { job: number, at });
        let at = job.deadline;
        trace::mark_of(context, Mark::Deadline { job: number, at });
    }

    fn receive(&mut self) -> Received {
        self.parts.replies.recv(self.parts.endpoint)
    }

    /// What a message means; keeps the reply of a task that waits from now on.
    fn take(
        &mut self,
        received: Received,
        observer: &mut impl Observer,
    ) -> Result<Event, TimerError> {
        let (index, fault) = match Sender::of(received.badge) {
            Sender::Timer => {
                self.alarm.acknowledge()?;
                return Ok(Event::Timer);
            }
            Sender::Idle => {
                self.is_watched = false;
                return Ok(self.running.take().map_or(Event::Timer, Event::Blocked));
            }
            Sender::Call(index) => (index, None),
            Sender::Fault(index) => (index, Fault::decode(&received.message)),
        };
        let task = TaskId(index);
        match self.waiting.get_mut(index) {
            None => return Ok(Event::Timer),
            // It cannot call twice; a task with a fault has not waited.
            Some(Some(_)) if fault.is_none() => return Ok(Event::Timer),
            Some(waiting) => {
                if let Some(forged) = waiting.take() {
                    self.parts.replies.forget(forged.reply);
                }
            }
        }
        self.waiting[index] = self.parts.replies.keep().map(|reply| Waiting {
            reply,
            by_fault: fault.is_some(),
        });
        if self.running == Some(task) {
            self.running = None;
        }
        if let (Some(job), Some(client)) = (self.begun[index].take(), self.parts.clients.get(index))
        {
            trace::mark_of(client.context, Mark::End { job });
        }
        let event = match (fault, self.parts.overrun) {
            (None, _) => Event::Completed(task),
            (Some(Fault::Timeout { .. }), Overrun::Suspend) => Event::Overran(task),
            (Some(fault), _) => {
                observer.removed(task, fault);
                self.gone.push(task);
                Event::Removed(task)
            }
        };
        Ok(event)
    }

    /// What a task is answered to a timeout.
    fn go_on(&self, task: TaskId) -> Message {
        let client = self.parts.clients.get(task.0);
        let thread = client.and_then(|client| client.thread);
        let message = thread.map(|thread| timeout::go_on(thread).unwrap_or(Message::EMPTY));
        message.unwrap_or(Message::EMPTY)
    }

    /// Gives a task that waits the budget of a job. (The kernel refuses parameters only, which are the
    /// description's.)
    fn renew(&self, task: TaskId) {
        let client = self.parts.clients.get(task.0);
        let budget = client.and_then(|client| Some((client, client.budget?)));
        if let (Some((client, budget)), Some(control)) = (budget, self.parts.control) {
            let _ = control.configure(client.context, budget);
        }
    }
}
