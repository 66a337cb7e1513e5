//! The loader's own start, its page tables, the other cores, and the way into the kernel.
//!
//! What it does with the MMU, beside what the contract says, is other than what the kernel does itself: the kernel can rely on
//! none of it.

use core::arch::{asm, global_asm};
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::{load, Handover};

const BLOCK: u64 = 2 << 20;
const GIGABYTE: u64 = 1 << 30;
/// An entry leads to a table; is a block of normal memory, shared and accessed.
const TABLE: u64 = 3;
const MEMORY: u64 = 1 | NORMAL << 2 | 3 << 8 | 1 << 10;
/// The number of the type of normal memory: devices have the lower ones.
const NORMAL: u64 = 4;
const TYPES: u64 = 0xff << (8 * NORMAL) | 0x44 << 24 | 0x0c << 16 | 0x04 << 8;
/// 48 bits of addresses in both halves, pages of 4 KiB, tables in shared write-back memory, 40 bits of physical addresses.
const TRANSLATION: u64 = half(0) | half(16) | 2 << 30 | 2 << 32;
const fn half(at: u32) -> u64 {
    (16 | 1 << 8 | 1 << 10 | 3 << 12) << at
}

/// Room for the stack of the first core.
const STACK: usize = 64 << 10;

#[repr(C, align(4096))]
struct Table(UnsafeCell<[u64; 512]>);

// SAFETY: the first core writes it before others run.
unsafe impl Sync for Table {}

impl Table {
    const fn new() -> Self {
        Self(UnsafeCell::new([0; 512]))
    }

    fn set(&self, index: u64, entry: u64) {
        // SAFETY: as above.
        unsafe { (*self.0.get())[index as usize % 512] = entry }
    }

    fn entry(&self) -> u64 {
        self.0.get() as u64 | TABLE
    }
}

/// The lower half: this loader where it is.
static LOW: [Table; 2] = [const { Table::new() }; 2];
/// The upper half: the kernel.
static HIGH: [Table; 3] = [const { Table::new() }; 3];

/// Maps the kernel, which begins at the physical address `start`, at `to`, by blocks up to the next gigabyte, and this loader.
pub fn map_kernel(start: u64, to: u64) {
    LOW[0].set(0, LOW[1].entry());
    LOW[1].set(1, GIGABYTE | MEMORY);
    HIGH[0].set(to >> 39, HIGH[1].entry());
    HIGH[1].set(to >> 30, HIGH[2].entry());
    assert!(start % BLOCK == 0 && to % BLOCK == 0);
    let blocks = (GIGABYTE - to % GIGABYTE) / BLOCK;
    for number in 0..blocks {
        let at = number * BLOCK;
        HIGH[2].set((to + at) / BLOCK, (start + at) | MEMORY);
    }
}

/// Cores that are on their way.
static STARTED: AtomicU64 = AtomicU64::new(0);

/// Starts the other cores, as many as firmware knows, and waits until they are about to enter the kernel.
pub fn start_others(handover: &Handover) {
    const CPU_ON: u64 = 0xc400_0003;
    unsafe extern "C" {
        static reference_loader_core: u8;
    }
    // At EL2, firmware is called in another way: one core then.
    if handover.kernel_entry == 0 || was_el2() {
        return;
    }
    for number in 1..8u64 {
        let mut answer = CPU_ON;
        // SAFETY: the code of other cores, which read nothing but tables and what the kernel is told.
        unsafe {
            asm!("dsb sy", "hvc #0", inout("x0") answer, in("x1") number,
                 in("x2") &raw const reference_loader_core, in("x3") number, clobber_abi("C"));
        }
        if answer != 0 {
            return;
        }
        while STARTED.load(Ordering::Acquire) != number {
            core::hint::spin_loop();
        }
    }
}

/// Whether this was started at EL2.
fn was_el2() -> bool {
    // SAFETY: written by the entry code.
    unsafe { (&raw const STARTED_AT_EL2).read_volatile() != 0 }
}

/// From now on code that waits for an interrupt has something else: user code a system error, a virtual one, for the machine has
/// no other; or whoever it is, an exception of the kernel by `vector`. This must have been started at EL2, where it leaves the
/// code for it.
pub fn watch_waiting(vector: Option<u64>) {
    assert!(was_el2());
    let offset = vector.map_or(NO_VECTOR, |vector| vector * VECTOR_BYTES);
    // SAFETY: it changes registers of EL2 alone.
    unsafe { asm!("hvc #0", in("x0") offset, out("x9") _, options(nostack)) }
}

#[unsafe(no_mangle)]
static mut STARTED_AT_EL2: u64 = 0;

#[repr(C, align(16))]
struct Stack(UnsafeCell<[u8; STACK]>);

// SAFETY: the first core's.
unsafe impl Sync for Stack {}

static BOOT_STACK: Stack = Stack(UnsafeCell::new([0; STACK]));

pub fn stop() -> ! {
    loop {
        // SAFETY: it waits.
        unsafe { asm!("wfi", options(nomem, nostack)) }
    }
}

/// Class of a call of EL2 in ESR_EL2.
const CALL: u64 = 0x16;
/// HCR_EL2: EL1 is of 64 bits; waiting for an interrupt is told; system errors are EL2's, so that it can raise virtual ones.
const ERRORS: u64 = 1 << 31 | 1 << 13 | 1 << 5;
/// A virtual system error, until it is taken.
const ONE_ERROR: u64 = 1 << 8;
/// Bytes of a vector, and what is no offset of one.
const VECTOR_BYTES: u64 = 0x80;
const NO_VECTOR: u64 = 1;

global_asm!(
    ".global _start",
    "_start:",
    "mrs x9, CurrentEL",
    "cmp x9, #8",
    "b.ne 2f",
    // EL1 is of 64 bits, and its counters are its own.
    "mov x9, #1 << 31",
    "msr hcr_el2, x9",
    "mov x9, #3",
    "msr cnthctl_el2, x9",
    "msr cntvoff_el2, xzr",
    "adr x9, reference_loader_vectors",
    "msr vbar_el2, x9",
    "mov x9, #0x3c5",
    "msr spsr_el2, x9",
    "adr x9, 1f",
    "msr elr_el2, x9",
    "eret",
    "1: adrp x9, STARTED_AT_EL2",
    "mov x10, #1",
    "str x10, [x9, :lo12:STARTED_AT_EL2]",
    "2: mov x9, #3 << 20",
    "msr cpacr_el1, x9",
    "isb",
    "adrp x9, {stack}",
    "add x9, x9, :lo12:{stack}",
    "mov x10, #{stack_bytes}",
    "add x9, x9, x10",
    "sub x9, x9, #64",
    "mov sp, x9",
    "mov x0, sp",
    "bl {load}",
    "mov x19, sp",
    "msr tpidr_el1, xzr",
    "b 3f",

    // Another core, with its number in x0.
    ".global reference_loader_core",
    "reference_loader_core:",
    "msr tpidr_el1, x0",
    "adrp x9, {stack}",
    "add x9, x9, :lo12:{stack}",
    "mov x10, #{stack_bytes}",
    "add x9, x9, x10",
    "sub x19, x9, #64",
    "3:",
    "ldr x9, ={types}",
    "msr mair_el1, x9",
    "ldr x9, ={translation}",
    "msr tcr_el1, x9",
    "adrp x9, {low}",
    "msr ttbr0_el1, x9",
    "adrp x9, {high}",
    "msr ttbr1_el1, x9",
    "isb",
    "tlbi vmalle1",
    "ic iallu",
    "dsb sy",
    "isb",
    "mrs x9, sctlr_el1",
    "mov x10, #1 << 0 | 1 << 2",
    "orr x10, x10, #1 << 12",
    "orr x9, x9, x10",
    "msr sctlr_el1, x9",
    "isb",
    // The kernel's registers are read first: when all cores are on their way, the first goes on.
    "ldp x0, x1, [x19]",
    "ldp x2, x3, [x19, #16]",
    "ldp x4, x5, [x19, #32]",
    "ldr x9, [x19, #48]",
    "mrs x11, tpidr_el1",
    "cbz x11, 4f",
    "adrp x10, {started}",
    "add x10, x10, :lo12:{started}",
    "stlr x11, [x10]",
    "4: br x9",

    // Vectors of EL2, of which only that of exceptions of lower levels is used. A call: it is told of waiting from now on, and
    // has virtual system errors; x0 is kept. Waiting: with a vector, it is entered, as if the kernel had been interrupted
    // there; without one, a system error is raised for user code.
    ".balign 2048",
    "reference_loader_vectors:",
    ".skip 0x400",
    "mov sp, x9",
    "mrs x9, esr_el2",
    "lsr x9, x9, #26",
    "cmp x9, #{call}",
    "b.ne 5f",
    "msr tpidr_el2, x0",
    "ldr x9, ={errors}",
    "b 6f",
    "5: mrs x9, tpidr_el2",
    "cmp x9, #{no_vector}",
    "b.ne 8f",
    "mrs x9, elr_el2",
    "add x9, x9, #4",
    "msr elr_el2, x9",
    "mrs x9, spsr_el2",
    "tst x9, #0xf",
    "b.ne 7f",
    "ldr x9, ={errors} + {one}",
    "6: msr hcr_el2, x9",
    "7: mov x9, sp",
    "eret",
    "8: mrs x10, vbar_el1",
    "add x10, x10, x9",
    "mrs x9, esr_el2",
    "msr esr_el1, x9",
    "mrs x9, spsr_el2",
    "msr spsr_el1, x9",
    "mrs x9, elr_el2",
    "msr elr_el1, x9",
    "msr elr_el2, x10",
    "mov x9, #0x3c5",
    "msr spsr_el2, x9",
    "eret",
    ".ltorg",
    stack = sym BOOT_STACK,
    stack_bytes = const STACK,
    load = sym load,
    started = sym STARTED,
    low = sym LOW,
    high = sym HIGH,
    types = const TYPES,
    translation = const TRANSLATION,
    call = const CALL,
    errors = const ERRORS,
    one = const ONE_ERROR,
    no_vector = const NO_VECTOR,
);
