//! `sandglass experiment multicore`: the multiprocessor benchmarks of the thesis (8.5, Figures 8.9
//! and 8.10) on 1 to 4 cores.
//!
//! - [`machine`] boots the system in `systems/multicore` with the emulator's plugin, and checks
//!   what was encrypted; [`window`] is what one measurement says;
//! - [`points`] are throughputs, from the emulator or from another source ([`hosted`]), and the
//!   verdict on them; [`table`], [`report`] and [`chart`] show them.

mod chart;
mod hosted;
mod machine;
mod points;
mod report;
mod table;
mod window;

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::cli::MulticoreArgs;
use machine::{Bench, Extent};
use points::Points;

/// `sandglass experiment multicore`: ends with status 1 if a ciphertext differs, or if the
/// throughputs do not scale as they must.
pub fn run(args: &MulticoreArgs) -> Result<ExitCode> {
    if let Some(folder) = &args.report {
        // Before the work: a report that cannot be written should not cost minutes.
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    }
    let mut points = Points::default();
    points.add(match &args.hosted {
        Some(path) => hosted::read(path)?,
        None => hosted::simulate()?,
    });
    let extent = if args.quick {
        Extent::QUICK
    } else {
        Extent::FULL
    };
    points.add(Bench::prepare(extent)?.run_all()?);
    print!("{}", table::render(&points));
    if let Some(folder) = &args.report {
        report::write(folder, &points)
            .with_context(|| format!("cannot write the report to `{}`", folder.display()))?;
        println!("\nThe report is in {}", folder.join("index.html").display());
    }
    let failures = points.failures();
    for failure in &failures {
        println!("FAILED: {failure}");
    }
    Ok(ExitCode::from(u8::from(!failures.is_empty())))
}
