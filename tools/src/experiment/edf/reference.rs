//! Earliest deadline first, simulated off-line: what should have happened, from what is known
//! beforehand and the times at which things were seen to happen.
//!
//! It shares no code with the scheduler, and is as simple as can be: job k of a task is released at
//! k periods after the start, and all tasks are looked through for every question. Of a record it
//! takes the times: when a decision was made, when a thread was seen to run. Everything else it
//! predicts, and the record must agree: what happens next (the end of the job that runs, which
//! follows from what it has executed, or the alarm) and when, which task runs then, and when the next alarm
//! is to ring. Where an end and an alarm are so close that the times of the machine's own work
//! decide, either may come first.

use edf_record::{Decision, Event, Outcome, Set, Task};

/// What the machine's own work may add to what is predicted, in ticks.
#[derive(Clone, Copy, Debug)]
pub struct Tolerances {
    /// From the ringing of an alarm to the decision that follows.
    pub alarm: u64,
    /// What a job may execute less or more than its budget.
    pub job: u64,
    /// The same, for each time that it is let run.
    pub dispatch: u64,
}

/// What the record says of a job that should have met its deadline, and more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// Decisions that were compared.
    pub compared: usize,
    /// What differs, a line each.
    pub differences: Vec<String>,
    /// Jobs that have ended or whose deadline has passed, and those of them that were late.
    pub jobs: usize,
    pub missed: usize,
}

/// A task in the simulation; times in ticks since the start.
struct Simulated {
    period: u64,
    deadline: u64,
    budget: u64,
    /// Jobs that have ended.
    ended: u64,
    /// What the job that is released has executed, and how often it was let run.
    executed: u64,
    dispatches: u64,
}

impl Simulated {
    fn new(task: &Task, ticks_per_us: u64) -> Self {
        Self {
            period: task.period_us * ticks_per_us,
            deadline: task.deadline_us * ticks_per_us,
            budget: task.budget_us * ticks_per_us,
            ended: 0,
            executed: 0,
            dispatches: 0,
        }
    }

    fn release(&self) -> u64 {
        self.ended * self.period
    }

    fn due(&self) -> u64 {
        self.release() + self.deadline
    }
}

/// Simulates a set beside the record of it.
pub fn compare(set: &Set, outcome: &Outcome, ticks_per_us: u64, allowed: Tolerances) -> Verdict {
    let tasks = set.tasks.iter();
    let mut simulation = Simulation {
        tasks: tasks
            .map(|task| Simulated::new(task, ticks_per_us))
            .collect(),
        allowed,
        verdict: Verdict::default(),
    };
    let mut before: Option<(&Decision, Option<u64>)> = None;
    for (number, decision) in outcome.decisions.iter().enumerate() {
        let differs = match before {
            None => simulation.first(decision),
            Some((last, rung)) => simulation.follows(last, rung, decision),
        };
        let differs = differs.or_else(|| simulation.decides(decision));
        simulation.verdict.compared += 1;
        if let Some(differs) = differs {
            let line = format!("decision {number} at {} ticks: {differs}", decision.at);
            simulation.verdict.differences.push(line);
            // What follows would differ for this reason alone.
            return simulation.verdict;
        }
        before = Some((decision, before.and_then(|(last, _)| last.wake_at)));
    }
    if let Some(last) = outcome.decisions.last() {
        simulation.count_overdue(last.at);
    }
    simulation.verdict
}

struct Simulation {
    tasks: Vec<Simulated>,
    allowed: Tolerances,
    verdict: Verdict,
}

impl Simulation {
    /// All tasks start, and nothing has happened yet.
    fn first(&self, decision: &Decision) -> Option<String> {
        let is_start = decision.at <= self.allowed.alarm && decision.event == Event::Timer;
        (!is_start).then(|| format!("a start was expected, not {:?}", decision.event))
    }

    /// Whether what happened after `last` is what had to happen. `superseded` is the alarm before
    /// that which `last` set.
    fn follows(
        &mut self,
        last: &Decision,
        superseded: Option<u64>,
        decision: &Decision,
    ) -> Option<String> {
        if decision.at < last.at {
            return Some("the time goes back".to_owned());
        }
        let alarm = self.alarm(last.at);
        let Some(runs) = self.runs(last.at) else {
            return match decision.event {
                Event::Timer => self.alarm_rang(alarm, superseded, last, decision),
                event => Some(format!("{event:?}, but no job is released")),
            };
        };
        // Until the alarm, or until the end of the job that runs: whatever is first.
        let began = last
            .noticed
            .map_or(decision.last.max(last.at), |noticed| noticed.at);
        let task = &mut self.tasks[runs];
        task.dispatches += u64::from(last.noticed.is_some());
        let slack = self.allowed.job + self.allowed.dispatch * task.dispatches;
        let left = task.budget.saturating_sub(task.executed);
        task.executed += decision.last.saturating_sub(began);
        let executed = task.executed;
        match decision.event {
            Event::Timer if executed > task.budget + slack => Some(format!(
                "the job of task {runs} should have ended at {}, but runs on",
                began + left
            )),
            Event::Timer => self.alarm_rang(alarm, superseded, last, decision),
            Event::Completed(who) | Event::Overran(who) if who as usize != runs => Some(format!(
                "a job of task {who} ends while one of task {runs} runs"
            )),
            Event::Completed(_) | Event::Overran(_) if executed + slack < task.budget => {
                Some(format!(
                    "the job of task {runs} ends after {executed} of {} ticks",
                    task.budget
                ))
            }
            Event::Completed(_) | Event::Overran(_) if executed > task.budget + slack => {
                Some(format!(
                    "the job of task {runs} ends after {executed} of {} ticks",
                    task.budget
                ))
            }
            Event::Completed(_) | Event::Overran(_) => {
                let late = alarm.filter(|alarm| alarm + self.allowed.alarm < decision.at);
                self.end(runs, decision.at);
                late.map(|alarm| format!("the alarm of {alarm} has not rung"))
            }
            Event::Removed(who) => Some(format!("task {who} was removed")),
            Event::Blocked(who) => Some(format!("task {who}, which only computes, blocked")),
        }
    }

    /// Whether it was time for an alarm. One that was set before may ring while it is replaced.
    fn alarm_rang(
        &self,
        alarm: Option<u64>,
        superseded: Option<u64>,
        last: &Decision,
        decision: &Decision,
    ) -> Option<String> {
        let at = decision.at;
        let in_time = |alarm: u64| alarm <= at && at - alarm <= self.allowed.alarm;
        let while_replaced = superseded.is_some_and(|old| {
            old <= last.at + self.allowed.alarm && at <= last.at + 2 * self.allowed.alarm
        });
        if alarm.is_some_and(in_time) || (while_replaced && alarm.is_none_or(|next| next > at)) {
            return None;
        }
        Some(format!("an alarm at {at}, where {alarm:?} was expected"))
    }

    fn end(&mut self, index: usize, at: u64) {
        let task = &mut self.tasks[index];
        self.verdict.jobs += 1;
        self.verdict.missed += usize::from(at > task.due());
        task.ended += 1;
        task.executed = 0;
        task.dispatches = 0;
    }

    /// Whether the decision, and what came of it, is the right one.
    fn decides(&self, decision: &Decision) -> Option<String> {
        let runs = self.runs(decision.at);
        if decision.run.map(|task| task as usize) != runs {
            return Some(format!("{:?} is to run, not {runs:?}", decision.run));
        }
        let alarm = self.alarm(decision.at);
        if decision.wake_at != alarm {
            return Some(format!(
                "the alarm is set to {:?}, not to {alarm:?}",
                decision.wake_at
            ));
        }
        let noticed = decision.noticed?;
        (Some(noticed.task as usize) != runs)
            .then(|| format!("task {} ran, not {runs:?}", noticed.task))
    }

    /// The task whose job is released and has the earliest deadline; the first of several.
    fn runs(&self, now: u64) -> Option<usize> {
        let tasks = self.tasks.iter().enumerate();
        let released = tasks.filter(|(_, task)| task.release() <= now);
        released
            .min_by_key(|(index, task)| (task.due(), *index))
            .map(|(index, _)| index)
    }

    /// The next release of a task without a job, or the moment at which the job that runs is late.
    fn alarm(&self, now: u64) -> Option<u64> {
        let releases = self.tasks.iter().map(Simulated::release);
        let release = releases.filter(|release| *release > now).min();
        let due = self.runs(now).map(|index| self.tasks[index].due());
        let late = due.filter(|due| *due >= now).map(|due| due + 1);
        [release, late].into_iter().flatten().min()
    }

    /// Jobs whose deadlines have passed without an end.
    fn count_overdue(&mut self, now: u64) {
        let overdue = self.tasks.iter().filter(|task| task.due() < now).count();
        self.verdict.jobs += overdue;
        self.verdict.missed += overdue;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edf_record::Noticed;

    const ALLOWED: Tolerances = Tolerances {
        alarm: 5,
        job: 3,
        dispatch: 2,
    };

    /// Two tasks: 3 of every 10, and 4 of every 15.
    fn set() -> Set {
        let task = |period_us: u64, budget_us: u64| Task {
            period_us: period_us * 100,
            deadline_us: period_us * 100,
            budget_us: budget_us * 100,
        };
        Set {
            tasks: vec![task(10, 3), task(15, 4)],
        }
    }

    fn decision(at: u64, event: Event, run: Option<u32>, wake_at: u64) -> Decision {
        Decision {
            at,
            event,
            run,
            wake_at: Some(wake_at),
            last: at - at.min(1),
            noticed: run.map(|task| Noticed { task, at: at + 1 }),
        }
    }

    /// What should happen until 1500.
    fn right() -> Outcome {
        Outcome {
            set: 0,
            start: 77,
            decisions: vec![
                decision(0, Event::Timer, Some(0), 1001),
                decision(302, Event::Completed(0), Some(1), 1000),
                decision(704, Event::Completed(1), None, 1000),
                decision(1001, Event::Timer, Some(0), 1500),
                decision(1303, Event::Overran(0), None, 1500),
                decision(1502, Event::Timer, Some(1), 2000),
            ],
        }
    }

    fn verdict(outcome: &Outcome) -> Verdict {
        compare(&set(), outcome, 1, ALLOWED)
    }

    #[test]
    fn what_should_happen_is_accepted() {
        let verdict = verdict(&right());
        assert_eq!(verdict.differences, Vec::<String>::new());
        assert_eq!((verdict.compared, verdict.jobs, verdict.missed), (6, 3, 0));
    }

    #[test]
    fn what_should_not_is_found() {
        type Tamper = fn(&mut Vec<Decision>);
        let cases: [(&str, Tamper); 9] = [
            ("the other task runs", |d| d[0].run = Some(1)),
            ("nobody runs", |d| d[1].run = None),
            ("another ran than was to", |d| {
                d[0].noticed = Some(Noticed { task: 1, at: 1 });
            }),
            ("an alarm is forgotten", |d| d[2].wake_at = None),
            ("an alarm is set for another time", |d| {
                d[3].wake_at = Some(1400)
            }),
            ("a job ends early", |d| (d[1].at, d[1].last) = (250, 250)),
            ("a job ends late", |d| (d[1].at, d[1].last) = (350, 350)),
            ("an alarm rings late", |d| d[3].at = 1010),
            ("a job ends that did not run", |d| {
                d[1].event = Event::Completed(1)
            }),
        ];
        for (what, tamper) in cases {
            let mut outcome = right();
            tamper(&mut outcome.decisions);
            assert_eq!(verdict(&outcome).differences.len(), 1, "{what}");
        }
    }

    #[test]
    fn late_jobs_are_counted() {
        let mut outcome = right();
        // The first task keeps running, and no other may stop it: its deadline passes.
        outcome.decisions.truncate(1);
        outcome
            .decisions
            .push(decision(1001, Event::Timer, Some(0), 1500));
        // Neither task has another release to come.
        outcome.decisions[1].wake_at = None;
        outcome.decisions[1].last = 300;
        assert_eq!(verdict(&outcome).missed, 1);
    }
}
