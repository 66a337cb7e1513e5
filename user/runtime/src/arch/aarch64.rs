//! aarch64.
//!
//! System calls use the registers of ABI 01, section 4.3: SVC keeps all registers but those that carry a result.

mod firmware;
mod output;
mod timer;

pub use firmware::FirmwarePort;
pub use output::{enable_output, OutputPort};
pub use timer::TimerClock;
pub(crate) use timer::{described_timer, has_timer, take_timer};

use core::arch::asm;
use core::fmt;

use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;
use sandglass_abi::trace;

use crate::cap::{Frame, FrameSize, IoApicPin, IrqHandler};
use crate::console::{self, Output};
use crate::context::UserContext;
use crate::error::Result;
use crate::process::Process;
use crate::resources::{Resources, SetupError};
use crate::sys::{RawReceived, Registers};
use crate::thread_block::IpcBuffer;
use crate::uart::Uart;
use crate::{boot, exit};

/// Numbers of invocations; those of x86_64 alone are refused.
pub mod label {
    pub use sandglass_abi::invocation::aarch64::*;

    /// No invocation has it: who asks for something of x86_64 is told IllegalOperation.
    const NONE: u64 = 0;

    // Tables of every level are mapped alike (ABI 03, section 9.2).
    pub const PDPT_MAP: u64 = PAGE_TABLE_MAP;
    pub const PDPT_UNMAP: u64 = PAGE_TABLE_UNMAP;
    pub const PAGE_DIRECTORY_MAP: u64 = PAGE_TABLE_MAP;
    pub const PAGE_DIRECTORY_UNMAP: u64 = PAGE_TABLE_UNMAP;

    pub const IRQ_CONTROL_GET_IOAPIC: u64 = NONE;
    pub const IRQ_CONTROL_GET_MSI: u64 = NONE;
    pub const IO_PORT_CONTROL_ISSUE: u64 = NONE;
    pub const IO_PORT_IN8: u64 = NONE;
    pub const IO_PORT_IN16: u64 = NONE;
    pub const IO_PORT_IN32: u64 = NONE;
    pub const IO_PORT_OUT8: u64 = NONE;
    pub const IO_PORT_OUT16: u64 = NONE;
    pub const IO_PORT_OUT32: u64 = NONE;
}

/// Types of objects, by the names of x86_64 where there are such.
pub mod object {
    use sandglass_abi::object::aarch64 as types;

    pub const PML4: u64 = types::VSPACE;
    pub const PDPT: u64 = types::PAGE_TABLE;
    pub const PAGE_DIRECTORY: u64 = types::PAGE_TABLE;
    pub const PAGE_TABLE: u64 = types::PAGE_TABLE;
    pub const PAGE: u64 = types::SMALL_PAGE;
    pub const LARGE_PAGE: u64 = types::LARGE_PAGE;
    pub const HUGE_PAGE: u64 = types::HUGE_PAGE;
    pub const PAGE_BITS: u32 = types::SMALL_PAGE_BITS;
    pub const LARGE_PAGE_BITS: u32 = types::LARGE_PAGE_BITS;
    pub const HUGE_PAGE_BITS: u32 = types::HUGE_PAGE_BITS;
}

/// Limits of user addresses, and attributes by the names of x86_64: there are two kinds of memory.
pub mod vspace {
    pub use sandglass_abi::vspace::aarch64::{HIGHEST_PAGE, LOWEST_PROGRAM, USER_TOP};

    pub mod attributes {
        use sandglass_abi::vspace::aarch64::attributes as bits;

        pub const WRITE_BACK: u64 = bits::DEFAULT;
        pub const WRITE_THROUGH: u64 = bits::DEFAULT;
        pub const UNCACHED: u64 = 0;
        pub const WRITE_COMBINING: u64 = 0;
    }
}

/// Registers in the order of the user context (ABI 07, section 1.1), by role.
pub mod order {
    use sandglass_abi::context::aarch64 as registers;
    pub use sandglass_abi::context::aarch64::COUNT;

    pub const IP: usize = registers::PC;
    pub const SP: usize = registers::SP;
    pub const FLAGS: usize = registers::SPSR;
    /// What the kernel makes of it.
    pub const INITIAL_FLAGS: u64 = 0;
    /// The first argument of a function.
    pub const ARGUMENT: usize = registers::X0;
    /// The thread pointer.
    pub const THREAD_POINTER: usize = registers::TPIDR_EL0;
    /// The frame pointer.
    pub const FP: usize = registers::X29;
    /// The capability of a system call.
    pub const CAP: usize = registers::X0;
    /// The number of a system call.
    pub const CALL: usize = registers::X7;

    /// Registers with their names, in the order in which they are reported, in lines.
    pub const REPORTED: &[&[(&str, usize)]] = &[
        &[
            ("pc", registers::PC),
            ("sp", registers::SP),
            ("fp", registers::X29),
            ("lr", registers::X30),
            ("spsr", registers::SPSR),
            ("tp", registers::TPIDR_EL0),
        ],
        &[
            ("x0", registers::X0),
            ("x1", registers::X1),
            ("x2", registers::X2),
            ("x3", registers::X3),
            ("x4", registers::X4),
            ("x5", registers::X5),
            ("x6", registers::X6),
            ("x7", registers::X7),
        ],
        &[
            ("x8", registers::X8),
            ("x9", registers::X9),
            ("x10", registers::X10),
            ("x11", registers::X11),
            ("x12", registers::X12),
            ("x13", registers::X13),
            ("x14", registers::X14),
            ("x15", registers::X15),
        ],
        &[
            ("x16", registers::X16),
            ("x17", registers::X17),
            ("x18", registers::X18),
            ("x19", registers::X19),
            ("x20", registers::X20),
            ("x21", registers::X21),
            ("x22", registers::X22),
            ("x23", registers::X23),
        ],
        &[
            ("x24", registers::X24),
            ("x25", registers::X25),
            ("x26", registers::X26),
            ("x27", registers::X27),
            ("x28", registers::X28),
        ],
    ];
}

/// Machine number of ELF files.
pub const ELF_MACHINE: u16 = elf::abi::EM_AARCH64;
pub const ELF_MACHINE_NAME: &str = "aarch64";

/// In the status of a fault, a syndrome: it was a write.
pub const FAULT_IS_WRITE: u64 = 1 << 6;

/// Says what an exception was, whose number is a syndrome (ABI 05, section 2.3).
pub fn show_exception(f: &mut fmt::Formatter<'_>, number: u64, _code: u64) -> fmt::Result {
    write!(f, "processor exception with syndrome {number:#x}")
}

/// Lets what was written to a frame of 4 KiB, which is mapped, be executed where it is: instructions are fetched past the
/// caches of data (ABI 07, section 9).
pub fn make_executable(frame: Frame) -> Result<()> {
    frame.unify_instructions(0, FrameSize::Small.bytes())
}

/// Makes the handler of a device's interrupt, by its number in the GIC. What is private to a core cannot be configured. Root
/// task only.
pub fn device_irq(
    resources: &mut Resources,
    source: IoApicPin,
) -> core::result::Result<IrqHandler, SetupError> {
    const FIRST_SHARED: u64 = 32;
    resources.fill_slot(|slot| match source.pin {
        ..FIRST_SHARED => boot::IRQ_CONTROL.get(source.pin, slot),
        irq => boot::IRQ_CONTROL.get_trigger(irq, source.level, slot),
    })
}

/// Bytes below the end of a stack on which a function begins: none.
pub const CALLED: u64 = 0;

/// A system call that sends and does not receive: Send, NBSend.
#[inline(always)]
pub fn send(call: Syscall, cap: u64, info: MessageInfo, registers: Registers) {
    // SAFETY: the registers are those of the ABI.
    unsafe {
        asm!(
            "svc #0",
            in("x7") call.raw(),
            in("x0") cap,
            in("x1") info.raw(),
            in("x2") registers[0],
            in("x3") registers[1],
            in("x4") registers[2],
            in("x5") registers[3],
            options(nostack, preserves_flags),
        );
    }
}

/// A system call that sends and then receives: Call, ReplyRecv, NBSendRecv, NBSendWait; and the
/// receiving ones Recv, NBRecv, Wait, NBWait, which ignore the message and `destination`.
///
/// `cap` is the capability invoked by Call, received from by the others. `reply` is the reply
/// object, or for NBSendWait the capability sent to. `destination` is what NBSendRecv sends to.
/// After a signal only the badge is meaningful: info and registers are then those passed in
/// (ABI 01, section 5.5).
#[inline(always)]
pub fn send_receive(
    call: Syscall,
    cap: u64,
    info: MessageInfo,
    registers: Registers,
    reply: u64,
    destination: u64,
) -> RawReceived {
    let (badge, info_out): (u64, u64);
    let mut out = registers;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "svc #0",
            in("x7") call.raw(),
            inlateout("x0") cap => badge,
            inlateout("x1") info.raw() => info_out,
            inlateout("x2") out[0],
            inlateout("x3") out[1],
            inlateout("x4") out[2],
            inlateout("x5") out[3],
            in("x6") reply,
            in("x8") destination,
            options(nostack, preserves_flags),
        );
    }
    RawReceived {
        badge,
        info: MessageInfo::from_raw(info_out),
        registers: out,
    }
}

/// Call: sends on `cap` and waits for the answer. A plain call needs neither a reply object nor
/// a destination, which leaves their registers to the compiler.
///
/// Its own address stands in x9 meanwhile, so that others can see where the thread is: see
/// [`is_answered`].
#[inline(always)]
pub fn call(cap: u64, info: MessageInfo, registers: Registers) -> RawReceived {
    let (badge, info_out): (u64, u64);
    let mut out = registers;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "adr x9, 2f",
            "2: svc #0",
            in("x7") Syscall::Call.raw(),
            inlateout("x0") cap => badge,
            inlateout("x1") info.raw() => info_out,
            inlateout("x2") out[0],
            inlateout("x3") out[1],
            inlateout("x4") out[2],
            inlateout("x5") out[3],
            out("x9") _,
            options(nostack, preserves_flags),
        );
    }
    RawReceived {
        badge,
        info: MessageInfo::from_raw(info_out),
        registers: out,
    }
}

/// Bytes of the instruction SVC.
pub(crate) const INSTRUCTION: u64 = 4;

/// Whether the thread with these registers, which does not run, stands at a [`call`] that has been
/// answered: an answer comes without a badge, in the register that named a capability.
///
/// Null is no capability that a program calls; one that does, and has a timeout fault there, is
/// taken for answered.
pub(crate) fn is_answered(context: &UserContext) -> bool {
    use sandglass_abi::context::aarch64 as registers;
    context.get(registers::X9) == context.ip()
        && context.get(registers::X7) == Syscall::Call.raw()
        && context.get(registers::X0) == 0
}

/// A system call with one argument in the capability register and one result there: Yield, the
/// debug calls. Returns the capability register.
#[inline(always)]
pub fn simple(call: Syscall, argument: u64) -> u64 {
    let result;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "svc #0",
            in("x7") call.raw(),
            inlateout("x0") argument => result,
            in("x1") 0,
            options(nostack, preserves_flags),
        );
    }
    result
}

/// A system call of a kernel that is built for traces; elsewhere it is a fault. Returns the
/// capability register.
#[inline(always)]
pub fn trace(call: trace::Call, cap: u64, info: u64, words: [u64; 2]) -> u64 {
    let result;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "svc #0",
            in("x7") call.raw(),
            inlateout("x0") cap => result,
            in("x1") info,
            in("x2") words[0],
            in("x3") words[1],
            options(nostack, preserves_flags),
        );
    }
    result
}

/// Sets the caller's thread pointer.
///
/// # Safety
/// It must address a [`ThreadBlock`](crate::thread_block::ThreadBlock) whenever the thread uses its IPC buffer or
/// thread-local storage.
#[inline(always)]
pub unsafe fn set_thread_pointer(address: u64) {
    // SAFETY: the caller's.
    unsafe {
        asm!("msr tpidr_el0, {}", in(reg) address, options(nostack, preserves_flags));
    }
}

/// The IPC buffer of the current thread, as its thread block names it.
#[inline(always)]
pub fn current_ipc_buffer() -> *mut IpcBuffer {
    let buffer;
    // SAFETY: every thread of the runtime has a thread block; a raw thread is told not to come
    // here (documentation of `thread_block`).
    unsafe {
        asm!("mrs {0}, tpidr_el0", "ldr {0}, [{0}, #8]", out(reg) buffer,
             options(pure, readonly, nostack, preserves_flags));
    }
    buffer
}

/// Bytes of a thread block that are the thread's own, before thread-local variables.
const HEAD: usize = 16;

/// Where a thread's variables and its block are in their area, in bytes: thread-local storage is of "variant I", in which
/// the variables begin behind the first two words of the block, where their alignment allows.
pub const fn thread_area(_variables: usize, align: usize) -> (usize, usize) {
    (if align > HEAD { align } else { HEAD }, 0)
}

/// Bytes of the area, for which the same holds.
pub const fn thread_area_len(variables: usize, align: usize) -> usize {
    thread_area(variables, align).0 + variables
}

/// The instruction, stack and frame pointers of this place.
#[inline(always)]
pub fn registers_here() -> (u64, u64, u64) {
    let (ip, sp, fp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!("adr {}, .", "mov {}, sp", "mov {}, x29", out(reg) ip, out(reg) sp, out(reg) fp,
             options(nomem, nostack, preserves_flags));
    }
    (ip, sp, fp)
}

/// Ends the machine with `status` by semihosting, which an emulator can offer to user code; elsewhere it is a fault.
pub fn end_machine(_port: u64, status: u8) {
    /// SYS_EXIT, and the reason that is followed by a status: the application has ended.
    const EXIT: u64 = 0x18;
    const APPLICATION_ENDED: u64 = 0x2_0026;
    let block = [APPLICATION_ENDED, u64::from(status)];
    // SAFETY: it ends the machine, or is a fault.
    unsafe {
        asm!("hlt #0xf000", inout("x0") EXIT => _, in("x1") block.as_ptr(), options(nostack));
    }
}

/// Takes the serial port and prints there from now on.
pub fn use_serial_console(process: &mut Process) -> core::result::Result<(), SetupError> {
    let place = process.console_place().ok_or(SetupError::NoConsole)?;
    let (frame, address) = process
        .space
        .map_device(&mut process.resources, place.paddr)?;
    process.set_console(frame);
    // SAFETY: just mapped, and never unmapped.
    let port = unsafe { Uart::at(address, place.kind) };
    console::set_output(Output::Mapped(port));
    Ok(())
}

/// Lets [`crate::exit`] end the machine by semihosting: there is no port, and nothing to take.
pub fn use_exit_port(_process: &mut Process) -> core::result::Result<(), SetupError> {
    exit::use_port(crate::cap::IoPort::at(SEMIHOSTING));
    Ok(())
}

/// Not 0, which would be no port.
const SEMIHOSTING: u64 = 1;

/// The virtual counter, in ticks: a fault, unless the kernel lets user level read it (ABI 07, section 2).
#[inline(always)]
pub fn ticks() -> u64 {
    let ticks;
    // SAFETY: reads a register. ISB: not before what comes before.
    unsafe {
        asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    ticks
}

/// Gives way to another core that this one waits for. Not [`core::hint::spin_loop`], an ISB, at which an emulator that executes
/// one core at a time goes on with this one.
#[inline(always)]
pub fn pause() {
    // SAFETY: it changes nothing.
    unsafe { asm!("yield", options(nomem, nostack, preserves_flags)) }
}

/// Executes `steps` times [`STEP`](crate::time::STEP) instructions, and a few more: what stands for work. For an emulator, as
/// [`pass`](crate::time::pass).
pub fn work(steps: u64) {
    /// As many as there is one jump for.
    const STEPS: u64 = 16;
    let (many, few) = (steps / STEPS, steps % STEPS);
    // SAFETY: it counts two registers down.
    unsafe {
        asm!(
            "cbz {many}, 3f",
            "2:",
            ".rept {nops}",
            "nop",
            ".endr",
            "sub {many}, {many}, #1",
            "cbnz {many}, 2b",
            "3:",
            "cbz {few}, 5f",
            "4:",
            "nop",
            "nop",
            "sub {few}, {few}, #1",
            "cbnz {few}, 4b",
            "5:",
            nops = const STEPS * crate::time::STEP - 2,
            many = inout(reg) many => _,
            few = inout(reg) few => _,
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// The number by which the processor knows itself, if user code can ask it: here it cannot.
pub const fn processor() -> Option<u32> {
    None
}

/// Ends the thread by an instruction that no processor executes: a fault, of which its handler hears.
pub fn invalid_instruction() -> ! {
    // SAFETY: nothing behind it is executed.
    unsafe { asm!("udf #0", options(noreturn, nostack)) }
}

/// The code with which a program begins: `$entry` is the module with its stack, `$start` where it goes on.
#[doc(hidden)]
#[macro_export]
macro_rules! start_code {
    ($entry:ident, $start:path) => {
        core::arch::global_asm!(
            ".section .text._start, \"ax\", @progbits",
            ".globl _start",
            ".type _start, @function",
            "_start:",
            // The thread pointer, which is nobody's yet, lends a register.
            "msr tpidr_el0, x0",
            "adrp x0, {initial}",
            "add x0, x0, :lo12:{initial}",
            "stp x1, x2, [x0, #32]",
            "stp x3, x4, [x0, #48]",
            "stp x5, x6, [x0, #64]",
            "stp x7, x8, [x0, #80]",
            "stp x16, x17, [x0, #96]",
            "stp x18, x29, [x0, #112]",
            "stp x30, x9, [x0, #128]",
            "stp x10, x11, [x0, #144]",
            "stp x12, x13, [x0, #160]",
            "stp x14, x15, [x0, #176]",
            "stp x19, x20, [x0, #192]",
            "stp x21, x22, [x0, #208]",
            "stp x23, x24, [x0, #224]",
            "stp x25, x26, [x0, #240]",
            "stp x27, x28, [x0, #256]",
            "mrs x2, tpidr_el0",
            "mrs x3, nzcv",
            "mov x4, sp",
            "stp x4, x3, [x0, #8]",
            "str x2, [x0, #24]",
            "adrp x3, {stack} + {guard} + {size}",
            "add x3, x3, :lo12:{stack} + {guard} + {size}",
            "mov sp, x3",
            "mov x29, xzr",
            "mov x30, xzr",
            "mov x0, x2",
            "bl {start}",
            "udf #0",
            // Where further threads of a component start: the loader puts the address of what the
            // program has prepared for the thread into the first argument's register.
            ".globl __sandglass_thread",
            ".type __sandglass_thread, @function",
            "__sandglass_thread:",
            "ldr x1, [x0]",
            "mov sp, x1",
            "mov x29, xzr",
            "bl {thread}",
            "udf #0",
            // For the loader of a component.
            ".globl __sandglass_stack_guard",
            ".set __sandglass_stack_guard, {stack}",
            ".text",
            guard = const $crate::entry::GUARD_BYTES,
            initial = sym $crate::entry::INITIAL_REGISTERS,
            stack = sym $entry::STACK,
            size = const $entry::STACK_BYTES,
            start = sym $start,
            thread = sym $crate::thread::begin,
        );
    };
}

/// Defines the memory functions, their names after `$prefix`; see [`crate::memory_functions`]. They take the place of those of
/// the compiler's own library, which go word by word.
#[doc(hidden)]
#[macro_export]
macro_rules! memory_functions {
    ($prefix:literal) => {
        core::arch::global_asm!(
            ".section .text.memory_functions, \"ax\", @progbits",
            concat!(".globl ", $prefix, "memcpy"),
            concat!(".globl ", $prefix, "memmove"),
            concat!(".type ", $prefix, "memcpy, @function"),
            concat!(".type ", $prefix, "memmove, @function"),
            // x0 destination, x1 source, x2 bytes; returns the destination.
            concat!($prefix, "memcpy:"),
            concat!($prefix, "memmove:"),
            "cmp x2, #16",
            "b.lo 20f",
            "add x4, x1, x2",
            "add x6, x0, x2",
            // Destination inside the source's bytes: copy backwards.
            "sub x3, x0, x1",
            "cmp x3, x2",
            "b.lo 12f",
            // Forwards; the last block is loaded first.
            "ldur q1, [x4, #-16]",
            "sub x6, x6, #16",
            "mov x5, x0",
            "11: ldr q0, [x1], #16",
            "str q0, [x5], #16",
            "cmp x5, x6",
            "b.lo 11b",
            "str q1, [x6]",
            "ret",
            // Backwards; the first block is loaded first.
            "12: ldr q1, [x1]",
            "add x7, x0, #16",
            "13: ldr q0, [x4, #-16]!",
            "str q0, [x6, #-16]!",
            "cmp x6, x7",
            "b.hi 13b",
            "str q1, [x0]",
            "ret",
            // Below 16 bytes: everything is loaded before anything is stored.
            "20: add x4, x1, x2",
            "add x6, x0, x2",
            "tbz x2, #3, 21f",
            "ldr x7, [x1]",
            "ldur x8, [x4, #-8]",
            "str x7, [x0]",
            "stur x8, [x6, #-8]",
            "ret",
            "21: tbz x2, #2, 22f",
            "ldr w7, [x1]",
            "ldur w8, [x4, #-4]",
            "str w7, [x0]",
            "stur w8, [x6, #-4]",
            "ret",
            "22: cbz x2, 23f",
            "lsr x3, x2, #1",
            "ldrb w7, [x1]",
            "ldrb w8, [x1, x3]",
            "ldurb w9, [x4, #-1]",
            "strb w7, [x0]",
            "strb w8, [x0, x3]",
            "sturb w9, [x6, #-1]",
            "23: ret",
            concat!(".globl ", $prefix, "memset"),
            concat!(".type ", $prefix, "memset, @function"),
            // x0 destination, w1 byte, x2 bytes; returns the destination.
            concat!($prefix, "memset:"),
            "dup v0.16b, w1",
            "add x6, x0, x2",
            "cmp x2, #16",
            "b.lo 31f",
            "sub x6, x6, #16",
            "mov x5, x0",
            "30: str q0, [x5], #16",
            "cmp x5, x6",
            "b.lo 30b",
            "str q0, [x6]",
            "ret",
            "31: tbz x2, #3, 32f",
            "str d0, [x0]",
            "stur d0, [x6, #-8]",
            "ret",
            "32: tbz x2, #2, 33f",
            "str s0, [x0]",
            "stur s0, [x6, #-4]",
            "ret",
            "33: cbz x2, 34f",
            "lsr x3, x2, #1",
            "strb w1, [x0]",
            "strb w1, [x0, x3]",
            "sturb w1, [x6, #-1]",
            "34: ret",
            concat!(".globl ", $prefix, "memcmp"),
            concat!(".globl ", $prefix, "bcmp"),
            concat!(".type ", $prefix, "memcmp, @function"),
            concat!(".type ", $prefix, "bcmp, @function"),
            // x0, x1 operands, x2 bytes; returns the sign of the first difference.
            concat!($prefix, "memcmp:"),
            concat!($prefix, "bcmp:"),
            "40: cmp x2, #8",
            "b.lo 41f",
            "ldr x3, [x0], #8",
            "ldr x4, [x1], #8",
            "sub x2, x2, #8",
            "cmp x3, x4",
            "b.eq 40b",
            // The first byte in memory is the most significant one of the comparison.
            "rev x3, x3",
            "rev x4, x4",
            "cmp x3, x4",
            "cset w0, hi",
            "csinv w0, w0, wzr, hs",
            "ret",
            "41: cbz x2, 42f",
            "ldrb w3, [x0], #1",
            "ldrb w4, [x1], #1",
            "sub x2, x2, #1",
            "subs w3, w3, w4",
            "b.eq 41b",
            "mov w0, w3",
            "ret",
            "42: mov w0, wzr",
            "ret",
            ".text",
        );
    };
}
