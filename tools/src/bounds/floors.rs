//! What operations are known to cost at least: arrangements that were found must not be lost.
//!
//! The operations are those of a review of the kernel that measured arrangements of its own, when they
//! exceeded the table by 34 to 58 % (cancellation), 21 to 57 % (deletion) and 74 % (new objects); the figures are
//! of what `bounds --search` found when queues were balanced trees, in the kernel of today. A row below its floor means
//! that the arrangement is not made any more as it was meant, or that the kernel has become so much quicker that the floor
//! is to be lowered.

use crate::arch::Arch;

/// The least that an operation costs at a size, in instructions.
pub struct Floor {
    pub name: &'static str,
    pub size: u64,
    pub cost: u64,
}

const fn floor(name: &'static str, size: u64, cost: u64) -> Floor {
    Floor { name, size, cost }
}

/// Of operations on an architecture.
pub const fn of(arch: Arch) -> &'static [Floor] {
    match arch {
        Arch::X86_64 => X86_64,
        Arch::Aarch64 => AARCH64,
    }
}

const X86_64: &[Floor] = &[
    floor("cancel-badged-sends", 10, 690),
    floor("cancel-badged-sends", 1_000, 695),
    floor("endpoint-delete-senders", 10, 687),
    floor("endpoint-delete-senders", 1_000, 687),
    floor("endpoint-delete-receivers", 10, 691),
    floor("endpoint-delete-receivers", 1_000, 691),
    floor("retype-tcb", 256, 1_478),
];

/// 95 % of what was measured when the arrangements were made there, or when the kernel became quicker at them.
const AARCH64: &[Floor] = &[
    floor("cancel-badged-sends", 10, 556),
    floor("cancel-badged-sends", 1_000, 561),
    floor("endpoint-delete-senders", 10, 614),
    floor("endpoint-delete-senders", 1_000, 614),
    floor("endpoint-delete-receivers", 10, 617),
    floor("endpoint-delete-receivers", 1_000, 617),
    floor("nb-send-recv-fragmented-budgets", 8, 4_381),
    floor("nb-send-recv-fragmented-budgets", 64, 10_321),
    floor("retype-tcb", 256, 1_764),
];
