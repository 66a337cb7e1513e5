//! Scheduling constants (ABI 04, sections 1 and 2; ABI 03, section 6.1).

/// Published worst-case execution time of a kernel path, µs.
pub const KERNEL_WCET_US: u64 = 10;
/// Smallest budget and period, µs.
pub const MIN_BUDGET_US: u64 = 2 * KERNEL_WCET_US;
const _: () = assert!(MIN_BUDGET_US == 20);

/// Bytes at the start of a scheduling context object that hold no refills.
pub const CONTEXT_CORE_SIZE: u64 = 96;
/// Bytes of one refill.
pub const REFILL_SIZE: u64 = 16;
/// Refills that every configured context has, beyond the "extra" ones.
pub const MIN_REFILLS: u64 = 2;

/// Largest `extra_refills` that SchedControl_ConfigureFlags accepts for a context of
/// 2^`size_bits` bytes (`size_bits` at least 7, at most 47; ABI 04, section 2.1).
pub const fn max_extra_refills(size_bits: u32) -> u64 {
    ((1u64 << size_bits) - CONTEXT_CORE_SIZE) / REFILL_SIZE - MIN_REFILLS
}
const _: () = assert!(max_extra_refills(7) == 0 && max_extra_refills(8) == 8);

/// Flag bits of SchedControl_ConfigureFlags (ABI 03, section 6.1).
pub mod flags {
    /// Sporadic server; otherwise constant bandwidth (ABI 04, sections 5.3 and 5.4).
    pub const SPORADIC: u64 = 1 << 0;
}

/// Priorities run from 0 to this; a higher number runs first (ABI 04, section 1).
pub const MAX_PRIORITY: u8 = 255;
pub const NUM_PRIORITIES: usize = 256;

/// The root task's round-robin time slice, µs (ABI 04, section 13).
pub const ROOT_TASK_SLICE_US: u64 = 5000;

/// Units of work between two looks of a preemptible operation at its conditions: a ceiling
/// (ABI 01, section 8).
pub const PREEMPTION_INTERVAL: u32 = 100;
/// Bytes zeroed between two preemption points of the reset of an untyped (ABI 03, section 3).
pub const RESET_CHUNK: usize = 256;

/// Domains (ABI 04, section 11).
pub mod domain {
    /// Bits of a duration in the domain schedule, whose unit is timer ticks.
    pub const DURATION_BITS: u32 = 56;
    pub const MAX_DURATION: u64 = (1 << DURATION_BITS) - 1;
    /// Number of domains.
    pub const DOMAINS: u64 = crate::profile::THIS.domains;
    /// Entries of the schedule, the last of which always ends it.
    pub const SCHEDULE_LENGTH: usize = crate::profile::THIS.schedule_entries;
}
