//! Errors of invocations (03, section 1).

use sandglass_abi::error::ErrorNumber;

use crate::cap::derivation::DeriveError;
use crate::ipc::fault::push_lookup_failure;
use crate::ipc::Writer;
use crate::mem::Ref;
use crate::object::{LookupFailure, Tcb};
use crate::time::Preempted;
use crate::Kernel;

/// Why an invocation was refused. Nothing was changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The argument of this number.
    InvalidArgument(u64),
    /// The capability of this number: 0 is the invoked one, 1 the first extra one.
    InvalidCapability(u64),
    IllegalOperation,
    /// What would have been right, both ends included.
    Range {
        min: u64,
        max: u64,
    },
    Alignment,
    FailedLookup {
        source: bool,
        failure: LookupFailure,
    },
    TruncatedMessage,
    DeleteFirst,
    RevokeFirst,
    /// Bytes that are left.
    NotEnoughMemory(u64),
}

/// Why an invocation does not come to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    Refused(Error),
    Preempted,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Refused(error)
    }
}

impl From<Preempted> for Stop {
    fn from(_: Preempted) -> Self {
        Stop::Preempted
    }
}

impl Error {
    /// A failed lookup of a source, or of a destination.
    pub const fn lookup(source: bool, failure: LookupFailure) -> Self {
        Error::FailedLookup { source, failure }
    }

    /// A failed lookup of a destination: `bits_left` bits lead to no capability.
    pub const fn missing(bits_left: u8) -> Self {
        Self::lookup(false, LookupFailure::MissingCapability { bits_left })
    }

    /// A failed lookup of a source, likewise.
    pub const fn missing_source(bits_left: u8) -> Self {
        Self::lookup(true, LookupFailure::MissingCapability { bits_left })
    }

    /// The address space is gone.
    pub const fn invalid_root() -> Self {
        Self::lookup(false, LookupFailure::InvalidRoot)
    }

    /// Refuses, with this error, if `refused`.
    ///
    /// # Errors
    /// This one, if so.
    #[inline(always)]
    pub const fn when(self, refused: bool) -> Result<(), Self> {
        if refused {
            return Err(self);
        }
        Ok(())
    }

    /// Refuses a `value` that is not between `min` and `max`, both included.
    ///
    /// # Errors
    /// It is not; with what would have been right.
    #[inline(always)]
    pub const fn check_range(value: u64, min: u64, max: u64) -> Result<(), Self> {
        Error::Range { min, max }.when(value < min || value > max)
    }

    const fn number(self) -> ErrorNumber {
        match self {
            Error::InvalidArgument(_) => ErrorNumber::InvalidArgument,
            Error::InvalidCapability(_) => ErrorNumber::InvalidCapability,
            Error::IllegalOperation => ErrorNumber::IllegalOperation,
            Error::Range { .. } => ErrorNumber::RangeError,
            Error::Alignment => ErrorNumber::AlignmentError,
            Error::FailedLookup { .. } => ErrorNumber::FailedLookup,
            Error::TruncatedMessage => ErrorNumber::TruncatedMessage,
            Error::DeleteFirst => ErrorNumber::DeleteFirst,
            Error::RevokeFirst => ErrorNumber::RevokeFirst,
            Error::NotEnoughMemory(_) => ErrorNumber::NotEnoughMemory,
        }
    }

    /// Answers `caller` with this error.
    #[cold]
    #[inline(never)]
    pub fn report(self, k: &Kernel, caller: Ref<Tcb>) {
        /// The source of a failed lookup, its type, and three details.
        const MOST_WORDS: usize = 5;
        let mut message = Writer::new(k, caller, MOST_WORDS);
        match self {
            Error::InvalidArgument(detail)
            | Error::InvalidCapability(detail)
            | Error::NotEnoughMemory(detail) => message.push(detail),
            Error::Range { min, max } => {
                message.push(min);
                message.push(max);
            }
            Error::FailedLookup { source, failure } => {
                message.push(u64::from(source));
                push_lookup_failure(&mut message, failure);
            }
            Error::IllegalOperation
            | Error::Alignment
            | Error::TruncatedMessage
            | Error::DeleteFirst
            | Error::RevokeFirst => {}
        }
        message.finish(self.number() as u64, 0);
    }
}

impl From<DeriveError> for Error {
    fn from(error: DeriveError) -> Self {
        match error {
            DeriveError::RevokeFirst => Error::RevokeFirst,
            DeriveError::NotMapped => Error::IllegalOperation,
        }
    }
}
