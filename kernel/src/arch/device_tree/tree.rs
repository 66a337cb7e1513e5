//! Reading a flattened device tree (the format of version 17, in big-endian numbers): a total function of
//! its bytes.
//!
//! Every offset and length is a claim of whoever wrote the tree: each is checked against the bytes that there
//! are, and each step of a walk goes on by at least a token, so that a walk ends whatever is in the tree.
//! What the nodes mean is the matter of [`super::board`].

use crate::arch::Range;

/// The first four bytes.
const MAGIC: u32 = 0xd00d_feed;
/// Bytes of the header.
pub const HEADER: usize = 40;
/// Where the header has the bytes of the whole tree.
pub const TOTAL_SIZE: usize = 4;
/// The version that is read; whoever writes a later one says whether it can be read as this one.
const VERSION: u32 = 17;
/// The largest tree that is looked at, in bytes: what the boot protocol of Linux allows.
pub const MOST_BYTES: usize = 2 << 20;

const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;
const END: u32 = 9;

/// The kinds of [`Error`], each with its message: a table beside the code, as a way for each would be ten times as long.
macro_rules! errors {
    ($($name:ident: $message:literal,)*) => {
        /// Why a tree cannot be read, or says too little about a machine.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Error {
            $($name,)*
        }

        impl Error {
            pub fn message(self) -> &'static str {
                const MESSAGES: &[&str] = &[$($message,)*];
                MESSAGES.get(self as usize).unwrap_or(&"")
            }
        }
    };
}

errors! {
    // ---- what is no tree
    NoHeader: "the device tree is shorter than its header",
    Magic: "there is no device tree where x0 points: no magic number d00dfeed",
    TooOld: "the device tree is older than version 17",
    TooNew: "the device tree cannot be read as version 17",
    TooBig: "the device tree says that it is larger than 2 MiB",
    Truncated: "the device tree says that it is longer than what is there",
    StructureOutside: "the device tree's structure is not inside it, or not at a multiple of 4 bytes",
    StringsOutside: "the device tree's strings are not inside it",
    ReservationsOutside: "the device tree's memory reservations have no end inside it",
    // ---- what is no structure
    StructureEnds: "the device tree's structure ends without saying so",
    Token: "the device tree's structure has a token that is none",
    NodeName: "a node of the device tree has a name without an end",
    PropertyEnds: "a property of the device tree is longer than the structure",
    PropertyName: "a property of the device tree has no name in its strings",
    PropertyOutside: "the device tree has a property outside of its nodes",
    PropertyLate: "the device tree has a property behind a node in its node",
    TooDeep: "the device tree has more than 16 nodes inside each other",
    ExtraEnd: "the device tree ends a node that did not begin",
    SecondRoot: "the device tree has more than one root",
    NoRoot: "the device tree ends inside a node, or has none",
    // ---- what is no machine
    Cells: "a node of the device tree has addresses or sizes of more than 2 cells",
    Reg: "a `reg` of the device tree does not consist of addresses and sizes",
    Ranges: "a `ranges` of the device tree does not consist of addresses and sizes",
    AddressWraps: "a range of the device tree ends behind the last address",
    NoMemory: "the device tree names no memory",
    TooMuchMemory: "the device tree names more pieces of memory than 16",
    TooManyReserved: "the device tree reserves more pieces of memory than 16",
    NoController: "the device tree names no interrupt controller that the kernel drives: GICv2, GICv3",
    ControllerReg: "the interrupt controller of the device tree lacks registers, or they do not begin at a page",
    ControllerInMemory: "the device tree's interrupt controller is in memory",
    InterruptCells: "the interrupt controller of the device tree has interrupts of fewer than 3 cells",
    NoTimer: "the device tree names no timer of the architecture (arm,armv8-timer)",
    TimerInterrupts: "the timer of the device tree lacks the private interrupt of its virtual timer",
    NoCores: "the device tree names no core",
    RootTask: "the device tree's linux,initrd-start and linux,initrd-end are not both numbers",
    RootTaskEmpty: "the device tree's linux,initrd-end is not behind its start",
}

/// The number of 32 bits at the beginning of `bytes`: byte by byte, as it lies anywhere, and so not in each place.
#[inline(never)]
pub fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().copied().map(u32::from_be_bytes)
}

/// The number of 64 bits at the beginning of `bytes`. Likewise.
#[inline(never)]
pub fn long(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().copied().map(u64::from_be_bytes)
}

/// Splits `bytes` behind the first `length`.
fn split(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(length)
}

/// Splits `bytes` at the first zero, which is in neither part.
fn split_at_zero(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|&byte| byte == 0)?;
    let (before, rest) = split(bytes, end)?;
    Some((before, rest.get(1..)?))
}

/// A device tree whose header is right.
#[derive(Clone, Copy)]
pub struct Tree<'t> {
    structure: &'t [u8],
    strings: &'t [u8],
    reservations: &'t [u8],
    used: usize,
}

impl<'t> Tree<'t> {
    /// How long the tree at the beginning of `header` says that it is, in bytes.
    ///
    /// # Errors
    /// That is no header, or the tree is too large.
    pub fn claimed_bytes(header: &[u8]) -> Result<usize, Error> {
        let magic = number(header).ok_or(Error::NoHeader)?;
        if magic != MAGIC {
            return Err(Error::Magic);
        }
        let total = header.get(TOTAL_SIZE..).and_then(number);
        let total = total.ok_or(Error::NoHeader)? as usize;
        if total > MOST_BYTES {
            return Err(Error::TooBig);
        }
        Ok(total)
    }

    /// The tree in `bytes`.
    ///
    /// # Errors
    /// Its header is wrong: the first nine kinds of [`Error`].
    pub fn new(bytes: &'t [u8]) -> Result<Self, Error> {
        let total = Self::claimed_bytes(bytes)?;
        let Some((bytes, _)) = split(bytes, total) else {
            return Err(Error::Truncated);
        };
        let word = |index: usize| bytes.get(index.wrapping_mul(4)..).and_then(number);
        let [Some(structure_at), Some(strings_at), Some(reservations_at), Some(version), Some(compatible), Some(_), Some(strings_size), Some(structure_size)] =
            [2, 3, 4, 5, 6, 7, 8, 9].map(word)
        else {
            return Err(Error::NoHeader);
        };
        if version < VERSION {
            return Err(Error::TooOld);
        }
        if compatible > VERSION {
            return Err(Error::TooNew);
        }
        let part = |at: u32, size: u32| {
            let (_, rest) = split(bytes, at as usize)?;
            let (part, after) = split(rest, size as usize)?;
            Some((part, bytes.len().saturating_sub(after.len())))
        };
        let (structure, structure_end) = part(structure_at, structure_size)
            .filter(|_| structure_at.is_multiple_of(4))
            .ok_or(Error::StructureOutside)?;
        let (strings, strings_end) = part(strings_at, strings_size).ok_or(Error::StringsOutside)?;
        let (_, reservations) =
            split(bytes, reservations_at as usize).ok_or(Error::ReservationsOutside)?;
        let mut tree = Tree {
            structure,
            strings,
            reservations,
            used: structure_end.max(strings_end).max(HEADER),
        };
        let mut count = 0usize;
        for entry in tree.reservations() {
            entry?;
            count = count.wrapping_add(1);
        }
        // With the entry of zeroes.
        let end = count.wrapping_add(1).wrapping_mul(RESERVATION);
        let end = end.wrapping_add(reservations_at as usize);
        tree.used = tree.used.max(end);
        Ok(tree)
    }

    /// Bytes of the tree that have anything in them: from its start to the end of the last of its parts.
    pub fn used(&self) -> usize {
        self.used
    }

    /// The memory reservations of the header; an error is the last item.
    pub fn reservations(&self) -> impl Iterator<Item = Result<Range, Error>> + 't {
        Reservations(Some(self.reservations))
    }

    /// The structure, token by token.
    pub fn tokens(&self) -> Tokens<'t> {
        Tokens {
            rest: self.structure,
            strings: self.strings,
        }
    }
}

/// Bytes of a memory reservation.
const RESERVATION: usize = 16;

/// What is left of the reservations; nothing behind their end or an error.
struct Reservations<'t>(Option<&'t [u8]>);

impl Iterator for Reservations<'_> {
    type Item = Result<Range, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.0.take()?;
        let Some((entry, rest)) = split(bytes, RESERVATION) else {
            return Some(Err(Error::ReservationsOutside));
        };
        let (Some(start), Some(size)) = (long(entry), entry.get(8..).and_then(long)) else {
            return Some(Err(Error::ReservationsOutside));
        };
        if start == 0 && size == 0 {
            return None;
        }
        let Some(end) = start.checked_add(size) else {
            return Some(Err(Error::AddressWraps));
        };
        self.0 = Some(rest);
        Some(Ok(Range { start, end }))
    }
}

/// A piece of the structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token<'t> {
    /// A node begins: its name, with the unit's address.
    Begin(&'t [u8]),
    /// A property of the node that began last.
    Property { name: &'t [u8], value: &'t [u8] },
    /// The node that began last, and has not ended, ends.
    End,
}

/// The rest of the structure.
pub struct Tokens<'t> {
    rest: &'t [u8],
    strings: &'t [u8],
}

impl<'t> Tokens<'t> {
    /// The next token; `None` at the end of the structure. Each call consumes 4 bytes at least.
    ///
    /// # Errors
    /// What comes is none, or goes past the end of the structure.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Token<'t>>, Error> {
        loop {
            return Ok(Some(match self.word().ok_or(Error::StructureEnds)? {
                NOP => continue,
                BEGIN_NODE => {
                    let (name, _) = split_at_zero(self.rest).ok_or(Error::NodeName)?;
                    self.skip(name.len().wrapping_add(1))
                        .ok_or(Error::NodeName)?;
                    Token::Begin(name)
                }
                PROPERTY => {
                    let length = self.word().ok_or(Error::PropertyEnds)? as usize;
                    let name = self.word().ok_or(Error::PropertyEnds)? as usize;
                    let (value, _) = split(self.rest, length).ok_or(Error::PropertyEnds)?;
                    self.skip(length).ok_or(Error::PropertyEnds)?;
                    let (_, name) = split(self.strings, name).ok_or(Error::PropertyName)?;
                    let (name, _) = split_at_zero(name).ok_or(Error::PropertyName)?;
                    Token::Property { name, value }
                }
                END_NODE => Token::End,
                END => return Ok(None),
                _ => return Err(Error::Token),
            }));
        }
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = split(self.rest, 4)?;
        self.rest = rest;
        number(word)
    }

    /// Goes on behind `bytes` and what fills the word up.
    fn skip(&mut self, bytes: usize) -> Option<()> {
        let (_, rest) = split(self.rest, bytes.checked_next_multiple_of(4)?)?;
        self.rest = rest;
        Some(())
    }
}
