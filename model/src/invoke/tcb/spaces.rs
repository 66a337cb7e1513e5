//! The capabilities that a thread runs with (03, sections 4.4, 4.8 and 4.9).

use sandglass_abi::message::ipc_buffer;

use super::{install_handler, reschedule_if_current};
use crate::cap::{deletion, derivation, rights};
use crate::error::Error;
use crate::invoke::{Call, Outcome};
use crate::ipc::fault;
use crate::state::{Cap, SlotId, State, ThreadId, ThreadSlot};

/// 03, section 4.4.
pub fn configure(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    call.require(3, 3)?;
    let address = call.words[2];
    let buffer = buffer_argument(s, call, 2, address)?;
    refuse_long_deletions(s, thread)?;
    let cspace = cspace_argument(s, call, 0, call.words[0])?;
    let vspace = vspace_argument(s, call, 1, call.words[1])?;
    install(s, cspace_slot(thread), Some(cspace), call.extra[0]);
    install(s, vspace_slot(thread), Some(vspace), call.extra[1]);
    install_buffer(s, thread, address, buffer, call.extra[2]);
    Ok(Outcome::Done)
}

/// 03, section 4.8.
pub fn set_ipc_buffer(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    call.require(1, 1)?;
    let address = call.words[0];
    let buffer = buffer_argument(s, call, 0, address)?;
    install_buffer(s, thread, address, buffer, call.extra[0]);
    Ok(Outcome::Done)
}

/// 03, section 4.9.
pub fn set_space(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    call.require(2, 3)?;
    refuse_long_deletions(s, thread)?;
    let cspace = cspace_argument(s, call, 1, call.words[0])?;
    let vspace = vspace_argument(s, call, 2, call.words[1])?;
    if !fault::is_valid_handler(call.extra_cap(s, 0).flatten()) {
        return Err(Error::InvalidCapability(1));
    }
    install_handler(s, call, thread, ThreadSlot::FaultHandler, 0);
    install(s, cspace_slot(thread), Some(cspace), call.extra[1]);
    install(s, vspace_slot(thread), Some(vspace), call.extra[2]);
    Ok(Outcome::Done)
}

fn cspace_slot(thread: ThreadId) -> SlotId {
    SlotId::Thread(thread, ThreadSlot::CSpace)
}

fn vspace_slot(thread: ThreadId) -> SlotId {
    SlotId::Thread(thread, ThreadSlot::VSpace)
}

/// The frame for a buffer at the user address `address`, from extra capability `i`; `None` if
/// there is to be no buffer (03, section 4.4 step 2).
fn buffer_argument(s: &State, call: &Call, i: usize, address: u64) -> Result<Option<Cap>, Error> {
    if address == 0 {
        return Ok(None);
    }
    match derived(s, call, i, call.extra_cap(s, i).flatten())? {
        Some(frame @ Cap::Frame { device: false, .. }) => {
            if address.is_multiple_of(ipc_buffer::SIZE as u64) {
                Ok(Some(frame))
            } else {
                Err(Error::Alignment)
            }
        }
        _ => Err(Error::IllegalOperation),
    }
}

/// Nothing whose deletion takes long may be in the slots that are about to be replaced (03,
/// section 4.4 step 3).
fn refuse_long_deletions(s: &State, thread: ThreadId) -> Result<(), Error> {
    let takes_long = |slot| {
        matches!(
            derivation::get(s, slot),
            Some(Cap::CNode { .. } | Cap::Thread(_))
        ) && derivation::is_final(s, slot)
    };
    if takes_long(cspace_slot(thread)) || takes_long(vspace_slot(thread)) {
        Err(Error::IllegalOperation)
    } else {
        Ok(())
    }
}

/// The root of a capability space, from extra capability `i`, with `data` as its guard (03,
/// section 4.4 step 4).
fn cspace_argument(s: &State, call: &Call, i: usize, data: u64) -> Result<Cap, Error> {
    match root_argument(s, call, i, data)? {
        Some(root @ Cap::CNode { .. }) => Ok(root),
        _ => Err(Error::IllegalOperation),
    }
}

/// The root of an address space, from extra capability `i` (03, section 4.4 step 5).
fn vspace_argument(s: &State, call: &Call, i: usize, data: u64) -> Result<Cap, Error> {
    match root_argument(s, call, i, data)? {
        Some(root @ Cap::Root { asid: Some(_), .. }) => Ok(root),
        _ => Err(Error::IllegalOperation),
    }
}

/// What extra capability `i`, updated with `data` unless that is 0, derives to (03, section 4.4
/// steps 4 and 5).
fn root_argument(s: &State, call: &Call, i: usize, data: u64) -> Result<Option<Cap>, Error> {
    let cap = match (call.extra_cap(s, i).flatten(), data) {
        (cap, 0) => cap,
        (cap, data) => cap.and_then(|cap| rights::update(cap, data, false)),
    };
    derived(s, call, i, cap)
}

/// What a copy of `cap`, a form of extra capability `i`, holds.
fn derived(s: &State, call: &Call, i: usize, cap: Option<Cap>) -> Result<Option<Cap>, Error> {
    match cap {
        None => Ok(None),
        Some(cap) => rights::derive(s, call.extra[i], cap),
    }
}

/// Puts `cap`, derived from the one in `source`, into `slot` of a thread in place of what is there
/// (03, section 4.4).
///
/// What is deleted is an endpoint, a frame, an address space, or not the last of its kind: that
/// empties no other slot, so `source` and the invoked capability are what they were.
pub fn install(s: &mut State, slot: SlotId, cap: Option<Cap>, source: SlotId) {
    deletion::delete(s, slot);
    if let Some(cap) = cap {
        derivation::insert(s, slot, cap, source);
    }
}

/// Makes `frame`, or nothing, the memory of the buffer of `thread`, at the user address `address`
/// (03, sections 4.4 and 4.8).
fn install_buffer(
    s: &mut State,
    thread: ThreadId,
    address: u64,
    frame: Option<Cap>,
    source: SlotId,
) {
    s.thread_mut(thread).buffer_address = address;
    let slot = SlotId::Thread(thread, ThreadSlot::Buffer);
    install(s, slot, frame, source);
    reschedule_if_current(s, thread);
}
