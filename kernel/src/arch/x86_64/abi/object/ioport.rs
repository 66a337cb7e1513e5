//! I/O ports (03, sections 8.6 and 8.7).
//!
//! Invariant: a port is marked issued exactly if some I/O-port capability covers it.

#[cfg(not(target_os = "none"))]
mod inspect;

use crate::arch::bounds;
use crate::Kernel;
use core::cell::Cell;

/// A range of I/O ports, both ends included.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Ports {
    pub first: u16,
    pub last: u16,
}

const PORTS: usize = 1 << 16;
const WORDS: usize = PORTS / 64;
/// Words of which each has a bit for each word of ports.
const SUMMARIES: usize = WORDS / 64;

/// Which ports are issued. Ranges are issued and given back whole: of a range only the first and the last word have a bit
/// for each port, those between them are marked as `whole`.
pub struct PortTable {
    words: [Cell<u64>; WORDS],
    /// The words that have a bit.
    some: [Cell<u64>; SUMMARIES],
    /// The words that lie inside of an issued range.
    whole: [Cell<u64>; SUMMARIES],
}

impl PortTable {
    pub const fn new() -> Self {
        PortTable {
            words: [const { Cell::new(0) }; WORDS],
            some: [const { Cell::new(0) }; SUMMARIES],
            whole: [const { Cell::new(0) }; SUMMARIES],
        }
    }

    /// Whether any port of the range is issued.
    pub fn any(&self, ports: Ports) -> bool {
        let ([low, high], inner) = cover(ports);
        let at_edge = |edge: Edge| self.at_edge(edge) & edge.bits != 0;
        let has =
            |(i, words): (usize, u64)| (self.some[i].get() | self.whole[i].get()) & words != 0;
        low.is_some_and(at_edge) || high.is_some_and(at_edge) || inner.summaries().any(has)
    }

    /// The issued ports of the word of `edge`.
    fn at_edge(&self, edge: Edge) -> u64 {
        let (i, bit) = edge.in_summary();
        if self.whole[i].get() & bit != 0 {
            u64::MAX
        } else {
            self.words[edge.word()].get()
        }
    }

    /// Marks the range, which is to be issued or was, as a whole.
    pub fn mark(&self, _: &Kernel, ports: Ports, issued: bool) {
        let ([low, high], inner) = cover(ports);
        let at_edge = |edge: Edge| {
            let (word, (i, bit)) = (&self.words[edge.word()], edge.in_summary());
            put(word, edge.bits, issued);
            put(&self.some[i], bit, word.get() != 0);
        };
        low.map(at_edge);
        high.map(at_edge);
        for (i, words) in inner.summaries() {
            put(&self.whole[i], words, issued);
        }
    }
}

/// Sets `bits` of `word`, or clears them.
fn put(word: &Cell<u64>, bits: u64, set: bool) {
    word.set(if set {
        word.get() | bits
    } else {
        word.get() & !bits
    });
}

/// A word of the table, and the bits of it that a range covers.
#[derive(Clone, Copy)]
struct Edge {
    word: usize,
    bits: u64,
}

impl Edge {
    fn word(self) -> usize {
        self.word % WORDS
    }

    /// Which summary has the bit for the word, and that bit.
    fn in_summary(self) -> (usize, u64) {
        (self.word() / 64, 1 << (self.word % 64))
    }
}

/// Words of the table, from `first` on and before `end`.
#[derive(Clone, Copy)]
struct Inner {
    first: usize,
    end: usize,
}

impl Inner {
    /// Each summary, and its bits for these words.
    fn summaries(self) -> impl Iterator<Item = (usize, u64)> {
        bounds::turns::<{ SUMMARIES as u64 }, _>(0..SUMMARIES).map(move |i| {
            let below = |end: usize| match end.saturating_sub(64 * i) {
                64.. => u64::MAX,
                some => !(u64::MAX << some),
            };
            (i, below(self.end) & !below(self.first))
        })
    }
}

/// The first and the last word that the range covers, or the only one; and the words in between.
fn cover(ports: Ports) -> ([Option<Edge>; 2], Inner) {
    let (first, last) = (usize::from(ports.first), usize::from(ports.last));
    let (from, to) = (first / 64, last / 64);
    let low = u64::MAX << (first % 64);
    let high = u64::MAX >> (63 - last % 64);
    let inner = Inner {
        first: from + 1,
        end: to,
    };
    let edge = |word, bits| Some(Edge { word, bits });
    if from == to {
        ([edge(from, low & high), None], inner)
    } else {
        ([edge(from, low), edge(to, high)], inner)
    }
}
