//! Cases: kinds of paths that a program was written to drive the kernel down (`assurance/wcet/cases.toml`), and the bound of
//! each.

use anyhow::{ensure, Context, Result};
use serde::Deserialize;

use crate::code::InstructionSet;
use crate::flow::Longest;
use crate::image::Image;
use crate::kernel::{Case, Entry, Kernel, System};
use crate::limits::{Bound, Limit};

/// The file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    pub case: Vec<Constructed>,
}

/// A kind of paths, and what drives the kernel down the worst of them that is known.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constructed {
    /// The name of the measurement in `systems/bounds`.
    pub name: String,
    /// What happens, for tables.
    pub what: String,
    #[serde(default)]
    pub entry: Entry,
    #[serde(default)]
    pub system: System,
    #[serde(default = "usual_levels")]
    pub levels: u64,
    /// Such a path makes each of these calls: functions, or calls of one out of another, as limits name them.
    #[serde(default)]
    pub through: Vec<String>,
    /// It makes none of these.
    #[serde(default)]
    pub never: Vec<String>,
    /// Nor these, on aarch64: of functions that do more there.
    #[serde(default)]
    pub never_on_aarch64: Vec<String>,
    /// It comes by none of these places that the source marks.
    #[serde(default)]
    pub never_marks: Vec<String>,
}

const fn usual_levels() -> u64 {
    8
}

impl Cases {
    /// From the text of a file.
    ///
    /// # Errors
    /// It is no such file.
    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("cases")
    }
}

impl Constructed {
    /// What all its paths have in common.
    ///
    /// # Errors
    /// It names what the kernel has not.
    pub fn bounds(&self, image: &Image) -> Result<Vec<Bound>> {
        let limit = |calls: Vec<String>, marks: Vec<String>| Limit {
            at_most: 0,
            after_check: None,
            calls,
            marks,
            why: format!("the case `{}`", self.name),
        };
        let mut bounds = Vec::new();
        for name in &self.through {
            let found = limit(vec![name.clone()], Vec::new()).resolve(image)?;
            bounds.push(Bound {
                most: None,
                least: 1,
                ..found
            });
        }
        let mut never = self.never.clone();
        if image.set == InstructionSet::Aarch64 {
            never.extend_from_slice(&self.never_on_aarch64);
        }
        if !never.is_empty() || !self.never_marks.is_empty() {
            bounds.push(limit(never, self.never_marks.clone()).resolve(image)?);
        }
        Ok(bounds)
    }

    /// The longest of its paths.
    ///
    /// # Errors
    /// There is none; it names what the kernel has not; code that cannot be analysed.
    pub fn longest(&self, kernel: &Kernel) -> Result<Longest> {
        let case = Case {
            system: self.system,
            levels: self.levels,
        };
        let bounds = self.bounds(kernel.image)?;
        let longest = kernel.longest_of(self.entry, case, &bounds, None)?;
        longest.with_context(|| {
            format!(
                "the case `{}`: no path of the kernel is one of it. Name other functions in its `through`, or fewer",
                self.name
            )
        })
    }
}

/// The bounds of all cases, by their names.
///
/// # Errors
/// As with [`Constructed::longest`]; two have one name.
pub fn longest<'c>(cases: &'c Cases, kernel: &Kernel) -> Result<Vec<(&'c Constructed, Longest)>> {
    for (number, case) in cases.case.iter().enumerate() {
        let others = &cases.case[..number];
        ensure!(
            others.iter().all(|other| other.name != case.name),
            "two cases are called `{}`: give one another name",
            case.name
        );
    }
    let cases = cases.case.iter();
    cases
        .map(|case| Ok((case, case.longest(kernel)?)))
        .collect()
}
