//! What firmware does (PSCI, the Power State Coordination Interface): starts cores, and stops the machine.

use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::arch::device_tree::board::{Conduit, Psci};

/// Turns the machine off.
const SYSTEM_OFF: u64 = 0x8400_0008;

/// Number of the function that starts a core, and in [`SMC`] how firmware is called; 0 if there is none.
/// Relaxed: it is written once, before other cores start.
static FIRMWARE: AtomicU64 = AtomicU64::new(0);
const SMC: u64 = 1 << 32;

/// There is this firmware.
pub(in crate::arch::aarch64) fn init(psci: Psci) {
    let conduit = match psci.conduit {
        Conduit::Hvc => 0,
        Conduit::Smc => SMC,
    };
    FIRMWARE.store(u64::from(psci.cpu_on) | conduit, Ordering::Relaxed);
}

/// What firmware says of a core that it is to start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Starts,
    /// It runs already.
    Runs,
    /// It does not, or there is no firmware.
    Refuses,
}

/// Starts the core with that `affinity` at the physical address `entry`, with `argument` in x0, if firmware does so.
///
/// # Safety
/// At `entry` is code for it.
pub(in crate::arch::aarch64) unsafe fn start_core(
    affinity: u64,
    entry: u64,
    argument: u64,
) -> Answer {
    const SUCCESS: i32 = 0;
    const ALREADY_ON: i32 = -4;
    let firmware = FIRMWARE.load(Ordering::Relaxed);
    let function = firmware & !SMC;
    if function == 0 {
        return Answer::Refuses;
    }
    // SAFETY: the caller's.
    let answer = unsafe { call(firmware, function, [affinity, entry, argument]) };
    match answer as i32 {
        SUCCESS => Answer::Starts,
        ALREADY_ON => Answer::Runs,
        _ => Answer::Refuses,
    }
}

/// Turns the machine off, if firmware does so.
pub fn turn_off() {
    let firmware = FIRMWARE.load(Ordering::Relaxed);
    if firmware != 0 {
        // SAFETY: nothing goes on.
        unsafe { call(firmware, SYSTEM_OFF, [0; 3]) };
    }
}

/// Calls firmware; returns what it answers.
///
/// # Safety
/// What is asked for breaks no promise.
unsafe fn call(firmware: u64, function: u64, arguments: [u64; 3]) -> u64 {
    let [first, second, third] = arguments;
    let answer;
    // DSB: what this core has stored is there when another core starts.
    macro_rules! by {
        ($instruction:literal) => {
            // SAFETY: the caller's. By the calling convention (SMCCC) firmware changes x0 to x17 at most.
            unsafe {
                asm!("dsb sy", $instruction, inlateout("x0") function => answer,
                     inlateout("x1") first => _, inlateout("x2") second => _,
                     inlateout("x3") third => _, out("x4") _, out("x5") _, out("x6") _,
                     out("x7") _, out("x8") _, out("x9") _, out("x10") _, out("x11") _,
                     out("x12") _, out("x13") _, out("x14") _, out("x15") _, out("x16") _,
                     out("x17") _, options(nostack))
            }
        };
    }
    if firmware & SMC != 0 {
        // SMC #0, which assemblers know of processors with EL3 only.
        by!(".inst 0xd4000003");
    } else {
        by!("hvc #0");
    }
    answer
}
