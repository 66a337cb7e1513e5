//! What the storm's gates lead to: code that finds out whether it executes in ring 0, and says so.
//!
//! It speaks through ports, which no program of the storm may use but in ring 0. So there is nothing
//! that random code could do to pretend it: at any other level it faults here.

use core::arch::asm;
use core::fmt::{self, Write};

use sandglass::exit::DEBUG_EXIT_PORT;

use crate::area::{area_address, Area, AREAS, LOW_BYTES};

/// The first serial port: the console.
const CONSOLE_PORT: u16 = 0x3f8;
/// Status that ends the run.
const FAILURE: u8 = 1;

core::arch::global_asm!(
    // 32-bit code takes the byte 0x40 for `inc eax`. At level 0 it goes on as 64-bit code by a jump
    // to the kernel's code segment; at others that is a fault, like CLI.
    "storm_ring0:",
    "xor eax, eax",
    ".byte 0x40, 0x90",
    "test eax, eax",
    "jz 2f",
    ".byte 0xea",
    ".long storm_ring0",
    ".short 8",
    "2:",
    "cli",
    "mov esp, {stack}",
    "call {reached}",
    "ud2",
    stack = const LOW_BYTES,
    reached = sym reached,
);

extern "C" {
    /// Code, not data: only its address is used.
    static storm_ring0: u8;
}

/// Where the gates lead to.
pub fn address() -> u64 {
    &raw const storm_ring0 as u64
}

/// Tells of ring 0, and ends the machine.
extern "C" fn reached() -> ! {
    let (cs, root): (u64, u64);
    // SAFETY: reads only; above ring 0 a fault.
    unsafe { asm!("mov {0:r}, cs", "mov {1}, cr3", out(reg) cs, out(reg) root) };
    // SAFETY: mapped wherever this code is; nobody else runs on this core, and all else is atomic.
    let areas = (0..AREAS).map(|index| unsafe { &*(area_address(index) as *const Area) });
    let (mut seed, mut made) = (0, 0u64);
    for area in areas {
        seed = area.control.arena;
        made = made.wrapping_add(area.made());
    }
    let _ = write!(
        Console,
        "\ntest isolation ... FAILED: ring 0 was reached, with seed {seed} after {made} \
         instructions of it (CS {cs:#x}, CR3 {root:#x})\n0 passed, 1 failed\n"
    );
    loop {
        out(DEBUG_EXIT_PORT, FAILURE);
    }
}

/// The serial port, without waiting for it: the emulator's is always ready.
struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| out(CONSOLE_PORT, byte));
        Ok(())
    }
}

fn out(port: u16, byte: u8) {
    // SAFETY: a fault, unless the machine is lost anyway.
    unsafe { asm!("out dx, al", in("dx") port, in("al") byte, options(nomem, nostack)) };
}
