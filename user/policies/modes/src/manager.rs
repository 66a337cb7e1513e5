//! The mode manager: hears of budgets that ran out and of idle instants, and changes what the mode
//! changes.
//!
//! # Suspended is a priority
//!
//! A suspended task has the lowest priority there is, below that of the manager's idle thread. It
//! does not run: whenever no other thread does, the idle thread runs, and the mode falls. What it was
//! doing stays as it is, to the instruction. A task that is suspended while a server works for it
//! delays nobody: the server continues at its own priority on the task's time, and becomes
//! passive again. (The system call Suspend would abort the task's call, and leave the server
//! without who lent it its time.)

use alloc::format;
use alloc::vec::Vec;

use sandglass::cap::{
    nb_send_recv, Endpoint, Notification, Reply, SchedContext, SchedControl, SchedParams, Tcb,
};
use sandglass::fault::Fault;
use sandglass::timeout;
use sandglass::trace::{self, Mark};
use sandglass::{Environment, Error, Message, Received};
use sandglass_description::policy::modes::{badge, Modes, Task};
use sandglass_description::policy::Table;

use crate::decide::{self, Mode, Overrun};

/// What a manager received, and did about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The budget of a task, by its number in the table, ran out, and the mode rose.
    Raised { task: usize, from: Mode, to: Mode },
    /// The budget of a task ran out, and it waits for its next period.
    Throttled { task: usize },
    /// The processor idled, and the mode fell to the lowest.
    Fell { from: Mode },
    /// The processor idled in the lowest mode.
    Idle,
    /// Tasks have ended, or are stopped by a fault: of each its [bit](badge::bit).
    Ended { tasks: u64 },
    /// What arrived is no timeout of a task. Nothing was done: who sent it, waits.
    Other(Received),
}

/// What the manager has of a task.
struct Objects {
    tcb: Option<Tcb>,
    /// If its budget depends on the mode.
    time: Option<(SchedContext, SchedControl)>,
}

/// The manager of a system's modes.
pub struct Manager {
    table: Modes,
    tasks: Vec<Objects>,
    mode: Mode,
    /// Tasks that have ended, by their [bits](badge::bit).
    ended: u64,
    /// Its own thread, whose maximum controlled priority bounds what it can set.
    authority: Tcb,
    /// Signalled when the idle thread waits for the processor to idle, and by it.
    watch: Notification,
    idle: Notification,
    timeouts: Endpoint,
    fault: Reply,
}

/// What the idle thread runs: see [`Manager::idle`].
pub struct IdleThread {
    watch: Notification,
    idle: Notification,
}

impl IdleThread {
    /// Tells the manager of idle instants, one for each time that it asks.
    pub fn run(self) {
        loop {
            self.watch.wait();
            // This thread has the lowest priority of those that run: no other thread is ready.
            self.idle.signal();
        }
    }
}

impl Manager {
    /// Looks up all that belongs to the modes.
    ///
    /// # Panics
    /// The component is not the manager of `[modes]`.
    pub fn new(env: &'static Environment) -> Self {
        // SAFETY: the builder packs the table as a file, which nobody writes.
        let bytes = unsafe { env.memory(Modes::NAME).as_bytes() };
        let table = Modes::decode(bytes).expect("the table is one of modes");
        let find = |task: &Task| Objects {
            tcb: env.find_capability(&format!("{}.tcb", task.name)),
            time: env
                .find_capability(&format!("{}.context", task.name))
                .zip(env.find_capability(&format!("sched-control.{}", task.core))),
        };
        Self {
            tasks: table.tasks.iter().map(find).collect(),
            mode: 0,
            ended: 0,
            authority: env.capability(&format!("{}.tcb", table.manager)),
            watch: env.capability("modes.watch"),
            idle: env.capability("modes.idle"),
            timeouts: env.capability("timeouts"),
            fault: env.capability("timeouts.reply"),
            table,
        }
    }

    /// What the manager's thread `idle` runs.
    pub const fn idle(&self) -> IdleThread {
        IdleThread {
            watch: self.watch,
            idle: self.idle,
        }
    }

    pub const fn table(&self) -> &Modes {
        &self.table
    }

    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Lets idle instants arrive where timeouts do. To be called by the manager's main thread.
    ///
    /// # Errors
    /// The kernel refuses: the main thread has a bound notification already.
    pub fn begin(&self) -> Result<(), Error> {
        self.authority.bind_notification(self.idle)
    }

    /// Manages the modes for good, and reports each event to `observe`. `ready` is signalled when
    /// the manager listens.
    ///
    /// # Panics
    /// The kernel refuses something, which the description rules out.
    pub fn serve(mut self, ready: Notification, mut observe: impl FnMut(&Self, Event)) -> ! {
        self.begin().expect("the main thread is free");
        let mut received = nb_send_recv(ready, Message::EMPTY, self.timeouts, self.fault);
        loop {
            let event = self
                .handle(&received)
                .expect("the manager has what its tasks take");
            observe(&self, event);
            received = self.receive();
        }
    }

    /// Waits for what [`Self::handle`] handles.
    #[inline]
    pub fn receive(&self) -> Received {
        self.timeouts.recv(self.fault)
    }

    /// Handles what was received.
    ///
    /// # Errors
    /// The kernel refuses; some tasks may then be as in another mode.
    pub fn handle(&mut self, received: &Received) -> Result<Event, Error> {
        if received.badge & badge::END != 0 {
            return Ok(self.tasks_ended(received.badge));
        }
        if received.badge & badge::IDLE != 0 {
            return self.fall();
        }
        let task = decide::find(&self.table, received.badge);
        let (Some(Fault::Timeout { .. }), Some(task)) = (Fault::decode(&received.message), task)
        else {
            return Ok(Event::Other(*received));
        };
        let event = match decide::overrun(&self.table.tasks[task], self.mode) {
            Overrun::Raise { from, to } => {
                self.enter(to)?;
                self.watch.signal();
                Event::Raised { task, from, to }
            }
            Overrun::Throttle => Event::Throttled { task },
        };
        // It continues as soon as it has time.
        self.fault.send(self.go_on(task)?);
        Ok(event)
    }

    /// What a task is answered to a timeout.
    fn go_on(&self, task: usize) -> Result<Message, Error> {
        let calls_servers = self.table.tasks[task].calls_servers;
        let thread = self.tasks[task].tcb.filter(|_| calls_servers);
        thread.map_or(Ok(Message::EMPTY), timeout::go_on)
    }

    /// Tasks have ended. They are ignored from now on; a mode that rose for them falls as usual, when the
    /// processor idles.
    fn tasks_ended(&mut self, signals: u64) -> Event {
        if signals & badge::IDLE != 0 {
            // Both came at once: the other one comes again.
            self.idle.signal();
        }
        let tasks = signals & !(badge::END | badge::IDLE);
        self.ended |= tasks;
        Event::Ended { tasks }
    }

    /// Whether a task has ended, as far as its bit tells.
    fn has_ended(&self, task: usize) -> bool {
        task + 1 < badge::BITS && self.ended & badge::bit(task) != 0
    }

    /// The processor idles: no task of any level has work pending.
    fn fall(&mut self) -> Result<Event, Error> {
        let from = self.mode;
        if from == 0 {
            return Ok(Event::Idle);
        }
        self.enter(0)?;
        Ok(Event::Fell { from })
    }

    /// Changes the mode, one task after the other.
    fn enter(&mut self, mode: Mode) -> Result<(), Error> {
        let from = core::mem::replace(&mut self.mode, mode);
        trace::mark(Mark::Mode {
            from: from.into(),
            to: mode.into(),
        });
        for (number, (task, objects)) in self.table.tasks.iter().zip(&self.tasks).enumerate() {
            if self.has_ended(number) {
                continue;
            }
            let change = decide::change(task, from, mode);
            if let (Some(priority), Some(tcb)) = (change.priority, objects.tcb) {
                tcb.set_priority(self.authority, priority)?;
            }
            if let (Some(budget_us), Some((context, control))) = (change.budget_us, objects.time) {
                control.configure(
                    context,
                    SchedParams {
                        extra_refills: task.extra_refills,
                        badge: task.badge,
                        sporadic: task.sporadic,
                        ..SchedParams::new(budget_us, task.period_us)
                    },
                )?;
            }
        }
        Ok(())
    }
}
