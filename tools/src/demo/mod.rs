//! `sandglass demo`: the shared cipher server of the thesis (8.3.2 to 8.3.5, Figures 8.5 and 8.6),
//! swept over the budgets of its clients, measured in virtual time, and checked.
//!
//! - [`input`] is what is encrypted, [`sweep`] the points to measure;
//! - [`description`] makes the system of a point, [`machine`] runs it, [`measurement`] reads what
//!   it recorded, [`reference`] encrypts again;
//! - [`model`] is the ideal line, [`analysis`] compares, [`table`] and [`report`] show.

pub(crate) mod analysis;
mod description;
pub(crate) mod input;
pub(crate) mod machine;
mod measurement;
pub(crate) mod model;
pub(crate) mod reference;
mod report;
pub(crate) mod sweep;
mod table;

use std::process::ExitCode;

use anyhow::{ensure, Context, Result};

use crate::arch::Arch;
use crate::beside::figures::{self, Figure};
use crate::cli::DemoArgs;
use crate::demo::analysis::Analysis;
use crate::demo::input::Input;
use crate::demo::machine::Bench;
use crate::qemu::Firmware;
use crate::system::rogue::Rogue;

/// `sandglass demo`: ends with status 1 if the control task missed a deadline, a ciphertext
/// differs, or a throughput is off.
pub fn run(args: &DemoArgs) -> Result<ExitCode> {
    let input = Input::read(args.input.as_deref())?;
    if let Some(folder) = &args.report {
        // Before the work: a report that cannot be written should not cost minutes.
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    }
    let points = sweep::points(args.quick, input.len());
    let rogue = args.beside.rogue.map(Rogue::of_seed);
    let runs = Bench::prepare(args.arch, &input, rogue)?.run_all(&points)?;
    let analysis = Analysis::new(runs)?;
    print!("{}", table::render(&analysis));
    if let Some(folder) = &args.report {
        report::write(folder, &analysis, &input)
            .with_context(|| format!("cannot write the report to `{}`", folder.display()))?;
        println!("\nThe report is in {}", folder.join("index.html").display());
    }
    Ok(verdict(&analysis))
}

/// The figures of the sweep on an architecture, with the rogue client if there is one.
///
/// # Errors
/// Something does not build, a machine does not run to its end, or a claim does not hold.
pub(crate) fn figures(arch: Arch, quick: bool, rogue: Option<Rogue>) -> Result<Vec<Figure>> {
    let input = Input::read(None)?;
    let points = sweep::points(quick, input.len());
    let analysis = Analysis::new(Bench::prepare(arch, &input, rogue)?.run_all(&points)?)?;
    let failures = analysis.failures();
    ensure!(failures.is_empty(), "{}", failures.join("; "));
    let throughput = report::csv::throughput(&analysis);
    // A point is its period and both budgets.
    Ok(figures::of_csv(&throughput, 3))
}

/// Boots a point of the quick sweep from a disk image; returns what is wrong with it, a line each.
///
/// Through BIOS in virtual time, so that deadlines are met or missed by the system and not by the
/// host; through UEFI in the host's time, since the firmware waits for seconds of virtual time.
///
/// # Errors
/// It cannot be built; or it does not run to its end, with status 0 and a record.
pub(crate) fn from_disk(firmware: Firmware) -> Result<Vec<String>> {
    let (percent_a, in_virtual_time) = match firmware {
        Firmware::Bios | Firmware::UBoot => (50, true),
        Firmware::Uefi => (25, false),
    };
    let input = Input::read(None)?;
    let points = sweep::points(true, input.len());
    let point = points
        .iter()
        .filter(|point| point.period_us == sweep::PERIODS_US[0])
        .find(|point| point.percents[0] == percent_a)
        .context("the sweep has no such point")?;
    let run = Bench::prepare(firmware.arch(), &input, None)?.run_from_disk(
        point,
        firmware,
        in_virtual_time,
    )?;
    eprintln!("{}", run.progress());
    let mut failures = run.ciphertext_faults;
    let misses = run.measurement.control.misses;
    if in_virtual_time && misses > 0 {
        failures.push(format!("{point}: HIGH missed {misses} deadlines"));
    }
    Ok(failures)
}

/// Says how it ended.
fn verdict(analysis: &Analysis) -> ExitCode {
    let failures = analysis.failures();
    println!();
    for failure in &failures {
        println!("FAILED: {failure}");
    }
    if failures.is_empty() {
        println!("{}", analysis.summary());
        ExitCode::SUCCESS
    } else {
        println!(
            "The demo failed: {} of its claims do not hold.",
            failures.len()
        );
        ExitCode::FAILURE
    }
}
