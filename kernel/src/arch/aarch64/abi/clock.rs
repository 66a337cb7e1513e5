//! How the clock is counted (04, section 1).

/// The microseconds in which the machine counts a whole number of ticks: a millisecond, in which the virtual timer's
/// counter, of 62.5 MHz, counts 62,500.
pub const UNIT_US: u64 = 1000;

/// How many microseconds before the end of a budget the timer is programmed for: none, it compares with the counter.
pub const PRECISION_US: u64 = 0;
