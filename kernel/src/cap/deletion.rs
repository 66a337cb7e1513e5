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

use super::derivation;
use crate::mem::{Kind, Ref, Slot, Span};
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
}

/// A zombie: where it is, how many slots it has still to empty, and all slots of its object.
#[derive(Clone, Copy)]
struct Zombie {
    slot: Ref<Slot>,
    left: u64,
    slots: Span,
}

impl Zombie {
    /// The one in `slot`, if that is what it holds.
    fn within(k: &Kernel, slot: Ref<Slot>) -> Option<Zombie> {
        let cap = slot.at(k).cap();
        let slots = Span::of(cap.word()).filter(|_| cap.is(Kind::Zombie))?;
        let left = cap.zombie_left();
        Some(Zombie { slot, left, slots })
    }

    /// Empties the last slot that the zombie still has, or says how. If there is another zombie in it: that
    /// one.
    fn reduce(self, k: &Kernel) -> Result<Zombie, Step> {
        let rest = self.left.checked_sub(1);
        let last = rest.and_then(|rest| self.slots.slot(rest));
        let (Some(rest), Some(last)) = (rest, last) else {
            derivation::remove(k, self.slot);
            return Err(Step::Done);
        };
        if last == self.slot || last.at(k).is_empty() {
            let zombie = self.slot.at(k).cap();
            self.slot.at(k).set_cap(k, zombie.with_zombie_left(rest));
            return Err(Step::Continue);
        }
        Zombie::within(k, last).ok_or(Step::Finalise(last))
    }
}

/// One step towards emptying `slot`.
pub fn next(k: &Kernel, slot: Ref<Slot>) -> Step {
    if slot.at(k).is_empty() {
        return Step::Done;
    }
    let Some(zombie) = Zombie::within(k, slot) else {
        return Step::Finalise(slot);
    };
    match zombie.reduce(k) {
        // A zombie in a slot of its own object stays there to the end, since that slot is in use as long:
        // other zombies are emptied where they are.
        Ok(inner) if zombie.slots.contains(slot) => match inner.reduce(k) {
            Ok(innermost) => descend(k, inner, innermost),
            // That slot is empty, not yet the one under deletion.
            Err(Step::Done) => Step::Continue,
            Err(step) => step,
        },
        Ok(inner) => descend(k, zombie, inner),
        Err(step) => step,
    }
}

/// The zombie `inner`, in a slot of `outer`, comes to the slot of that one, to be worked on. The zombie at
/// work waits in the first slot of the inner one's object (in the second, if the first is its own slot),
/// whose capability takes the place where the inner one was; if the inner one has nothing to empty, or
/// its slot was all that the zombie at work had left, they need not wait.
fn descend(k: &Kernel, outer: Zombie, inner: Zombie) -> Step {
    let (slot, last) = (outer.slot, inner.slot);
    let cap = last.at(k).cap();
    if inner.left == 0 {
        derivation::remove(k, last);
        return Step::Continue;
    }
    if outer.left == 1 {
        // Nothing of the outer object is left but this slot: the inner zombie replaces it.
        derivation::remove(k, slot);
        derivation::transfer(k, last, slot, cap);
        return Step::Continue;
    }
    let waiting = u64::from(inner.slots.slot(0) == Some(slot));
    let Some(wait) = inner.slots.slot(waiting) else {
        never!("what is to be emptied has two slots");
        return Step::Continue;
    };
    // That the inner one is not done before it comes to the slot where the outer one waits.
    let cap = cap.with_zombie_left(inner.left.max(waiting + 1));
    derivation::swap(k, slot, slot.at(k).cap(), last, cap);
    // Now `last` has the outer zombie: exchange it with the capability of the inner object.
    exchange(k, last, wait);
    Step::Continue
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
        Remainder::Nothing => derivation::remove(k, slot),
        Remainder::Slots => match slot.at(k).cap().zombie() {
            Some(zombie) => slot.at(k).set_cap(k, zombie),
            None => {
                never!("only CNodes and threads have slots");
                derivation::remove(k, slot);
            }
        },
    }
}
