//! I/O ports (03, sections 8.6 and 8.7).
//!
//! Invariant: a port is marked issued exactly if some I/O-port capability covers it.

#[cfg(not(target_os = "none"))]
mod inspect;

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
        edges
            .into_iter()
            .flatten()
            .any(|(word, bits)| word.get() & bits != 0)
            || any_bit(inner)
    }

    pub fn mark(&self, _: &Kernel, ports: Ports, issued: bool) {
        let (edges, inner) = self.cover(ports);
        for (word, bits) in edges.into_iter().flatten() {
            word.set(if issued {
                word.get() | bits
            } else {
                word.get() & !bits
            });
        }
        // Two loops, of which each fills memory with a constant.
        if issued {
            inner.iter().for_each(|word| word.set(u64::MAX));
        } else {
            inner.iter().for_each(|word| word.set(0));
        }
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
    while let Some(([a, b, c, d, e, f, g, h], behind)) = rest.split_first_chunk::<8>() {
        let first = a.get() | b.get() | c.get() | d.get();
        if first | e.get() | f.get() | g.get() | h.get() != 0 {
            return true;
        }
        rest = behind;
    }
    rest.iter().any(|word| word.get() != 0)
}
