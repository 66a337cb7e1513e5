//! Accesses of a loop that go through memory step by step: each line is brought once, though nobody knows in which turn.
//!
//! Such an access is so many bytes on from that of the turn before; or several are, which follow each other in memory, in any
//! order in a turn. A line that is not there is a new one, if the line that the turn before ended in is there, and each that this
//! turn has used. So they bring no more lines than the loop comes into, which are paid for where it is entered; with one that
//! comes first: as if the loop began by an access one step before its first. An access more saves one miss at most, that of the
//! next of the same line, in a cache that replaces what was used longest ago (of all others, no less was used since they were):
//! since it is paid for, this is safe.

use std::collections::{BTreeMap, BTreeSet};

use sandglass_cache::{Data, Geometry, Model};

use crate::reduce::Network;
use crate::states::circles;
use crate::values::{Origin, Place, Symbol, Symbols, Term};

/// Accesses that a loop makes in each turn, one behind the other.
#[derive(Debug, Clone)]
pub struct Stream {
    /// Where the loop has what changes from turn to turn, and what that is called.
    pub place: Place,
    pub symbol: Symbol,
    /// What is accessed before the first of them.
    pub before: Term,
    /// Their addresses.
    pub all: Vec<Term>,
    /// Lines that they come into, at most, once they have begun.
    lines: u64,
}

/// Those of a network.
#[derive(Debug, Default)]
pub struct Streams {
    /// By the nodes in which their loops begin.
    loops: BTreeMap<usize, Vec<Stream>>,
    /// By their addresses: the nodes, and the places there.
    all: BTreeMap<Term, (usize, usize)>,
    /// Which nodes lead to each other: whoever is elsewhere has not paid, maybe.
    circles: BTreeMap<usize, usize>,
}

/// Bytes from an access to the next of the same turn.
const WORD: u64 = 8;

impl Streams {
    /// Of addresses whose lines may be missing.
    pub fn of(
        missed: Vec<Term>,
        network: &Network,
        cache: Geometry,
        symbols: &mut Symbols,
    ) -> Self {
        let mut streams = Self::default();
        for (number, nodes) in circles(network).enumerate() {
            streams
                .circles
                .extend(nodes.into_iter().map(|node| (node, number)));
        }
        let begun = begun_inside(network);
        let missed: BTreeSet<Term> = missed.into_iter().collect();
        for &at in &missed {
            let steps = at.symbol.and_then(|symbol| symbols.step_in(symbol));
            let Some((symbol, step)) = steps else {
                continue;
            };
            let Origin::Joined { node, place } = symbols.origin(symbol) else {
                continue;
            };
            let back = Term::symbol(symbol).add(step.wrapping_neg());
            let (Some(&turns), Some(last)) = (
                network.turns.get(&node),
                symbols.with(at, Some(symbol), back),
            ) else {
                continue;
            };
            let Some(by) = last.distance(at) else {
                continue;
            };
            if streams.all.contains_key(&at) || begun.contains(&node) {
                continue;
            }
            // At equal distances, as far as a turn goes on: as one.
            let distances = (WORD.ilog2()..cache.line.ilog2()).map(|bits| 1 << bits);
            let mut wholes = distances.filter(|back| (by as i64) > 0 && by % back == 0);
            let whole = wholes.find_map(|back: u64| {
                let all = (0..by).step_by(back as usize).map(|it| at.add(it));
                let all: Vec<Term> = all.take_while(|it| missed.contains(it)).collect();
                (all.len() as u64 * back == by).then_some((all, back))
            });
            let (all, back) = whole.unwrap_or_else(|| (vec![at], by));
            let bytes = turns.saturating_mul((by as i64).unsigned_abs());
            let lines = bytes / cache.line + 1;
            let times = turns.saturating_mul(all.len() as u64);
            if (back as i64).unsigned_abs() >= cache.line || lines + 1 >= times {
                continue;
            }
            let loops = streams.loops.entry(node).or_default();
            let number = loops.len();
            streams
                .all
                .extend(all.iter().map(|&at| (at, (node, number))));
            loops.push(Stream {
                place,
                symbol,
                before: at.add(back.wrapping_neg()),
                all,
                lines,
            });
        }
        streams
    }

    /// Leaves out what is among these addresses. Whether anything is.
    pub fn leave_out(&mut self, missed: &[Term]) -> bool {
        let known = self.all.len();
        self.all.clear();
        for (&node, streams) in &mut self.loops {
            streams.retain(|stream| !stream.all.iter().any(|at| missed.contains(at)));
            for (number, stream) in streams.iter().enumerate() {
                let all = stream.all.iter();
                self.all.extend(all.map(|&at| (at, (node, number))));
            }
        }
        self.all.len() < known
    }

    /// That with an access at an address.
    pub fn with(&self, at: Term, here: usize) -> Option<&Stream> {
        let (node, number) = self.all.get(&at)?;
        let circle = self.circles.get(&here)?;
        if self.circles.get(node) != Some(circle) {
            return None;
        }
        self.loops.get(node)?.get(*number)
    }

    /// What changes in them from turn to turn.
    pub fn symbols(&self) -> BTreeSet<Symbol> {
        let all = self.loops.values().flatten();
        all.map(|stream| stream.symbol).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those of the loop that begins in a node.
    pub fn from(&self, node: usize) -> &[Stream] {
        self.loops.get(&node).map_or(&[], Vec::as_slice)
    }

    /// Cycles at the entrance of the loop that begins in a node.
    pub fn cost_from(&self, node: usize, model: &Model) -> i64 {
        let Data::WriteBack {
            miss, write_back, ..
        } = model.data
        else {
            return 0;
        };
        let lines = self.from(node).iter().map(|stream| stream.lines + 1);
        (lines.sum::<u64>() * (miss + write_back)) as i64
    }
}

/// Nodes of loops in which something begins, behind a check for interrupts: whoever begins there has not paid at the entrance.
fn begun_inside(network: &Network) -> BTreeSet<usize> {
    let resumed = network.resumed.iter();
    let begun: BTreeSet<usize> = resumed.map(|&(_, edge)| network.edges[edge].to).collect();
    if begun.is_empty() {
        return begun;
    }
    let loops = circles(network).filter(|nodes| nodes.iter().any(|node| begun.contains(node)));
    loops.flatten().collect()
}
