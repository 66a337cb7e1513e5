//! Faults and failed lookups, as they are kept with a thread until they are handled (page 05;
//! 02, section 4).

use crate::arch::abi::debugging::Event;

/// Why a lookup failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupFailure {
    InvalidRoot,
    MissingCapability {
        bits_left: u8,
    },
    DepthMismatch {
        bits_left: u8,
        bits_found: u8,
    },
    GuardMismatch {
        bits_left: u8,
        guard: u64,
        bits_found: u8,
    },
}

/// Why a thread cannot go on by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// A system call named a capability that cannot be found or used.
    Cap {
        cptr: u64,
        in_receive_phase: bool,
        failure: LookupFailure,
    },
    UnknownSyscall {
        number: u64,
    },
    UserException {
        number: u32,
        code: u32,
    },
    /// The budget ran out; with the badge of the scheduling context.
    Timeout {
        badge: u64,
    },
    Vm {
        address: u64,
        instruction: bool,
        status: u32,
    },
    /// Something was watched, and happened.
    Debug(Event),
}

impl Fault {
    pub fn is_timeout(self) -> bool {
        matches!(self, Fault::Timeout { .. })
    }
}
