//! Segment and interrupt descriptors, and the stacks that the processor switches to.
//!
//! All of it lies in the trampoline: the processor reads it in the user's address space.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::mem::{offset_of, size_of};

use super::code;
#[cfg(feature = "hardware-debug")]
use crate::arch::x86_64::machine::cpu;
use crate::arch::x86_64::machine::cpu::{write_msr, Msr};
use crate::arch::x86_64::machine::vectors;
use crate::cores::{CoreId, CORES};

/// Kernel code (01, section 4.1, as the others).
pub const KERNEL_CODE: u16 = 0x08;
/// Kernel data.
pub const KERNEL_DATA: u16 = 0x10;
const TASK_STATE: u16 = 0x18;
/// User code, requested privilege level included.
pub const USER_CODE: u16 = 0x2b;
/// User data and stack.
pub const USER_DATA: u16 = 0x33;

const CODE_KERNEL: u64 = 0x00af_9b00_0000_ffff;
const DATA_KERNEL: u64 = 0x00cf_9300_0000_ffff;
const CODE_USER: u64 = 0x00af_fb00_0000_ffff;
const DATA_USER: u64 = 0x00cf_f300_0000_ffff;

/// Number of 8-byte descriptors: null, kernel code and data, task state (two), user code and
/// data, and the two data segments that stand for FS and GS. All bases are 0.
const DESCRIPTORS: usize = 9;
const TASK_STATE_INDEX: usize = TASK_STATE as usize / 8;

/// Vectors.
const VECTORS: usize = 256;
/// Bytes between the entry points of two vectors.
pub const ENTRY_STRIDE: u64 = 8;

/// Exceptions that may strike where the stack pointer is the user's or about to change: they have
/// stacks of their own.
pub const DEBUG: usize = 1;
const NON_MASKABLE: usize = vectors::NON_MASKABLE as usize;
const DOUBLE_FAULT: usize = 8;
const MACHINE_CHECK: usize = vectors::MACHINE_CHECK as usize;
/// INT3 is the one exception that users may raise by its number (05, section 2.3).
const BREAKPOINT: usize = 3;
/// First vector that users may raise by its number (05, section 2.2).
pub const FIRST_SOFTWARE: usize = if CORES > 1 { 160 } else { 158 };

/// Words of an entry stack: the largest frame has seven, and the entry code pushes one more.
const STACK_WORDS: usize = 32;

#[repr(C, align(16))]
#[derive(Clone, Copy)]
struct Stack([u64; STACK_WORDS]);

impl Stack {
    const NEW: Stack = Stack([0; STACK_WORDS]);
}

/// The 64-bit task-state segment: where the processor finds its stacks.
#[repr(C, packed(4))]
struct TaskState {
    reserved0: u32,
    /// Stacks for entries to levels 0 to 2.
    privileged: [u64; 3],
    reserved1: u64,
    /// Stacks for gates that ask for one.
    interrupt: [u64; 7],
    reserved2: u64,
    reserved3: u16,
    /// Beyond the segment's limit: no I/O permission map, so user I/O instructions trap.
    io_map: u16,
}

const _: () = assert!(size_of::<TaskState>() == 104);

#[repr(C)]
#[derive(Clone, Copy)]
struct Gate {
    low: u64,
    high: u64,
}

impl Gate {
    const ABSENT: Gate = Gate { low: 0, high: 0 };

    /// An interrupt gate (interrupts off inside) to `address`, with stack `stack` of the
    /// interrupt stacks, 1 to 7, or 0 for none; `user` if users may raise it by its number.
    fn new(address: u64, stack: u64, user: bool) -> Gate {
        const PRESENT_INTERRUPT_GATE: u64 = 0x8e00 << 32;
        let level = if user { 3 << 45 } else { 0 };
        Gate {
            low: (address & 0xffff)
                | u64::from(KERNEL_CODE) << 16
                | stack << 32
                | PRESENT_INTERRUPT_GATE
                | level
                | (address >> 16 & 0xffff) << 48,
            high: address >> 32,
        }
    }
}

/// What the processor reads on entry from user level, one page besides the gates.
#[repr(C, align(4096))]
struct Tables {
    gates: [Gate; VECTORS],
    segments: [u64; DESCRIPTORS],
    task: TaskState,
    entry: Stack,
    debug: Stack,
    non_maskable: Stack,
    double_fault: Stack,
    machine_check: Stack,
}

const _: () = assert!(size_of::<Tables>() == 8192);

/// The tables of one core.
#[repr(transparent)]
pub struct Cpu(UnsafeCell<Tables>);

// SAFETY: written by its own core in `init`, before that runs anything else; later only the processor
// and the entry code write the stacks inside.
unsafe impl Sync for Cpu {}

/// In the trampoline (linker script).
#[unsafe(link_section = ".trampoline.data")]
pub static CPUS: [Cpu; CORES] = [const { Cpu::new() }; CORES];

impl Cpu {
    const fn new() -> Cpu {
        Cpu(UnsafeCell::new(Tables {
            gates: [Gate::ABSENT; VECTORS],
            segments: [0; DESCRIPTORS],
            task: TaskState {
                reserved0: 0,
                privileged: [0; 3],
                reserved1: 0,
                interrupt: [0; 7],
                reserved2: 0,
                reserved3: 0,
                io_map: size_of::<TaskState>() as u16,
            },
            entry: Stack::NEW,
            debug: Stack::NEW,
            non_maskable: Stack::NEW,
            double_fault: Stack::NEW,
            machine_check: Stack::NEW,
        }))
    }
}

/// Offset in a [`Cpu`] of the end of the stack that entries from user level use.
pub const ENTRY_STACK_TOP: usize = offset_of!(Tables, entry) + size_of::<Stack>();

/// Operand of LGDT and LIDT.
#[repr(C, packed)]
struct Pointer {
    limit: u16,
    base: u64,
}

/// STAR: SYSCALL enters with the kernel's segments, SYSRET leaves with data 0x33 and code 0x3b
/// (01, section 4.1).
const STAR: u64 = (USER_CODE as u64) << 48 | (KERNEL_CODE as u64) << 32;
/// Flags that SYSCALL clears: interrupts and single steps (the ABI's), string direction (Rust's),
/// alignment checks, and nested task, with which IRET would fail.
const FMASK: u64 = 0x200 | 0x100 | 0x400 | 0x4_0000 | 0x4000;

/// Builds and loads the tables of `core`, which executes this, and directs its system calls to its
/// entry code.
pub fn init(core: CoreId) {
    let tables = CPUS[core.index()].0.get();
    // SAFETY: called once on each core, for itself, before any of its gates is used, so the exclusive
    // borrow is alone; the static is initialised.
    let tables = unsafe { &mut *tables };
    fill(core, tables);
    load(core, tables);
}

/// The stack of the debug exception's gate. A processor can delay it past the instruction that enters the kernel, when the
/// stack pointer is still the user's: so it has one of its own. One that raises it twice instead would lose the first of
/// two frames there; it delays none.
fn debug_stack() -> u64 {
    #[cfg(feature = "hardware-debug")]
    if cpu::is_emulated() {
        return 0;
    }
    1
}

/// Says where the entries and the stacks of `core` are.
fn fill(core: CoreId, tables: &mut Tables) {
    tables.task.privileged[0] = stack_top(&tables.entry);
    tables.task.interrupt = [
        stack_top(&tables.debug),
        stack_top(&tables.non_maskable),
        stack_top(&tables.double_fault),
        stack_top(&tables.machine_check),
        0,
        0,
        0,
    ];
    for (vector, gate) in tables.gates.iter_mut().enumerate() {
        let address = code::first_vector(core).wrapping_add(vector as u64 * ENTRY_STRIDE);
        let stack = match vector {
            DEBUG => debug_stack(),
            NON_MASKABLE => 2,
            DOUBLE_FAULT => 3,
            MACHINE_CHECK => 4,
            _ => 0,
        };
        *gate = Gate::new(
            address,
            stack,
            vector == BREAKPOINT || vector >= FIRST_SOFTWARE,
        );
    }
    let task = &raw const tables.task as u64;
    let [low, high] = task_state_descriptor(task);
    tables.segments = [
        0,
        CODE_KERNEL,
        DATA_KERNEL,
        low,
        high,
        CODE_USER,
        DATA_USER,
        DATA_USER,
        DATA_USER,
    ];
    const { assert!(TASK_STATE_INDEX == 3) };
}

/// Makes `core`, which executes this, use its tables, and the entries for system calls.
fn load(core: CoreId, tables: &'static Tables) {
    let segments = pointer(&tables.segments);
    let gates = pointer(&tables.gates);
    // SAFETY: the tables are complete and live for ever. Code and stack segments keep their
    // meaning; the return pushes the new code selector for the far return that loads it.
    unsafe {
        asm!(
            "lgdt [{segments}]",
            "lidt [{gates}]",
            "ltr {task:x}",
            "mov ss, {data:e}",
            "mov ds, {zero:e}",
            "mov es, {zero:e}",
            "mov fs, {zero:e}",
            "mov gs, {zero:e}",
            "push {code}",
            "lea {scratch}, [rip + 2f]",
            "push {scratch}",
            "retfq",
            "2:",
            segments = in(reg) &raw const segments,
            gates = in(reg) &raw const gates,
            task = in(reg) u32::from(TASK_STATE),
            data = in(reg) u32::from(KERNEL_DATA),
            zero = in(reg) 0,
            code = in(reg) u64::from(KERNEL_CODE),
            scratch = out(reg) _,
        );
        // A reset leaves one of 64 KiB at address 0, where users may put descriptors and gates.
        asm!("lldt {null:x}", null = in(reg) 0);
        write_msr(Msr::Star, STAR);
        write_msr(Msr::Lstar, code::system_call(core));
        // From code of 32 bits, for which there is no segment: some processors come here then.
        write_msr(Msr::Cstar, code::system_call(core));
        write_msr(Msr::Fmask, FMASK);
    }
}

fn stack_top(stack: *const Stack) -> u64 {
    (stack as u64).wrapping_add(size_of::<Stack>() as u64)
}

fn pointer<T>(table: &T) -> Pointer {
    Pointer {
        limit: (size_of::<T>() - 1) as u16,
        base: &raw const *table as u64,
    }
}

/// The two words of the descriptor of an available 64-bit task-state segment at `base`.
fn task_state_descriptor(base: u64) -> [u64; 2] {
    let limit = size_of::<TaskState>() as u64 - 1;
    [
        limit | (base & 0xff_ffff) << 16 | 0x89 << 40 | (base >> 24 & 0xff) << 56,
        base >> 32,
    ]
}
