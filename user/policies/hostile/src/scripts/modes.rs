//! Criticality modes (`sandglass-modes`): tasks on one processor whose budgets the kernel enforces, critical ones that
//! use up whatever they get, and the manager around the decisions.
//!
//! - The mode rises only for the timeout of a critical task, to the lowest in which that has a larger budget, and so not
//!   above its level; whoever else times out, or sends what looks like it, changes nothing.
//! - After each change everybody is as the mode says, and at an idle instant as described.
//! - A job of an honest task of level L that needs no more than its budget at L, under modes that do not rise above L,
//!   is done within R, unless it waits for its own budget, where R is the least with
//!
//!   R = B + Σ (⌈R / T⌉ + 1 + L + 1) · b over those of at least its priority,
//!
//!   if that is not above its period; B is its own budget at L, and T and b are the period and the largest budget
//!   under modes up to L of each other. (Each change of the mode fills a budget anew that ran out. It changes at most L + 1 times between two
//!   idle instants, and there is none in a job.)

use std::collections::VecDeque;

use sandglass_description::policy::modes::{Below, Modes, Task as Described, SUSPENDED};
use sandglass_modes::decide::{self, Mode, Overrun};

use crate::promise::promise;
use crate::{Broken, Held, Journal, Source};

pub const WHAT: &str = "tasks of several criticalities, and what they do with their budgets";

const RAISED: &str = "the mode rises";
const SKIPPED_A_LEVEL: &str = "the mode rises by several levels";
const THROTTLED: &str = "the largest budget runs out";
const FELL: &str = "the mode falls";
const SUSPENDED_TASK: &str = "a task is suspended";
const DEMOTED: &str = "a task is demoted";
const STRANGER: &str = "a timeout of nobody";
const MET: &str = "a job with a bound is done";
const ABOVE: &str = "a job's level is passed by the mode";
const OWN_BUDGET: &str = "an honest job waits for its own budget";
const OWED: &str = "a larger budget comes a period late";
const BACKLOG: &str = "a job without a bound is late";

pub const SITUATIONS: &[&str] = &[
    RAISED,
    SKIPPED_A_LEVEL,
    THROTTLED,
    FELL,
    SUSPENDED_TASK,
    DEMOTED,
    STRANGER,
    MET,
    ABOVE,
    OWN_BUDGET,
    OWED,
    BACKLOG,
];

const LEVELS: u32 = 4;
/// Of a task that is demoted; others are above.
const LOW_PRIORITY: u8 = 2;

/// A task on its processor. Times are in ticks, which are the table's µs.
struct Task {
    described: Described,
    is_honest: bool,
    /// As the manager has set them.
    priority: u8,
    budget: u64,
    /// What the kernel lets it use now.
    budget_left: u64,
    /// When and how much it gives back of what was used.
    refills: VecDeque<(u64, u64)>,
    /// Work of the current job.
    needs: u64,
    release: u64,
    /// The mode was above its level in this job, or it waits for its own budget: no bound.
    is_spoilt: bool,
    /// The mode rose in this job, for somebody else.
    is_owed: bool,
    /// Ticks from release to end at most, if there is such a bound.
    bound: Option<u64>,
}

impl Task {
    /// The kernel gives back what is due at `now`.
    fn refill(&mut self, now: u64) {
        while let Some(&(at, amount)) = self.refills.front() {
            if at > now {
                return;
            }
            self.refills.pop_front();
            self.budget_left += amount;
        }
    }

    /// An honest job that waits for its own budget has no bound.
    fn look_at_budget(&mut self, journal: &mut Journal) {
        let waits = self.needs > 0 && self.budget_left == 0;
        if !waits || !self.is_honest || self.is_spoilt {
            return;
        }
        self.is_spoilt = true;
        journal.saw(match self.is_owed {
            true => OWED,
            false => OWN_BUDGET,
        });
    }

    /// As the kernel has it: a task that waits (for its next job, or the answer to its fault) has the whole of its new
    /// budget at once. One that runs keeps its history: it has what it had, and the rest a period later.
    fn configure(&mut self, budget: u64, runs: bool, now: u64) {
        self.budget = budget;
        if !runs {
            self.budget_left = budget;
            self.refills.clear();
            return;
        }
        let head = match (self.budget_left, self.refills.front()) {
            (0, Some(&(at, amount))) => (at, amount),
            (left, _) => (now, left),
        };
        let (at, amount) = (head.0, head.1.min(budget));
        self.budget_left = 0;
        self.refills = [(at, amount), (at + self.described.period_us, budget - amount)].into();
        self.refill(now);
    }
}

struct World {
    table: Modes,
    tasks: Vec<Task>,
    mode: Mode,
    now: u64,
}

pub fn play(source: &mut Source, journal: &mut Journal) -> Held {
    let mut world = World::new(source, journal);
    while !source.is_empty() {
        world.release(source, journal);
        match world.runner() {
            Some(runner) => world.run(runner, source, journal)?,
            None => world.idle(journal)?,
        }
        if source.once_in(16) {
            world.stranger(source, journal)?;
        }
    }
    Ok(())
}

/// The largest budget of a task under modes up to `level`, ticks.
fn largest(task: &Described, level: u32) -> u64 {
    let budgets = (0..=level).map(|mode| decide::budget_us(task, mode));
    budgets.max().unwrap_or(0)
}

/// The bound on a task's response, in ticks; `None` if it is above its period.
fn bound(tasks: &[Described], number: usize) -> Option<u64> {
    let task = &tasks[number];
    let level = task.criticality;
    let own = largest(task, level);
    let above = |(other, of): &(usize, &Described)| {
        *other != number && of.priority >= task.priority && of.period_us > 0
    };
    let mut response = own;
    while response <= task.period_us {
        let others = tasks.iter().enumerate().filter(above);
        let interference: u64 = others
            .map(|(_, of)| {
                let fills = response.div_ceil(of.period_us) + 2 + u64::from(level);
                fills * largest(of, level)
            })
            .sum();
        if own + interference == response {
            return Some(response);
        }
        response = own + interference;
    }
    None
}

fn described(number: u64, source: &mut Source) -> Described {
    let criticality = source.number(0..=u64::from(LEVELS) - 1) as u32;
    let most = source.one_of(&[2, 12]);
    let mut budgets_us = vec![source.number(1..=most)];
    for _ in 0..source.number(0..=criticality.into()) {
        let last = budgets_us.last().copied().unwrap_or(0);
        budgets_us.push(last + source.number(0..=most));
    }
    let longest = budgets_us.last().copied().unwrap_or(0);
    let room = source.one_of(&[10, 400]);
    // Who has no badge does not tell the manager.
    let is_heard = source.once_in(4);
    Described {
        name: format!("task-{number}"),
        criticality,
        fault_badge: if is_heard { 0 } else { number + 1 },
        priority: LOW_PRIORITY + 1 + source.number(0..=4) as u8,
        below: source.one_of(&[Below::Suspend, Below::Demote(LOW_PRIORITY), Below::Keep]),
        period_us: longest + source.number(1..=room),
        budgets_us,
        core: 0,
        extra_refills: 0,
        sporadic: false,
        badge: 0,
        calls_servers: false,
    }
}

impl World {
    fn new(source: &mut Source, journal: &Journal) -> Self {
        let count = source.number(1..=5);
        let tasks: Vec<_> = (0..count).map(|number| described(number, source)).collect();
        let make = |(number, task): (usize, &Described)| Task {
            is_honest: false,
            priority: task.priority,
            budget: task.budgets_us[0],
            budget_left: task.budgets_us[0],
            refills: VecDeque::new(),
            needs: 0,
            release: 0,
            is_spoilt: false,
            is_owed: false,
            bound: bound(&tasks, number),
            described: task.clone(),
        };
        let mut made: Vec<_> = tasks.iter().enumerate().map(make).collect();
        for (number, task) in made.iter_mut().enumerate() {
            task.is_honest = source.once_in(2);
            journal.note(format_args!(
                "task {number}: level {}, priority {}, {:?} below, budgets {:?} in {}, honest: {}, bound {:?}",
                task.described.criticality,
                task.priority,
                task.described.below,
                task.described.budgets_us,
                task.described.period_us,
                task.is_honest,
                task.bound
            ));
        }
        Self {
            table: Modes {
                manager: "modes".into(),
                levels: (0..LEVELS).map(|level| level.to_string()).collect(),
                tasks,
            },
            tasks: made,
            mode: 0,
            now: 0,
        }
    }

    /// The jobs that are due are released, and budgets filled. A rogue's work never ends.
    fn release(&mut self, source: &mut Source, journal: &mut Journal) {
        for task in &mut self.tasks {
            task.refill(self.now);
            let is_due = task.needs == 0 && task.release <= self.now;
            if !is_due {
                task.look_at_budget(journal);
                continue;
            }
            task.needs = match task.is_honest {
                true => source.number(1..=largest(&task.described, task.described.criticality)),
                false => u64::MAX,
            };
            task.is_spoilt = self.mode > task.described.criticality;
            task.is_owed = false;
            task.look_at_budget(journal);
        }
    }

    /// Of those that can, the one of the highest priority. A suspended one does not run: the idle thread does.
    fn runner(&self) -> Option<usize> {
        let can = |task: &Task| task.needs > 0 && task.budget_left > 0 && task.priority != SUSPENDED;
        let tasks = self.tasks.iter().enumerate();
        tasks
            .filter(|(_, task)| can(task))
            .max_by_key(|(number, task)| (task.priority, std::cmp::Reverse(*number)))
            .map(|(number, _)| number)
    }

    /// When a job or a budget comes next, in ticks.
    fn next_instant(&self) -> u64 {
        let instants = self.tasks.iter().flat_map(|task| {
            let release = Some(task.release).filter(|at| *at > self.now);
            let refill = task.refills.front().map(|(at, _)| *at);
            release.into_iter().chain(refill)
        });
        instants.min().unwrap_or(self.now + 1).max(self.now + 1)
    }

    fn run(&mut self, number: usize, source: &mut Source, journal: &mut Journal) -> Held {
        let until = self.next_instant() - self.now;
        let task = &mut self.tasks[number];
        let longest = until.min(task.needs).min(task.budget_left);
        let ticks = match task.is_honest {
            true => longest,
            false => source.number(1..=longest.max(1)).min(longest),
        };
        task.budget_left -= ticks;
        let again = self.now + task.described.period_us;
        task.refills.push_back((again, ticks));
        self.now += ticks;
        journal.note(format_args!("task {number} runs for {ticks}, to {}", self.now));
        if task.is_honest {
            task.needs -= ticks;
        }
        self.check_bounds(journal)?;
        let task = &self.tasks[number];
        if task.needs == 0 {
            self.end(number, journal);
        } else if task.budget_left == 0 {
            self.runs_out(number, journal)?;
        } else if !task.is_honest && source.once_in(4) {
            // A rogue may also wait for a while.
            self.tasks[number].needs = 0;
            self.end(number, journal);
        }
        Ok(())
    }

    /// A job ends; the next one comes with the next period, or at once if that has begun.
    fn end(&mut self, number: usize, journal: &mut Journal) {
        let task = &mut self.tasks[number];
        if task.is_honest && task.bound.is_some() && !task.is_spoilt {
            journal.saw(MET);
        }
        task.release += task.described.period_us;
        if task.release < self.now {
            task.release = self.now.next_multiple_of(task.described.period_us);
        }
    }

    /// A budget is used up: the manager hears of it, if it is to.
    fn runs_out(&mut self, number: usize, journal: &mut Journal) -> Held {
        let badge = self.tasks[number].described.fault_badge;
        if badge == 0 {
            return Ok(());
        }
        let found = decide::find(&self.table, badge);
        promise!(
            found == Some(number),
            "the timeout of task {number} is taken for that of {found:?}"
        );
        self.timeout(number, journal)
    }

    fn timeout(&mut self, number: usize, journal: &mut Journal) -> Held {
        let described = &self.table.tasks[number];
        let overrun = decide::overrun(described, self.mode);
        journal.step(format_args!(
            "at {}: the budget of task {number} runs out in mode {}: {overrun:?}",
            self.now, self.mode
        ));
        let has = decide::budget_us(described, self.mode);
        let enough = |mode: &Mode| decide::budget_us(described, *mode) > has;
        let needed = (self.mode + 1..=described.criticality).find(enough);
        match (overrun, needed) {
            (Overrun::Throttle, None) => {
                journal.saw(THROTTLED);
                Ok(())
            }
            (Overrun::Raise { from, to }, Some(needed)) if from == self.mode && to == needed => {
                journal.saw(RAISED);
                if to > from + 1 {
                    journal.saw(SKIPPED_A_LEVEL);
                }
                self.enter(to, Some(number), journal)
            }
            _ => Err(Broken(format!(
                "for task {number}, of level {}, the mode is needed to be {needed:?}: {overrun:?}",
                described.criticality
            ))),
        }
    }

    /// What is no timeout of a task.
    fn stranger(&mut self, source: &mut Source, journal: &mut Journal) -> Held {
        let badge = source.one_of(&[0, 50, u64::MAX]);
        let found = decide::find(&self.table, badge);
        journal.step(format_args!("a timeout with badge {badge}: {found:?}"));
        journal.saw(STRANGER);
        promise!(found.is_none(), "badge {badge} is taken for task {found:?}");
        Ok(())
    }

    /// Nobody can run, or only who is suspended: the mode falls.
    fn idle(&mut self, journal: &mut Journal) -> Held {
        if self.mode > 0 {
            journal.saw(FELL);
            self.enter(0, None, journal)?;
            for (number, task) in self.tasks.iter().enumerate() {
                let described = &task.described;
                promise!(
                    (task.priority, task.budget) == (described.priority, described.budgets_us[0]),
                    "the processor idled, but task {number} is not as described"
                );
            }
            return Ok(());
        }
        self.now = self.next_instant();
        self.check_bounds(journal)
    }

    /// The mode changes, one task after the other; `raiser` is whose fault is to be answered.
    fn enter(&mut self, to: Mode, raiser: Option<usize>, journal: &mut Journal) -> Held {
        let from = std::mem::replace(&mut self.mode, to);
        journal.note(format_args!("mode {to}"));
        for (number, task) in self.tasks.iter_mut().enumerate() {
            let change = decide::change(&task.described, from, to);
            if let Some(priority) = change.priority {
                task.priority = priority;
                match priority {
                    SUSPENDED => journal.saw(SUSPENDED_TASK),
                    LOW_PRIORITY => journal.saw(DEMOTED),
                    _ => {}
                }
            }
            if let Some(budget) = change.budget_us {
                let runs = task.needs > 0 && raiser != Some(number);
                task.configure(budget, runs, self.now);
                task.is_owed |= runs;
            }
            task.is_spoilt |= to > task.described.criticality;
            if to > task.described.criticality {
                journal.saw(ABOVE);
            }
            is_as_the_mode_says(number, task, to)?;
        }
        Ok(())
    }

    /// No honest job with a bound is behind it.
    fn check_bounds(&mut self, journal: &mut Journal) -> Held {
        for (number, task) in self.tasks.iter_mut().enumerate() {
            if !task.is_honest || task.needs == 0 || task.is_spoilt {
                continue;
            }
            let waited = self.now.saturating_sub(task.release);
            match task.bound {
                Some(bound) => promise!(
                    waited <= bound,
                    "at {}, the job of task {number} of {} is not done within {bound}",
                    self.now,
                    task.release
                ),
                None if waited > task.described.period_us => {
                    journal.saw(BACKLOG);
                    task.is_spoilt = true;
                }
                None => {}
            }
        }
        Ok(())
    }
}

/// At and above the mode, a task has its priority and the budget of the mode; below it, what is described.
fn is_as_the_mode_says(number: usize, task: &Task, mode: Mode) -> Held {
    let described = &task.described;
    let of_mode = described.budgets_us.get(mode as usize);
    let largest = described.budgets_us.last();
    let (priority, budget) = if mode <= described.criticality {
        (described.priority, of_mode.or(largest))
    } else {
        let priority = match described.below {
            Below::Keep => described.priority,
            Below::Demote(priority) => priority,
            Below::Suspend => SUSPENDED,
        };
        (priority, described.budgets_us.first())
    };
    promise!(
        task.priority == priority,
        "in mode {mode}, task {number} has priority {}, not {priority}",
        task.priority
    );
    promise!(
        Some(&task.budget) == budget,
        "in mode {mode}, task {number} has a budget of {}, not {budget:?}",
        task.budget
    );
    Ok(())
}
