//! The machine code of entry and exit.
//!
//! While user code runs, SP of EL1 is the address of the thread's context: the exit leaves it there, and the next entry
//! stores the registers where it points. In the kernel it is the kernel's stack, from its start on at every entry.

use core::arch::{asm, global_asm};
use core::mem::size_of;

use sandglass_abi::syscall::Syscall;

use super::handlers::{
    act_on_exception, on_interrupt, on_kernel_exception, on_unexpected, KernelStack, KERNEL_STACKS,
};
use crate::arch::abi::context::{Context, Register};
use crate::arch::bounds::{in_object, kind};
use crate::arch::calls::{
    on_call, on_nb_send_recv, on_recv, on_reply_recv, on_send, on_system_call, on_wait, on_yield,
};
use crate::cores::{CoreId, CORES};
use crate::object::{tcb, Tcb};

unsafe extern "C" {
    static sandglass_vectors: u8;
    fn sandglass_exit() -> !;
}

/// Address of the vectors.
pub fn vectors() -> u64 {
    (&raw const sandglass_vectors) as u64
}

/// Leaves the kernel for the thread with `context`.
///
/// # Safety
/// The context is that of a thread, which is to run on the core that executes this, and stays where it is until the core
/// enters the kernel again.
#[inline(always)]
pub unsafe fn exit(context: *const Context) -> ! {
    // SAFETY: the caller's: a context is the exit code's only demand.
    unsafe {
        asm!("b {exit}", exit = sym sandglass_exit, in("x0") context, options(noreturn));
    }
}

/// Byte offset of a register in a context.
const fn at(register: Register) -> usize {
    register as usize * 8
}

// Pairs that are stored and loaded together, and the numbers of those that have one.
const _: () = {
    use Register::*;
    assert!(X0 as usize == 0 && X30 as usize == 30);
    assert!(Sp as usize == X30 as usize + 1);
    assert!(Spsr as usize == NextIp as usize + 1);
    assert!(Tpidr as usize == FaultIp as usize + 1);
    assert!(TpidrRo as usize == Tpidr as usize + 1);
};

// The number of a core is a byte below the address of a stack.
const _: () = assert!(align_of::<KernelStack>() > 0xff && CORES <= 0x100);

/// By which entries know `core`, which keeps it: the end of its stack, and its number in the lowest byte.
pub fn identity(core: CoreId) -> u64 {
    let stacks = (&raw const KERNEL_STACKS) as u64;
    let end = size_of::<KernelStack>() * (core.index() + 1);
    stacks + end as u64 + core.index() as u64
}

// Where the stacks of the first two cores end, or would, for who reads what the processors keep.
global_asm!(
    ".globl sandglass_first_stack_end",
    ".set sandglass_first_stack_end, {stacks} + {size}",
    ".globl sandglass_second_stack_end",
    ".set sandglass_second_stack_end, {stacks} + 2 * {size}",
    stacks = sym KERNEL_STACKS,
    size = const size_of::<KernelStack>(),
);

/// The number of the stack pointer in instructions.
const SP: u64 = 31;

/// Class of a system call in ESR.
const SYSTEM_CALL: u32 = 0x15;
/// Where the class is.
const CLASS: u32 = 26;

global_asm!(
    ".section .text.vectors, \"ax\", @progbits",

    // Says that a register points to the context of a thread: what `in_object` makes of it.
    ".macro sandglass_to_context said",
    "9:",
    ".pushsection .sandglass.wcet, \"\", @progbits",
    ".quad 9b, {pointer}, \\said",
    ".popsection",
    ".endm",

    // Stores the general registers of the user.
    ".macro sandglass_save",
    "sandglass_to_context {context_in_sp}",
    "stp x0, x1, [sp]",
    "stp x2, x3, [sp, #16]",
    "stp x4, x5, [sp, #32]",
    "stp x6, x7, [sp, #48]",
    "stp x8, x9, [sp, #64]",
    "stp x10, x11, [sp, #80]",
    "stp x12, x13, [sp, #96]",
    "stp x14, x15, [sp, #112]",
    "stp x16, x17, [sp, #128]",
    "stp x18, x19, [sp, #144]",
    "stp x20, x21, [sp, #160]",
    "stp x22, x23, [sp, #176]",
    "stp x24, x25, [sp, #192]",
    "stp x26, x27, [sp, #208]",
    "stp x28, x29, [sp, #224]",
    "mrs x9, sp_el0",
    "mrs x10, elr_el1",
    "mrs x11, spsr_el1",
    "mrs x12, tpidr_el0",
    "stp x30, x9, [sp, #{x30}]",
    "stp x10, x11, [sp, #{next_ip}]",
    ".endm",

    // To the kernel's stack of this core, whose number is in the lowest byte of that register then (`identity`).
    ".macro sandglass_stack core",
    ".if {cores} > 1",
    "mrs \\core, tpidr_el1",
    "and sp, \\core, #-{stack_align}",
    ".else",
    "adrp x9, {stacks} + {stack_size}",
    "mov sp, x9",
    ".endif",
    ".endm",

    // What must not happen: which of the vectors, in x1.
    ".macro sandglass_unexpected number",
    ".balign 128",
    "sandglass_stack x0",
    "mov x1, #\\number",
    "b {on_unexpected}",
    ".endm",

    // The analysis of execution times finds the ways into the kernel by the names of these vectors.
    ".balign 2048",
    ".global sandglass_vectors",
    ".type sandglass_vectors, @function",
    "sandglass_vectors:",
    // From the kernel, with the user's stack pointer, which it never uses.
    "sandglass_unexpected 0",
    "sandglass_unexpected 1",
    "sandglass_unexpected 2",
    "sandglass_unexpected 3",

    // From the kernel: an exception, which must not be; an interrupt, while it idles. Nothing is kept.
    ".balign 128",
    "sandglass_stack x0",
    "b {on_kernel_exception}",
    ".balign 128",
    ".type sandglass_from_kernel_interrupt, @function",
    "sandglass_from_kernel_interrupt:",
    "sandglass_stack x0",
    "mov x1, xzr",
    "b {on_interrupt}",
    "sandglass_unexpected 6",
    "sandglass_unexpected 7",

    // From user code: a system call or another exception.
    ".balign 128",
    ".type sandglass_from_user, @function",
    "sandglass_from_user:",
    "sandglass_save",
    "b sandglass_synchronous",
    // An interrupt.
    ".balign 128",
    ".type sandglass_from_user_interrupt, @function",
    "sandglass_from_user_interrupt:",
    "sandglass_save",
    "b sandglass_interrupt",
    "sandglass_unexpected 10",
    // A system error: that of an access which could not be reported at its instruction. It is an exception of whom it
    // meets; release kernels mask it (07, section 1.3).
    ".balign 128",
    ".type sandglass_from_user_error, @function",
    "sandglass_from_user_error:",
    "sandglass_save",
    "b sandglass_synchronous",

    // From user code of 32 bits, which there is not.
    "sandglass_unexpected 12",
    "sandglass_unexpected 13",
    "sandglass_unexpected 14",
    "sandglass_unexpected 15",
    ".balign 128",
    ".size sandglass_vectors, . - sandglass_vectors",

    // The address of a system call's instruction is that before the next.
    ".type sandglass_synchronous, @function",
    "sandglass_synchronous:",
    "mrs x2, esr_el1",
    "lsr w3, w2, #{class}",
    "cmp w3, #{system_call}",
    "b.ne 2f",
    "sub x10, x10, #4",
    "stp x10, x12, [sp, #{fault_ip}]",
    // In the order of a function's arguments: capability, message, one that is not used here, core. To those that there is a
    // line for directly.
    "sandglass_stack x3",
    "cmn x7, #{call}",
    "b.eq {on_call}",
    "cmn x7, #{reply_recv}",
    "b.eq {on_reply_recv}",
    "cmn x7, #{send}",
    "b.eq {on_send}",
    "cmn x7, #{recv}",
    "b.eq {on_recv}",
    "cmn x7, #{wait}",
    "b.eq {on_wait}",
    "cmn x7, #{yields}",
    "b.eq {on_yield}",
    "cmn x7, #{nb_send_recv}",
    "b.eq {on_nb_send_recv}",
    "b {on_system_call}",
    "2:",
    "mov x1, x2",
    "stp x10, x12, [sp, #{fault_ip}]",
    "mrs x2, far_el1",
    "sandglass_stack x0",
    "b {act_on_exception}",
    ".size sandglass_synchronous, . - sandglass_synchronous",

    ".type sandglass_interrupt, @function",
    "sandglass_interrupt:",
    "mov x1, sp",
    "stp x10, x12, [sp, #{fault_ip}]",
    "sandglass_stack x0",
    "b {on_interrupt}",
    ".size sandglass_interrupt, . - sandglass_interrupt",

    ".globl sandglass_watch_loads_from",
    ".set sandglass_watch_loads_from, {next_ip}",

    // To the thread whose context is in x0.
    ".global sandglass_exit",
    ".type sandglass_exit, @function",
    "sandglass_exit:",
    "sandglass_to_context {context_in_x0}",
    "mov sp, x0",
    // By this the oracle for time knows who runs next (as in `turn`): registers of whom are loaded here.
    ".globl sandglass_watch_loads",
    "sandglass_watch_loads:",
    "ldp x10, x11, [sp, #{next_ip}]",
    "ldp x12, x13, [sp, #{tpidr}]",
    "ldp x30, x9, [sp, #{x30}]",
    "msr elr_el1, x10",
    "msr spsr_el1, x11",
    "msr tpidr_el0, x12",
    "msr tpidrro_el0, x13",
    "msr sp_el0, x9",
    "ldp x0, x1, [sp]",
    "ldp x2, x3, [sp, #16]",
    "ldp x4, x5, [sp, #32]",
    "ldp x6, x7, [sp, #48]",
    "ldp x8, x9, [sp, #64]",
    "ldp x10, x11, [sp, #80]",
    "ldp x12, x13, [sp, #96]",
    "ldp x14, x15, [sp, #112]",
    "ldp x16, x17, [sp, #128]",
    "ldp x18, x19, [sp, #144]",
    "ldp x20, x21, [sp, #160]",
    "ldp x22, x23, [sp, #176]",
    "ldp x24, x25, [sp, #192]",
    "ldp x26, x27, [sp, #208]",
    "ldp x28, x29, [sp, #224]",
    "eret",
    // No processor executes what is behind it, not even by speculation.
    "dsb nsh",
    "isb",
    ".size sandglass_exit, . - sandglass_exit",
    ".purgem sandglass_to_context",
    ".purgem sandglass_save",
    ".purgem sandglass_stack",
    ".purgem sandglass_unexpected",
    ".text",

    cores = const CORES,
    stacks = sym KERNEL_STACKS,
    stack_size = const size_of::<KernelStack>(),
    stack_align = const align_of::<KernelStack>(),
    call = const -(Syscall::Call as i64),
    reply_recv = const -(Syscall::ReplyRecv as i64),
    send = const -(Syscall::Send as i64),
    recv = const -(Syscall::Recv as i64),
    wait = const -(Syscall::Wait as i64),
    yields = const -(Syscall::Yield as i64),
    nb_send_recv = const -(Syscall::NBSendRecv as i64),
    on_call = sym on_call,
    on_reply_recv = sym on_reply_recv,
    on_send = sym on_send,
    on_recv = sym on_recv,
    on_wait = sym on_wait,
    on_yield = sym on_yield,
    on_nb_send_recv = sym on_nb_send_recv,
    on_system_call = sym on_system_call,
    act_on_exception = sym act_on_exception,
    on_interrupt = sym on_interrupt,
    on_kernel_exception = sym on_kernel_exception,
    on_unexpected = sym on_unexpected,
    class = const CLASS,
    system_call = const SYSTEM_CALL,
    pointer = const kind::POINTER,
    context_in_sp = const in_object::<Tcb>(SP, tcb::offset::REGISTERS),
    context_in_x0 = const in_object::<Tcb>(0, tcb::offset::REGISTERS),
    x30 = const at(Register::X30),
    next_ip = const at(Register::NextIp),
    fault_ip = const at(Register::FaultIp),
    tpidr = const at(Register::Tpidr),
);
