//! Deletion of capabilities, one bounded step at a time (02, section 7.1).
//!
//! Deleting the last capability to a CNode deletes what is in it, which may be the last
//! capability to another CNode, and so on. There is no recursion and no stack: the slot under
//! deletion always holds the object at work, as a *zombie* with a count of slots still to empty,
//! and what remains to be done afterwards waits in the first slot of that object's own memory.
//! (If the slot lies in an object that is itself to be emptied, it holds that one's zombie to the
//! end, and the object at work is in another slot of it.)
//! So a deletion that is interrupted and started again continues where it was, at once, however
//! deep the nesting.
//!
//! This module decides about slots only; what it means for an object that its last capability
//! goes is done by `object::finalise`, between the steps.

use super::{derivation, Capability};
use crate::mem::{Ref, Slot, Span};
use crate::Kernel;

/// What is to be done next to empty a slot.
#[must_use]
pub enum Step {
    /// The slot is empty: done.
    Done,
    /// Finalise the capability in this slot and report with [`finalised`].
    Finalise(Ref<Slot>),
    /// A bounded piece of work was done; go on.
    Continue,
}

/// What is left of a capability after its object was finalised.
#[must_use]
pub enum Remainder {
    /// Nothing: the slot can be emptied.
    Nothing,
    /// The object has slots of its own: the capability becomes a zombie.
    Slots,
    /// The object needs more work first: try again.
    Unfinished,
}

/// One step towards emptying `slot`.
pub fn next(k: &Kernel, slot: Ref<Slot>) -> Step {
    let cap = slot.at(k).cap();
    if cap.is_null() {
        return Step::Done;
    }
    match Span::of(cap.word()) {
        Some(slots) if cap.is(crate::mem::Kind::Zombie) => {
            if slots.contains(slot) {
                reduce_own(k, slot, cap, slots)
            } else {
                reduce(k, slot, cap, slots)
            }
        }
        _ => Step::Finalise(slot),
    }
}

/// Empties the last slot that the zombie in `slot` still has, or finds out how.
fn reduce(k: &Kernel, slot: Ref<Slot>, zombie: Capability, slots: Span) -> Step {
    let left = zombie.zombie_left();
    let Some(last) = left.checked_sub(1).and_then(|i| slots.slot(i)) else {
        derivation::remove(k, slot);
        return Step::Done;
    };
    let inner = last.at(k).cap();
    if inner.is_null() {
        slot.at(k).set_cap(k, zombie.with_zombie_left(left - 1));
        return Step::Continue;
    }
    match Span::of(inner.word()) {
        Some(nested) if inner.is(crate::mem::Kind::Zombie) => {
            descend(k, slot, last, nested, left);
            Step::Continue
        }
        _ => Step::Finalise(last),
    }
}

/// The same for a zombie that sits in a slot of its own object. It stays there to the end, since
/// that slot is in use as long: other zombies are emptied where they are.
fn reduce_own(k: &Kernel, slot: Ref<Slot>, zombie: Capability, slots: Span) -> Step {
    let left = zombie.zombie_left();
    let Some(last) = left.checked_sub(1).and_then(|i| slots.slot(i)) else {
        derivation::remove(k, slot);
        return Step::Done;
    };
    let inner = last.at(k).cap();
    if inner.is_null() || last == slot {
        slot.at(k).set_cap(k, zombie.with_zombie_left(left - 1));
        return Step::Continue;
    }
    match Span::of(inner.word()) {
        Some(nested) if inner.is(crate::mem::Kind::Zombie) => {
            match reduce(k, last, inner, nested) {
                // This slot is empty, not yet the one under deletion.
                Step::Done => Step::Continue,
                step => step,
            }
        }
        _ => Step::Finalise(last),
    }
}

/// The slot `last` of the zombie in `slot` holds another zombie, with the slots `nested`. That one
/// comes to `slot`, to be worked on. The zombie at work waits in the first of the nested slots (in
/// the second, if the first is `slot` itself), whose capability takes the place in `last`; if the
/// nested one has nothing to empty, or `last` was all that the zombie at work had left, they need
/// not wait.
fn descend(k: &Kernel, slot: Ref<Slot>, last: Ref<Slot>, nested: Span, left: u64) {
    let inner = last.at(k).cap();
    if inner.zombie_left() == 0 {
        derivation::remove(k, last);
        return;
    }
    if left == 1 {
        // Nothing of the outer object is left but this slot: the inner zombie replaces it.
        derivation::remove(k, slot);
        derivation::transfer(k, last, slot, inner);
        return;
    }
    let waiting = u64::from(nested.slot(0) == Some(slot));
    let Some(wait) = nested.slot(waiting) else {
        never!("what is to be emptied has two slots");
        return;
    };
    // That the nested one is not done before it comes to the slot where the outer one waits.
    let inner = inner.with_zombie_left(inner.zombie_left().max(waiting + 1));
    derivation::swap(k, slot, slot.at(k).cap(), last, inner);
    // Now `last` has the outer zombie: exchange it with the nested capability.
    exchange(k, last, wait);
}

fn exchange(k: &Kernel, a: Ref<Slot>, b: Ref<Slot>) {
    let (cap_a, cap_b) = (a.at(k).cap(), b.at(k).cap());
    if cap_b.is_null() {
        derivation::transfer(k, a, b, cap_a);
    } else {
        derivation::swap(k, a, cap_a, b, cap_b);
    }
}

/// The object of the capability in `slot` was finalised, with what is left of it.
pub fn finalised(k: &Kernel, slot: Ref<Slot>, remainder: Remainder) {
    match remainder {
        Remainder::Unfinished => {}
        Remainder::Nothing => derivation::remove(k, slot),
        Remainder::Slots => {
            let here = slot.at(k);
            let zombie = here.cap().zombie(0);
            let slots = zombie.and_then(|zombie| Span::of(zombie.word()));
            match (zombie, slots) {
                (Some(zombie), Some(slots)) => {
                    here.set_cap(k, zombie.with_zombie_left(slots.length()));
                }
                _ => {
                    never!("only CNodes and threads have slots");
                    derivation::remove(k, slot);
                }
            }
        }
    }
}
