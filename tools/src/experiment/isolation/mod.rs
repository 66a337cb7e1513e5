//! `sandglass experiment isolation`: throughput of two clients of the shared cipher server against
//! their budgets, for periods of 10, 100 and 1,000 ms (thesis 8.3.5, Figure 8.6).
//!
//! The system, the machines and the check of the ciphertexts are the demonstration's
//! ([`crate::demo`]); [`points`] says what is measured and claimed, [`report`] shows it.

mod points;
mod report;

use anyhow::{Context, Result};

use super::report::Report;
use super::Extent;
use crate::demo::input::Input;
use crate::demo::machine::Bench;
use points::Outcome;

/// Fails if a throughput is off, a deadline is missed, or a ciphertext differs.
///
/// # Errors
/// Something does not build, or a machine does not run to its end.
pub fn run(extent: &Extent) -> Result<Report> {
    let input = Input::read(None)?;
    let points = points::points(extent.size);
    let runs = Bench::prepare(extent.arch, &input, extent.rogue(0))?.run_all(&points)?;
    let outcome = Outcome::of(&runs).context("the runs cannot be compared")?;
    report::of(&outcome)
}
