//! Theorem 2: hierarchies of allocations whose allowances match what is in them.

use std::error::Error;

use fastrand::Rng;
use sandglass_allocations::{
    AllocationId, Allowance, AllowanceError, Capability, CapabilityId, Client, ClientId, Kind,
    Manager, Quota, Record, Storage, Task,
};

const CLIENT: ClientId = ClientId(0);
/// The most tasks of a set.
pub const TASKS: usize = 8;

/// Points of functions, enough for most sets.
pub const POINTS: usize = 128;

/// Points of each task's function in an allowance, so that sums of them have [`POINTS`] at most.
pub const STEPS: usize = POINTS / TASKS;

/// Allocations in allocations, at most.
const DEPTH: u32 = 4;

/// A tree of tasks: what a subsystem is.
#[derive(Clone, Debug)]
enum Part {
    Task(Task),
    Allocation(Vec<Part>),
}

impl Part {
    /// The tasks, in groups of groups at random.
    fn random(rng: &mut Rng, tasks: &[Task], depth: u32) -> Self {
        match tasks {
            [task] if depth == 0 || rng.bool() => Self::Task(*task),
            _ if depth == 0 => Self::Allocation(tasks.iter().copied().map(Self::Task).collect()),
            _ => {
                let middle = rng.usize(1..=tasks.len());
                let parts = [&tasks[..middle], &tasks[middle..]]
                    .into_iter()
                    .filter(|part| !part.is_empty());
                Self::Allocation(
                    parts
                        .map(|part| Self::random(rng, part, depth - 1))
                        .collect(),
                )
            }
        }
    }

    /// The sum of what is in it, exactly.
    fn function(&self) -> Result<Allowance<POINTS>, AllowanceError> {
        match self {
            Self::Task(task) => Ok(Allowance::of_task_in(*task, STEPS)),
            Self::Allocation(parts) => {
                let functions: Result<Vec<_>, _> = parts.iter().map(Self::function).collect();
                Allowance::sum(&functions?)
            }
        }
    }
}

/// Has a hierarchy of matching allowances admitted for these tasks, at most [`TASKS`], and the tasks in it.
///
/// # Errors
/// What is refused, by a function or by the manager.
pub fn admit(rng: &mut Rng, tasks: &[Task]) -> Result<(), Box<dyn Error>> {
    let most = 64;
    let mut records = vec![Record::<POINTS>::FREE; 1 + most];
    let mut capabilities = vec![Capability::FREE; 1 + most];
    let mut clients = [Client::new(Quota {
        records: most as u32,
        capabilities: most as u32,
    })];
    let storage = Storage {
        records: &mut records,
        capabilities: &mut capabilities,
        clients: &mut clients,
    };
    let (mut manager, root) = Manager::new(storage, 1, CLIENT)?;
    let top = manager.all_allocations().next().ok_or("there is no root")?;
    let tree = Part::random(rng, tasks, DEPTH);
    fill(&mut manager, root, top, &tree)
}

fn fill(
    manager: &mut Manager<'_, POINTS>,
    capability: CapabilityId,
    within: AllocationId,
    part: &Part,
) -> Result<(), Box<dyn Error>> {
    match part {
        Part::Task(task) => {
            manager.add_reservation(CLIENT, capability, within, *task, Kind::Hard)?;
            Ok(())
        }
        Part::Allocation(parts) => {
            let inner = manager.add_allocation(CLIENT, capability, within, &part.function()?)?;
            let derived = manager.derive(CLIENT, capability, &[inner], CLIENT)?;
            parts
                .iter()
                .try_for_each(|part| fill(manager, derived, inner, part))
        }
    }
}

/// Points that a task's function needs so that no set is refused which the exact test admits: after the interval at
/// which lines of all tasks' utilisations have come below the processor's, nothing can be too much. `None` at a
/// utilisation of 1, unless all deadlines are implicit.
pub fn steps_needed(tasks: &[Task]) -> Option<u64> {
    if tasks.iter().all(|task| task.deadline() == task.period()) {
        return Some(1);
    }
    let rate = |task: &Task| task.budget() as f64 / task.period() as f64;
    let used: f64 = tasks.iter().map(rate).sum();
    if used > 1.0 - 1e-9 {
        return None;
    }
    let excess: f64 = tasks
        .iter()
        .map(|task| rate(task) * (task.period() - task.deadline()) as f64)
        .sum();
    let last = excess / (1.0 - used);
    let steps =
        |task: &Task| ((last - task.deadline() as f64) / task.period() as f64).max(0.0) as u64 + 2;
    tasks.iter().map(steps).max()
}
