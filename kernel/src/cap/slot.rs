//! A capability slot: one entry of a CNode, 32 bytes (02, section 2).

#[cfg(not(target_os = "none"))]
#[path = "../inspect/slot.rs"]
mod inspect;

use core::cell::Cell;

use super::Capability;
use crate::mem::{Packed, Ref, Tagged};

/// A slot holds a capability and its place in the derivation list ([`super::derivation`]).
///
/// Invariants: an empty slot has no neighbours; `next` of `prev` is the slot itself and the other
/// way round. The zero value is an empty slot.
#[repr(C, align(32))]
pub struct Slot {
    word: Cell<Tagged>,
    data: Cell<u64>,
    prev: Cell<Packed<Slot>>,
    /// Next in the list, with the flags of this slot's own capability.
    next: Cell<Packed<Slot>>,
}

const _: () = assert!(size_of::<Slot>() == 1 << sandglass_abi::object::SLOT_BITS);

/// Flags of a capability in the derivation list (02, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flags(u64);

impl Flags {
    pub const NONE: Flags = Flags(0);
    const REVOCABLE: u64 = 1;
    const FIRST_BADGED: u64 = 2;

    /// The flags of an original: both set.
    pub const fn original(set: bool) -> Self {
        Flags(if set {
            Self::REVOCABLE | Self::FIRST_BADGED
        } else {
            0
        })
    }

    pub const fn revocable(self) -> bool {
        self.0 & Self::REVOCABLE != 0
    }

    pub const fn first_badged(self) -> bool {
        self.0 & Self::FIRST_BADGED != 0
    }

    #[must_use]
    pub const fn or_first_badged(self, other: Flags) -> Self {
        Flags(self.0 | (other.0 & Self::FIRST_BADGED))
    }
}

impl Slot {
    /// An empty slot.
    pub const fn new() -> Self {
        Slot {
            word: Cell::new(Tagged::NULL),
            data: Cell::new(0),
            prev: Cell::new(Packed::empty()),
            next: Cell::new(Packed::empty()),
        }
    }

    #[inline(always)]
    pub fn cap(&self) -> Capability {
        Capability::from_parts(self.word.get(), self.data.get())
    }

    /// Changes the capability in place: its position and flags stay.
    #[inline(always)]
    pub(crate) fn set_cap(&self, cap: Capability) {
        self.word.set(cap.word());
        self.data.set(cap.data());
    }

    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.cap().is_null()
    }

    /// Sets the watermark, in bytes, of the untyped memory that the slot holds.
    pub(crate) fn set_watermark(&self, watermark: u64) {
        self.data.set(watermark);
    }

    pub(super) fn prev(&self) -> Option<Ref<Slot>> {
        self.prev.get().get()
    }

    pub(super) fn next(&self) -> Option<Ref<Slot>> {
        self.next.get().get()
    }

    pub(super) fn flags(&self) -> Flags {
        Flags(self.next.get().flags())
    }

    pub(super) fn set_prev(&self, prev: Option<Ref<Slot>>) {
        self.prev.set(Packed::new(prev, 0));
    }

    pub(super) fn set_next(&self, next: Option<Ref<Slot>>) {
        self.next.set(Packed::new(next, self.next.get().flags()));
    }

    pub(super) fn set_flags(&self, flags: Flags) {
        self.next.set(Packed::new(self.next(), flags.0));
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self::new()
    }
}
