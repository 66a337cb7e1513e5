//! When the mode changes, and what that means for every task: pure functions of the table and the
//! mode, which is all that is remembered.

use sandglass_description::policy::modes::{Below, Modes, Task, SUSPENDED};

/// A mode: the lowest level that is fully served.
pub type Mode = u32;

/// What changes for one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Change {
    pub priority: Option<u8>,
    /// µs.
    pub budget_us: Option<u64>,
}

impl Change {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The priority of a task in a mode.
pub fn priority(task: &Task, mode: Mode) -> u8 {
    match task.below {
        _ if mode <= task.criticality => task.priority,
        Below::Keep => task.priority,
        Below::Demote(priority) => priority,
        Below::Suspend => SUSPENDED,
    }
}

/// The budget of a task in a mode, µs: above its level, that of the lowest mode, which is what it
/// may still have if it still runs.
pub fn budget_us(task: &Task, mode: Mode) -> u64 {
    let of_mode = if mode <= task.criticality { mode } else { 0 };
    let known = task.budgets_us.get(of_mode as usize);
    known.or(task.budgets_us.last()).copied().unwrap_or(0)
}

/// What a change of the mode means for a task.
pub fn change(task: &Task, from: Mode, to: Mode) -> Change {
    let priorities = (priority(task, from), priority(task, to));
    let budgets = (budget_us(task, from), budget_us(task, to));
    Change {
        priority: (priorities.0 != priorities.1).then_some(priorities.1),
        budget_us: (budgets.0 != budgets.1).then_some(budgets.1),
    }
}

/// What is done about a task whose budget ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Overrun {
    /// The mode rises.
    Raise { from: Mode, to: Mode },
    /// The task has all that it will get: it waits for its next period.
    Throttle,
}

/// The lowest mode that gives a task, whose budget ran out in `mode`, a larger one.
pub fn overrun(task: &Task, mode: Mode) -> Overrun {
    let has = budget_us(task, mode);
    let above = mode.saturating_add(1)..=task.criticality;
    match above.into_iter().find(|&to| budget_us(task, to) > has) {
        Some(to) => Overrun::Raise { from: mode, to },
        None => Overrun::Throttle,
    }
}

/// The task whose timeouts arrive under `badge`.
pub fn find(table: &Modes, badge: u64) -> Option<usize> {
    let mut tasks = table.tasks.iter();
    tasks.position(|task| badge != 0 && task.fault_badge == badge)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEVELS: u32 = 4;

    fn task(criticality: u32, below: Below, budgets_us: Vec<u64>) -> Task {
        Task {
            name: "task".into(),
            criticality,
            fault_badge: 1,
            priority: 100,
            below,
            budgets_us,
            period_us: 10_000,
            core: 0,
            extra_refills: 0,
            sporadic: false,
            badge: 0,
            calls_servers: false,
        }
    }

    #[test]
    fn a_critical_task_raises_the_mode_until_its_last_budget() {
        let high = task(2, Below::Keep, vec![100, 100, 300]);
        assert_eq!(overrun(&high, 0), Overrun::Raise { from: 0, to: 2 });
        assert_eq!(overrun(&high, 2), Overrun::Throttle);
        let low = task(0, Below::Suspend, vec![100]);
        assert_eq!(overrun(&low, 0), Overrun::Throttle);
    }

    #[test]
    fn who_is_below_gives_way() {
        let suspended = task(0, Below::Suspend, vec![100]);
        let demoted = task(1, Below::Demote(20), vec![100, 150]);
        assert_eq!(change(&suspended, 0, 1).priority, Some(SUSPENDED));
        let more = Change {
            priority: None,
            budget_us: Some(150),
        };
        assert_eq!(change(&demoted, 0, 1), more);
        let less = Change {
            priority: Some(20),
            budget_us: Some(100),
        };
        assert_eq!(change(&demoted, 1, 2), less);
        assert_eq!(change(&demoted, 2, 0).priority, Some(100));
    }

    fn below() -> impl Strategy<Value = Below> {
        prop_oneof![
            Just(Below::Keep),
            Just(Below::Suspend),
            (2..100u8).prop_map(Below::Demote)
        ]
    }

    fn any_task() -> impl Strategy<Value = Task> {
        (
            0..LEVELS,
            below(),
            prop::collection::vec(20..3_000u64, 1..5),
        )
            .prop_map(|(criticality, below, mut budgets)| {
                budgets.sort_unstable();
                budgets.truncate(criticality as usize + 1);
                task(criticality, below, budgets)
            })
    }

    proptest! {
        /// However the mode went up and down, a task is as the mode says, and nothing is left of
        /// the way; at the lowest mode, everybody is as described.
        #[test]
        fn changes_lead_where_the_mode_says(
            task in any_task(),
            modes in prop::collection::vec(0..LEVELS, 1..20),
        ) {
            let (mut mode, mut has) = (0, (task.priority, task.budgets_us[0]));
            for to in modes.into_iter().chain([0]) {
                let change = change(&task, mode, to);
                has = (change.priority.unwrap_or(has.0), change.budget_us.unwrap_or(has.1));
                mode = to;
                prop_assert_eq!(has, (priority(&task, mode), budget_us(&task, mode)));
            }
            prop_assert_eq!(has, (task.priority, task.budgets_us[0]));
        }

        /// No task at or above the mode gets less than at the lowest, and none below it more.
        #[test]
        fn criticality_protects_upwards_only(task in any_task(), mode in 0..LEVELS) {
            if mode <= task.criticality {
                prop_assert_eq!(priority(&task, mode), task.priority);
                prop_assert!(budget_us(&task, mode) >= task.budgets_us[0]);
            } else {
                prop_assert!(priority(&task, mode) <= task.priority);
                prop_assert_eq!(budget_us(&task, mode), task.budgets_us[0]);
            }
        }

        /// A mode rises only as far as the level of the task that needs it, each time to a larger budget: so
        /// not more often than there are levels.
        #[test]
        fn overruns_end(task in any_task()) {
            let mut mode = 0;
            for _ in 0..LEVELS {
                match overrun(&task, mode) {
                    Overrun::Raise { from, to } => {
                        prop_assert_eq!(from, mode);
                        prop_assert!(to > from && to <= task.criticality);
                        prop_assert!(budget_us(&task, to) > budget_us(&task, from));
                        mode = to;
                    }
                    Overrun::Throttle => break,
                }
            }
            prop_assert_eq!(overrun(&task, mode), Overrun::Throttle);
        }
    }
}
