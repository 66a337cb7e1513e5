//! What lives in memory that user level gave: the list of kernel objects, how memory becomes
//! objects, and the projections into those that are arrays or contain capability slots.
//!
//! This room knows the layouts in `object/`; the rest of `mem/` knows none.

use core::cell::Cell;
use core::slice;

mod ram;
pub mod region;

pub use ram::Ram;

use super::{FixedSize, Forked, Kind, Memory, Object, Ref, Slot};
use crate::arch::Platform;
use crate::object::cnode::CNode;
use crate::object::tcb;
use crate::object::{Endpoint, Notification, Queued, Reply, SchedContext, Tcb, TcbSlot};

macro_rules! objects {
    ($($type:ident),* $(,)?) => {
        $(
            // SAFETY: each type has the kind of its own name, so kinds are not shared; sizes and
            // alignment are the ABI's (02, section 2): 16 bytes at least, in untyped memory,
            // which lies below 2^47.
            unsafe impl Object for $type {
                const KIND: Kind = Kind::$type;
            }
            const _: () = assert!(align_of::<$type>() >= 16);
        )*
    };
}

objects!(Endpoint, Notification, Reply, CNode, Tcb, SchedContext,);

impl FixedSize for Endpoint {}
impl FixedSize for Notification {}
impl FixedSize for Reply {}
impl FixedSize for Tcb {}

/// A capability slot inside a TCB.
#[inline(always)]
pub fn tcb_slot(tcb: Ref<Tcb>, slot: TcbSlot) -> Ref<Slot> {
    const { assert!(core::mem::offset_of!(Tcb, slots) == 0) };
    let offset = slot as u64 * size_of::<Slot>() as u64;
    // SAFETY: a TCB begins with its slots, and `TcbSlot` numbers them; it is not at address 0.
    unsafe { Ref::mint_at(tcb.address().offset(offset).get()) }
}

/// The ring of refills that follows `context`.
#[inline(always)]
pub fn refills(k: &Memory, context: Ref<SchedContext>) -> &[Cell<Queued>] {
    let capacity = usize::from(context.at(k).capacity());
    let address = (context.address().get() as usize).wrapping_add(size_of::<SchedContext>());
    let first = k.machine.base().wrapping_add(address).cast();
    // SAFETY: `region::Region::into_sched_context` sets the capacity, 2 at least, from the size of
    // the object, and leaves zeroed refills behind it. A `Cell` is shared like the other fields.
    unsafe { slice::from_raw_parts(first, capacity) }
}

/// Refill `i` of the ring that follows `context`: past its end it goes on from the beginning, once.
#[inline(always)]
pub fn refill(k: &Memory, context: Ref<SchedContext>, i: u8) -> &Cell<Queued> {
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

// SAFETY: the sum of two `offset_of!`: of the links in a thread, and in these of the `Fork`, which is one of threads.
unsafe impl Forked for Tcb {
    const FORK: usize = tcb::offset::LINKS_FORK;
}
