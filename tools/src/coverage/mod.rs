//! `sandglass coverage`: which lines of the kernel the host's tests execute.
//!
//! The kernel library and its tests are built once more with the compiler's own instrumentation,
//! in a target folder of their own; every harness runs; LLVM's tools merge the counts. What no
//! test executes must have a reason in [`reasons`], and a reason must have such a line: so the
//! list is neither longer nor shorter than the truth.

mod lines;
mod measure;
mod reasons;

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;

use lines::Coverage;
use reasons::Reasons;

/// Least share of executed lines, in percent.
const LEAST: f64 = 95.0;

/// `sandglass coverage`: fails below [`LEAST`], or if the list of reasons is not exact.
pub fn run() -> Result<ExitCode> {
    let coverage = measure::kernel()?;
    let reasons = Reasons::load()?;
    let findings = reasons.findings(&coverage);
    print!("{}", table(&coverage, &reasons));
    for finding in &findings {
        eprintln!("{finding}");
    }
    let share = coverage.share();
    let enough = share >= LEAST;
    println!(
        "coverage: {} of {} lines, {share:.2} % (at least {LEAST} %), {} findings",
        coverage.executed(),
        coverage.lines(),
        findings.len()
    );
    Ok(ExitCode::from(u8::from(!enough || !findings.is_empty())))
}

/// Files with lines that were not executed, and why not.
fn table(coverage: &Coverage, reasons: &Reasons) -> String {
    let mut text = format!("{:>8} {:>9}  file\n", "lines", "executed");
    for (file, counts) in &coverage.files {
        let executed = counts.values().filter(|&&count| count > 0).count();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{:>8} {executed:>9}  {file}", counts.len());
        for (reason, number) in reasons.of_file(file, counts) {
            let _ = writeln!(text, "{:>20}{number} not executed: {reason}", "");
        }
    }
    text
}
