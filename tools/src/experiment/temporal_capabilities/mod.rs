//! `sandglass experiment temporal-capabilities`: processor time that is derived, granted and revoked (FlaRe).
//!
//! - [`judged`]: random operations of clients that are not trusted, each judged; hierarchies that match; reservations
//!   that are replaced;
//! - [`loss`]: what functions of few points lose, against an exact test (Figure 5);
//! - [`cost`]: what an admission costs beside a straightforward one, and what an allocation takes (Figures 3 and 4);
//! - [`report`] shows it; [`page`] is what of it is in the book.

mod cost;
mod judged;
mod loss;
mod page;
mod report;

use anyhow::Result;

use super::{report::Report, Extent, Size};

/// How much is done of each part.
struct Amounts {
    /// Sequences of operations.
    sequences: u64,
    /// Sets that are arranged in hierarchies that match.
    matching: u64,
    /// Processors on which reservations are replaced.
    replaced: u64,
    /// Sets for each utilisation and number of tasks.
    sets: u64,
}

impl Amounts {
    const fn of(size: Size) -> Self {
        match size {
            Size::Smoke => Self {
                sequences: 500,
                matching: 500,
                replaced: 100,
                sets: loss::LEAST,
            },
            Size::Quick => Self {
                sequences: 10_000,
                matching: 5_000,
                replaced: 1_000,
                sets: 8,
            },
            // 19,200 sets, as in the paper.
            Size::Full => Self {
                sequences: 100_000,
                matching: 20_000,
                replaced: 5_000,
                sets: 64,
            },
        }
    }
}

/// Fails if something is admitted that an exact test refuses, if an admitted set misses a deadline, if matching
/// allowances lose anything, if one admission beside 150 is not a hundred times cheaper than the straightforward test,
/// if an allocation of 20 points takes more than a KiB, or if the book shows other figures.
///
/// # Errors
/// The page in the book cannot be read or written.
pub fn run(extent: &Extent) -> Result<Report> {
    let amounts = Amounts::of(extent.size);
    let judged = judged::run(&amounts);
    let loss = loss::run(amounts.sets);
    let costs = cost::run(extent.size);
    let figures = page::figures(&costs, &loss);
    let finding = page::PAGE.hold(&figures, extent.page)?;
    report::of(&judged, &loss, &costs, finding)
}
