//! Errors of invocations, with their details decoded (ABI 03, section 1).

use core::fmt;

use sandglass_abi::error::{ErrorNumber, LookupFailureType};
use sandglass_abi::invocation;

use crate::arch;
use crate::message::Message;

pub type Result<T> = core::result::Result<T, Error>;

/// An invocation that the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The label of the refused operation ([`sandglass_abi::invocation`]).
    pub operation: u64,
    pub kind: ErrorKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    InvalidArgument {
        /// Argument number, from 0.
        argument: u64,
    },
    InvalidCapability {
        /// 0 is the invoked capability, 1 the first extra capability, and so on.
        capability: u64,
    },
    IllegalOperation,
    /// Both bounds are included.
    Range {
        min: u64,
        max: u64,
    },
    Alignment,
    FailedLookup {
        /// The lookup of the source slot (else of the destination) failed.
        source: bool,
        failure: LookupFailure,
    },
    TruncatedMessage,
    DeleteFirst,
    RevokeFirst,
    NotEnoughMemory {
        bytes_left: u64,
    },
    /// A label that the ABI does not know.
    Unknown {
        label: u64,
    },
}

/// Why a capability was not found (ABI 02, section 4). Counts are bits of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LookupFailure {
    InvalidRoot,
    MissingCapability {
        bits_left: u64,
    },
    DepthMismatch {
        bits_left: u64,
        bits_found: u64,
    },
    GuardMismatch {
        bits_left: u64,
        guard_found: u64,
        bits_found: u64,
    },
    /// A type number that the ABI does not know.
    Unknown(u64),
}

impl LookupFailure {
    /// Decodes the words of `message` from the failure type at `at` on.
    pub fn decode(message: &Message, at: usize) -> Self {
        let number = message.word(at);
        let detail = |i: usize| message.word(at + 1 + i);
        match LookupFailureType::from_raw(number) {
            Some(LookupFailureType::InvalidRoot) => Self::InvalidRoot,
            Some(LookupFailureType::MissingCapability) => Self::MissingCapability {
                bits_left: detail(0),
            },
            Some(LookupFailureType::DepthMismatch) => Self::DepthMismatch {
                bits_left: detail(0),
                bits_found: detail(1),
            },
            Some(LookupFailureType::GuardMismatch) => Self::GuardMismatch {
                bits_left: detail(0),
                guard_found: detail(1),
                bits_found: detail(2),
            },
            None => Self::Unknown(number),
        }
    }
}

impl Error {
    /// The error that the answer to an invocation of `operation` describes, or its content.
    #[inline]
    pub(crate) fn check(operation: u64, answer: Message) -> Result<Message> {
        if answer.label() == ErrorNumber::NoError as u64 {
            Ok(answer)
        } else {
            Err(Self::decode(operation, &answer))
        }
    }

    #[cold]
    fn decode(operation: u64, answer: &Message) -> Self {
        let kind = match ErrorNumber::from_raw(answer.label()) {
            Some(ErrorNumber::InvalidArgument) => ErrorKind::InvalidArgument {
                argument: answer.word(0),
            },
            Some(ErrorNumber::InvalidCapability) => ErrorKind::InvalidCapability {
                capability: answer.word(0),
            },
            Some(ErrorNumber::IllegalOperation) => ErrorKind::IllegalOperation,
            Some(ErrorNumber::RangeError) => ErrorKind::Range {
                min: answer.word(0),
                max: answer.word(1),
            },
            Some(ErrorNumber::AlignmentError) => ErrorKind::Alignment,
            Some(ErrorNumber::FailedLookup) => ErrorKind::FailedLookup {
                source: answer.word(0) != 0,
                failure: LookupFailure::decode(answer, 1),
            },
            Some(ErrorNumber::TruncatedMessage) => ErrorKind::TruncatedMessage,
            Some(ErrorNumber::DeleteFirst) => ErrorKind::DeleteFirst,
            Some(ErrorNumber::RevokeFirst) => ErrorKind::RevokeFirst,
            Some(ErrorNumber::NotEnoughMemory) => ErrorKind::NotEnoughMemory {
                bytes_left: answer.word(0),
            },
            Some(ErrorNumber::NoError) | None => ErrorKind::Unknown {
                label: answer.label(),
            },
        };
        Self { operation, kind }
    }

    /// The bits that a missing paging structure leaves unresolved, if that is the error: 39, 30
    /// or 21 (ABI 03, section 8.3).
    pub(crate) fn missing_table(&self) -> Option<u64> {
        match self.kind {
            ErrorKind::FailedLookup {
                failure: LookupFailure::MissingCapability { bits_left },
                ..
            } => Some(bits_left),
            _ => None,
        }
    }
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} refused: {}",
            OperationName(self.operation),
            self.kind
        )
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArgument { argument } => write!(f, "argument {argument} is invalid"),
            Self::InvalidCapability { capability: 0 } => {
                write!(f, "the invoked capability is invalid")
            }
            Self::InvalidCapability { capability } => {
                write!(f, "extra capability {capability} is invalid")
            }
            Self::IllegalOperation => write!(f, "illegal operation"),
            Self::Range { min, max } => write!(f, "a value is outside {min}..={max}"),
            Self::Alignment => write!(f, "an address is not aligned"),
            Self::FailedLookup { source, failure } => {
                let which = if *source { "source" } else { "target" };
                write!(f, "lookup of the {which} failed: {failure:?}")
            }
            Self::TruncatedMessage => write!(f, "arguments or capabilities are missing"),
            Self::DeleteFirst => write!(f, "the destination is in use; delete it first"),
            Self::RevokeFirst => {
                write!(f, "the object has derived capabilities; revoke them first")
            }
            Self::NotEnoughMemory { bytes_left } => {
                write!(f, "not enough memory: {bytes_left} bytes are left")
            }
            Self::Unknown { label } => write!(f, "unknown error {label}"),
        }
    }
}

/// Names an operation by its label.
struct OperationName(u64);

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0, invocation::name(self.0, arch::label::TABLE)) {
            (invocation::INVALID, _) => f.write_str("invalid operation"),
            (_, Some(name)) => f.write_str(name),
            (label, None) => write!(f, "operation {label}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn details_of_an_error_are_decoded() {
        let answer = Message::new(ErrorNumber::RangeError as u64, [20, 5000]);
        let error = Error::check(invocation::SCHED_CONTROL_CONFIGURE_FLAGS, answer).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Range { min: 20, max: 5000 });
        assert_eq!(
            error.to_string(),
            "SchedControl_ConfigureFlags refused: a value is outside 20..=5000"
        );
    }

    #[test]
    fn a_missing_paging_structure_is_told_from_other_failures() {
        let answer = Message::new(ErrorNumber::FailedLookup as u64, [0, 2, 21]);
        let error = Error::check(invocation::x86_64::PAGE_MAP, answer).unwrap_err();
        assert_eq!(error.missing_table(), Some(21));
        let answer = Message::new(ErrorNumber::FailedLookup as u64, [0, 1]);
        let error = Error::check(invocation::x86_64::PAGE_MAP, answer).unwrap_err();
        assert_eq!(error.missing_table(), None);
    }

    #[test]
    fn operations_are_called_by_their_names() {
        let name = |label| OperationName(label).to_string();
        assert_eq!(name(invocation::INVALID), "invalid operation");
        assert_eq!(
            name(invocation::x86_64::IRQ_CONTROL_GET_MSI),
            "IRQControl_GetMSI"
        );
        assert_eq!(name(invocation::CNODE_ROTATE), "CNode_Rotate");
        assert_eq!(
            name(invocation::extension::CNODE_MINT_CALL),
            "CNode_MintCall"
        );
        assert_eq!(name(999), "operation 999");
    }
}
