//! The console on the screen, beside the serial port: on a machine whose firmware offers a
//! framebuffer, programs that print on the serial port draw the same text.
//!
//! The root task maps the framebuffer and a page with the cursor; components that share its
//! console get both. Each draws for itself, in its own time, as each sends through the serial port
//! for itself: no program waits for another, and none can do more than scribble on the screen. Each
//! learns the framebuffer's properties from its own loader, and from no one else.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use sandglass_screen::{Mode, Pixels, Screen};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::boot::Framebuffer;
use crate::cap::{Attributes, Frame, FrameSize, Rights};
use crate::image::PAGE;
use crate::process::Process;
use crate::resources::SetupError;

/// Size of the frames by which framebuffers are mapped.
const LARGE: FrameSize = FrameSize::Large;

/// A screen that is mapped, as a loader tells a program of it; all zeros if there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
pub struct MappedScreen {
    /// Virtual address of the framebuffer; 0 if there is none.
    pixels: u64,
    /// Virtual address of the cursor.
    cursor: u64,
    pitch: u32,
    width: u32,
    height: u32,
    bits_per_pixel: u32,
}

impl MappedScreen {
    fn screen(&self) -> Option<Screen> {
        Screen::new(Mode {
            pitch: self.pitch,
            width: self.width,
            height: self.height,
            bits_per_pixel: u8::try_from(self.bits_per_pixel).ok()?,
        })?
        .below_the_kernel()
    }
}

/// What it takes to let other programs draw.
#[derive(Clone, Debug)]
pub struct SharedScreen {
    pub(crate) frames: Vec<Frame>,
    pub(crate) cursor: Frame,
    here: MappedScreen,
}

impl SharedScreen {
    /// Maps the framebuffer for the root task. `None` if there is none that text can be shown on,
    /// or if it does not begin at a multiple of its size, as the memory of a graphics device does:
    /// what lies beside it in its frames might then be another device's.
    pub(crate) fn map(
        process: &mut Process,
        framebuffer: Framebuffer,
    ) -> Result<Option<Self>, SetupError> {
        let mut here = MappedScreen {
            pixels: 0,
            cursor: 0,
            pitch: framebuffer.pitch,
            width: framebuffer.width,
            height: framebuffer.height,
            bits_per_pixel: framebuffer.bits_per_pixel.into(),
        };
        let Some(screen) = here.screen().filter(|_| framebuffer.has_colours()) else {
            return Ok(None);
        };
        let bytes = screen.bytes() as u64;
        let block = bytes.next_power_of_two().max(LARGE.bytes());
        if !framebuffer.paddr.is_multiple_of(block) {
            return Ok(None);
        }
        let count = bytes.div_ceil(LARGE.bytes());
        here.pixels = process.space.reserve(count * LARGE.bytes(), LARGE.bits())?;
        let mut frames = Vec::new();
        for i in 0..count {
            let offset = i * LARGE.bytes();
            let resources = &mut process.resources;
            let frame = resources.device_frame(framebuffer.paddr + offset, LARGE)?;
            process.space.vspace().map(
                resources,
                frame,
                here.pixels + offset,
                Rights::READ_WRITE,
                Attributes::WriteCombining,
            )?;
            frames.push(frame);
        }
        let page = process.space.map_new(&mut process.resources, PAGE)?;
        here.cursor = page.address();
        let none = SetupError::NoAddresses { bytes: PAGE };
        let cursor = page.frames().next().ok_or(none)?;
        Ok(Some(Self {
            frames,
            cursor,
            here,
        }))
    }

    pub(crate) const fn here(&self) -> MappedScreen {
        self.here
    }

    /// The same screen in another program, where it is mapped at these addresses.
    pub(crate) const fn at(&self, pixels: u64, cursor: u64) -> MappedScreen {
        MappedScreen {
            pixels,
            cursor,
            ..self.here
        }
    }
}

/// The screen of this program.
struct Current {
    is_set: AtomicBool,
    value: UnsafeCell<Option<(Screen, MappedScreen)>>,
}

// SAFETY: the value is written once, before `is_set`, and read only after it.
unsafe impl Sync for Current {}

static CURRENT: Current = Current {
    is_set: AtomicBool::new(false),
    value: UnsafeCell::new(None),
};

/// Draws on `mapped` from now on what is printed on the serial port.
///
/// # Safety
/// What `mapped` says is mapped, for good; no other thread of this program runs yet, and this is
/// called once.
pub(crate) unsafe fn set(mapped: MappedScreen) {
    let Some(screen) = mapped.screen().filter(|_| mapped.pixels != 0) else {
        return;
    };
    // SAFETY: nobody reads or writes it yet (the caller's promise).
    unsafe { *CURRENT.value.get() = Some((screen, mapped)) };
    CURRENT.is_set.store(true, Ordering::Release);
}

fn current() -> Option<(Screen, MappedScreen)> {
    if !CURRENT.is_set.load(Ordering::Acquire) {
        return None;
    }
    // SAFETY: written before `is_set`, and never again.
    unsafe { *CURRENT.value.get() }
}

/// Makes the screen black, if there is one.
pub(crate) fn clear() {
    if let Some((screen, mapped)) = current() {
        screen.clear(&mut Framed(mapped.pixels));
    }
}

/// Draws bytes of text, if there is a screen.
pub fn write(bytes: &[u8]) {
    let Some((screen, mapped)) = current() else {
        return;
    };
    // SAFETY: mapped (`set`); other programs access it as an atomic too.
    let cursor = unsafe { AtomicU32::from_ptr(mapped.cursor as *mut u32) };
    let mut pixels = Framed(mapped.pixels);
    for &byte in bytes {
        // Not one step: a program that interrupts may be drawn over, but none has to try again.
        let next = screen.put(cursor.load(Ordering::Relaxed), byte, &mut pixels);
        cursor.store(next, Ordering::Relaxed);
    }
}

/// A framebuffer mapped at this address.
struct Framed(u64);

impl Pixels for Framed {
    fn fill(&mut self, offset: usize, count: usize, value: u8) {
        let start = self.0 as *mut u8;
        // SAFETY: within the framebuffer (`Pixels`), which is mapped (`set`), and of which there
        // are no references.
        unsafe { start.add(offset).write_bytes(value, count) }
    }
}
