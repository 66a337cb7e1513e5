//! From the loader to Rust, by the boot protocol of Linux for aarch64: a flat image with a header, anywhere in memory at a
//! page boundary, entered at its beginning with the physical address of the device tree in x0, with the MMU off, at EL2 or
//! EL1.
//!
//! Until the MMU is on, code runs where it was loaded, and its stores go past the caches. What it has stored in is
//! invalidated there afterwards, lest something older be found.

use core::arch::global_asm;
use core::mem::size_of;

use super::cores;
use super::handlers::{KernelStack, KERNEL_STACKS};
use super::start::start;
use crate::arch::aarch64::machine::layout::{IMAGE_ENTRY, KERNEL_ENTRY, TREE_ENTRY};
use crate::arch::aarch64::machine::paging::{
    CODE, CONSTANTS, CONTROL, DATA, IMAGE_PAGES, IS_BLOCK, IS_PAGE, KERNEL_BLOCKS, KERNEL_ROOT,
    MEMORY_TYPES, START_HUGE, START_ROOT, TABLE,
};

/// Flags of the header: little-endian, pages of 4 KiB, anywhere in physical memory.
const IMAGE_FLAGS: u64 = 1 << 1 | 1 << 3;

/// Bits of SCTLR_EL1 that are one.
const CONTROL_ONES: u64 = 0x30d0_0800;
/// MMU, caches of data and of instructions.
const MMU_AND_CACHES: u64 = 1 | 1 << 2 | 1 << 12;
/// What user code may do (07, section 2): maintain caches by address (UCI), read CTR_EL0 (UCT), zero lines (DZE), and wait
/// for interrupts and events (nTWI, nTWE), on its own time. Neither its accesses nor its stack pointer need be aligned.
const USER_MAY: u64 = 1 << 26 | 1 << 15 | 1 << 14 | 1 << 16 | 1 << 18;

/// An entry that is not global: of the first address space, which is left after the start.
const NOT_GLOBAL: u64 = 1 << 11;

global_asm!(
    ".section .head.text, \"ax\", @progbits",
    ".global sandglass_image",
    "sandglass_image:",
    "b sandglass_start",
    ".long 0",
    // Offset from a multiple of 2 MiB; bytes in memory; flags.
    ".quad 0",
    ".quad image_bytes",
    ".quad {flags}",
    ".quad 0, 0, 0",
    ".ascii \"ARM\\x64\"",
    ".long 0",

    ".type sandglass_start, @function",
    "sandglass_start:",
    "mov x19, x0",
    "bl sandglass_to_el1",
    "adrp x1, bss_start",
    "adrp x2, kernel_end",
    "2: stp xzr, xzr, [x1], #16",
    "cmp x1, x2",
    "b.lo 2b",

    // The image, page by page: code, constants, data.
    "adrp x20, sandglass_image",
    "adrp x3, {image_pages}",
    "add x3, x3, :lo12:{image_pages}",
    "mov x4, x20",
    "adrp x5, rodata_start",
    "ldr x6, ={code}",
    "bl sandglass_pages",
    "adrp x5, data_start",
    "ldr x6, ={constants}",
    "bl sandglass_pages",
    "adrp x5, kernel_end",
    "ldr x6, ={data}",
    "bl sandglass_pages",
    "adrp x3, {kernel_blocks}",
    "adrp x4, {image_pages}",
    "orr x4, x4, #{table}",
    "str x4, [x3, #8 * {image_entry}]",

    // The device tree, if there is one: the block in which it begins, and the next if it is long.
    "cbz x19, 3f",
    "ldr w5, [x19, #4]",
    "rev w5, w5",
    "add x5, x19, x5",
    "sub x5, x5, #1",
    "lsr x5, x5, #21",
    "lsr x4, x19, #21",
    "ldr x6, ={data_block}",
    "orr x7, x6, x4, lsl #21",
    "str x7, [x3, #8 * {tree_entry}]",
    "cmp x4, x5",
    "b.hs 3f",
    "add x4, x4, #1",
    "orr x7, x6, x4, lsl #21",
    "str x7, [x3, #8 * {tree_entry} + 8]",
    "3:",
    "adrp x4, {kernel_root}",
    "orr x3, x3, #{table}",
    "str x3, [x4, #8 * {kernel_entry}]",

    // The gigabyte of the image where it is, for the code that turns the MMU on.
    "adrp x3, {start_root}",
    "adrp x4, {start_huge}",
    "orr x5, x4, #{table}",
    "ubfx x6, x20, #39, #9",
    "str x5, [x3, x6, lsl #3]",
    "lsr x6, x20, #30",
    "ldr x7, ={start_block}",
    "orr x7, x7, x6, lsl #30",
    "and x6, x6, #0x1ff",
    "str x7, [x4, x6, lsl #3]",

    // What was stored is in memory before it is invalidated in the caches, and that is done before the MMU is on.
    "dsb sy",
    "mrs x3, ctr_el0",
    "ubfx x3, x3, #16, #4",
    "mov x4, #4",
    "lsl x3, x4, x3",
    "adrp x1, bss_start",
    "4: dc ivac, x1",
    "add x1, x1, x3",
    "cmp x1, x2",
    "b.lo 4b",
    "dsb sy",
    "ldr x21, =sandglass_high",
    "b sandglass_mmu_on",

    // Where it was linked.
    "sandglass_high:",
    "adrp x9, {stacks} + {stack_size}",
    "mov sp, x9",
    "mov x0, x19",
    "mov x1, x20",
    "b {start}",
    ".size sandglass_start, . - sandglass_start",

    // A further core, with its number in x0.
    ".global sandglass_core_start",
    ".type sandglass_core_start, @function",
    "sandglass_core_start:",
    "mov x19, x0",
    "bl sandglass_to_el1",
    "ldr x21, =sandglass_core_high",
    "b sandglass_mmu_on",
    "sandglass_core_high:",
    "adrp x9, {stacks} + {stack_size}",
    "mov x10, #{stack_size}",
    "madd x9, x19, x10, x9",
    "mov sp, x9",
    "mov x0, x19",
    "b {begin}",
    ".size sandglass_core_start, . - sandglass_core_start",

    // Writes entries for the pages from x4 to x5 with the attributes in x6 from the address x3 on.
    ".type sandglass_pages, @function",
    "sandglass_pages:",
    "cmp x4, x5",
    "b.hs 2f",
    "orr x7, x4, x6",
    "str x7, [x3], #8",
    "add x4, x4, #4096",
    "b sandglass_pages",
    "2: ret",
    ".size sandglass_pages, . - sandglass_pages",

    // To EL1, with everything masked and its MMU off, and nothing trapped or shifted by EL2.
    ".type sandglass_to_el1, @function",
    "sandglass_to_el1:",
    "msr daifset, #0xf",
    "ldr x1, ={control_off}",
    "mrs x0, CurrentEL",
    "cmp x0, #8",
    "b.eq 2f",
    "msr sctlr_el1, x1",
    "msr spsel, #1",
    "isb",
    "ret",
    "2:",
    "msr sctlr_el1, x1",
    // EL1 is of 64 bits.
    "mov x0, #1 << 31",
    "msr hcr_el2, x0",
    // Counter and timer are EL1's, and the virtual counter is the physical one.
    "mov x0, #3",
    "msr cnthctl_el2, x0",
    "msr cntvoff_el2, xzr",
    // FPU and performance counters are not trapped.
    "mov x0, #0x33ff",
    "msr cptr_el2, x0",
    "msr hstr_el2, xzr",
    "mrs x0, mdcr_el2",
    "and x0, x0, #0x1f",
    "msr mdcr_el2, x0",
    "mrs x0, midr_el1",
    "msr vpidr_el2, x0",
    "mrs x0, mpidr_el1",
    "msr vmpidr_el2, x0",
    "msr vttbr_el2, xzr",
    // System registers of a GICv3 are EL1's, too.
    "mrs x0, id_aa64pfr0_el1",
    "ubfx x0, x0, #24, #4",
    "cbz x0, 3f",
    "mrs x0, s3_4_c12_c9_5",
    "mov x1, #9",
    "orr x0, x0, x1",
    "msr s3_4_c12_c9_5, x0",
    "isb",
    "mrs x0, s3_4_c12_c9_5",
    "tbz x0, #0, 3f",
    "msr s3_4_c12_c11_0, xzr",
    "3:",
    "mov x0, #0x3c5",
    "msr spsr_el2, x0",
    "msr elr_el2, x30",
    "isb",
    "eret",
    ".size sandglass_to_el1, . - sandglass_to_el1",

    // Turns the MMU on, and goes to the address in x21.
    ".type sandglass_mmu_on, @function",
    "sandglass_mmu_on:",
    "adrp x0, {start_root}",
    "msr ttbr0_el1, x0",
    "adrp x0, {kernel_root}",
    "msr ttbr1_el1, x0",
    "ldr x0, ={memory_types}",
    "msr mair_el1, x0",
    // Physical addresses have as many bits as the processor has, up to 48.
    "ldr x0, ={translation}",
    "mrs x1, id_aa64mmfr0_el1",
    "and x1, x1, #0xf",
    "mov x2, #5",
    "cmp x1, x2",
    "csel x1, x1, x2, lo",
    "bfi x0, x1, #32, #3",
    "msr tcr_el1, x0",
    // Nothing that was translated or fetched before is left; all this counts before the MMU is on.
    "isb",
    "tlbi vmalle1",
    "ic iallu",
    "dsb nsh",
    "isb",
    "ldr x0, ={control_on}",
    "msr sctlr_el1, x0",
    "isb",
    "br x21",
    ".size sandglass_mmu_on, . - sandglass_mmu_on",
    ".ltorg",
    ".text",

    flags = const IMAGE_FLAGS,
    image_pages = sym IMAGE_PAGES,
    kernel_blocks = sym KERNEL_BLOCKS,
    kernel_root = sym KERNEL_ROOT,
    start_root = sym START_ROOT,
    start_huge = sym START_HUGE,
    table = const TABLE,
    code = const CODE | IS_PAGE,
    constants = const CONSTANTS | IS_PAGE,
    data = const DATA | IS_PAGE,
    data_block = const DATA | IS_BLOCK,
    start_block = const CODE | NOT_GLOBAL | IS_BLOCK,
    image_entry = const IMAGE_ENTRY,
    tree_entry = const TREE_ENTRY,
    kernel_entry = const KERNEL_ENTRY,
    memory_types = const MEMORY_TYPES,
    translation = const CONTROL,
    control_off = const CONTROL_ONES,
    control_on = const CONTROL_ONES | MMU_AND_CACHES | USER_MAY,
    stacks = sym KERNEL_STACKS,
    stack_size = const size_of::<KernelStack>(),
    start = sym start,
    begin = sym cores::begin,
);
