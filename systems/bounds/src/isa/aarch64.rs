//! aarch64.

use core::arch::global_asm;

pub use sandglass::abi::context::aarch64 as order;
use sandglass::abi::invocation::aarch64 as label;
use sandglass::abi::message::MessageInfo;
use sandglass::cap::{Attributes, Capability, FrameSize, ObjectType, Rights};
use sandglass::{sys, SetupError};

use crate::lab::{single, Cost, Lab};

/// Registers of the user context that a system call keeps, in which the programs have what they need for the next: its
/// capability, message information and number.
pub const KEPT_CAP: usize = order::X19;
pub const KEPT_INFO: usize = order::X20;
pub const KEPT_NUMBER: usize = order::X21;

/// Further types of objects: tables of all levels below the root are page tables.
pub const TYPES: [(&str, ObjectType); 3] = [
    ("vspace", ObjectType::Pml4),
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
    "svc #0",
    "udf #0",
    // The same, and the measurement begins right before it.
    ".globl bounds_begin_once",
    "bounds_begin_once:",
    "nop",
    "svc #0",
    "udf #0",
    // A system call, and then another that the other registers name; the measurement begins right
    // before that.
    "bounds_relay:",
    "svc #0",
    "mov x0, x19",
    "mov x1, x20",
    "mov x7, x21",
    ".globl bounds_begin_relay",
    "bounds_begin_relay:",
    "nop",
    "svc #0",
    "udf #0",
    // The same system call for ever.
    "bounds_repeat:",
    "mov x0, x19",
    "mov x1, x20",
    "svc #0",
    "b bounds_repeat",
    // Nothing for ever; where the measurement begins with it, before that.
    ".globl bounds_begin_spin",
    "bounds_begin_spin:",
    "nop",
    "bounds_spin:",
    "b bounds_spin",
);

/// Maintenance of the caches of the largest frame that every machine has memory for (ABI 07, section 9).
const MAINTENANCE: [(&str, u64); 4] = [
    ("page-clean", label::PAGE_CLEAN_DATA),
    ("page-invalidate", label::PAGE_INVALIDATE_DATA),
    ("page-clean-invalidate", label::PAGE_CLEAN_INVALIDATE_DATA),
    ("page-unify", label::PAGE_UNIFY_INSTRUCTION),
];

/// Caches of a whole page, and of a page but for a byte at each of its ends, so that its first and its last line are not
/// whole.
pub fn measure(lab: &mut Lab) -> Result<(), SetupError> {
    const SIZE: FrameSize = FrameSize::Large;
    let process = &mut lab.process;
    let frame = process.resources.frame(SIZE)?;
    process.space.map_frame(
        &mut process.resources,
        frame,
        SIZE,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    )?;
    for (name, label) in MAINTENANCE {
        for (first, last) in [(0, SIZE.bytes()), (1, SIZE.bytes() - 1)] {
            let info = MessageInfo::new(label, 0, 0, 2);
            let answer = single(name, SIZE.bytes(), Cost::Stretch, || {
                sys::call(frame.cptr().raw(), info, [first, last, 0, 0])
            });
            assert!(answer.info.label() == 0, "{name}: refused");
        }
    }
    frame.unmap()?;
    lab.process.resources.delete(frame)
}
