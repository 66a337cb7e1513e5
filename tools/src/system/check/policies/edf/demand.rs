//! Whether jobs with deadlines before their periods' ends can all be in time: the processor-demand
//! criterion, by Zhang and Burns's quick analysis (QPA: "Schedulability Analysis for Real-Time Systems with
//! EDF Scheduling", IEEE Transactions on Computers 58(9), 2009).
//!
//! It is exact for tasks that are all released at once, as theirs is the worst case, and takes the
//! scheduler's own time for nothing.

/// A task; times in µs, each at least 1, the deadline at most the period.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub budget: u64,
    pub period: u64,
    pub deadline: u64,
}

/// An instant at which more has been asked for than there was time; both in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// After a release of all tasks at once: a deadline.
    pub at: u64,
    /// The budgets of all jobs that are released and due until then.
    pub demand: u64,
}

/// Steps after which it is given up to look: the utilisation is 1, or next to it.
const MOST_STEPS: usize = 1_000_000;

/// The latest overload that the analysis finds; `None` if there is none, or none was found within
/// [`MOST_STEPS`]. To be called for a utilisation of at most 1.
pub fn overload(tasks: &[Task]) -> Option<Overload> {
    let first = tasks.iter().map(|task| task.deadline).min()?;
    let mut at = deadline_before(tasks, busy_period(tasks)?.saturating_add(1))?;
    for _ in 0..MOST_STEPS {
        let demand = demand(tasks, at);
        if demand > at {
            return Some(Overload { at, demand });
        }
        if demand <= first {
            return None;
        }
        at = if demand < at {
            demand
        } else {
            deadline_before(tasks, at)?
        };
    }
    None
}

/// The budgets of all jobs that are released and due from 0 to `at`.
fn demand(tasks: &[Task], at: u64) -> u64 {
    let of = |task: &Task| match at.checked_sub(task.deadline) {
        None => 0,
        Some(rest) => (rest / task.period + 1).saturating_mul(task.budget),
    };
    tasks.iter().map(of).fold(0, u64::saturating_add)
}

/// The last deadline before `end`, after a release of all tasks at 0.
fn deadline_before(tasks: &[Task], end: u64) -> Option<u64> {
    let last = |task: &Task| {
        let rest = end.checked_sub(task.deadline + 1)?;
        Some(rest / task.period * task.period + task.deadline)
    };
    tasks.iter().filter_map(last).max()
}

/// How long the processor is busy after a release of all tasks at once: no deadline after that can be
/// the first that is missed.
fn busy_period(tasks: &[Task]) -> Option<u64> {
    let mut length = 1;
    for _ in 0..MOST_STEPS {
        let of = |task: &Task| length_of_jobs(task, length);
        let next = tasks.iter().map(of).fold(0, u64::saturating_add);
        if next <= length {
            return Some(length);
        }
        length = next;
    }
    None
}

/// The budgets of the jobs of a task that are released before `end`.
fn length_of_jobs(task: &Task, end: u64) -> u64 {
    end.div_ceil(task.period).saturating_mul(task.budget)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(budget: u64, period: u64, deadline: u64) -> Task {
        Task {
            budget,
            period,
            deadline,
        }
    }

    fn least_common_multiple(a: u64, b: u64) -> u64 {
        (1..=b)
            .map(|factor| a * factor)
            .find(|c| c % b == 0)
            .unwrap()
    }

    /// Runs EDF, microsecond by microsecond, until the processor idles or all begins anew.
    fn is_missed(tasks: &[Task]) -> bool {
        // Of each task: deadline and rest of its job, and the next release.
        let mut jobs: Vec<(u64, u64, u64)> = vec![(0, 0, 0); tasks.len()];
        let periods = tasks.iter().map(|task| task.period);
        for now in 0..periods.fold(1, least_common_multiple) {
            for (job, task) in jobs.iter_mut().zip(tasks) {
                if now == job.2 {
                    if job.1 > 0 {
                        return true;
                    }
                    *job = (now + task.deadline, task.budget, now + task.period);
                }
            }
            if jobs.iter().any(|job| job.1 > 0 && job.0 <= now) {
                return true;
            }
            match jobs.iter_mut().filter(|job| job.1 > 0).min() {
                Some(job) => job.1 -= 1,
                None => return false,
            }
        }
        false
    }

    #[test]
    fn it_finds_what_a_simulation_misses_and_nothing_else() {
        fastrand::seed(1);
        let mut seen = [0; 2];
        for _ in 0..5_000 {
            let count = fastrand::usize(1..5);
            let tasks: Vec<Task> = (0..count)
                .map(|_| {
                    let period = fastrand::u64(2..30);
                    let budget = fastrand::u64(1..=1.max(period / count as u64));
                    task(budget, period, fastrand::u64(budget..=period))
                })
                .collect();
            let utilisation: f64 = tasks
                .iter()
                .map(|task| task.budget as f64 / task.period as f64)
                .sum();
            if utilisation > 1.0 {
                continue;
            }
            let missed = is_missed(&tasks);
            assert_eq!(overload(&tasks).is_some(), missed, "{tasks:?}");
            seen[usize::from(missed)] += 1;
        }
        assert!(seen.iter().all(|&seen| seen > 300), "{seen:?}");
    }

    #[test]
    fn an_overload_says_when_and_how_much() {
        let tasks = [task(2, 10, 3), task(2, 10, 3)];
        assert_eq!(overload(&tasks), Some(Overload { at: 3, demand: 4 }));
    }

    #[test]
    fn a_full_processor_is_no_overload_and_looking_ends() {
        assert_eq!(overload(&[]), None);
        assert_eq!(overload(&[task(10, 10, 10)]), None);
        let long = [task(1, 2, 2), task(499_999_979, 999_999_958, 999_999_958)];
        assert_eq!(overload(&long), None);
    }
}
