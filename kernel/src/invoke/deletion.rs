//! The driver of deletion and revocation (02, section 7), and of every other long operation.
//!
//! `cap::deletion` says which capability is next, `finalise` takes its object apart. Every step is
//! bounded, with a preemption point behind it if there is another.

use super::finalise::finalise;
use crate::cap::deletion::{self as slots, Step};
use crate::cap::{derivation, Capability};
use crate::mem::{Ref, Slot};
use crate::time::{account, Preempted, Turn};
use crate::Kernel;

/// Steps between two looks at whether to stop: a step takes some hundred instructions, so a
/// pending interrupt waits for a few thousand. The ABI's ceiling is 100 (01, section 8).
const INTERVAL: u8 = 8;

const _: () = assert!(INTERVAL as u32 <= sandglass_abi::sched::PREEMPTION_INTERVAL);

/// Counts the steps of a long operation.
pub struct Preemption {
    steps: u8,
}

impl Preemption {
    pub const fn new() -> Self {
        Preemption { steps: 0 }
    }

    /// A step was done, and there is more to do.
    ///
    /// # Errors
    /// The operation must stop now.
    pub fn point(&mut self, k: &Kernel) -> Result<(), Preempted> {
        self.count();
        if self.steps < INTERVAL {
            return Ok(());
        }
        self.steps = 0;
        account::preemption_point(k)
    }

    /// A step was done that may have been the last.
    fn count(&mut self) {
        self.steps = self.steps.saturating_add(1);
    }
}

/// Empties `slot`, and whatever only its capability kept alive.
pub fn delete(k: &Kernel, turn: &Turn, slot: Ref<Slot>) -> Result<(), Preempted> {
    delete_counted(k, turn, slot, &mut Preemption::new())
}

fn delete_counted(
    k: &Kernel,
    turn: &Turn,
    slot: Ref<Slot>,
    preemption: &mut Preemption,
) -> Result<(), Preempted> {
    // Ends: each step empties a slot, takes a thread out of a queue, or starts on another of
    // finitely many objects, and a preempted deletion goes on where it was.
    loop {
        match slots::next(k, slot) {
            Step::Done => return Ok(()),
            Step::Continue => {}
            Step::Finalise(inner) => slots::finalised(k, inner, finalise(k, turn, inner)?),
        }
        if slot.at(k).is_empty() {
            preemption.count();
            return Ok(());
        }
        preemption.point(k)?;
    }
}

/// Deletes all children of the capability in `slot`.
pub fn revoke(k: &Kernel, turn: &Turn, slot: Ref<Slot>) -> Result<(), Preempted> {
    let mut preemption = Preemption::new();
    let mut next = derivation::first_child(k, slot);
    while let Some(child) = next {
        delete_counted(k, turn, child, &mut preemption)?;
        next = derivation::first_child(k, slot);
        if next.is_some() {
            preemption.point(k)?;
        }
    }
    Ok(())
}

/// A capability to put into a slot of a kernel's own, and the slot of which it is a copy; `None` leaves the
/// slot empty.
pub type Install = Option<(Ref<Slot>, Capability)>;

/// Empties `slot` and puts `what` there, unless the deletion took its source or the capability away that
/// was `invoked`. A call that was preempted starts anew, and finds what is done already done.
pub fn replace(
    k: &Kernel,
    turn: &Turn,
    slot: Ref<Slot>,
    what: Install,
    invoked: Install,
) -> Result<(), Preempted> {
    delete(k, turn, slot)?;
    let is_there = |(slot, cap): (Ref<Slot>, Capability)| slot.at(k).cap().word().same(cap.word());
    if let Some((source, cap)) = what {
        if is_there((source, cap)) && invoked.is_none_or(is_there) {
            derivation::insert_copy(k, source, slot, cap);
        }
    }
    Ok(())
}
