//! An invocation and how it is refused.

use sandglass_abi::error::{ErrorNumber, LookupFailureType};

/// An invocation.
#[derive(Clone, Debug)]
pub struct Call {
    pub label: u64,
    /// Slot of the invoked capability in the root CNode.
    pub cap: u64,
    pub words: Vec<u64>,
    /// Slots of the extra capabilities.
    pub caps: Vec<u64>,
}

/// An invocation of `label` of the capability in slot `cap`.
pub fn call(label: u64, cap: u64, words: &[u64], caps: &[u64]) -> Call {
    Call {
        label,
        cap,
        words: words.to_vec(),
        caps: caps.to_vec(),
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

    /// The same with word `i` changed.
    pub fn word(mut self, i: usize, word: u64) -> Call {
        self.words[i] = word;
        self
    }

    /// The same with extra capability `i` changed.
    pub fn cap(mut self, i: usize, slot: u64) -> Call {
        self.caps[i] = slot;
        self
    }

    /// The same, invoking another capability.
    pub fn of(mut self, slot: u64) -> Call {
        self.cap = slot;
        self
    }

    /// With each shorter message, and with each lesser number of capabilities, the call is
    /// truncated.
    pub fn truncated(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for words in 0..self.words.len() {
            let mut short = self.clone();
            short.words.truncate(words);
            cases.push(short.fails("too few words", TRUNCATED));
        }
        for caps in 0..self.caps.len() {
            let mut short = self.clone();
            short.caps.truncate(caps);
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
