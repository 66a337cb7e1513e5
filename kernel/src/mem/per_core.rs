//! One of something for each core, with that of the core that executes the kernel at hand: to find it
//! again and again by the core's number would be a good part of a system call.

use core::cell::Cell;
use core::mem::offset_of;

use crate::cores::{CoreId, CORES};

/// One `T` for each core. Invariant: `here` is the offset of one of them from the first, in bytes. It comes first: there are many
/// bytes of the others.
#[repr(C)]
pub struct PerCore<T> {
    here: Cell<usize>,
    each: [T; CORES],
}

impl<T> PerCore<T> {
    /// Offset of the first one.
    pub const FIRST: usize = offset_of!(Self, each);

    /// That of the core that boots is at hand.
    pub const fn new(each: [T; CORES]) -> Self {
        PerCore {
            each,
            here: Cell::new(0),
        }
    }

    /// From now on that of `core` is at hand.
    pub fn select(&self, core: CoreId) {
        self.here.set(core.index() * size_of::<T>());
    }

    /// The one that is at hand.
    #[inline(always)]
    pub fn here(&self) -> &T {
        if CORES == 1 {
            return self.of(CoreId::BOOT);
        }
        // SAFETY: the invariant.
        unsafe { &*self.each.as_ptr().byte_add(self.here.get()) }
    }

    /// That of `core`.
    pub fn of(&self, core: CoreId) -> &T {
        &self.each[core.index()]
    }
}
