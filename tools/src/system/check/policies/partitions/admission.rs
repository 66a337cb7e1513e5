//! Whether every partition gets its budget before its deadline.

use sandglass_description::policy::partitions::{Form, Partition, Partitions};

use super::super::super::super::document::Partitioning;
use super::super::super::super::findings::Finding;
use super::super::super::{text, Checker};

/// Millionths of the processor.
const WHOLE: u64 = 1_000_000;

impl Checker<'_> {
    /// Refuses partitions of which one may not get its budget. Time that threads above the scheduler take is part of the
    /// windows, and not counted here; nor is what switches take.
    pub(super) fn partition_admission(&mut self, partitioning: &Partitioning, table: &Partitions) {
        match &table.form {
            Form::Deadlines => self.demand_of_partitions(partitioning, table),
            Form::Priorities => self.responses_of_partitions(table),
            // Windows do not overlap: that is checked.
            Form::Frames(_) => {}
        }
    }

    /// Deadlines: what is due within a deadline after a release fits into it, all partitions together. Exact if deadlines are
    /// the periods, and sufficient else.
    fn demand_of_partitions(&mut self, partitioning: &Partitioning, table: &Partitions) {
        let blocking = table.bound_us.unwrap_or(0);
        let parts = table.partitions.iter();
        let demand: u64 = parts
            .clone()
            .map(|of| millionths(of.budget_us, of.deadline_us))
            .sum();
        let shortest = parts.map(|of| of.deadline_us).min().unwrap_or(1);
        let demand = demand + millionths(blocking, shortest);
        if demand > WHOLE {
            self.found(
                Finding::new(
                    partitioning.order.span(),
                    format!("the partitions need {}.{} % of the processor", demand / 10_000, demand / 1_000 % 10),
                )
                .label("must be at most 100 %")
                .help(
                    "the sum of budget / deadline counts, and `finish` within the shortest deadline: make budgets smaller, or \
                     periods longer",
                ),
            );
        }
    }

    /// Priorities: the longest response of each partition, by iteration (Joseph and Pandya).
    fn responses_of_partitions(&mut self, table: &Partitions) {
        let blocking = table.bound_us.unwrap_or(0);
        for (index, partition) in table.partitions.iter().enumerate() {
            let others = table.partitions.iter().enumerate();
            // Of equal priorities, any may come first.
            let above: Vec<&Partition> = others
                .filter(|&(other, of)| other != index && of.priority >= partition.priority)
                .map(|(_, of)| of)
                .collect();
            let response = response(partition, &above, blocking);
            if response > partition.deadline_us {
                let described = &self.document.partitions[index];
                self.found(
                    Finding::new(
                        described.name.span(),
                        format!("`{}` may not get its budget before its deadline", text(&described.name)),
                    )
                    .label(format!("{response} µs or later, and the deadline is {} µs", partition.deadline_us))
                    .help("give it a higher priority, or those above it smaller budgets or longer periods"),
                );
            }
        }
    }
}

fn millionths(part: u64, whole: u64) -> u64 {
    let millionths = (u128::from(part) * u128::from(WHOLE)).div_ceil(u128::from(whole.max(1)));
    u64::try_from(millionths).unwrap_or(u64::MAX)
}

/// When a partition has had its budget at the latest, µs after its release; or a time after the deadline.
fn response(partition: &Partition, above: &[&Partition], blocking: u64) -> u64 {
    let own = partition.budget_us.saturating_add(blocking);
    let mut response = own;
    loop {
        let interference = above.iter().map(|of| {
            let releases = response.div_ceil(of.period_us.max(1));
            releases.saturating_mul(of.budget_us)
        });
        let next = interference.fold(own, u64::saturating_add);
        if next == response || next > partition.deadline_us {
            return next;
        }
        response = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(period_us: u64, budget_us: u64) -> Partition {
        Partition {
            name: String::new(),
            period_us,
            deadline_us: period_us,
            offset_us: 0,
            budget_us,
            priority: 0,
            threads: Vec::new(),
            calls_servers: false,
            badge: 0,
        }
    }

    /// By hand: 8 + 2 * 2 + 1 = 13 in the second step, 8 + 2 * 2 + 2 * 1 = 14 in the third, and again.
    #[test]
    fn a_response_counts_every_release_above() {
        let (first, second) = (partition(7, 2), partition(12, 1));
        assert_eq!(response(&partition(20, 3), &[&first, &second], 0), 6);
        assert_eq!(response(&partition(20, 5), &[&first, &second], 0), 10);
        assert_eq!(response(&partition(20, 5), &[&first, &second], 3), 14);
        assert!(response(&partition(9, 5), &[&first, &second], 3) > 9);
    }
}
