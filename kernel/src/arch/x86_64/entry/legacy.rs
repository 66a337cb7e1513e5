//! Devices of the first PC: the interrupt controllers, which are switched off, and the timer,
//! whose known frequency measures the others.

use crate::arch::x86_64::machine::cpu::{in8, out8};

const PIC1_COMMAND: u16 = 0x20;
const PIC1_DATA: u16 = 0x21;
const PIC2_COMMAND: u16 = 0xa0;
const PIC2_DATA: u16 = 0xa1;

/// Routes the legacy controllers to vectors 0x20 to 0x2f, where a spurious interrupt of theirs is
/// not mistaken for an exception, and masks all their lines (06, section 6).
pub fn disable_pic() {
    const SEQUENCE: [(u16, u8); 10] = [
        // Initialise: edge-triggered, cascaded, four words.
        (PIC1_COMMAND, 0x11),
        (PIC2_COMMAND, 0x11),
        // Vectors.
        (PIC1_DATA, 0x20),
        (PIC2_DATA, 0x28),
        // The second is at line 2 of the first.
        (PIC1_DATA, 0x04),
        (PIC2_DATA, 0x02),
        // 8086 mode.
        (PIC1_DATA, 0x01),
        (PIC2_DATA, 0x01),
        // Masks.
        (PIC1_DATA, 0xff),
        (PIC2_DATA, 0xff),
    ];
    for (port, value) in SEQUENCE {
        // SAFETY: the controllers touch no memory, and interrupts are off.
        unsafe { out8(port, value) }
    }
}

/// Frequency of the interval timer in Hz.
pub const PIT_HZ: u64 = 1_193_182;
/// The bits of its count.
pub const PIT_MASK: u64 = 0xffff;

const PIT_CHANNEL0: u16 = 0x40;
const PIT_COMMAND: u16 = 0x43;
/// Channel 0, both bytes of the count, mode 0: it counts down, and raises its line once at the end, which
/// firmware has it do for ever. The legacy controllers are masked.
const ONE_SHOT: u8 = 0x30;
/// The count of channel 0 is kept for reading.
const LATCH: u8 = 0x00;

/// Lets the interval timer count from its most, and be quiet afterwards.
pub fn start_pit() {
    for (port, value) in [
        (PIT_COMMAND, ONE_SHOT),
        (PIT_CHANNEL0, 0),
        (PIT_CHANNEL0, 0),
    ] {
        // SAFETY: the timer touches no memory.
        unsafe { out8(port, value) }
    }
}

/// What the interval timer has counted, modulo [`PIT_MASK`] + 1. It goes on beyond the end.
pub fn pit_count() -> u64 {
    // SAFETY: as above.
    let [low, high] = unsafe {
        out8(PIT_COMMAND, LATCH);
        [in8(PIT_CHANNEL0), in8(PIT_CHANNEL0)]
    };
    u64::from(!u16::from_le_bytes([low, high]))
}
