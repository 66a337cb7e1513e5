//! CNode operations (02, section 6).

use super::{Call, Outcome};
use crate::cap::{deletion, derivation, lookup, rights};
use crate::error::Error;
use crate::ipc::endpoint;
use crate::state::{Cap, LookupFailure, Rights, SlotId, State};
use crate::time::cores;
use sandglass_abi::invocation;

/// Invokes a CNode.
///
/// # Errors
/// In the order of 02, section 6.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    let of_abi = invocation::CNODE_REVOKE..=invocation::CNODE_ROTATE;
    if !of_abi.contains(&call.label) && call.label != invocation::extension::CNODE_MINT_CALL {
        return Err(Error::IllegalOperation);
    }
    call.require(2, 0)?;
    let target = lookup::of_operation(s, Some(call.cap), call.words[0], call.words[1], false)?;
    match call.label {
        invocation::CNODE_REVOKE => {
            deletion::revoke(s, target);
            cores::stall_homeless(s);
        }
        invocation::CNODE_DELETE => {
            deletion::delete(s, target);
            cores::stall_homeless(s);
        }
        invocation::CNODE_CANCEL_BADGED_SENDS => cancel_badged_sends(s, target)?,
        invocation::CNODE_COPY => copy(s, call, target)?,
        invocation::CNODE_MINT => mint(s, call, target, Some)?,
        invocation::extension::CNODE_MINT_CALL => mint(s, call, target, rights::calling)?,
        invocation::CNODE_MOVE => move_to(s, call, target)?,
        invocation::CNODE_MUTATE => mutate(s, call, target)?,
        _ => rotate(s, call, target)?,
    }
    Ok(Outcome::Done)
}

fn cancel_badged_sends(s: &mut State, target: SlotId) -> Result<(), Error> {
    const ALL: Rights = Rights {
        write: true,
        read: true,
        grant: true,
        grant_reply: true,
        call: false,
    };
    match derivation::get(s, target) {
        Some(Cap::Endpoint {
            object,
            badge,
            rights: ALL,
        }) => {
            if badge != 0 {
                endpoint::cancel_badged_sends(s, object, badge);
            }
            Ok(())
        }
        _ => Err(Error::IllegalOperation),
    }
}

fn copy(s: &mut State, call: &Call, target: SlotId) -> Result<(), Error> {
    let (source, cap) = source(s, call, target)?;
    call.require(5, 1)?;
    let masked = rights::mask(cap, call.words[4]);
    insert_derived(s, target, source, Some(masked))
}

/// Mint, and MintCall with another `form` of what is minted.
fn mint(
    s: &mut State,
    call: &Call,
    target: SlotId,
    form: fn(Cap) -> Option<Cap>,
) -> Result<(), Error> {
    let (source, cap) = source(s, call, target)?;
    call.require(6, 1)?;
    let masked = rights::mask(cap, call.words[4]);
    let minted = rights::update(masked, call.words[5], false).and_then(form);
    insert_derived(s, target, source, minted)
}

/// Puts a copy of `cap`, a form of what is in `source`, into `target`.
fn insert_derived(
    s: &mut State,
    target: SlotId,
    source: SlotId,
    cap: Option<Cap>,
) -> Result<(), Error> {
    let cap = cap.ok_or(Error::IllegalOperation)?;
    let derived = rights::derive(s, source, cap)?.ok_or(Error::IllegalOperation)?;
    derivation::insert(s, target, derived, source);
    Ok(())
}

fn move_to(s: &mut State, call: &Call, target: SlotId) -> Result<(), Error> {
    let (source, cap) = source(s, call, target)?;
    derivation::move_to(s, source, target, cap);
    Ok(())
}

fn mutate(s: &mut State, call: &Call, target: SlotId) -> Result<(), Error> {
    let (source, cap) = source(s, call, target)?;
    call.require(5, 1)?;
    let cap = rights::update(cap, call.words[4], true).ok_or(Error::IllegalOperation)?;
    derivation::move_to(s, source, target, cap);
    Ok(())
}

/// The source slot of Copy, Mint, Move and Mutate, and what is in it: checks A.
fn source(s: &State, call: &Call, target: SlotId) -> Result<(SlotId, Cap), Error> {
    call.require(4, 1)?;
    if derivation::get(s, target).is_some() {
        return Err(Error::DeleteFirst);
    }
    let (index, depth) = (call.words[2], call.words[3]);
    let slot = lookup::of_operation(s, call.extra_cap(s, 0).flatten(), index, depth, true)?;
    let cap = derivation::get(s, slot).ok_or(missing(true, depth))?;
    Ok((slot, cap))
}

fn missing(is_source: bool, depth: u64) -> Error {
    let failure = LookupFailure::MissingCapability { bits_left: depth };
    Error::FailedLookup { is_source, failure }
}

fn rotate(s: &mut State, call: &Call, target: SlotId) -> Result<(), Error> {
    call.require(8, 2)?;
    let [pivot_data, pivot_index, pivot_depth] = [2, 3, 4].map(|i| call.words[i]);
    let [source_data, source_index, source_depth] = [5, 6, 7].map(|i| call.words[i]);
    let [pivot_root, source_root] = [0, 1].map(|i| call.extra_cap(s, i).flatten());

    let source = lookup::of_operation(s, source_root, source_index, source_depth, true)?;
    let pivot = lookup::of_operation(s, pivot_root, pivot_index, pivot_depth, true)?;
    if pivot == source || pivot == target {
        return Err(Error::IllegalOperation);
    }
    if source != target && derivation::get(s, target).is_some() {
        return Err(Error::DeleteFirst);
    }
    let source_cap = derivation::get(s, source).ok_or(missing(true, source_depth))?;
    let pivot_cap = derivation::get(s, pivot).ok_or(missing(false, pivot_depth))?;
    let new_source = rights::update(source_cap, source_data, true);
    let new_source = new_source.ok_or(Error::IllegalOperation)?;
    let new_pivot = rights::update(pivot_cap, pivot_data, true);
    let new_pivot = new_pivot.ok_or(Error::IllegalOperation)?;

    if source == target {
        derivation::swap(s, source, new_source, pivot, new_pivot);
    } else {
        derivation::move_to(s, pivot, target, new_pivot);
        derivation::move_to(s, source, pivot, new_source);
    }
    Ok(())
}
