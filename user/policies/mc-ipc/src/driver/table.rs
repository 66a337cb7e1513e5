//! Tables: when table-driven clients have processor time.

use super::kernel::TableKernel;
use super::sender::Control;
use crate::protocol::ClientId;

/// A slot begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// In periods of the table's thread, from the beginning of the cycle.
    pub at: u64,
    pub client: ClientId,
    pub begins: bool,
}

/// What the thread of a table does, for good. A cycle has so many periods; `edges` are in the order of time, ends before
/// beginnings. The first period begins a cycle.
pub async fn keep_table<K: TableKernel>(kernel: &mut K, periods: u64, edges: &[Edge]) -> ! {
    loop {
        for period in 0..periods {
            for edge in edges.iter().filter(|edge| edge.at == period) {
                let control = match edge.begins {
                    true => Control::Resume,
                    false => Control::Suspend,
                };
                kernel.control(control.label(), edge.client).await;
                if edge.begins {
                    kernel.release(edge.client).await;
                }
            }
            kernel.next_period().await;
        }
    }
}
