//! A platform: what turns a bound into time. The kernel assumes 10 µs for its longest path (ABI 04, section 1), and a
//! binary that needs longer on its platform is refused.

use anyhow::{bail, ensure, Context, Result};
use sandglass_abi::sched::MIN_BUDGET_US;
use serde::Deserialize;

use crate::flow::Longest;
use crate::image::Image;
use crate::kernel::System;
use crate::results::Results;
use crate::stamp::Stamp;
use crate::tree::{tree, Frame};

/// The file that declares it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Platform {
    /// For messages.
    pub name: String,
    /// Cycles in a second.
    pub clock_hz: u64,
    /// Cycles that an instruction of the kernel takes at most, on average over a path. Nobody can know it of a machine with
    /// caches without a model of them: whoever declares it answers for it.
    pub cycles_per_instruction: f64,
    /// Levels of capability spaces that systems on this platform have, at most: 1 to 64.
    pub levels: u64,
    /// The least budget and period of the kernel on this platform, µs, instead of the ABI's: twice as long as its longest
    /// path there, at least. Less lets shorter budgets be, and more lets slower platforms be.
    pub min_budget_us: Option<u64>,
}

/// The least that can be declared, µs: longer than the margin with which a timer fires before a budget ends.
const SHORTEST_US: u64 = 4;

impl Platform {
    /// From the text of a file.
    ///
    /// # Errors
    /// It is no such file, or a number in it cannot be.
    pub fn parse(text: &str) -> Result<Self> {
        let this: Self = toml::from_str(text).context("a platform")?;
        ensure!(
            this.clock_hz > 0,
            "`clock_hz` is 0: it is the cycles in a second, such as 1_000_000_000"
        );
        ensure!(
            this.cycles_per_instruction.is_finite() && this.cycles_per_instruction > 0.0,
            "`cycles_per_instruction` is {}: it is a positive number",
            this.cycles_per_instruction
        );
        ensure!(
            (1..=64).contains(&this.levels),
            "`levels` is {}: capability spaces have 1 to 64 levels",
            this.levels
        );
        ensure!(
            this.min_budget_us.is_none_or(|least| least >= SHORTEST_US),
            "`min_budget_us` is {}: it is {SHORTEST_US} at least, or left out, for the ABI's {MIN_BUDGET_US}",
            this.min_budget_us.unwrap_or_default()
        );
        Ok(this)
    }

    /// Time of so many instructions, ns, rounded up.
    pub fn nanoseconds(&self, instructions: i64) -> u64 {
        let cycles = instructions as f64 * self.cycles_per_instruction;
        (cycles * 1e9 / self.clock_hz as f64).ceil() as u64
    }

    /// What is to be recorded in a kernel with these bounds of open systems.
    ///
    /// # Errors
    /// It needs longer than the ABI's constant: names what takes longest, its line, and what would be right.
    pub fn accept(&self, image: &Image, results: &[Results]) -> Result<Stamp> {
        let open = results
            .iter()
            .find(|each| each.case.system == System::Open && each.case.levels == self.levels)
            .with_context(|| format!("no bound of open systems with {} levels", self.levels))?;
        let (entry, longest) = open
            .entries
            .iter()
            .max_by_key(|(_, longest)| longest.cost)
            .context("a kernel that is never entered has no bound")?;
        let path_ns = self.nanoseconds(longest.cost);
        let assumed_ns = self.min_budget_us.unwrap_or(MIN_BUDGET_US) * 1000 / 2;
        if path_ns > assumed_ns {
            bail!(
                "the longest path of this kernel, of {} with {} levels of capability spaces, has {} instructions: {:.1} µs on `{}`, where the kernel assumes {} µs of itself. {}Make that path shorter, or declare a faster clock or fewer levels if the platform has them, or `min_budget_us = {}`, which its programs see",
                entry.name(),
                self.levels,
                longest.cost,
                path_ns as f64 / 1000.0,
                self.name,
                assumed_ns as f64 / 1000.0,
                dearest(image, longest),
                (2 * path_ns).div_ceil(1000).max(SHORTEST_US),
            );
        }
        let latency = open.interrupt_latency();
        Ok(Stamp {
            path: longest.cost as u64,
            latency: latency as u64,
            path_ns,
            latency_ns: self.nanoseconds(latency),
            min_budget_us: self.min_budget_us.unwrap_or_default(),
        })
    }
}

/// A sentence about the function that executes most of a path by itself, and its dearest line.
fn dearest(image: &Image, longest: &Longest) -> String {
    fn most<'f>(frame: &'f Frame, best: &mut &'f Frame) {
        if frame.own() > best.own() {
            *best = frame;
        }
        for call in &frame.calls {
            most(call, best);
        }
    }
    let root = tree(image, longest);
    let mut best = &root;
    most(&root, &mut best);
    let line = best.lines.iter().max_by_key(|(_, cost)| **cost);
    match line {
        Some((line, _)) => format!(
            "Most of it, {} instructions, are in `{}` ({line}). ",
            best.own(),
            best.name
        ),
        None => String::new(),
    }
}
