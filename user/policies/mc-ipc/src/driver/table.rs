//! Tables: when table-driven clients have processor time.
//!
//! The table of a core is a thread there, above all clients, with a context of its own whose period it uses as a clock: at the
//! beginning of each period it signals the gate, and gives up the rest of its budget. It never blocks, so that its periods
//! begin on a grid for good: a thread that blocks has its next refill put off (ABI 04, section 6). What begins and ends then is the gate's to
//! know.

use alloc::vec::Vec;
use core::ops::Range;

use super::kernel::TableKernel;
use super::sender::Control;
use super::shared::Shared;
use crate::protocol::ClientId;

/// A slot begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// In periods of the table's thread, from the beginning of the cycle.
    pub at: u64,
    pub client: ClientId,
    pub begins: bool,
}

/// The slots of a core's table-driven clients, as the gate keeps them.
#[derive(Clone, Debug)]
pub struct Table {
    core: usize,
    periods: u64,
    edges: Vec<Edge>,
    /// Periods that have begun.
    begun: u64,
}

impl Table {
    /// Of `core`: a cycle of so many periods. The first one begins a cycle.
    ///
    /// # Panics
    /// A cycle has no periods, or an edge is outside of it.
    pub fn new(core: usize, periods: u64, mut edges: Vec<Edge>) -> Self {
        assert!(
            edges.iter().all(|edge| edge.at < periods),
            "an edge is within the cycle"
        );
        edges.sort_by_key(|edge| (edge.at, edge.begins));
        Self {
            core,
            periods,
            edges,
            begun: 0,
        }
    }

    /// Of which core.
    pub const fn core(&self) -> usize {
        self.core
    }

    /// Periods that have begun, as far as the gate knows.
    pub(super) const fn begun(&self) -> u64 {
        self.begun
    }

    /// The next period begins: which edges are there, ends before beginnings. Nothing is allocated, here and where they are
    /// followed: the operation on another core may have the heap.
    pub(super) fn tick(&mut self) -> Range<usize> {
        let now = self.begun % self.periods;
        self.begun += 1;
        let first = self.edges.partition_point(|edge| edge.at < now);
        let after = self.edges.partition_point(|edge| edge.at <= now);
        first..after
    }

    /// What an edge means for whom.
    pub(super) fn edge(&self, number: usize) -> (ClientId, Control) {
        let edge = self.edges[number];
        match edge.begins {
            true => (edge.client, Control::Resume),
            false => (edge.client, Control::Suspend),
        }
    }
}

/// What the thread of a core's table does, for good.
pub async fn keep_table<K: TableKernel>(kernel: &mut K, shared: &Shared, core: usize) -> ! {
    loop {
        shared.count_tick(core);
        kernel.tick().await;
        kernel.next_period().await;
    }
}
