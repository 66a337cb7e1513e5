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
