//! A look into [`ReleaseQueues`].

use super::{ReleaseQueues, NODES, ROOT};

/// Number of nodes of the tournament; node 0 is none, the leaves are the upper half.
pub const TOURNAMENT: usize = NODES;
/// The node from which all others hang: those of node i are 2i and 2i + 1.
pub const TOP: usize = ROOT;

impl ReleaseQueues {
    /// The earliest release, in ticks, that node `i` of the tournament says.
    pub fn inspect(&self, i: usize) -> u64 {
        self.node(i).get()
    }
}
