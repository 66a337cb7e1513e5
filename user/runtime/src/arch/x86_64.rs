//! x86_64.
//!
//! System calls use the registers of ABI 01, section 4.1.
//! The kernel returns from SYSCALL with rsp = 0 and with rcx and r11 holding the return address
//! and RFLAGS; every other register is preserved unless it carries a result. The stubs keep rsp
//! in r14, which LLVM, unlike rbx, lets inline assembly name. An interrupt between the return and
//! the restoration of rsp is harmless: the kernel never uses a user stack.

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

use crate::cap::{Frame, IoApicPin, IoPort, IrqHandler};
use crate::context::UserContext;
use crate::error::Result;
use crate::process::Process;
use crate::resources::{Resources, SetupError};
use crate::sys::{RawReceived, Registers};
use crate::thread_block::{IpcBuffer, ThreadBlock};
use crate::{console, exit, serial};

pub use sandglass_abi::object::x86_64 as object;
pub use sandglass_abi::vspace::x86_64 as vspace;

/// Numbers of invocations; those of aarch64 alone are refused.
pub mod label {
    pub use sandglass_abi::invocation::x86_64::*;

    /// No invocation has it: who asks for something of aarch64 is told IllegalOperation.
    const NONE: u64 = 0;

    pub const PAGE_UNIFY_INSTRUCTION: u64 = NONE;
    pub const IRQ_CONTROL_GET_TRIGGER: u64 = NONE;
}

/// Registers in the order of the user context (ABI 07, section 1.1), by role.
pub mod order {
    use sandglass_abi::context::x86_64 as registers;
    pub use sandglass_abi::context::x86_64::COUNT;

    pub const IP: usize = registers::RIP;
    pub const SP: usize = registers::RSP;
    pub const FLAGS: usize = registers::RFLAGS;
    pub const INITIAL_FLAGS: u64 = registers::INITIAL_RFLAGS;
    /// The first argument of a function.
    pub const ARGUMENT: usize = registers::RDI;
    /// The thread pointer: FS base.
    pub const THREAD_POINTER: usize = registers::FS_BASE;
    /// The frame pointer.
    pub const FP: usize = registers::RBP;
    /// The capability of a system call.
    pub const CAP: usize = registers::RDI;
    /// The number of a system call.
    pub const CALL: usize = registers::RDX;

    /// Registers with their names, in the order in which they are reported, in lines.
    pub const REPORTED: &[&[(&str, usize)]] = &[
        &[
            ("rip", registers::RIP),
            ("rsp", registers::RSP),
            ("rbp", registers::RBP),
            ("rflags", registers::RFLAGS),
            ("fs", registers::FS_BASE),
        ],
        &[
            ("rax", registers::RAX),
            ("rbx", registers::RBX),
            ("rcx", registers::RCX),
            ("rdx", registers::RDX),
            ("rsi", registers::RSI),
            ("rdi", registers::RDI),
        ],
        &[
            ("r8", registers::R8),
            ("r9", registers::R9),
            ("r10", registers::R10),
            ("r11", registers::R11),
            ("r12", registers::R12),
            ("r13", registers::R13),
            ("r14", registers::R14),
            ("r15", registers::R15),
        ],
    ];
}

/// Machine number of ELF files.
pub const ELF_MACHINE: u16 = elf::abi::EM_X86_64;
pub const ELF_MACHINE_NAME: &str = "x86_64";

/// In the status of a page fault: it was a write.
pub const FAULT_IS_WRITE: u64 = 1 << 1;

/// Says what an exception was (ABI 05, section 2.3).
pub fn show_exception(f: &mut fmt::Formatter<'_>, number: u64, code: u64) -> fmt::Result {
    write!(f, "processor exception {number} with error code {code:#x}")
}

/// Lets what was written to a frame be executed where it is mapped: the processor sees to that by itself.
pub fn make_executable(_frame: Frame) -> Result<()> {
    Ok(())
}

/// Makes the handler of a device's interrupt: of an input of the I/O APIC. Root task only.
pub fn device_irq(
    resources: &mut Resources,
    source: IoApicPin,
) -> core::result::Result<IrqHandler, SetupError> {
    resources.ioapic_irq(source)
}

/// Bytes below the end of a stack on which a function begins: its return address.
pub const CALLED: u64 = 8;

/// A system call that sends and does not receive: Send, NBSend.
#[inline(always)]
pub fn send(call: Syscall, cap: u64, info: MessageInfo, registers: Registers) {
    // SAFETY: the registers are those of the ABI; rsp is restored before the block ends.
    unsafe {
        asm!(
            "mov r14, rsp",
            "syscall",
            "mov rsp, r14",
            in("rdx") call.raw(),
            in("rdi") cap,
            in("rsi") info.raw(),
            in("r10") registers[0],
            in("r8") registers[1],
            in("r9") registers[2],
            in("r15") registers[3],
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
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
            "mov r14, rsp",
            "syscall",
            "mov rsp, r14",
            in("rdx") call.raw(),
            inlateout("rdi") cap => badge,
            inlateout("rsi") info.raw() => info_out,
            inlateout("r10") out[0],
            inlateout("r8") out[1],
            inlateout("r9") out[2],
            inlateout("r15") out[3],
            in("r12") reply,
            in("r13") destination,
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
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
/// Its own address stands in rax meanwhile, so that others can see where the thread is: see
/// [`is_answered`].
#[inline(always)]
pub fn call(cap: u64, info: MessageInfo, registers: Registers) -> RawReceived {
    let (badge, info_out): (u64, u64);
    let mut out = registers;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "mov r14, rsp",
            "lea rax, [rip]",
            "syscall",
            "mov rsp, r14",
            in("rdx") Syscall::Call.raw(),
            inlateout("rdi") cap => badge,
            inlateout("rsi") info.raw() => info_out,
            inlateout("r10") out[0],
            inlateout("r8") out[1],
            inlateout("r9") out[2],
            inlateout("r15") out[3],
            out("rax") _,
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
        );
    }
    RawReceived {
        badge,
        info: MessageInfo::from_raw(info_out),
        registers: out,
    }
}

/// Bytes of the instruction SYSCALL.
pub(crate) const INSTRUCTION: u64 = 2;

/// Whether the thread with these registers, which does not run, stands at a [`call`] that has been
/// answered: an answer comes without a badge, in the register that named a capability.
///
/// Null is no capability that a program calls; one that does, and has a timeout fault there, is
/// taken for answered.
pub(crate) fn is_answered(context: &UserContext) -> bool {
    use sandglass_abi::context::x86_64 as registers;
    context.get(registers::RAX) == context.ip()
        && context.get(registers::RDX) == Syscall::Call.raw()
        && context.get(registers::RDI) == 0
}

/// A system call with one argument in the capability register and one result there: Yield, the
/// debug calls, SetTLSBase. Returns the capability register.
#[inline(always)]
pub fn simple(call: Syscall, argument: u64) -> u64 {
    let result;
    // SAFETY: as in `send`.
    unsafe {
        asm!(
            "mov r14, rsp",
            "syscall",
            "mov rsp, r14",
            in("rdx") call.raw(),
            inlateout("rdi") argument => result,
            in("rsi") 0,
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
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
            "mov r14, rsp",
            "syscall",
            "mov rsp, r14",
            in("rdx") call.raw(),
            inlateout("rdi") cap => result,
            in("rsi") info,
            in("r10") words[0],
            in("r8") words[1],
            out("rcx") _,
            out("r11") _,
            out("r14") _,
            options(nostack),
        );
    }
    result
}

/// Sets the caller's FS base, by a system call or the instruction, as the profile has it. A non-canonical address is
/// ignored by the kernel, and a fault of the instruction.
///
/// # Safety
/// FS must address a [`ThreadBlock`] whenever the thread uses its IPC buffer or thread-local storage.
#[inline(always)]
pub unsafe fn set_thread_pointer(address: u64) {
    if sandglass_abi::profile::THIS.set_tls_base_call {
        simple(Syscall::SetTLSBase, address);
    } else {
        // SAFETY: the profile's processors have the instruction; what FS addresses is the caller's matter.
        unsafe { asm!("wrfsbase {}", in(reg) address, options(nostack, preserves_flags)) }
    }
}

/// The IPC buffer of the current thread, as its thread block names it.
#[inline(always)]
pub fn current_ipc_buffer() -> *mut IpcBuffer {
    let buffer;
    // SAFETY: every thread of the runtime has a thread block; a raw thread is told not to come
    // here (documentation of `thread_block`).
    unsafe {
        asm!("mov {}, fs:[8]", out(reg) buffer, options(pure, readonly, nostack, preserves_flags));
    }
    buffer
}

/// Where a thread's variables and its block are in their area, in bytes: thread-local storage is of "variant II", in which
/// the variables end where the block starts.
pub const fn thread_area(variables: usize, align: usize) -> (usize, usize) {
    let block = variables.next_multiple_of(align);
    (block - variables, block)
}

/// Bytes of the area, for which the same holds.
pub const fn thread_area_len(variables: usize, align: usize) -> usize {
    thread_area(variables, align).1 + core::mem::size_of::<ThreadBlock>()
}

/// The instruction, stack and frame pointers of this place.
#[inline(always)]
pub fn registers_here() -> (u64, u64, u64) {
    let (ip, sp, fp): (u64, u64, u64);
    // SAFETY: reads three registers.
    unsafe {
        asm!("lea {}, [rip]", "mov {}, rsp", "mov {}, rbp", out(reg) ip, out(reg) sp, out(reg) fp,
             options(nomem, nostack, preserves_flags));
    }
    (ip, sp, fp)
}

/// Ends the machine with `status` by isa-debug-exit, for which `port` is the capability. Without the device nothing
/// happens.
pub fn end_machine(port: u64, status: u8) {
    let _: Result<()> = IoPort::at(port).out8(crate::exit::DEBUG_EXIT_PORT, status);
}

/// Takes the first serial port and prints there from now on.
pub fn use_serial_console(process: &mut Process) -> core::result::Result<(), SetupError> {
    let resources = &mut process.resources;
    let port = resources.io_ports(serial::COM1_FIRST, serial::COM1_FIRST + serial::PORTS - 1)?;
    Ok(console::use_serial(port)?)
}

/// Takes the port of isa-debug-exit for [`crate::exit`].
pub fn use_exit_port(process: &mut Process) -> core::result::Result<(), SetupError> {
    let resources = &mut process.resources;
    let port = resources.io_ports(exit::DEBUG_EXIT_PORT, exit::DEBUG_EXIT_PORT)?;
    exit::use_port(port);
    Ok(())
}

/// The time-stamp counter, in ticks.
#[inline(always)]
pub fn ticks() -> u64 {
    // SAFETY: RDTSC is allowed at user level (ABI 07, section 2).
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Gives way to another core that this one waits for.
#[inline(always)]
pub fn pause() {
    core::hint::spin_loop();
}

/// Executes `steps` times [`STEP`](crate::time::STEP) instructions, and a few more: what stands for work. For an emulator, as [`pass`](crate::time::pass).
pub fn work(steps: u64) {
    /// As many as there is one jump for.
    const STEPS: u64 = 16;
    let (many, few) = (steps / STEPS, steps % STEPS);
    // SAFETY: it counts two registers down.
    unsafe {
        asm!(
            "test {many}, {many}",
            "jz 3f",
            "2:",
            ".rept {nops}",
            "nop",
            ".endr",
            "dec {many}",
            "jnz 2b",
            "3:",
            "test {few}, {few}",
            "jz 5f",
            "4:",
            "nop",
            "nop",
            "dec {few}",
            "jnz 4b",
            "5:",
            nops = const STEPS * crate::time::STEP - 2,
            many = inout(reg) many => _,
            few = inout(reg) few => _,
            options(nomem, nostack)
        );
    }
}

/// The number by which the processor knows itself (its initial APIC identifier), if user code can ask it.
pub fn processor() -> Option<u32> {
    Some(core::arch::x86_64::__cpuid(1).ebx >> 24)
}

/// Ends the thread by an instruction that no processor executes: a fault, of which its handler hears.
pub fn invalid_instruction() -> ! {
    // SAFETY: nothing behind it is executed.
    unsafe { asm!("ud2", options(noreturn, nostack)) }
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
            "mov [rip + {initial} + 8], rsp",
            "mov [rip + {initial} + 24], rax",
            "mov [rip + {initial} + 32], rbx",
            "mov [rip + {initial} + 40], rcx",
            "mov [rip + {initial} + 48], rdx",
            "mov [rip + {initial} + 56], rsi",
            "mov [rip + {initial} + 64], rdi",
            "mov [rip + {initial} + 72], rbp",
            "mov [rip + {initial} + 80], r8",
            "mov [rip + {initial} + 88], r9",
            "mov [rip + {initial} + 96], r10",
            "mov [rip + {initial} + 104], r11",
            "mov [rip + {initial} + 112], r12",
            "mov [rip + {initial} + 120], r13",
            "mov [rip + {initial} + 128], r14",
            "mov [rip + {initial} + 136], r15",
            // Neither LEA nor MOV changes the flags.
            "lea rsp, [rip + {stack} + {guard} + {size}]",
            "pushfq",
            "pop qword ptr [rip + {initial} + 16]",
            "xor ebp, ebp",
            "call {start}",
            "ud2",
            // Where further threads of a component start: the loader puts the address of what the
            // program has prepared for the thread into RDI.
            ".globl __sandglass_thread",
            ".type __sandglass_thread, @function",
            "__sandglass_thread:",
            "mov rsp, [rdi]",
            "xor ebp, ebp",
            "call {thread}",
            "ud2",
            // Named by the compiled core and alloc libraries, called by nothing: this program does
            // not unwind.
            ".weak rust_eh_personality",
            ".weak _Unwind_Resume",
            "rust_eh_personality:",
            "_Unwind_Resume:",
            "ud2",
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

/// Defines the memory functions, their names after `$prefix`; see [`crate::memory_functions`].
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
            // rdi destination, rsi source, rdx bytes; returns the destination.
            concat!($prefix, "memcpy:"),
            concat!($prefix, "memmove:"),
            "mov rax, rdi",
            "cmp rdx, 16",
            "jb 20f",
            "mov rcx, rdi",
            "sub rcx, rsi",
            // Destination inside the source's bytes, not at its start: copy backwards.
            "cmp rcx, rdx",
            "jb 12f",
            // Forwards; the last block is loaded first.
            "movups xmm1, [rsi + rdx - 16]",
            "lea r8, [rdx - 16]",
            "xor ecx, ecx",
            "11: movups xmm0, [rsi + rcx]",
            "movups [rdi + rcx], xmm0",
            "add rcx, 16",
            "cmp rcx, r8",
            "jb 11b",
            "movups [rdi + r8], xmm1",
            "ret",
            // Backwards; the first block is loaded first.
            "12: movups xmm1, [rsi]",
            "mov rcx, rdx",
            "13: movups xmm0, [rsi + rcx - 16]",
            "movups [rdi + rcx - 16], xmm0",
            "sub rcx, 16",
            "cmp rcx, 16",
            "ja 13b",
            "movups [rdi], xmm1",
            "ret",
            // Below 16 bytes: everything is loaded before anything is stored.
            "20: cmp edx, 8",
            "jb 21f",
            "mov rcx, [rsi]",
            "mov r8, [rsi + rdx - 8]",
            "mov [rdi], rcx",
            "mov [rdi + rdx - 8], r8",
            "ret",
            "21: cmp edx, 4",
            "jb 22f",
            "mov ecx, [rsi]",
            "mov r8d, [rsi + rdx - 4]",
            "mov [rdi], ecx",
            "mov [rdi + rdx - 4], r8d",
            "ret",
            "22: test edx, edx",
            "jz 23f",
            "movzx ecx, byte ptr [rsi]",
            "movzx r8d, byte ptr [rsi + rdx - 1]",
            "mov r9, rdx",
            "shr r9, 1",
            "movzx r10d, byte ptr [rsi + r9]",
            "mov [rdi], cl",
            "mov [rdi + r9], r10b",
            "mov [rdi + rdx - 1], r8b",
            "23: ret",
            concat!(".globl ", $prefix, "memset"),
            concat!(".type ", $prefix, "memset, @function"),
            // rdi destination, sil byte, rdx bytes; returns the destination.
            concat!($prefix, "memset:"),
            "mov rax, rdi",
            "movzx esi, sil",
            "mov rcx, 0x0101010101010101",
            "imul rsi, rcx",
            "cmp rdx, 16",
            "jb 31f",
            "movq xmm0, rsi",
            "punpcklqdq xmm0, xmm0",
            "lea r8, [rdx - 16]",
            "xor ecx, ecx",
            "30: movups [rdi + rcx], xmm0",
            "add rcx, 16",
            "cmp rcx, r8",
            "jb 30b",
            "movups [rdi + r8], xmm0",
            "ret",
            "31: cmp edx, 8",
            "jb 32f",
            "mov [rdi], rsi",
            "mov [rdi + rdx - 8], rsi",
            "ret",
            "32: cmp edx, 4",
            "jb 33f",
            "mov [rdi], esi",
            "mov [rdi + rdx - 4], esi",
            "ret",
            "33: test edx, edx",
            "jz 34f",
            "mov [rdi], sil",
            "mov [rdi + rdx - 1], sil",
            "shr edx, 1",
            "mov [rdi + rdx], sil",
            "34: ret",
            concat!(".globl ", $prefix, "memcmp"),
            concat!(".globl ", $prefix, "bcmp"),
            concat!(".type ", $prefix, "memcmp, @function"),
            concat!(".type ", $prefix, "bcmp, @function"),
            // rdi, rsi operands, rdx bytes; returns the sign of the first difference.
            concat!($prefix, "memcmp:"),
            concat!($prefix, "bcmp:"),
            "xor ecx, ecx",
            "40: lea r8, [rcx + 8]",
            "cmp r8, rdx",
            "ja 41f",
            "mov rax, [rdi + rcx]",
            "mov r9, [rsi + rcx]",
            "cmp rax, r9",
            "jne 42f",
            "mov rcx, r8",
            "jmp 40b",
            "41: cmp rcx, rdx",
            "jae 43f",
            "movzx eax, byte ptr [rdi + rcx]",
            "movzx r9d, byte ptr [rsi + rcx]",
            "inc rcx",
            "sub eax, r9d",
            "jz 41b",
            "ret",
            // The first byte in memory is the most significant one of the comparison.
            "42: bswap rax",
            "bswap r9",
            "cmp rax, r9",
            "sbb eax, eax",
            "or eax, 1",
            "ret",
            "43: xor eax, eax",
            "ret",
            ".text",
        );
    };
}
