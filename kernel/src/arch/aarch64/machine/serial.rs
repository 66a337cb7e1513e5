//! The kernel console: the serial port that the device tree names (06, section 9), as firmware has set it up.

use core::sync::atomic::{AtomicU64, Ordering};

use super::debugger;
use super::mmio::Registers;
use crate::arch::device_tree::board::Uart;

/// Virtual address of the port's registers, and in bit 0 which kind it is; 0 for none. Relaxed: it is
/// written once, before other cores start.
static PORT: AtomicU64 = AtomicU64::new(0);
const CADENCE: u64 = 1;

/// Looks at a status before a byte is given up: a port that does not go on must not stop the kernel.
const PATIENCE: u32 = 100_000;

/// Registers of a PL011.
mod pl011 {
    pub const DATA: u64 = 0x00;
    pub const FLAGS: u64 = 0x18;
    pub const CONTROL: u64 = 0x30;
    pub const FULL: u32 = 1 << 5;
    /// The port, its transmitter, its receiver.
    pub const ENABLED: u32 = 1 << 0 | 1 << 8 | 1 << 9;
}

/// Registers of a Cadence UART.
mod cadence {
    pub const CONTROL: u64 = 0x00;
    pub const STATUS: u64 = 0x2c;
    pub const DATA: u64 = 0x30;
    pub const FULL: u32 = 1 << 4;
    /// Its transmitter and its receiver.
    pub const ENABLED: u32 = 1 << 4 | 1 << 2;
}

/// The port is of this kind, and its registers are mapped at `address`, a multiple of 4.
///
/// # Safety
/// That is so, for good.
pub(in crate::arch::aarch64) unsafe fn init(uart: Uart, address: u64) {
    // SAFETY: the caller's; a console concerns nobody else.
    let port = unsafe { Registers::at(address) };
    match uart {
        Uart::Pl011 => {
            let control = port.read(pl011::CONTROL);
            port.write(pl011::CONTROL, control | pl011::ENABLED);
            PORT.store(address, Ordering::Relaxed);
        }
        Uart::Cadence => {
            port.write(cadence::CONTROL, cadence::ENABLED);
            PORT.store(address | CADENCE, Ordering::Relaxed);
        }
    }
}

/// Sends one byte; while no port is known, to whoever watches the debug kernel.
pub fn put(byte: u8) {
    let port = PORT.load(Ordering::Relaxed);
    if port == 0 {
        return debugger::put(byte);
    }
    let (status, full, data) = if port & CADENCE != 0 {
        (cadence::STATUS, cadence::FULL, cadence::DATA)
    } else {
        (pl011::FLAGS, pl011::FULL, pl011::DATA)
    };
    // SAFETY: what `init` was promised; or none, which answers with zeroes.
    let port = unsafe { Registers::at(port & !CADENCE) };
    for _ in 0..PATIENCE {
        if port.read(status) & full == 0 {
            port.write(data, byte.into());
            return;
        }
    }
}
