//! Task sets: utilisations that are uniform among those with a given sum, periods that are uniform in
//! their logarithm (Emberson, Stafford, Davis: *Techniques for the Synthesis of Multiprocessor
//! Tasksets*, WATERS 2010).

use edf_record::{Set, Task};
use fastrand::Rng;

/// Periods, µs: 10 to 1,000 ms.
const PERIODS_US: (f64, f64) = (10_000.0, 1_000_000.0);
/// Least utilisation of a task, so that the shortest job is several times the kernel's minimum budget.
const LEAST: f64 = 0.01;
/// Utilisations of sets.
const SUMS: (f64, f64) = (0.3, 1.0);

/// A set of `tasks` tasks with implicit deadlines, whose utilisation is uniform too.
pub fn random(rng: &mut Rng, tasks: usize) -> Set {
    let sum = SUMS.0 + (SUMS.1 - SUMS.0) * rng.f64();
    let utilisations = rand_fixed_sum(rng, tasks, sum, LEAST, 1.0);
    let tasks = utilisations.into_iter().map(|utilisation| {
        let period = log_uniform(rng, PERIODS_US);
        let period_us = period as u64;
        Task {
            period_us,
            deadline_us: period_us,
            // Rounded down, so that the sum is not exceeded; below the period, at which it would
            // not be enforced.
            budget_us: ((period_us as f64 * utilisation) as u64).min(period_us - 1),
        }
    });
    Set {
        tasks: tasks.collect(),
    }
}

/// Budgets, each by its period.
pub fn utilisation(set: &Set) -> f64 {
    let tasks = set.tasks.iter();
    tasks
        .map(|task| task.budget_us as f64 / task.period_us as f64)
        .sum()
}

/// A number between two, uniform in its logarithm.
pub fn log_uniform(rng: &mut Rng, (least, most): (f64, f64)) -> f64 {
    (least.ln() + (most.ln() - least.ln()) * rng.f64()).exp()
}

/// `count` numbers from `least` to `most` whose sum is `sum`, uniform among all such points (Stafford's
/// algorithm *randfixedsum*).
///
/// # Panics
/// There are no such numbers.
pub fn rand_fixed_sum(rng: &mut Rng, count: usize, sum: f64, least: f64, most: f64) -> Vec<f64> {
    let n = count as f64;
    assert!(count > 0 && least < most, "there are numbers");
    assert!(
        n * least <= sum && sum <= n * most,
        "{count} numbers from {least} to {most} cannot add up to {sum}"
    );
    let unit = unit_sum(rng, count, (sum - n * least) / (most - least));
    unit.into_iter()
        .map(|x| least + (most - least) * x)
        .collect()
}

/// Numbers from 0 to 1 with a sum. The points are a polytope that is divided into simplices: a table
/// of their volumes tells how often to walk into which, dimension by dimension.
fn unit_sum(rng: &mut Rng, n: usize, sum: f64) -> Vec<f64> {
    let k = (sum.floor() as usize).min(n - 1);
    let moves = table(n, k, sum);
    let mut values = Vec::with_capacity(n);
    let (mut rest, mut column) = (sum, k);
    let (mut passed, mut scale) = (0.0, 1.0);
    for dimension in (1..n).rev() {
        let up = rng.f64() <= moves[dimension - 1][column];
        let step = f64::from(u8::from(up));
        let position = rng.f64().powf(1.0 / dimension as f64);
        passed += (1.0 - position) * scale * rest / (dimension + 1) as f64;
        scale *= position;
        values.push(passed + scale * step);
        rest -= step;
        column -= usize::from(up);
    }
    values.push(passed + scale * rest);
    // The dimensions were not equal before the law.
    rng.shuffle(&mut values);
    values
}

/// Probabilities of moving up: of dimension d + 1 in row d, by the whole part of what is left.
fn table(n: usize, k: usize, sum: f64) -> Vec<Vec<f64>> {
    // Far from overflow, and from underflow: rows shrink like volumes, by factorials.
    const LARGE: f64 = f64::MAX / 1e3;
    let below = |i: usize| sum - k as f64 + i as f64;
    let above = |i: usize| (k + n - i) as f64 - sum;
    let mut volumes = vec![0.0; n + 1];
    volumes[1] = LARGE;
    let mut moves = Vec::with_capacity(n - 1);
    for i in 2..=n {
        let mut next = vec![0.0; n + 1];
        let mut row = vec![0.0; n];
        for j in 0..i {
            let (s1, s2) = (below(j), above(n - i + j));
            let up = volumes[j + 1] * s1 / i as f64;
            let stay = volumes[j] * s2 / i as f64;
            next[j + 1] = up + stay;
            let total = next[j + 1] + f64::MIN_POSITIVE;
            row[j] = if s2 > s1 {
                stay / total
            } else {
                1.0 - up / total
            };
        }
        volumes = next;
        moves.push(row);
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_exact_and_the_bounds_are_kept() {
        let mut rng = Rng::with_seed(1);
        for count in 1..=20 {
            for sum in [0.25, 0.5, 0.999, 1.0] {
                for _ in 0..200 {
                    let values = rand_fixed_sum(&mut rng, count, sum, LEAST, 1.0);
                    let total: f64 = values.iter().sum();
                    assert!((total - sum).abs() < 1e-9, "{total} for {sum}");
                    let kept = |x: &f64| (LEAST - 1e-12..=1.0 + 1e-12).contains(x);
                    assert!(values.iter().all(kept), "{values:?}");
                }
            }
        }
    }

    /// With a sum of 1, the bound of 1 excludes nothing: the points are a simplex, and every value is
    /// below x with the probability 1 - (1 - x)^(n - 1).
    #[test]
    fn every_value_has_the_distribution_of_a_simplex() {
        const POINTS: usize = 20_000;
        let mut rng = Rng::with_seed(2);
        for count in [2usize, 3, 7] {
            let points: Vec<_> = (0..POINTS)
                .map(|_| rand_fixed_sum(&mut rng, count, 1.0, 0.0, 1.0))
                .collect();
            for index in 0..count {
                for x in [0.05, 0.1, 0.2, 0.5, 0.8] {
                    let below = points.iter().filter(|point| point[index] < x).count();
                    let expected = 1.0 - (1.0 - x).powi(count as i32 - 1);
                    let share = below as f64 / POINTS as f64;
                    // More than four standard deviations.
                    assert!(
                        (share - expected).abs() < 0.015,
                        "{count}: {share} for {expected}"
                    );
                }
            }
        }
    }

    /// Where both bounds cut: three numbers from 0 to 1 with the sum 1.5 are a regular hexagon, as
    /// rejection sampling shows it.
    #[test]
    fn points_between_two_bounds_are_uniform() {
        const POINTS: usize = 20_000;
        let mut rng = Rng::with_seed(3);
        let drawn = (0..POINTS).map(|_| rand_fixed_sum(&mut rng, 3, 1.5, 0.0, 1.0)[0]);
        let mut drawn: Vec<f64> = drawn.collect();
        let mut rejected = Vec::with_capacity(POINTS);
        while rejected.len() < POINTS {
            let (x, y) = (rng.f64(), rng.f64());
            if (0.0..=1.0).contains(&(1.5 - x - y)) {
                rejected.push(x);
            }
        }
        drawn.sort_by(f64::total_cmp);
        rejected.sort_by(f64::total_cmp);
        for part in 1..10 {
            let index = POINTS * part / 10;
            let (a, b) = (drawn[index], rejected[index]);
            assert!((a - b).abs() < 0.015, "quantile {part}/10: {a} and {b}");
        }
    }

    #[test]
    fn periods_are_uniform_in_their_logarithm() {
        let mut rng = Rng::with_seed(4);
        let periods = (0..10_000).map(|_| log_uniform(&mut rng, PERIODS_US));
        let below = periods.filter(|&period| period < 100_000.0).count();
        assert!(
            (4_800..5_200).contains(&below),
            "half are below 100 ms: {below}"
        );
    }

    #[test]
    fn jobs_are_longer_than_the_kernels_minimum_budget() {
        let mut rng = Rng::with_seed(5);
        for tasks in 1..=20 {
            for _ in 0..100 {
                let set = random(&mut rng, tasks);
                assert!(utilisation(&set) <= 1.0);
                assert!(set.tasks.iter().all(|task| task.budget_us >= 99));
            }
        }
    }
}
