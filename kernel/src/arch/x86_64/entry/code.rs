//! The machine code of entry and exit: the same for each core, with its own data.
//!
//! A core's descriptors and registers lead to its own copy, so that no entry has to find out where
//! it is. The copies are alike, [`BLOCK`] bytes apart.

use core::arch::{asm, global_asm};
use core::mem::size_of;

use sandglass_abi::syscall::Syscall;

use super::descriptors::{Cpu, CPUS, DEBUG, ENTRY_STACK_TOP, ENTRY_STRIDE, USER_CODE, USER_DATA};
use super::handlers::{on_kernel_vector, on_vector, KernelStack, KERNEL_STACKS, STACK_START};
use crate::arch::abi::context::Register;
use crate::arch::bounds::{in_object, kind};
use crate::arch::calls::{
    on_call, on_nb_send_recv, on_recv, on_reply_recv, on_send, on_system_call, on_wait, on_yield,
};
use crate::arch::x86_64::machine::barriers::Barriers;
use crate::arch::x86_64::machine::core_data::{CoreData, CORE_DATA};
use crate::arch::x86_64::machine::cpu::{self, Msr};
use crate::arch::x86_64::machine::layout;
use crate::arch::x86_64::machine::paging::{ISOLATED, KERNEL_PML4};
use crate::arch::x86_64::machine::speculation::{self, Asked, ASKED};
use crate::arch::x86_64::machine::vectors::FIRST_LEGAL;
use crate::cores::{CoreId, CORES};
use crate::object::{tcb, Core, Tcb};

/// Exceptions for which the processor pushes a code: 8, 10 to 14, 17, 21, 29, 30.
const WITH_CODE: u32 = 0x6022_7d00;

/// Bytes from the code of one core to that of the next.
const BLOCK: usize = if Asked::ANY { 4 * 1024 } else { 3 * 1024 };

/// Address of `core`'s entry point of vector 0; the others follow in steps of `ENTRY_STRIDE`.
pub fn first_vector(core: CoreId) -> u64 {
    in_block(&raw const sandglass_vectors_0, core)
}

/// Address of `core`'s entry point of system calls.
pub fn system_call(core: CoreId) -> u64 {
    in_block(&raw const sandglass_system_call_0, core)
}

/// Where `core` has what the first core has at `place`.
fn in_block(place: *const u8, core: CoreId) -> u64 {
    place.wrapping_add(core.index().wrapping_mul(BLOCK)) as u64
}

unsafe extern "C" {
    static sandglass_vectors_0: u8;
    static sandglass_system_call_0: u8;
    fn sandglass_exit_0() -> !;
}

const _: () = assert!(
    CORES <= 16,
    "`exit` has a way for each core, and so have entries"
);

/// Leaves the kernel for `thread`.
///
/// # Safety
/// `core` executes this; the thread is the one that the kernel knows to run there, and stays where it is until the core enters
/// the kernel again.
#[inline(always)]
pub unsafe fn exit(core: CoreId, thread: *const Tcb) -> ! {
    // SAFETY: the caller's; each way is that of the core.
    unsafe {
        // The first, by itself: it is the only one of most kernels, and among the others it would not be found at once.
        if core.index() == 0 {
            exit_of::<0>(thread)
        }
        match core.index() {
            1 => exit_of::<1>(thread),
            2 => exit_of::<2>(thread),
            3 => exit_of::<3>(thread),
            4 => exit_of::<4>(thread),
            5 => exit_of::<5>(thread),
            6 => exit_of::<6>(thread),
            7 => exit_of::<7>(thread),
            8 => exit_of::<8>(thread),
            9 => exit_of::<9>(thread),
            10 => exit_of::<10>(thread),
            11 => exit_of::<11>(thread),
            12 => exit_of::<12>(thread),
            13 => exit_of::<13>(thread),
            14 => exit_of::<14>(thread),
            _ => exit_of::<15>(thread),
        }
    }
}

/// # Safety
/// As for [`exit`], on core `CORE`.
#[inline(always)]
unsafe fn exit_of<const CORE: usize>(thread: *const Tcb) -> ! {
    // SAFETY: the caller's: a thread is the exit code's only demand. The code is at that distance.
    unsafe {
        asm!("jmp {exit} + {block}", exit = sym sandglass_exit_0, block = const CORE * BLOCK,
             in("rdi") thread, options(noreturn))
    }
}

/// Byte offset in a core's data of what has this offset in its [`Barriers`].
const fn in_barriers(offset: usize) -> usize {
    core::mem::offset_of!(CoreData, barriers) + offset
}

/// Byte offset of what a core does against speculation: all in the lowest byte.
const ACTIONS: usize = in_barriers(core::mem::offset_of!(Barriers, actions));

/// Byte offset of a register in a thread.
const fn at(register: Register) -> usize {
    tcb::offset::REGISTERS + register as usize * 8
}

// The order in which system calls push and pop.
const _: () = {
    use Register::*;
    let pushed = [
        Rdi, Rsi, Rax, Rbx, Rbp, R12, R13, R14, Rdx, R10, R8, R9, R15, Rflags, NextIp,
    ];
    let mut i = 0;
    while i < pushed.len() {
        assert!(pushed[i] as usize == Rdi as usize + i);
        i += 1;
    }
};

/// The numbers of registers in instructions.
mod number {
    pub const RAX: u64 = 0;
    pub const RSP: u64 = 4;
    pub const RDI: u64 = 7;
}

global_asm!(
    // Says that a register points into a thread: what `in_object` makes of it.
    ".macro in_thread said",
    "9:",
    ".pushsection .sandglass.wcet, \"\", @progbits",
    ".quad 9b, {pointer}, \\said",
    ".popsection",
    ".endm",
    // What is done against speculation, as far as this build was asked for it and the processor needs it (`speculation`).
    // After an entry, before any return: predictions that user code has made are not the kernel's. Of the registers, R8, R9
    // and RAX are free. The fence is for the jump: without it, what follows could be executed ahead of the register's setting.
    ".macro restrict_speculation core",
    ".if {ibrs}",
    "mov r8, rdx",
    "mov r9, rcx",
    "test byte ptr [rip + {data} + \\core * {data_size} + {actions}], {control}",
    "jz 2f",
    "mov ecx, {msr_spec_ctrl}",
    "mov eax, [rip + {data} + \\core * {data_size} + {kernel_control}]",
    "xor edx, edx",
    "wrmsr",
    "2: lfence",
    "mov rdx, r8",
    "mov rcx, r9",
    ".endif",
    ".endm",
    // Before an exit, behind the last return: user code's own predictions are its own again.
    ".macro permit_speculation core",
    ".if {ibrs}",
    "test byte ptr [rip + {data} + \\core * {data_size} + {actions}], {control}",
    "jz 2f",
    "mov ecx, {msr_spec_ctrl}",
    "mov eax, [rip + {data} + \\core * {data_size} + {user_control}]",
    "xor edx, edx",
    "wrmsr",
    "2:",
    ".endif",
    ".endm",
    // Before an exit, after the last access to what is not the user's: the processor's buffers are empty. The flags are free.
    ".macro clear_buffers core",
    ".if {verw}",
    "test byte ptr [rip + {data} + \\core * {data_size} + {actions}], {clear}",
    "jz 2f",
    "verw word ptr [rip + {data} + \\core * {data_size} + {segment}]",
    "2:",
    ".endif",
    ".endm",
    ".section .trampoline.text, \"ax\", @progbits",
    ".irp core, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
    ".if \\core < {cores}",
    // The entry points of the vectors: each pushes its number, as a signed byte, so that it has no more than 8 bytes.
    ".balign {stride}",
    ".global sandglass_vectors_\\core",
    ".type sandglass_vectors_\\core, @function",
    "sandglass_vectors_\\core:",
    ".set entry_vector, 0",
    ".rept 256",
    ".balign {stride}",
    ".if entry_vector < 128",
    "push entry_vector",
    ".else",
    "push entry_vector - 256",
    ".endif",
    ".if entry_vector > 31 || !(({with_code} >> entry_vector) & 1)",
    "jmp vector_entry_\\core\\()_0",
    ".elseif entry_vector < {first_legal}",
    "jmp vector_entry_\\core\\()_8",
    ".else",
    "jmp doubtful_vector_entry_\\core",
    ".endif",
    ".set entry_vector, entry_vector + 1",
    ".endr",
    ".size sandglass_vectors_\\core, . - sandglass_vectors_\\core",

    // From the vectors of exceptions with a code that a device can raise, too: from a multiple of 16, the processor has
    // pushed five words, or six, and its entry point another one.
    ".balign 16",
    ".type doubtful_vector_entry_\\core, @function",
    "doubtful_vector_entry_\\core:",
    "test spl, 8",
    "jz vector_entry_\\core\\()_0",
    "jmp vector_entry_\\core\\()_8",
    ".size doubtful_vector_entry_\\core, . - doubtful_vector_entry_\\core",

    // From a vector. Stack: vector, a code of so many bytes, and the processor's RIP, CS, RFLAGS, RSP, SS.
    ".irp code_bytes, 0, 8",
    ".balign 16",
    ".type vector_entry_\\core\\()_\\code_bytes, @function",
    "vector_entry_\\core\\()_\\code_bytes:",
    "cld",
    "test byte ptr [rsp + 16 + \\code_bytes], 3",
    "jz kernel_vector_entry_\\core\\()_\\code_bytes",
    "push rax",
    ".if {isolated}",
    "mov eax, offset {pml4} + {to_physical}",
    "mov cr3, rax",
    ".endif",
    "movabs rax, {window}",
    "add rax, [rip + sandglass_core + \\core * {core_size} + {thread}]",
    "in_thread {thread_in_rax}",
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
    "movzx edi, byte ptr [rsp]",
    ".if \\code_bytes == 0",
    "xor esi, esi",
    ".else",
    "mov rsi, [rsp + 8]",
    ".endif",
    "mov rcx, [rsp + 8 + \\code_bytes]",
    "mov [rax + {next_ip}], rcx",
    "mov [rax + {fault_ip}], rcx",
    "add rsp, 24 + \\code_bytes",
    "pop qword ptr [rax + {rflags}]",
    "pop qword ptr [rax + {rsp}]",
    "mov byte ptr [rax + {full_restore}], 1",
    ".if {user_bases}",
    "rdfsbase rcx",
    "mov [rax + {fs_base}], rcx",
    "rdgsbase rcx",
    "mov [rax + {gs_base}], rcx",
    ".endif",
    // In the order of a function's arguments: vector, code, core, thread.
    "mov rcx, rax",
    "lea rsp, [rip + {stack} + \\core * {stack_size} + {stack_start}]",
    "restrict_speculation \\core",
    ".if {cores} > 1",
    "mov edx, \\core",
    ".endif",
    "jmp {on_vector}",
    ".size vector_entry_\\core\\()_\\code_bytes, . - vector_entry_\\core\\()_\\code_bytes",

    // From a vector, inside the kernel. Nothing is kept.
    ".type kernel_vector_entry_\\core\\()_\\code_bytes, @function",
    "kernel_vector_entry_\\core\\()_\\code_bytes:",
    // Where threads are watched, an instruction that sets SS delays the exception about what it read, past a system call or
    // interrupt that follows it, and an emulator raises one twice: the entry goes on as if nothing had been.
    ".if {hardware_debug} && \\code_bytes == 0",
    "cmp byte ptr [rsp], {debug_exception}",
    "jne 2f",
    "add rsp, 8",
    "iretq",
    "2:",
    ".endif",
    "movzx edi, byte ptr [rsp]",
    ".if \\code_bytes == 0",
    "xor esi, esi",
    ".else",
    "mov rsi, [rsp + 8]",
    ".endif",
    "mov rdx, [rsp + 8 + \\code_bytes]",
    "mov rcx, [rsp + 24 + \\code_bytes]",
    ".if {isolated}",
    "mov eax, offset {pml4} + {to_physical}",
    "mov cr3, rax",
    ".endif",
    "lea rsp, [rip + {stack} + \\core * {stack_size} + {stack_start}]",
    ".if {cores} > 1",
    "mov r8d, \\core",
    ".endif",
    "jmp {on_kernel_vector}",
    ".size kernel_vector_entry_\\core\\()_\\code_bytes, . - kernel_vector_entry_\\core\\()_\\code_bytes",
    ".endr",

    // From SYSCALL: RCX is the address of the next instruction, R11 the flags, and RSP is free.
    // Exceptions that could strike while RSP points into the context have stacks of their own.
    ".balign 16",
    ".global sandglass_system_call_\\core",
    ".type sandglass_system_call_\\core, @function",
    "sandglass_system_call_\\core:",
    ".if {isolated}",
    "mov esp, offset {pml4} + {to_physical}",
    "mov cr3, rsp",
    ".endif",
    "movabs rsp, {window} + {pushed_end}",
    "add rsp, [rip + sandglass_core + \\core * {core_size} + {thread}]",
    "in_thread {pushed_end_in_rsp}",
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
    "sub rcx, 2",
    "mov [rsp + {fault_ip} - {rdi}], rcx",
    "mov byte ptr [rsp + {full_restore} - {rdi}], 0",
    ".if {user_bases}",
    "rdfsbase rcx",
    "mov [rsp + {fs_base} - {rdi}], rcx",
    "rdgsbase rcx",
    "mov [rsp + {gs_base} - {rdi}], rcx",
    ".endif",
    "lea rsp, [rip + {stack} + \\core * {stack_size} + {stack_start}]",
    "restrict_speculation \\core",
    // In the order of a function's arguments: capability, message, number, core. To those that there is a line for
    // directly.
    ".if {cores} > 1",
    "mov ecx, \\core",
    ".endif",
    "cmp rdx, {call}",
    "je {on_call}",
    "cmp rdx, {reply_recv}",
    "je {on_reply_recv}",
    "cmp rdx, {send}",
    "je {on_send}",
    "cmp rdx, {recv}",
    "je {on_recv}",
    "cmp rdx, {wait}",
    "je {on_wait}",
    "cmp rdx, {yields}",
    "je {on_yield}",
    "cmp rdx, {nb_send_recv}",
    "je {on_nb_send_recv}",
    "jmp {on_system_call}",
    ".size sandglass_system_call_\\core, . - sandglass_system_call_\\core",

    // To the thread in RDI. The FS base is loaded each time, its lower 48 bits, and the GS base
    // unless it is and was 0: users cannot set them, but loading a selector makes them 0, and the
    // next thread must not inherit that. Where users have instructions for both, entries store them, and
    // exits load them, always.
    ".balign 16",
    ".global sandglass_exit_\\core",
    ".type sandglass_exit_\\core, @function",
    "sandglass_exit_\\core:",
    "in_thread {thread_in_rdi}",
    ".if {at_switch}",
    "mov rax, [rip + sandglass_core + \\core * {core_size} + {root}]",
    "cmp rax, [rip + {data} + \\core * {data_size} + {last_root}]",
    "jne other_address_space_\\core",
    "same_address_space_\\core:",
    ".endif",
    "permit_speculation \\core",
    ".if \\core == 0",
    // By this the oracle for time knows who runs next (as in `turn`): registers of whom are loaded here.
    ".globl sandglass_watch_loads",
    "sandglass_watch_loads:",
    ".endif",
    ".if {user_bases}",
    "mov rax, [rdi + {fs_base}]",
    "shl rax, 16",
    "sar rax, 16",
    "wrfsbase rax",
    "mov rax, [rdi + {gs_base}]",
    "wrgsbase rax",
    ".else",
    "mov eax, [rdi + {fs_base}]",
    "movsx edx, word ptr [rdi + {fs_base} + 4]",
    "mov ecx, {msr_fs_base}",
    "wrmsr",
    "movzx eax, byte ptr [rip + sandglass_core + \\core * {core_size} + {base_loaded}]",
    "or rax, [rdi + {gs_base}]",
    "jnz load_gs_base_\\core",
    "gs_base_loaded_\\core:",
    ".endif",
    "cmp byte ptr [rdi + {full_restore}], 0",
    "jne exit_by_iret_\\core",
    "lea rsp, [rdi + {rdi}]",
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
    ".if {isolated}",
    "mov rsp, [rip + sandglass_core + \\core * {core_size} + {root}]",
    "clear_buffers \\core",
    "mov cr3, rsp",
    ".endif",
    "xor esp, esp",
    "sysretq",

    "exit_by_iret_\\core:",
    "lea rsp, [rip + {cpu} + \\core * {cpu_size} + {entry_stack_top}]",
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
    ".if {isolated}",
    "push qword ptr [rdi + {rdi}]",
    "mov rdi, [rip + sandglass_core + \\core * {core_size} + {root}]",
    "clear_buffers \\core",
    "mov cr3, rdi",
    "pop rdi",
    ".else",
    "mov rdi, [rdi + {rdi}]",
    ".endif",
    "iretq",

    ".if !{user_bases}",
    "load_gs_base_\\core:",
    "mov ecx, {msr_gs_base}",
    "mov eax, [rdi + {gs_base}]",
    "mov edx, [rdi + {gs_base} + 4]",
    "wrmsr",
    "or eax, edx",
    "setnz byte ptr [rip + sandglass_core + \\core * {core_size} + {base_loaded}]",
    "jmp gs_base_loaded_\\core",
    ".endif",

    // The user code that runs next is of another address space than what ran last on this core, whose predictions and cached
    // data it shall not have. RAX is the new root. A jump that is predicted wrongly past any of it leads no further than to
    // the load of CR3, which waits for what is before it.
    ".if {at_switch}",
    "other_address_space_\\core:",
    "mov [rip + {data} + \\core * {data_size} + {last_root}], rax",
    ".if {ibpb}",
    "test byte ptr [rip + {data} + \\core * {data_size} + {actions}], {barrier}",
    "jz 2f",
    "mov ecx, {msr_pred_cmd}",
    "mov eax, 1",
    "xor edx, edx",
    "wrmsr",
    "2:",
    ".endif",
    ".if {l1d}",
    "test byte ptr [rip + {data} + \\core * {data_size} + {actions}], {flush}",
    "jz 2f",
    "mov ecx, {msr_flush_cmd}",
    "mov eax, 1",
    "xor edx, edx",
    "wrmsr",
    "2:",
    ".endif",
    // 32 calls that nobody returns from: no processor remembers more. Of the kernel's stack, nothing is in use any more.
    ".if {rsb}",
    "test byte ptr [rip + {data} + \\core * {data_size} + {actions}], {fill_returns}",
    "jz 2f",
    "lea rsp, [rip + {stack} + \\core * {stack_size} + {stack_start}]",
    ".rept 32",
    "call 3f",
    "int3",
    "3:",
    ".endr",
    "2:",
    ".endif",
    "jmp same_address_space_\\core",
    ".endif",
    ".size sandglass_exit_\\core, . - sandglass_exit_\\core",
    // As long for each core.
    ".if {cores} > 1",
    ".org sandglass_vectors_\\core + {block}",
    ".endif",
    ".endif",
    ".endr",
    ".text",
    ".globl sandglass_watch_loads_from",
    ".set sandglass_watch_loads_from, {fs_base} - {registers}",
    // Where whoever watches the exits finds the root that they load, of the first core, and how far that of the next is.
    ".globl sandglass_exit_root_at",
    ".set sandglass_exit_root_at, {root}",
    ".globl sandglass_exit_root_step",
    ".set sandglass_exit_root_step, {core_size}",

    cores = const CORES,
    block = const BLOCK,
    stride = const ENTRY_STRIDE,
    first_legal = const FIRST_LEGAL,
    isolated = const ISOLATED as u32,
    with_code = const WITH_CODE,
    pml4 = sym KERNEL_PML4,
    to_physical = const layout::KERNEL_BASE.wrapping_neg(),
    data = sym CORE_DATA,
    data_size = const size_of::<CoreData>(),
    core_size = const size_of::<Core>(),
    window = const layout::WINDOW_BASE as i64,
    thread = const Core::THREAD,
    root = const Core::ROOT,
    base_loaded = const Core::BASE_LOADED,
    cpu = sym CPUS,
    cpu_size = const size_of::<Cpu>(),
    entry_stack_top = const ENTRY_STACK_TOP,
    stack = sym KERNEL_STACKS,
    stack_size = const size_of::<KernelStack>(),
    stack_start = const STACK_START,
    call = const Syscall::Call as i64,
    reply_recv = const Syscall::ReplyRecv as i64,
    send = const Syscall::Send as i64,
    recv = const Syscall::Recv as i64,
    wait = const Syscall::Wait as i64,
    yields = const Syscall::Yield as i64,
    nb_send_recv = const Syscall::NBSendRecv as i64,
    on_call = sym on_call,
    on_reply_recv = sym on_reply_recv,
    on_send = sym on_send,
    on_recv = sym on_recv,
    on_wait = sym on_wait,
    on_yield = sym on_yield,
    on_nb_send_recv = sym on_nb_send_recv,
    on_system_call = sym on_system_call,
    on_vector = sym on_vector,
    on_kernel_vector = sym on_kernel_vector,
    user_code = const USER_CODE,
    user_data = const USER_DATA,
    msr_fs_base = const Msr::FsBase as u32,
    msr_gs_base = const Msr::GsBase as u32,
    pointer = const kind::POINTER,
    thread_in_rax = const in_object::<Tcb>(number::RAX, 0),
    thread_in_rdi = const in_object::<Tcb>(number::RDI, 0),
    pushed_end_in_rsp = const in_object::<Tcb>(number::RSP, at(Register::NextIp) + 8),
    pushed_end = const at(Register::NextIp) + 8,
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
    ibrs = const ASKED.ibrs as u32,
    verw = const ASKED.verw as u32,
    control = const speculation::CONTROL,
    clear = const speculation::CLEAR,
    msr_spec_ctrl = const Msr::SpecCtrl as u32,
    kernel_control = const in_barriers(core::mem::offset_of!(Barriers, kernel_control)),
    user_control = const in_barriers(core::mem::offset_of!(Barriers, user_control)),
    segment = const in_barriers(core::mem::offset_of!(Barriers, segment)),
    at_switch = const Asked::AT_SWITCH as u32,
    ibpb = const ASKED.ibpb as u32,
    l1d = const ASKED.l1d as u32,
    rsb = const ASKED.rsb as u32,
    barrier = const speculation::BARRIER,
    flush = const speculation::FLUSH,
    fill_returns = const speculation::FILL_RETURNS,
    last_root = const in_barriers(core::mem::offset_of!(Barriers, last_root)),
    actions = const ACTIONS,
    msr_pred_cmd = const Msr::PredCmd as u32,
    msr_flush_cmd = const Msr::FlushCmd as u32,
    user_bases = const cpu::USERS_SET_BASES as u32,
    hardware_debug = const cfg!(feature = "hardware-debug") as u32,
    debug_exception = const DEBUG as u32,
    fs_base = const at(Register::FsBase),
    gs_base = const at(Register::GsBase),
    registers = const tcb::offset::REGISTERS,
    full_restore = const tcb::offset::FULL_RESTORE,
);
