//! Why an invocation was refused, as a number.

use core::ffi::{c_char, c_int};

use sandglass::abi::error::ErrorNumber;
use sandglass::{Error, ErrorKind};

/// 0, or why not: the kernel's numbers.
pub type Code = c_int;

/// The invocation was done.
pub const OK: Code = 0;
/// An argument is invalid, as the kernel says it.
pub const INVALID_ARGUMENT: Code = 1;
/// A device is not what it should be. No number of the kernel's.
pub const NO_DEVICE: Code = 32;
/// There is no timer of that number. As above.
pub const NO_SUCH_TIMER: Code = 33;
/// A timer's period is shorter than the description lets it be. As above.
pub const TOO_FREQUENT: Code = 34;
/// A number that this library does not know.
pub const UNKNOWN: Code = 35;

/// The number of an error.
pub fn of(error: Error) -> Code {
    let number = match error.kind {
        ErrorKind::InvalidArgument { .. } => ErrorNumber::InvalidArgument,
        ErrorKind::InvalidCapability { .. } => ErrorNumber::InvalidCapability,
        ErrorKind::IllegalOperation => ErrorNumber::IllegalOperation,
        ErrorKind::Range { .. } => ErrorNumber::RangeError,
        ErrorKind::Alignment => ErrorNumber::AlignmentError,
        ErrorKind::FailedLookup { .. } => ErrorNumber::FailedLookup,
        ErrorKind::TruncatedMessage => ErrorNumber::TruncatedMessage,
        ErrorKind::DeleteFirst => ErrorNumber::DeleteFirst,
        ErrorKind::RevokeFirst => ErrorNumber::RevokeFirst,
        ErrorKind::NotEnoughMemory { .. } => ErrorNumber::NotEnoughMemory,
        ErrorKind::Unknown { .. } => return UNKNOWN,
    };
    number as Code
}

/// The number of how an invocation ended.
pub fn code(result: Result<(), Error>) -> Code {
    result.map_or_else(of, |()| OK)
}

/// As [`code`], of an invocation that answers with a number.
pub fn code_with(result: Result<u64, Error>, answer: Option<&mut u64>) -> Code {
    code(result.map(|number| {
        if let Some(answer) = answer {
            *answer = number;
        }
    }))
}

#[no_mangle]
pub extern "C" fn sg_error_text(error: Code) -> *const c_char {
    let text = match error {
        OK => c"no error",
        1 => c"an argument is invalid",
        2 => c"a capability is invalid or of another kind",
        3 => c"the operation is not allowed",
        4 => c"a number is out of range",
        5 => c"an address is not aligned",
        6 => c"a slot was not found",
        7 => c"the message is too short",
        8 => c"the slot is not empty",
        9 => c"the object is in use",
        10 => c"there is not enough memory",
        NO_DEVICE => c"the device is not there, or not as expected",
        NO_SUCH_TIMER => c"there is no timer of that number",
        TOO_FREQUENT => c"the period is shorter than the description allows",
        _ => c"an unknown error",
    };
    text.as_ptr()
}
