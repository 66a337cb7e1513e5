//! The record of a run, as the recorder sends it to the host: sections of a tag, a length and
//! bytes, all numbers little-endian and of 64 bits. The last section is [`Tag::End`].

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Tag {
    /// Ticks of the time-stamp counter per µs.
    Clock = 1,
    /// Twice, at the beginning and the end of the measured window: time (ticks); then, since the start,
    /// bytes finished for each client, rollbacks for each, and the time of all rollbacks (ticks).
    Snapshot = 2,
    /// Time of the longest rollback since the start, ticks.
    Server = 3,
    /// Badge, bytes acknowledged, their digest.
    Client = 4,
    /// Releases, misses, time executed (ticks); then the response times, ns.
    Control = 5,
    /// Which [`Actor`], then intervals of three words.
    Trace = 6,
    /// The ciphertext of client A's first copy of the input.
    Ciphertext = 7,
    /// Nothing: the record is complete.
    End = 8,
}

impl Tag {
    const ALL: [Self; 8] = [
        Self::Clock,
        Self::Snapshot,
        Self::Server,
        Self::Client,
        Self::Control,
        Self::Trace,
        Self::Ciphertext,
        Self::End,
    ];

    fn from_word(word: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|&tag| tag as u64 == word)
    }
}

/// Who can be seen to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum Actor {
    Control = 1,
    Handler = 2,
    Server = 3,
    ClientA = 4,
    ClientB = 5,
    Burner = 6,
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

    pub fn from_word(word: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|&actor| actor as u64 == word)
    }
}

/// Bytes of a section's header.
const HEADER_BYTES: usize = 16;

/// The header of a section of `len` bytes.
pub fn header(tag: Tag, len: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&(tag as u64).to_le_bytes());
    bytes[8..].copy_from_slice(&len.to_le_bytes());
    bytes
}

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It ends inside of a section, or without [`Tag::End`].
    Truncated,
    UnknownTag(u64),
}

impl core::error::Error for Malformed {}

impl core::fmt::Display for Malformed {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Truncated => write!(f, "the machine's record is incomplete"),
            Self::UnknownTag(tag) => write!(f, "the machine's record has an unknown tag, {tag}"),
        }
    }
}

/// The sections of a record up to its end.
#[derive(Clone, Debug)]
pub struct Sections<'r> {
    rest: Option<&'r [u8]>,
}

impl<'r> Sections<'r> {
    pub const fn new(record: &'r [u8]) -> Self {
        Self { rest: Some(record) }
    }
}

impl<'r> Iterator for Sections<'r> {
    type Item = Result<(Tag, &'r [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        // Nothing follows the end, nor an error.
        let rest = self.rest.take()?;
        match split_section(rest) {
            Ok((Tag::End, _, _)) => None,
            Ok((tag, content, rest)) => {
                self.rest = Some(rest);
                Some(Ok((tag, content)))
            }
            Err(malformed) => Some(Err(malformed)),
        }
    }
}

/// The first section, and what follows it.
fn split_section(bytes: &[u8]) -> Result<(Tag, &[u8], &[u8]), Malformed> {
    let (&tag, bytes) = bytes.split_first_chunk().ok_or(Malformed::Truncated)?;
    let tag = u64::from_le_bytes(tag);
    let tag = Tag::from_word(tag).ok_or(Malformed::UnknownTag(tag))?;
    let (&len, bytes) = bytes.split_first_chunk().ok_or(Malformed::Truncated)?;
    let (content, rest) = usize::try_from(u64::from_le_bytes(len))
        .ok()
        .and_then(|len| bytes.split_at_checked(len))
        .ok_or(Malformed::Truncated)?;
    Ok((tag, content, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(tag: Tag, content: &[u8]) -> Vec<u8> {
        [&header(tag, content.len() as u64)[..], content].concat()
    }

    #[test]
    fn sections_are_read_up_to_the_end() {
        let record = [
            section(Tag::Clock, &[1, 2]),
            section(Tag::Ciphertext, &[]),
            section(Tag::End, &[]),
            vec![77],
        ]
        .concat();
        let sections: Vec<_> = Sections::new(&record).collect();
        assert_eq!(
            sections,
            [
                Ok((Tag::Clock, &[1u8, 2][..])),
                Ok((Tag::Ciphertext, &[][..]))
            ]
        );
    }

    #[test]
    fn every_cut_is_noticed() {
        let record = [section(Tag::Clock, &[1, 2]), section(Tag::End, &[])].concat();
        for len in 0..record.len() {
            let last = Sections::new(&record[..len]).last();
            assert_eq!(last, Some(Err(Malformed::Truncated)), "{len}");
        }
    }

    #[test]
    fn an_unknown_tag_is_an_error() {
        let mut sections = Sections::new(&[99, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sections.next(), Some(Err(Malformed::UnknownTag(99))));
        assert_eq!(sections.next(), None);
    }

    #[test]
    fn tags_and_actors_round_trip() {
        for tag in Tag::ALL {
            assert_eq!(Tag::from_word(tag as u64), Some(tag));
        }
        for actor in Actor::ALL {
            assert_eq!(Actor::from_word(actor as u64), Some(actor));
        }
    }
}
