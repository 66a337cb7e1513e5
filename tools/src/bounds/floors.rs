//! What operations are known to cost at least: arrangements that were found must not be lost.
//!
//! The figures are those of a review of the kernel that measured arrangements of its own, when they
//! exceeded the table by 34 to 58 % (cancellation), 21 to 57 % (deletion) and 74 % (new objects). A row
//! below its floor means that the arrangement is not made any more as it was meant, or that the kernel
//! has become so much quicker that the floor is to be lowered.

/// The least that an operation costs at a size, in instructions.
pub struct Floor {
    pub name: &'static str,
    pub size: u64,
    pub cost: u64,
}

const fn floor(name: &'static str, size: u64, cost: u64) -> Floor {
    Floor { name, size, cost }
}

pub const FLOORS: &[Floor] = &[
    floor("cancel-badged-sends", 10, 2_531),
    floor("cancel-badged-sends", 1_000, 3_695),
    floor("cancel-badged-sends", 100_000, 5_210),
    floor("endpoint-delete-senders", 10, 4_235),
    floor("endpoint-delete-senders", 1_000, 5_499),
    floor("endpoint-delete-senders", 100_000, 5_868),
    floor("endpoint-delete-receivers", 10, 4_323),
    floor("endpoint-delete-receivers", 1_000, 5_413),
    floor("endpoint-delete-receivers", 100_000, 5_739),
    floor("retype-tcb", 256, 6_538),
];
