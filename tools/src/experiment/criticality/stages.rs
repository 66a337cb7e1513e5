//! What the tasks have to do in each stage, and what became of it.

use anyhow::{ensure, Context, Result};

use crate::arch::Arch;

/// A task of the system.
#[derive(Debug)]
pub struct Task {
    pub name: &'static str,
    /// From 0, the lowest.
    pub criticality: usize,
    pub period_us: u64,
    /// By mode, µs.
    pub budgets_us: [u64; 3],
}

/// In the order of their numbers in the system.
pub const TASKS: [Task; 3] = [
    Task {
        name: "corners",
        criticality: 2,
        period_us: 19_000,
        budgets_us: [3_000, 3_000, 9_000],
    },
    Task {
        name: "jpeg",
        criticality: 1,
        period_us: 10_000,
        budgets_us: [2_000, 6_000, 2_000],
    },
    Task {
        name: "mp3",
        criticality: 0,
        period_us: 11_200,
        budgets_us: [6_000, 6_000, 6_000],
    },
];

/// A stage: how much each task has to do.
#[derive(Debug)]
pub struct Stage {
    pub name: &'static str,
    /// The mode to which it drives the system: no task at or above may miss a deadline.
    pub level: usize,
    /// Whether each task needs more than its optimistic budget.
    pub needs_more: [bool; TASKS.len()],
    /// What the thesis says of missed deadlines.
    pub thesis: &'static str,
    /// Utilisation of the thesis's processor, percent.
    pub thesis_utilisation: u64,
}

pub const STAGES: [Stage; 3] = [
    Stage {
        name: "one",
        level: 0,
        needs_more: [false, false, false],
        thesis: "none",
        thesis_utilisation: 52,
    },
    Stage {
        name: "two",
        level: 1,
        needs_more: [false, true, false],
        thesis: "madplay only (48 of 178 jobs)",
        thesis_utilisation: 86,
    },
    Stage {
        name: "three",
        level: 2,
        needs_more: [true, true, false],
        thesis: "all but the most critical task, susan",
        thesis_utilisation: 100,
    },
];

/// How much a job has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount {
    /// Of eight rows of 160 pixels; frames.
    pub units: u64,
    /// How long that is to take on the processor alone, µs.
    pub takes_us: u64,
}

/// An amount is right if it takes as long as it is to, but for so much, percent.
const PRECISION_PERCENT: u64 = 10;

/// What a job of each task is to take, µs: within the optimistic budget, and more than that.
const TAKES_US: [[u64; 2]; TASKS.len()] = [[2_620, 4_930], [1_570, 4_130], [5_320, 5_320]];

/// The units that take so long: an instruction of one architecture does not do what one of another does, and the stages are
/// made of times.
const fn units(arch: Arch) -> [[u64; 2]; TASKS.len()] {
    match arch {
        Arch::X86_64 => [[14, 25], [12, 30], [40, 40]],
        Arch::Aarch64 => [[28, 52], [15, 37], [42, 42]],
    }
}

impl Stage {
    /// What a job of each task has to do.
    pub fn amounts(&self, arch: Arch) -> [Amount; TASKS.len()] {
        std::array::from_fn(|task| {
            let more = usize::from(self.needs_more[task]);
            Amount {
                units: units(arch)[task][more],
                takes_us: TAKES_US[task][more],
            }
        })
    }
}

/// What is wrong with an amount of a task that took so long, alone.
pub fn miscalibrated(task: usize, amount: Amount, took_us: u64) -> Option<String> {
    let most_off = amount.takes_us * PRECISION_PERCENT / 100;
    (took_us.abs_diff(amount.takes_us) > most_off).then(|| {
        format!(
            "a job of `{}` that is alone takes {took_us} µs, not {} µs: {} units of work are the wrong amount for this \
             architecture; correct `units` in `stages.rs`",
            TASKS[task].name, amount.takes_us, amount.units
        )
    })
}

/// What became of a task's jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jobs {
    pub deadlines: u64,
    pub completed: u64,
    pub missed: u64,
    pub longest_us: u64,
    pub mean_us: u64,
}

impl Jobs {
    /// Reads what the timer reports of each task.
    ///
    /// # Errors
    /// A task is missing, or a component has failed.
    pub fn read(console: &str) -> Result<[Self; TASKS.len()]> {
        ensure!(
            !console.contains("launcher: component"),
            "a component failed:\n{console}"
        );
        let mut jobs = Vec::new();
        for number in 0..TASKS.len() {
            let prefix = format!("task {number}: ");
            let line = console.lines().find_map(|line| line.strip_prefix(&prefix));
            let line = line.with_context(|| format!("nothing is reported of task {number}"))?;
            let numbers: Vec<u64> = line
                .split(|c: char| !c.is_ascii_digit())
                .filter_map(|word| word.parse().ok())
                .collect();
            let [deadlines, completed, missed, longest_us, mean_us] = numbers[..] else {
                anyhow::bail!("`{line}` does not have five numbers");
            };
            jobs.push(Self {
                deadlines,
                completed,
                missed,
                longest_us,
                mean_us,
            });
        }
        jobs.try_into().ok().context("three tasks")
    }
}

/// A stage, and what became of it.
#[derive(Debug)]
pub struct Outcome {
    pub stage: &'static Stage,
    pub tasks: [Jobs; TASKS.len()],
    /// How long a job takes at most that is alone, µs.
    pub alone_us: [u64; TASKS.len()],
    /// What the tasks want, percent of the processor.
    pub demand: f64,
    /// What the completed jobs took, percent of the processor.
    pub utilisation: f64,
}

impl Outcome {
    pub fn new(
        stage: &'static Stage,
        alone: &[[Jobs; TASKS.len()]],
        tasks: &[Jobs; TASKS.len()],
        milliseconds: u64,
    ) -> Self {
        let mut alone_us = [0; TASKS.len()];
        let (mut worked, mut demand) = (0, 0.0);
        for (task, jobs) in alone.iter().enumerate() {
            alone_us[task] = jobs[task].longest_us;
            worked += tasks[task].completed * jobs[task].mean_us;
            demand += jobs[task].mean_us as f64 / TASKS[task].period_us as f64 * 100.0;
        }
        Self {
            stage,
            tasks: *tasks,
            alone_us,
            demand,
            utilisation: worked as f64 / (milliseconds * 1000) as f64 * 100.0,
        }
    }

    /// The budget of a task in the stage's mode, as a share of its period.
    pub fn allowed(&self, task: usize) -> f64 {
        let described = &TASKS[task];
        described.budgets_us[self.stage.level] as f64 / described.period_us as f64
    }

    /// What does not hold: a line each.
    pub fn failures(&self) -> Vec<String> {
        let stage = self.stage.name;
        let mut failures = Vec::new();
        let mut missed_below = 0;
        for (task, jobs) in TASKS.iter().zip(&self.tasks) {
            if task.criticality < self.stage.level {
                missed_below += jobs.missed;
            } else if jobs.missed > 0 || jobs.deadlines == 0 {
                failures.push(format!(
                    "stage {stage}: `{}`, whose criticality is not below the stage's, missed {} of \
                     {} deadlines",
                    task.name, jobs.missed, jobs.deadlines
                ));
            }
        }
        if self.stage.level > 0 && missed_below == 0 {
            failures.push(format!(
                "stage {stage}: no deadline was missed, so the stage shows nothing"
            ));
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "noise\n\
        task 0: 10 deadlines, 10 completed, 0 missed, 900 us at most, 600 us on average\n\
        task 1: 20 deadlines, 18 completed, 3 missed, 11000 us at most, 600 us on average\r\n\
        task 2: 17 deadlines, 17 completed, 0 missed, 700 us at most, 600 us on average\n";

    #[test]
    fn jobs_are_read() {
        let jobs = Jobs::read(CONSOLE).unwrap();
        let expected = Jobs {
            deadlines: 20,
            completed: 18,
            missed: 3,
            longest_us: 11_000,
            mean_us: 600,
        };
        assert_eq!(jobs[1], expected);
        assert!(Jobs::read("task 0: 1 deadlines").is_err());
        let failed = format!("launcher: component `mp3` ended\n{CONSOLE}");
        assert!(Jobs::read(&failed).is_err());
    }

    #[test]
    fn an_amount_that_takes_much_longer_or_shorter_is_found() {
        let [corners, ..] = STAGES[2].amounts(Arch::Aarch64);
        assert_eq!((corners.units, corners.takes_us), (52, 4_930));
        for took_us in [4_500, 5_400] {
            assert_eq!(miscalibrated(0, corners, took_us), None);
        }
        for took_us in [2_390, 4_400, 5_500] {
            let finding = miscalibrated(0, corners, took_us).unwrap();
            assert!(finding.contains("`corners`"), "{finding}");
        }
    }

    #[test]
    fn only_those_below_may_miss() {
        let jobs = Jobs::read(CONSOLE).unwrap();
        let outcome = |stage| Outcome::new(stage, &[jobs; 3], &jobs, 1000);
        // `jpeg` is below the third stage only.
        assert_eq!(outcome(&STAGES[0]).failures().len(), 1);
        assert_eq!(outcome(&STAGES[1]).failures().len(), 2);
        assert!(outcome(&STAGES[2]).failures().is_empty());
    }
}
