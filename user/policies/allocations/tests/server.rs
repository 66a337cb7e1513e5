//! Constant-bandwidth servers keep within the demand of their tasks, whatever these do.

use proptest::prelude::*;
use sandglass_allocations::{Kind, Server, Task, Turn};

/// Turns of a server whose task comes back, or uses up a turn, after so long: with the instants at which they began
/// to count.
fn turns(task: Task, kind: Kind, pauses: &[u64]) -> Vec<Turn> {
    let mut server = Server::new(task, kind);
    let mut now = 0;
    let mut turns = Vec::new();
    for pause in pauses {
        now += pause;
        let turn = server.next_turn(now);
        // Nothing can have happened in it before it was eligible.
        now = turn.eligible_at;
        turns.push(turn);
    }
    turns
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// What is released and due in any interval is within the demand bound function of the task, and
    /// it is eligible by its release.
    #[test]
    fn in_every_interval_a_server_demands_what_was_admitted(
        (period, budget, deadline) in (1u64..30)
            .prop_flat_map(|period| (Just(period), 1..=period))
            .prop_flat_map(|(period, budget)| (Just(period), Just(budget), budget..=period)),
        is_hard: bool,
        pauses in prop::collection::vec(0u64..40, 1..30),
    ) {
        let task = Task::new(budget, period, deadline).unwrap();
        let kind = if is_hard { Kind::Hard } else { Kind::Soft };
        let turns = turns(task, kind, &pauses);
        for (first, begins) in turns.iter().enumerate() {
            prop_assert!(begins.eligible_at <= begins.release);
            for (last, ends) in turns.iter().enumerate().skip(first) {
                let demand = (last - first + 1) as u128 * u128::from(budget);
                prop_assert!(demand <= task.demand(ends.deadline - begins.release));
            }
        }
    }

    /// A job a period or less often: each has a turn of its own, from its arrival to its deadline.
    #[test]
    fn a_task_that_keeps_to_its_parameters_is_not_delayed(
        is_hard: bool,
        pauses in prop::collection::vec(20u64..40, 1..30),
    ) {
        let task = Task::new(5, 20, 10).unwrap();
        let kind = if is_hard { Kind::Hard } else { Kind::Soft };
        let mut now = 0;
        for (turn, pause) in turns(task, kind, &pauses).into_iter().zip(pauses) {
            now += pause;
            prop_assert_eq!(turn, Turn { eligible_at: now, release: now, deadline: now + 10 });
        }
    }
}

/// The rule (paper, section 2) for a task that comes back to an idle server: keep deadline and budget if what is left
/// of the budget is below the density's share of the time to the deadline, else a new deadline and a full budget at
/// once.
struct PaperServer {
    task: Task,
    budget: u64,
    deadline: u64,
}

impl PaperServer {
    fn arrive(&mut self, now: u64) {
        let (budget, span) = (self.task.budget(), self.task.deadline());
        let left = self.deadline.saturating_sub(now);
        if self.budget * span >= left * budget {
            (self.deadline, self.budget) = (now + span, budget);
        }
    }
}

/// Why the rule is not used: a task with a deadline below its period that comes back when it is done is served each
/// time at once, so that a hundredth of a processor becomes all of it.
#[test]
fn by_the_papers_rule_a_constrained_deadline_is_no_limit() {
    let task = Task::new(1, 100, 1).unwrap();
    let mut server = PaperServer {
        task,
        budget: 0,
        deadline: 0,
    };
    for now in 0..100 {
        server.arrive(now);
        assert_eq!((server.budget, server.deadline), (1, now + 1));
        server.budget -= 1;
    }
    assert_eq!(task.demand(100), 1, "what was admitted");
    let here = turns(task, Kind::Hard, &[0, 1, 1]);
    let deadlines: Vec<_> = here.iter().map(|turn| turn.deadline).collect();
    assert_eq!(deadlines, [1, 101, 201]);
}

#[test]
fn a_hard_server_waits_for_its_deadline_and_a_soft_one_goes_on_with_a_later_one() {
    let task = Task::new(2, 10, 6).unwrap();
    // The budget is used up after 2.
    let hard = turns(task, Kind::Hard, &[0, 2]);
    assert_eq!((hard[1].eligible_at, hard[1].deadline), (6, 16));
    let soft = turns(task, Kind::Soft, &[0, 2]);
    assert_eq!((soft[1].eligible_at, soft[1].deadline), (2, 16));
}
