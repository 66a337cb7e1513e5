//! The register context of a user thread on x86_64 (01, section 4.1; 07, section 1).
//!
//! Plain words in an order that the entry code fixes; the kernel proper reaches them only through
//! the roles below (message registers, badge, restart address), so that it reads the same on
//! every architecture.

use super::debugging;
use crate::arch::bounds::{turns, Together, Turns};
use crate::cells::Owner;
use core::cell::Cell;
use core::ops::Range;
use sandglass_abi::profile::{Fpu, THIS as PROFILE};

/// The words of a context. The numeric value is the index, hence the offset in words that the
/// entry code uses. What a return by SYSRET does not load comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub enum Register {
    /// Start of the instruction that entered the kernel ("restart PC").
    FaultIp,
    Rsp,
    Rcx,
    R11,
    Rdi,
    Rsi,
    Rax,
    Rbx,
    Rbp,
    R12,
    R13,
    R14,
    Rdx,
    R10,
    R8,
    R9,
    R15,
    Rflags,
    /// Where a Running thread continues.
    NextIp,
    GsBase,
    /// Canonical or not, as the ABI shows it (07, section 1.3): of one that is not, which the processor refuses, the exit code
    /// loads the lower 48 bits, with their sign.
    FsBase,
}

/// Number of words in a context.
pub const WORDS: usize = Register::FsBase as usize + 1;

#[cfg(feature = "hardware-debug")]
/// The flag by which each instruction is a step.
const RFLAGS_TRAP: u64 = 0x100;
/// Flags that a thread always has: interrupts enabled, and the bit that reads as one.
const RFLAGS_FIXED: u64 = 0x202;
/// Trap flag and the reserved bits 3 and 5: never settable through the ABI.
const RFLAGS_CLEARED: u64 = 0x128;

/// The saved user state of a thread, FPU apart.
#[repr(C)]
pub struct Context {
    words: [Cell<u64>; WORDS],
    /// Nothing in kernels without the hardware-debug API.
    debugging: debugging::State,
}

/// Words of the FPU's registers, as a thread's state has them: as FXSAVE stores them, or with those of AVX as XSAVE does.
pub const FPU_WORDS: usize = if HAS_AVX { 104 } else { 64 };

/// Whether user code has AVX. Where a profile has XSAVE without it, FXSAVE stores all that there is.
pub const HAS_AVX: bool = cfg!(feature = "avx");

const _: () = assert!(
    match PROFILE.fpu {
        Fpu::Xsave { bytes, features } if HAS_AVX =>
            bytes as usize == 8 * FPU_WORDS && features == 0b111,
        fpu =>
            !HAS_AVX
                && (matches!(fpu, Fpu::Fxsave)
                    || matches!(
                        fpu,
                        Fpu::Xsave {
                            features: 0b011,
                            ..
                        }
                    )),
    },
    "the image has x87 and SSE, and AVX in profiles that have it"
);

/// The image of a thread as FXSAVE makes it (512 bytes, 16-byte aligned), or XSAVE (832 bytes, 64-byte aligned); only the
/// machine looks inside.
#[cfg_attr(feature = "avx", repr(C, align(64)))]
#[cfg_attr(not(feature = "avx"), repr(C, align(16)))]
pub struct FpuState {
    image: Cell<[u64; FPU_WORDS]>,
}

impl FpuState {
    /// State after FNINIT with MXCSR 0x1f80 (07, section 1.4): control word 0x37f, all else zero. In the header behind the
    /// first 512 bytes, where there is one, that says that no component has another state than its first (Intel SDM 1, 13.8).
    pub const fn new() -> Self {
        let mut image = [0; FPU_WORDS];
        image[0] = 0x037f;
        image[3] = 0x1f80;
        FpuState {
            image: Cell::new(image),
        }
    }

    /// Where the image lies, for the instructions that store and load it.
    pub(in crate::arch) fn as_ptr(&self) -> *mut [u64; FPU_WORDS] {
        self.image.as_ptr()
    }
}

/// Order of the user context of ReadRegisters and WriteRegisters (07, section 1.1).
const USER_CONTEXT: [Register; 20] = {
    use Register::*;
    [
        FaultIp, Rsp, Rflags, Rax, Rbx, Rcx, Rdx, Rsi, Rdi, Rbp, R8, R9, R10, R11, R12, R13, R14,
        R15, FsBase, GsBase,
    ]
};

/// Order of an UnknownSyscall message and of its reply (05, section 2.2).
const UNKNOWN_SYSCALL: [Register; 18] = {
    use Register::*;
    [
        Rax, Rbx, Rcx, Rdx, Rsi, Rdi, Rbp, R8, R9, R10, R11, R12, R13, R14, R15, FaultIp, Rsp,
        Rflags,
    ]
};

/// Order of a UserException message and of its reply (05, section 2.3).
const USER_EXCEPTION: [Register; 3] = [Register::FaultIp, Register::Rsp, Register::Rflags];

/// Order of a Timeout reply (05, section 6).
const TIMEOUT_REPLY: [Register; 19] = {
    use Register::*;
    [
        FaultIp, Rsp, Rflags, Rax, Rbx, Rcx, Rdx, Rsi, Rdi, Rbp, R8, R9, R10, R11, R12, R13, R14,
        R15, FsBase,
    ]
};

/// Registers of which a user's value may have to be made harmless: a bit each. No order has more than four of them.
const GUARDED: u32 = 1 << Register::Rflags as u32
    | 1 << Register::NextIp as u32
    | 1 << Register::FaultIp as u32
    | 1 << Register::FsBase as u32
    | 1 << Register::GsBase as u32;

/// The message registers that travel in CPU registers (01, section 4.1).
const MESSAGE: [Register; 4] = [Register::R10, Register::R8, Register::R9, Register::R15];

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
        let longest = if UNKNOWN_SYSCALL.len() > TIMEOUT_REPLY.len() {
            UNKNOWN_SYSCALL.len()
        } else {
            TIMEOUT_REPLY.len()
        };
        assert!(USER_EXCEPTION.len() <= longest);
        longest
    };

    /// Never: every order has registers.
    pub const fn is_empty(self) -> bool {
        false
    }
}

/// Registers of the first group of CopyRegisters: the first 18 of the user context.
pub const FRAME_REGISTERS: usize = 18;

impl Context {
    /// Whether there is a system call by which a thread sets its TLS base (01, section 1).
    pub const SETS_TLS_BASE: bool = sandglass_abi::syscall::x86_64::HAS_SET_TLS_BASE;

    /// The registers of a new thread (07, section 1.4).
    pub const fn new() -> Self {
        let mut words = [const { Cell::new(0) }; WORDS];
        words[Register::Rflags as usize] = Cell::new(RFLAGS_FIXED);
        Context {
            words,
            debugging: debugging::State::new(),
        }
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
        self.get(Register::Rdx)
    }

    /// The capability invoked or waited on.
    #[inline(always)]
    pub fn cap_register(&self) -> u64 {
        self.get(Register::Rdi)
    }

    /// The badge of a received message: the same register as the capability.
    #[inline(always)]
    pub fn set_badge(&self, k: &impl Owner, badge: u64) {
        self.set(k, Register::Rdi, badge)
    }

    /// The raw message-info word.
    #[inline(always)]
    pub fn info(&self) -> u64 {
        self.get(Register::Rsi)
    }

    #[inline(always)]
    pub fn set_info(&self, k: &impl Owner, info: u64) {
        self.set(k, Register::Rsi, info)
    }

    /// The reply object of a receive.
    #[inline(always)]
    pub fn reply_register(&self) -> u64 {
        self.get(Register::R12)
    }

    /// The destination of the send phase of NBSendRecv.
    #[inline(always)]
    pub fn destination_register(&self) -> u64 {
        self.get(Register::R13)
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

    /// The register that, with the vector, numbers a software interrupt (05, section 2.2).
    pub fn software_interrupt_code(&self) -> u32 {
        self.get(Register::Rax) as u32
    }

    /// An exception that is to be reported at `ip` rather than at the next instruction.
    /// For the entry code, before it has the kernel.
    #[cfg(target_os = "none")]
    pub(in crate::arch) fn set_fault_ip(&self, ip: u64) {
        self.words[Register::FaultIp as usize].set(ip)
    }

    /// Whether the machine could load `base` as the address of thread-local storage.
    pub fn can_load_tls_base(&self, base: u64) -> bool {
        is_canonical(base)
    }

    /// Sets the base of thread-local storage, which is not validated (03, section 4.12).
    pub fn set_tls_base(&self, k: &impl Owner, base: u64) {
        self.set(k, Register::FsBase, base)
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
        let mut guarded = Together::<4>::new(true);
        let mut turns = Turns::<MOST>::new();
        for (i, &register) in registers.unwrap_or_default().iter().enumerate() {
            turns.turn();
            let value = word(start + i);
            if GUARDED >> register as u32 & 1 != 0 {
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

    /// What is watched of the thread.
    #[cfg(feature = "hardware-debug")]
    pub fn debugging(&self) -> &debugging::State {
        &self.debugging
    }

    /// The thread is stepped by so many instructions; with 0, it is not stepped any more.
    #[cfg(feature = "hardware-debug")]
    pub fn set_steps(&self, k: &impl Owner, steps: u64) {
        self.debugging.set_steps(k, steps);
        if steps == 0 {
            self.set_trap_flag(false);
        }
    }

    /// Each instruction of the thread is a step, or is not. For the exit, which knows whether its steps are in use.
    #[cfg(feature = "hardware-debug")]
    pub(in crate::arch) fn set_trap_flag(&self, on: bool) {
        let flags = self.get(Register::Rflags) & !RFLAGS_TRAP;
        let trap = if on { RFLAGS_TRAP } else { 0 };
        self.words[Register::Rflags as usize].set(flags | trap);
    }

    /// Sets the first registers of a thread that the kernel itself starts (06, section 1.1).
    pub fn start(&self, k: &impl Owner, entry: u64, argument: u64) {
        self.set(k, Register::FaultIp, entry);
        self.set(k, Register::NextIp, entry);
        self.set(k, Register::Rdi, argument);
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
        Register::Rflags => ((value | RFLAGS_FIXED) & !RFLAGS_CLEARED) & 0xfff,
        Register::FaultIp | Register::NextIp | Register::FsBase | Register::GsBase
            if !is_canonical(value) =>
        {
            0
        }
        _ => value,
    }
}

/// Whether `address` is canonical with 48 address bits.
pub const fn is_canonical(address: u64) -> bool {
    let upper = address >> 47;
    upper == 0 || upper == 0x1_ffff
}
