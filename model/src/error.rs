//! Errors of invocations (03, section 1).

use sandglass_abi::error::{ErrorNumber, LookupFailureType};

use crate::state::LookupFailure;

/// Why an invocation was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// With the number of the argument.
    InvalidArgument(u64),
    /// With the number of the capability: 0 is the invoked one.
    InvalidCapability(u64),
    IllegalOperation,
    Range {
        min: u64,
        max: u64,
    },
    Alignment,
    FailedLookup {
        is_source: bool,
        failure: LookupFailure,
    },
    TruncatedMessage,
    DeleteFirst,
    RevokeFirst,
    /// With the bytes that are left.
    NotEnoughMemory(u64),
}

impl Error {
    /// The message that tells of it: label and words (03, section 1).
    pub fn message(self) -> (u64, Vec<u64>) {
        let (number, words) = match self {
            Error::InvalidArgument(argument) => (ErrorNumber::InvalidArgument, vec![argument]),
            Error::InvalidCapability(cap) => (ErrorNumber::InvalidCapability, vec![cap]),
            Error::IllegalOperation => (ErrorNumber::IllegalOperation, vec![]),
            Error::Range { min, max } => (ErrorNumber::RangeError, vec![min, max]),
            Error::Alignment => (ErrorNumber::AlignmentError, vec![]),
            Error::FailedLookup { is_source, failure } => {
                let mut words = vec![is_source.into()];
                words.extend(lookup_failure(failure));
                (ErrorNumber::FailedLookup, words)
            }
            Error::TruncatedMessage => (ErrorNumber::TruncatedMessage, vec![]),
            Error::DeleteFirst => (ErrorNumber::DeleteFirst, vec![]),
            Error::RevokeFirst => (ErrorNumber::RevokeFirst, vec![]),
            Error::NotEnoughMemory(bytes) => (ErrorNumber::NotEnoughMemory, vec![bytes]),
        };
        (number as u64, words)
    }
}

/// The words that tell of `failure`: its type and details, numbers of bits modulo 128 (02,
/// section 4).
pub fn lookup_failure(failure: LookupFailure) -> Vec<u64> {
    let bits = |number: u64| number % 128;
    let (kind, details) = match failure {
        LookupFailure::InvalidRoot => (LookupFailureType::InvalidRoot, vec![]),
        LookupFailure::MissingCapability { bits_left } => {
            (LookupFailureType::MissingCapability, vec![bits(bits_left)])
        }
        LookupFailure::DepthMismatch {
            bits_left,
            bits_found,
        } => (
            LookupFailureType::DepthMismatch,
            vec![bits(bits_left), bits(bits_found)],
        ),
        LookupFailure::GuardMismatch {
            bits_left,
            guard_found,
            bits_found,
        } => (
            LookupFailureType::GuardMismatch,
            vec![bits(bits_left), guard_found, bits(bits_found)],
        ),
    };
    let mut words = vec![kind as u64];
    words.extend(details);
    words
}
