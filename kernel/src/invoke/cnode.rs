//! CNodes and the operations on capabilities (02, section 6).

use sandglass_abi::invocation as label;

use super::deletion::{self, Preemption};
use super::{source_slot, target_slot, Error, Invocation, Outcome};
use crate::arch::abi::space;
use crate::cap::{derivation, Capability};
use crate::mem::{Ref, Slot};
use crate::object::{Endpoint, EndpointState, Key, LookupFailure, ResumePoint, Rights, State, Tcb};
use crate::time::Turn;
use crate::{thread, Kernel, View};

/// A checked invocation of a CNode.
#[derive(Clone, Copy)]
enum Operation {
    Revoke(Ref<Slot>),
    Delete(Ref<Slot>),
    CancelBadgedSends(Cancel),
    /// Copy, Mint and MintCall.
    Insert(Step),
    /// Move and Mutate.
    Move(Step),
    /// From the pivot to the target, and from the source to the pivot.
    Rotate(Step, Step),
}

/// A capability goes from one slot to another, and becomes `cap` there.
#[derive(Clone, Copy)]
struct Step {
    source: Ref<Slot>,
    target: Ref<Slot>,
    cap: Capability,
}

/// A checked CancelBadgedSends.
#[derive(Clone, Copy)]
struct Cancel {
    endpoint: Ref<Endpoint>,
    badge: u64,
    /// How far a preempted execution of this very call has come.
    begun: Option<Begun>,
}

/// A cancellation goes on behind the last sender that it looked at, and leaves alone those that
/// came after it first began.
#[derive(Clone, Copy)]
struct Begun {
    at: Key,
    until: u64,
}

/// Invokes a CNode.
pub fn invoke(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Error> {
    let operation = decode(k, call)?;
    Ok(commit(k, turn, call.caller, operation))
}

fn decode(k: &View, call: &Invocation) -> Result<Operation, Error> {
    let of_abi = label::CNODE_REVOKE..=label::CNODE_ROTATE;
    if !of_abi.contains(&call.label()) && call.label() != label::extension::CNODE_MINT_CALL {
        return Err(Error::IllegalOperation);
    }
    call.need(2)?;
    let target = target_slot(k, call.cap, call.word(k, 0), call.word(k, 1))?;
    match call.label() {
        label::CNODE_REVOKE => Ok(Operation::Revoke(target)),
        label::CNODE_DELETE => Ok(Operation::Delete(target)),
        label::CNODE_CANCEL_BADGED_SENDS => decode_cancel(k, call, target),
        label::CNODE_ROTATE => decode_rotate(k, call, target),
        _ => decode_insertion(k, call, target),
    }
}

fn decode_cancel(k: &View, call: &Invocation, target: Ref<Slot>) -> Result<Operation, Error> {
    let cap = target.at(k).cap().endpoint();
    let cap = cap.filter(|cap| cap.rights == Rights::ALL);
    let cap = cap.ok_or(Error::IllegalOperation)?;
    let begun = match call.caller.at(k).progress() {
        Some(ResumePoint::CancelBadgedSends {
            endpoint,
            badge,
            at,
            until,
        }) if endpoint == cap.object.address() && badge == cap.badge => Some(Begun { at, until }),
        _ => None,
    };
    Ok(Operation::CancelBadgedSends(Cancel {
        endpoint: cap.object,
        badge: cap.badge,
        begun,
    }))
}

/// Copy, Mint, MintCall, Move and Mutate.
fn decode_insertion(k: &View, call: &Invocation, target: Ref<Slot>) -> Result<Operation, Error> {
    call.need(4)?;
    let root = call.extra_cap(k, 0)?;
    if !target.at(k).is_empty() {
        return Err(Error::DeleteFirst);
    }
    let depth = call.word(k, 3);
    let source = source_slot(k, root, call.word(k, 2), depth)?;
    let cap = source.at(k).cap();
    if cap.is_null() {
        return Err(missing_source(depth));
    }
    let moved = |cap: Option<Capability>| {
        let cap = cap.ok_or(Error::IllegalOperation)?;
        Ok(Operation::Move(Step {
            source,
            target,
            cap,
        }))
    };
    let copied = |cap: Option<Capability>| {
        let cap = match cap {
            Some(cap) => derivation::derive(k, source, cap)?,
            None => Capability::NULL,
        };
        if cap.is_null() {
            return Err(Error::IllegalOperation);
        }
        Ok(Operation::Insert(Step {
            source,
            target,
            cap,
        }))
    };
    match call.label() {
        label::CNODE_COPY => {
            call.need(5)?;
            copied(Some(cap.masked(Rights::new(call.word(k, 4)))))
        }
        label::CNODE_MINT | label::extension::CNODE_MINT_CALL => {
            call.need(6)?;
            let masked = cap.masked(Rights::new(call.word(k, 4)));
            let minted = masked.updated(call.word(k, 5), false);
            if call.label() == label::CNODE_MINT {
                copied(minted)
            } else {
                copied(minted.and_then(Capability::calling))
            }
        }
        label::CNODE_MUTATE => {
            call.need(5)?;
            moved(cap.updated(call.word(k, 4), true))
        }
        _ => moved(Some(cap)),
    }
}

fn decode_rotate(k: &View, call: &Invocation, target: Ref<Slot>) -> Result<Operation, Error> {
    call.need(8)?;
    let (pivot_root, source_root) = (call.extra_cap(k, 0)?, call.extra_cap(k, 1)?);
    let source = source_slot(k, source_root, call.word(k, 6), call.word(k, 7))?;
    let pivot = source_slot(k, pivot_root, call.word(k, 3), call.word(k, 4))?;
    if pivot == source || pivot == target {
        return Err(Error::IllegalOperation);
    }
    if source != target && !target.at(k).is_empty() {
        return Err(Error::DeleteFirst);
    }
    if source.at(k).is_empty() {
        return Err(missing_source(call.word(k, 7)));
    }
    if pivot.at(k).is_empty() {
        return Err(Error::missing(call.word(k, 4) as u8));
    }
    let step = |source: Ref<Slot>, target: Ref<Slot>, data: u64| {
        let cap = source.at(k).cap().updated(data, true);
        let cap = cap.ok_or(Error::IllegalOperation)?;
        Ok::<_, Error>(Step {
            source,
            target,
            cap,
        })
    };
    let second = step(source, pivot, call.word(k, 5))?;
    let first = step(pivot, target, call.word(k, 2))?;
    Ok(Operation::Rotate(first, second))
}

fn missing_source(depth: u64) -> Error {
    let failure = LookupFailure::MissingCapability {
        bits_left: depth as u8,
    };
    Error::FailedLookup {
        source: true,
        failure,
    }
}

/// The capability that installing `cap` with `data` as its badge or guard would store: `data` of
/// 0 leaves it as it is (03, section 4.4).
pub fn with_data(cap: Capability, data: u64) -> Option<Capability> {
    if data == 0 {
        Some(cap)
    } else {
        cap.updated(data, false)
    }
}

fn commit(k: &Kernel, turn: &Turn, caller: Ref<Tcb>, operation: Operation) -> Outcome {
    match operation {
        Operation::Revoke(slot) => {
            let progress = deletion::revoke(k, turn, slot);
            outcome(k, turn, progress)
        }
        Operation::Delete(slot) => {
            let progress = deletion::delete(k, turn, slot);
            outcome(k, turn, progress)
        }
        Operation::CancelBadgedSends(cancel) => cancel_badged_sends(k, turn, caller, cancel),
        Operation::Insert(step) => {
            derivation::insert_copy(k, step.source, step.target, step.cap);
            Outcome::Done
        }
        Operation::Move(step) => {
            derivation::transfer(k, step.source, step.target, step.cap);
            Outcome::Done
        }
        Operation::Rotate(first, second) if second.source == first.target => {
            derivation::swap(k, second.source, second.cap, first.source, first.cap);
            Outcome::Done
        }
        Operation::Rotate(first, second) => {
            derivation::transfer(k, first.source, first.target, first.cap);
            derivation::transfer(k, second.source, second.target, second.cap);
            Outcome::Done
        }
    }
}

/// Deletion may have taken the address space of the running thread away.
fn outcome(k: &Kernel, turn: &Turn, progress: deletion::Progress) -> Outcome {
    space::revoked(k, turn);
    match progress {
        deletion::Progress::Done => Outcome::Done,
        deletion::Progress::Preempted => Outcome::Preempted,
    }
}

/// Restarts every queued sender with the badge (02, section 7.4). Each step looks at one sender,
/// in the order of the queue.
fn cancel_badged_sends(k: &Kernel, turn: &Turn, caller: Ref<Tcb>, cancel: Cancel) -> Outcome {
    let Cancel {
        endpoint: handle,
        badge,
        begun,
    } = cancel;
    let endpoint = handle.at(k);
    if badge == 0 || endpoint.state() != EndpointState::Senders {
        return Outcome::Done;
    }
    let (mut next, until) = match begun {
        Some(begun) => (endpoint.queue().first_after(k, begun.at), begun.until),
        None => (endpoint.queue().first(), k.next_sequence()),
    };
    let mut preemption = Preemption::new();
    // Ends: each step goes to a greater key, and nobody is queued while this runs.
    while let Some(sender) = next {
        let at = sender.at(k).links().key();
        if at.sequence < until && is_sender_with(k, sender, badge) {
            endpoint.queue().remove(k, sender);
            thread::restart_or_give_up(k, turn, sender);
        }
        next = endpoint.queue().first_after(k, at);
        if next.is_some() && preemption.due(k) {
            turn.reschedule(k);
            caller.at(k).leave_progress(
                k,
                ResumePoint::CancelBadgedSends {
                    endpoint: handle.address(),
                    badge,
                    at,
                    until,
                },
            );
            return Outcome::Preempted;
        }
    }
    turn.reschedule(k);
    Outcome::Done
}

fn is_sender_with(k: &Kernel, thread: Ref<Tcb>, badge: u64) -> bool {
    matches!(
        thread.at(k).state(),
        State::BlockedOnSend { sender, .. }
            if sender.badge == badge
    )
}
