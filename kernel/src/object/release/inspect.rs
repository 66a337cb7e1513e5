//! A look into [`ReleaseQueues`].

use super::{ReleaseQueues, NEVER, NODES, PRIORITIES, ROOT};
use crate::Kernel;

/// Number of nodes of the tournament; node 0 is none, the leaves are the upper half.
pub const TOURNAMENT: usize = NODES;
/// The node from which all others hang: those of node i are 2i and 2i + 1.
pub const TOP: usize = ROOT;

impl ReleaseQueues {
    /// The earliest release, in ticks, that node `i` of the tournament says.
    pub fn inspect(&self, i: usize) -> u64 {
        self.node(i).get()
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
            && (ROOT..PRIORITIES).all(|i| {
                self.node(i).get() == self.node(2 * i).get().min(self.node(2 * i + 1).get())
            })
    }
}
