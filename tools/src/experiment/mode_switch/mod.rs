//! `sandglass experiment mode-switch`: what a switch of the mode costs, against the number of
//! threads whose priority it changes (thesis 8.4.1, Figure 8.7 and Table 8.15).
//!
//! [`points`] are what was measured, and the line through it; [`report`] shows them.

mod points;
mod report;

use anyhow::{ensure, Result};

use super::machines;
use super::report::Report;
use super::{Extent, Size};
use crate::system::rogue::Rogue;
use crate::system::Source;
use crate::workspace;
use points::{Outcome, Point};

/// Where the system is, from the root of the repository.
const SYSTEM: &str = "systems/experiments/mode-switch/SYSTEM.toml";

/// Fails if the cost is not linear in the number of threads, or if a thread costs more than twice
/// what changing one priority costs.
///
/// # Errors
/// Something does not build, or a run does not end well.
pub fn run(extent: &Extent) -> Result<Report> {
    let (threads, runs): (&[usize], usize) = match extent.size {
        Size::Smoke => (&[1, 8, 32], 10),
        Size::Quick => (&[1, 2, 4, 8, 16, 32, 64], 100),
        Size::Full => (&[1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64], 100),
    };
    // It is no task of the modes: what is measured is what each of them costs.
    let rogue = extent.rogue(0).map(|rogue| Rogue {
        gives_way: false,
        ..rogue
    });
    let source = Source::read(&workspace::root().join(SYSTEM))?;
    let systems = threads
        .iter()
        .map(|&threads| with_threads(&source, threads, runs))
        .collect::<Result<Vec<_>>>()?;
    let ended = machines::run_all(extent.arch, "mode switches", &systems, 0, rogue)?;
    let points = threads
        .iter()
        .zip(&ended)
        .map(|(&threads, ended)| Point::of(threads, &ended.console))
        .collect::<Result<Vec<_>>>()?;
    report::of(&Outcome::new(points)?)
}

/// The system with so many tasks that the switch suspends.
fn with_threads(source: &Source, threads: usize, runs: usize) -> Result<Source> {
    const LINE: &str = "  { component = \"task-0\", below = \"suspend\" },\n";
    let mut text = source.text.replace("runs = 100", &format!("runs = {runs}"));
    let component = text
        .split("\n\n")
        .find(|part| part.contains("name = \"task-0\""));
    let component = component.unwrap_or_default().to_owned();
    ensure!(
        text.contains(LINE) && !component.is_empty(),
        "`{}` has no task that can be repeated",
        source.name
    );
    let named = |text: &str, number: usize| text.replace("task-0", &format!("task-{number}"));
    let lines: String = (0..threads).map(|number| named(LINE, number)).collect();
    text = text.replace(LINE, &lines);
    for number in 1..threads {
        text += "\n";
        text += &named(&component, number);
        text += "\n";
    }
    Ok(Source {
        arch: None,
        name: format!("mode-switch-{threads}"),
        text,
        folder: source.folder.clone(),
    })
}
