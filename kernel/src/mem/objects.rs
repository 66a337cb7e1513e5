//! What lives in memory that user level gave: the list of kernel objects, and the projections
//! into those that are arrays or contain capability slots.

use core::cell::Cell;
use core::slice;

use super::{Kind, Object, ObjectKind, Ref, Tagged};
use crate::arch::Platform;
use crate::cap::Slot;
use crate::object::asid::AsidPool;
use crate::object::cnode::CNode;
use crate::object::endpoint::Endpoint;
use crate::object::notification::Notification;
use crate::object::paging::{PageDirectory, PageTable, Pdpt, Pml4};
use crate::object::reply::Reply;
use crate::object::sched_context::SchedContext;
use crate::object::tcb::{Tcb, TcbSlot};
use crate::time::Refill;
use crate::Kernel;

macro_rules! objects {
    ($($type:ident),* $(,)?) => {
        $(
            // SAFETY: each type has the kind of its own name, so kinds are not shared; sizes and
            // alignment are the ABI's (02, section 2): 16 bytes at least, in untyped memory,
            // which lies below 2^47.
            unsafe impl Object for $type {
                const KIND: ObjectKind = ObjectKind::$type;
            }
            const _: () = assert!(align_of::<$type>() >= 16);
        )*
    };
}

objects!(
    Endpoint,
    Notification,
    Reply,
    CNode,
    Tcb,
    SchedContext,
    PageTable,
    PageDirectory,
    Pdpt,
    Pml4,
    AsidPool,
);

/// Objects that are nothing but their type, so that a value of it says all that there is to say:
/// other than CNodes and scheduling contexts, whose size is their shape.
pub trait Shapeless: Object {}

impl Shapeless for Endpoint {}
impl Shapeless for Notification {}
impl Shapeless for Reply {}
impl Shapeless for Tcb {}

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
            TcbSlot::COUNT
        };
        // SAFETY: a CNode of radix r is 2^r initialised slots and has the radix as its shape
        // (`region::Region::into_cnode`); a zombie comes from `zombie` below, with the radix of
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
    #[inline(always)]
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
}

/// A word that names a CNode.
#[derive(Clone, Copy)]
pub struct CNodeWord(Tagged);

impl CNodeWord {
    /// `word`, if it names a CNode.
    #[inline(always)]
    pub fn of(word: Tagged) -> Option<CNodeWord> {
        word.is(Kind::CNode).then_some(CNodeWord(word))
    }

    #[inline(always)]
    pub fn word(self) -> Tagged {
        self.0
    }

    /// log2 of the number of slots, at least 1.
    #[inline(always)]
    pub fn radix(self) -> u32 {
        (self.0.shape() & RADIX) as u32
    }

    /// The slot whose number is the first `bits` bits of `address`, from its upper end: from the
    /// radix to a word. `None` if there is no such slot, because those before the last ones, as many
    /// as the radix says, are not all zero.
    #[inline(always)]
    pub fn slot_named_by(self, address: u64, bits: u32) -> Option<Ref<Slot>> {
        // A shift is by the lowest bits of its count, and there is one bit at least.
        let index = address.wrapping_shr(bits.wrapping_neg());
        if index.wrapping_shr(self.radix()) != 0 {
            return None;
        }
        let offset = index.wrapping_mul(size_of::<Slot>() as u64);
        // SAFETY: as for `Span::of` and `Span::slot`; the index was compared with the number of
        // slots, which is less than 2^63. No CNode is at address 0, where no object lies.
        Some(unsafe { Ref::mint_at(self.0.address().offset(offset).get()) })
    }
}

/// A word that names a CNode of two slots, and has no flags.
#[derive(Clone, Copy)]
pub struct PairWord(Tagged);

impl PairWord {
    /// `word`, if it is such a one.
    #[inline(always)]
    pub fn of(word: Tagged) -> Option<PairWord> {
        word.is_plain(Kind::CNode, 1).then_some(PairWord(word))
    }

    /// The slot whose number is the first bit of `address`.
    #[inline(always)]
    pub fn slot_named_by(self, address: u64) -> Ref<Slot> {
        const { assert!(size_of::<Slot>() == 1 << (63 - 58)) };
        let offset = address >> 58 & size_of::<Slot>() as u64;
        // SAFETY: as for `CNodeWord`.
        unsafe { Ref::mint_at(self.0.address().offset(offset).get()) }
    }
}

/// A capability slot inside a TCB.
#[inline(always)]
pub fn tcb_slot(tcb: Ref<Tcb>, slot: TcbSlot) -> Ref<Slot> {
    const { assert!(core::mem::offset_of!(Tcb, slots) == 0) };
    let offset = slot as u64 * size_of::<Slot>() as u64;
    // SAFETY: a TCB begins with its slots, and `TcbSlot` numbers them; it is not at address 0.
    unsafe { Ref::mint_at(tcb.address().offset(offset).get()) }
}

/// Number of refills that a scheduling context of 2^`bits` bytes has room for (04, section 2.1),
/// of which the kernel uses at most [`Refill::MAX`].
pub const fn refill_capacity(bits: u8) -> u8 {
    if bits >= 12 {
        return Refill::MAX;
    }
    let room = ((1usize << bits) - size_of::<SchedContext>()) / size_of::<Refill>();
    if room < Refill::MAX as usize {
        room as u8
    } else {
        Refill::MAX
    }
}

/// The ring of refills that follows `context`.
#[inline(always)]
pub fn refills(k: &Kernel, context: Ref<SchedContext>) -> &[Cell<Refill>] {
    let capacity = usize::from(context.at(k).capacity());
    let address = (context.address().get() as usize).wrapping_add(size_of::<SchedContext>());
    let first = k.machine.base().wrapping_add(address).cast();
    // SAFETY: `region::Region::into_sched_context` sets the capacity, 2 at least, from the size of
    // the object, and leaves zeroed refills behind it. A `Cell` is shared like the other fields.
    unsafe { slice::from_raw_parts(first, capacity) }
}

/// Refill `i` of the ring that follows `context`: past its end it goes on from the beginning, once.
#[inline(always)]
pub fn refill(k: &Kernel, context: Ref<SchedContext>, i: u8) -> &Cell<Refill> {
    let ring = refills(k, context);
    let capacity = context.at(k).capacity();
    let place = if i < capacity {
        i
    } else {
        wrapped(i, capacity)
    };
    // SAFETY: `place` is below the capacity.
    unsafe { ring.get_unchecked(usize::from(place)) }
}

/// Place `i` of a ring of `capacity` places, from its end on.
#[cold]
#[inline(never)]
fn wrapped(i: u8, capacity: u8) -> u8 {
    let again = i.wrapping_sub(capacity);
    if again < capacity {
        again
    } else {
        0
    }
}
