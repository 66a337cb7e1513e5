//! Error numbers of invocations and lookup-failure types (ABI 03, section 1, ABI 02, section 4).

/// The label of an error reply (ABI 03, section 1). The comments give the detail words, in order.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorNumber {
    NoError = 0,
    /// Argument number.
    InvalidArgument = 1,
    /// Capability number: 0 is the invoked one, 1 the first extra capability, and so on.
    InvalidCapability = 2,
    IllegalOperation = 3,
    /// Minimum, maximum (both inclusive).
    RangeError = 4,
    AlignmentError = 5,
    /// 1 for a source lookup else 0, lookup-failure type, details of [`LookupFailureType`].
    FailedLookup = 6,
    TruncatedMessage = 7,
    DeleteFirst = 8,
    RevokeFirst = 9,
    /// Bytes left.
    NotEnoughMemory = 10,
}

impl ErrorNumber {
    /// The error with this number, or `None` for a label that is no error number.
    #[inline]
    pub const fn from_raw(label: u64) -> Option<Self> {
        Some(match label {
            0 => Self::NoError,
            1 => Self::InvalidArgument,
            2 => Self::InvalidCapability,
            3 => Self::IllegalOperation,
            4 => Self::RangeError,
            5 => Self::AlignmentError,
            6 => Self::FailedLookup,
            7 => Self::TruncatedMessage,
            8 => Self::DeleteFirst,
            9 => Self::RevokeFirst,
            10 => Self::NotEnoughMemory,
            _ => return None,
        })
    }
}

/// Why the lookup of a capability failed (ABI 02, section 4). The comments give the detail words, in
/// order, all counted in bits except the guard value.
#[repr(u64)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LookupFailureType {
    InvalidRoot = 1,
    /// Bits left.
    MissingCapability = 2,
    /// Bits left, bits found.
    DepthMismatch = 3,
    /// Bits left, guard found, bits found (the guard's size).
    GuardMismatch = 4,
}

impl LookupFailureType {
    /// The failure with this type number, or `None`.
    #[inline]
    pub const fn from_raw(number: u64) -> Option<Self> {
        Some(match number {
            1 => Self::InvalidRoot,
            2 => Self::MissingCapability,
            3 => Self::DepthMismatch,
            4 => Self::GuardMismatch,
            _ => return None,
        })
    }

    /// Number of detail words that follow the type number.
    #[inline]
    pub const fn detail_words(self) -> usize {
        self as usize - 1
    }
}
