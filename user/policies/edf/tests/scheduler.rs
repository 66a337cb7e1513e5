//! The scheduler beside the obvious: every decision is what a look at all jobs says.

use proptest::prelude::*;
use sandglass_edf::{Event, Late, Parameters, Scheduler, TaskId};

/// A task as a list of what happened.
#[derive(Clone, Debug)]
struct Naive {
    parameters: Parameters,
    start: u64,
    /// Number of the first job that has not ended.
    job: u64,
    /// That job does not run.
    blocked: bool,
    removed: bool,
}

impl Naive {
    fn release(&self) -> u64 {
        self.start + self.parameters.offset + self.job * self.parameters.period
    }

    fn deadline(&self) -> u64 {
        self.release() + self.parameters.deadline
    }

    fn is_ready(&self, now: u64) -> bool {
        !self.removed && self.release() <= now
    }
}

fn parameters() -> impl Strategy<Value = Parameters> {
    (1u64..40, 0u64..40, 0u64..30).prop_map(|(period, deadline, offset)| Parameters {
        period,
        deadline: 1 + deadline % period,
        offset,
    })
}

/// A step: how much later, what happens, and to which task.
fn steps() -> impl Strategy<Value = Vec<(u64, u8, usize)>> {
    prop::collection::vec((0u64..25, 0u8..20, any::<usize>()), 1..120)
}

proptest! {
    #[test]
    fn every_decision_is_the_obvious_one(
        tasks in prop::collection::vec(parameters(), 1..8),
        steps in steps(),
        skip in any::<bool>(),
        start in 0u64..1000,
    ) {
        let late = if skip { Late::Skip } else { Late::CatchUp };
        let mut scheduler = Scheduler::new(&tasks, late, start);
        let mut naive: Vec<_> = tasks
            .iter()
            .map(|&parameters| Naive { parameters, start, job: 0, blocked: false, removed: false })
            .collect();
        let mut now = start;
        let mut running = None;
        // Of the step before: nothing is released between steps, nor before the first.
        let mut looked_at = None;
        for (later, kind, choice) in steps {
            now += later;
            let any = TaskId(choice % tasks.len());
            let event = match (kind, running) {
                (0, _) => Event::Removed(any),
                // Not only the job that runs may end: a task that blocks lets others run.
                (1, _) => Event::Completed(any),
                (2..=9, Some(task)) => Event::Completed(task),
                (10..=13, Some(task)) => Event::Overran(task),
                (14..=15, Some(task)) => Event::Blocked(task),
                _ => Event::Timer,
            };
            let decision = scheduler.step(now, event);

            match event {
                Event::Completed(task) | Event::Overran(task) => {
                    let ended = &mut naive[task.0];
                    if looked_at.is_some_and(|then| ended.is_ready(then)) {
                        let skips = skip || ended.blocked;
                        ended.job += 1;
                        ended.blocked = false;
                        while skips && ended.release() < now {
                            ended.job += 1;
                        }
                    }
                }
                Event::Blocked(task) => naive[task.0].blocked = true,
                Event::Removed(task) => naive[task.0].removed = true,
                Event::Timer => {}
            }
            let can_run = |task: &Naive| task.is_ready(now) && !task.blocked;
            let ready = naive.iter().enumerate().filter(|(_, task)| can_run(task));
            let expected = ready.min_by_key(|(index, task)| (task.deadline(), *index));
            let run = decision.run.map(|job| (job.task.0, job.number, job.release, job.deadline));
            let obvious =
                expected.map(|(i, task)| (i, task.job, task.release(), task.deadline()));
            prop_assert_eq!(run, obvious);
            running = decision.run.map(|job| job.task);
            looked_at = Some(now);

            let to_come = naive.iter().filter(|task| !task.removed && !task.is_ready(now));
            let next_release = to_come.map(Naive::release).min();
            match (decision.wake_at, next_release) {
                (Some(wake), Some(release)) => prop_assert!(wake > now && wake <= release),
                (Some(wake), None) => prop_assert_eq!(Some(wake), decision.run.map(|j| j.deadline + 1)),
                (None, release) => prop_assert_eq!(release, None),
            }
        }
    }

    /// Without overhead, EDF meets every deadline of every set of implicit deadlines whose
    /// utilisation is at most 1.
    #[test]
    fn no_deadline_is_missed_up_to_full_utilisation(
        raw in prop::collection::vec((1u64..50, 1u64..20), 1..6),
        start in 0u64..100,
    ) {
        // Budgets that add up to at most 1.
        let count = raw.len() as u64;
        let tasks: Vec<_> = raw
            .iter()
            .map(|&(period, budget)| {
                let period = period * count;
                (Parameters { period, deadline: period, offset: 0 }, budget.min(period / count))
            })
            .collect();
        let parameters: Vec<_> = tasks.iter().map(|(parameters, _)| *parameters).collect();
        let mut scheduler = Scheduler::new(&parameters, Late::CatchUp, start);
        let mut left: Vec<_> = tasks.iter().map(|(_, budget)| *budget).collect();
        let mut now = start;
        let mut event = Event::Timer;
        for _ in 0..2000 {
            let decision = scheduler.step(now, event);
            let wake = decision.wake_at.unwrap_or(u64::MAX);
            let Some(job) = decision.run else {
                now = wake;
                event = Event::Timer;
                continue;
            };
            let left = &mut left[job.task.0];
            if now + *left <= wake {
                now += *left;
                *left = tasks[job.task.0].1;
                event = Event::Completed(job.task);
                prop_assert!(now <= job.deadline);
            } else {
                *left -= wake - now;
                now = wake;
                event = Event::Timer;
            }
        }
        for task in 0..tasks.len() {
            prop_assert_eq!(scheduler.misses(TaskId(task)), 0);
        }
    }
}

fn one(late: Late) -> Scheduler {
    let parameters = Parameters {
        period: 10,
        deadline: 8,
        offset: 0,
    };
    Scheduler::new(&[parameters], late, 100)
}

#[test]
fn a_miss_is_noticed_when_it_happens_and_counted_once() {
    let mut scheduler = one(Late::CatchUp);
    let decision = scheduler.step(100, Event::Timer);
    assert_eq!(decision.wake_at, Some(109), "the deadline is 108");
    let decision = scheduler.step(109, Event::Timer);
    assert_eq!((scheduler.misses(TaskId(0)), decision.wake_at), (1, None));
    let _ = scheduler.step(115, Event::Completed(TaskId(0)));
    assert_eq!(scheduler.misses(TaskId(0)), 1);
}

#[test]
fn releases_that_a_late_job_passed_are_caught_up_with_or_skipped() {
    for (late, number, release) in [(Late::CatchUp, 1, 110), (Late::Skip, 4, 140)] {
        let mut scheduler = one(late);
        let _ = scheduler.step(100, Event::Timer);
        let _ = scheduler.step(135, Event::Completed(TaskId(0)));
        let decision = scheduler.step(140, Event::Timer);
        let job = decision.run.unwrap();
        assert_eq!((job.number, job.release), (number, release));
    }
}

#[test]
fn a_call_without_a_job_changes_nothing() {
    let mut scheduler = one(Late::CatchUp);
    let _ = scheduler.step(100, Event::Timer);
    let first = scheduler.step(103, Event::Completed(TaskId(0)));
    let again = scheduler.step(104, Event::Completed(TaskId(0)));
    assert_eq!(first, again);
}

/// What a task did not do while it slept is not done at once when it wakes: others have deadlines.
#[test]
fn releases_that_pass_while_a_job_is_blocked_are_skipped_also_when_catching_up() {
    let mut scheduler = one(Late::CatchUp);
    let _ = scheduler.step(100, Event::Timer);
    let _ = scheduler.step(101, Event::Blocked(TaskId(0)));
    let _ = scheduler.step(155, Event::Completed(TaskId(0)));
    let decision = scheduler.step(160, Event::Timer);
    let job = decision.run.unwrap();
    assert_eq!((job.number, job.release), (6, 160));
    // That was that job's own trouble: the next that is late is caught up with.
    let _ = scheduler.step(185, Event::Completed(TaskId(0)));
    let job = scheduler.step(185, Event::Timer).run.unwrap();
    assert_eq!((job.number, job.release), (7, 170));
}
