//! `sandglass experiment sharing`: one workload under every resource-sharing protocol (thesis 2.3
//! and 6.4.2), with the inversion of the Mars Pathfinder first.
//!
//! - [`systems`] are the variants of `systems/experiments/sharing`, and what the textbook says of
//!   each; [`rounds`] is what one of them printed;
//! - [`results`] puts the two together, with the verdict; [`report`] shows them.

mod report;
mod results;
mod rounds;
mod systems;

use anyhow::{Context, Result};

use super::{machines, report::Report, Extent};
use crate::system::rogue::Rogue;
use results::{Outcome, Results};
use rounds::Log;
use systems::{Variant, VARIANTS};

/// Fails if a task is blocked for longer than its protocol allows.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn run(extent: &Extent) -> Result<Report> {
    // What is measured is how long clients of low priority keep a resource from the high one, by requests of the length
    // that they choose, and most protocols have nothing to end one: a further client would be one more of them.
    let rogue = extent.rogue(0).map(|rogue| Rogue {
        shares: false,
        ..rogue
    });
    let sources = VARIANTS
        .iter()
        .map(|variant| variant.source(extent.size))
        .collect::<Result<Vec<_>>>()?;
    let ended = machines::run_all(extent.arch, "sharing", &sources, 0, rogue)?;
    let outcome = |(variant, ended): (&'static Variant, &machines::Ended)| {
        let log = Log::parse(&ended.console)
            .with_context(|| format!("what `{}` printed", variant.name))?;
        Ok(Outcome { variant, log })
    };
    let outcomes = VARIANTS.iter().zip(&ended).map(outcome);
    report::of(&Results(outcomes.collect::<Result<_>>()?))
}
