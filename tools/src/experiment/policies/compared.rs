//! What a policy costs, and what a hostile task changes under it.

use super::measured::{Job, Run};
use super::systems::{Conduct, Policy, TaskSet, HOSTILE, TASKS};

/// The runs of a policy.
#[derive(Debug)]
pub struct Compared {
    pub policy: &'static Policy,
    pub cost: Cost,
    /// Of each conduct, in their order.
    pub effects: Vec<Effect>,
    /// What the hostile task has reserved of the processor, percent.
    pub hostile_reserved: f64,
    /// Two runs, to be drawn: nobody is hostile, and one task spins.
    pub drawn: [Run; 2],
}

/// What it costs while all are honest. In instructions, if nothing else is said.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Of the processor: all that is executed in neither a task nor the logger.
    pub percent: f64,
    /// The same, for each job.
    pub per_job: u64,
    /// From a release to the first instruction of its job, of those that wait for nobody: mean and most.
    pub start_mean: u64,
    pub start_most: u64,
    /// What best effort has of the processor, percent.
    pub left_percent: f64,
}

/// What became of everybody in a run.
#[derive(Clone, Debug)]
pub struct Effect {
    pub conduct: Conduct,
    pub tasks: [OfTask; TASKS.len()],
    /// What the hostile task has of the processor for its own instructions, percent. Floods are not counted.
    pub hostile_percent: f64,
    pub left_percent: f64,
}

/// What became of a task. In µs, if nothing else is said.
#[derive(Clone, Copy, Debug)]
pub struct OfTask {
    pub missed: u64,
    /// The longest time from a release to the end of its job.
    pub response: f64,
    /// Between the shortest and the longest time from a release to the first instruction of its job.
    pub jitter: f64,
    /// How far the first instruction of a job is from where it is if all are honest, at most, instructions.
    pub moved: u64,
}

impl Compared {
    /// # Panics
    /// No run is honest, or none spins.
    pub fn new(tasks: &TaskSet, policy: &'static Policy, runs: &[(Conduct, Run)]) -> Self {
        let with = |conduct| {
            let run = runs.iter().find(|(own, _)| *own == conduct);
            &run.expect("each policy is run with each conduct").1
        };
        let honest = with(Conduct::Honest);
        let hostile = TASKS.iter().position(|(name, _)| *name == HOSTILE);
        let hostile = hostile.expect("it is one of the tasks");
        let effects = runs.iter().map(|(conduct, run)| Effect {
            conduct: *conduct,
            tasks: core::array::from_fn(|task| of_task(honest, run, task)),
            hostile_percent: percent(run, run.worked[hostile]),
            left_percent: percent(run, run.left),
        });
        Self {
            policy,
            cost: cost(honest),
            effects: effects.collect(),
            hostile_reserved: tasks.percent_of(hostile),
            drawn: [honest.clone(), with(Conduct::Spins).clone()],
        }
    }

    pub fn effect(&self, conduct: Conduct) -> &Effect {
        let found = self.effects.iter().find(|of| of.conduct == conduct);
        found.expect("each policy is run with each conduct")
    }

    pub fn attacks(&self) -> impl Iterator<Item = &Effect> {
        self.effects.iter().filter(|of| of.conduct.is_attack())
    }

    /// The most of all attacks.
    pub fn worst<T: PartialOrd>(&self, of: impl Fn(&Effect) -> T) -> T {
        let worst = self.attacks().map(of);
        let worst = worst.reduce(|a, b| if b > a { b } else { a });
        worst.expect("there are attacks")
    }

    /// What the pages of the policies promise, and is not so.
    pub fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        for effect in &self.effects {
            self.find_missed(effect, &mut failures);
            self.find_moved(effect, &mut failures);
        }
        for effect in self.attacks() {
            let most = self.hostile_reserved;
            if effect.hostile_percent > most {
                failures.push(format!(
                    "{}: {HOSTILE} {}, and has {:.2} % of the processor, more than its {most} %",
                    self.policy.name,
                    effect.conduct.name(),
                    effect.hostile_percent
                ));
            }
        }
        failures
    }

    /// Nobody else misses a deadline because of a hostile task; and where the mode rises, those of high criticality do not
    /// when one of them needs more.
    fn find_missed(&self, effect: &Effect, failures: &mut Vec<String>) {
        for (of, (name, is_high)) in effect.tasks.iter().zip(TASKS) {
            let is_promised = match effect.conduct {
                Conduct::Honest => true,
                Conduct::NeedsMore => is_high && self.policy.gives_more,
                _ => name != HOSTILE,
            };
            if is_promised && of.missed > 0 {
                failures.push(format!(
                    "{}, {}: {name} missed {} deadlines",
                    self.policy.name,
                    effect.conduct.name(),
                    of.missed
                ));
            }
        }
    }

    fn find_moved(&self, effect: &Effect, failures: &mut Vec<String>) {
        if !effect.conduct.is_attack() {
            return;
        }
        for (of, (name, is_high)) in effect.tasks.iter().zip(TASKS) {
            let bound = self.policy.moves.bound(is_high);
            let bound = bound.filter(|_| name != HOSTILE);
            if bound.is_some_and(|bound| of.moved > bound) {
                failures.push(format!(
                    "{}: {HOSTILE} {}, and a job of {name} begins {} instructions from where it would",
                    self.policy.name,
                    effect.conduct.name(),
                    of.moved
                ));
            }
        }
    }
}

fn percent(run: &Run, ticks: u64) -> f64 {
    ticks as f64 / run.length() as f64 * 100.0
}

fn cost(honest: &Run) -> Cost {
    let worked: u64 = honest.worked.iter().sum();
    let overhead = honest.length().saturating_sub(honest.left + worked);
    let due = || (0..TASKS.len()).flat_map(|task| honest.due(task));
    let starts: Vec<u64> = due().filter(|job| job.is_alone).map(wait).collect();
    Cost {
        percent: percent(honest, overhead),
        per_job: overhead / (due().count() as u64).max(1),
        start_mean: starts.iter().sum::<u64>() / (starts.len() as u64).max(1),
        start_most: starts.iter().copied().max().unwrap_or(0),
        left_percent: percent(honest, honest.left),
    }
}

/// From its release to its first instruction.
fn wait(job: &Job) -> u64 {
    job.begin.saturating_sub(job.release)
}

fn of_task(honest: &Run, run: &Run, task: usize) -> OfTask {
    let waits = || run.due(task).map(wait);
    let (least, most) = (waits().min().unwrap_or(0), waits().max().unwrap_or(0));
    let moved = run.due(task).filter_map(|job| {
        let mut others = honest.due(task);
        let other = others.find(|other| other.number == job.number)?;
        Some(wait(job).abs_diff(wait(other)))
    });
    let responses = run.due(task).map(|job| job.end - job.release);
    OfTask {
        missed: run.missed(task),
        response: run.us(responses.max().unwrap_or(0)),
        jitter: run.us(most - least),
        moved: moved.max().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::systems::POLICIES;
    use super::*;

    /// A run of 40 ms, in which jobs of all tasks begin `wait` instructions after their releases and take a µs.
    fn run(tasks: &TaskSet, wait: u64, hostile: u64) -> Run {
        let mut console = format!("window 0 40000000 1000 1000\nrow 2 {hostile}\n");
        for (number, task) in tasks.0.iter().enumerate() {
            for release in (1..40_000_000).step_by(task.period as usize * 1000) {
                let begin = release + wait;
                console += &format!(
                    "job {number} {release} {begin} {} {release}\n",
                    begin + 1000
                );
            }
        }
        Run::of(tasks, &console).unwrap()
    }

    /// All runs, where those with attacks have these waits and this time of the hostile task.
    fn compared(policy: &'static Policy, wait: u64, hostile: u64) -> Compared {
        let tasks = TaskSet::read().unwrap();
        let runs = super::super::systems::CONDUCTS.map(|conduct| {
            let attack = run(&tasks, wait, hostile);
            let is_attack = conduct.is_attack();
            (
                conduct,
                if is_attack {
                    attack
                } else {
                    run(&tasks, 3_000, 0)
                },
            )
        });
        Compared::new(&tasks, policy, &runs)
    }

    fn policy(file: &str) -> &'static Policy {
        POLICIES.iter().find(|policy| policy.file == file).unwrap()
    }

    #[test]
    fn a_beginning_that_is_moved_is_found_where_a_policy_promises_that_it_is_not() {
        assert!(compared(policy("partitions"), 13_000, 0)
            .failures()
            .is_empty());
        let moved = compared(policy("partitions"), 13_001, 0).failures();
        assert_eq!(moved.len(), 9, "of three tasks in three attacks: {moved:?}");
        let of_high = compared(policy("contexts"), 23_001, 0).failures();
        assert_eq!(of_high.len(), 6, "{of_high:?}");
        assert!(compared(policy("edf"), 1_000_000, 0).failures().is_empty());
    }

    #[test]
    fn missed_deadlines_and_stolen_time_are_found() {
        let late = compared(policy("edf"), 4_999_001, 0).failures();
        assert_eq!(
            late.len(),
            6,
            "control and sensor, in three attacks: {late:?}"
        );
        assert!(compared(policy("edf"), 3_000, 8_000_000)
            .failures()
            .is_empty());
        assert_eq!(
            compared(policy("edf"), 3_000, 8_000_001).failures().len(),
            3
        );
    }
}
