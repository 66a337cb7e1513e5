//! aarch64.

use core::arch::asm;

use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;

pub mod devices;
pub mod privilege;
pub mod stray;

core::arch::global_asm!(
    // The endpoint is in x0: an empty message, blocking.
    "kernel_tests_send_once:",
    "mov x7, #{send}",
    "mov x1, #0",
    "svc #0",
    "2: b 2b",
    // The same: 120 words and three capabilities, over and over.
    "kernel_tests_send_long:",
    "mov x7, #{send}",
    "mov x1, #{info}",
    "svc #0",
    "b kernel_tests_send_long",
    "kernel_tests_receive:",
    "mov x9, x0",
    "2: mov x0, x9",
    "mov x7, #{wait}",
    "svc #0",
    "b 2b",
    send = const Syscall::Send.raw() as i64,
    wait = const Syscall::Wait.raw() as i64,
    info = const MessageInfo::new(0, 0, 3, 120).raw() as i64,
);

/// The thread pointer, which every thread has of its own.
pub fn thread_block() -> u64 {
    let block;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) block, options(nostack, readonly)) };
    block
}

/// Fills registers with `seed` plus 1 to 10, spins until the clock is at `end`, and returns what is in them then.
pub fn spin_with_registers(seed: u64, end: u64) -> [u64; 10] {
    let mut out = [0u64; 10];
    // SAFETY: only registers that are declared.
    unsafe {
        asm!(
            "2: mrs x0, cntvct_el0",
            "cmp x0, {end}",
            "b.lo 2b",
            end = in(reg) end,
            out("x0") _,
            inout("x2") seed + 1 => out[0],
            inout("x5") seed + 2 => out[1],
            inout("x8") seed + 3 => out[2],
            inout("x9") seed + 4 => out[3],
            inout("x15") seed + 5 => out[4],
            inout("x16") seed + 6 => out[5],
            inout("x17") seed + 7 => out[6],
            inout("x20") seed + 8 => out[7],
            inout("x28") seed + 9 => out[8],
            inout("x30") seed + 10 => out[9],
        );
    }
    out
}

/// The physical timer of the core that runs it, which the kernel for these tests leaves to user level; its interrupt is [`IRQ`],
/// level-triggered.
///
/// [`IRQ`]: Timer::IRQ
pub struct Timer;

impl Timer {
    /// A private interrupt.
    pub const IRQ: u64 = 30;

    /// Lets it fire after so many ticks, until [`Self::stop`].
    pub fn start(ticks: u64) {
        // SAFETY: it concerns nothing but its interrupt.
        unsafe {
            asm!("msr cntp_tval_el0, {}", "msr cntp_ctl_el0, {}", in(reg) ticks, in(reg) 1u64);
        }
    }

    pub fn stop() {
        // SAFETY: as above.
        unsafe { asm!("msr cntp_ctl_el0, xzr") }
    }
}
