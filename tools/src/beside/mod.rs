//! `sandglass beside`: the demonstration, the experiments and the example systems without and with an untrusted
//! client ([`crate::system::rogue`]), figure by figure.
//!
//! - [`subjects`] are what is run; [`figures`] what is compared;
//! - [`exceptions`] are the figures that a client changes by right, each with the reason.
//!
//! A figure that differs by more than a percent is measured once more, with an honest component in place of the rogue
//! client, which asks the same servers for nothing and works on the same budget. What that one changes as much is what
//! any additional component costs, and nothing that a client does to others.

mod exceptions;
pub(crate) mod figures;
mod subjects;

use std::fmt;
use std::process::ExitCode;

use anyhow::{ensure, Result};

use crate::arch::Arch;
use crate::cli::BesideArgs;
use crate::experiment::Size;
use crate::system::rogue::Rogue;
use figures::{Pair, TOLERANCE_PERCENT};
pub use subjects::Subject;

/// What is to be said of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It is the same, within [`TOLERANCE_PERCENT`].
    Same,
    /// Beside an honest component it is this, which is as far from the one without, or further, within the tolerance.
    Budget { honest: f64 },
    /// It differs by right.
    Excepted { reason: &'static str },
    /// It does not, and beside an honest component it is this, if anything.
    Differs { honest: Option<f64> },
}

/// A figure, and what is to be said of it.
#[derive(Clone, Debug)]
pub struct Line {
    pub pair: Pair,
    pub verdict: Verdict,
}

/// Compares the figures of `subject` on `arch` without and with the rogue client of `seed`.
///
/// # Errors
/// It does not build, does not run to its end, or one of its own claims does not hold.
pub fn compare(arch: Arch, subject: &Subject, size: Size, seed: u64) -> Result<Vec<Line>> {
    let without = subject.figures(arch, size, None)?;
    let with = subject.figures(arch, size, Some(Rogue::of_seed(seed)))?;
    let pairs = figures::pairs(&without, &with);
    let is_open =
        |pair: &Pair| pair.is_off() && exceptions::reason(&subject.name(), &pair.name).is_none();
    let honest = match pairs.iter().any(is_open) {
        true => subject.figures(arch, size, Some(Rogue::honest()))?,
        false => Vec::new(),
    };
    let verdict = |pair: &Pair| {
        if !pair.is_off() {
            return Verdict::Same;
        }
        if let Some(reason) = exceptions::reason(&subject.name(), &pair.name) {
            return Verdict::Excepted { reason };
        }
        let honest = honest.iter().find(|figure| figure.name == pair.name);
        match honest {
            Some(figure) if pair.is_within(figure.value) => Verdict::Budget {
                honest: figure.value,
            },
            other => Verdict::Differs {
                honest: other.map(|figure| figure.value),
            },
        }
    };
    let lines = pairs.into_iter().map(|pair| Line {
        verdict: verdict(&pair),
        pair,
    });
    Ok(lines.collect())
}

/// The figures of `subject` on `arch` that differ and should not, a line each.
///
/// # Errors
/// As [`compare`].
pub fn findings(arch: Arch, subject: &Subject, size: Size, seed: u64) -> Result<Vec<String>> {
    let lines = compare(arch, subject, size, seed)?;
    let differing = lines.iter().filter(|line| line.differs());
    Ok(differing.map(Line::to_string).collect())
}

/// `sandglass beside`: ends with status 1 if a figure differs that should not, or a claim does not hold.
///
/// # Errors
/// There is nothing of a name.
pub fn run(args: &BesideArgs) -> Result<ExitCode> {
    let all = Subject::all()?;
    let mut chosen = all.clone();
    if !args.names.is_empty() {
        chosen.retain(|subject| args.names.contains(&subject.name()));
        let names: Vec<String> = all.iter().map(Subject::name).collect();
        let unknown = args.names.iter().find(|name| !names.contains(name));
        ensure!(
            unknown.is_none(),
            "there is no `{}`; there are {}",
            unknown.map_or("", String::as_str),
            names.join(", ")
        );
    }
    let size = if args.quick { Size::Quick } else { Size::Full };
    let mut failed = 0;
    for subject in &chosen {
        failed += show(
            subject,
            compare(args.arch, subject, size, args.seed),
            args.all,
        );
    }
    println!(
        "with a rogue client of seed {}: {} compared, {failed} failed",
        args.seed,
        chosen.len()
    );
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Prints what was found of a subject, its unchanged figures only with `all`; returns 1 if it failed.
fn show(subject: &Subject, found: Result<Vec<Line>>, all: bool) -> usize {
    let name = subject.name();
    let lines = match found {
        Ok(lines) => lines,
        Err(error) => {
            println!("{name}: FAILED: {error:#}\n");
            return 1;
        }
    };
    let same = lines.iter().filter(|line| line.verdict == Verdict::Same);
    println!(
        "{name}: {} figures, {} of them equal within {TOLERANCE_PERCENT} %",
        lines.len(),
        same.count()
    );
    for line in &lines {
        if all || line.verdict != Verdict::Same {
            println!("  {line}");
        }
    }
    println!();
    usize::from(lines.iter().any(Line::differs))
}

impl Line {
    fn differs(&self) -> bool {
        matches!(self.verdict, Verdict::Differs { .. })
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |v| v.to_string());
        write!(
            f,
            "{}: {} without, {} with, {:+.2} %",
            self.pair.name,
            text(self.pair.without),
            text(self.pair.with),
            self.pair.difference(),
        )?;
        match &self.verdict {
            Verdict::Same => Ok(()),
            Verdict::Budget { honest } => write!(f, ": {honest} with an honest component"),
            Verdict::Excepted { reason } => write!(f, ": {reason}"),
            Verdict::Differs { honest } => {
                write!(f, ": DIFFERS; {} with an honest component", text(*honest))
            }
        }
    }
}
