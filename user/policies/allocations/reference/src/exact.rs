//! The exact processor-demand test (paper, section 2, equation 2.1).

use sandglass_allocations::{Rate, Task};

/// Whether all deadlines of the tasks are met under earliest deadline first, whenever they are released: quick
/// processor-demand analysis (the paper's reference 38).
///
/// # Panics
/// As of [`is_within_one`].
pub fn is_schedulable(tasks: &[Task]) -> bool {
    let Some(first) = tasks.iter().map(|task| u128::from(task.deadline())).min() else {
        return true;
    };
    // Most sets that are not schedulable fail in a short interval, which is found at once.
    let is_short = |task: &Task| demand(tasks, task.deadline().into()) > task.deadline().into();
    if !is_within_one(tasks) || tasks.iter().any(is_short) {
        return false;
    }
    let mut interval = match last_deadline(tasks, longest_interval(tasks)) {
        None => return true,
        Some(deadline) => deadline,
    };
    loop {
        let demand = demand(tasks, interval);
        if demand > interval {
            return false;
        }
        if demand <= first {
            return true;
        }
        interval = if demand < interval {
            demand
        } else {
            match last_deadline(tasks, interval) {
                None => return true,
                Some(deadline) => deadline,
            }
        };
    }
}

/// Budgets by periods add up to at most 1, exactly.
///
/// # Panics
/// The sum is so close to 1 that only a common denominator tells, and that does not fit into 128 bits.
pub fn is_within_one(tasks: &[Task]) -> bool {
    let sum = |rate: fn(u64, u64) -> Option<Rate>| -> u128 {
        let rates = tasks
            .iter()
            .filter_map(|task| rate(task.budget(), task.period()));
        rates.map(|rate| u128::from(rate.parts())).sum()
    };
    let whole = u128::from(Rate::WHOLE.parts());
    if sum(Rate::at_least) <= whole || sum(Rate::at_most) > whole {
        return sum(Rate::at_least) <= whole;
    }
    let whole = tasks.iter().try_fold(1u128, |whole, task| {
        let period = u128::from(task.period());
        whole.checked_mul(period / gcd(whole, period))
    });
    let whole = whole.expect("the least common multiple of the periods fits");
    let share = |task: &Task| u128::from(task.budget()) * (whole / u128::from(task.period()));
    tasks.iter().map(share).sum::<u128>() <= whole
}

/// The demand of all tasks in an interval, in ticks.
pub fn demand(tasks: &[Task], interval: u128) -> u128 {
    let interval = u64::try_from(interval).unwrap_or(u64::MAX);
    tasks.iter().map(|task| task.demand(interval)).sum()
}

/// Deadlines from this interval on need not be looked at.
fn longest_interval(tasks: &[Task]) -> u128 {
    below_time(tasks).unwrap_or_else(|| busy_period(tasks))
}

/// An interval from which on the line of the utilisations is below time, whatever the deadlines are; `None` at a
/// utilisation of about 1.
fn below_time(tasks: &[Task]) -> Option<u128> {
    let rate = |task: &Task| task.budget() as f64 / task.period() as f64;
    let left = 1.0 - tasks.iter().map(rate).sum::<f64>();
    // Far more than what the sum may be wrong by.
    if left < 1e-10 {
        return None;
    }
    let early: f64 = tasks
        .iter()
        .map(|task| rate(task) * (task.period() - task.deadline()) as f64)
        .sum();
    let first = tasks.iter().map(|task| u128::from(task.deadline())).max()?;
    Some(first.max((early / left * 1.001) as u128) + 1)
}

/// The first instant at which all that was released before is done, when all tasks are released at once and as often
/// as they may.
fn busy_period(tasks: &[Task]) -> u128 {
    let mut length: u128 = tasks.iter().map(|task| u128::from(task.budget())).sum();
    loop {
        let jobs = |task: &Task| length.div_ceil(u128::from(task.period()));
        let next = tasks
            .iter()
            .map(|task| jobs(task) * u128::from(task.budget()))
            .sum();
        if next == length {
            return length;
        }
        length = next;
    }
}

/// The last deadline before an instant, of tasks that are released together.
fn last_deadline(tasks: &[Task], before: u128) -> Option<u128> {
    let before = u64::try_from(before).unwrap_or(u64::MAX);
    let last = |task: &Task| {
        let after = before.checked_sub(task.deadline() + 1)?;
        Some(task.deadline() + after / task.period() * task.period())
    };
    tasks.iter().filter_map(last).max().map(u128::from)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks;

    /// The same by looking at every interval of a hyperperiod and more.
    fn plain(tasks: &[Task]) -> bool {
        is_within_one(tasks)
            && (0..=2 * tasks::HYPERPERIOD).all(|t| demand(tasks, t.into()) <= t.into())
    }

    #[test]
    fn quick_analysis_says_what_looking_everywhere_says() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut admitted = 0;
        for _ in 0..2_000 {
            let tasks: Vec<_> = (0..rng.usize(1..6))
                .map(|_| tasks::small(&mut rng))
                .collect();
            assert_eq!(is_schedulable(&tasks), plain(&tasks), "{tasks:?}");
            admitted += u32::from(is_schedulable(&tasks));
        }
        assert!((400..1_600).contains(&admitted), "{admitted} of 2000");
    }
}
