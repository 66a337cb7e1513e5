//! A look into [`PortTable`].

use super::{Edge, PortTable, WORDS};

impl PortTable {
    /// The marks of the ports 64·`word` to 64·`word` + 63, the first in the lowest bit; `None` past
    /// the end of the table.
    pub fn inspect(&self, word: usize) -> Option<u64> {
        (word < WORDS).then(|| self.at_edge(Edge { word, bits: 0 }))
    }
}
