//! A look into [`PortTable`].

use super::{Edge, PortTable, WORDS};

impl PortTable {
    /// The marks of the ports 64·`word` to 64·`word` + 63, the first in the lowest bit; `None` past
    /// the end of the table.
    pub fn inspect(&self, word: usize) -> Option<u64> {
        (word < WORDS).then(|| self.at_edge(Edge { word, bits: 0 }))
    }

    /// Whether exactly those words are said to have bits that have some.
    pub fn is_consistent(&self) -> bool {
        (0..WORDS).all(|word| {
            let (i, bit) = Edge { word, bits: 0 }.in_summary();
            (self.some[i].get() & bit != 0) == (self.words[word].get() != 0)
        })
    }
}
