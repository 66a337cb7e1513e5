//! The driver of deletion and revocation (02, section 7), and of every other long operation.
//!
//! `cap::deletion` says which capability is next, `finalise` takes its object apart. Every step is
//! bounded, with a preemption point before it if there were others.

use super::finalise::{finalise, held};
use crate::arch::bounds::{self, kind_of_step};
use crate::cap::deletion::{self as slots, Remainder, Step};
use crate::cap::{derivation, Capability};
use crate::mem::{Ref, Slot};
use crate::time::{account, Preempted, Turn};
use crate::Kernel;

/// The steps of a deletion, or of several in a row: which may go on without a look for interrupts. One that takes
/// an object apart can take as long as the longest of the calls that do one thing only, so no two of them go
/// together; nor do two capabilities that go, but for those that one call replaces.
pub struct Deletion {
    copies: u64,
    replaced: u64,
    finalised: u64,
}

impl Deletion {
    pub const fn new() -> Self {
        Deletion {
            copies: 0,
            replaced: 0,
            finalised: 0,
        }
    }

    /// Looks for interrupts.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub(super) fn look(&mut self, k: &Kernel) -> Result<(), Preempted> {
        *self = Self::new();
        account::preemption_point(k)
    }

    /// A capability is about to be replaced: there are at most so many. They do not lead to a look: a call that is repeated
    /// replaces again what it had replaced, and would come no further.
    fn replaced(&mut self) {
        self.replaced += 1;
        bounds::step::<{ kind_of_step::REPLACED }, 3>(self.replaced);
    }

    /// A capability is about to go. If one has gone, it looks for interrupts first.
    ///
    /// # Errors
    /// As [`Self::delete`].
    fn copy(&mut self, k: &Kernel) -> Result<(), Preempted> {
        if self.copies > 0 {
            self.look(k)?;
        }
        self.copies += 1;
        bounds::step::<{ kind_of_step::COPY }, 1>(self.copies);
        Ok(())
    }

    /// A zombie was moved, or a slot of it was found empty.
    ///
    /// # Errors
    /// As [`Self::delete`].
    fn moved(&mut self, k: &Kernel) -> Result<(), Preempted> {
        bounds::step::<{ kind_of_step::MOVE }, 1>(1);
        self.look(k)
    }

    /// An object is about to be taken apart, or something is that takes as long. If one was, it looks for interrupts first:
    /// a call that is repeated has nothing left of that.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub(super) fn object(&mut self, k: &Kernel) -> Result<(), Preempted> {
        if self.finalised > 0 {
            self.look(k)?;
        }
        self.finalised += 1;
        bounds::step::<{ kind_of_step::OBJECT }, 1>(self.finalised);
        Ok(())
    }

    /// Empties `slot`, and whatever only its capability kept alive.
    ///
    /// # Errors
    /// It must stop now. One that is called again goes on where it was.
    pub fn delete(&mut self, k: &Kernel, turn: &Turn, slot: Ref<Slot>) -> Result<(), Preempted> {
        // Ends: each step empties a slot, takes a thread out of a queue, or starts on another of
        // finitely many objects, and a preempted deletion goes on where it was.
        loop {
            match slots::next(k, slot) {
                Step::Done => return Ok(()),
                Step::Continue => self.moved(k)?,
                Step::Finalise(inner) => {
                    self.copy(k)?;
                    slots::finalised(k, inner, finalise(k, turn, inner, self)?);
                }
            }
        }
    }

    /// Deletes all children of the capability in `slot`.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub fn revoke(&mut self, k: &Kernel, turn: &Turn, slot: Ref<Slot>) -> Result<(), Preempted> {
        let mut children = 0;
        while let Some(child) = derivation::first_child(k, slot) {
            if children > 0 {
                children = 0;
                self.look(k)?;
            }
            children += 1;
            bounds::step::<{ kind_of_step::CHILD }, 1>(children);
            self.delete(k, turn, child)?;
        }
        Ok(())
    }

    /// Empties `slot`, which is the kernel's own, and puts `what` there, unless the deletion took its source or the
    /// capability away that was `invoked`. A call that was preempted starts anew, and finds what is done already done.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub fn replace(
        &mut self,
        k: &Kernel,
        turn: &Turn,
        slot: Ref<Slot>,
        what: Install,
        invoked: Install,
    ) -> Result<(), Preempted> {
        if !slot.at(k).is_empty() {
            self.replaced();
            let cap = slot.at(k).cap();
            let last = cap.frame().is_none() && derivation::is_final(k, slot);
            held(k, turn, cap, last, self)?;
            derivation::remove(k, slot);
        }
        let is_there =
            |(slot, cap): (Ref<Slot>, Capability)| slot.at(k).cap().word().same(cap.word());
        if let Some((source, cap)) = what {
            if is_there((source, cap)) && invoked.is_none_or(is_there) {
                derivation::insert_copy(k, source, slot, cap);
            }
        }
        Ok(())
    }
}

/// What is left of an object after a step of taking it apart, unless the deletion must stop there.
pub type Progress = Result<Remainder, Preempted>;

/// A capability to put into a slot of a kernel's own, and the slot of which it is a copy; `None` leaves the
/// slot empty.
pub type Install = Option<(Ref<Slot>, Capability)>;
