//! Where objects come from: unused memory, and the only ways to put something into it.
//!
//! A [`Region`] is the right to use a piece of memory once: it cannot be copied, and every way of
//! using it consumes it and returns the capability word that names what is there now. At run time
//! regions come from untyped memory ([`carve`]), which hands out each byte at most once between
//! two resets; at boot they come from memory that the machine vouches for ([`Region::claim`]).

use crate::arch::bounds::at_most;
use crate::arch::Platform;
use crate::mem::{FixedSize, Kind, Memory, Object, PhysAddr, Ref, Slot, Tagged, Zeroed};
use crate::object::{SchedContext, Tcb};

/// A naturally aligned power of two of bytes that nothing uses. The bytes are zero unless they
/// are a device's.
#[derive(Debug)]
pub struct Region {
    start: PhysAddr,
    bits: u8,
    device: bool,
}

impl Region {
    /// RAM that nothing uses, at boot. It is zeroed.
    ///
    /// # Safety
    /// The 2^`bits` bytes at `start` are RAM of this machine, aligned to their size, in use by
    /// nothing and claimed only once.
    pub unsafe fn claim(k: &mut Memory, start: PhysAddr, bits: u8) -> Region {
        zero(k, start, 1 << bits);
        Region {
            start,
            bits,
            device: false,
        }
    }

    /// RAM that nothing uses, at boot, with what is in it: for frames, and for untyped memory that
    /// starts as used up.
    ///
    /// # Safety
    /// As for [`claim`](Self::claim); no object is placed in it.
    pub(super) unsafe fn with_contents(start: PhysAddr, bits: u8) -> Region {
        Region {
            start,
            bits,
            device: false,
        }
    }

    /// Address space that is no RAM of this machine. The kernel never touches it.
    pub const fn device(start: PhysAddr, bits: u8) -> Region {
        Region {
            start,
            bits,
            device: true,
        }
    }

    /// Places an object. `None`, and the region is lost, if it does not fit or is a device's.
    pub fn into_object<T: FixedSize>(self, k: &mut Memory, value: T) -> Option<Tagged> {
        Some(Tagged::object(self.place(k, |_| value)?, 0))
    }

    /// Places what `value` makes, given the handle of the object that it will be.
    #[inline(always)]
    fn place<T: Object>(self, k: &mut Memory, value: impl FnOnce(Ref<T>) -> T) -> Option<Ref<T>> {
        if self.device || size_of::<T>() > 1 << self.bits || align_of::<T>() > 1 << self.bits {
            return None;
        }
        // SAFETY: the region is RAM below the end of the machine, unused, large enough and
        // aligned; `&mut Memory` excludes any borrow of what was there before, and of what will be.
        unsafe {
            let object = Ref::mint(self.start.get())?;
            k.machine
                .base()
                .wrapping_add(self.start.get() as usize)
                .cast::<T>()
                .write(value(object));
            Some(object)
        }
    }

    /// Makes the region an object that zeroed memory is. `None`, and the region is lost, if it does not
    /// fit or is a device's.
    pub fn into_zeroed<T: Zeroed>(self) -> Option<Tagged> {
        if self.device || size_of::<T>() > 1 << self.bits || align_of::<T>() > 1 << self.bits {
            return None;
        }
        // SAFETY: the region is RAM below the end of the machine, unused, large enough and aligned, and
        // zeroed, hence a `T`; the handle is packed at once.
        let object = unsafe { Ref::<T>::mint(self.start.get()) }?;
        Some(Tagged::object(object, 0))
    }

    /// Places a thread of `domain`.
    #[inline(never)]
    pub fn into_tcb(self, k: &mut Memory, domain: u8) -> Option<Tagged> {
        let thread = self.place(k, |own| Tcb::new(own, domain))?;
        Some(Tagged::object(thread, 0))
    }

    /// Places a scheduling context that fills the region; its refills are the zeroes behind it.
    pub fn into_sched_context(self, k: &mut Memory) -> Option<Tagged> {
        let bits = self.bits;
        Some(Tagged::object(
            self.place(k, |_| SchedContext::new(bits))?,
            u64::from(bits),
        ))
    }

    /// Makes the region a CNode: zeroed slots are empty slots.
    pub fn into_cnode(self) -> Option<Tagged> {
        let radix = self
            .bits
            .checked_sub(size_of::<Slot>().trailing_zeros() as u8)?;
        if self.device || radix == 0 {
            return None;
        }
        // SAFETY: zeroed slots are initialised ones; the handle is packed at once.
        let first = unsafe { Ref::mint(self.start.get()) }?;
        Some(Tagged::object::<crate::object::cnode::CNode>(
            first,
            u64::from(radix),
        ))
    }

    /// Makes the region a frame of user memory.
    pub fn into_frame(self) -> Tagged {
        Tagged::memory(Kind::Frame, self.start, self.bits, self.device)
    }

    /// Makes the region untyped memory.
    pub fn into_untyped(self) -> Tagged {
        Tagged::memory(Kind::Untyped, self.start, self.bits, self.device)
    }
}

/// Untyped memory, as a slot holds it.
#[derive(Clone, Copy)]
pub struct UntypedMemory {
    word: Tagged,
    watermark: u64,
}

impl UntypedMemory {
    /// The untyped memory that the capability of these words names.
    pub fn new(word: Tagged, data: u64) -> Option<Self> {
        word.is(Kind::Untyped).then_some(UntypedMemory {
            word,
            watermark: data,
        })
    }

    /// The untyped memory in `slot`.
    fn of(slot: &Slot) -> Option<Self> {
        Self::new(slot.word(), slot.data())
    }

    pub fn start(self) -> PhysAddr {
        self.word.address()
    }

    /// log2 of the bytes.
    pub fn bits(self) -> u8 {
        self.word.extent().0
    }

    /// Bytes.
    pub fn size(self) -> u64 {
        1 << (self.bits() & 63)
    }

    pub fn is_device(self) -> bool {
        self.word.extent().1
    }

    /// Bytes from the start that are, or may be, in use.
    pub fn watermark(self) -> u64 {
        self.watermark
    }
}

/// The region of 2^`bits` bytes at the watermark of the untyped memory in `untyped`, aligned up
/// to its size, and the watermark moved behind it. `None`, and nothing changed, if `untyped` is
/// not untyped memory or has no room for it.
pub fn carve(k: &mut Memory, untyped: Ref<Slot>, bits: u8) -> Option<Region> {
    let slot = untyped.at(k);
    let memory = UntypedMemory::of(slot)?;
    let size = 1u64.checked_shl(u32::from(bits))?;
    let start = memory.watermark().checked_add(size - 1)? & !(size - 1);
    let end = start.checked_add(size)?;
    if end > memory.size() {
        return None;
    }
    slot.set_watermark(end);
    Some(Region {
        start: memory.start().offset(start),
        bits,
        device: memory.is_device(),
    })
}

/// Takes back the last `BYTES` bytes before the watermark of the untyped memory in `untyped`, or what
/// there is, and zeroes them unless they are a device's: one bounded step of a reset. Returns the
/// new watermark in bytes; 0 ends the reset.
///
/// The caller has checked that the untyped memory has no children, so that no capability, hence
/// (by the deletion invariant) no handle names anything in it.
pub fn reclaim<const BYTES: u64>(k: &mut Memory, untyped: Ref<Slot>) -> u64 {
    let Some(memory) = UntypedMemory::of(untyped.at(k)) else {
        return 0;
    };
    let watermark = memory.watermark();
    let rest = if memory.is_device() {
        0
    } else {
        watermark.saturating_sub(BYTES)
    };
    if !memory.is_device() {
        let used = at_most::<BYTES>((watermark - rest) as usize);
        zero(k, memory.start().offset(rest), used as u64);
    }
    untyped.at(k).set_watermark(rest);
    rest
}

/// Zeroes memory that nothing uses.
fn zero(k: &mut Memory, start: PhysAddr, bytes: u64) {
    let memory = k.machine.base().wrapping_add(start.get() as usize);
    // SAFETY: the callers name RAM of this machine that nothing uses (see there), and
    // `&mut Memory` excludes any borrow of it.
    unsafe { memory.write_bytes(0, bytes as usize) }
    k.machine.zeroed(start, bytes);
}
