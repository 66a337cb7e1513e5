//! What user level may ask of an object: a file per object, with its invocations (ABI page 03).
//!
//! An invocation is decoded, which checks everything and changes nothing, and then committed, which
//! cannot fail. A preemptible commit keeps its finished steps and is decoded anew when the system
//! call restarts.

#![forbid(unsafe_code)]

pub mod cnode;
pub mod deletion;
pub mod domain;
pub mod error;
pub mod finalise;
pub mod irq;
pub mod sched_context;
pub mod sched_control;
pub mod tcb;
pub mod untyped;

use crate::arch::abi::invoke as arch;
use crate::cap::{lookup, Capability};
use crate::ipc::{ExtraCaps, Message, Phases};
use crate::mem::{Kind, Object, Ref, Slot};
use crate::object::Tcb;
use crate::time::Turn;
use crate::{Kernel, View};
pub use error::{Error, Stop};

/// An invocation of a capability: the user's claims, not yet checked.
pub struct Invocation<'a> {
    pub caller: Ref<Tcb>,
    /// Slot of the invoked capability.
    pub slot: Ref<Slot>,
    pub cap: Capability,
    pub message: Message,
    pub extra: &'a ExtraCaps,
    pub phases: Phases,
}

impl Invocation<'_> {
    /// Which invocation it is: the label of the message.
    pub fn label(&self) -> u64 {
        self.message.label()
    }

    /// Message word `i`, at most as many as [`Self::need`] has checked.
    pub fn word(&self, k: &View, i: usize) -> u64 {
        self.message.word(k, self.caller, i)
    }

    /// Refuses a message of less than `words` words.
    #[inline(always)]
    pub fn need(&self, words: usize) -> Result<(), Error> {
        Error::TruncatedMessage.when(!self.message.has(words))
    }

    /// Slot of extra capability `i`, which must have been sent; it may be empty.
    pub fn extra_slot(&self, i: usize) -> Result<Ref<Slot>, Error> {
        self.extra.get(i).ok_or(Error::TruncatedMessage)
    }

    /// Extra capability `i`, which must have been sent; it may be null.
    #[inline(always)]
    pub fn extra_cap(&self, k: &View, i: usize) -> Result<Capability, Error> {
        Ok(self.extra_slot(i)?.at(k).cap())
    }

    /// The object that extra capability `i` names, which must have been sent; a capability to anything
    /// else is refused.
    #[inline(always)]
    pub fn extra_object<T: Object>(&self, k: &View, i: usize) -> Result<Ref<T>, Error> {
        let word = self.extra_cap(k, i)?.word();
        word.get().ok_or(Error::InvalidCapability(i as u64 + 1))
    }
}

/// The slot for a new capability, by index and depth below `root`: it must be empty.
pub fn empty_slot(k: &View, root: Capability, index: u64, depth: u64) -> Result<Ref<Slot>, Error> {
    let slot = target_slot(k, root, index, depth)?;
    Error::DeleteFirst.when(!slot.at(k).is_empty())?;
    Ok(slot)
}

/// The destination slot of an operation.
#[inline(always)]
pub fn target_slot(k: &View, root: Capability, index: u64, depth: u64) -> Result<Ref<Slot>, Error> {
    lookup::exact_slot(k, root, index, depth).ok_or_else(|| no_slot(k, root, index, depth, false))
}

/// The source slot of an operation.
#[inline(always)]
pub fn source_slot(k: &View, root: Capability, index: u64, depth: u64) -> Result<Ref<Slot>, Error> {
    lookup::exact_slot(k, root, index, depth).ok_or_else(|| no_slot(k, root, index, depth, true))
}

/// Why an operation has no `source` or destination.
#[cold]
#[inline(never)]
fn no_slot(k: &View, root: Capability, index: u64, depth: u64, source: bool) -> Error {
    match lookup::exact_failure(k, root, index, depth) {
        Some(failure) => Error::lookup(source, failure),
        None => Error::Range { min: 1, max: 64 },
    }
}

/// How a checked operation ended.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done, nothing to tell.
    Done,
    /// Done, with a result.
    Value(u64),
    /// Done; the operation has answered the caller, or will, or stopped it.
    Answered,
}

/// Invokes a capability that is no endpoint, notification or reply: checks everything, changing
/// nothing, and then does it.
///
/// # Errors
/// The first check that failed, in the order of the ABI; or the operation was preempted.
#[inline(always)]
pub fn invoke(k: &mut Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Stop> {
    if call.cap.is(Kind::Frame) {
        return arch::frame::invoke(k, call);
    }
    match call.cap.word().get() {
        Some(thread) if !call.phases.is_first() => tcb::invoke(k, turn, call, thread),
        _ if call.cap.is(Kind::Untyped) => untyped::invoke(k, call),
        _ => invoke_other(k, turn, call),
    }
}

/// The kinds that are invoked less often.
#[inline(never)]
fn invoke_other(k: &mut Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Stop> {
    match call.cap.kind() {
        Kind::Domain | Kind::CNode | Kind::SchedControl | Kind::SchedContext
            if call.phases.is_first() =>
        {
            Err(Error::InvalidCapability(0).into())
        }
        Kind::Untyped => untyped::invoke(k, call),
        Kind::CNode => cnode::invoke(k, turn, call),
        Kind::SchedControl => sched_control::invoke(k, turn, call),
        Kind::SchedContext => sched_context::invoke(k, turn, call),
        Kind::Domain => domain::invoke(k, turn, call),
        Kind::IrqControl => Ok(arch::irq::invoke_control(k, call)?),
        Kind::IrqHandler => irq::invoke_handler(k, turn, call),
        Kind::Frame
        | Kind::Tcb
        | Kind::Null
        | Kind::Zombie
        | Kind::Endpoint
        | Kind::Notification
        | Kind::Reply => Err(Error::InvalidCapability(0).into()),
        kind => arch::invoke(k, call, kind),
    }
}
