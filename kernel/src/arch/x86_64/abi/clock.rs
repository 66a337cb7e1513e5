//! How the clock is counted (04, section 1).

/// The microseconds in which the machine counts a whole number of ticks: any.
pub const UNIT_US: u64 = 1;

/// How many microseconds before the end of a budget the timer is programmed for: as long as its event
/// may take to arrive.
pub const PRECISION_US: u64 = 1;
