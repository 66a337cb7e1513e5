//! From the loader to Rust. What the loader tells is read by [`super::loader`].
//!
//! A loader enters in 32-bit protected mode without paging, with EBX at its structure:
//!
//! - by PVH's direct boot (the x86/HVM direct boot ABI of Xen) at the address of the ELF note of
//!   type 18; QEMU's `-kernel` does so for ELF files with the note;
//! - by Multiboot2 at the ELF file's entry, with a magic number in EAX. Boot loaders look for the
//!   header in the first 32 KiB of the file (Multiboot2 specification, section 3.1).

use core::arch::global_asm;

use super::handlers::{KERNEL_STACKS, STACK_START};
use super::start::start;
use crate::arch::x86_64::machine::layout::{
    KERNEL_BASE, KERNEL_PDPT_ENTRY, KERNEL_SLOT, WINDOW_PAGES,
};
use crate::arch::x86_64::machine::paging::{
    HUGE_PAGE_FLAGS, KERNEL_PDPT, KERNEL_PML4, TABLE_FLAGS,
};

/// Status with which the kernel refuses a machine (as other refusals at boot).
const REFUSED: u8 = 1;

/// Magic number of a Multiboot2 header.
const MULTIBOOT2_HEADER: u32 = 0xe852_50d6;

const CPUID_LONG_MODE: u32 = 29;
const CPUID_HUGE_PAGES: u32 = 26;

const EFER_LONG_MODE_AND_SYSCALL: u32 = 1 << 8 | 1;
pub const CR4_PAE: u32 = 1 << 5;
/// Paging, write protection, protected mode.
pub const CR0_PAGING: u32 = 1 << 31 | 1 << 16 | 1;

global_asm!(
    ".section .note.Xen, \"a\", @note",
    ".balign 4",
    ".long 4",
    ".long 8",
    ".long 18",
    ".asciz \"Xen\"",
    ".quad pvh_entry_physical",
    ".balign 4",

    // Tags are optional (flag 1) or not; each begins at a multiple of 8 bytes.
    ".section .multiboot2, \"a\", @progbits",
    ".balign 8",
    "multiboot2_header:",
    ".long {multiboot2_header}, 0, multiboot2_end - multiboot2_header",
    ".long 0 - {multiboot2_header} - (multiboot2_end - multiboot2_header)",
    // A framebuffer, if there can be one, best of a size that is legible everywhere and quickly
    // cleared: width, height, and bits per pixel.
    ".word 5, 1",
    ".long 20, 1024, 768, 32, 0",
    // Modules at page boundaries.
    ".word 6, 0",
    ".long 8",
    // The end.
    ".word 0, 0",
    ".long 8",
    "multiboot2_end:",

    ".section .text.pvh, \"ax\", @progbits",
    ".code32",
    ".global multiboot2_entry",
    ".type multiboot2_entry, @function",
    "multiboot2_entry:",
    "mov ebp, eax",
    "jmp pvh_common",
    ".size multiboot2_entry, . - multiboot2_entry",

    ".global pvh_entry",
    ".type pvh_entry, @function",
    "pvh_entry:",
    "xor ebp, ebp",
    "pvh_common:",
    "cli",
    "cld",
    "mov esp, offset {stack} + {stack_start} + {to_physical}",
    // No flag, of which a loader may leave any but two: IRET would fail with that of a nested task.
    "push 2",
    "popfd",
    "mov esi, ebx",

    // What the kernel cannot do without. SYSCALL comes with long mode; Intel's processors deny it outside of that
    // (Intel's manual, volume 2, CPUID, leaf 0x80000001).
    "mov eax, 0x80000000",
    "cpuid",
    "mov edi, offset pvh_no_long_mode + {to_physical}",
    "cmp eax, 0x80000001",
    "jb pvh_refuse",
    "mov eax, 0x80000001",
    "cpuid",
    "bt edx, {long_mode}",
    "jnc pvh_refuse",
    "mov edi, offset pvh_no_huge_pages + {to_physical}",
    "bt edx, {huge_pages}",
    "jnc pvh_refuse",

    // The window, and the image at its end; the same tables map low memory until the jump.
    "mov edi, offset {pdpt} + {to_physical}",
    "mov eax, {huge_page_flags}",
    "xor edx, edx",
    "mov ecx, {window_pages}",
    "pvh_fill_window:",
    "mov [edi], eax",
    "mov [edi + 4], edx",
    "add edi, 8",
    "add eax, 1 << 30",
    "adc edx, 0",
    "dec ecx",
    "jnz pvh_fill_window",
    "mov dword ptr [{pdpt} + 8 * {image} + {to_physical}], {huge_page_flags}",
    "mov eax, offset {pdpt} + {table_flags} + {to_physical}",
    "mov dword ptr [{pml4} + {to_physical}], eax",
    "mov dword ptr [{pml4} + 8 * {slot} + {to_physical}], eax",

    "mov eax, {pae}",
    "mov cr4, eax",
    "mov eax, offset {pml4} + {to_physical}",
    "mov cr3, eax",
    "mov ecx, 0xc0000080",
    "rdmsr",
    "or eax, {efer}",
    "wrmsr",
    "mov eax, cr0",
    "or eax, {paging}",
    "mov cr0, eax",
    "lgdt [pvh_descriptor_table + {to_physical}]",
    "push 8",
    "mov eax, offset pvh_long_mode + {to_physical}",
    "push eax",
    "retf",

    // Prints the string at EDI and stops.
    "pvh_refuse:",
    "mov al, [edi]",
    "inc edi",
    "test al, al",
    "jz pvh_stop",
    "mov dx, 0x3f8",
    "out dx, al",
    "jmp pvh_refuse",
    "pvh_stop:",
    "mov al, {refused}",
    "out 0xf4, al",
    "pvh_stopped:",
    "cli",
    "hlt",
    "jmp pvh_stopped",

    ".code64",
    "pvh_long_mode:",
    "mov eax, 16",
    "mov ss, eax",
    "mov rsp, offset {stack} + {stack_start}",
    "mov edi, esi",
    "mov esi, ebp",
    // Out of low memory, which is about to be unmapped.
    "mov rax, offset pvh_high",
    "push rax",
    "ret",
    "pvh_high:",
    "jmp {start}",
    ".size pvh_entry, . - pvh_entry",

    ".section .rodata.pvh, \"a\", @progbits",
    "pvh_no_long_mode: .asciz \"Sandglass needs a processor with long mode\\r\\n\"",
    "pvh_no_huge_pages: .asciz \"Sandglass needs a processor with 1 GiB pages (pdpe1gb)\\r\\n\"",
    ".balign 8",
    "pvh_descriptors:",
    ".quad 0",
    ".quad 0x00af9b000000ffff",
    ".quad 0x00cf93000000ffff",
    "pvh_descriptor_table:",
    ".word 23",
    ".long pvh_descriptors + {to_physical}",
    ".text",

    to_physical = const KERNEL_BASE.wrapping_neg(),
    stack = sym KERNEL_STACKS,
    stack_start = const STACK_START,
    pml4 = sym KERNEL_PML4,
    pdpt = sym KERNEL_PDPT,
    start = sym start,
    image = const KERNEL_PDPT_ENTRY,
    slot = const KERNEL_SLOT,
    window_pages = const WINDOW_PAGES,
    huge_page_flags = const HUGE_PAGE_FLAGS,
    table_flags = const TABLE_FLAGS,
    long_mode = const CPUID_LONG_MODE,
    huge_pages = const CPUID_HUGE_PAGES,
    efer = const EFER_LONG_MODE_AND_SYSCALL,
    pae = const CR4_PAE,
    paging = const CR0_PAGING as i32,
    refused = const REFUSED,
    multiboot2_header = const MULTIBOOT2_HEADER,
);
