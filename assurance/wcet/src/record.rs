//! Bounds in a file, so that one that grows is noticed.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{bail, Context, Result};

use crate::results::Results;

/// System, levels, what: instructions or cycles.
type Recorded = BTreeMap<String, BTreeMap<String, BTreeMap<String, i64>>>;

/// How much more than what is recorded is let pass, in hundredths: what a new compiler changes.
const SLACK: i64 = 2;

/// The text of the file; `unit` is what is counted.
pub fn text(results: &[Results], unit: &str) -> String {
    let mut text = format!(
        "# Bounds of the release kernel, in {unit}, by system and levels of capability spaces: written by\n\
         # `sandglass-wcet --record`, compared by `--check`.\n",
    );
    for each in results {
        let _ = writeln!(text, "\n[{}.{}]", each.case.system.name(), each.case.levels);
        for (name, cost) in each.figures() {
            let _ = writeln!(text, "{name} = {cost}");
        }
    }
    text
}

/// Compares with the text of such a file.
///
/// # Errors
/// It is no such file, a bound is missing in it, or one has grown by more than 2 %: the error is the table of those.
pub fn check(results: &[Results], recorded: &str) -> Result<()> {
    let recorded: Recorded = toml::from_str(recorded).context("recorded bounds")?;
    let mut table = String::new();
    for each in results {
        let (system, levels) = (each.case.system.name(), each.case.levels);
        let known = recorded
            .get(system)
            .and_then(|levels_of| levels_of.get(&levels.to_string()))
            .with_context(|| {
                format!(
                    "no bounds are recorded for [{system}.{levels}]: write them with `--record`"
                )
            })?;
        for (name, cost) in each.figures() {
            let before = *known.get(name).with_context(|| {
                format!("no {name} is recorded for [{system}.{levels}]: write it with `--record`")
            })?;
            if cost * 100 > before * (100 + SLACK) {
                let case = format!("{system}.{levels} {name}");
                let _ = write!(
                    table,
                    "\n{case:<32} {before:>8} -> {cost:>8}  {}",
                    growth(before, cost)
                );
            }
        }
    }
    if !table.is_empty() {
        bail!("bounds have grown by more than {SLACK} %. Make the path shorter (`--against` shows what grew), or write them anew with `--record` and say why in the commit:{table}");
    }
    Ok(())
}

/// The difference, as a part of what was before.
pub fn growth(before: i64, after: i64) -> String {
    match before {
        0 => "new".to_string(),
        _ => format!("{:+.1} %", (after - before) as f64 * 100.0 / before as f64),
    }
}
