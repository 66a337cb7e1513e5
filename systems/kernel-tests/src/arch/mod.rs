//! The tests that only one architecture has, and machine code, each under one name; by the target.

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "aarch64")]
pub use aarch64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64;
#[cfg(target_arch = "x86_64")]
pub use x86_64::*;

unsafe extern "C" {
    // Code of the architecture's, of which only the addresses are used.
    static kernel_tests_send_once: u8;
    static kernel_tests_send_long: u8;
    static kernel_tests_receive: u8;
}

/// Where code is that sends an empty message to its argument, and then spins.
pub fn send_once() -> u64 {
    &raw const kernel_tests_send_once as u64
}

/// The same: that sends the longest message over and over.
pub fn send_long() -> u64 {
    &raw const kernel_tests_send_long as u64
}

/// The same: that receives by Wait over and over.
pub fn receive() -> u64 {
    &raw const kernel_tests_receive as u64
}
