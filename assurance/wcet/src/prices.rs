//! What the edges of a network cost on a processor with caches, and its longest way.
//!
//! Most lines that may not be there stay from their first use on: a path brings such a line once, though nobody knows at which of
//! its uses. Who pays for it at the beginning of the path need not pay there. So the longest way costs no less than the kernel
//! takes, whichever lines are paid for ahead; and what it costs is least if these are well chosen ([`crate::ahead`]).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::Result;
use sandglass_cache::{Data, Model};

use crate::ahead::{choice, Seen};
use crate::analysis::Analysis;
use crate::flow::{self, Longest};
use crate::reduce::{Edge, Network, Way, SOURCE};
use crate::states::State;
use crate::values::Term;

/// So often it is chosen what is paid for ahead.
const MOST_CHOICES: usize = 6;

/// A line of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Line {
    /// Of code, by its number.
    Code(u64),
    /// Of data, by an address.
    Data(Term),
}

/// What an edge costs on a processor with caches, besides what it costs without.
#[derive(Debug, Default)]
pub(crate) struct Price {
    /// Cycles, but for the lines and the call.
    pub cost: i64,
    /// Lines that may not be there.
    lines: Vec<Missed>,
    /// Then this call.
    pub call: Option<Call>,
}

/// A line that may not be there.
#[derive(Debug, Clone, Copy)]
struct Missed {
    line: Line,
    /// It is there, if the path has used it before.
    stays: bool,
}

/// A call that counts as a step.
#[derive(Debug)]
pub(crate) struct Call {
    pub function: usize,
    pub called: Rc<Priced>,
    /// Lines that may not be there in it, as it calls them.
    pub lines: BTreeMap<Line, Passed>,
}

/// A line that may not be there in a call.
#[derive(Debug)]
pub(crate) struct Passed {
    /// As the caller calls it.
    pub outer: Line,
    /// Loops around the call bring it.
    pub is_brought: bool,
    /// It is there where it stays in the call, if the path has used it before the call; of code, everywhere in it.
    pub stays: bool,
}

impl Price {
    pub fn misses(&mut self, line: Line, stays: bool) {
        self.lines.push(Missed { line, stays });
    }
}

impl Missed {
    /// Whether it is paid for, if some lines are brought from outside, and some at the beginning of the path.
    fn is_free(self, paid: &Paid) -> bool {
        let is_brought = paid.brought.contains(&self.line);
        let is_ahead = paid.ahead.contains(&self.line);
        match self.line {
            Line::Code(_) => is_brought || self.stays && is_ahead,
            Line::Data(_) => self.stays && (is_brought || is_ahead),
        }
    }
}

impl Passed {
    fn is_free(&self, paid: &Paid) -> bool {
        let outer = Missed {
            line: self.outer,
            stays: self.stays,
        };
        self.is_brought || outer.is_free(paid)
    }
}

/// What is paid for elsewhere than where it is used.
#[derive(Debug, Clone, Copy)]
struct Paid<'p> {
    /// By who makes the call that this is.
    brought: &'p BTreeSet<Line>,
    /// At the beginning.
    ahead: &'p BTreeSet<Line>,
}

/// Cycles to bring a line of data.
pub(crate) const fn data_miss(model: &Model) -> i64 {
    match model.data {
        Data::Uncached { .. } => 0,
        Data::WriteBack {
            miss, write_back, ..
        } => (miss + write_back) as i64,
    }
}

impl Line {
    /// Cycles to bring it.
    pub const fn cost(self, model: &Model) -> i64 {
        match self {
            Self::Code(_) => model.code_miss as i64,
            Self::Data(_) => data_miss(model),
        }
    }
}

/// A network, and what its edges cost on a processor with caches.
#[derive(Debug)]
pub(crate) struct Priced {
    /// Edges that may be on a path, with what they cost without caches.
    network: RefCell<Network>,
    /// Of each edge.
    prices: Vec<Option<Price>>,
    /// Lines that may not be there: of data, those that stay.
    lines: BTreeSet<Line>,
    /// What is known at its end; `None` if nothing comes there, or without caches.
    pub left: Option<State>,
    /// Longest ways, by the lines that are there or paid for whenever they are used.
    known: RefCell<BTreeMap<BTreeSet<Line>, Option<Rc<Longest>>>>,
}

/// An edge of the longest way, as far as lines are concerned.
#[derive(Debug, Default)]
struct OfEdge {
    /// Which it brings, and how often.
    brings: Vec<(Line, u64)>,
    /// Which may not be there when it uses them: how often, and whether they are if the path has used them before.
    uses: Vec<(Line, u64, bool)>,
}

/// A longest way, where some lines are paid for ahead.
struct Found {
    longest: Longest,
    /// How often it uses each line that stays, and would pay for it.
    uses: BTreeMap<Line, u64>,
}

impl Priced {
    pub fn new(all: &Network, mut prices: BTreeMap<usize, Price>, left: Option<State>) -> Self {
        let mut lines = BTreeSet::new();
        for price in prices.values() {
            let missed = price.lines.iter().copied();
            let passed = price.call.iter().flat_map(|call| call.lines.values());
            let passed = passed.map(|it| Missed {
                line: it.outer,
                stays: it.stays,
            });
            let known = missed
                .chain(passed)
                .filter(|it| it.stays || matches!(it.line, Line::Code(_)));
            lines.extend(known.map(|it| it.line));
        }
        let mut network = all.without_edges();
        let mut of_edges = Vec::new();
        for (number, edge) in all.edges.iter().enumerate() {
            if all.is_possible(edge) {
                network.add(edge.clone(), None);
                of_edges.push(prices.remove(&number));
            }
        }
        Self {
            network: RefCell::new(network),
            prices: of_edges,
            lines,
            left,
            known: RefCell::new(BTreeMap::new()),
        }
    }

    /// Lines that may not be there when they are used: of data, those that stay.
    pub const fn lines(&self) -> &BTreeSet<Line> {
        &self.lines
    }

    /// The longest way, if these lines are there or paid for whenever they are used; `None` if none leads to the end.
    ///
    /// # Errors
    /// There is no longest one.
    pub fn longest(
        &self,
        brought: &BTreeSet<Line>,
        analysis: &Analysis,
    ) -> Result<Option<Rc<Longest>>> {
        if let Some(known) = self.known.borrow().get(brought) {
            return Ok(known.clone());
        }
        let mut best: Option<Longest> = None;
        let mut ahead = BTreeSet::new();
        let mut seen: Vec<Seen> = Vec::new();
        while seen.len() < MOST_CHOICES && seen.iter().all(|it| it.ahead != ahead) {
            let paid = Paid {
                brought,
                ahead: &ahead,
            };
            let Some(Found { longest, uses }) = self.longest_with(paid, analysis)? else {
                break;
            };
            seen.push(Seen {
                cost: longest.cost,
                ahead: ahead.clone(),
                uses,
            });
            if best.as_ref().is_none_or(|best| longest.cost < best.cost) {
                best = Some(longest);
            }
            ahead = match &analysis.question.model {
                Some(model) => choice(&seen, ahead, model),
                None => ahead,
            };
        }
        let best = best.map(Rc::new);
        self.known
            .borrow_mut()
            .insert(brought.clone(), best.clone());
        Ok(best)
    }

    /// The longest way, where some lines are paid for at the beginning.
    fn longest_with(&self, paid: Paid, analysis: &Analysis) -> Result<Option<Found>> {
        let mut network = self.network.borrow_mut();
        let costs: Vec<(i64, Rc<Way>)> = network
            .edges
            .iter()
            .map(|edge| (edge.cost, edge.way.clone()))
            .collect();
        let mut lines = Vec::new();
        for (edge, price) in network.edges.iter_mut().zip(&self.prices) {
            let mut own = OfEdge::default();
            if let Some(price) = price {
                price.add(edge, &mut own, paid, analysis)?;
            }
            if let (SOURCE, Some(model)) = (edge.from, &analysis.question.model) {
                edge.cost += paid.ahead.iter().map(|it| it.cost(model)).sum::<i64>();
                own.brings.extend(paid.ahead.iter().map(|&it| (it, 1)));
            }
            lines.push(own);
        }
        let longest = flow::longest(&mut network, analysis.image)?;
        for (edge, cost) in network.edges.iter_mut().zip(costs) {
            (edge.cost, edge.way) = cost;
        }
        Ok(longest.map(|longest| Found::of(longest, lines)))
    }
}

impl Price {
    /// Adds what it costs to an edge, and its lines.
    fn add(
        &self,
        edge: &mut Edge,
        own: &mut OfEdge,
        paid: Paid,
        analysis: &Analysis,
    ) -> Result<()> {
        let Some(model) = &analysis.question.model else {
            return Ok(());
        };
        own.uses
            .extend(self.lines.iter().map(|it| (it.line, 1, it.stays)));
        let missed: Vec<&Missed> = self.lines.iter().filter(|it| !it.is_free(&paid)).collect();
        own.brings.extend(missed.iter().map(|it| (it.line, 1)));
        let lines = missed.iter().map(|it| it.line.cost(model));
        edge.cost += self.cost + lines.sum::<i64>();
        if let Way::Block {
            function, block, ..
        } = *edge.way
        {
            edge.way = Rc::new(Way::Block {
                function,
                block,
                cost: edge.cost,
            });
        }
        let Some(call) = &self.call else {
            return Ok(());
        };
        let brought = call.lines.iter().filter(|it| it.1.is_free(&paid));
        let brought = brought.map(|it| *it.0).collect();
        let Some(step) = call.called.longest(&brought, analysis)? else {
            return Ok(());
        };
        edge.cost += step.cost;
        for (line, &times) in &step.missed {
            let passed = call.lines.get(line);
            own.brings.extend(passed.map(|it| (it.outer, times)));
        }
        for line in &step.used {
            if let Some(passed) = call.lines.get(line) {
                let times = step.missed.get(line).copied().unwrap_or(1);
                own.uses.push((passed.outer, times, passed.stays));
            }
        }
        let way = Rc::new(Way::Step(call.function, step));
        edge.way = Rc::new(Way::Both(edge.way.clone(), way));
        Ok(())
    }
}

impl Found {
    /// A longest way, with what concerns lines of each edge.
    fn of(mut longest: Longest, lines: Vec<OfEdge>) -> Self {
        let mut uses: BTreeMap<Line, u64> = BTreeMap::new();
        let gone = std::mem::take(&mut longest.edges).into_iter().zip(lines);
        for (times, lines) in gone.filter(|(times, _)| *times > 0) {
            for (line, misses) in lines.brings {
                *longest.missed.entry(line).or_default() += times * misses;
            }
            for (line, misses, stays) in lines.uses {
                longest.used.insert(line);
                if stays {
                    *uses.entry(line).or_default() += times * misses;
                }
            }
        }
        Self { longest, uses }
    }
}
