//! The capabilities that a TCB holds: capability space, address space, IPC buffer, handlers
//! (03, sections 4.4 and 4.6 to 4.9).

use crate::arch::abi::space;
use crate::cap::{derivation, Capability};
use crate::invoke::cnode::with_data;
use crate::invoke::deletion::{self, Progress};
use crate::invoke::{Error, Invocation, Outcome};
use crate::mem::user::BUFFER_BYTES;
use crate::mem::{objects, Kind, Ref, Slot};
use crate::object::{Tcb, TcbSlot};
use crate::time::Turn;
use crate::{Kernel, View};

/// A capability to put into a slot of a TCB: a derived copy and where it comes from; `None`
/// empties the slot.
#[derive(Clone, Copy)]
pub struct Install(Option<(Ref<Slot>, Capability)>);

/// The IPC buffer to be installed.
#[derive(Clone, Copy)]
struct BufferChange {
    address: u64,
    frame: Install,
}

/// What Configure, SetSpace and SetIPCBuffer install.
#[derive(Clone, Copy)]
pub struct Spaces {
    fault_handler: Option<Install>,
    roots: Option<Roots>,
    buffer: Option<BufferChange>,
}

#[derive(Clone, Copy)]
struct Roots {
    cspace: Install,
    vspace: Install,
}

/// Configure: roots and buffer.
pub fn decode_configure(k: &View, call: &Invocation, thread: Ref<Tcb>) -> Result<Spaces, Error> {
    call.need(3)?;
    call.extra_slot(2)?;
    let buffer = Some(buffer_change(k, call, call.word(k, 2), 2)?);
    let roots = Some(decode_roots(k, call, thread, 0)?);
    Ok(Spaces {
        fault_handler: None,
        roots,
        buffer,
    })
}

/// SetSpace: fault handler and roots.
pub fn decode_set_space(k: &View, call: &Invocation, thread: Ref<Tcb>) -> Result<Spaces, Error> {
    call.need(2)?;
    call.extra_slot(2)?;
    let roots = Some(decode_roots(k, call, thread, 1)?);
    let fault_handler = Some(decode_handler(k, call, 0, 1)?);
    Ok(Spaces {
        fault_handler,
        roots,
        buffer: None,
    })
}

/// SetIPCBuffer.
pub fn decode_buffer(k: &View, call: &Invocation) -> Result<Spaces, Error> {
    call.need(1)?;
    call.extra_slot(0)?;
    let buffer = Some(buffer_change(k, call, call.word(k, 0), 0)?);
    Ok(Spaces {
        fault_handler: None,
        roots: None,
        buffer,
    })
}

fn buffer_change(
    k: &View,
    call: &Invocation,
    address: u64,
    extra: usize,
) -> Result<BufferChange, Error> {
    if address == 0 {
        return Ok(BufferChange {
            address,
            frame: Install(None),
        });
    }
    let slot = call.extra_slot(extra)?;
    let cap = derivation::derive(k, slot, slot.at(k).cap())?;
    match cap.frame() {
        Some(frame) if !frame.is_device() => {}
        _ => return Err(Error::IllegalOperation),
    }
    if !address.is_multiple_of(BUFFER_BYTES) {
        return Err(Error::Alignment);
    }
    Ok(BufferChange {
        address,
        frame: Install(Some((slot, cap))),
    })
}

/// The roots of the capability space and the address space: extra capabilities `first` and
/// `first` + 1, with words 0 and 1 as their data.
fn decode_roots(
    k: &View,
    call: &Invocation,
    thread: Ref<Tcb>,
    first: usize,
) -> Result<Roots, Error> {
    let blocks = |slot| has_long_deletion(k, objects::tcb_slot(thread, slot));
    if blocks(TcbSlot::CSpace) || blocks(TcbSlot::VSpace) {
        return Err(Error::IllegalOperation);
    }
    let cspace = decode_root(k, call, first, call.word(k, 0))?;
    if cspace.1.cnode().is_none() {
        return Err(Error::IllegalOperation);
    }
    let vspace = decode_root(k, call, first + 1, call.word(k, 1))?;
    if vspace.1.root_asid().is_none() {
        return Err(Error::IllegalOperation);
    }
    Ok(Roots {
        cspace: Install(Some(cspace)),
        vspace: Install(Some(vspace)),
    })
}

fn decode_root(
    k: &View,
    call: &Invocation,
    extra: usize,
    data: u64,
) -> Result<(Ref<Slot>, Capability), Error> {
    let slot = call.extra_slot(extra)?;
    let cap = with_data(slot.at(k).cap(), data).ok_or(Error::IllegalOperation)?;
    Ok((slot, derivation::derive(k, slot, cap)?))
}

/// Whether emptying `slot` would delete a whole CNode or thread.
fn has_long_deletion(k: &View, slot: Ref<Slot>) -> bool {
    match slot.at(k).cap().kind() {
        Kind::Tcb | Kind::CNode => derivation::is_final(k, slot),
        Kind::Zombie => true,
        _ => false,
    }
}

/// Extra capability `extra` as a fault or timeout handler (05, section 5); `number` is its number
/// in the error.
pub fn decode_handler(
    k: &View,
    call: &Invocation,
    extra: usize,
    number: u64,
) -> Result<Install, Error> {
    let slot = call.extra_slot(extra)?;
    let cap = slot.at(k).cap();
    if cap.is_null() {
        return Ok(Install(None));
    }
    match cap.endpoint() {
        Some(handler)
            if handler.rights.write()
                && (handler.rights.grant() || handler.rights.grant_reply()) =>
        {
            Ok(Install(Some((slot, cap))))
        }
        _ => Err(Error::InvalidCapability(number)),
    }
}

/// Installs what was checked, one after the other. Deleting what was there may be preempted; the
/// call then starts anew and finds what is done already done.
pub fn install(
    k: &Kernel,
    turn: &Turn,
    call: &Invocation,
    thread: Ref<Tcb>,
    spaces: Spaces,
) -> Outcome {
    let invoked = Some((call.slot, call.cap));
    let put = |slot: TcbSlot, what: Install| put(k, turn, thread, slot, what, invoked);
    if let Some(handler) = spaces.fault_handler {
        if put(TcbSlot::FaultHandler, handler) == Progress::Preempted {
            return Outcome::Preempted;
        }
    }
    if let Some(roots) = spaces.roots {
        if put(TcbSlot::CSpace, roots.cspace) == Progress::Preempted
            || put(TcbSlot::VSpace, roots.vspace) == Progress::Preempted
        {
            return Outcome::Preempted;
        }
        space::changed(k, thread);
    }
    if let Some(buffer) = spaces.buffer {
        if put(TcbSlot::Buffer, buffer.frame) == Progress::Preempted {
            return Outcome::Preempted;
        }
        thread.at(k).set_buffer_address(k, buffer.address);
        if k.core().thread() == Some(thread) {
            turn.reschedule(k);
        }
    }
    Outcome::Done
}

/// Installs a fault or timeout handler.
pub fn install_handler(
    k: &Kernel,
    turn: &Turn,
    thread: Ref<Tcb>,
    slot: TcbSlot,
    handler: Install,
) -> Outcome {
    match put(k, turn, thread, slot, handler, None) {
        Progress::Done => Outcome::Done,
        Progress::Preempted => Outcome::Preempted,
    }
}

/// Empties the slot of `thread` and puts `what` there, unless the deletion took the source or the
/// invoked capability away.
fn put(
    k: &Kernel,
    turn: &Turn,
    thread: Ref<Tcb>,
    slot: TcbSlot,
    what: Install,
    invoked: Option<(Ref<Slot>, Capability)>,
) -> Progress {
    let target = objects::tcb_slot(thread, slot);
    if deletion::delete(k, turn, target) == Progress::Preempted {
        return Progress::Preempted;
    }
    let Install(Some((source, cap))) = what else {
        return Progress::Done;
    };
    let still = source.at(k).cap().word().same(cap.word());
    let alive = invoked.is_none_or(|(slot, cap)| slot.at(k).cap().word().same(cap.word()));
    if still && alive {
        derivation::insert_copy(k, source, target, cap);
    }
    Progress::Done
}
