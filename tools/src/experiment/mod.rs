//! `sandglass experiment`: experiments of the papers, repeated, with a table and a report each.

pub mod multicore;

use std::process::ExitCode;

use anyhow::Result;

use crate::cli::{Experiment, ExperimentArgs};

/// `sandglass experiment NAME`.
pub fn run(args: &ExperimentArgs) -> Result<ExitCode> {
    match &args.which {
        Experiment::Multicore(args) => multicore::run(args),
    }
}
