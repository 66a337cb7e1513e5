//! Lines of code that stay from their first use on (persistence: Ferdinand and Wilhelm 1999; by what was used since, as in
//! Cullmann, *Cache Persistence Analysis*, 2013).
//!
//! Where ways meet, a line is in the cache for sure only if both have brought it. But if fewer others of its set than that has ways
//! may have been used since the line was, on any way to a place, it is there if it was used before at all. Of data, that is known
//! with what is there for sure ([`crate::held`]).

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use anyhow::Result;
use sandglass_cache::Geometry;

use crate::analysis::Analysis;
use crate::caches::{lines_with, Footprint};
use crate::reduce::{Network, SOURCE};
use crate::states::order;

/// Lines of code, and which of them have a set in common.
#[derive(Debug)]
struct Lines {
    /// Each line's place.
    places: BTreeMap<u64, usize>,
    /// By places: the others of its set.
    others: Vec<Vec<usize>>,
    /// By places: its bit where others of its set have what was used since. All bits if the set has more lines than there are bits.
    bits: Vec<u64>,
    ways: u32,
}

/// It was used on a way to here.
const USED: u64 = 1 << 63;

impl Lines {
    fn of(lines: &BTreeSet<u64>, cache: Geometry) -> Self {
        let mut sets: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, &line) in lines.iter().enumerate() {
            sets.entry(cache.set_of(line)).or_default().push(place);
        }
        let mut others = vec![Vec::new(); lines.len()];
        let mut bits = vec![0; lines.len()];
        for set in sets.values() {
            for (number, &place) in set.iter().enumerate() {
                bits[place] = match number < USED.trailing_zeros() as usize {
                    true => 1 << number,
                    false => !USED,
                };
                others[place] = set.iter().copied().filter(|&it| it != place).collect();
            }
        }
        Self {
            places: lines.iter().copied().zip(0..).collect(),
            others,
            bits,
            ways: cache.ways as u32,
        }
    }
}

/// What may have been used of the set of each line since that line was, on any way to a place.
#[derive(Debug, Clone)]
pub struct Since {
    lines: Rc<Lines>,
    /// By the places of the lines: [`USED`], and the bits of others.
    others: Vec<u64>,
}

impl Since {
    fn nothing(lines: &Rc<Lines>) -> Self {
        Self {
            others: vec![0; lines.bits.len()],
            lines: lines.clone(),
        }
    }

    /// Whether a line is in the cache if it was used before.
    pub fn stays(&self, line: u64) -> bool {
        self.stays_beside(line, 0)
    }

    /// The same, though so many others are used besides.
    pub fn stays_beside(&self, line: u64, more: u64) -> bool {
        let others = self.others[self.lines.places[&line]] & !USED;
        u64::from(others.count_ones()) + more < self.lines.ways.into()
    }

    /// A line is used.
    pub fn access(&mut self, line: u64) {
        let place = self.lines.places[&line];
        self.ages(place);
        self.others[place] = USED;
    }

    /// Lines that were used before are older by this one.
    fn ages(&mut self, by: usize) {
        let lines = &self.lines;
        for &other in &lines.others[by] {
            if self.others[other] & USED != 0 {
                self.others[other] |= lines.bits[by];
            }
        }
    }

    /// Code is executed, no matter how much of it.
    pub fn call(&mut self, footprint: &Footprint) {
        for line in &footprint.lines {
            self.others[self.lines.places[line]] |= USED;
        }
        for line in &footprint.lines {
            self.ages(self.lines.places[line]);
        }
    }

    /// Lines of code that are in the cache all the time while that is executed, once they are used.
    pub fn staying(&self, footprint: &Footprint) -> BTreeSet<u64> {
        let mut behind = self.clone();
        behind.call(footprint);
        let lines = footprint.lines.iter().copied();
        lines.filter(|&line| behind.stays(line)).collect()
    }

    /// Either may hold. Whether that is more than before.
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (own, other) in self.others.iter_mut().zip(&other.others) {
            changed |= *other & !*own != 0;
            *own |= other;
        }
        changed
    }
}

impl Analysis<'_> {
    /// What may have been used since, at each node to which a path leads. A path behind a check for interrupts begins anew.
    pub(crate) fn since(
        &mut self,
        network: &Network,
        cache: Geometry,
    ) -> Result<Vec<Option<Since>>> {
        let mut lines = BTreeSet::new();
        let mut calls: BTreeMap<usize, Rc<Footprint>> = BTreeMap::new();
        for (&edge, each) in &network.uses {
            let executed = each.executed.iter();
            let code = executed.flat_map(|executed| &executed.block().code);
            lines.extend(code.flat_map(|it| lines_with(it, cache)));
            if let Some((function, _)) = each.step {
                let footprint = self.footprint(function, cache)?;
                lines.extend(&footprint.lines);
                calls.insert(edge, footprint);
            }
            let brought = each.enters.iter().flat_map(|inside| inside.lines.keys());
            lines.extend(brought);
        }
        let lines = Rc::new(Lines::of(&lines, cache));
        let mut out = vec![Vec::new(); network.nodes];
        for (number, edge) in network.edges.iter().enumerate() {
            out[edge.from].push(number);
        }
        let (order, nodes) = order(network, &out);
        let mut since: Vec<Option<Since>> = vec![None; network.nodes];
        since[SOURCE] = Some(Since::nothing(&lines));
        let mut open = BTreeSet::from([order[SOURCE]]);
        while let Some(place) = open.pop_first() {
            let node = nodes[place];
            let Some(mut behind) = since[node].clone() else {
                continue;
            };
            // All edges out of a node execute the same block.
            let uses = out[node].iter().find_map(|edge| network.uses.get(edge));
            for instruction in uses
                .iter()
                .flat_map(|it| &it.executed)
                .flat_map(|it| &it.block().code)
            {
                lines_with(instruction, cache).for_each(|line| behind.access(line));
            }
            for edge in &out[node] {
                let mut behind = behind.clone();
                if let Some(footprint) = calls.get(edge) {
                    behind.call(footprint);
                }
                let to = network.edges[*edge].to;
                let changed = match &mut since[to] {
                    Some(known) => known.join(&behind),
                    none => {
                        *none = Some(behind);
                        true
                    }
                };
                if changed {
                    open.insert(order[to]);
                }
            }
        }
        Ok(since)
    }
}
