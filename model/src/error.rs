//! Errors of invocations (03, section 1).

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
