//! Whether jobs with deadlines before their periods' ends can all be in time: the processor-demand
//! criterion, by Zhang and Burns's quick analysis (QPA: "Schedulability Analysis for Real-Time Systems with
//! EDF Scheduling", IEEE Transactions on Computers 58(9), 2009).
//!
//! Beside the tasks there may be reservations of threads above them. Such a thread takes its budget at most once in
//! any window of its period, so that it takes it `t / period` times, rounded up, in a window of length `t`; in how
//! many pieces does not matter.
//!
//! Without reservations above it is exact for tasks that are all released at once, as theirs is the worst case; with
//! them it is safe. It takes the scheduler's own time, and requests to servers, for nothing.

/// A task; times in µs, each at least 1, the deadline at most the period.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    pub budget: u64,
    pub period: u64,
    pub deadline: u64,
}

/// The reservation of a thread above the tasks; µs, the budget below the period.
#[derive(Clone, Copy, Debug)]
pub struct Reservation {
    pub budget: u64,
    pub period: u64,
}

/// What is known of a set of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every deadline has room for what is due until then.
    InTime,
    /// More is asked for than the processor has, for ever: millionths of the processor, rounded up.
    TooMuch {
        share: u64,
    },
    Overload(Overload),
    /// It was not found out in the time that there was: the utilisation is 1, or next to it.
    Undecided,
}

/// An instant at which more has been asked for than there was time; both in µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// After a release of all tasks at once: a deadline.
    pub at: u64,
    /// The budgets of all jobs that are released and due until then, and what the reservations take.
    pub demand: u64,
}

/// Steps after which it is given up to look.
const MOST_STEPS: usize = 1_000_000;

/// Whether the `tasks` are in time on a processor with the reservations `above` them.
pub fn analyse(tasks: &[Task], above: &[Reservation]) -> Verdict {
    let Some(first) = tasks.iter().map(|task| task.deadline).min() else {
        return Verdict::InTime;
    };
    if let Some(share) = excess(tasks, above) {
        return Verdict::TooMuch { share };
    }
    let Some(busy) = busy_period(tasks, above) else {
        return Verdict::Undecided;
    };
    let mut end = busy.saturating_add(1);
    for _ in 0..MOST_STEPS {
        // Between deadlines nothing can be missed.
        let Some(at) = deadline_before(tasks, end) else {
            return Verdict::InTime;
        };
        let demand = demand(tasks, above, at);
        if demand > at {
            return Verdict::Overload(Overload { at, demand });
        }
        if demand < first {
            return Verdict::InTime;
        }
        // The deadlines from there to here have less demand than this one, and so are met.
        end = at.min(demand.saturating_add(1));
    }
    Verdict::Undecided
}

/// If more than the whole processor is asked for, how much: millionths, rounded up. Exact: the sum of the fractions is
/// compared with 1 over their common denominator, as far as that can be told in whole numbers, and
/// otherwise in 2^64ths, rounded up.
fn excess(tasks: &[Task], above: &[Reservation]) -> Option<u64> {
    let tasks = tasks.iter().map(|task| (task.budget, task.period));
    let above = above.iter().map(|above| (above.budget, above.period));
    let shares: Vec<(u64, u64)> = tasks.chain(above).collect();
    let millionths: u64 = shares
        .iter()
        .map(|&(budget, period)| (u128::from(budget) * 1_000_000).div_ceil(u128::from(period)))
        .fold(0, |sum, share| {
            sum.saturating_add(share.try_into().unwrap_or(u64::MAX))
        });
    let exact = shares
        .iter()
        .try_fold((0_u128, 1_u128), |(above, below), &(budget, period)| {
            let (budget, period) = (u128::from(budget), u128::from(period));
            let common = below.checked_mul(period)? / gcd(below, period);
            let sum = above
                .checked_mul(common / below)?
                .checked_add(budget.checked_mul(common / period)?)?;
            Some((sum, common))
        });
    let is_too_much = match exact {
        Some((sum, one)) => sum > one,
        None => {
            let share = |&(budget, period): &(u64, u64)| {
                (u128::from(budget) << 64).div_ceil(u128::from(period))
            };
            shares.iter().map(share).fold(0, u128::saturating_add) > 1 << 64
        }
    };
    is_too_much.then_some(millionths)
}

const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The budgets of all jobs that are released and due from 0 to `at`, and what the reservations take until then.
fn demand(tasks: &[Task], above: &[Reservation], at: u64) -> u64 {
    let of = |task: &Task| match at.checked_sub(task.deadline) {
        None => 0,
        Some(rest) => (rest / task.period + 1).saturating_mul(task.budget),
    };
    let tasks = tasks.iter().map(of).fold(0, u64::saturating_add);
    tasks.saturating_add(taken(above, at))
}

/// The most that the reservations take in a window of `length`.
fn taken(above: &[Reservation], length: u64) -> u64 {
    let of = |above: &Reservation| length.div_ceil(above.period).saturating_mul(above.budget);
    above.iter().map(of).fold(0, u64::saturating_add)
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
fn busy_period(tasks: &[Task], above: &[Reservation]) -> Option<u64> {
    let mut length = 1;
    for _ in 0..MOST_STEPS {
        let of = |task: &Task| length_of_jobs(task, length);
        let next = tasks.iter().map(of).fold(0, u64::saturating_add);
        let next = next.saturating_add(taken(above, length));
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
            if excess(&tasks, &[]).is_some() {
                continue;
            }
            let missed = is_missed(&tasks);
            let is_overload = matches!(analyse(&tasks, &[]), Verdict::Overload(_));
            assert_eq!(is_overload, missed, "{tasks:?}");
            seen[usize::from(missed)] += 1;
        }
        assert!(seen.iter().all(|&seen| seen > 300), "{seen:?}");
    }

    #[test]
    fn an_overload_says_when_and_how_much() {
        let tasks = [task(2, 10, 3), task(2, 10, 3)];
        let overload = Overload { at: 3, demand: 4 };
        assert_eq!(analyse(&tasks, &[]), Verdict::Overload(overload));
    }

    #[test]
    fn a_full_processor_is_no_overload() {
        assert_eq!(analyse(&[], &[]), Verdict::InTime);
        assert_eq!(analyse(&[task(10, 10, 10)], &[]), Verdict::InTime);
        let thirds = [task(1, 3, 3), task(1, 3, 3), task(1, 3, 3)];
        assert_eq!(analyse(&thirds, &[]), Verdict::InTime, "no rounding");
    }

    #[test]
    fn what_is_given_up_is_not_admitted() {
        // All of the processor, and all begins anew only after the product of the first two periods.
        let (p, q) = (1_000_003, 999_983);
        let long = [
            task(650002, p, p),
            task(349994, q, q),
            task(1, p * q, p * q),
        ];
        assert_eq!(analyse(&long, &[]), Verdict::Undecided);
    }

    #[test]
    fn more_than_the_processor_has_is_told_by_how_much() {
        let tasks = [task(1, 2, 2), task(1, 3, 3)];
        let above = [Reservation {
            budget: 1,
            period: 6,
        }];
        assert_eq!(analyse(&tasks, &above), Verdict::InTime);
        let above = [Reservation {
            budget: 2,
            period: 11,
        }];
        let share = 500_000 + 333_334 + 181_819;
        assert_eq!(analyse(&tasks, &above), Verdict::TooMuch { share });
    }

    /// A reservation above delays as often as it can from the critical instant on.
    #[test]
    fn a_reservation_above_takes_its_budget_from_every_deadline() {
        let tasks = [task(4, 10, 5)];
        let above = |budget, period| [Reservation { budget, period }];
        assert_eq!(analyse(&tasks, &above(1, 10)), Verdict::InTime);
        let overload = Overload { at: 5, demand: 6 };
        assert_eq!(analyse(&tasks, &above(2, 10)), Verdict::Overload(overload));
        assert_eq!(
            analyse(&tasks, &above(1, 4)),
            Verdict::Overload(Overload { at: 5, demand: 6 })
        );
    }
}
