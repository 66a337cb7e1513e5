//! CNodes and the operations on capabilities (02, section 6).

use sandglass_abi::invocation as label;

use super::deletion::Deletion;
use super::{source_slot, target_slot, Error, Invocation, Outcome, Stop};
use crate::arch::abi::space;
use crate::arch::bounds;
use crate::cap::{derivation, Capability};
use crate::mem::{Ref, Slot};
use crate::object::{Cancellation, EndpointState, ResumePoint, Rights};
use crate::time::{account, Preempted, Turn};
use crate::{thread, Kernel, View};

/// A capability goes from one slot to another, and becomes `cap` there.
struct Step {
    source: Ref<Slot>,
    cap: Capability,
}

/// # Errors
/// There is no such capability.
fn step(source: Ref<Slot>, cap: Option<Capability>) -> Result<Step, Error> {
    let cap = cap.filter(|cap| !cap.is_null());
    let cap = cap.ok_or(Error::IllegalOperation)?;
    Ok(Step { source, cap })
}

/// Invokes a CNode: what is called for is checked, and then done.
pub fn invoke(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Stop> {
    let of_abi = label::CNODE_REVOKE..=label::CNODE_ROTATE;
    let is_known = of_abi.contains(&call.label());
    let is_mint_call = call.label() == label::extension::CNODE_MINT_CALL;
    Error::IllegalOperation.when(!is_known && !is_mint_call)?;
    call.need(2)?;
    let target = target_slot(k, call.cap, call.word(k, 0), call.word(k, 1))?;
    match call.label() {
        label::CNODE_REVOKE | label::CNODE_DELETE => {
            bounds::commit();
            let mut deletion = Deletion::new();
            let progress = match call.label() {
                label::CNODE_REVOKE => deletion.revoke(k, turn, target),
                _ => deletion.delete(k, turn, target),
            };
            // The address space of the running thread may be gone, also if more is to be deleted.
            space::revoked(k, turn);
            progress?;
        }
        label::CNODE_CANCEL_BADGED_SENDS => cancel_badged_sends(k, turn, call, target)?,
        label::CNODE_ROTATE => rotate(k, call, target)?,
        label::CNODE_MOVE | label::CNODE_MUTATE => {
            let step = decode_insertion(k, call, target)?;
            derivation::transfer(k, step.source, target, step.cap);
        }
        _ => {
            let step = decode_insertion(k, call, target)?;
            derivation::insert_copy(k, step.source, target, step.cap);
        }
    }
    Ok(Outcome::Done)
}

/// Copy, Mint, MintCall, Move and Mutate.
fn decode_insertion(k: &View, call: &Invocation, target: Ref<Slot>) -> Result<Step, Error> {
    call.need(4)?;
    let root = call.extra_cap(k, 0)?;
    Error::DeleteFirst.when(!target.at(k).is_empty())?;
    let depth = call.word(k, 3);
    let source = source_slot(k, root, call.word(k, 2), depth)?;
    let cap = source.at(k).cap();
    Error::missing_source(depth as u8).when(cap.is_null())?;
    let moved = |cap| step(source, cap);
    let copied = |cap: Option<Capability>| {
        let copy = cap.map(|cap| derivation::derive(k, source, cap));
        step(source, copy.transpose()?)
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

/// Rotate: from the pivot to the target, and from the source to the pivot.
fn rotate(k: &Kernel, call: &Invocation, target: Ref<Slot>) -> Result<(), Error> {
    call.need(8)?;
    let (pivot_root, source_root) = (call.extra_cap(k, 0)?, call.extra_cap(k, 1)?);
    let source = source_slot(k, source_root, call.word(k, 6), call.word(k, 7))?;
    let pivot = source_slot(k, pivot_root, call.word(k, 3), call.word(k, 4))?;
    Error::IllegalOperation.when(pivot == source || pivot == target)?;
    Error::DeleteFirst.when(source != target && !target.at(k).is_empty())?;
    Error::missing_source(call.word(k, 7) as u8).when(source.at(k).is_empty())?;
    Error::missing(call.word(k, 4) as u8).when(pivot.at(k).is_empty())?;
    let updated = |source: Ref<Slot>, data| source.at(k).cap().updated(data, true);
    let second = step(source, updated(source, call.word(k, 5)))?;
    let first = step(pivot, updated(pivot, call.word(k, 2)))?;
    if source == target {
        derivation::swap(k, source, second.cap, pivot, first.cap);
    } else {
        derivation::transfer(k, pivot, target, first.cap);
        derivation::transfer(k, source, pivot, second.cap);
    }
    Ok(())
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

/// CancelBadgedSends: restarts every queued sender with the badge of the capability in `target` (02, section 7.4). Each
/// step looks at one sender, in the order of the queue.
fn cancel_badged_sends(
    k: &Kernel,
    turn: &Turn,
    call: &Invocation,
    target: Ref<Slot>,
) -> Result<(), Stop> {
    let cap = target.at(k).cap().endpoint();
    let cap = cap.filter(|cap| cap.rights == Rights::ALL);
    let cap = cap.ok_or(Error::IllegalOperation)?;
    let endpoint = cap.object.at(k);
    // Whoever is at an endpoint that is being emptied is restarted by that.
    let is_of_interest = cap.badge != 0 && endpoint.queue().admits();
    if !is_of_interest || endpoint.state() != EndpointState::Senders {
        return Ok(());
    }
    // Here, where one way leads by: a mark has no instruction of its own, and behind two ways that meet it could be that of both.
    bounds::commit();
    let this = |until| Cancellation {
        endpoint: cap.object.address(),
        badge: cap.badge,
        until,
    };
    // On from where a preempted execution of this very call has come, if senders that took other places since were cancelled,
    // or none did.
    let is_whole = |begun: Cancellation| {
        k.core().cancellation() == Some(begun) || k.no_sender_has_moved_since(begun.until)
    };
    let (mut next, until) = match call.caller.at(k).progress() {
        Some(ResumePoint::CancelBadgedSends(begun, at))
            if begun == this(begun.until) && is_whole(begun) =>
        {
            (endpoint.queue().first_after(k, at), begun.until)
        }
        _ => (endpoint.queue().first(), k.next_sequence()),
    };
    // Ends: each step goes to a greater key, and nobody is queued while this runs.
    while let Some(sender) = next {
        let (at, behind) = (sender.at(k).links().key(), sender.at(k).links().next());
        if this(until).concerns(k, sender) {
            endpoint.queue().remove(k, sender);
            turn.reschedule(k);
            thread::restart_or_give_up(k, sender);
        }
        next = behind;
        if next.is_some() && account::preemption_point(k).is_err() {
            turn.reschedule(k);
            let progress = ResumePoint::CancelBadgedSends(this(until), at);
            call.caller.at(k).leave_progress(k, progress);
            k.core().set_cancellation(k, Some(this(until)));
            return Err(Preempted.into());
        }
    }
    turn.reschedule(k);
    Ok(())
}
