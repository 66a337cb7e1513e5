//! The slots of CNodes: as a whole, and found by the bits of an address.

use sandglass_abi::object::TCB_SLOTS;

use crate::arch::opaque_word;

use super::{Kind, Ref, Slot, Tagged};

/// The capability slots of a CNode, a TCB or a zombie: a handle to the first and their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    first: Ref<Slot>,
    length: u64,
}

/// Shape of a zombie: bits 0–5 the radix of the CNode, bit 6 set for a TCB.
const ZOMBIE_TCB: u64 = 1 << 6;
/// Shape of a CNode: its radix.
const RADIX: u64 = 0x3f;

impl Span {
    /// The slots that belong to the CNode or zombie that `word` names.
    #[inline(always)]
    pub fn of(word: Tagged) -> Option<Span> {
        if !word.is(Kind::CNode) && !word.is(Kind::Zombie) {
            return None;
        }
        let length = if word.shape() & ZOMBIE_TCB == 0 {
            1 << (word.shape() & RADIX)
        } else {
            TCB_SLOTS as u64
        };
        // SAFETY: a CNode of radix r is 2^r initialised slots and has the radix as its shape
        // (`objects::region::Region::into_cnode`); a zombie comes from `zombie` below, with the radix of
        // the CNode or the mark of a TCB, and a TCB begins with its slots.
        let first = unsafe { Ref::mint(word.address().get()) }?;
        Some(Span { first, length })
    }

    /// The word of a zombie for the CNode or TCB that `word` names.
    pub fn zombie(word: Tagged) -> Option<Tagged> {
        if word.is(Kind::CNode) {
            Some(word.zombie(word.shape() & RADIX))
        } else if word.is(Kind::Tcb) {
            Some(word.zombie(ZOMBIE_TCB))
        } else {
            None
        }
    }

    /// Number of slots.
    pub fn length(self) -> u64 {
        self.length
    }

    /// Whether `slot` is one of them.
    pub fn contains(self, slot: Ref<Slot>) -> bool {
        let offset = slot
            .address()
            .get()
            .wrapping_sub(self.first.address().get());
        offset < self.length.wrapping_mul(size_of::<Slot>() as u64)
    }

    /// Slot `i`; `None` past the end.
    #[inline(always)]
    pub fn slot(self, i: u64) -> Option<Ref<Slot>> {
        if i < self.length {
            let offset = i.wrapping_mul(size_of::<Slot>() as u64);
            // SAFETY: slots of a span lie one after the other, and `i` is within it.
            unsafe { Ref::mint(self.first.address().offset(offset).get()) }
        } else {
            None
        }
    }

    /// Up to `count` of the slots, from slot `first` on, four at a time: without those that are no four.
    #[inline(always)]
    pub fn fours(self, first: u64, count: u64) -> impl Iterator<Item = [Ref<Slot>; 4]> {
        const SIZE: u64 = size_of::<Slot>() as u64;
        let count = count.min(self.length.saturating_sub(first));
        let start = self.first.address().offset(first.wrapping_mul(SIZE)).get();
        let slot = move |i: u64| {
            let address = start.wrapping_add(i.wrapping_mul(SIZE));
            // SAFETY: slots of a span lie one after the other, and `i` is below `count`, so that slot `first + i` is within
            // it; nothing in memory is at address 0.
            unsafe { Ref::mint_at(address) }
        };
        (0..count / 4).map(move |i| {
            [
                slot(4 * i),
                slot(4 * i + 1),
                slot(4 * i + 2),
                slot(4 * i + 3),
            ]
        })
    }
}

/// A word that names a CNode.
#[derive(Clone, Copy)]
pub struct CNodeWord(Tagged);

impl CNodeWord {
    /// `word`, if it names a CNode.
    pub fn of(word: Tagged) -> Option<CNodeWord> {
        word.is(Kind::CNode).then_some(CNodeWord(word))
    }

    pub fn word(self) -> Tagged {
        self.0
    }

    /// log2 of the number of slots, at least 1.
    pub fn radix(self) -> u32 {
        (self.0.shape() & RADIX) as u32
    }

    /// Slot `index`. `None` if there is no such slot, because the bits before its last ones, as many as the radix says, are not
    /// all zero.
    #[inline(always)]
    pub fn slot(self, index: u64) -> Option<Ref<Slot>> {
        // A shift is by the lowest bits of its count.
        if index.wrapping_shr(self.radix()) != 0 {
            return None;
        }
        // SAFETY: as for `Span::of` and `Span::slot`; the index was compared with the number of
        // slots, which is less than 2^63. No CNode is at address 0, where no object lies.
        Some(unsafe { Ref::mint_at(self.0.element(index)) })
    }
}

/// A word that names a CNode whose slots, with these flags, are those of one bit of an address: a plain pair.
#[derive(Clone, Copy)]
pub struct PairWord(Tagged);

/// How words begin that name such CNodes: in a register, since 16 bits of a constant are compared in two instructions.
#[derive(Clone, Copy)]
pub struct PairBeginning(u64);

impl PairBeginning {
    /// With these flags.
    #[inline(always)]
    pub fn with(flags: u8) -> Self {
        PairBeginning(opaque_word(Tagged::beginning(Kind::CNode, 1, flags)))
    }
}

impl PairWord {
    /// `word`, if it names such a CNode.
    #[inline(always)]
    pub fn of(word: Tagged, beginning: PairBeginning) -> Option<PairWord> {
        word.begins_as(beginning.0).then_some(PairWord(word))
    }

    /// The slot whose number is the first bit of `address`, and the bits behind that.
    #[inline(always)]
    pub fn slot_named_by(self, address: u64) -> (Ref<Slot>, u64) {
        let (slot, rest) = self.0.one_of_two(address);
        // SAFETY: as for `CNodeWord`: each CNode has two slots.
        (unsafe { Ref::mint_at(slot) }, rest)
    }
}
