//! The report: a page that needs nothing else, the data as CSV, and the ciphertext. All of it
//! comes from virtual time, so it is the same on every run.

pub mod csv;
mod page;
mod responses;
mod throughput;
mod timeline;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::demo::analysis::Analysis;
use crate::demo::input::Input;

/// The ciphertext's file.
pub const CIPHERTEXT: &str = "ciphertext.bin";

/// Size of a chart, pixels.
const CHART_WIDTH: u32 = 900;
const CHART_HEIGHT: u32 = 360;

/// Writes the report into `folder`, which exists, over an older one.
///
/// # Errors
/// A file cannot be written, or a chart cannot be drawn.
pub fn write(folder: &Path, analysis: &Analysis, input: &Input) -> Result<()> {
    let ciphertext = analysis
        .ciphertext()
        .context("no machine sent ciphertext")?;
    let files: [(&str, Vec<u8>); 5] = [
        ("index.html", page::render(analysis, input)?.into_bytes()),
        ("throughput.csv", csv::throughput(analysis).into_bytes()),
        ("responses.csv", csv::responses(analysis).into_bytes()),
        ("timeline.csv", csv::timeline(analysis).into_bytes()),
        (CIPHERTEXT, ciphertext.to_vec()),
    ];
    for (name, content) in files {
        fs::write(folder.join(name), content).with_context(|| format!("cannot write `{name}`"))?;
    }
    Ok(())
}
