//! What the analysis asks of a kernel: where it is entered, where it checks for interrupts, and which of its functions
//! are of interest by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use sandglass_cache::Model;
use serde::Deserialize;

use crate::analysis::{Analysis, Question};
use crate::code::Flow;
use crate::flow::Longest;
use crate::graph::End;
use crate::image::Image;
use crate::limits::{Bound, Limits};
use crate::program::Program;
use crate::results::Wanted;
use crate::watch::{self, POINT};

/// In the path of each function that serves invocations.
const INVOCATIONS: &str = "::invoke::";

/// A way into the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    #[default]
    SystemCall,
    /// An interrupt or an exception, also while the kernel idles.
    Vector,
}

impl Entry {
    pub const ALL: [Self; 2] = [Self::SystemCall, Self::Vector];

    /// In tables and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::SystemCall => "system_call",
            Self::Vector => "vector",
        }
    }
}

/// Who may do what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum System {
    /// Anybody anything.
    #[default]
    Open,
    /// Only messages, signals and replies are sent, as in the paper's Table 2.
    Closed,
}

impl System {
    pub const ALL: [Self; 2] = [Self::Open, Self::Closed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }
}

/// What a bound is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub system: System,
    /// Levels of capability spaces.
    pub levels: u64,
}

/// How much code is analysed, as in Table 1 of the paper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Properties {
    /// Of code.
    pub bytes: usize,
    pub functions: usize,
    pub blocks: usize,
    pub loops: usize,
    /// Conditional ones.
    pub branches: usize,
}

/// A kernel.
#[derive(Debug)]
pub struct Kernel<'i> {
    pub image: &'i Image,
    limits: Vec<Bound>,
    closed: Vec<Bound>,
    point: usize,
    model: Option<Model>,
}

impl<'i> Kernel<'i> {
    /// # Errors
    /// The file is no kernel of this project, or the limits name what it has not.
    pub fn new(image: &'i Image, limits: &Limits, closed: &Limits) -> Result<Self> {
        Ok(Self {
            image,
            limits: limits.resolve(image)?,
            closed: closed.resolve(image)?,
            point: named(image, POINT)?,
            model: None,
        })
    }

    /// The same on a processor: cycles are counted.
    #[must_use]
    pub fn on(self, model: Option<Model>) -> Self {
        Self { model, ..self }
    }

    /// The longest path from an entry, or from a check for interrupts that the event of such an entry reaches, to user
    /// level, to idleness or to the next check; with `through`, of those that call that function. `None` if there is
    /// none.
    ///
    /// # Errors
    /// Code that cannot be analysed: it says where, and what would be right.
    pub fn longest(
        &self,
        entry: Entry,
        case: Case,
        through: Option<usize>,
    ) -> Result<Option<Longest>> {
        let through = through.map(Bound::through);
        self.longest_of(entry, case, through.as_slice(), None)
    }

    /// The same of paths that keep these bounds, too, and execute each instruction no more often than that, by addresses:
    /// what is computed of a path that was seen.
    ///
    /// # Errors
    /// As with [`Self::longest`].
    pub fn longest_of(
        &self,
        entry: Entry,
        case: Case,
        more: &[Bound],
        executed: Option<Rc<BTreeMap<u64, u64>>>,
    ) -> Result<Option<Longest>> {
        let mut bounds = self.limits.clone();
        if case.system == System::Closed {
            bounds.extend(self.closed.iter().cloned());
        }
        bounds.extend(more.iter().cloned());
        let question = Question {
            levels: case.levels,
            point: Some(self.point),
            bounds,
            model: self.model,
            executed,
        };
        Analysis::new(self.image, question).longest(&self.addresses(entry)?)
    }

    /// What an entry can reach.
    ///
    /// # Errors
    /// Code that cannot be analysed.
    pub fn properties(&self) -> Result<Properties> {
        let mut program = Program::new(self.image, Some(self.point));
        let mut open = Vec::new();
        for entry in Entry::ALL {
            let functions = self.addresses(entry)?.into_iter();
            open.extend(functions.filter_map(|address| self.image.function_at(address)));
        }
        let mut seen = BTreeSet::new();
        let mut properties = Properties::default();
        while let Some(function) = open.pop() {
            if !seen.insert(function) {
                continue;
            }
            let code = program.code(function)?;
            let instructions = code.graph.blocks.iter().flat_map(|block| &block.code);
            for instruction in instructions {
                properties.bytes += usize::from(instruction.length);
                properties.branches += usize::from(matches!(instruction.flow, Flow::Branch(_)));
            }
            properties.functions += 1;
            properties.blocks += code.graph.blocks.len();
            properties.loops += code.loops.len();
            for block in &code.graph.blocks {
                match &block.end {
                    End::Call { callee, .. } => open.push(*callee),
                    End::Go { functions, .. } => open.extend(functions),
                    End::Return | End::Leave | End::Wait(_) | End::Trap => {}
                }
            }
        }
        Ok(properties)
    }

    /// The longest path of a system call through each function that serves invocations, in each case that has one.
    ///
    /// # Errors
    /// As with [`Self::longest`].
    pub fn invocations(&self, wanted: &Wanted) -> Result<Vec<(Case, usize, Longest)>> {
        let names = self.image.functions.iter().enumerate();
        let serving = names.filter(|(_, function)| function.name.contains(INVOCATIONS));
        let mut found = Vec::new();
        for (function, _) in serving {
            for case in wanted.cases() {
                let longest = self.longest(Entry::SystemCall, case, Some(function))?;
                found.extend(longest.map(|longest| (case, function, longest)));
            }
        }
        Ok(found)
    }

    /// Where such an entry begins.
    fn addresses(&self, entry: Entry) -> Result<Vec<u64>> {
        let all = watch::entries(self.image)?;
        let of_it = all.into_iter().find(|(name, _)| *name == entry.name());
        let (_, addresses) = of_it.context("an entry that is watched nowhere")?;
        Ok(addresses)
    }
}

fn named(image: &Image, name: &str) -> Result<usize> {
    image
        .function_named(name)
        .with_context(|| format!("it has no function `{name}`: is it a kernel, with symbols?"))
}
