//! What is tried.

use crate::Attempt;

/// On x86_64 programs read the counter, and timers are devices.
#[cfg(target_arch = "x86_64")]
pub const ATTEMPTS: &[Attempt] = &[];

/// Whether an exception is that of an access to a system register, by its syndrome.
pub const fn is_refused_register(syndrome: u64) -> bool {
    const SYSTEM_REGISTER: u64 = 0x18;
    syndrome >> 26 == SYSTEM_REGISTER
}

#[cfg(target_arch = "aarch64")]
macro_rules! attempts {
    ($($name:literal: $instruction:literal;)*) => {
        &[$(Attempt {
            name: $name,
            act: || {
                // SAFETY: it is refused, or changes a timer that nobody uses.
                unsafe {
                    core::arch::asm!($instruction, inout("x9") 1u64 => _, options(nostack));
                }
            },
        }),*]
    };
}

#[cfg(target_arch = "aarch64")]
pub const ATTEMPTS: &[Attempt] = attempts! {
    "the_frequency_is_not_read": "mrs x9, cntfrq_el0";
    "the_virtual_counter_is_not_read": "mrs x9, cntvct_el0";
    "the_physical_counter_is_not_read": "mrs x9, cntpct_el0";
    "the_virtual_timer's_control_is_not_read": "mrs x9, cntv_ctl_el0";
    "the_virtual_timer's_control_is_not_written": "msr cntv_ctl_el0, x9";
    "the_virtual_timer's_deadline_is_not_read": "mrs x9, cntv_cval_el0";
    "the_virtual_timer's_deadline_is_not_written": "msr cntv_cval_el0, x9";
    "the_virtual_timer's_rest_is_not_read": "mrs x9, cntv_tval_el0";
    "the_virtual_timer's_rest_is_not_written": "msr cntv_tval_el0, x9";
    "the_physical_timer's_control_is_not_read": "mrs x9, cntp_ctl_el0";
    "the_physical_timer's_control_is_not_written": "msr cntp_ctl_el0, x9";
    "the_physical_timer's_deadline_is_not_read": "mrs x9, cntp_cval_el0";
    "the_physical_timer's_deadline_is_not_written": "msr cntp_cval_el0, x9";
    "the_physical_timer's_rest_is_not_read": "mrs x9, cntp_tval_el0";
    "the_physical_timer's_rest_is_not_written": "msr cntp_tval_el0, x9";
};
