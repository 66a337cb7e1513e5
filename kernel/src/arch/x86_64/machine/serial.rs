//! The kernel console: the first serial port, 115200 baud, 8 data bits, no parity, 1 stop bit
//! (06, section 9).

use super::cpu::{in8, out8};
use crate::arch::bounds::turns;

const BASE: u16 = 0x3f8;
const DATA: u16 = BASE;
const INTERRUPT_ENABLE: u16 = BASE + 1;
const FIFO_CONTROL: u16 = BASE + 2;
const LINE_CONTROL: u16 = BASE + 3;
const MODEM_CONTROL: u16 = BASE + 4;
const LINE_STATUS: u16 = BASE + 5;

const DIVISOR_ACCESS: u8 = 0x80;
const EIGHT_N_ONE: u8 = 0x03;
/// FIFOs on and cleared.
const FIFO: u8 = 0x07;
/// Terminal ready, request to send.
const READY: u8 = 0x03;
const TRANSMITTER_EMPTY: u8 = 0x20;

/// Looks at the line status before a byte is given up: a port that is not there must not stop the
/// kernel. A byte takes 87 µs, a look at least 100 ns.
const PATIENCE: u32 = 100_000;

/// Sets the port up, without interrupts.
pub fn init() {
    // SAFETY: the port touches no memory.
    unsafe {
        out8(INTERRUPT_ENABLE, 0);
        out8(LINE_CONTROL, DIVISOR_ACCESS);
        out8(DATA, 1);
        out8(INTERRUPT_ENABLE, 0);
        out8(LINE_CONTROL, EIGHT_N_ONE);
        out8(FIFO_CONTROL, FIFO);
        out8(MODEM_CONTROL, READY);
    }
}

/// Sends one byte.
pub fn put(byte: u8) {
    for _ in turns::<{ PATIENCE as u64 }, _>(0..PATIENCE) {
        // SAFETY: the port touches no memory.
        unsafe {
            if in8(LINE_STATUS) & TRANSMITTER_EMPTY != 0 {
                out8(DATA, byte);
                return;
            }
        }
    }
}
