//! The machine: a simulation by discrete events.
//!
//! Every core has a clock of its own. It runs the script of its thread until that, the timer or
//! another core makes it enter the kernel; there it waits for its turn, in the order of arrival, as
//! the fair lock has it. The event is handled by the kernel itself at the time at which the turn
//! comes, and then takes as long as its [`Costs`] say.
//!
//! The next thing that happens is the earliest of all cores; among those of one instant, the one of
//! the lowest core. Nothing else decides, so a run can be repeated to the tick.

use std::boxed::Box;
use std::collections::BTreeMap;

use sandglass_kernel::event::{self, Event, Next, Trap};
use sandglass_kernel::fast::inspect;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::time::account;
use sandglass_kernel::Kernel;

use crate::costs::{Costs, Path, Way};
use crate::execution::{Execution, Reached};
use crate::record::{Doing, Job, Record, Task};
use crate::system::{core_id, Member};

/// What a core does when it next stops doing what it does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Turn {
    /// Enters the kernel.
    Enters(Reason),
    /// Its script goes on with the next step.
    GoesOn,
}

/// Why a core enters the kernel. What comes first is noticed first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reason {
    Stopped,
    Timer,
    Look,
    Syscall,
}

/// Who runs on a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Running {
    task: Task,
    payer: Task,
    /// When its script reaches the end of a step, or the system call that it is at.
    until: u64,
    /// Whether it enters the kernel then.
    enters: bool,
}

/// One core.
#[derive(Clone, Copy, Default)]
struct Core {
    running: Option<Running>,
    /// When a look that another core asked for arrives.
    look: Option<u64>,
    /// When and why it left user code for the kernel, if another core had it do so before its turn.
    arrived: Option<(u64, Reason)>,
    /// While another core is in the kernel: when and why this one arrives there at the latest, if that is all that can be
    /// told, because a program runs here.
    expected: Option<(u64, Reason)>,
    /// Remote calls of either kind that were known of.
    stalls: u64,
    services: u64,
}

/// A system in parallel virtual time.
pub struct Simulation {
    k: Box<Kernel>,
    costs: Costs,
    cores: Vec<Core>,
    tasks: Vec<Execution>,
    /// Tasks by their threads, and by their contexts.
    by_thread: BTreeMap<u64, Task>,
    by_context: BTreeMap<u64, Task>,
    /// When the lock is given back.
    lock_free: u64,
    record: Record,
}

impl Simulation {
    pub(crate) fn new(
        k: Box<Kernel>,
        cores: usize,
        members: Vec<Member>,
        costs: Costs,
        seed: u64,
    ) -> Simulation {
        k.machine.set_ticks_per_remote_call(costs.remote_call);
        k.machine.set_ticks_per_look(costs.stretch);
        let mut simulation = Simulation {
            k,
            costs,
            cores: vec![Core::default(); cores],
            tasks: Vec::new(),
            by_thread: BTreeMap::new(),
            by_context: BTreeMap::new(),
            lock_free: 0,
            record: Record::new(cores),
        };
        for (i, member) in members.into_iter().enumerate() {
            let task = Task(i);
            let thread = member.thread.address().get();
            simulation.by_thread.insert(thread, task);
            if let Some(context) = member.context {
                simulation.by_context.insert(context.address().get(), task);
            }
            let execution = Execution::new(member, fastrand::Rng::with_seed(seed ^ i as u64));
            simulation.tasks.push(execution);
        }
        for core in 0..cores {
            simulation.know_remote_calls(core);
            simulation.expect_look(core, 0);
        }
        let first = simulation.k.core_of(core_id(0)).thread();
        simulation.run_on(0, first);
        simulation
    }

    /// The kernel, between events.
    pub fn kernel(&self) -> &Kernel {
        &self.k
    }

    /// The scheduling context that was made with `task`.
    ///
    /// # Panics
    /// If it is a passive server.
    pub fn context_of(&self, task: Task) -> Ref<SchedContext> {
        self.tasks[task.0].context().expect("no passive server")
    }

    /// Number of cores.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Lets everything happen that happens before `end`, in ticks, and tells what did.
    ///
    /// # Panics
    /// As [`Self::step`].
    pub fn run_until(mut self, end: u64) -> Record {
        while self.step(end) {}
        self.finish(end)
    }

    /// Lets everything happen until `jobs` jobs are completed, and tells what did.
    ///
    /// # Panics
    /// As [`Self::step`], and if they are not completed before `latest`, in ticks.
    pub fn run_until_done(mut self, jobs: usize, latest: u64) -> Record {
        while self.record.jobs.len() < jobs {
            assert!(self.step(latest), "not done by {latest}");
        }
        let end = self.record.jobs.last().map_or(0, |job| job.at);
        self.finish(end)
    }

    /// Lets the next thing happen, if that is before `end`; returns whether it was.
    ///
    /// # Panics
    /// If the kernel lets a thread or a context run that is none of the system's.
    pub fn step(&mut self, end: u64) -> bool {
        let Some((core, arrival, turn)) = self.next() else {
            return false;
        };
        match turn {
            Turn::GoesOn if arrival < end => self.go_on(core),
            Turn::Enters(reason) if arrival.max(self.lock_free) < end => {
                self.enter(core, arrival, reason);
            }
            _ => return false,
        }
        true
    }

    /// What happened until `end`, before which nothing more happens.
    pub fn finish(mut self, end: u64) -> Record {
        for core in 0..self.cores.len() {
            let (arrival, turn) = self.turn_of(core);
            let left = match turn {
                Turn::Enters(_) => arrival.min(end),
                Turn::GoesOn => end,
            };
            self.leave_user_code(core, left.max(self.clock(core)));
            let now = self.clock(core).max(end);
            self.record.passed(core, now, Doing::Waiting);
        }
        self.record
    }

    /// Until when `core` has come, in ticks.
    pub fn clock(&self, core: usize) -> u64 {
        self.record.clock(core)
    }

    /// Checks that every core does what the kernel wants of it: it runs the kernel's current thread, no
    /// better one is ready, and the timer fires in time for every release of a better one. A core that
    /// has to enter the kernel as soon as it can is excused.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        (0..self.cores.len()).try_for_each(|core| self.check_core(core))
    }

    fn check_core(&self, core: usize) -> Result<(), String> {
        let state = &self.cores[core];
        let (arrival, turn) = self.turn_of(core);
        let has_arrived = arrival <= self.lock_free && turn != Turn::GoesOn;
        if state.look.is_some() || has_arrived {
            return Ok(());
        }
        let wanted = self.k.core_of(core_id(core));
        let thread = wanted.thread();
        let task = thread.map(|thread| self.by_thread[&thread.address().get()]);
        let running = state.running.map(|running| running.task);
        if task != running {
            return Err(format!("core {core} runs {running:?}, not {task:?}"));
        }
        let priority = thread.map(|thread| thread.at(&self.k).priority());
        let ready = wanted.ready().highest();
        if ready > priority {
            return Err(format!(
                "core {core} runs priority {priority:?}, and {ready:?} is ready"
            ));
        }
        let due = wanted.release().earliest_above(priority);
        let deadline = self.k.machine.deadline_of(core_id(core));
        if deadline > due {
            return Err(format!(
                "core {core} wakes at {deadline}, and a better thread is due at {due}"
            ));
        }
        Ok(())
    }

    /// The core at which something happens next, when it arrives there, and what it is. A script's
    /// next step needs no turn in the kernel; so those that come before the next turn come first.
    fn next(&self) -> Option<(usize, u64, Turn)> {
        let turns = (0..self.cores.len()).map(|core| {
            let (arrival, turn) = self.turn_of(core);
            (core, arrival, turn)
        });
        turns.min_by_key(|&(core, arrival, turn)| match turn {
            Turn::GoesOn => (arrival, 0, arrival, core),
            Turn::Enters(_) => (arrival.max(self.lock_free), 1, arrival, core),
        })
    }

    /// When `core` stops doing what it does, and why.
    fn turn_of(&self, core: usize) -> (u64, Turn) {
        let state = &self.cores[core];
        if let Some((at, reason)) = state.arrived {
            return (at, Turn::Enters(reason));
        }
        let now = self.clock(core);
        let deadline = self.k.machine.deadline_of(core_id(core));
        let timer = (deadline.max(now), Turn::Enters(Reason::Timer));
        let look = state
            .look
            .map(|at| (at.max(now), Turn::Enters(Reason::Look)));
        let script = state.running.map(|running| {
            let turn = match running.enters {
                true => Turn::Enters(Reason::Syscall),
                false => Turn::GoesOn,
            };
            (running.until, turn)
        });
        [Some(timer), look, script]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(timer)
    }

    /// The script on `core` goes on with the next step.
    fn go_on(&mut self, core: usize) {
        let Some(running) = self.cores[core].running else {
            return;
        };
        self.leave_user_code(core, running.until);
        self.fetch(core);
    }

    /// `core` has done what it does outside of the kernel until `at`.
    fn leave_user_code(&mut self, core: usize, at: u64) {
        let ticks = at - self.clock(core);
        let doing = match self.cores[core].running {
            Some(Running { task, payer, .. }) => {
                self.tasks[task.0].compute(ticks);
                Doing::User { task, payer }
            }
            None => Doing::Idle,
        };
        self.record.passed(core, at, doing);
    }

    /// The thread on `core` goes on in user code.
    fn fetch(&mut self, core: usize) {
        let now = self.clock(core);
        let Some(running) = &mut self.cores[core].running else {
            return;
        };
        let task = running.task;
        let execution = &mut self.tasks[task.0];
        let reached = loop {
            match execution.fetch(&self.k, now, core) {
                Reached::Done => self.record.jobs.push(Job {
                    task,
                    core,
                    at: now,
                }),
                Reached::Surprise(words) => self
                    .record
                    .surprises
                    .push(format!("{task:?} received {words:?} until {now}")),
                reached => break reached,
            }
        };
        (running.until, running.enters) = match reached {
            Reached::Computation(ticks) => (now + ticks, false),
            _ => (now, true),
        };
    }

    /// `core` enters the kernel, at which it arrived at `arrival`, when its turn comes.
    fn enter(&mut self, core: usize, arrival: u64, reason: Reason) {
        let start = arrival.max(self.lock_free);
        self.leave_user_code(core, arrival);
        self.record.passed(core, start, Doing::Waiting);
        let (event, path) = self.event(core, reason);
        let id = core_id(core);
        self.expect_arrivals(core);
        self.show_progress(core, start);
        self.k.machine.set_clock_of(id, start);
        self.k.execute_on(id);
        if start > arrival {
            account::waited(&self.k, arrival);
        }
        account::update_time(&self.k, self.k.core());
        let is_straight = inspect::line(&self.k, event).is_some();
        let way = Way { path, is_straight };
        let next = event::handle(&mut self.k, event);
        let called = self.k.machine.clock_of(id);
        let end = called + self.costs.of(way);
        self.record.passed(core, end, Doing::Kernel(way));
        self.lock_free = end;
        let _ = self.know_remote_calls(core);
        for other in (0..self.cores.len()).filter(|&other| other != core) {
            self.serve_remote_calls(other, called);
            self.expect_look(other, end + self.costs.interrupt);
        }
        // Whoever runs here may have been stopped elsewhere just now.
        let thread = match next {
            Next::Thread(thread) => Some(thread),
            Next::Idle => None,
        };
        self.run_on(core, thread);
    }

    /// Tells the machine when the other cores arrive at the kernel, if the one that is in it lets them: it
    /// makes way for those that wait.
    fn expect_arrivals(&mut self, inside: usize) {
        for core in 0..self.cores.len() {
            self.cores[core].expected = self.latest_arrival(core);
            let at = (core != inside).then(|| self.arrival(core));
            self.k.machine.set_arrival(core_id(core), at);
        }
    }

    /// Registers of threads on other cores than the one in the kernel say how far they are at `now`.
    fn show_progress(&self, inside: usize, now: u64) {
        for core in (0..self.cores.len()).filter(|&core| core != inside) {
            if let Some(running) = self.cores[core].running.filter(|running| !running.enters) {
                let until = now.min(running.until).max(self.clock(core));
                self.tasks[running.task.0].show_progress(&self.k, until - self.clock(core));
            }
        }
    }

    /// When and why `core` arrives at the kernel at the latest, if it computes what a program wants: what that does next
    /// nobody can tell.
    fn latest_arrival(&self, core: usize) -> Option<(u64, Reason)> {
        let state = &self.cores[core];
        let (_, turn) = self.turn_of(core);
        let task = state.running?.task;
        if turn != Turn::GoesOn || !self.tasks[task.0].is_program() {
            return None;
        }
        let now = self.clock(core);
        let deadline = self.k.machine.deadline_of(core_id(core)).max(now);
        let look = state.look.map(|at| (at.max(now), Reason::Look));
        Some(look.into_iter().fold((deadline, Reason::Timer), Ord::min))
    }

    /// When `core` arrives at the kernel.
    fn arrival(&self, core: usize) -> u64 {
        let (until, turn) = self.turn_of(core);
        let running = match (turn, self.cores[core].running) {
            (Turn::GoesOn, Some(running)) => running,
            _ => return until,
        };
        let now = self.clock(core);
        let script = self.tasks[running.task.0].ticks_to_system_call(&self.k);
        let script = script.map_or(u64::MAX, |ticks| now + ticks);
        let deadline = self.k.machine.deadline_of(core_id(core)).max(now);
        let look = self.cores[core].look.map_or(u64::MAX, |at| at.max(now));
        script.min(deadline).min(look)
    }

    /// The event that `core` enters the kernel with, and the way that it goes there. The thread that
    /// wanted something may be gone: then it is a look.
    fn event(&mut self, core: usize, reason: Reason) -> (Event, Path) {
        let state = &mut self.cores[core];
        state.arrived = None;
        match reason {
            Reason::Stopped => (Event::Trap(Trap::Look), Path::Look),
            Reason::Look => {
                state.look = None;
                let _ = self.k.machine.take_interrupted(core_id(core));
                (Event::Trap(Trap::Look), Path::Look)
            }
            Reason::Timer => (Event::Trap(Trap::Timer), Path::Timer),
            Reason::Syscall => {
                let path = match state.running {
                    Some(running) => self.tasks[running.task.0].call(&self.k),
                    None => Path::Look,
                };
                (Event::Syscall, path)
            }
        }
    }

    /// `core` leaves the kernel to run `thread`.
    fn run_on(&mut self, core: usize, thread: Option<Ref<Tcb>>) {
        self.cores[core].running = thread.map(|thread| {
            let context = self.k.core_of(core_id(core)).context();
            let context = context.expect("somebody pays").address().get();
            Running {
                task: self.by_thread[&thread.address().get()],
                payer: self.by_context[&context],
                until: 0,
                enters: false,
            }
        });
        self.fetch(core);
    }

    /// `core` was called by the one in the kernel, which had its answer at `at`.
    fn serve_remote_calls(&mut self, core: usize, at: u64) {
        let (stalls, services) = self.know_remote_calls(core);
        if self.cores[core].running.is_none() {
            return;
        }
        if stalls > 0 {
            self.stop(core);
        } else if services > 0 && self.go_on_until(core, at) {
            self.leave_user_code(core, at.max(self.clock(core)));
            let end = self.clock(core) + self.costs.serve;
            self.record.passed(core, end, Doing::Serving);
            self.fetch(core);
        }
    }

    /// `core` was stalled: its thread does not run there any more. If it had arrived at the kernel
    /// before, it is there with what it came for.
    fn stop(&mut self, core: usize) {
        let stalled = self.k.machine.stalled_at(core_id(core));
        let at = stalled.max(self.clock(core));
        let arrived = if let Some(expected) = self.cores[core].expected {
            // The kernel has charged its thread until then. A system call that it comes to meanwhile is made when the
            // thread runs again.
            let arrived = expected.min((at, Reason::Stopped));
            let _ = self.go_on_until(core, arrived.0);
            arrived
        } else if self.go_on_until(core, at) {
            (at, Reason::Stopped)
        } else {
            match self.turn_of(core) {
                (at, Turn::Enters(reason)) => (at, reason),
                (_, Turn::GoesOn) => (at, Reason::Stopped),
            }
        };
        self.leave_user_code(core, arrived.0);
        self.cores[core].arrived = Some(arrived);
        self.cores[core].running = None;
    }

    /// Lets the script on `core` go on until `at`; returns whether it has not arrived at the kernel
    /// by then.
    #[must_use]
    fn go_on_until(&mut self, core: usize, at: u64) -> bool {
        let mut turn = self.turn_of(core);
        while turn.1 == Turn::GoesOn && turn.0 <= at {
            self.go_on(core);
            turn = self.turn_of(core);
        }
        turn.0 > at
    }

    /// Takes notice of the remote calls that `core` has got; returns how many stalls and services
    /// are new.
    fn know_remote_calls(&mut self, core: usize) -> (u64, u64) {
        let machine = &self.k.machine;
        let (stalls, services) = (
            machine.stalls_of(core_id(core)),
            machine.services_of(core_id(core)),
        );
        let state = &mut self.cores[core];
        let new = (stalls - state.stalls, services - state.services);
        (state.stalls, state.services) = (stalls, services);
        new
    }

    /// If the kernel has asked `core` to look, the request arrives at `at`, or earlier if one is on its
    /// way.
    fn expect_look(&mut self, core: usize, at: u64) {
        if self.k.machine.is_interrupted(core_id(core)) {
            self.cores[core].look.get_or_insert(at);
        }
    }
}
