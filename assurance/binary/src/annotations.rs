//! What the source says of its code, in a section of the file that is not loaded.

use anyhow::{ensure, Context, Result};
use object::{Object, ObjectSection};

/// The section's name.
pub const SECTION: &str = ".sandglass.wcet";

/// Bytes of a record: the address, what is said, and a number.
const RECORD: usize = 24;

/// What is said of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The loop that it is in comes here at most so many times whenever it is entered.
    Turns,
    /// The instruction there repeats itself at most so many times.
    Repeats,
    /// The next call has at most this as third argument.
    Argument,
    /// It is reached at most so many times between two checks for interrupts; steps of different kinds or numbers are
    /// counted apart.
    Steps,
    /// It is reached at most so many times in each call of the function that it is in.
    Together,
    /// A place that limits of paths name; the number says which.
    Mark,
    /// A register, whose number is the detail, points so many bytes behind the beginning of an object.
    Pointer {
        /// log2 of the bytes that it is aligned to.
        alignment: u8,
    },
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    pub address: u64,
    pub kind: Kind,
    pub value: u64,
    /// Of steps: their kind. Of turns that are counted together: how many it is, besides one.
    pub detail: u64,
}

/// The marks, by their numbers.
pub const MARKS: [(&str, u64); 18] = [
    ("invocation", 1),
    ("commit", 2),
    ("reception", 3),
    ("sending", 4),
    ("capabilities", 5),
    ("planning", 6),
    ("offer", 7),
    ("message", 8),
    ("direct", 9),
    ("staying", 10),
    ("ready", 11),
    ("preemption", 12),
    ("last object", 13),
    ("candidate", 14),
    ("keeping", 15),
    ("fault", 16),
    ("plain", 17),
    ("sendable", 18),
];

/// Levels of capability spaces, as a number of a record: how many is a parameter of the analysis.
pub const LEVELS: u64 = 1 << 32;

/// The levels but for the first.
pub const DEEPER: u64 = 1 << 33;

/// With a number of bytes, as a number of a record: as many as the third argument of the function has of them.
pub const OF_ARGUMENT: u64 = 1 << 34;

/// What a turn counts for, besides one, is a multiple of this in a record of turns that are counted together; below is their
/// bound, which may be a parameter of the analysis.
const COUNTED: u64 = 1 << 40;

/// The records of a file. Those of code that was left out have no address, and are left out, too.
///
/// # Errors
/// The section is not of whole records, or says what nobody knows.
pub fn read(file: &object::File) -> Result<Vec<Record>> {
    let Some(section) = file.section_by_name(SECTION) else {
        return Ok(Vec::new());
    };
    let data = section
        .data()
        .context("the section of annotations has no data")?;
    ensure!(
        data.len().is_multiple_of(RECORD),
        "{SECTION} has {} bytes, which are no whole records of {RECORD}",
        data.len()
    );
    let mut records = Vec::new();
    for record in data.chunks_exact(RECORD) {
        let word = |at: usize| {
            record[at..at + 8]
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(byte))
        };
        let kind = match word(8) {
            1 => Kind::Turns,
            2 => Kind::Repeats,
            3 => Kind::Argument,
            4 => Kind::Steps,
            5 => Kind::Mark,
            6 => Kind::Together,
            7 => Kind::Pointer {
                alignment: (word(16) >> 32) as u8,
            },
            other => anyhow::bail!(
                "{SECTION} has a record of kind {other}: build the kernel with the same version"
            ),
        };
        let (value, detail) = match kind {
            Kind::Steps => (word(16) & u64::from(u32::MAX), word(16) >> 32),
            Kind::Pointer { .. } => (word(16) & u64::from(u32::MAX), word(16) >> 40),
            Kind::Together => (word(16) & (COUNTED - 1), word(16) / COUNTED),
            _ => (word(16), 0),
        };
        let record = Record {
            address: word(0),
            kind,
            value,
            detail,
        };
        if record.address != 0 && !records.contains(&record) {
            records.push(record);
        }
    }
    Ok(records)
}
