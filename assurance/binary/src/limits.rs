//! Ways that are never gone although the code has them: limits of how often functions are called between two checks for
//! interrupts, each with its reason.

use anyhow::{bail, ensure, Context, Result};
use serde::Deserialize;

use crate::annotations::MARKS;
use crate::image::Image;
use crate::watch;

/// The file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    #[serde(default)]
    pub limit: Vec<Limit>,
}

/// At most so many of these calls and marks, all together.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    pub at_most: u64,
    /// So many, where what is executed begins at a check for interrupts instead of an entry.
    pub after_check: Option<u64>,
    /// Each the end of a function's path, or two with ` -> ` between them: calls of the second out of the first.
    #[serde(default)]
    pub calls: Vec<String>,
    /// Places that the source marks.
    #[serde(default)]
    pub marks: Vec<String>,
    /// Why it holds.
    pub why: String,
}

/// A limit, as it applies to a kernel.
#[derive(Debug, Clone)]
pub struct Bound {
    /// At most, or at least, so many.
    pub most: Option<u64>,
    pub least: u64,
    /// What is added to the most behind a check.
    pub more_after_check: i64,
    /// Who calls, if it matters, and who is called.
    pub calls: Vec<(Option<usize>, usize)>,
    /// Numbers of marks.
    pub marks: Vec<u64>,
}

impl Limits {
    /// From the text of a file.
    ///
    /// # Errors
    /// It is no such file.
    pub fn parse(text: &str) -> Result<Self> {
        toml::from_str(text).context("limits of paths")
    }

    /// Those of whose functions and marks this kernel has all, and the reasons of the others: for an older kernel, which
    /// was not written with these limits in mind. Its bounds are larger for it.
    pub fn split(&self, image: &Image) -> (Self, Vec<&str>) {
        let is_known = |limit: &&Limit| limit.resolve(image).is_ok();
        let (known, others): (Vec<&Limit>, Vec<&Limit>) = self.limit.iter().partition(is_known);
        let known = Self {
            limit: known.into_iter().cloned().collect(),
        };
        (
            known,
            others.iter().map(|limit| limit.why.as_str()).collect(),
        )
    }

    /// The limits, as they apply to this kernel.
    ///
    /// # Errors
    /// A limit names a function that the kernel has not, inlined ones included, since their calls cannot be counted; a
    /// mark that nobody knows; or calls or a mark of which the kernel has none, so that no run could show that the limit
    /// is wrong.
    pub fn resolve(&self, image: &Image) -> Result<Vec<Bound>> {
        self.limit
            .iter()
            .map(|limit| limit.resolve(image))
            .collect()
    }
}

impl Limit {
    /// What it counts, for messages.
    pub fn name(&self) -> String {
        let marks = self.marks.iter().map(|mark| format!("mark {mark}"));
        let counted: Vec<String> = self.calls.iter().cloned().chain(marks).collect();
        counted.join(", ")
    }

    /// The limit, as it applies to this kernel.
    ///
    /// # Errors
    /// As with [`Limits::resolve`].
    pub fn resolve(&self, image: &Image) -> Result<Bound> {
        let marks = self.marks.iter().map(|name| self.mark(image, name));
        let marks = marks.collect::<Result<_>>()?;
        let calls = self.calls.iter().map(|call| self.call(image, call));
        let calls = calls.collect::<Result<_>>()?;
        let more_after_check = self
            .after_check
            .map_or(0, |most| most as i64 - self.at_most as i64);
        Ok(Bound {
            most: Some(self.at_most),
            least: 0,
            more_after_check,
            calls,
            marks,
        })
    }

    /// The number of a mark, which the kernel has somewhere.
    fn mark(&self, image: &Image, name: &str) -> Result<u64> {
        let why = &self.why;
        let mark = MARKS.iter().find(|(known, _)| *known == name);
        let &(_, number) = mark.with_context(|| {
            let known: Vec<&str> = MARKS.iter().map(|&(name, _)| name).collect();
            format!(
                "the limit because of \"{why}\" names the mark `{name}`, which nobody knows: there are {}",
                known.join(", ")
            )
        })?;
        ensure!(
            !watch::marked(image, number).is_empty(),
            "the limit because of \"{why}\" names the mark `{name}`, which this kernel has nowhere: no run could show that \
             the limit is wrong. Take it out of the limit, or mark the place in the source"
        );
        Ok(number)
    }

    /// Who calls, if it matters, and who is called: the kernel has such calls, and a run can count each of them.
    fn call(&self, image: &Image, call: &str) -> Result<(Option<usize>, usize)> {
        let why = &self.why;
        let (caller, callee) = match call.split_once(" -> ") {
            Some((caller, callee)) => (Some(image.function_named(caller)), callee),
            None => (None, call),
        };
        let (caller, callee) = match (caller, image.function_named(callee)) {
            (None, Some(callee)) => (None, callee),
            (Some(Some(caller)), Some(callee)) => (Some(caller), callee),
            _ => bail!(
                "the limit because of \"{why}\" names `{call}`, which the kernel has not: if it was renamed, rename it there; \
                 if it was inlined, give it `#[inline(never)]`"
            ),
        };
        ensure!(
            !watch::calls(image, caller, callee).is_empty(),
            "the limit because of \"{why}\" names `{call}`, but nothing in this kernel calls that: no run could show that \
             the limit is wrong. Take it out of the limit, or name who calls it"
        );
        if let Some(before) = watch::falls_into(image, caller, callee) {
            bail!(
                "the limit because of \"{why}\" names `{call}`, but `{}` goes on there without a jump, which no run could \
                 count. Name a function that is called, or a mark",
                image.functions[before].name
            );
        }
        Ok((caller, callee))
    }
}

impl Bound {
    /// At least one call of a function: what is asked of the longest path through it.
    pub fn through(function: usize) -> Self {
        Self {
            most: None,
            least: 1,
            more_after_check: 0,
            calls: vec![(None, function)],
            marks: Vec::new(),
        }
    }

    /// What a call uses up.
    pub fn weight(&self) -> i64 {
        match self.most {
            Some(_) => 1,
            None => -1,
        }
    }

    /// How much there is of it.
    pub fn limit(&self) -> i64 {
        match self.most {
            Some(most) => most as i64,
            None => -(self.least as i64),
        }
    }

    /// Whether it counts calls of `callee` by `caller`.
    pub fn counts(&self, caller: usize, callee: usize) -> bool {
        self.calls
            .iter()
            .any(|&(by, called)| called == callee && by.is_none_or(|by| by == caller))
    }
}
