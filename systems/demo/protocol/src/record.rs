//! The record of a run, as the recorder sends it to the host: [`BEGIN`], then [`Entry`]s, each in postcard's
//! encoding. The last is [`Entry::End`].

use postcard::Error;
use serde::{Deserialize, Serialize};

use crate::trace::Interval;

/// What a record begins with: firmware may show its messages before it.
pub const BEGIN: [u8; 16] = *b"Sandglass record";

/// Most bytes of ciphertext in an entry.
pub const CIPHERTEXT_BYTES: usize = 64;

/// Most bytes of an entry: those of the ciphertext, a byte for which entry it is, and one for their number; numbers,
/// of at most 10 bytes each, are fewer.
const ENTRY_BYTES: usize = CIPHERTEXT_BYTES + 2;

/// What the server has counted since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When, ticks.
    pub time: u64,
    /// Bytes finished for each client.
    pub finished: [u64; 2],
    /// Rollbacks for each client.
    pub rollbacks: [u64; 2],
    /// Time of all rollbacks, ticks.
    pub handling: u64,
}

/// A piece of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry<'r> {
    /// Ticks of the counter per ms.
    Clock {
        khz: u64,
    },
    /// Twice, at the beginning and the end of the measured window.
    Snapshot(Snapshot),
    /// Time of the longest rollback since the start, ticks.
    LongestRollback(u64),
    /// Bytes that a client acknowledged, and their digest.
    Client {
        badge: u64,
        bytes: u64,
        digest: u64,
    },
    /// Releases, missed deadlines, time executed (ticks). A response for each release follows.
    Control {
        releases: u64,
        misses: u64,
        busy: u64,
    },
    /// From a release of the control task to its completion, ns.
    Response(u64),
    /// Who ran in the intervals that follow.
    Trace(Actor),
    Interval(Interval),
    /// A part of the ciphertext of client A's first copy of the input, of at most [`CIPHERTEXT_BYTES`].
    Ciphertext(&'r [u8]),
    /// The record is complete.
    End,
}

/// Who can be seen to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Actor {
    Control,
    Handler,
    Server,
    ClientA,
    ClientB,
    Burner,
}

impl Actor {
    /// From the highest priority to the lowest.
    pub const ALL: [Self; 6] = [
        Self::Control,
        Self::Handler,
        Self::Server,
        Self::ClientA,
        Self::ClientB,
        Self::Burner,
    ];
}

/// Room for an encoded entry.
#[derive(Debug)]
pub struct Buffer([u8; ENTRY_BYTES]);

impl Buffer {
    pub const fn new() -> Self {
        Self([0; ENTRY_BYTES])
    }

    /// The bytes of `entry`.
    ///
    /// # Errors
    /// It has more ciphertext than an entry may have.
    pub fn encode(&mut self, entry: &Entry<'_>) -> Result<&[u8], Error> {
        postcard::to_slice(entry, &mut self.0).map(|bytes| &*bytes)
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

/// The entries of a record, without its begin, up to its end.
#[derive(Clone, Debug)]
pub struct Entries<'r> {
    rest: Option<&'r [u8]>,
}

impl<'r> Entries<'r> {
    pub const fn new(record: &'r [u8]) -> Self {
        Self { rest: Some(record) }
    }
}

impl<'r> Iterator for Entries<'r> {
    type Item = Result<Entry<'r>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        // Nothing follows the end, nor an error.
        let rest = self.rest.take()?;
        match postcard::take_from_bytes(rest) {
            Ok((Entry::End, _)) => None,
            Ok((entry, rest)) => {
                self.rest = Some(rest);
                Some(Ok(entry))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: u64 = u64::MAX;

    /// Each with the most bytes that it can have.
    fn entries() -> Vec<Entry<'static>> {
        let interval = Interval {
            start: LONGEST,
            end: LONGEST,
            payer: LONGEST,
        };
        vec![
            Entry::Clock { khz: LONGEST },
            Entry::Snapshot(Snapshot {
                time: LONGEST,
                finished: [LONGEST; 2],
                rollbacks: [LONGEST; 2],
                handling: LONGEST,
            }),
            Entry::LongestRollback(LONGEST),
            Entry::Client {
                badge: LONGEST,
                bytes: LONGEST,
                digest: LONGEST,
            },
            Entry::Control {
                releases: LONGEST,
                misses: LONGEST,
                busy: LONGEST,
            },
            Entry::Response(LONGEST),
            Entry::Trace(Actor::Burner),
            Entry::Interval(interval),
            Entry::Ciphertext(&[7; CIPHERTEXT_BYTES]),
        ]
    }

    fn encoded(entries: &[Entry<'_>]) -> Vec<u8> {
        let mut buffer = Buffer::new();
        let bytes = entries
            .iter()
            .map(|entry| buffer.encode(entry).unwrap().to_vec());
        bytes.collect::<Vec<_>>().concat()
    }

    #[test]
    fn entries_are_read_up_to_the_end() {
        let record = [encoded(&entries()), encoded(&[Entry::End]), vec![77]].concat();
        let read: Result<Vec<_>, _> = Entries::new(&record).collect();
        assert_eq!(read, Ok(entries()));
    }

    #[test]
    fn every_cut_is_noticed() {
        let record = [encoded(&entries()), encoded(&[Entry::End])].concat();
        for len in 0..record.len() {
            let last = Entries::new(&record[..len]).last();
            assert_eq!(last, Some(Err(Error::DeserializeUnexpectedEnd)), "{len}");
        }
    }

    #[test]
    fn what_is_no_entry_is_an_error() {
        let mut entries = Entries::new(&[99, 0, 0]);
        assert!(entries.next().is_some_and(|entry| entry.is_err()));
        assert_eq!(entries.next(), None);
    }
}
