//! x86_64.

use core::arch::global_asm;

pub use sandglass::abi::context::x86_64 as order;
use sandglass::cap::ObjectType;
use sandglass::{boot, SetupError};

use crate::lab::{single, Cost, Lab};

/// Registers of the user context that a system call keeps, in which the programs have what they need for the next: its
/// capability, message information and number.
pub const KEPT_CAP: usize = order::RBX;
pub const KEPT_INFO: usize = order::RBP;
pub const KEPT_NUMBER: usize = order::RAX;

/// Further types of objects.
pub const TYPES: [(&str, ObjectType); 5] = [
    ("page-directory", ObjectType::PageDirectory),
    ("pdpt", ObjectType::Pdpt),
    ("pml4", ObjectType::Pml4),
    ("large-page", ObjectType::LargePage),
    ("huge-page", ObjectType::HugePage),
];

global_asm!(
    // The measurement begins.
    ".globl bounds_begin",
    "bounds_begin:",
    "ret",
    // It ends.
    ".globl bounds_end",
    "bounds_end:",
    "ret",
    // A system call with the registers that the thread was given; then nothing any more, since
    // nobody handles the fault.
    "bounds_once:",
    "syscall",
    "ud2",
    // The same, and the measurement begins right before it.
    ".globl bounds_begin_once",
    "bounds_begin_once:",
    "nop",
    "syscall",
    "ud2",
    // A system call, and then another that the other registers name; the measurement begins right
    // before that.
    "bounds_relay:",
    "syscall",
    "mov rdi, rbx",
    "mov rsi, rbp",
    "mov rdx, rax",
    ".globl bounds_begin_relay",
    "bounds_begin_relay:",
    "nop",
    "syscall",
    "ud2",
    // The same system call for ever.
    "bounds_repeat:",
    "mov rdi, rbx",
    "mov rsi, rbp",
    "syscall",
    "jmp bounds_repeat",
    // Nothing for ever; where the measurement begins with it, before that.
    ".globl bounds_begin_spin",
    "bounds_begin_spin:",
    "nop",
    "bounds_spin:",
    "jmp bounds_spin",
);

/// Nearly all I/O ports at once: those below have owners.
pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    const FIRST: u16 = 0x0800;
    const COUNT: u64 = (u16::MAX - FIRST) as u64 + 1;
    let slot = lab.process.resources.allocate_slot()?;
    for _ in 0..2 {
        single("io-ports-issue", COUNT, Cost::First, || {
            boot::IO_PORT_CONTROL.issue(FIRST, u16::MAX, slot)
        })?;
        single("io-ports-delete", COUNT, Cost::Stretch, || slot.delete())?;
    }
    lab.process.resources.free_slot(slot);
    Ok(())
}
