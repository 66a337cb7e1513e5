//! The debug kernel's console on the screen, beside the serial port: a machine without one should
//! still say why the kernel does not start. The root task is told of the framebuffer too; the
//! runtime library leaves the first lines to the kernel.

use core::cell::Cell;

use sandglass_screen::{Mode, Pixels, Screen};

use super::layout::{WINDOW_BASE, WINDOW_SIZE};
use crate::arch::abi::firmware::AVAILABLE;
use crate::arch::abi::firmware::{Framebuffer, MemoryMapEntry, MAX_MEMORY_MAP};
use crate::arch::list::List;
use crate::arch::Range;

/// Kind of a framebuffer whose pixels are colours (Multiboot2 specification, section 3.6.12).
const COLOURS: u8 = 1;

struct Console {
    screen: Cell<Option<(Screen, Base)>>,
    cursor: Cell<u32>,
}

// SAFETY: accessed by one core at a time, which has the kernel, with interrupts off.
unsafe impl Sync for Console {}

static CONSOLE: Console = Console {
    screen: Cell::new(None),
    cursor: Cell::new(0),
};

/// Where a framebuffer begins that lies in the window as a whole.
#[derive(Clone, Copy)]
struct Base(u64);

impl Pixels for Base {
    fn fill(&mut self, offset: usize, count: usize, value: u8) {
        let start = WINDOW_BASE.wrapping_add(self.0).wrapping_add(offset as u64);
        for address in (start..).take(count) {
            // SAFETY: in the framebuffer (`Pixels`), which `init` found in the window, and which
            // is no memory that Rust knows of.
            unsafe { (address as *mut u8).write_volatile(value) }
        }
    }
}

/// Clears the screen and shows the console there from now on, if it is one that text can be shown
/// on, which the kernel reaches, and which is no RAM of `memory_map`.
pub fn init(framebuffer: &Framebuffer, memory_map: &List<MemoryMapEntry, MAX_MEMORY_MAP>) {
    let mode = Mode {
        pitch: framebuffer.pitch,
        width: framebuffer.width,
        height: framebuffer.height,
        bits_per_pixel: framebuffer.bits_per_pixel,
    };
    let Some(screen) = Screen::new(mode).filter(|_| framebuffer.kind == COLOURS) else {
        return;
    };
    let start = framebuffer.paddr;
    let Some(end) = start.checked_add(screen.bytes() as u64) else {
        return;
    };
    let range = Range { start, end };
    let is_ram = |entry: &MemoryMapEntry| entry.kind == AVAILABLE && entry.range.overlaps(range);
    if end > WINDOW_SIZE || memory_map.iter().any(is_ram) {
        return;
    }
    let mut base = Base(framebuffer.paddr);
    screen.clear(&mut base);
    CONSOLE.screen.set(Some((screen, base)));
}

/// Shows one byte, if there is a screen.
pub fn put(byte: u8) {
    if let Some((screen, mut base)) = CONSOLE.screen.get() {
        let next = screen.put(CONSOLE.cursor.get(), byte, &mut base);
        CONSOLE.cursor.set(next);
    }
}
