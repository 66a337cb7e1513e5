//! Fault messages (ABI 05, sections 1 and 2) and the order of registers in replies to them (ABI 05, section 6).
//!
//! A fault's number is its message's label. Positions are message registers.

pub const NULL_FAULT: u64 = 0;
pub const CAP_FAULT: u64 = 1;
pub const UNKNOWN_SYSCALL: u64 = 2;
pub const USER_EXCEPTION: u64 = 3;
/// Hardware-debug API only; the number is otherwise unused.
pub const DEBUG_EXCEPTION: u64 = 4;
pub const TIMEOUT: u64 = 5;
pub const VM_FAULT: u64 = 6;

/// CapFault (ABI 05, section 2.1).
pub mod cap_fault {
    pub const IP: usize = 0;
    /// The capability pointer that failed.
    pub const ADDRESS: usize = 1;
    /// 1 in the receive phase, else 0.
    pub const IN_RECEIVE_PHASE: usize = 2;
    pub const LOOKUP_FAILURE_TYPE: usize = 3;
    pub const BITS_LEFT: usize = 4;
    pub const DEPTH_MISMATCH_BITS_FOUND: usize = 5;
    pub const GUARD_MISMATCH_GUARD_FOUND: usize = 5;
    pub const GUARD_MISMATCH_BITS_FOUND: usize = 6;
    /// Length without the details of the lookup failure; each detail adds one word.
    pub const MIN_LENGTH: usize = 4;
}

/// UnknownSyscall on x86_64 (ABI 05, section 2.2). The reply writes back the first `REPLY_LENGTH`.
pub mod unknown_syscall {
    pub const RAX: usize = 0;
    pub const RBX: usize = 1;
    pub const RCX: usize = 2;
    pub const RDX: usize = 3;
    pub const RSI: usize = 4;
    pub const RDI: usize = 5;
    pub const RBP: usize = 6;
    pub const R8: usize = 7;
    pub const R9: usize = 8;
    pub const R10: usize = 9;
    pub const R11: usize = 10;
    pub const R12: usize = 11;
    pub const R13: usize = 12;
    pub const R14: usize = 13;
    pub const R15: usize = 14;
    pub const FAULT_IP: usize = 15;
    pub const RSP: usize = 16;
    pub const FLAGS: usize = 17;
    pub const SYSCALL: usize = 18;
    pub const LENGTH: usize = 19;
    pub const REPLY_LENGTH: usize = 18;
}

/// UnknownSyscall on aarch64 (ABI 05, section 2.2). The reply writes back the first `REPLY_LENGTH`.
pub mod unknown_syscall_aarch64 {
    pub const X0: usize = 0;
    pub const X1: usize = 1;
    pub const X2: usize = 2;
    pub const X3: usize = 3;
    pub const X4: usize = 4;
    pub const X5: usize = 5;
    pub const X6: usize = 6;
    pub const X7: usize = 7;
    pub const FAULT_IP: usize = 8;
    pub const SP: usize = 9;
    /// ELR; libsel4 calls it LR.
    pub const NEXT_IP: usize = 10;
    pub const SPSR: usize = 11;
    pub const SYSCALL: usize = 12;
    pub const LENGTH: usize = 13;
    pub const REPLY_LENGTH: usize = 12;
}

/// UserException (ABI 05, section 2.3). The reply writes back the first `REPLY_LENGTH`.
pub mod user_exception {
    pub const FAULT_IP: usize = 0;
    pub const SP: usize = 1;
    pub const FLAGS: usize = 2;
    /// Exception number, 32 bits. On aarch64 ESR, and the code is 0.
    pub const NUMBER: usize = 3;
    /// Error code, 28 bits.
    pub const CODE: usize = 4;
    pub const LENGTH: usize = 5;
    pub const REPLY_LENGTH: usize = 3;
    pub const CODE_BITS: u32 = 28;
}

/// Timeout (ABI 05, section 2.4). The reply writes registers in the order of
/// [`TIMEOUT_REPLY_ORDER`](crate::context::x86_64::TIMEOUT_REPLY_ORDER) of the architecture.
pub mod timeout {
    /// Badge of the scheduling context that ran out.
    pub const BADGE: usize = 0;
    /// Time consumed since the last report, µs.
    pub const CONSUMED_US: usize = 1;
    pub const LENGTH: usize = 2;
    /// Length when the thread has no scheduling context at the time the message is built.
    pub const LENGTH_WITHOUT_CONTEXT: usize = 1;
}

/// DebugException (ABI 05, section 2.6).
pub mod debug_exception {
    pub const IP: usize = 0;
    /// 0 data breakpoint, 1 instruction breakpoint, 2 single step, 3 software break.
    pub const REASON: usize = 1;
    /// Of a breakpoint only: the address that it watches, and its number.
    pub const ADDRESS: usize = 2;
    pub const NUMBER: usize = 3;
    pub const LENGTH: usize = 4;
    /// Length without address and number.
    pub const SHORT_LENGTH: usize = 2;
}

/// VMFault (ABI 05, section 2.5).
pub mod vm_fault {
    pub const IP: usize = 0;
    pub const ADDRESS: usize = 1;
    /// 1 for an instruction fetch, else 0.
    pub const PREFETCH: usize = 2;
    /// x86_64: bits 0 to 4 of the page-fault error code. aarch64: the low 32 bits of ESR.
    pub const STATUS: usize = 3;
    pub const LENGTH: usize = 4;
}
