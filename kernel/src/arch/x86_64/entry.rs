//! The way into the kernel and the way out of it.
//!
//! Every entry stores the user's registers in the [`Context`] of the thread that ran, switches to
//! the kernel's address space and stack, and calls a Rust function that ends in [`leave`]; the
//! exit loads the registers from the context of the thread that is to run. Nothing of the kernel's
//! stack survives from one event to the next.
//!
//! System calls (01, section 4.1) leave RSP, RCX and R11 of the context alone, and return by
//! SYSRET; interrupts and exceptions store and restore everything, and return by IRET. Both
//! happen in the trampoline, which is mapped at the same addresses in both address spaces.
//!
//! IRET and SYSRET fail inside the kernel when the instruction pointer is not canonical. None is:
//! what users write is checked ([`Context`]), and no instruction can lie in the last page below
//! the non-canonical addresses, because nothing can be mapped there (03, section 8.3).

use core::arch::{asm, global_asm};
use core::cell::{Cell, UnsafeCell};

use super::apic::LOCAL_APIC;
use super::context::{Context, Register};
use super::cpu::{self, Msr};
use super::descriptors::{
    CPU, ENTRY_STACK_TOP, ENTRY_STRIDE, FIRST_SOFTWARE, USER_CODE, USER_DATA,
};
use super::machine::Machine;
use super::paging::KERNEL_PML4;
use super::{fatal, layout};
use crate::event::{self, Next, Trap};
use crate::Kernel;

/// Bytes of the kernel's stack. The boot needs most; events less than a tenth of it. The debug
/// kernel formats what it prints, and a kernel that is wrong on purpose is built quickly, with fewer
/// functions inlined: their boot needs more.
const STACK_SIZE: usize = if cfg!(any(feature = "debug", feature = "wrong")) {
    0x1_0000
} else {
    28 * 1024
};

/// The kernel's stack; every entry starts at its end.
#[repr(C, align(4096))]
pub struct KernelStack(UnsafeCell<[u8; STACK_SIZE]>);

// SAFETY: Rust code does not access it as a static; it is the stack of the one core.
unsafe impl Sync for KernelStack {}

pub static KERNEL_STACK: KernelStack = KernelStack(UnsafeCell::new([0; STACK_SIZE]));

/// Offset of the stack pointer at the start of a function: 8 bytes off a multiple of 16, as after
/// a call.
pub const STACK_START: usize = STACK_SIZE - 8;

/// What the entry code needs to know about the user side.
#[repr(C)]
struct Core {
    /// Context of the thread that runs, where its registers are stored.
    context: Cell<*const Context>,
    /// Root of the address space to return to, with `isolation`.
    root: Cell<u64>,
    /// GS base in the processor.
    gs_base: Cell<u64>,
}

// SAFETY: accessed by the one core, with interrupts off.
unsafe impl Sync for Core {}

static CORE: Core = Core {
    context: Cell::new(core::ptr::null()),
    root: Cell::new(0),
    gs_base: Cell::new(0),
};

/// Address of the entry point of vector 0; the others follow in steps of `ENTRY_STRIDE`.
pub fn first_vector() -> u64 {
    &raw const sandglass_vectors as u64
}

/// Address of the entry point of system calls.
pub fn system_call() -> u64 {
    &raw const sandglass_system_call as u64
}

unsafe extern "C" {
    static sandglass_vectors: u8;
    static sandglass_system_call: u8;
}

/// Makes the next return go to the address space of `root`.
#[inline(always)]
pub fn set_user_root(root: u64) {
    if cfg!(feature = "isolation") {
        CORE.root.set(root);
    } else if CORE.root.replace(root) != root {
        // SAFETY: slot 511 of every user root is the kernel's own (`paging::kernel_root_entry`).
        unsafe { cpu::set_root(root) }
    }
}

// ---- the kernel's state

struct KernelCell(UnsafeCell<Kernel>);

// SAFETY: see `with_kernel`.
unsafe impl Sync for KernelCell {}

static KERNEL: KernelCell = KernelCell(UnsafeCell::new(Kernel::new(Machine::new())));

/// The kernel's state, for the event that is being handled.
///
/// # Safety
/// Called once in each of the functions that assembly calls, which do not return: nothing borrows
/// from an earlier event, the core is alone, and interrupts stay off while the kernel runs.
#[inline(always)]
pub unsafe fn kernel() -> &'static mut Kernel {
    // SAFETY: the caller's; the static is initialised.
    unsafe { &mut *KERNEL.0.get() }
}

/// A system call; the context is stored.
extern "C" fn on_system_call() -> ! {
    // SAFETY: called by the entry code, once.
    let k = unsafe { kernel() };
    #[cfg(sandglass_panic_probe)]
    panic_probe(k);
    let next = event::system_call(k);
    leave(k, next)
}

/// A kernel that is wrong on purpose: an index that a user chose. It must not link, and a test
/// shows that it does not.
#[cfg(sandglass_panic_probe)]
fn panic_probe(k: &Kernel) {
    use crate::arch::Platform;
    const LETTERS: [u8; 4] = *b"ABCD";
    // SAFETY: the context of the thread that entered, which is stored.
    let chosen = unsafe { &*CORE.context.get() }.cap_register();
    k.machine.put_char(LETTERS[chosen as usize]);
}

/// Exceptions for which the processor pushes a code: 8, 10 to 14, 17, 21, 29, 30.
const WITH_CODE: u32 = 0x6022_7d00;
/// Vector of the spurious interrupt, which needs no handling (05, section 7).
const SPURIOUS: u64 = 255;
const PAGE_FAULT: u64 = 14;
const FIRST_INTERRUPT: u64 = 0x20;
/// First IRQ of a device behind an I/O APIC or a message-signalled one (03, section 7.2).
const FIRST_DEVICE: u8 = 16;
/// Vector of the local APIC timer.
pub const TIMER: u8 = 157;

/// An interrupt or exception at user level; the context is stored.
extern "C" fn on_vector(vector: u64, code: u64) -> ! {
    let trap = match vector {
        PAGE_FAULT => Trap::PageFault {
            address: cpu::fault_address(),
            code: code as u32,
        },
        0..FIRST_INTERRUPT => Trap::Exception {
            number: vector as u32,
            code: code as u32,
        },
        _ if vector >= FIRST_SOFTWARE as u64 => {
            back_to_software_interrupt();
            Trap::SoftwareInterrupt {
                vector: vector as u8,
            }
        }
        _ => interrupt(vector),
    };
    act(trap)
}

/// An interrupt or exception inside the kernel: interrupts only while it idles, exceptions never.
extern "C" fn on_kernel_vector(vector: u64, code: u64, ip: u64) -> ! {
    if vector < FIRST_INTERRUPT {
        fatal::exception(vector, code, ip);
    }
    if vector >= FIRST_SOFTWARE as u64 {
        // Nobody raises it by its number here: a device was told a vector that is not its own.
        LOCAL_APIC.end_interrupt();
        cpu::idle();
    }
    act(interrupt(vector))
}

/// The event of a hardware interrupt.
#[inline(always)]
fn interrupt(vector: u64) -> Trap {
    if vector == u64::from(TIMER) {
        Trap::Timer
    } else {
        Trap::Interrupt {
            irq: vector.wrapping_sub(FIRST_INTERRUPT) as u8,
        }
    }
}

/// The instruction that entered the kernel is the software interrupt of two bytes before the
/// next one (05, section 2.2).
fn back_to_software_interrupt() {
    // SAFETY: the context of the thread that entered, which the entry code has just used.
    let context = unsafe { &*CORE.context.get() };
    context.set_fault_ip(context.fault_ip().wrapping_sub(2));
}

/// Handles an event that came by a vector, and goes on. The end of a hardware interrupt is
/// signalled after it was handled, when the line of a level-triggered one is masked: before, it
/// would come again at once.
#[inline(never)]
fn act(trap: Trap) -> ! {
    // SAFETY: the one use in the functions that assembly calls and that end here.
    let k = unsafe { kernel() };
    let next = event::trap(k, trap);
    match trap {
        // Below are only the legacy controllers' vectors: masked, but they can be spurious, and
        // then the local APIC knows nothing of them.
        Trap::Interrupt { irq } if irq < FIRST_DEVICE => {}
        Trap::Interrupt { .. } | Trap::Timer => LOCAL_APIC.end_interrupt(),
        _ => {}
    }
    leave(k, next)
}

/// Ends an event: continues with the thread, or the idling, that it decided on.
#[inline(always)]
pub fn leave(k: &mut Kernel, next: Next) -> ! {
    match next {
        Next::Thread(thread) => {
            let context: *const Context = thread.at(k).context();
            // SAFETY: the context is that of a thread, the exit code's only demand; it stays where
            // it is until the kernel is entered again, and the kernel is not in use any more.
            unsafe {
                asm!("jmp {exit}", exit = sym sandglass_exit, in("rdi") context, options(noreturn))
            }
        }
        Next::Idle => cpu::idle(),
    }
}

unsafe extern "C" {
    fn sandglass_exit() -> !;
}

/// Byte offset of a register in a context.
const fn at(register: Register) -> usize {
    register as usize * 8
}

// The order in which system calls push and pop.
const _: () = {
    use Register::*;
    let pushed = [
        Rdi, Rsi, Rax, Rbx, Rbp, R12, R13, R14, Rdx, R10, R8, R9, R15, Rflags, NextIp, FaultIp,
    ];
    let mut i = 0;
    while i < pushed.len() {
        assert!(pushed[i] as usize == i);
        i += 1;
    }
};

global_asm!(
    ".section .trampoline.text, \"ax\", @progbits",
    // The entry points of the vectors: the number, and a code where the processor pushes none.
    ".balign {stride}",
    ".global sandglass_vectors",
    ".type sandglass_vectors, @function",
    "sandglass_vectors:",
    ".set entry_vector, 0",
    ".rept 256",
    ".balign {stride}",
    // The spurious interrupt needs nothing, but a program may be there by INT from code that
    // SYSRET went back to, with a code segment that IRETQ refuses (01, section 4.1).
    ".if entry_vector == {spurious}",
    "test byte ptr [rsp + 8], 3",
    "jz 2f",
    "mov byte ptr [rsp + 8], {user_code}",
    "2:",
    "iretq",
    ".else",
    ".if entry_vector > 31 || !(({with_code} >> entry_vector) & 1)",
    "push 0",
    ".endif",
    "push entry_vector",
    "jmp vector_entry",
    ".endif",
    ".set entry_vector, entry_vector + 1",
    ".endr",
    ".size sandglass_vectors, . - sandglass_vectors",

    // From a vector. Stack: vector, code, and the processor's RIP, CS, RFLAGS, RSP, SS.
    ".balign 16",
    ".type vector_entry, @function",
    "vector_entry:",
    "cld",
    "test byte ptr [rsp + 24], 3",
    "jz kernel_vector_entry",
    "push rax",
    ".if {isolation}",
    "mov eax, offset {pml4} + {to_physical}",
    "mov cr3, rax",
    ".endif",
    "mov rax, [rip + {core}]",
    "mov [rax + {rdi}], rdi",
    "mov [rax + {rsi}], rsi",
    "mov [rax + {rbx}], rbx",
    "mov [rax + {rbp}], rbp",
    "mov [rax + {r12}], r12",
    "mov [rax + {r13}], r13",
    "mov [rax + {r14}], r14",
    "mov [rax + {rdx}], rdx",
    "mov [rax + {r10}], r10",
    "mov [rax + {r8}], r8",
    "mov [rax + {r9}], r9",
    "mov [rax + {r15}], r15",
    "mov [rax + {rcx}], rcx",
    "mov [rax + {r11}], r11",
    "pop qword ptr [rax + {rax}]",
    "pop rdi",
    "pop rsi",
    "pop rcx",
    "mov [rax + {next_ip}], rcx",
    "mov [rax + {fault_ip}], rcx",
    "pop rcx",
    "pop qword ptr [rax + {rflags}]",
    "pop qword ptr [rax + {rsp}]",
    "mov qword ptr [rax + {return_by_sysret}], 0",
    "lea rsp, [rip + {stack} + {stack_start}]",
    "jmp {on_vector}",
    ".size vector_entry, . - vector_entry",

    // From a vector, inside the kernel. Nothing is kept.
    ".type kernel_vector_entry, @function",
    "kernel_vector_entry:",
    "mov rdi, [rsp]",
    "mov rsi, [rsp + 8]",
    "mov rdx, [rsp + 16]",
    ".if {isolation}",
    "mov eax, offset {pml4} + {to_physical}",
    "mov cr3, rax",
    ".endif",
    "lea rsp, [rip + {stack} + {stack_start}]",
    "jmp {on_kernel_vector}",
    ".size kernel_vector_entry, . - kernel_vector_entry",

    // From SYSCALL: RCX is the address of the next instruction, R11 the flags, and RSP is free.
    // Exceptions that could strike while RSP points into the context have stacks of their own.
    ".balign 16",
    ".global sandglass_system_call",
    ".type sandglass_system_call, @function",
    "sandglass_system_call:",
    ".if {isolation}",
    "mov esp, offset {pml4} + {to_physical}",
    "mov cr3, rsp",
    ".endif",
    "mov rsp, [rip + {core}]",
    "add rsp, {pushed_end}",
    "push rcx",
    "push rcx",
    "push r11",
    "push r15",
    "push r9",
    "push r8",
    "push r10",
    "push rdx",
    "push r14",
    "push r13",
    "push r12",
    "push rbp",
    "push rbx",
    "push rax",
    "push rsi",
    "push rdi",
    "sub qword ptr [rsp + {fault_ip}], 2",
    "mov qword ptr [rsp + {return_by_sysret}], 1",
    "lea rsp, [rip + {stack} + {stack_start}]",
    "jmp {on_system_call}",
    ".size sandglass_system_call, . - sandglass_system_call",

    // To the thread whose context is in RDI. The FS base is loaded each time, and the GS base
    // unless it is and was 0: users cannot set them, but loading a selector makes them 0, and the
    // next thread must not inherit that.
    ".balign 16",
    ".global sandglass_exit",
    ".type sandglass_exit, @function",
    "sandglass_exit:",
    "mov [rip + {core}], rdi",
    "mov ecx, {msr_fs_base}",
    "mov eax, [rdi + {fs_base}]",
    "mov edx, [rdi + {fs_base} + 4]",
    "wrmsr",
    "mov rax, [rdi + {gs_base}]",
    "or rax, [rip + {core} + {core_gs_base}]",
    "jnz load_gs_base",
    "gs_base_loaded:",
    "cmp dword ptr [rdi + {return_by_sysret}], 0",
    "je exit_by_iret",
    "mov rsp, rdi",
    "pop rdi",
    "pop rsi",
    "pop rax",
    "pop rbx",
    "pop rbp",
    "pop r12",
    "pop r13",
    "pop r14",
    "pop rdx",
    "pop r10",
    "pop r8",
    "pop r9",
    "pop r15",
    "pop r11",
    "pop rcx",
    ".if {isolation}",
    "mov rsp, [rip + {core} + {core_root}]",
    "mov cr3, rsp",
    ".endif",
    "xor esp, esp",
    "sysretq",

    "exit_by_iret:",
    "lea rsp, [rip + {cpu} + {entry_stack_top}]",
    "push {user_data}",
    "push qword ptr [rdi + {rsp}]",
    "push qword ptr [rdi + {rflags}]",
    "push {user_code}",
    "push qword ptr [rdi + {next_ip}]",
    "mov rsi, [rdi + {rsi}]",
    "mov rbx, [rdi + {rbx}]",
    "mov rbp, [rdi + {rbp}]",
    "mov r12, [rdi + {r12}]",
    "mov r13, [rdi + {r13}]",
    "mov r14, [rdi + {r14}]",
    "mov rdx, [rdi + {rdx}]",
    "mov r10, [rdi + {r10}]",
    "mov r8, [rdi + {r8}]",
    "mov r9, [rdi + {r9}]",
    "mov r15, [rdi + {r15}]",
    "mov rcx, [rdi + {rcx}]",
    "mov r11, [rdi + {r11}]",
    "mov rax, [rdi + {rax}]",
    ".if {isolation}",
    "push qword ptr [rdi + {rdi}]",
    "mov rdi, [rip + {core} + {core_root}]",
    "mov cr3, rdi",
    "pop rdi",
    ".else",
    "mov rdi, [rdi + {rdi}]",
    ".endif",
    "iretq",

    "load_gs_base:",
    "mov ecx, {msr_gs_base}",
    "mov eax, [rdi + {gs_base}]",
    "mov edx, [rdi + {gs_base} + 4]",
    "mov [rip + {core} + {core_gs_base}], eax",
    "mov [rip + {core} + {core_gs_base} + 4], edx",
    "wrmsr",
    "jmp gs_base_loaded",
    ".size sandglass_exit, . - sandglass_exit",
    ".text",

    isolation = const cfg!(feature = "isolation") as usize,
    stride = const ENTRY_STRIDE,
    spurious = const SPURIOUS,
    with_code = const WITH_CODE,
    pml4 = sym KERNEL_PML4,
    to_physical = const layout::KERNEL_BASE.wrapping_neg(),
    core = sym CORE,
    core_root = const core::mem::offset_of!(Core, root),
    core_gs_base = const core::mem::offset_of!(Core, gs_base),
    cpu = sym CPU,
    entry_stack_top = const ENTRY_STACK_TOP,
    stack = sym KERNEL_STACK,
    stack_start = const STACK_START,
    on_system_call = sym on_system_call,
    on_vector = sym on_vector,
    on_kernel_vector = sym on_kernel_vector,
    user_code = const USER_CODE,
    user_data = const USER_DATA,
    msr_fs_base = const Msr::FsBase as u32,
    msr_gs_base = const Msr::GsBase as u32,
    pushed_end = const at(Register::Rsp),
    rdi = const at(Register::Rdi),
    rsi = const at(Register::Rsi),
    rax = const at(Register::Rax),
    rbx = const at(Register::Rbx),
    rbp = const at(Register::Rbp),
    r12 = const at(Register::R12),
    r13 = const at(Register::R13),
    r14 = const at(Register::R14),
    rdx = const at(Register::Rdx),
    r10 = const at(Register::R10),
    r8 = const at(Register::R8),
    r9 = const at(Register::R9),
    r15 = const at(Register::R15),
    rflags = const at(Register::Rflags),
    next_ip = const at(Register::NextIp),
    fault_ip = const at(Register::FaultIp),
    rsp = const at(Register::Rsp),
    rcx = const at(Register::Rcx),
    r11 = const at(Register::R11),
    fs_base = const at(Register::LoadedFsBase),
    gs_base = const at(Register::GsBase),
    return_by_sysret = const at(Register::ReturnBySysret),
);
