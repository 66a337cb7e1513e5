//! Untyped memory and Retype (03, section 3).

use sandglass_abi::cnode::MAX_RETYPE_OBJECTS;
use sandglass_abi::invocation::UNTYPED_RETYPE;
use sandglass_abi::object as types;
use sandglass_abi::sched::RESET_CHUNK;

use super::{target_slot, Error, Invocation, Outcome, Stop};
use crate::arch::abi::retype as arch;
use crate::arch::bounds::{self, turns};
use crate::cap::{derivation, CNodeCap, Capability};
use crate::mem::objects::region::{self, Region};
use crate::mem::{Ref, Slot, Span, Tagged};
use crate::object::{Endpoint, Notification, Reply, ResumePoint, Retyping, Tcb, DOMAINS};
use crate::time::{account, Preempted};
use crate::{Kernel, View};

/// A type of object that Retype makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Type {
    Untyped,
    Tcb,
    Endpoint,
    Notification,
    CNode,
    SchedContext,
    Reply,
    /// One of the architecture's.
    Arch(arch::Type),
}

impl Type {
    fn new(number: u64) -> Option<Type> {
        Some(match number {
            types::UNTYPED => Type::Untyped,
            types::TCB => Type::Tcb,
            types::ENDPOINT => Type::Endpoint,
            types::NOTIFICATION => Type::Notification,
            types::CNODE => Type::CNode,
            types::SCHED_CONTEXT => Type::SchedContext,
            types::REPLY => Type::Reply,
            _ => Type::Arch(arch::Type::new(number)?),
        })
    }

    /// log2 of the bytes of an object, where `size` is the size argument, below 64.
    fn bits(self, size: u64) -> u64 {
        match self {
            Type::Untyped | Type::SchedContext => size,
            Type::CNode => size + u64::from(types::SLOT_BITS),
            Type::Tcb => u64::from(types::TCB_BITS),
            Type::Endpoint => u64::from(types::ENDPOINT_BITS),
            Type::Notification => u64::from(types::NOTIFICATION_BITS),
            Type::Reply => u64::from(types::REPLY_BITS),
            Type::Arch(object) => object.bits(),
        }
    }

    /// Least size argument.
    fn min_size(self) -> u64 {
        match self {
            Type::CNode => u64::from(types::MIN_CNODE_RADIX),
            Type::Untyped => u64::from(types::MIN_UNTYPED_BITS),
            Type::SchedContext => u64::from(types::MIN_SCHED_CONTEXT_BITS),
            _ => 0,
        }
    }

    /// Whether device memory can become such an object.
    fn suits_device(self) -> bool {
        match self {
            Type::Untyped => true,
            Type::Arch(object) => object.suits_device(),
            _ => false,
        }
    }

    /// Puts an object of this type into `region`, of the right size.
    fn place(self, k: &mut Kernel, region: Region) -> Option<Tagged> {
        // Known before, if there is but one.
        let domain = k.core().domain() & (DOMAINS - 1) as u8;
        match self {
            Type::Untyped => Some(region.into_untyped()),
            Type::CNode => region.into_cnode(),
            Type::SchedContext => region.into_sched_context(k),
            Type::Tcb => region.into_tcb(k, domain),
            Type::Endpoint => region.into_object(k, Endpoint::new()),
            Type::Notification => region.into_object(k, Notification::new()),
            Type::Reply => region.into_object(k, Reply::new()),
            Type::Arch(object) => object.place(k, region),
        }
    }
}

/// A checked Retype.
struct Retype {
    untyped: Ref<Slot>,
    object: Type,
    /// log2 of the bytes of an object.
    bits: u8,
    slots: Span,
    /// Number of the first of the slots for the new capabilities.
    first: u64,
    this: Retyping,
    /// How many objects a preempted execution of this very call has made.
    done: u64,
    /// The memory has no children: what was used of it is zeroed first.
    reset: bool,
}

/// Invokes untyped memory.
#[inline(never)]
pub fn invoke(k: &mut Kernel, call: &Invocation) -> Result<Outcome, Stop> {
    let retype = decode(k, call)?;
    commit(k, call.caller, retype)?;
    Ok(Outcome::Done)
}

fn decode(k: &View, call: &Invocation) -> Result<Retype, Error> {
    Error::IllegalOperation.when(call.label() != UNTYPED_RETYPE)?;
    call.need(6)?;
    let root = call.extra_cap(k, 0)?;
    let object = Type::new(call.word(k, 0)).ok_or(Error::InvalidArgument(0))?;
    let size = call.word(k, 1);
    let max = u64::from(types::MAX_UNTYPED_BITS);
    let is_huge = size >= types::SIZE_ARGUMENT_LIMIT || object.bits(size) > max;
    Error::Range { min: 0, max }.when(is_huge)?;
    Error::InvalidArgument(1).when(size < object.min_size())?;
    let depth = call.word(k, 3);
    let node = match depth {
        0 => root,
        _ => target_slot(k, root, call.word(k, 2), depth)?.at(k).cap(),
    };
    let node = node.cnode().and_then(CNodeCap::slots);
    let slots = node.ok_or(Error::missing(depth as u8))?;
    let (first, count) = (call.word(k, 4), call.word(k, 5));
    Error::check_range(first, 0, slots.length() - 1)?;
    Error::check_range(count, 1, MAX_RETYPE_OBJECTS)?;
    Error::check_range(count, 1, slots.length() - first)?;
    let this = Retyping {
        untyped: call.slot.address(),
        object: (call.word(k, 0), size),
        first: slots.slot(first).map(Ref::address),
        count,
    };
    let done = match call.caller.at(k).progress() {
        Some(ResumePoint::Retype(begun, done)) if begun == this => done,
        _ => 0,
    };
    Error::DeleteFirst.when(!are_empty(k, slots, first + done, count - done))?;
    let bits = object.bits(size) as u8;
    let reset = check_room(k, call, object, bits, count - done)?;
    Ok(Retype {
        untyped: call.slot,
        object,
        bits,
        slots,
        first,
        this,
        done,
        reset,
    })
}

/// Whether the `count` slots from slot `first` on, at most `MAX_RETYPE_OBJECTS`, are empty. Mostly it is one.
fn are_empty(k: &View, slots: Span, first: u64, count: u64) -> bool {
    match count {
        1 => slots.slot(first).is_none_or(|slot| slot.at(k).is_empty()),
        _ => several_are_empty(k, slots, first, count),
    }
}

/// As [`are_empty`]. What makes several objects passes a preemption point before it ends.
#[inline(never)]
fn several_are_empty(k: &View, slots: Span, first: u64, count: u64) -> bool {
    let is_empty = |slot: Ref<Slot>| slot.at(k).is_empty();
    turns::<{ MAX_RETYPE_OBJECTS / 4 }, _>(slots.fours(first, count))
        .all(|[a, b, c, d]| is_empty(a) & is_empty(b) & is_empty(c) & is_empty(d))
        && turns::<3, _>(first + count / 4 * 4..first + count)
            .all(|i| slots.slot(i).is_none_or(is_empty))
}

/// The memory has room for the objects. Returns whether it is to be reset.
fn check_room(
    k: &View,
    call: &Invocation,
    object: Type,
    bits: u8,
    count: u64,
) -> Result<bool, Error> {
    let memory = call.cap.untyped().ok_or(Error::InvalidCapability(0))?;
    let reset = !derivation::has_children(k, call.slot);
    let free = if reset {
        memory.size()
    } else {
        memory.size() - memory.watermark()
    };
    Error::NotEnoughMemory(free).when(free >> bits < count)?;
    Error::InvalidArgument(1).when(memory.is_device() && !object.suits_device())?;
    Ok(reset)
}

/// Takes back the last `BYTES` bytes of the memory in `untyped` that are in use: one bounded step of a reset.
/// Returns how many still are.
pub fn reset<const BYTES: u64>(k: &mut Kernel, untyped: Ref<Slot>) -> u64 {
    #[cfg(feature = "trace")]
    if let Some(memory) = untyped.at(k).cap().untyped() {
        trace!(k, forget(memory.start(), memory.watermark()));
    }
    region::reclaim::<BYTES>(k, untyped)
}

/// Creates the objects. The reset of the memory is preemptible behind each piece, and so is the loop
/// over the objects behind each: a restarted call goes on where it was.
fn commit(k: &mut Kernel, caller: Ref<Tcb>, retype: Retype) -> Result<(), Preempted> {
    bounds::commit();
    if retype.reset {
        while reset::<{ RESET_CHUNK as u64 }>(k, retype.untyped) > 0 {
            account::preemption_point(k)?;
        }
    }
    let count = retype.this.count;
    // At most MAX_RETYPE_OBJECTS objects.
    for i in turns::<MAX_RETYPE_OBJECTS, _>(retype.done..count) {
        let slot = retype.slots.slot(retype.first + i);
        let region = region::carve(k, retype.untyped, retype.bits);
        let word = region.and_then(|region| retype.object.place(k, region));
        let (Some(slot), Some(word)) = (slot, word) else {
            never!("slots and room were checked");
            break;
        };
        derivation::insert_new(k, retype.untyped, slot, Capability::original(word));
        if i + 1 == count {
            bounds::mark::<{ bounds::LAST_OBJECT }>();
            break;
        }
        if account::preemption_point(k).is_err() {
            let progress = ResumePoint::Retype(retype.this, i + 1);
            caller.at(k).leave_progress(k, progress);
            return Err(Preempted);
        }
    }
    Ok(())
}
