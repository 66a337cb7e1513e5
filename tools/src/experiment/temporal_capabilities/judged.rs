//! Random operations, judged.

use allocation_reference::reweighting::{self, Rule};
use allocation_reference::sequence::{self, Judged};
use allocation_reference::{exact, matching, tasks};
use fastrand::Rng;
use rayon::prelude::*;
use sandglass_allocations::Task;

use super::super::machines;
use super::Amounts;

/// Operations of a sequence.
const OPERATIONS: u32 = 60;
/// Replacements on a processor.
const REPLACEMENTS: u32 = 60;

/// What the judges said.
#[derive(Debug, Default)]
pub struct Outcome {
    pub sequences: u64,
    pub judged: Judged,
    /// The first thing that must not be.
    pub wrong: Option<String>,
    /// Sets that the exact test admits and a hierarchy that matches, too.
    pub matching_admitted: u64,
    /// Sets that both refuse.
    pub matching_refused: u64,
    /// Sets for which functions of so many points are not exact: of a utilisation of 1, or close to it.
    pub matching_skipped: u64,
    /// Sets of which one says otherwise than the other.
    pub matching_wrong: u64,
    /// Processors on which reservations were replaced.
    pub processors: u64,
    /// Of these, on how many a deadline was missed.
    pub missed: u64,
    /// And on how many by the paper's rule.
    pub missed_by_deadline: u64,
}

/// Does all of it.
pub fn run(amounts: &Amounts) -> Outcome {
    let mut outcome = Outcome {
        sequences: amounts.sequences,
        processors: amounts.replaced,
        ..Outcome::default()
    };
    judge(&mut outcome);
    for found in sets(amounts.matching) {
        *match found {
            Matching::Admitted => &mut outcome.matching_admitted,
            Matching::Refused => &mut outcome.matching_refused,
            Matching::Skipped => &mut outcome.matching_skipped,
            Matching::Wrong => &mut outcome.matching_wrong,
        } += 1;
    }
    outcome.missed = missed(amounts.replaced, Rule::Idle);
    outcome.missed_by_deadline = missed(amounts.replaced, Rule::Deadline);
    outcome
}

fn judge(outcome: &mut Outcome) {
    let bar = machines::bar("sequences of operations", outcome.sequences as usize);
    let judged = (0..outcome.sequences).into_par_iter().map(|seed| {
        let judged = sequence::judge(seed, OPERATIONS);
        bar.inc(1);
        judged
    });
    let judged: Result<Vec<_>, String> = judged.collect();
    bar.finish_and_clear();
    match judged {
        Ok(all) => outcome.judged = all.into_iter().fold(Judged::default(), |a, b| a + b),
        Err(wrong) => outcome.wrong = Some(wrong),
    }
}

enum Matching {
    Admitted,
    Refused,
    Skipped,
    Wrong,
}

fn sets(count: u64) -> Vec<Matching> {
    let bar = machines::bar("hierarchies that match", count as usize);
    let found = (0..count).into_par_iter().map(|seed| {
        let found = compare(&mut Rng::with_seed(seed));
        bar.inc(1);
        found
    });
    let found = found.collect();
    bar.finish_and_clear();
    found
}

/// Theorem 2, for one set.
fn compare(rng: &mut Rng) -> Matching {
    let count = rng.usize(1..=matching::TASKS);
    let tasks: Vec<Task> = (0..count).map(|_| tasks::small(rng)).collect();
    let is_schedulable = exact::is_schedulable(&tasks);
    let steps = matching::steps_needed(&tasks);
    if is_schedulable && steps.is_none_or(|steps| steps > matching::STEPS as u64) {
        return Matching::Skipped;
    }
    match (matching::admit(rng, &tasks).is_ok(), is_schedulable) {
        (true, true) => Matching::Admitted,
        (false, false) => Matching::Refused,
        _ => Matching::Wrong,
    }
}

fn missed(processors: u64, rule: Rule) -> u64 {
    let seeds = (0..processors).into_par_iter();
    let missed = seeds.filter(|&seed| reweighting::replace(seed, REPLACEMENTS, rule).is_some());
    missed.count() as u64
}
