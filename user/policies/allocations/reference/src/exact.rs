//! The exact processor-demand test (section 2, equation 2.1).

use sandglass_allocations::Task;

/// Whether all deadlines of the tasks are met under earliest deadline first, whenever they are released: quick
/// processor-demand analysis (the paper's reference 38).
///
/// # Panics
/// Periods whose least common multiple does not fit into 128 bits, at a utilisation that is not below 1.
pub fn is_schedulable(tasks: &[Task]) -> bool {
    let Some(first) = tasks.iter().map(|task| u128::from(task.deadline())).min() else {
        return true;
    };
    if !is_within_one(tasks) {
        return false;
    }
    let mut interval = match last_deadline(tasks, busy_period(tasks)) {
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
pub fn is_within_one(tasks: &[Task]) -> bool {
    let sum: f64 = tasks
        .iter()
        .map(|task| task.budget() as f64 / task.period() as f64)
        .sum();
    // Far enough away for the errors of the sum.
    if (sum - 1.0).abs() > 1e-9 {
        return sum < 1.0;
    }
    let whole = tasks.iter().try_fold(1u128, |whole, task| {
        let period = u128::from(task.period());
        whole.checked_mul(period / gcd(whole, period))
    });
    let whole = whole.expect("the least common multiple of the periods fits");
    let used: u128 = tasks
        .iter()
        .map(|task| u128::from(task.budget()) * (whole / u128::from(task.period())))
        .sum();
    used <= whole
}

/// The demand of all tasks in an interval, in ticks.
pub fn demand(tasks: &[Task], interval: u128) -> u128 {
    let interval = u64::try_from(interval).unwrap_or(u64::MAX);
    tasks.iter().map(|task| task.demand(interval)).sum()
}

/// The length of the longest time for which the processor is busy: the first instant at which all that was released
/// before is done, when all tasks are released at once and as often as they may.
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
    let last = |task: &Task| {
        let (period, deadline) = (u128::from(task.period()), u128::from(task.deadline()));
        let after = before.checked_sub(deadline + 1)?;
        Some(deadline + after / period * period)
    };
    tasks.iter().filter_map(last).max()
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
