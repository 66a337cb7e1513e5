//! The driver of deletion and revocation (02, section 7), and of every other long operation.
//!
//! `cap::deletion` says which capability is next, `finalise` takes its object apart. Every step is
//! bounded, with a preemption point behind it if there is another.

use super::finalise::finalise;
use crate::cap::deletion::{self as slots, Step};
use crate::cap::derivation;
use crate::mem::{Ref, Slot};
use crate::time::account::{self, TimeOver};
use crate::time::Turn;
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

    /// A step was done, and there is more to do: whether the operation must stop now.
    #[must_use]
    pub fn due(&mut self, k: &Kernel) -> bool {
        self.count();
        if self.steps < INTERVAL {
            return false;
        }
        self.steps = 0;
        account::should_preempt(k)
    }

    /// A step was done that may have been the last.
    fn count(&mut self) {
        self.steps = self.steps.saturating_add(1);
    }
}

/// How far a preemptible operation came.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress {
    Done,
    Preempted,
}

/// Empties `slot`, and whatever only its capability kept alive.
pub fn delete(k: &Kernel, turn: &Turn, slot: Ref<Slot>) -> Progress {
    delete_counted(k, turn, slot, &mut Preemption::new())
}

fn delete_counted(
    k: &Kernel,
    turn: &Turn,
    slot: Ref<Slot>,
    preemption: &mut Preemption,
) -> Progress {
    // Ends: each step empties a slot, takes a thread out of a queue, or starts on another of
    // finitely many objects, and a preempted deletion goes on where it was.
    loop {
        match slots::next(k, slot) {
            Step::Done => return Progress::Done,
            Step::Continue => {}
            Step::Finalise(inner) => match finalise(k, turn, inner) {
                Ok(remainder) => slots::finalised(k, inner, remainder),
                Err(TimeOver) => return Progress::Preempted,
            },
        }
        if slot.at(k).is_empty() {
            preemption.count();
            return Progress::Done;
        }
        if preemption.due(k) {
            return Progress::Preempted;
        }
    }
}

/// Deletes all children of the capability in `slot`.
pub fn revoke(k: &Kernel, turn: &Turn, slot: Ref<Slot>) -> Progress {
    let mut preemption = Preemption::new();
    let mut next = derivation::first_child(k, slot);
    while let Some(child) = next {
        if delete_counted(k, turn, child, &mut preemption) == Progress::Preempted {
            return Progress::Preempted;
        }
        next = derivation::first_child(k, slot);
        if next.is_some() && preemption.due(k) {
            return Progress::Preempted;
        }
    }
    Progress::Done
}
