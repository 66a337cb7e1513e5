//! The order of user registers in messages (ABI 07, section 1, ABI 05, section 6).

/// x86_64.
pub mod x86_64 {
    /// Indices in the user context of TCB_ReadRegisters and TCB_WriteRegisters (ABI 07, section 1.1).
    pub const RIP: usize = 0;
    pub const RSP: usize = 1;
    pub const RFLAGS: usize = 2;
    pub const RAX: usize = 3;
    pub const RBX: usize = 4;
    pub const RCX: usize = 5;
    pub const RDX: usize = 6;
    pub const RSI: usize = 7;
    pub const RDI: usize = 8;
    pub const RBP: usize = 9;
    pub const R8: usize = 10;
    pub const R9: usize = 11;
    pub const R10: usize = 12;
    pub const R11: usize = 13;
    pub const R12: usize = 14;
    pub const R13: usize = 15;
    pub const R14: usize = 16;
    pub const R15: usize = 17;
    pub const FS_BASE: usize = 18;
    pub const GS_BASE: usize = 19;
    /// Words of the whole context.
    pub const COUNT: usize = 20;
    /// The first words form the "frame" group of CopyRegisters, the others the "integer" group.
    pub const FRAME_COUNT: usize = 18;

    /// Initial RFLAGS of a thread (ABI 07, section 1.4).
    pub const INITIAL_RFLAGS: u64 = 0x202;
    /// Sanitising of RFLAGS: `((v | SET) & !CLEAR) & KEEP` (ABI 07, section 1.3).
    pub const RFLAGS_SET: u64 = 0x202;
    pub const RFLAGS_CLEAR: u64 = 0x128;
    pub const RFLAGS_KEEP: u64 = 0xfff;
    /// Addresses from the first to the last, both included, are not canonical and are sanitised
    /// to 0 (ABI 07, section 1.3).
    pub const FIRST_NON_CANONICAL: u64 = 0x0000_8000_0000_0000;
    pub const LAST_NON_CANONICAL: u64 = 0xffff_7fff_ffff_ffff;

    /// Bytes of the SYSCALL instruction: FaultIP is NextIP minus this (ABI 01, section 4.1).
    pub const SYSCALL_INSTRUCTION_BYTES: u64 = 2;

    /// User context index of each message register of a reply to a timeout fault: the user
    /// context without the GS base (ABI 05, section 6).
    pub const TIMEOUT_REPLY_ORDER: [usize; 19] = [
        RIP, RSP, RFLAGS, RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15,
        FS_BASE,
    ];

    /// User context index of each message register of an UnknownSyscall fault, and of the reply
    /// to it; the 19th word of the message is the system call number (ABI 05, section 2.2).
    pub const UNKNOWN_SYSCALL_ORDER: [usize; 18] = [
        RAX, RBX, RCX, RDX, RSI, RDI, RBP, R8, R9, R10, R11, R12, R13, R14, R15, RIP, RSP, RFLAGS,
    ];
    /// User context index of the first three message registers of a UserException fault, and of
    /// the reply to it (ABI 05, section 2.3).
    pub const USER_EXCEPTION_ORDER: [usize; 3] = [RIP, RSP, RFLAGS];
    /// User context index of message registers 0 to 3 (ABI 01, section 4.1).
    pub const MESSAGE_REGISTERS: [usize; 4] = [R10, R8, R9, R15];
    /// User context indices of the other registers of the system call convention (ABI 01, section 4.1).
    pub const SYSCALL_NUMBER: usize = RDX;
    /// Invoked capability on entry, badge on return.
    pub const CAP_OR_BADGE: usize = RDI;
    pub const MESSAGE_INFO: usize = RSI;
    /// Reply object of the receive phase.
    pub const REPLY: usize = R12;
    /// Destination of NBSendRecv.
    pub const NB_SEND_RECV_DEST: usize = R13;
}

/// aarch64.
pub mod aarch64 {
    /// Indices in the user context of TCB_ReadRegisters and TCB_WriteRegisters (ABI 07, section 1.1).
    pub const PC: usize = 0;
    pub const SP: usize = 1;
    pub const SPSR: usize = 2;
    pub const X0: usize = 3;
    pub const X1: usize = 4;
    pub const X2: usize = 5;
    pub const X3: usize = 6;
    pub const X4: usize = 7;
    pub const X5: usize = 8;
    pub const X6: usize = 9;
    pub const X7: usize = 10;
    pub const X8: usize = 11;
    pub const X16: usize = 12;
    pub const X17: usize = 13;
    pub const X18: usize = 14;
    pub const X29: usize = 15;
    pub const X30: usize = 16;
    pub const X9: usize = 17;
    pub const X10: usize = 18;
    pub const X11: usize = 19;
    pub const X12: usize = 20;
    pub const X13: usize = 21;
    pub const X14: usize = 22;
    pub const X15: usize = 23;
    pub const X19: usize = 24;
    pub const X20: usize = 25;
    pub const X21: usize = 26;
    pub const X22: usize = 27;
    pub const X23: usize = 28;
    pub const X24: usize = 29;
    pub const X25: usize = 30;
    pub const X26: usize = 31;
    pub const X27: usize = 32;
    pub const X28: usize = 33;
    pub const TPIDR_EL0: usize = 34;
    pub const TPIDRRO_EL0: usize = 35;
    /// Words of the whole context.
    pub const COUNT: usize = 36;
    /// The first words form the "frame" group of CopyRegisters, the others the "integer" group.
    pub const FRAME_COUNT: usize = 17;

    /// What SPSR is but for its flags, in a debug and in a release kernel (ABI 07, section 1.3): EL0, FIQ masked,
    /// and SError too in the latter. A new thread has no more than this (ABI 07, section 1.4).
    pub const SPSR_FIXED_DEBUG: u64 = 0x40;
    pub const SPSR_FIXED_RELEASE: u64 = 0x140;
    /// The bits of SPSR that user level sets: the flags N, Z, C and V.
    pub const SPSR_FLAGS: u64 = 0xf000_0000;

    /// Bytes of the SVC instruction: FaultIP is NextIP minus this (ABI 01, section 4.3).
    pub const SYSCALL_INSTRUCTION_BYTES: u64 = 4;

    /// User context index of each message register of a reply to a timeout fault: the user
    /// context without the thread pointers (ABI 05, section 6).
    pub const TIMEOUT_REPLY_ORDER: [usize; 34] = [
        PC, SP, SPSR, X0, X1, X2, X3, X4, X5, X6, X7, X8, X16, X17, X18, X29, X30, X9, X10, X11,
        X12, X13, X14, X15, X19, X20, X21, X22, X23, X24, X25, X26, X27, X28,
    ];

    /// User context index of the message registers of an UnknownSyscall fault up to the stack pointer, and of the reply
    /// to it (ABI 05, section 2.2). What follows is NextIP, which is no part of the user context; SPSR; and in the
    /// message the system call number.
    pub const UNKNOWN_SYSCALL_ORDER: [usize; 10] = [X0, X1, X2, X3, X4, X5, X6, X7, PC, SP];
    /// User context index of the first three message registers of a UserException fault, and of
    /// the reply to it (ABI 05, section 2.3).
    pub const USER_EXCEPTION_ORDER: [usize; 3] = [PC, SP, SPSR];
    /// User context index of message registers 0 to 3 (ABI 01, section 4.3).
    pub const MESSAGE_REGISTERS: [usize; 4] = [X2, X3, X4, X5];
    /// User context indices of the other registers of the system call convention (ABI 01, section 4.3).
    pub const SYSCALL_NUMBER: usize = X7;
    /// Invoked capability on entry, badge on return.
    pub const CAP_OR_BADGE: usize = X0;
    pub const MESSAGE_INFO: usize = X1;
    /// Reply object of the receive phase.
    pub const REPLY: usize = X6;
    /// Destination of NBSendRecv.
    pub const NB_SEND_RECV_DEST: usize = X8;
}

#[cfg(test)]
mod tests {
    use super::{aarch64, x86_64};

    /// Of a timeout reply: the user context from the beginning, but for the thread pointers at its end.
    #[test]
    fn a_timeout_reply_is_in_the_order_of_the_user_context() {
        assert!(x86_64::TIMEOUT_REPLY_ORDER
            .iter()
            .copied()
            .eq(0..x86_64::FS_BASE + 1));
        assert!(aarch64::TIMEOUT_REPLY_ORDER
            .iter()
            .copied()
            .eq(0..aarch64::TPIDR_EL0));
        assert_eq!(aarch64::X30 + 1, aarch64::FRAME_COUNT);
        assert_eq!(aarch64::TPIDRRO_EL0 + 1, aarch64::COUNT);
    }
}
