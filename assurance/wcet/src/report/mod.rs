//! What was found, as one page that needs nothing else, and as a table.

mod icicle;
mod page;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::flow::Longest;
use crate::image::Image;
use crate::kernel::{Case, Properties};
use crate::limits::Limits;
use crate::results::Results;

/// What a report is made of.
pub struct Report<'r> {
    pub image: &'r Image,
    /// The file's name.
    pub name: &'r str,
    pub properties: Properties,
    pub results: &'r [Results],
    /// The longest path of a system call through each function of an invocation.
    pub invocations: &'r [(Case, usize, Longest)],
    /// Of all systems, and of closed ones.
    pub limits: [(&'r str, &'r Limits); 2],
}

/// Writes `index.html` and `bounds.csv` into a directory.
///
/// # Errors
/// They cannot be written.
pub fn write(directory: &Path, report: &Report) -> Result<()> {
    let failed = || format!("cannot write the report into {}", directory.display());
    fs::create_dir_all(directory).with_context(failed)?;
    let page = page::page(report).into_string();
    fs::write(directory.join("index.html"), page).with_context(failed)?;
    fs::write(directory.join("bounds.csv"), table(report)?).with_context(failed)
}

/// All bounds as CSV, in instructions.
fn table(report: &Report) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(["system", "levels", "what", "through", "instructions"])?;
    let mut row = |case: Case, what: &str, through: &str, cost: i64| {
        let levels = case.levels.to_string();
        writer.write_record([
            case.system.name(),
            &levels,
            what,
            through,
            &cost.to_string(),
        ])
    };
    for each in report.results {
        for (name, cost) in each.figures() {
            row(each.case, name, "", cost)?;
        }
    }
    for (case, function, longest) in report.invocations {
        let through = &report.image.functions[*function].name;
        row(*case, "system_call", through, longest.cost)?;
    }
    writer.into_inner().context("the table")
}
