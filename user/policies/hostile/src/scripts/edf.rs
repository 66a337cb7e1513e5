//! The deadline scheduler (`sandglass-edf`), with tasks that overrun, end early, sleep in their jobs, wake whenever
//! they like, fault, and never begin. Around it is its driver's part: one processor, budgets of jobs, and a thread below
//! the tasks that notices when none of them can run.
//!
//! The bound: no job of an honest task ends after its deadline if, for each length t of time that is at least the shortest deadline of
//! those who do not sleep, what can be due within it is at most t:
//! - of a task that only runs, honest or not, jobs that are released and due within t: dbf(t);
//! - of one that may sleep, ⌈(t + J) / T⌉ + 1 budgets, where J is the sum of all budgets: what is left of a job that wakes
//!   late, those of its releases within t, and a release that it came late to, unnoticed, since others ran
//!   meanwhile;
//! - and if there is such a one, a job of each task with a deadline longer than t, which had begun before, and runs
//!   while the sleeper is thought to.
//!
//! Whether or not that holds, each decision is what a look at all jobs says, and jobs are released on time.

use std::collections::VecDeque;

use sandglass_edf::{Decision, Event, Job, Late, Parameters, Scheduler, TaskId};

use crate::promise::promise;
use crate::{Broken, Held, Journal, Source};

pub const WHAT: &str = "tasks of the deadline scheduler, and what they do in their jobs";

const ADMITTED: &str = "a set with a bound";
const WITH_SLEEPER: &str = "a set with a bound and a sleeper";
const MET: &str = "a deadline is met";
const MISSED: &str = "a deadline without a bound is missed";
const OVERRAN: &str = "a budget runs out";
const EARLY: &str = "a rogue's job ends";
const SLEEPS: &str = "a rogue sleeps in its job";
const NOTICED: &str = "nobody can run";
const WAKES: &str = "a rogue wakes";
const BESIDE: &str = "a rogue runs beside another's job";
const INVERSION: &str = "a job goes on while a sleeper is thought to run";
const REMOVED: &str = "a rogue is removed";
const NEVER_CALLED: &str = "a rogue has not called";
const PREEMPTED: &str = "a job is preempted";

pub const SITUATIONS: &[&str] = &[
    ADMITTED,
    WITH_SLEEPER,
    MET,
    MISSED,
    OVERRAN,
    EARLY,
    SLEEPS,
    NOTICED,
    WAKES,
    BESIDE,
    INVERSION,
    REMOVED,
    NEVER_CALLED,
    PREEMPTED,
];

/// Longest time in ticks for which the bound is looked at; sets that need more have none.
const HORIZON: u64 = 4_000;

/// What a task may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Works at most its budget, and ends its job.
    Honest,
    /// Works, ends its job or not, faults; but does not sleep.
    Runner,
    /// Anything.
    Sleeper,
}

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Thread {
    /// Waits for its next job.
    Waits,
    /// Is able to run.
    Ready,
    /// Waits for something else.
    Asleep,
    Gone,
}

/// A task, and what is known of it without asking the scheduler. Times are in ticks.
struct Task {
    kind: Kind,
    parameters: Parameters,
    budget: u64,
    thread: Thread,
    /// Work that is left of an honest task's job.
    needs: u64,
    budget_left: u64,
    /// When and how much the kernel gives back of what was used.
    refills: VecDeque<(u64, u64)>,
    /// Number of the first job that has not ended.
    job: u64,
    /// The job is released: the scheduler has had the time to notice.
    is_released: bool,
    /// It was noticed that the job does not run.
    is_blocked: bool,
}

impl Task {
    fn new(source: &mut Source) -> Self {
        let kind = source.one_of(&[Kind::Honest, Kind::Honest, Kind::Runner, Kind::Sleeper]);
        let most = source.one_of(&[2, 6]);
        let budget = source.number(1..=most);
        let longest = source.one_of(&[20, 120]);
        let period = budget + source.number(1..=longest);
        let deadline = match source.once_in(2) {
            true => period,
            false => source.number(budget..=period),
        };
        Self {
            kind,
            parameters: Parameters {
                period,
                deadline,
                offset: source.number(0..=period),
            },
            budget,
            thread: Thread::Waits,
            needs: 0,
            budget_left: budget,
            refills: VecDeque::new(),
            job: 0,
            is_released: false,
            is_blocked: false,
        }
    }

    fn release(&self, start: u64) -> u64 {
        start + self.parameters.offset + self.job * self.parameters.period
    }

    fn deadline(&self, start: u64) -> u64 {
        self.release(start) + self.parameters.deadline
    }

    /// The kernel gives back what is due at `now`.
    fn refill(&mut self, now: u64) {
        while let Some(&(at, amount)) = self.refills.front() {
            if at > now {
                return;
            }
            self.refills.pop_front();
            self.budget_left = self.budget.min(self.budget_left + amount);
        }
    }

    /// Time in ticks that jobs which are released and due within `t` take.
    fn demand(&self, t: u64) -> u64 {
        let Parameters {
            period, deadline, ..
        } = self.parameters;
        match t.checked_sub(deadline) {
            Some(rest) => (rest / period + 1) * self.budget,
            None => 0,
        }
    }
}

/// Whether the set keeps the bound.
fn is_admitted(tasks: &[Task]) -> bool {
    let budgets: u64 = tasks.iter().map(|task| task.budget).sum();
    let sleeps = tasks.iter().any(|task| task.kind == Kind::Sleeper);
    let of = |task: &Task, t: u64| {
        let Parameters {
            period, deadline, ..
        } = task.parameters;
        let begun = match sleeps && deadline > t {
            true => task.budget,
            false => 0,
        };
        match task.kind {
            Kind::Sleeper => ((t + budgets).div_ceil(period) + 1) * task.budget,
            Kind::Honest | Kind::Runner => task.demand(t) + begun,
        }
    };
    let utilisation: f64 = tasks
        .iter()
        .map(|task| task.budget as f64 / task.parameters.period as f64)
        .sum();
    // What is due within t is at most utilisation · t and this, for any t.
    let constant: f64 = tasks
        .iter()
        .map(|task| {
            let rate = task.budget as f64 / task.parameters.period as f64;
            3.0 * task.budget as f64 + rate * (task.parameters.period + budgets) as f64
        })
        .sum();
    let enough = constant / (1.0 - utilisation);
    let within = |t: u64| tasks.iter().map(|task| of(task, t)).sum::<u64>() <= t;
    // A time at whose end a job is late begins with the release of a job that is due within it.
    let sleeper = |task: &&Task| task.kind == Kind::Sleeper;
    let others = tasks.iter().filter(|task| !sleeper(task));
    let Some(shortest) = others.map(|task| task.parameters.deadline).min() else {
        return false;
    };
    utilisation < 1.0 && enough < HORIZON as f64 && (shortest..=enough as u64 + 1).all(within)
}

struct World {
    scheduler: Scheduler,
    late: Late,
    tasks: Vec<Task>,
    start: u64,
    now: u64,
    decision: Decision,
    /// Whom the driver let run last, while it does not wait.
    running: Option<usize>,
    is_admitted: bool,
    /// A sleeper wakes at one of so many looks.
    laziness: u64,
}

pub fn play(source: &mut Source, journal: &mut Journal) -> Held {
    let mut world = World::new(source, journal);
    world.event(Event::Timer, source, journal)?;
    while !source.is_empty() {
        world.wake(source, journal);
        match world.runner(source, journal) {
            Some(runner) => world.run(runner, source, journal)?,
            None => world.idle(source, journal)?,
        }
    }
    Ok(())
}

impl World {
    fn new(source: &mut Source, journal: &mut Journal) -> Self {
        let late = source.one_of(&[Late::CatchUp, Late::Skip]);
        let start = source.number(0..=100);
        let count = source.number(1..=5);
        let mut tasks: Vec<Task> = (0..count).map(|_| Task::new(source)).collect();
        for (number, task) in tasks.iter_mut().enumerate() {
            journal.note(format_args!(
                "task {number}: {:?}, budget {}, {:?}",
                task.kind, task.budget, task.parameters
            ));
            if task.kind == Kind::Sleeper && source.once_in(4) {
                journal.saw(NEVER_CALLED);
                journal.note(format_args!("task {number} has not called"));
                task.thread = source.one_of(&[Thread::Ready, Thread::Asleep]);
            }
        }
        let parameters: Vec<_> = tasks.iter().map(|task| task.parameters).collect();
        let is_admitted = is_admitted(&tasks);
        if is_admitted {
            journal.saw(ADMITTED);
            if tasks.iter().any(|task| task.kind == Kind::Sleeper) {
                journal.saw(WITH_SLEEPER);
            }
        }
        journal.note(format_args!("{late:?}; there is a bound: {is_admitted}"));
        Self {
            scheduler: Scheduler::new(&parameters, late, start),
            late,
            tasks,
            start,
            now: start,
            decision: Decision {
                run: None,
                wake_at: None,
            },
            running: None,
            is_admitted,
            laziness: source.one_of(&[2, 8, 32, 128]),
        }
    }

    /// The scheduler is told; the driver does what it decides.
    fn event(&mut self, event: Event, source: &mut Source, journal: &mut Journal) -> Held {
        self.note(event);
        self.decision = self.scheduler.step(self.now, event);
        journal.step(format_args!(
            "at {}: {event:?} -> {:?}",
            self.now, self.decision
        ));
        for task in &mut self.tasks {
            task.is_released |= task.thread != Thread::Gone && task.release(self.start) <= self.now;
        }
        self.check_decision()?;
        let Some(job) = self.decision.run else {
            return Ok(());
        };
        let number = job.task.0;
        self.running = Some(number);
        let preempts = |(other, task): (usize, &Task)| {
            other != number && task.thread == Thread::Ready && task.kind == Kind::Honest
        };
        if self.tasks.iter().enumerate().any(preempts) {
            journal.saw(PREEMPTED);
        }
        let task = &mut self.tasks[number];
        if task.thread == Thread::Waits {
            // It begins, with a budget filled anew.
            task.thread = Thread::Ready;
            task.budget_left = task.budget;
            task.refills.clear();
            task.needs = match source.once_in(2) {
                true => task.budget,
                false => source.number(1..=task.budget),
            };
        }
        Ok(())
    }

    /// What an event means for the jobs.
    fn note(&mut self, event: Event) {
        let skips = self.late == Late::Skip;
        match event {
            Event::Timer => {}
            Event::Blocked(TaskId(id)) => self.tasks[id].is_blocked = true,
            Event::Removed(TaskId(id)) => {
                let task = &mut self.tasks[id];
                (task.thread, task.is_released) = (Thread::Gone, false);
            }
            Event::Completed(TaskId(id)) | Event::Overran(TaskId(id)) => {
                let (start, now) = (self.start, self.now);
                let task = &mut self.tasks[id];
                if task.is_released {
                    task.job += 1;
                    while (skips || task.is_blocked) && task.release(start) < now {
                        task.job += 1;
                    }
                    (task.is_released, task.is_blocked) = (false, false);
                }
            }
        }
        if let Event::Completed(TaskId(id)) | Event::Overran(TaskId(id)) | Event::Removed(TaskId(id)) =
            event
        {
            if self.running == Some(id) {
                self.running = None;
            }
        }
    }

    /// The decision is what a look at all jobs says.
    fn check_decision(&self) -> Held {
        let can_run = |task: &Task| task.is_released && !task.is_blocked;
        let jobs = self.tasks.iter().enumerate();
        let obvious = jobs
            .filter(|(_, task)| can_run(task))
            .min_by_key(|(number, task)| (task.deadline(self.start), *number))
            .map(|(number, task)| Job {
                task: TaskId(number),
                number: task.job,
                release: task.release(self.start),
                deadline: task.deadline(self.start),
            });
        promise!(
            self.decision.run == obvious,
            "{:?} is let run, not {obvious:?}",
            self.decision.run
        );
        let waits = |task: &&Task| task.thread != Thread::Gone && !task.is_released;
        let to_come = self.tasks.iter().filter(waits);
        let next = to_come.map(|task| task.release(self.start)).min();
        promise!(
            next.is_none_or(|next| self
                .decision
                .wake_at
                .is_some_and(|at| at > self.now && at <= next)),
            "the next release is at {next:?}, looked again is at {:?}",
            self.decision.wake_at
        );
        Ok(())
    }

    /// No honest job is behind its deadline, at any time, if there is a bound.
    fn check_deadlines(&self) -> Held {
        let is_late = |(_, task): &(usize, &Task)| {
            task.kind == Kind::Honest && self.now > task.deadline(self.start)
        };
        let late = self.tasks.iter().enumerate().find(is_late);
        if let (true, Some((number, task))) = (self.is_admitted, late) {
            let at = task.deadline(self.start);
            return Err(Broken(format!(
                "at {}, job {} of task {number} has not met its deadline at {at}",
                self.now, task.job
            )));
        }
        Ok(())
    }

    /// Sleepers may wake.
    fn wake(&mut self, source: &mut Source, journal: &mut Journal) {
        for (number, task) in self.tasks.iter_mut().enumerate() {
            if task.thread == Thread::Asleep && source.once_in(self.laziness) {
                task.thread = Thread::Ready;
                journal.saw(WAKES);
                journal.note(format_args!("at {}: task {number} wakes", self.now));
            }
        }
    }

    /// The thread that runs: the one that is let run, if it can; one that woke may be beside it. If it cannot, those that
    /// have begun and were preempted.
    fn runner(&self, source: &mut Source, journal: &mut Journal) -> Option<usize> {
        let is_ready = |number: &usize| self.tasks[*number].thread == Thread::Ready;
        let chosen = self.running.filter(is_ready);
        let beside: Vec<usize> = (0..self.tasks.len())
            .filter(is_ready)
            .filter(|&number| chosen.is_none() || self.tasks[number].kind == Kind::Sleeper)
            .filter(|&number| Some(number) != chosen)
            .collect();
        if beside.is_empty() || chosen.is_some() && !source.once_in(2) {
            return chosen;
        }
        let runner = source.one_of(&beside);
        match chosen {
            Some(_) => journal.saw(BESIDE),
            None if self.running.is_some() => journal.saw(INVERSION),
            None => {}
        }
        Some(runner)
    }

    /// A thread runs, until the alarm at the latest; then something happens.
    fn run(&mut self, number: usize, source: &mut Source, journal: &mut Journal) -> Held {
        let until_alarm = self
            .decision
            .wake_at
            .map_or(u64::MAX, |at| at.saturating_sub(self.now));
        let task = &mut self.tasks[number];
        task.refill(self.now);
        let until_end = match task.kind {
            Kind::Honest => task.needs,
            Kind::Runner | Kind::Sleeper => task.budget_left,
        };
        let longest = until_alarm.min(until_end);
        let ticks = match source.once_in(3) {
            true => source.number(0..=longest),
            false => longest,
        };
        task.budget_left -= ticks;
        task.needs = task.needs.saturating_sub(ticks);
        task.refills
            .push_back((self.now + task.parameters.period, ticks));
        self.now += ticks;
        journal.note(format_args!("task {number} runs for {ticks}"));
        match task.kind {
            Kind::Honest if ticks == until_end => self.completes(number, source, journal)?,
            Kind::Honest => self.event(Event::Timer, source, journal)?,
            _ if ticks == until_end => {
                journal.saw(OVERRAN);
                self.tasks[number].thread = Thread::Waits;
                self.event(Event::Overran(TaskId(number)), source, journal)?;
            }
            kind => self.misbehave(number, kind, source, journal)?,
        }
        self.check_deadlines()
    }

    fn completes(&mut self, number: usize, source: &mut Source, journal: &mut Journal) -> Held {
        let late = self.now > self.tasks[number].deadline(self.start);
        // Else there is a bound, and it is broken: said behind this step.
        if !late {
            journal.saw(MET);
        } else if !self.is_admitted {
            journal.saw(MISSED);
        } else {
            self.check_deadlines()?;
        }
        self.tasks[number].thread = Thread::Waits;
        self.event(Event::Completed(TaskId(number)), source, journal)
    }

    /// A rogue that runs does something else.
    fn misbehave(
        &mut self,
        number: usize,
        kind: Kind,
        source: &mut Source,
        journal: &mut Journal,
    ) -> Held {
        match source.number(0..=7) {
            0 | 1 => {
                journal.saw(EARLY);
                self.tasks[number].thread = Thread::Waits;
                self.event(Event::Completed(TaskId(number)), source, journal)
            }
            2..=4 if kind == Kind::Sleeper => {
                journal.saw(SLEEPS);
                journal.note(format_args!("task {number} sleeps"));
                self.tasks[number].thread = Thread::Asleep;
                Ok(())
            }
            5 if source.once_in(8) => {
                journal.saw(REMOVED);
                self.event(Event::Removed(TaskId(number)), source, journal)
            }
            _ => self.event(Event::Timer, source, journal),
        }
    }

    /// No thread can run: the one below says so, or it is waited for the alarm.
    fn idle(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        if let Some(number) = self.running.take() {
            journal.saw(NOTICED);
            return self.event(Event::Blocked(TaskId(number)), source, journal);
        }
        let until_alarm = match self.decision.wake_at {
            Some(at) => at.saturating_sub(self.now),
            None => 1,
        };
        self.now += match source.once_in(3) {
            true => source.number(0..=until_alarm),
            false => until_alarm,
        };
        self.event(Event::Timer, source, journal)?;
        self.check_deadlines()
    }
}
