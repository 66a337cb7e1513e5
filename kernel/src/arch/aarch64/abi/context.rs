//! The register context of a user thread on aarch64 (01, section 4.3; 07, section 1).
//!
//! Plain words in an order that the entry code fixes; the kernel proper reaches them only through
//! the roles below (message registers, badge, restart address), so that it reads the same on
//! every architecture.

use sandglass_abi::context::aarch64::{
    FRAME_COUNT, SPSR_FIXED_DEBUG, SPSR_FIXED_RELEASE, SPSR_FLAGS,
};

use crate::arch::bounds::{turns, Together, Turns};
use crate::cells::Owner;
use core::cell::Cell;
use core::ops::Range;

/// The words of a context. The numeric value is the index, hence the offset in words that the
/// entry code uses: pairs that it stores together stand together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Register {
    X0,
    X1,
    X2,
    X3,
    X4,
    X5,
    X6,
    X7,
    X8,
    X9,
    X10,
    X11,
    X12,
    X13,
    X14,
    X15,
    X16,
    X17,
    X18,
    X19,
    X20,
    X21,
    X22,
    X23,
    X24,
    X25,
    X26,
    X27,
    X28,
    X29,
    X30,
    Sp,
    /// Where a Running thread continues (ELR).
    NextIp,
    Spsr,
    /// Start of the instruction that entered the kernel ("restart PC").
    FaultIp,
    Tpidr,
    /// Which user code can read only.
    TpidrRo,
}

/// Number of words in a context.
pub const WORDS: usize = Register::TpidrRo as usize + 1;

/// What SPSR always is, but for the flags (07, section 1.3): EL0, and what is masked.
pub const SPSR_FIXED: u64 = if cfg!(feature = "debug") {
    SPSR_FIXED_DEBUG
} else {
    SPSR_FIXED_RELEASE
};

/// The saved user state of a thread, FPU apart.
#[repr(C)]
pub struct Context {
    words: [Cell<u64>; WORDS],
}

/// Words of the FPU's registers, as a thread's state has them: V0 to V31, two for each; FPSR; FPCR.
pub const FPU_WORDS: usize = 66;

/// The FPU's registers of a thread (528 bytes, 16-byte aligned); only the machine looks inside.
#[repr(C, align(16))]
pub struct FpuState {
    image: Cell<[u64; FPU_WORDS]>,
}

impl FpuState {
    /// All registers 0 (07, section 1.4).
    pub const fn new() -> Self {
        FpuState {
            image: Cell::new([0; FPU_WORDS]),
        }
    }

    /// Where the image lies, for the instructions that store and load it.
    pub(in crate::arch) fn as_ptr(&self) -> *mut [u64; FPU_WORDS] {
        self.image.as_ptr()
    }
}

/// Order of the user context of ReadRegisters and WriteRegisters (07, section 1.1).
const USER_CONTEXT: [Register; 36] = {
    use Register::*;
    [
        FaultIp, Sp, Spsr, X0, X1, X2, X3, X4, X5, X6, X7, X8, X16, X17, X18, X29, X30, X9, X10,
        X11, X12, X13, X14, X15, X19, X20, X21, X22, X23, X24, X25, X26, X27, X28, Tpidr, TpidrRo,
    ]
};

/// Order of an UnknownSyscall message and of its reply (05, section 2.2).
const UNKNOWN_SYSCALL: [Register; 12] = {
    use Register::*;
    [X0, X1, X2, X3, X4, X5, X6, X7, FaultIp, Sp, NextIp, Spsr]
};

/// Order of a UserException message and of its reply (05, section 2.3).
const USER_EXCEPTION: [Register; 3] = [Register::FaultIp, Register::Sp, Register::Spsr];

/// Order of a Timeout reply (05, section 6).
const TIMEOUT_REPLY: [Register; 34] = {
    use Register::*;
    [
        FaultIp, Sp, Spsr, X0, X1, X2, X3, X4, X5, X6, X7, X8, X16, X17, X18, X29, X30, X9, X10,
        X11, X12, X13, X14, X15, X19, X20, X21, X22, X23, X24, X25, X26, X27, X28,
    ]
};

/// The message registers that travel in CPU registers (01, section 4.3).
const MESSAGE: [Register; 4] = [Register::X2, Register::X3, Register::X4, Register::X5];

/// A fixed order of registers that the ABI transports: the contents of a message or of a user
/// context, and how many of them come first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transfer {
    /// ReadRegisters, WriteRegisters, CopyRegisters (07, section 1.1).
    UserContext,
    /// UnknownSyscall fault and its reply (05, section 2.2).
    UnknownSyscall,
    /// UserException fault and its reply (05, section 2.3).
    UserException,
    /// Timeout reply (05, section 6).
    TimeoutReply,
}

impl Transfer {
    const fn registers(self) -> &'static [Register] {
        match self {
            Transfer::UserContext => &USER_CONTEXT,
            Transfer::UnknownSyscall => &UNKNOWN_SYSCALL,
            Transfer::UserException => &USER_EXCEPTION,
            Transfer::TimeoutReply => &TIMEOUT_REPLY,
        }
    }

    /// Number of registers in this order.
    pub const fn len(self) -> usize {
        self.registers().len()
    }

    /// Registers of the longest order in which the answer to a fault has them.
    pub const LONGEST_REPLY: usize = {
        let longest = TIMEOUT_REPLY.len();
        assert!(UNKNOWN_SYSCALL.len() <= longest && USER_EXCEPTION.len() <= longest);
        longest
    };

    /// Never: every order has registers.
    pub const fn is_empty(self) -> bool {
        false
    }
}

/// Registers of the first group of CopyRegisters: the first 17 of the user context.
pub const FRAME_REGISTERS: usize = FRAME_COUNT;

impl Context {
    /// Whether there is a system call by which a thread sets its TLS base (01, section 1).
    pub const SETS_TLS_BASE: bool = sandglass_abi::syscall::aarch64::HAS_SET_TLS_BASE;

    /// The registers of a new thread (07, section 1.4).
    pub const fn new() -> Self {
        let mut words = [const { Cell::new(0) }; WORDS];
        words[Register::Spsr as usize] = Cell::new(SPSR_FIXED);
        Context { words }
    }

    #[inline(always)]
    pub fn get(&self, register: Register) -> u64 {
        self.words[register as usize].get()
    }

    #[inline(always)]
    pub fn set(&self, _: &impl Owner, register: Register, value: u64) {
        self.words[register as usize].set(value)
    }

    /// The number of a system call.
    #[inline(always)]
    pub fn syscall_number(&self) -> u64 {
        self.get(Register::X7)
    }

    /// The capability invoked or waited on.
    #[inline(always)]
    pub fn cap_register(&self) -> u64 {
        self.get(Register::X0)
    }

    /// The badge of a received message: the same register as the capability.
    #[inline(always)]
    pub fn set_badge(&self, k: &impl Owner, badge: u64) {
        self.set(k, Register::X0, badge)
    }

    /// The raw message-info word.
    #[inline(always)]
    pub fn info(&self) -> u64 {
        self.get(Register::X1)
    }

    #[inline(always)]
    pub fn set_info(&self, k: &impl Owner, info: u64) {
        self.set(k, Register::X1, info)
    }

    /// The reply object of a receive.
    #[inline(always)]
    pub fn reply_register(&self) -> u64 {
        self.get(Register::X6)
    }

    /// The destination of the send phase of NBSendRecv.
    #[inline(always)]
    pub fn destination_register(&self) -> u64 {
        self.get(Register::X8)
    }

    /// Message register `i` of 0..=3; the higher ones are in the IPC buffer.
    #[inline(always)]
    pub fn message(&self, i: MessageRegister) -> u64 {
        self.get(MESSAGE[i as usize])
    }

    #[inline(always)]
    pub fn set_message(&self, k: &impl Owner, i: MessageRegister, value: u64) {
        self.set(k, MESSAGE[i as usize], value)
    }

    /// Start of the instruction that entered the kernel.
    #[inline(always)]
    pub fn fault_ip(&self) -> u64 {
        self.get(Register::FaultIp)
    }

    /// The thread re-executes the instruction that entered the kernel (01, section 8).
    #[inline(always)]
    pub fn restart(&self, k: &impl Owner) {
        self.set(k, Register::NextIp, self.fault_ip())
    }

    /// The thread's restart address becomes where it would have continued (Suspend, 04, section 10).
    #[inline(always)]
    pub fn hold(&self, k: &impl Owner) {
        self.set(k, Register::FaultIp, self.get(Register::NextIp))
    }

    /// Any address can be loaded as that of thread-local storage.
    pub fn can_load_tls_base(&self, _base: u64) -> bool {
        true
    }

    /// Sets the base of thread-local storage, which is not validated (03, section 4.12).
    pub fn set_tls_base(&self, k: &impl Owner, base: u64) {
        self.set(k, Register::Tpidr, base);
    }

    /// Register `i` of the order `transfer`; `None` past its end.
    #[inline(always)]
    pub fn transfer_get(&self, transfer: Transfer, i: usize) -> Option<u64> {
        Some(self.get(*transfer.registers().get(i)?))
    }

    /// Sets register `i` of the order `transfer` to `value`, sanitised; nothing past its end. The compiler is to know which.
    #[inline(always)]
    pub fn transfer_set_at(&self, k: &impl Owner, transfer: Transfer, i: usize, value: u64) {
        if let Some(&register) = transfer.registers().get(i) {
            self.set(k, register, sanitise(register, value));
        }
    }

    /// Sets the registers of the order `transfer` at `places`, at most `MOST`, to what `word` says of each, sanitised; nothing
    /// past its end.
    #[inline(always)]
    pub fn transfer_set<const MOST: u64>(
        &self,
        k: &impl Owner,
        transfer: Transfer,
        places: Range<usize>,
        word: impl Fn(usize) -> u64,
    ) {
        let Range { start, end } = places;
        let registers = transfer.registers();
        let registers = registers.get(start..end.min(registers.len()));
        let mut guarded = Together::<1>::new(true);
        let mut turns = Turns::<MOST>::new();
        for (i, &register) in registers.unwrap_or_default().iter().enumerate() {
            turns.turn();
            let value = word(start + i);
            if register == Register::Spsr {
                guarded.turn();
                self.set(k, register, sanitise(register, value));
            } else {
                self.set(k, register, value);
            }
        }
    }

    /// Copies registers `from..to` of the user context as they are (CopyRegisters does not
    /// sanitise, 07, section 1.3).
    pub fn copy_user_context(&self, k: &impl Owner, source: &Context, from: usize, to: usize) {
        let to = to.min(USER_CONTEXT.len());
        let registers = USER_CONTEXT.get(from..to).unwrap_or_default();
        for &register in turns::<{ USER_CONTEXT.len() as u64 }, _>(registers.iter()) {
            self.set(k, register, source.get(register));
        }
    }

    /// Sets the first registers of a thread that the kernel itself starts (06, section 1.1).
    pub fn start(&self, k: &impl Owner, entry: u64, argument: u64) {
        self.set(k, Register::FaultIp, entry);
        self.set(k, Register::NextIp, entry);
        self.set(k, Register::X0, argument);
    }
}

/// A message register that is a CPU register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum MessageRegister {
    Mr0,
    Mr1,
    Mr2,
    Mr3,
}

impl MessageRegister {
    pub const ALL: [MessageRegister; 4] = [
        MessageRegister::Mr0,
        MessageRegister::Mr1,
        MessageRegister::Mr2,
        MessageRegister::Mr3,
    ];

    /// The CPU register for message register `i`, if it is one.
    pub const fn new(i: usize) -> Option<Self> {
        match i {
            0 => Some(MessageRegister::Mr0),
            1 => Some(MessageRegister::Mr1),
            2 => Some(MessageRegister::Mr2),
            3 => Some(MessageRegister::Mr3),
            _ => None,
        }
    }
}

/// A value that user level wants in `register`, made harmless (07, section 1.3).
#[inline(always)]
fn sanitise(register: Register, value: u64) -> u64 {
    match register {
        Register::Spsr => value & SPSR_FLAGS | SPSR_FIXED,
        _ => value,
    }
}
