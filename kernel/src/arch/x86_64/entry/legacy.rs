//! Devices of the first PC: the interrupt controllers, which are switched off, and the timer,
//! whose known frequency measures the others.

use core::hint::black_box;

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
/// Length of a measurement in periods of the interval timer: 10 ms.
pub const PIT_WINDOW: u16 = 11_932;

const PIT_CHANNEL2: u16 = 0x42;
const PIT_COMMAND: u16 = 0x43;
const PORT_B: u16 = 0x61;
/// Channel 2, both bytes of the count, mode 0: the output rises when the count has run out.
const ONE_SHOT: u8 = 0xb0;
const GATE: u8 = 1 << 0;
const SPEAKER: u8 = 1 << 1;
const OUTPUT: u8 = 1 << 5;

/// Looks at the timer's output before it is given up: seconds of looks of at least 100 ns.
const PATIENCE: u32 = 50_000_000;

/// Steps between two looks: some tens of nanoseconds, which is little beside a look. An emulator leaves its fast path for each
/// look, and would spend most of a boot on them.
const STEPS: u32 = 64;

/// Lets [`STEPS`] pass. (PAUSE would be another way out of an emulator's fast path.)
fn pass_some_time() {
    for step in 0..STEPS {
        black_box(step);
    }
}

/// Calls `read` at both ends of a window of [`PIT_WINDOW`] timer periods, which makes the window
/// a little longer. `None` if the timer does not run.
pub fn measure<T>(read: impl Fn() -> T) -> Option<(T, T)> {
    let [low, high] = PIT_WINDOW.to_le_bytes();
    // SAFETY: the timer touches no memory.
    let port_b = unsafe {
        let port_b = in8(PORT_B) & !(GATE | SPEAKER);
        out8(PORT_B, port_b | GATE);
        out8(PIT_COMMAND, ONE_SHOT);
        out8(PIT_CHANNEL2, low);
        out8(PIT_CHANNEL2, high);
        port_b
    };
    let start = read();
    for _ in 0..PATIENCE {
        pass_some_time();
        // SAFETY: as above.
        if unsafe { in8(PORT_B) } & OUTPUT != 0 {
            let end = read();
            // SAFETY: as above.
            unsafe { out8(PORT_B, port_b) }
            return Some((start, end));
        }
    }
    None
}
