//! The layout of a capability slot: one entry of a CNode, 32 bytes (02, section 2). What its words
//! mean is said in `cap/`.

use crate::cells::Owner;
use core::cell::Cell;

use super::{Packed, Ref, Tagged};

/// A capability in two words, and its place in a derivation list.
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

    /// The word that names the object of the capability.
    pub fn word(&self) -> Tagged {
        self.word.get()
    }

    /// The other word of the capability.
    pub fn data(&self) -> u64 {
        self.data.get()
    }

    /// Changes the capability in place: its position and flags stay.
    #[inline(always)]
    pub(crate) fn set_words(&self, _: &impl Owner, word: Tagged, data: u64) {
        self.word.set(word);
        self.data.set(data);
    }

    /// Changes the second word of the capability.
    pub(crate) fn set_data(&self, _: &impl Owner, data: u64) {
        self.data.set(data);
    }

    /// Sets the second word of untyped memory, for who has the whole memory to itself (`&mut Memory`).
    pub(in crate::mem) fn set_watermark(&self, bytes: u64) {
        self.data.set(bytes);
    }

    pub(crate) fn prev(&self) -> Option<Ref<Slot>> {
        self.prev.get().get()
    }

    pub(crate) fn next(&self) -> Option<Ref<Slot>> {
        self.next.get().get()
    }

    /// The flags that share a word with the link to the next slot.
    pub(crate) fn link_flags(&self) -> u64 {
        self.next.get().flags()
    }

    pub(crate) fn set_prev(&self, _: &impl Owner, prev: Option<Ref<Slot>>) {
        self.prev.set(Packed::new(prev, 0));
    }

    pub(crate) fn set_next(&self, _: &impl Owner, next: Option<Ref<Slot>>) {
        self.next.set(Packed::new(next, self.link_flags()));
    }

    pub(crate) fn set_link_flags(&self, _: &impl Owner, flags: u64) {
        self.next.set(Packed::new(self.next(), flags));
    }
}
