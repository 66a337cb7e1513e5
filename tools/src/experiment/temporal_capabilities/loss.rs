//! What functions of few points lose (appendix A.4, Figure 5).

use allocation_reference::loss::{admitted, Admitted, POINTS};
use fastrand::Rng;
use rayon::prelude::*;
use sandglass_allocations::Task;

use super::super::edf::sets::{log_uniform, rand_fixed_sum};
use super::super::machines;

/// Utilisations of sets, in tenths.
pub const TENTHS: std::ops::RangeInclusive<u64> = 1..=10;
/// Sets for each utilisation and number of tasks, at least: what the book shows is of these.
pub const LEAST: u64 = 2;
/// Periods, ns.
const PERIODS_NS: (f64, f64) = (10e6, 100e6);

/// A set that was asked about.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub tenths: u64,
    pub tasks: usize,
    /// Among those of this utilisation and number of tasks.
    pub number: u64,
    pub admitted: Admitted,
}

/// Asks about `each` sets for each utilisation and number of tasks.
pub fn run(each: u64) -> Vec<Asked> {
    let sizes = || (5..=150).step_by(5);
    let cells = TENTHS.flat_map(|tenths| sizes().map(move |tasks| (tenths, tasks)));
    let all: Vec<_> = cells
        .flat_map(|cell| (0..each).map(move |number| (cell, number)))
        .collect();
    let bar = machines::bar("sets of tasks", all.len());
    let asked = all.into_par_iter().map(|((tenths, tasks), number)| {
        let asked = Asked {
            tenths,
            tasks,
            number,
            admitted: admitted(&set(tenths, tasks, number)),
        };
        bar.inc(1);
        asked
    });
    let asked = asked.collect();
    bar.finish_and_clear();
    asked
}

/// Utilisations by randfixedsum, periods uniform in their logarithm, deadlines uniform in the first half of what is
/// between budget and period.
fn set(tenths: u64, tasks: usize, number: u64) -> Vec<Task> {
    let mut rng = Rng::with_seed(number << 32 | tenths << 16 | tasks as u64);
    let utilisations = rand_fixed_sum(&mut rng, tasks, tenths as f64 / 10.0, 0.0, 1.0);
    let task = |utilisation: f64| {
        let period = log_uniform(&mut rng, PERIODS_NS) as u64;
        let budget = ((period as f64 * utilisation) as u64).clamp(1, period);
        let deadline = budget + rng.u64(0..=(period - budget) / 2);
        Task::new(budget, period, deadline).expect("the parameters are in order")
    };
    utilisations.into_iter().map(task).collect()
}

/// What was counted of some sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    pub sets: u64,
    pub exactly: u64,
    /// As in [`POINTS`].
    pub by_points: [u64; POINTS.len()],
    /// Admitted by some function, and refused by the exact test: must be none.
    pub wrong: u64,
}

impl Counted {
    /// Counts.
    pub fn of<'a>(asked: impl IntoIterator<Item = &'a Asked>) -> Self {
        let mut counted = Self::default();
        for Asked { admitted, .. } in asked {
            counted.sets += 1;
            counted.exactly += u64::from(admitted.exactly);
            for (count, &by) in counted.by_points.iter_mut().zip(&admitted.by_points) {
                *count += u64::from(by);
                counted.wrong += u64::from(by && !admitted.exactly);
            }
        }
        counted
    }

    /// Per cent of the sets.
    pub fn per_cent(&self, count: u64) -> f64 {
        100.0 * count as f64 / self.sets.max(1) as f64
    }
}
