//! The policies, their descriptions, and what is changed in them for a run.

use std::path::PathBuf;

use anyhow::{ensure, Context, Result};
use toml::{Table, Value};

use crate::system::Source;
use crate::workspace;

/// Where the descriptions are, from the root of the repository.
const FOLDER: &str = "systems/experiments/policies";
/// What every fourth job of `control` needs in [`Conduct::NeedsMore`], µs: more than its budget, which on average is enough.
const MORE_US: i64 = 1_200;

/// A policy of the comparison.
#[derive(Debug)]
pub struct Policy {
    /// Of its description.
    pub file: &'static str,
    pub name: &'static str,
    /// In `docs/src/policies/`, or from there.
    pub page: &'static str,
    /// Whose first instruction a hostile task moves by less than [`Moves::bound`], as the page promises.
    pub moves: Moves,
    /// The mode rises when the most critical task needs more, so that it has that in time.
    pub gives_more: bool,
}

/// Whose jobs begin when they would without the hostile task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// Deadlines are promised, and nothing of beginnings.
    Unbounded,
    /// Tasks above it wait for what is in service for it: a request to the timer service, and its expiries.
    NotHigh,
    /// Windows of others are not moved but for their edges, of which *Isolation* in `docs/src/policies/partitions.md` says
    /// how much: 10,000 instructions.
    Nobody,
}

impl Moves {
    /// The bound that is promised, instructions.
    pub const fn bound(self, is_high: bool) -> Option<u64> {
        match self {
            Self::Unbounded => None,
            // `REQUEST_US` and `EXPIRY_US` of the timer service, at 1,000 instructions in a µs.
            Self::NotHigh if is_high => Some(20_000),
            Self::NotHigh => None,
            Self::Nobody => Some(10_000),
        }
    }
}

pub const POLICIES: [Policy; 6] = [
    Policy {
        file: "contexts",
        name: "fixed priorities with contexts",
        page: "../concepts/scheduling-contexts.md",
        moves: Moves::NotHigh,
        gives_more: false,
    },
    Policy {
        file: "edf",
        name: "EDF",
        page: "edf.md",
        moves: Moves::Unbounded,
        gives_more: false,
    },
    Policy {
        file: "modes",
        name: "modes",
        page: "modes.md",
        moves: Moves::NotHigh,
        gives_more: true,
    },
    Policy {
        file: "partitions",
        name: "partitions",
        page: "partitions.md",
        moves: Moves::Nobody,
        gives_more: false,
    },
    Policy {
        file: "frames",
        name: "frames",
        page: "partitions.md",
        moves: Moves::Nobody,
        gives_more: false,
    },
    Policy {
        file: "time-manager",
        name: "temporal capabilities",
        page: "allocations.md",
        moves: Moves::Unbounded,
        gives_more: false,
    },
];

impl Policy {
    /// Its description, in which all tasks are honest.
    pub fn path(&self) -> PathBuf {
        workspace::root()
            .join(FOLDER)
            .join(format!("{}.toml", self.file))
    }
}

/// What differs between the runs of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conduct {
    Honest,
    /// `network` never ends a job.
    Spins,
    /// `network` asks its scheduler, or the timer service, as often as it can.
    Floods,
    /// Jobs of `network` are twice as long as its reservation.
    Overruns,
    /// Nobody is hostile, and every fourth job of `control` needs more than its reservation.
    NeedsMore,
}

pub const CONDUCTS: [Conduct; 5] = [
    Conduct::Honest,
    Conduct::Spins,
    Conduct::Floods,
    Conduct::Overruns,
    Conduct::NeedsMore,
];

impl Conduct {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Spins => "spins",
            Self::Floods => "floods",
            Self::Overruns => "overruns",
            Self::NeedsMore => "control needs more",
        }
    }

    pub const fn is_attack(self) -> bool {
        matches!(self, Self::Spins | Self::Floods | Self::Overruns)
    }

    /// What is changed: a parameter of a component.
    const fn change(self) -> Option<(&'static str, &'static str, i64)> {
        match self {
            Self::Honest => None,
            Self::Spins => Some((HOSTILE, "hostile", 1)),
            Self::Floods => Some((HOSTILE, "hostile", 2)),
            Self::Overruns => Some((HOSTILE, "hostile", 3)),
            Self::NeedsMore => Some((MOST_CRITICAL, "more", MORE_US)),
        }
    }
}

/// Whose jobs are others' attacks.
pub const HOSTILE: &str = "network";
const MOST_CRITICAL: &str = "control";
/// The tasks, in the order of their numbers, and whether they are of high criticality.
pub const TASKS: [(&str, bool); 4] = [
    (MOST_CRITICAL, true),
    ("sensor", true),
    (HOSTILE, false),
    ("camera", false),
];

/// A run.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub policy: &'static Policy,
    pub conduct: Conduct,
}

impl Case {
    /// The system, which measures for so long.
    ///
    /// # Errors
    /// The description cannot be read, or lacks what is changed.
    pub fn source(self, length_ms: u64) -> Result<Source> {
        let source = Source::read(&self.policy.path())?;
        let mut document: Table = source.text.parse().context("it is no TOML")?;
        // Far below 2^63.
        let length_us = (length_ms * 1000) as i64;
        let changes = self
            .conduct
            .change()
            .into_iter()
            .chain([("logger", "length", length_us)]);
        for (component, key, value) in changes {
            parameters(&mut document, component)?.insert(key.to_owned(), Value::Integer(value));
        }
        let (file, conduct) = (self.policy.file, self.conduct.name().replace(' ', "-"));
        Ok(Source {
            arch: None,
            name: format!("policies-{file}-{conduct}"),
            text: document.to_string(),
            folder: source.folder,
        })
    }
}

fn parameters<'d>(document: &'d mut Table, component: &str) -> Result<&'d mut Table> {
    let components = document
        .get_mut("component")
        .and_then(Value::as_array_mut)
        .context("it has no components")?;
    let found = components
        .iter_mut()
        .find(|table| table.get("name").and_then(Value::as_str) == Some(component));
    found
        .and_then(|table| table.get_mut("parameters"))
        .and_then(Value::as_table_mut)
        .with_context(|| format!("`{component}` has no parameters"))
}

/// A task of the set, times in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub name: &'static str,
    pub is_high: bool,
    pub period: u64,
    pub reserved: u64,
    pub work: u64,
}

/// What all descriptions have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSet(pub [Task; TASKS.len()]);

impl TaskSet {
    /// The parameters of the tasks.
    ///
    /// # Errors
    /// A description cannot be read, or has other tasks than the others.
    pub fn read() -> Result<Self> {
        let sets = POLICIES.iter().map(|policy| {
            let path = policy.path();
            Self::of(&Source::read(&path)?).with_context(|| path.display().to_string())
        });
        let sets = sets.collect::<Result<Vec<_>>>()?;
        for (set, policy) in sets.iter().zip(&POLICIES) {
            ensure!(
                *set == sets[0],
                "`{}` has other tasks than `{}`: {set:?}, {:?}",
                policy.file,
                POLICIES[0].file,
                sets[0]
            );
        }
        Ok(sets[0])
    }

    fn of(source: &Source) -> Result<Self> {
        let mut document: Table = source.text.parse().context("it is no TOML")?;
        let tasks = TASKS.map(|(name, is_high)| {
            let parameters = parameters(&mut document, name)?;
            let time = |key: &str| {
                let text = parameters.get(key).and_then(Value::as_str);
                text.and_then(micros)
                    .with_context(|| format!("`{key}` of `{name}` is no time in ms or µs"))
            };
            Ok::<_, anyhow::Error>(Task {
                name,
                is_high,
                period: time("period")?,
                reserved: time("reserved")?,
                work: time("work")?,
            })
        });
        let [control, sensor, network, camera] = tasks;
        Ok(Self([control?, sensor?, network?, camera?]))
    }

    /// What a task reserves of the processor, percent.
    pub fn percent_of(&self, task: usize) -> f64 {
        let task = &self.0[task];
        task.reserved as f64 / task.period as f64 * 100.0
    }

    /// What of the processor they reserve, or work, percent.
    pub fn percent(&self, of: impl Fn(&Task) -> u64) -> f64 {
        let shares = self.0.iter();
        shares
            .map(|task| of(task) as f64 / task.period as f64 * 100.0)
            .sum()
    }
}

fn micros(text: &str) -> Option<u64> {
    if let Some(number) = text.strip_suffix("us") {
        return number.parse().ok();
    }
    let number: u64 = text.strip_suffix("ms")?.parse().ok()?;
    Some(number * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_policies_have_the_same_tasks_and_these_are_admitted_by_the_simplest_test() {
        let set = TaskSet::read().unwrap();
        let reserved = set.percent(|task| task.reserved);
        // Liu and Layland's bound for four tasks, 75.7 %.
        assert!(set.0.len() == 4 && reserved < 75.6, "{reserved}");
        assert!(set.0.iter().all(|task| task.work < task.reserved));
    }

    #[test]
    fn a_conduct_changes_one_parameter() {
        let policy = &POLICIES[0];
        let text = |conduct| Case { policy, conduct }.source(100).unwrap().text;
        let honest = text(Conduct::Honest);
        assert!(!honest.contains("hostile"));
        for conduct in [Conduct::Spins, Conduct::Floods, Conduct::Overruns] {
            assert!(text(conduct).contains("hostile = "));
        }
        assert!(text(Conduct::NeedsMore).contains("more = 1200"));
    }
}
