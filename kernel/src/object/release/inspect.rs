//! A look into [`ReleaseQueues`].

use core::ops::Range;

use super::{ReleaseQueues, CHILDREN, DEPTH, NEVER, PRIORITIES, ROOT};
use crate::Kernel;

/// The nodes of the tournament that have others below them: each with those.
pub fn tournament() -> impl Iterator<Item = (usize, Range<usize>)> {
    let level = |depth| CHILDREN.pow(depth)..2 * CHILDREN.pow(depth);
    (0..DEPTH as u32)
        .flat_map(level)
        .map(|node| (node, CHILDREN * node..CHILDREN * (node + 1)))
}

/// The leaf of the tournament for `priority`.
pub fn leaf(priority: u8) -> usize {
    PRIORITIES + usize::from(priority)
}

impl ReleaseQueues {
    /// The earliest release, in ticks, that node `i` of the tournament says.
    pub fn inspect(&self, i: usize) -> u64 {
        if i == ROOT {
            self.earliest()
        } else {
            self.node(i).get()
        }
    }

    /// Whether the invariants of this file hold, in every queue too: for the hosted kernel's
    /// sweeps.
    pub fn is_consistent(&self, k: &Kernel) -> bool {
        let leaf = |priority: usize| {
            let first = self.queues[priority].first();
            first.map_or(NEVER, |first| first.at(k).links().key().time())
        };
        let is_taken = |p: usize| self.taken.has(p as u8) != self.queues[p].is_empty();
        let highest = (0..PRIORITIES).rfind(|&p| !self.queues[p].is_empty());
        (0..PRIORITIES).all(|p| {
            self.queues[p].is_consistent(k)
                && self.node(PRIORITIES + p).get() == leaf(p)
                && is_taken(p)
        }) && self.highest().map(usize::from) == highest
            && tournament().all(|(node, children)| {
                Some(self.inspect(node)) == children.map(|i| self.inspect(i)).min()
            })
    }
}
