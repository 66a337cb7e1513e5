//! An invocation and how it is refused.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use sandglass_abi::error::{ErrorNumber, LookupFailureType};

/// What is invoked, and with what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arguments {
    /// Slot of the invoked capability in the root CNode.
    pub cap: u64,
    pub words: Vec<u64>,
    /// Slots of the extra capabilities.
    pub caps: Vec<u64>,
}

/// A part of the arguments of an invocation, and what it becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    Invoked(u64),
    Word(usize, u64),
    Cap(usize, u64),
    /// The message has only so many words.
    Words(usize),
    /// There are only so many extra capabilities.
    Caps(usize),
}

impl Change {
    fn apply(self, to: &mut Arguments) {
        match self {
            Change::Invoked(slot) => to.cap = slot,
            Change::Word(i, word) => to.words[i] = word,
            Change::Cap(i, slot) => to.caps[i] = slot,
            Change::Words(count) => to.words.truncate(count),
            Change::Caps(count) => to.caps.truncate(count),
        }
    }

    /// Whether one leaves alone what the other is about.
    pub fn is_apart_from(self, other: Change) -> bool {
        use Change::*;
        match (self, other) {
            (Invoked(_), Invoked(_)) | (Words(_), Words(_)) | (Caps(_), Caps(_)) => false,
            (Word(i, _), Word(j, _)) | (Cap(i, _), Cap(j, _)) => i != j,
            (Word(i, _), Words(n)) | (Words(n), Word(i, _)) => i < n,
            (Cap(i, _), Caps(n)) | (Caps(n), Cap(i, _)) => i < n,
            _ => true,
        }
    }
}

/// An invocation: a usual one, and how it differs.
#[derive(Clone, Debug)]
pub struct Call {
    pub label: u64,
    pub usual: Arguments,
    pub changes: Vec<Change>,
}

/// An invocation of `label` of the capability in slot `cap`.
pub fn call(label: u64, cap: u64, words: &[u64], caps: &[u64]) -> Call {
    Call {
        label,
        usual: Arguments {
            cap,
            words: words.to_vec(),
            caps: caps.to_vec(),
        },
        changes: Vec::new(),
    }
}

impl Call {
    /// This invocation fails at `check` of the catalogue.
    pub fn fails(self, check: impl Into<String>, refusal: Refusal) -> Case {
        Case {
            call: self,
            check: check.into(),
            refusal,
        }
    }

    /// The same with one thing more changed.
    pub fn with(mut self, change: Change) -> Call {
        self.changes.push(change);
        self
    }

    /// The same with word `i` changed.
    pub fn word(self, i: usize, word: u64) -> Call {
        self.with(Change::Word(i, word))
    }

    /// The same with extra capability `i` changed.
    pub fn cap(self, i: usize, slot: u64) -> Call {
        self.with(Change::Cap(i, slot))
    }

    /// The same, invoking another capability.
    pub fn of(self, slot: u64) -> Call {
        self.with(Change::Invoked(slot))
    }

    /// What is invoked, and with what.
    pub fn arguments(&self) -> Arguments {
        let mut arguments = self.usual.clone();
        for change in &self.changes {
            change.apply(&mut arguments);
        }
        arguments
    }

    /// With each shorter message, and with each lesser number of capabilities, the call is
    /// truncated.
    pub fn truncated(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for words in 0..self.usual.words.len() {
            let short = self.clone().with(Change::Words(words));
            cases.push(short.fails("too few words", TRUNCATED));
        }
        for caps in 0..self.usual.caps.len() {
            let short = self.clone().with(Change::Caps(caps));
            cases.push(short.fails("too few capabilities", TRUNCATED));
        }
        cases
    }
}

/// What a refused caller is told: the error and its detail words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    pub error: ErrorNumber,
    pub details: Vec<u64>,
}

const fn plain(error: ErrorNumber) -> Refusal {
    Refusal {
        error,
        details: Vec::new(),
    }
}

pub const ILLEGAL: Refusal = plain(ErrorNumber::IllegalOperation);
pub const TRUNCATED: Refusal = plain(ErrorNumber::TruncatedMessage);
pub const DELETE_FIRST: Refusal = plain(ErrorNumber::DeleteFirst);
pub const REVOKE_FIRST: Refusal = plain(ErrorNumber::RevokeFirst);
pub const ALIGNMENT: Refusal = plain(ErrorNumber::AlignmentError);

fn with(error: ErrorNumber, details: &[u64]) -> Refusal {
    Refusal {
        error,
        details: details.to_vec(),
    }
}

pub fn argument(number: u64) -> Refusal {
    with(ErrorNumber::InvalidArgument, &[number])
}

pub fn capability(number: u64) -> Refusal {
    with(ErrorNumber::InvalidCapability, &[number])
}

pub fn range(min: u64, max: u64) -> Refusal {
    with(ErrorNumber::RangeError, &[min, max])
}

pub fn memory(bytes: u64) -> Refusal {
    with(ErrorNumber::NotEnoughMemory, &[bytes])
}

/// A failed lookup of a `source` or a destination, with the details of its type (ABI 02, section
/// 4).
pub fn lookup(source: bool, failure: LookupFailureType, details: &[u64]) -> Refusal {
    assert_eq!(details.len(), failure.detail_words());
    let mut words = vec![source.into(), failure as u64];
    words.extend(details);
    with(ErrorNumber::FailedLookup, &words)
}

/// An address space that is gone.
pub fn invalid_root() -> Refusal {
    lookup(false, LookupFailureType::InvalidRoot, &[])
}

/// A lookup that ended at nothing, `bits_left` from the end.
pub fn missing(source: bool, bits_left: u64) -> Refusal {
    lookup(source, LookupFailureType::MissingCapability, &[bits_left])
}

/// An invocation that is refused.
#[derive(Clone, Debug)]
pub struct Case {
    pub call: Call,
    /// The check of the catalogue that it fails at.
    pub check: String,
    pub refusal: Refusal,
}
