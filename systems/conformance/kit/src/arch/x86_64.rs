//! x86_64.

use core::arch::x86_64::__cpuid;

use alloc::vec::Vec;

use sandglass::abi::cap_identify::x86_64 as kind;
use sandglass::abi::error::ErrorNumber;
use sandglass::abi::profile::{SegmentBases, THIS as PROFILE};
use sandglass::cap::{
    CPtr, Capability, FrameSize, IoApicPin, IoPort, IrqControl, IrqHandler, ObjectType, Slot,
};
use sandglass::context::UserContext;
use sandglass::error::Result;
use sandglass::testing::{Failure, TestResult};
use sandglass::{boot, SetupError};

use crate::fixture::Fixture;

pub use sandglass::abi::context::x86_64 as order;
pub use sandglass::abi::fault::unknown_syscall;
pub use sandglass::abi::invocation::x86_64 as arch_label;
pub use sandglass::abi::object::x86_64 as arch_object;

/// Address-space identifiers (ABI 07, section 8).
pub use sandglass::abi::vspace::x86_64::{ASIDS_PER_POOL, ASID_POOLS};

/// Registers of a saved context that a system call leaves as they were, but an interrupt where it is to be repeated does not
/// (ABI 01, section 4.1).
pub const LEFT_BY_CALLS: &[usize] = &[order::RSP, order::RCX, order::R11];
/// Whether there is the system call SetTLSBase (ABI 01, section 1).
pub const HAS_SET_TLS_BASE: bool = PROFILE.set_tls_base_call;
/// The highest label of an invocation (ABI 03, section 2), and the first number that is no type of an object (ABI 02, section 1).
pub const LAST_LABEL: u64 = arch_label::IRQ_CONTROL_GET_MSI;
pub const FIRST_INVALID_TYPE: u64 = if PROFILE.iommu { 15 } else { 14 };
/// Whether timers fire a little before a budget ends, so that a rest of it is left (ABI 04, section 1), or at its end, so that
/// a little of the next is used.
pub const TIMER_IS_EARLY: bool = true;
/// Levels of an IOMMU's tables, as boot information tells them without one (ABI 06, section 2; ABI 09, section 2.4).
pub const IO_PAGE_TABLE_LEVELS: u64 = if PROFILE.iommu { 0 } else { u64::MAX };
/// Whether user code has instructions for the FS and GS bases (ABI 09, section 2.5).
pub const USERS_SET_BASES: bool = matches!(PROFILE.segment_bases, SegmentBases::Instructions);
/// Number of the user exception of a use of the FPU without it (ABI 07, section 4), without what differs by instruction.
pub const FPU_UNAVAILABLE: u64 = 7;
/// The number of a user exception without what differs by instruction.
pub const fn class_of(number: u64) -> u64 {
    number
}

/// SYSCALL, then UD2.
pub const SYSCALL_THEN_STOP: [u8; 4] = [0x0f, 0x05, 0x0f, 0x0b];
/// UD2.
pub const STOP: [u8; 2] = [0x0f, 0x0b];
/// MOV RAX, [RDI]; UD2.
pub const LOAD_THEN_STOP: [u8; 5] = [0x48, 0x8b, 0x07, 0x0f, 0x0b];
/// MOV [RDI], RAX; UD2.
pub const STORE_THEN_STOP: [u8; 5] = [0x48, 0x89, 0x07, 0x0f, 0x0b];

/// JMP RDI; UD2.
pub const JUMP_THEN_STOP: [u8; 4] = [0xff, 0xe7, 0x0f, 0x0b];

/// MOV RAX, [RDI], and its bytes, of which a store has as many.
pub const LOAD: [u8; 3] = [0x48, 0x8b, 0x07];
pub const ACCESS_BYTES: u64 = 3;
/// NOP.
pub const NOP: [u8; 1] = [0x90];
/// FNINIT: a use of the FPU.
pub const USE_FPU: [u8; 2] = [0xdb, 0xe3];
/// MOV RAX, FS:[0]; UD2.
pub const LOAD_TLS_THEN_STOP: [u8; 11] = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x0f, 0x0b];
/// MOVAPS XMM0, XMM0; PAUSE; JMP to the beginning.
pub const FPU_LOOP: [u8; 7] = [0x0f, 0x28, 0xc0, 0xf3, 0x90, 0xeb, 0xf9];
/// SYSCALL.
pub const SYSCALL: [u8; 2] = [0x0f, 0x05];
/// An endless loop.
pub const SPIN: [u8; 2] = [0xeb, 0xfe];
/// `mov rax, [rdi]; mov [rsi], rax; pause; jmp` to the beginning.
pub const READ_LOOP: [u8; 10] = [0x48, 0x8b, 0x07, 0x48, 0x89, 0x06, 0xf3, 0x90, 0xeb, 0xf6];
/// `mov [rdi], rax; inc rax; pause; jmp` to the beginning.
pub const WRITE_LOOP: [u8; 10] = [0x48, 0x89, 0x07, 0x48, 0xff, 0xc0, 0xf3, 0x90, 0xeb, 0xf6];
/// `inc rax; pause; jmp` to the beginning; behind it, the same with RBX.
pub const COUNT_LOOPS: [u8; 14] = [
    0x48, 0xff, 0xc0, 0xf3, 0x90, 0xeb, 0xf9, //
    0x48, 0xff, 0xc3, 0xf3, 0x90, 0xeb, 0xf9,
];
/// Where the second of them begins.
pub const SECOND_LOOP: u64 = 7;

/// Bits of the status of a fault (05, section 2.5).
pub mod status {
    pub const PRESENT: u64 = 1 << 0;
    pub const WRITE: u64 = 1 << 1;
    pub const USER: u64 = 1 << 2;
    const FETCH: u64 = 1 << 4;

    /// A status without its fetch bit, which not every processor sets.
    pub const fn of_access(status: u64) -> u64 {
        status & !FETCH
    }

    /// Whether there is nothing at the address that the translation led to: this processor does not say so.
    pub const fn is_of_the_bus(_status: u64) -> bool {
        false
    }

    pub const fn is_fetch(status: u64) -> bool {
        status & FETCH != 0
    }
}

/// Makes a handler for an interrupt that nothing raises, of those that an ABI's programs number by `vector`.
pub fn issue_irq(control: IrqControl, vector: u64, slot: Slot) -> Result<()> {
    let unused = IoApicPin {
        ioapic: 0,
        pin: 22,
        level: false,
        active_low: false,
        vector,
    };
    control.get_ioapic(unused, slot)
}

/// Label and words of the invocation of IRQ control that does the same.
pub fn get_irq(vector: u64, slot: Slot) -> (u64, Vec<u64>) {
    let words = alloc::vec![slot.index(), 64, 0, 22, 0, 0, vector];
    (arch_label::IRQ_CONTROL_GET_IOAPIC, words)
}

/// Number of the user exception of an undefined instruction.
pub const INVALID_OPCODE: u64 = 6;

/// RFLAGS bit that a processor may set in the flags that an exception saves.
const RESUME_FLAG: u64 = 1 << 16;

/// An undefined instruction.
#[inline(always)]
pub fn stop() {
    // SAFETY: a fault, which its handler answers.
    unsafe { core::arch::asm!("ud2") }
}

/// A breakpoint: reported behind its instruction.
#[inline(always)]
pub fn breakpoint() {
    // SAFETY: a fault, which its handler answers.
    unsafe { core::arch::asm!("int3") }
}

/// A number that each core has for itself, not the kernel's.
pub fn here() -> u64 {
    // Leaf 1 is there on every processor of this architecture.
    u64::from(__cpuid(1).ebx >> 24)
}

/// What the registers are to be after a return from a system call, if they were `before` (ABI 01, section 4.1): the return
/// address is in RCX, RFLAGS are in R11.
pub fn returned(before: &UserContext, ip: u64) -> UserContext {
    let mut expected = *before;
    expected.set(order::RIP, ip);
    expected.set(order::RCX, ip);
    expected.set(order::R11, before.get(order::RFLAGS));
    expected
}

/// `seen` after a return, without what the ABI leaves open: RSP is 0 or what it was.
pub fn normalised(seen: &UserContext, before: &UserContext) -> UserContext {
    let mut seen = *seen;
    seen.set(order::RFLAGS, seen.get(order::RFLAGS) & !RESUME_FLAG);
    if seen.get(order::RSP) == 0 {
        seen.set(order::RSP, before.get(order::RSP));
    }
    seen
}

/// The flags of a new thread, of a debug kernel or another (ABI 07, section 1.4).
pub const fn initial_flags(_is_debug: bool) -> u64 {
    order::INITIAL_RFLAGS
}

/// What WriteRegisters and answers to faults make of `value` for this register (ABI 07, section 1.3).
pub const fn sanitised(index: usize, value: u64, _is_debug: bool) -> u64 {
    match index {
        order::RFLAGS => ((value | 0x202) & !0x128) & 0xfff,
        order::RIP | order::FS_BASE | order::GS_BASE => match value {
            0x0000_8000_0000_0000..=0xffff_7fff_ffff_ffff => 0,
            _ => value,
        },
        _ => value,
    }
}

/// The words of an UnknownSyscall message but the last, the number, of a thread with these registers that made a system call (ABI
/// 05, section 2.2).
pub fn unknown_call_words(registers: &UserContext) -> Vec<u64> {
    let order = order::UNKNOWN_SYSCALL_ORDER.iter();
    order.map(|&index| registers.get(index)).collect()
}

/// What DebugCapIdentify says of objects of the architecture (ABI 01, section 7).
pub const IDENTIFIED: [(ObjectType, u64); 6] = [
    (ObjectType::PageTable, kind::PAGE_TABLE),
    (ObjectType::PageDirectory, kind::PAGE_DIRECTORY),
    (ObjectType::Pdpt, kind::PDPT),
    (ObjectType::Pml4, kind::PML4),
    (ObjectType::Page, kind::FRAME),
    (ObjectType::LargePage, kind::FRAME),
];

/// New capabilities of the architecture that are neither memory nor boot capabilities, and what DebugCapIdentify says of them;
/// `number`, below 256, makes them others than those of another number.
pub fn made(f: &mut Fixture, number: u64) -> core::result::Result<Vec<(CPtr, u64)>, Failure> {
    Ok(alloc::vec![(port(f, number)?, kind::IO_PORT)])
}

fn port(f: &mut Fixture, number: u64) -> core::result::Result<CPtr, SetupError> {
    let slot = f.empty_slot()?;
    let port = 0x5000 + number as u16;
    boot::IO_PORT_CONTROL.issue(port, port, slot)?;
    Ok(slot.capability())
}

/// Boot capabilities of the architecture, and what DebugCapIdentify says of them.
pub fn controls() -> Vec<(CPtr, u64)> {
    alloc::vec![
        (boot::ASID_CONTROL.cptr(), kind::ASID_CONTROL),
        (boot::ASID_POOL.cptr(), kind::ASID_POOL),
        (boot::IO_PORT_CONTROL.cptr(), kind::IO_PORT_CONTROL),
    ]
}

/// Boot capabilities that are not copied (ABI 02, section 6.2).
pub fn underivable() -> Vec<CPtr> {
    alloc::vec![boot::IRQ_CONTROL.cptr(), boot::IO_PORT_CONTROL.cptr()]
}

/// Where the words of an answer to an UnknownSyscall go (ABI 05, section 6).
pub const UNKNOWN_REPLY_ORDER: [Option<usize>; unknown_syscall::REPLY_LENGTH] = {
    let mut order = [None; unknown_syscall::REPLY_LENGTH];
    let mut i = 0;
    while i < order.len() {
        order[i] = Some(order::UNKNOWN_SYSCALL_ORDER[i]);
        i += 1;
    }
    order
};

/// An interrupt that a program can let come: that of channel 0 of the programmable interval timer.
pub struct Alarm {
    ports: IoPort,
    pub handler: IrqHandler,
}

impl Alarm {
    const CHANNEL_0: u16 = 0x40;
    const COMMAND: u16 = 0x43;
    /// Mode 0 of channel 0: the output rises when the count ends.
    const ONE_SHOT: u8 = 0b0011_0000;
    /// The input of the IOAPIC.
    const PIN: u64 = 2;
    /// Of a count.
    const TICK_NS: u64 = 838;

    /// The alarm, which is not set.
    pub fn new(f: &mut Fixture) -> core::result::Result<Self, Failure> {
        let resources = &mut f.process.resources;
        let ports = resources.io_ports(Self::CHANNEL_0, Self::COMMAND)?;
        // Without a count it stays silent.
        ports.out8(Self::COMMAND, Self::ONE_SHOT)?;
        let slot = f.empty_slot()?;
        let pin = IoApicPin {
            ioapic: 0,
            pin: Self::PIN,
            level: false,
            active_low: false,
            vector: 79,
        };
        boot::IRQ_CONTROL.get_ioapic(pin, slot)?;
        let handler = slot.capability();
        Ok(Self { ports, handler })
    }

    /// Lets the interrupt come once, in `us` µs.
    pub fn set(&self, us: u64) -> TestResult {
        self.ports.out8(Self::COMMAND, Self::ONE_SHOT)?;
        let count = us * 1_000 / Self::TICK_NS;
        for byte in (count as u16).to_le_bytes() {
            self.ports.out8(Self::CHANNEL_0, byte)?;
        }
        Ok(())
    }

    /// After it has come: it is an edge, which has passed.
    pub fn end(&self) {}
}

/// The longest period (ABI 04, section 1), µs.
pub fn max_period_us(f: &Fixture) -> u64 {
    u64::MAX / u64::from(f.tsc.mhz()) / 8
}

/// Registers that a system call does not save (ABI 01, section 4.1), but for the stack pointer.
pub const UNSAVED: [usize; 2] = [order::R11, order::RCX];

/// UD2; MOV [RDI], RAX; UD2.
pub const STOP_THEN_STORE: [u8; 7] = [0x0f, 0x0b, 0x48, 0x89, 0x07, 0x0f, 0x0b];

/// Replaces the undefined instruction at `code` by what does nothing.
///
/// # Safety
/// It is mapped writable, and nobody executes it meanwhile.
pub unsafe fn mend(code: u64) {
    // SAFETY: the caller's.
    unsafe { (code as *mut [u8; 2]).write_volatile([0x90; 2]) }
}

/// Whether instructions are fetched where only the kernel reads (ABI 07, section 6).
pub const KERNEL_ONLY_IS_EXECUTED: bool = false;

/// Whether instructions are fetched where it is mapped with these attributes (ABI 07, section 6); `None` if they are not to be.
pub const fn is_executed(_attributes: u64) -> Option<bool> {
    Some(true)
}

/// The registers of a device, and whether the first says that it is that one: the HPET. Its revision is never 0, its clock never
/// slower than 100 ns.
pub const DEVICE: u64 = sandglass::hpet::HPET_PADDR;

pub fn is_device(word: u64) -> bool {
    word & 0xff != 0 && (1..=100_000_000).contains(&(word >> 32))
}

/// How a page of this size is refused where a table is (ABI 03, section 8.3).
pub const fn page_over_table(_size: FrameSize) -> (ErrorNumber, &'static [u64]) {
    (ErrorNumber::DeleteFirst, &[])
}

/// SYSCALL; INT3, which is reported with the address behind it (ABI 05, section 2.3): the number, and how far behind.
pub const SYSCALL_THEN_BREAK: [u8; 3] = [0x0f, 0x05, 0xcc];
pub const BREAKPOINT: u64 = 3;
pub const BREAKPOINT_BEHIND: u64 = 1;

/// How far a measured instant may be off, µs.
pub const JITTER_US: u64 = 16;

/// Where the instruction behind a [`breakpoint`] is whose fault is at `ip`.
pub const fn behind_breakpoint(ip: u64) -> u64 {
    ip
}

/// `mov rcx, fs:[0]; mov [rdi], rcx; pause; jmp` to the beginning.
pub const TLS_LOOP: [u8; 16] = [
    0x64, 0x48, 0x8b, 0x0c, 0x25, 0, 0, 0, 0, 0x48, 0x89, 0x0f, 0xf3, 0x90, 0xeb, 0xf0,
];
