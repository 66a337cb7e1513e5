//! aarch64.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::abi::cap_identify::aarch64 as kind;
use sandglass::abi::context::aarch64 as registers;
use sandglass::abi::error::ErrorNumber;
use sandglass::abi::invocation::aarch64 as label;
use sandglass::boot;
use sandglass::cap::{CPtr, Capability, FrameSize, IrqControl, IrqHandler, ObjectType, Slot};
use sandglass::context::UserContext;
use sandglass::error::Result;
use sandglass::testing::{Failure, TestResult};

use crate::fixture::{Fixture, Invocation};

pub use sandglass::abi::fault::unknown_syscall_aarch64 as unknown_syscall;
/// Address-space identifiers (ABI 07, section 8).
pub use sandglass::abi::vspace::aarch64::{ASIDS_PER_POOL, ASID_POOLS};

pub use sandglass::arch::label as arch_label;
pub use sandglass::arch::object as arch_object;

/// Indices in the user context, by role and else by the names of x86_64 (ABI 07, section 1.1).
pub mod order {
    use sandglass::abi::context::aarch64 as registers;
    pub use sandglass::abi::context::aarch64::{
        COUNT, FRAME_COUNT, MESSAGE_REGISTERS, SYSCALL_INSTRUCTION_BYTES, TIMEOUT_REPLY_ORDER,
        UNKNOWN_SYSCALL_ORDER,
    };

    pub const RIP: usize = registers::PC;
    pub const RSP: usize = registers::SP;
    pub const RFLAGS: usize = registers::SPSR;
    pub const RDI: usize = registers::X0;
    pub const RSI: usize = registers::X1;
    pub const R10: usize = registers::X2;
    pub const R8: usize = registers::X3;
    pub const R9: usize = registers::X4;
    pub const R15: usize = registers::X5;
    pub const R12: usize = registers::X6;
    pub const RDX: usize = registers::X7;
    pub const R13: usize = registers::X8;
    pub const RAX: usize = registers::X9;
    pub const RBX: usize = registers::X10;
    pub const RCX: usize = registers::X11;
    pub const RBP: usize = registers::X12;
    pub const R14: usize = registers::X13;
    pub const R11: usize = registers::X14;
    pub const FS_BASE: usize = registers::TPIDR_EL0;
    pub const GS_BASE: usize = registers::TPIDRRO_EL0;
}

/// Registers of a saved context that a system call leaves as they were, but an interrupt where it is to be repeated does
/// not: none.
pub const LEFT_BY_CALLS: &[usize] = &[];
/// Whether there is the system call SetTLSBase (ABI 01, section 1).
pub const HAS_SET_TLS_BASE: bool = false;
/// The highest label of an invocation (ABI 03, section 2), and the first number that is no type of an object (ABI 02, section 1).
pub const LAST_LABEL: u64 = label::IRQ_CONTROL_ISSUE_SGI_SIGNAL;
pub const FIRST_INVALID_TYPE: u64 = 12;
/// Whether timers fire a little before a budget ends, so that a rest of it is left (ABI 04, section 1), or at its end, so that
/// a little of the next is used.
pub const TIMER_IS_EARLY: bool = false;
/// Levels of an IOMMU's tables, as boot information tells them without one (ABI 06, section 2).
pub const IO_PAGE_TABLE_LEVELS: u64 = 0;
/// Number of the user exception of a use of the FPU without it (ABI 07, section 4), without what differs by instruction: ESR's
/// class 7.
pub const FPU_UNAVAILABLE: u64 = 7 << 26;
/// The number of a user exception without what differs by instruction.
pub const fn class_of(number: u64) -> u64 {
    number & 0xfc00_0000
}

/// SVC #0, then UDF #0.
pub const SYSCALL_THEN_STOP: [u8; 8] = [0x01, 0, 0, 0xd4, 0, 0, 0, 0];
/// UDF #0.
pub const STOP: [u8; 4] = [0; 4];
/// LDR X9, [X0]; UDF #0.
pub const LOAD_THEN_STOP: [u8; 8] = [0x09, 0x00, 0x40, 0xf9, 0, 0, 0, 0];
/// STR X9, [X0]; UDF #0.
pub const STORE_THEN_STOP: [u8; 8] = [0x09, 0x00, 0x00, 0xf9, 0, 0, 0, 0];

/// BR X0; UDF #0.
pub const JUMP_THEN_STOP: [u8; 8] = [0x00, 0x00, 0x1f, 0xd6, 0, 0, 0, 0];

/// LDR X9, [X0], and its bytes, of which a store has as many.
pub const LOAD: [u8; 4] = [0x09, 0x00, 0x40, 0xf9];
pub const ACCESS_BYTES: u64 = 4;
/// NOP.
pub const NOP: [u8; 4] = [0x1f, 0x20, 0x03, 0xd5];
/// `fmov d0, xzr`: a use of the FPU.
pub const USE_FPU: [u8; 4] = [0xe0, 0x03, 0x67, 0x9e];
/// MRS X9, TPIDR_EL0; LDR X9, [X9]; UDF #0.
pub const LOAD_TLS_THEN_STOP: [u8; 12] =
    [0x49, 0xd0, 0x3b, 0xd5, 0x29, 0x01, 0x40, 0xf9, 0, 0, 0, 0];
/// FMOV D0, XZR; YIELD; B to the beginning.
pub const FPU_LOOP: [u8; 12] = [
    0xe0, 0x03, 0x67, 0x9e, 0x3f, 0x20, 0x03, 0xd5, 0xfe, 0xff, 0xff, 0x17,
];
/// SVC #0.
pub const SYSCALL: [u8; 4] = [0x01, 0x00, 0x00, 0xd4];
/// An endless loop.
pub const SPIN: [u8; 4] = [0x00, 0x00, 0x00, 0x14];
/// `ldr x9, [x0]; str x9, [x1]; yield; b` to the beginning.
pub const READ_LOOP: [u8; 16] = [
    0x09, 0x00, 0x40, 0xf9, 0x29, 0x00, 0x00, 0xf9, 0x3f, 0x20, 0x03, 0xd5, 0xfd, 0xff, 0xff, 0x17,
];
/// `str x9, [x0]; add x9, x9, #1; yield; b` to the beginning.
pub const WRITE_LOOP: [u8; 16] = [
    0x09, 0x00, 0x00, 0xf9, 0x29, 0x05, 0x00, 0x91, 0x3f, 0x20, 0x03, 0xd5, 0xfd, 0xff, 0xff, 0x17,
];
/// `add x9, x9, #1; yield; b` to the beginning; behind it, the same with X10.
pub const COUNT_LOOPS: [u8; 24] = [
    0x29, 0x05, 0x00, 0x91, 0x3f, 0x20, 0x03, 0xd5, 0xfe, 0xff, 0xff, 0x17, //
    0x4a, 0x05, 0x00, 0x91, 0x3f, 0x20, 0x03, 0xd5, 0xfe, 0xff, 0xff, 0x17,
];
/// Where the second of them begins.
pub const SECOND_LOOP: u64 = 12;

/// The status of a fault is ESR (05, section 2.5): what it says in the bits of x86_64's.
pub mod status {
    pub const PRESENT: u64 = 1 << 0;
    pub const WRITE: u64 = 1 << 1;
    pub const USER: u64 = 1 << 2;

    /// What ESR says of an access.
    pub const fn of_access(status: u64) -> u64 {
        // Permission faults, at whatever level; and of data, whether it was written.
        let present = if status & 0x3c == 0x0c { PRESENT } else { 0 };
        let write = if !is_fetch(status) && status & 1 << 6 != 0 {
            WRITE
        } else {
            0
        };
        USER | present | write
    }

    /// Whether there is nothing at the address that the translation led to: a synchronous external abort.
    pub const fn is_of_the_bus(status: u64) -> bool {
        status & 0x3f == 0x10
    }

    pub const fn is_fetch(status: u64) -> bool {
        status >> 26 == 0x20
    }
}

/// Makes a handler for an interrupt that nothing raises, of those that an ABI's programs number by `vector`: a shared one.
pub fn issue_irq(control: IrqControl, vector: u64, slot: Slot) -> Result<()> {
    control.get(32 + vector, slot)
}

/// Label and words of the invocation of IRQ control that does the same.
pub fn get_irq(vector: u64, slot: Slot) -> (u64, Vec<u64>) {
    let words = alloc::vec![32 + vector, slot.index(), 64];
    (sandglass::abi::invocation::IRQ_CONTROL_GET, words)
}

/// Number of the user exception of an undefined instruction.
pub const INVALID_OPCODE: u64 = 0x0200_0000;

/// An undefined instruction.
#[inline(always)]
pub fn stop() {
    // SAFETY: a fault, which its handler answers.
    unsafe { core::arch::asm!("udf #0") }
}

/// A breakpoint: reported at its instruction.
#[inline(always)]
pub fn breakpoint() {
    // SAFETY: a fault, which its handler answers.
    unsafe { core::arch::asm!("brk #0") }
}

/// What [`here`] has given away so far.
static PLACES: AtomicU64 = AtomicU64::new(0);

/// A number that each core has for itself, not the kernel's. User level sees none; it is kept in a register that each core has and
/// that no kernel writes: the value of the physical timer, which is off. Whoever asks stays on its core meanwhile.
pub fn here() -> u64 {
    /// The upper half of what it keeps.
    const MARK: u64 = 0xfeed_beef;
    let mut value: u64;
    // SAFETY: the timer is off, and the value of no account then.
    unsafe { core::arch::asm!("mrs {}, cntp_cval_el0", out(reg) value) }
    if value >> 32 != MARK {
        value = MARK << 32 | PLACES.fetch_add(1, Relaxed);
        // SAFETY: as above.
        unsafe { core::arch::asm!("msr cntp_cval_el0, {}", in(reg) value) }
    }
    value & 0xffff_ffff
}

/// What the registers are to be after a return from a system call, if they were `before`: the same (ABI 01, section 4.3).
pub fn returned(before: &UserContext, ip: u64) -> UserContext {
    let mut expected = *before;
    expected.set(order::RIP, ip);
    expected
}

/// `seen` after a return: nothing is open.
pub fn normalised(seen: &UserContext, _before: &UserContext) -> UserContext {
    *seen
}

/// The flags of a new thread, of a debug kernel or another (ABI 07, section 1.4).
pub const fn initial_flags(is_debug: bool) -> u64 {
    if is_debug {
        registers::SPSR_FIXED_DEBUG
    } else {
        registers::SPSR_FIXED_RELEASE
    }
}

/// What WriteRegisters and answers to faults make of `value` for this register (ABI 07, section 1.3).
pub const fn sanitised(index: usize, value: u64, is_debug: bool) -> u64 {
    match index {
        registers::SPSR => value & 0xf000_0000 | initial_flags(is_debug),
        _ => value,
    }
}

/// The words of an UnknownSyscall message but the last, the number, of a thread with these registers that made a system call (ABI
/// 05, section 2.2): NextIP is behind the instruction.
pub fn unknown_call_words(context: &UserContext) -> Vec<u64> {
    let order = registers::UNKNOWN_SYSCALL_ORDER.iter();
    let mut words: Vec<u64> = order.map(|&index| context.get(index)).collect();
    words.push(context.get(registers::PC) + registers::SYSCALL_INSTRUCTION_BYTES);
    words.push(context.get(registers::SPSR));
    words
}

/// What DebugCapIdentify says of objects of the architecture (ABI 01, section 7).
pub const IDENTIFIED: [(ObjectType, u64); 4] = [
    (ObjectType::PageTable, kind::PAGE_TABLE),
    (ObjectType::Pml4, kind::VSPACE),
    (ObjectType::Page, kind::FRAME),
    (ObjectType::LargePage, kind::FRAME),
];

/// New capabilities of the architecture that are neither memory nor boot capabilities, and what DebugCapIdentify says of them;
/// `number`, below 16, makes them others than those of another number. With several cores there are none.
pub fn made(f: &mut Fixture, number: u64) -> core::result::Result<Vec<(CPtr, u64)>, Failure> {
    if f.is_for_several_cores() {
        return Ok(Vec::new());
    }
    let slot = f.empty_slot()?;
    let words = [number, 0, slot.index(), 64];
    let issue = label::IRQ_CONTROL_ISSUE_SGI_SIGNAL;
    Invocation::new(boot::IRQ_CONTROL, issue, &words, &[boot::CNODE.cptr()]).expect_ok(&[])?;
    Ok(alloc::vec![(slot.capability(), kind::SGI_SIGNAL)])
}

/// Boot capabilities of the architecture, and what DebugCapIdentify says of them.
pub fn controls() -> Vec<(CPtr, u64)> {
    alloc::vec![
        (boot::ASID_CONTROL.cptr(), kind::ASID_CONTROL),
        (boot::ASID_POOL.cptr(), kind::ASID_POOL),
    ]
}

/// Boot capabilities that are not copied (ABI 02, section 6.2).
pub fn underivable() -> Vec<CPtr> {
    alloc::vec![boot::IRQ_CONTROL.cptr()]
}

/// A piece of machine code of these instructions.
pub fn code(instructions: &[u32]) -> Vec<u8> {
    let bytes = instructions.iter().map(|word| word.to_le_bytes());
    bytes.collect::<Vec<_>>().concat()
}

/// Where the words of an answer to an UnknownSyscall go (ABI 05, section 6). That of NextIP is not seen: who is resumed begins
/// at FaultIP.
pub const UNKNOWN_REPLY_ORDER: [Option<usize>; unknown_syscall::REPLY_LENGTH] = {
    let mut order = [None; unknown_syscall::REPLY_LENGTH];
    let mut i = 0;
    while i < registers::UNKNOWN_SYSCALL_ORDER.len() {
        order[i] = Some(registers::UNKNOWN_SYSCALL_ORDER[i]);
        i += 1;
    }
    order[unknown_syscall::SPSR] = Some(registers::SPSR);
    order
};

/// The physical timer of the core that runs it, which the kernel that the suite runs on leaves to user level, with the virtual
/// counter (an option that it is built with). Who makes it stays on its core.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    ticks_per_us: u64,
    /// Its value while it is off: what [`here`] keeps there.
    value: u64,
}

impl Timer {
    /// The timer, off.
    pub fn new(ticks_per_us: u64) -> Self {
        here();
        let value;
        // SAFETY: reads a register.
        unsafe { core::arch::asm!("mrs {}, cntp_cval_el0", out(reg) value) }
        let timer = Self {
            ticks_per_us,
            value,
        };
        timer.end();
        timer
    }

    /// Lets it fire in `us` µs.
    pub fn set(self, us: u64) {
        let ticks = us * self.ticks_per_us;
        // SAFETY: the timer concerns nothing but its interrupt.
        unsafe {
            core::arch::asm!(
                "msr cntp_tval_el0, {}", "msr cntp_ctl_el0, {}",
                in(reg) ticks, in(reg) 1u64,
            );
        }
    }

    /// Turns it off.
    pub fn end(self) {
        // SAFETY: as above.
        unsafe {
            core::arch::asm!(
                "msr cntp_ctl_el0, xzr", "msr cntp_cval_el0, {}",
                in(reg) self.value,
            );
        }
    }
}

/// An interrupt that a program can let come: that of the [`Timer`] of the first core.
pub struct Alarm {
    pub handler: IrqHandler,
    timer: Timer,
}

impl Alarm {
    /// Its number: that of a private interrupt.
    const IRQ: u64 = 30;

    /// The alarm, which is not set.
    pub fn new(f: &mut Fixture) -> core::result::Result<Self, Failure> {
        let (slot, timer) = (f.empty_slot()?, Timer::new(f.ticks(1)));
        boot::IRQ_CONTROL.get(Self::IRQ, slot)?;
        let handler = slot.capability();
        Ok(Self { handler, timer })
    }

    /// Lets the interrupt come once, in `us` µs.
    pub fn set(&self, us: u64) -> TestResult {
        self.timer.set(us);
        Ok(())
    }

    /// After it has come: takes it back, since it is there as long as the timer says so.
    pub fn end(&self) {
        self.timer.end();
    }
}

/// The longest period (ABI 04, section 1), µs: an eighth of the longest time whose product with the ticks of a millisecond, of
/// which usToTicks takes the thousandth part, is a word. With 62,500 it is the 36,893,488,147,419 of the ABI.
pub fn max_period_us(f: &Fixture) -> u64 {
    u64::MAX / (u64::from(f.tsc.mhz()) * 1_000) / 8
}

/// Registers that a system call does not save: none (ABI 01, section 4.3).
pub const UNSAVED: [usize; 0] = [];

/// UDF #0; STR X9, [X0]; UDF #0.
pub const STOP_THEN_STORE: [u8; 12] = [0, 0, 0, 0, 0x09, 0x00, 0x00, 0xf9, 0, 0, 0, 0];

/// Replaces the undefined instruction at `code` by one that does nothing.
///
/// # Safety
/// It is mapped writable, and nobody executes it meanwhile.
pub unsafe fn mend(code: u64) {
    // SAFETY: the caller's; user level may maintain caches (ABI 07, section 2), and who executes it next does so after an
    // exception's return, which synchronises.
    unsafe {
        (code as *mut [u8; 4]).write_volatile(NOP);
        core::arch::asm!("dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb", in(reg) code);
    }
}

/// Whether instructions are fetched where only the kernel reads (ABI 07, section 6).
pub const KERNEL_ONLY_IS_EXECUTED: bool = true;

/// Whether instructions are fetched where it is mapped with these attributes (ABI 07, section 6); `None` if they are not to be:
/// from a device's memory, where the architecture leaves open what happens.
pub const fn is_executed(attributes: u64) -> Option<bool> {
    if attributes & 1 == 0 {
        return None;
    }
    Some(attributes & 4 == 0)
}

/// The registers of a device, and whether the first says that it is that one: a virtio device of QEMU's `virt`, "virt" and the
/// version.
pub const DEVICE: u64 = 0x0a00_0000;

pub fn is_device(word: u64) -> bool {
    word as u32 == u32::from_le_bytes(*b"virt") && matches!(word >> 32, 1 | 2)
}

/// How a page of this size is refused where a table is (ABI 03, section 9.3): the walk goes on into the table.
pub const fn page_over_table(size: FrameSize) -> (ErrorNumber, &'static [u64]) {
    let details: &[u64] = match size {
        FrameSize::Huge => &[0, 2, 21],
        _ => &[0, 2, 12],
    };
    (ErrorNumber::FailedLookup, details)
}

/// SVC #0; BRK #5, which is reported at its instruction (ABI 05, section 2.3): the number, and how far behind.
pub const SYSCALL_THEN_BREAK: [u8; 8] = [0x01, 0x00, 0x00, 0xd4, 0xa0, 0x00, 0x20, 0xd4];
pub const BREAKPOINT: u64 = 0xf200_0005;
pub const BREAKPOINT_BEHIND: u64 = 0;

/// How far a measured instant may be off, µs. As timers are not early (ABI 04, section 1), what the kernel does at the end of each
/// budget is added to it: in a debug kernel 5 µs each time, of which a check has some.
pub const JITTER_US: u64 = 24;

/// Where the instruction behind a [`breakpoint`] is whose fault is at `ip`.
pub const fn behind_breakpoint(ip: u64) -> u64 {
    ip + 4
}

/// `mrs x9, tpidr_el0; ldr x9, [x9]; str x9, [x0]; yield; b` to the beginning.
pub const TLS_LOOP: [u8; 20] = [
    0x49, 0xd0, 0x3b, 0xd5, 0x29, 0x01, 0x40, 0xf9, 0x09, 0x00, 0x00, 0xf9, 0x3f, 0x20, 0x03, 0xd5,
    0xfc, 0xff, 0xff, 0x17,
];
