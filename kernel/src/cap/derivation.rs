//! The derivation list: which capabilities come from which (02, section 5).
//!
//! All capabilities derived from one origin sit in one doubly linked list. Whether one is a parent
//! of another is not stored but computed, from the two capabilities and the flags of the slots.

#[cfg(not(target_os = "none"))]
pub mod inspect;

use super::slot::Flags;
use super::Capability;
use crate::arch::abi;
use crate::mem::{Kind, Ref, Slot};
use crate::{Kernel, View};

/// Why a capability cannot be derived (02, section 6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeriveError {
    /// Untyped memory with children.
    RevokeFirst,
    /// A paging structure that is not mapped, or a root without an ASID.
    NotMapped,
}

/// The capability that a copy of `cap` (the one in `source`, perhaps with other rights or badge)
/// would be; the null capability where there can be none.
#[inline(never)]
pub fn derive(k: &View, source: Ref<Slot>, cap: Capability) -> Result<Capability, DeriveError> {
    match cap.kind() {
        Kind::Zombie | Kind::IrqControl => Ok(Capability::NULL),
        Kind::Untyped if has_children(k, source) => Err(DeriveError::RevokeFirst),
        Kind::Frame => Ok(cap.with_mapping(None)),
        kind => abi::cap::derive(kind, cap),
    }
}

/// Whether the copy `new` of `source` is revocable on its own.
fn changed(new: Capability, source: Capability) -> bool {
    match new.kind() {
        Kind::Endpoint | Kind::Notification => new.badge() != source.badge(),
        Kind::IrqHandler => source.is(Kind::IrqControl),
        Kind::Untyped => true,
        kind => abi::cap::changed(kind, source),
    }
}

/// Whether what `b` names is part of what `a` names (02, section 5.2).
fn same_region(a: Capability, b: Capability) -> bool {
    match a.kind() {
        Kind::Untyped | Kind::Frame => contains_memory(a, b),
        Kind::IrqControl => abi::cap::of_irq_control(b.kind()),
        kind => same_thing(kind, a, b),
    }
}

/// The same where `a`, of this `kind`, is neither memory nor the control of interrupts.
#[inline(never)]
fn same_thing(kind: Kind, a: Capability, b: Capability) -> bool {
    match kind {
        Kind::Endpoint
        | Kind::Notification
        | Kind::Tcb
        | Kind::Reply
        | Kind::CNode
        | Kind::SchedContext => a.word().same(b.word()),
        Kind::SchedControl | Kind::Domain => a.kind() == b.kind(),
        Kind::IrqHandler => b.is(Kind::IrqHandler) && a.irq() == b.irq(),
        Kind::Null | Kind::Zombie => false,
        kind => abi::cap::same_region(kind, a, b),
    }
}

/// Whether the memory of `b` lies entirely in that of `a`; of a frame only frames do.
fn contains_memory(a: Capability, b: Capability) -> bool {
    if a.is(Kind::Frame) && !b.is(Kind::Frame) {
        return false;
    }
    let (Some(outer), Some(inner)) = (memory_bits(a), memory_bits(b)) else {
        return false;
    };
    let start = a.word().address().get();
    let at = b.word().address().get();
    inner <= outer && at >= start && at - start < 1 << (outer & 63)
}

/// log2 of the bytes of the object that `cap` names.
fn memory_bits(cap: Capability) -> Option<u32> {
    use sandglass_abi::object as sizes;
    let shape = cap.word().shape() as u32 & 63;
    match cap.kind() {
        Kind::Untyped | Kind::Frame | Kind::SchedContext => Some(shape),
        Kind::CNode => Some(shape + sizes::SLOT_BITS),
        Kind::Endpoint => Some(sizes::ENDPOINT_BITS),
        Kind::Notification => Some(sizes::NOTIFICATION_BITS),
        Kind::Reply => Some(sizes::REPLY_BITS),
        Kind::Tcb => Some(sizes::TCB_BITS),
        // Smaller than its object or as large: it starts where that starts, which is enough.
        Kind::Zombie => Some(sizes::SLOT_BITS),
        kind => abi::cap::object_bits(kind),
    }
}

/// Whether `a` and `b` name the very same object (02, section 5.3).
fn same_object(a: Capability, b: Capability) -> bool {
    match a.kind() {
        Kind::Untyped | Kind::IrqControl => false,
        Kind::Frame => a.word().same(b.word()),
        // What was issued is part of the control that issued it, but not the same.
        kind => b.is(kind) && same_thing(kind, a, b),
    }
}

/// Whether the capability in `parent` is a parent of that in `child`, which comes after it.
fn is_parent(parent: &Slot, child: &Slot) -> bool {
    let (a, b) = (parent.cap(), child.cap());
    if !parent.flags().revocable() || !same_region(a, b) {
        return false;
    }
    match a.kind() {
        Kind::Endpoint | Kind::Notification => {
            a.badge() == 0 || (a.badge() == b.badge() && !child.flags().first_badged())
        }
        kind => !abi::cap::stands_alone(kind) || !child.flags().first_badged(),
    }
}

/// The first child of the capability in `slot`.
pub fn first_child(k: &View, slot: Ref<Slot>) -> Option<Ref<Slot>> {
    let next = slot.at(k).next()?;
    is_parent(slot.at(k), next.at(k)).then_some(next)
}

/// Whether the capability in `slot` has children.
pub fn has_children(k: &View, slot: Ref<Slot>) -> bool {
    first_child(k, slot).is_some()
}

/// Whether the capability in `slot` is the last one to its object.
pub fn is_final(k: &View, slot: Ref<Slot>) -> bool {
    let here = slot.at(k);
    let shares = |neighbour: Option<Ref<Slot>>| {
        neighbour.is_some_and(|other| same_object(here.cap(), other.at(k).cap()))
    };
    !shares(here.prev()) && !shares(here.next())
}

/// Puts `cap`, a copy of the capability in `source`, into the empty `slot`, right behind it.
pub fn insert_copy(k: &Kernel, source: Ref<Slot>, slot: Ref<Slot>, cap: Capability) {
    let parent = source.at(k);
    let flags = Flags::original(changed(cap, parent.cap()));
    if let (Kind::Untyped, Some(memory)) = (cap.kind(), parent.cap().untyped()) {
        // What the copy covers is in use as far as the source is concerned.
        parent.set_data(k, memory.size());
    }
    link(k, source, slot, cap, flags);
}

/// Puts `cap`, the capability to a new object, into the empty `slot`, right behind its `parent`.
pub fn insert_new(k: &Kernel, parent: Ref<Slot>, slot: Ref<Slot>, cap: Capability) {
    link(k, parent, slot, cap, Flags::original(true));
}

/// Puts `cap` into the empty `slot` as the origin of a list of its own (boot only).
pub fn insert_origin(k: &Kernel, slot: Ref<Slot>, cap: Capability) {
    let here = slot.at(k);
    here.set_cap(k, cap);
    here.set_flags(k, Flags::original(true));
}

fn link(k: &Kernel, before: Ref<Slot>, slot: Ref<Slot>, cap: Capability, flags: Flags) {
    let here = slot.at(k);
    let next = before.at(k).next();
    here.set_cap(k, cap);
    here.set_prev(k, Some(before));
    here.set_next(k, next);
    here.set_flags(k, flags);
    before.at(k).set_next(k, Some(slot));
    if let Some(next) = next {
        next.at(k).set_prev(k, Some(slot));
    }
}

/// Moves the capability in `source` to the empty `slot`, as `cap`: it keeps position and flags.
pub fn transfer(k: &Kernel, source: Ref<Slot>, slot: Ref<Slot>, cap: Capability) {
    let (from, to) = (source.at(k), slot.at(k));
    to.set_cap(k, cap);
    to.set_prev(k, from.prev());
    to.set_next(k, from.next());
    to.set_flags(k, from.flags());
    clear(k, from);
    relink_neighbours(k, slot);
}

/// Exchanges the capabilities in two slots, which become `cap_a` (the one now in `a`, for `b`)
/// and `cap_b`; both keep position and flags.
pub fn swap(k: &Kernel, a: Ref<Slot>, cap_a: Capability, b: Ref<Slot>, cap_b: Capability) {
    if a == b {
        return;
    }
    let (slot_a, slot_b) = (a.at(k), b.at(k));
    let (prev_a, next_a, flags_a) = (slot_a.prev(), slot_a.next(), slot_a.flags());
    let (prev_b, next_b, flags_b) = (slot_b.prev(), slot_b.next(), slot_b.flags());
    // A link of one to the other turns into a link back.
    let exchanged = |link: Option<Ref<Slot>>, from: Ref<Slot>, to: Ref<Slot>| {
        if link == Some(from) {
            Some(to)
        } else {
            link
        }
    };
    slot_a.set_cap(k, cap_b);
    slot_a.set_prev(k, exchanged(prev_b, a, b));
    slot_a.set_next(k, exchanged(next_b, a, b));
    slot_a.set_flags(k, flags_b);
    slot_b.set_cap(k, cap_a);
    slot_b.set_prev(k, exchanged(prev_a, b, a));
    slot_b.set_next(k, exchanged(next_a, b, a));
    slot_b.set_flags(k, flags_a);
    relink_neighbours(k, a);
    relink_neighbours(k, b);
}

fn relink_neighbours(k: &Kernel, slot: Ref<Slot>) {
    let here = slot.at(k);
    if let Some(prev) = here.prev() {
        prev.at(k).set_next(k, Some(slot));
    }
    if let Some(next) = here.next() {
        next.at(k).set_prev(k, Some(slot));
    }
}

/// Empties `slot` (02, section 5.4).
pub fn remove(k: &Kernel, slot: Ref<Slot>) {
    let here = slot.at(k);
    let (prev, next) = (here.prev(), here.next());
    if let Some(prev) = prev {
        prev.at(k).set_next(k, next);
    }
    if let Some(next) = next {
        let after = next.at(k);
        after.set_prev(k, prev);
        after.set_flags(k, after.flags().or_first_badged(here.flags()));
    }
    clear(k, here);
}

fn clear(k: &Kernel, slot: &Slot) {
    slot.set_cap(k, Capability::NULL);
    slot.set_prev(k, None);
    slot.set_next(k, None);
    slot.set_flags(k, Flags::NONE);
}

/// Whether the derivation list is consistent around `slot`: both neighbours name it. Checked by the
/// debug kernel for the slots that an event touched.
pub fn is_consistent(k: &View, slot: Ref<Slot>) -> bool {
    let here = slot.at(k);
    let prev = here
        .prev()
        .is_none_or(|prev| prev.at(k).next() == Some(slot));
    let next = here
        .next()
        .is_none_or(|next| next.at(k).prev() == Some(slot));
    let linked = here.prev().is_some() || here.next().is_some();
    prev && next && !(here.is_empty() && linked)
}
