//! The figures that the book shows: none of them depends on the host, or on how much was done.

use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use allocation_reference::cost::{bytes, Cost, POINTS};
use allocation_reference::loss;
use anyhow::{bail, Context, Result};

use super::cost::{ratio, HELD};
use super::loss::{Asked, Counted, LEAST};
use crate::workspace;

/// The page with the figures, in the repository.
const PAGE: &str = "docs/src/reference/temporal-capabilities.md";
/// They stand between these lines.
const BEGIN: &str =
    "<!-- `./sandglass experiment temporal-capabilities --page` makes these figures. -->\n\n";
const END: &str = "\n<!-- The end of the figures. -->\n";
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

fn path() -> PathBuf {
    workspace::root().join(PAGE)
}

fn read() -> Result<String> {
    let path = path();
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Where the figures stand in the text of the page.
///
/// # Errors
/// They have no place there.
fn place(page: &str) -> Result<Range<usize>> {
    let begin = page.find(BEGIN).map(|at| at + BEGIN.len());
    let place = begin.and_then(|begin| Some(begin..begin + page[begin..].find(END)?));
    match place {
        Some(place) => Ok(place),
        None => bail!("{PAGE} has no place for the figures: the lines\n{BEGIN}{END}"),
    }
}

/// Writes them into the page.
///
/// # Errors
/// It cannot be read or written, or has no place for them.
pub fn write(figures: &str) -> Result<()> {
    let mut page = read()?;
    page.replace_range(place(&page)?, figures);
    let path = path();
    fs::write(&path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// What is wrong with the page, if it shows something else.
///
/// # Errors
/// It cannot be read, or has no place for figures.
pub fn finding(figures: &str) -> Result<Option<String>> {
    let page = read()?;
    let is_right = page[place(&page)?] == *figures;
    let hint = "run `./sandglass experiment temporal-capabilities --page`";
    Ok((!is_right).then(|| format!("{PAGE} shows other figures: {hint}\n{figures}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_and_other_figures_are_found() {
        let page = read().unwrap();
        assert!(page[place(&page).unwrap()].starts_with("| sub-allocations before"));
        assert!(place("nothing").is_err());
        let finding = finding("others").unwrap().unwrap();
        assert!(finding.contains("--page"), "{finding}");
    }

    /// The quickest part of what the experiment compares, so that a change of an allocation's size is noticed early.
    #[test]
    fn the_memory_that_the_page_shows_is_current() {
        assert!(read().unwrap().contains(&memory_table()));
    }
}
