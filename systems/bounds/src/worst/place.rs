//! Where the objects of a scene lie in a data cache of 32 KiB in four ways, such that the kernel finds few of the lines again
//! that it has had before.
//!
//! What it comes back to are threads and buffers, above all the server's: it reads that buffer at first, and writes it in the
//! end. So these all want the same sets, and so do endpoints and reply objects; and look-ups in between go ways that pass there,
//! which drives them out. Other ways do not: what is wanted once is dearest in a set that still has what must be written back.
//!
//! The lines were found by a search, by a model of that cache, with what the kernels of both architectures access in all cases.
//! They are lines of a row ([`lines`]).

use super::*;

/// Threads and buffers begin here.
const HOT: u64 = ROW / 2;

pub(super) struct Lines {
    pub endpoint: u64,
    pub handler: u64,
    pub answered: u64,
    pub offered: u64,
    pub notification: u64,
    pub elsewhere: u64,
    /// The context of the notification.
    pub lent: u64,
    pub server: OfActor,
    pub client: OfActor,
    pub sender: OfActor,
}

/// What an actor has of its own.
pub(super) struct OfActor {
    pub thread: u64,
    pub buffer: u64,
    pub context: u64,
    pub ways: Ways,
}

impl OfActor {
    /// `ways` are those to the leaves that matter.
    const fn new(root: u64, ways: &[(u64, u64)]) -> Self {
        let mut leaves = [0; LEAVES as usize];
        let mut i = 0;
        while i < ways.len() {
            let (leaf, line) = ways[i];
            leaves[leaf as usize] = line;
            i += 1;
        }
        Self {
            thread: HOT,
            buffer: HOT,
            context: 66,
            ways: Ways { root, leaves },
        }
    }
}

pub(super) const LINES: Lines = Lines {
    endpoint: 67,
    handler: 127,
    answered: 66,
    offered: 66,
    notification: 5,
    elsewhere: 9,
    lent: 64,
    server: OfActor::new(
        16,
        &[
            (ENDPOINT, 3),
            (OFFERED, 3),
            (HANDLER, 95),
            (ANSWERED, 115),
            (TARGET, 122),
            (ROOT, 34),
            (FIRST, 120),
            (PASSED, 99),
            (FREE, 19),
            (RECEIVED, 6),
            (ROOT_TOO, 116),
            (PASSED_TOO[0], 36),
            (PASSED_TOO[1], 99),
            (HANDLER_TOO, 58),
        ],
    ),
    client: OfActor::new(32, &[(ROOT, 69), (RECEIVED, 69)]),
    sender: OfActor::new(32, &[(ENDPOINT, 69), (ENDPOINT_TOO, 34), (PASSED, 69)]),
};
