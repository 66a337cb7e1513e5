//! What is to run with the parameters of Figure 10: earliest deadline first, unit by unit, from nothing but the rule.

/// Period and budget of each partition, in units; deadlines are the periods.
pub const PARAMETERS: [(u64, u64); 3] = [(3, 1), (4, 1), (5, 2)];
/// Units after which everything repeats.
pub const HYPERPERIOD: u64 = 60;

/// A budget that is not used up.
struct Budget {
    partition: usize,
    deadline: u64,
    left: u64,
}

/// Which partition runs in each unit of a hyperperiod, if one does.
pub fn units() -> Vec<Option<usize>> {
    // In the order of their releases, which is first in, first out.
    let mut budgets: Vec<Budget> = Vec::new();
    let mut units = Vec::new();
    for now in 0..HYPERPERIOD {
        for (partition, &(period, budget)) in PARAMETERS.iter().enumerate() {
            if now % period == 0 {
                budgets.push(Budget {
                    partition,
                    deadline: now + period,
                    left: budget,
                });
            }
        }
        // Of equal deadlines, the first one.
        let first = budgets.iter_mut().min_by_key(|budget| budget.deadline);
        units.push(first.map(|budget| {
            budget.left -= 1;
            budget.partition
        }));
        budgets.retain(|budget| budget.left > 0);
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper: the third instance of the third partition is not preempted by the first one's with the same deadline.
    #[test]
    fn equal_deadlines_do_not_preempt() {
        let first: Vec<_> = units().into_iter().take(15).flatten().collect();
        assert_eq!(first, [0, 1, 2, 2, 0, 1, 0, 2, 2, 1, 0, 2, 2, 0, 1]);
    }

    #[test]
    fn every_budget_is_used_up() {
        let count = |partition| {
            units()
                .iter()
                .filter(|unit| **unit == Some(partition))
                .count()
        };
        assert_eq!([0, 1, 2].map(count), [20, 15, 24]);
    }
}
