//! I/O ports (03, sections 8.6 and 8.7).
//!
//! Invariant: a port is marked issued exactly if some I/O-port capability covers it.

#[cfg(not(target_os = "none"))]
mod inspect;

use crate::arch::bounds::{self, Turns};
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

/// Which ports are issued: a bit for each.
pub struct PortTable {
    words: [Cell<u64>; WORDS],
}

impl PortTable {
    pub const fn new() -> Self {
        PortTable {
            words: [const { Cell::new(0) }; WORDS],
        }
    }

    /// Whether any port of the range is issued.
    pub fn any(&self, ports: Ports) -> bool {
        let (edges, inner) = self.cover(ports);
        let is_issued =
            |edge: Option<Edge>| edge.is_some_and(|(word, bits)| word.get() & bits != 0);
        let [low, high] = edges;
        is_issued(low) || is_issued(high) || any_bit(inner)
    }

    pub fn mark(&self, _: &Kernel, ports: Ports, issued: bool) {
        let (edges, inner) = self.cover(ports);
        let set = |(word, bits): Edge| {
            word.set(if issued {
                word.get() | bits
            } else {
                word.get() & !bits
            });
        };
        let [low, high] = edges;
        low.map(set);
        high.map(set);
        fill(inner, if issued { u64::MAX } else { 0 });
    }

    /// The first and the last word that the range covers, or the only one, with the bits of its
    /// ports; and the words in between.
    fn cover(&self, ports: Ports) -> ([Option<Edge<'_>>; 2], &[Cell<u64>]) {
        let (first, last) = (usize::from(ports.first), usize::from(ports.last));
        let (from, to) = (first / 64, last / 64);
        let low = u64::MAX << (first % 64);
        let high = u64::MAX >> (63 - last % 64);
        let edge = |i: usize, bits| self.words.get(i).map(|word| (word, bits));
        if from == to {
            return ([edge(from, low & high), None], &[]);
        }
        let inner = self.words.get(from + 1..to).unwrap_or_default();
        ([edge(from, low), edge(to, high)], inner)
    }
}

/// A word of the table, and the bits of it that a range covers.
type Edge<'a> = (&'a Cell<u64>, u64);

/// Whether a bit of `words` is set; eight of them are a step.
fn any_bit(words: &[Cell<u64>]) -> bool {
    let mut rest = words;
    let mut turns = Turns::<{ WORDS as u64 / 8 }>::new();
    while let Some(([a, b, c, d, e, f, g, h], behind)) = rest.split_first_chunk::<8>() {
        turns.turn();
        let first = a.get() | b.get() | c.get() | d.get();
        if first | e.get() | f.get() | g.get() | h.get() != 0 {
            return true;
        }
        rest = behind;
    }
    for word in bounds::turns::<7, _>(rest.iter()) {
        if word.get() != 0 {
            return true;
        }
    }
    false
}

/// Makes all of `words` the same; four of them are a step.
fn fill(words: &[Cell<u64>], value: u64) {
    let mut rest = words;
    let mut turns = Turns::<{ WORDS as u64 / 4 }>::new();
    while let Some((four, behind)) = rest.split_first_chunk::<4>() {
        turns.turn();
        let [a, b, c, d] = four;
        a.set(value);
        b.set(value);
        c.set(value);
        d.set(value);
        rest = behind;
    }
    for word in bounds::turns::<3, _>(rest.iter()) {
        word.set(value);
    }
}
