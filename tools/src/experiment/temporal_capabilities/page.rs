//! The figures that the book shows: none of them depends on the host, or on how much was done.

use std::fmt::Write;

use allocation_reference::cost::{bytes, Cost, POINTS};
use allocation_reference::loss;

use super::cost::{ratio, HELD};
use super::loss::{Asked, Counted, LEAST};
use crate::experiment::page::Page;

/// The page with the figures.
pub const PAGE: Page = Page {
    path: "docs/src/reference/temporal-capabilities.md",
    experiment: "temporal-capabilities",
};
/// Allocations whose memory the paper measured.
const ALLOCATIONS: usize = 3000;

/// Three tables.
pub fn figures(costs: &[Cost], asked: &[Asked]) -> String {
    format!(
        "{}\n{}\n{}",
        cost_table(costs),
        memory_table(),
        loss_table(asked)
    )
}

fn cost_table(costs: &[Cost]) -> String {
    let mut text = "| sub-allocations before, k = 20 | steps | of the straightforward test | times as many |\n\
                    | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    let of_page = |cost: &&Cost| cost.points == 20 && HELD.contains(&cost.held);
    for cost in costs.iter().filter(of_page) {
        let (held, steps, plain) = (cost.held, cost.steps, cost.straightforward);
        // Writing to a string does not fail.
        let _ = writeln!(text, "| {held} | {steps} | {plain} | {} |", ratio(cost));
    }
    text
}

fn memory_table() -> String {
    let mut text =
        "| points k | bytes of an allocation | 3,000 allocations, KiB |\n| ---: | ---: | ---: |\n"
            .to_owned();
    for points in POINTS {
        let bytes = bytes(points);
        let _ = writeln!(
            text,
            "| {points} | {bytes} | {} |",
            (ALLOCATIONS * bytes).div_ceil(1024)
        );
    }
    text
}

fn loss_table(asked: &[Asked]) -> String {
    let counted = Counted::of(asked.iter().filter(|asked| asked.number < LEAST));
    let mut text = format!(
        "| points k | of {} sets, admitted | lost |\n| ---: | ---: | ---: |\n",
        counted.sets
    );
    for (points, admitted) in loss::POINTS.iter().zip(counted.by_points) {
        let _ = writeln!(
            text,
            "| {points} | {admitted} | {} |",
            counted.exactly - admitted
        );
    }
    let _ = writeln!(text, "| the exact test | {} | |", counted.exactly);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quickest part of what the experiment compares, so that a change of an allocation's size is noticed early.
    #[test]
    fn the_memory_that_the_page_shows_is_current() {
        assert!(PAGE.read().unwrap().contains(&memory_table()));
    }
}
