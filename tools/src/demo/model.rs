//! The ideal line: what a client's throughput should be, given its budget.
//!
//! A client that may use a share s of the processor gets s times what the processor encrypts. Its
//! share is its budget, or what its demand of a period takes if that is less. Where the shares
//! of both, with the control task's, exceed the processor, there is less time than budgets: both
//! clients have one priority, each runs its budget out in turn, and so both shares shrink in the
//! same proportion. A client with all of the period is alone, never sleeps, and has what the
//! control task leaves: that is the maximum, from which the speed of the processor is taken.

use crate::demo::sweep::Point;

/// What the ideal line is drawn from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Model {
    /// Throughput of a client that has all of the period, bytes per second.
    pub maximum: f64,
    /// Share of the processor that the control task takes.
    pub control_share: f64,
}

/// What a throughput is limited by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The processor: the budget, and what is available.
    Processor,
    /// The client, which wants no more.
    Demand,
}

/// A point of the ideal line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ideal {
    /// Bytes per second.
    pub throughput: f64,
    pub limit: Limit,
}

impl Model {
    /// The ideal throughputs of A and B at `point`.
    pub fn ideal(&self, point: &Point) -> [Ideal; 2] {
        let budgets = point.percents.map(|percent| percent as f64 / 100.0);
        self.ideal_of(budgets, point.period_us, point.demand_bytes)
    }

    /// The ideal throughputs of clients with `budgets`, between 0 and 1, of the period, in which each
    /// wants `demand_bytes`.
    pub fn ideal_of(&self, budgets: [f64; 2], period_us: u64, demand_bytes: u64) -> [Ideal; 2] {
        let available = 1.0 - self.control_share;
        let processor = self.maximum / available;
        let demand = demand_bytes as f64 / (period_us as f64 / 1e6) / processor;
        let wants_more = |budget: f64| budget <= demand || budget >= 1.0;
        let shares = budgets.map(|budget| if wants_more(budget) { budget } else { demand });
        let wanted: f64 = shares.iter().sum();
        let scale = (available / wanted).min(1.0);
        let overloaded = scale < 1.0;
        [0, 1].map(|client| Ideal {
            throughput: processor * shares[client] * scale,
            limit: if overloaded || wants_more(budgets[client]) {
                Limit::Processor
            } else {
                Limit::Demand
            },
        })
    }

    /// How far `throughput` is off `ideal`, in percent of the maximum.
    pub fn deviation_percent(&self, throughput: f64, ideal: Ideal) -> f64 {
        (throughput - ideal.throughput) / self.maximum * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND_BYTES: u64 = 4;

    const MODEL: Model = Model {
        maximum: 98.0,
        control_share: 0.02,
    };

    fn throughputs(budget_a: f64, period_us: u64) -> [f64; 2] {
        let ideal = MODEL.ideal_of([budget_a, 1.0 - budget_a], period_us, DEMAND_BYTES);
        ideal.map(|ideal| ideal.throughput)
    }

    fn near(found: [f64; 2], expected: [f64; 2]) {
        let off = (found[0] - expected[0]).abs() + (found[1] - expected[1]).abs();
        assert!(off < 1e-9, "{found:?} instead of {expected:?}");
    }

    /// Period 10 ms: 4 bytes per period are 400 per second, out of reach.
    #[test]
    fn where_the_processor_is_the_limit_throughput_is_proportional_to_budget() {
        near(throughputs(0.0, 10_000), [0.0, 98.0]);
        near(throughputs(0.25, 10_000), [24.5, 73.5]);
        near(throughputs(1.0, 10_000), [98.0, 0.0]);
    }

    /// Period 100 ms: 4 bytes per period are 40 per second, two fifths of the processor.
    #[test]
    fn nobody_gets_more_than_it_wants_but_who_has_all() {
        near(throughputs(0.5, 100_000), [40.0, 40.0]);
        near(throughputs(0.25, 100_000), [25.0, 40.0]);
        near(throughputs(1.0, 100_000), [98.0, 0.0]);
        let limits = MODEL
            .ideal_of([0.25, 0.75], 100_000, DEMAND_BYTES)
            .map(|ideal| ideal.limit);
        assert_eq!(limits, [Limit::Processor, Limit::Demand]);
    }

    /// Period 160 ms: the shares 0.75 (of 0.25 budget: 0.25) and 0.75 are all of the processor.
    #[test]
    fn too_much_demand_shrinks_in_proportion() {
        let ideal = MODEL.ideal_of([0.25, 0.75], 160_000, 3 * DEMAND_BYTES);
        let found = ideal.map(|ideal| ideal.throughput);
        near(found, [24.5, 73.5]);
        assert!(ideal.iter().all(|ideal| ideal.limit == Limit::Processor));
    }

    #[test]
    fn deviations_are_relative_to_the_maximum() {
        let ideal = MODEL.ideal_of([0.25, 0.75], 10_000, DEMAND_BYTES)[0];
        let deviation = MODEL.deviation_percent(24.5 - 0.98, ideal);
        assert!((deviation + 1.0).abs() < 1e-9);
    }
}
