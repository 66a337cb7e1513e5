//! The capabilities that a TCB holds: capability space, address space, IPC buffer, handlers
//! (03, sections 4.4 and 4.6 to 4.9).

use sandglass_abi::invocation as label;

use crate::arch::{bounds, spaces};
use crate::cap::{derivation, Capability};
use crate::invoke::cnode::with_data;
use crate::invoke::deletion::{Deletion, Install};
use crate::invoke::{Error, Invocation};
use crate::mem::user::BUFFER_BYTES;
use crate::mem::{objects, Kind, Ref, Slot};
use crate::object::{Tcb, TcbSlot};
use crate::time::{Preempted, Turn};
use crate::{Kernel, View};

/// What Configure, SetSpace and SetIPCBuffer install.
pub struct Spaces {
    fault_handler: Option<Install>,
    /// Of the capability space and of the address space.
    roots: Option<(Install, Install)>,
    /// The IPC buffer's address, and its frame.
    buffer: Option<(u64, Install)>,
}

impl Spaces {
    /// Configure has roots and buffer, SetSpace fault handler and roots, SetIPCBuffer the buffer only.
    pub fn decode(k: &View, call: &Invocation, thread: Ref<Tcb>) -> Result<Self, Error> {
        let mut spaces = Spaces {
            fault_handler: None,
            roots: None,
            buffer: None,
        };
        match call.label() {
            label::TCB_CONFIGURE => {
                call.need(3)?;
                call.extra_slot(2)?;
                spaces.buffer = Some(buffer(k, call, call.word(k, 2), 2)?);
                spaces.roots = Some(decode_roots(k, call, thread, 0)?);
            }
            label::TCB_SET_SPACE => {
                call.need(2)?;
                call.extra_slot(2)?;
                spaces.roots = Some(decode_roots(k, call, thread, 1)?);
                spaces.fault_handler = Some(decode_handler(k, call, 0)?);
            }
            _ => {
                call.need(1)?;
                call.extra_slot(0)?;
                spaces.buffer = Some(buffer(k, call, call.word(k, 0), 0)?);
            }
        }
        Ok(spaces)
    }

    /// Installs what was checked, one after the other. Deleting what was there may be preempted.
    pub fn install(
        self,
        k: &Kernel,
        turn: &Turn,
        call: &Invocation,
        thread: Ref<Tcb>,
    ) -> Result<(), Preempted> {
        bounds::commit();
        let invoked = Some((call.slot, call.cap));
        let mut deletion = Deletion::new();
        let mut put =
            |slot, what| deletion.replace(k, turn, objects::tcb_slot(thread, slot), what, invoked);
        if let Some(handler) = self.fault_handler {
            put(TcbSlot::FaultHandler, handler)?;
        }
        if let Some((cspace, vspace)) = self.roots {
            put(TcbSlot::CSpace, cspace)?;
            put(TcbSlot::VSpace, vspace)?;
            spaces::changed(k, thread);
        }
        if let Some((address, frame)) = self.buffer {
            put(TcbSlot::Buffer, frame)?;
            thread.at(k).set_buffer_address(k, address);
            if k.core().thread() == Some(thread) {
                turn.reschedule(k);
            }
        }
        Ok(())
    }
}

/// The IPC buffer at `address`, in the frame that extra capability `extra` names.
fn buffer(
    k: &View,
    call: &Invocation,
    address: u64,
    extra: usize,
) -> Result<(u64, Install), Error> {
    if address == 0 {
        return Ok((address, None));
    }
    let slot = call.extra_slot(extra)?;
    let cap = derivation::derive(k, slot, slot.at(k).cap())?;
    let is_memory = cap.frame().is_some_and(|frame| !frame.is_device());
    Error::IllegalOperation.when(!is_memory)?;
    Error::Alignment.when(!address.is_multiple_of(BUFFER_BYTES))?;
    Ok((address, Some((slot, cap))))
}

/// The roots of the capability space and the address space: extra capabilities `first` and
/// `first` + 1, with words 0 and 1 as their data.
fn decode_roots(
    k: &View,
    call: &Invocation,
    thread: Ref<Tcb>,
    first: usize,
) -> Result<(Install, Install), Error> {
    let blocks = |slot| has_long_deletion(k, objects::tcb_slot(thread, slot));
    Error::IllegalOperation.when(blocks(TcbSlot::CSpace) || blocks(TcbSlot::VSpace))?;
    let cspace = decode_root(k, call, first, call.word(k, 0))?;
    Error::IllegalOperation.when(cspace.1.cnode().is_none())?;
    let vspace = decode_root(k, call, first + 1, call.word(k, 1))?;
    Error::IllegalOperation.when(vspace.1.root_asid().is_none())?;
    Ok((Some(cspace), Some(vspace)))
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

/// Extra capability `extra` as a fault or timeout handler (05, section 5).
pub fn decode_handler(k: &View, call: &Invocation, extra: usize) -> Result<Install, Error> {
    let slot = call.extra_slot(extra)?;
    let cap = slot.at(k).cap();
    if cap.is_null() {
        return Ok(None);
    }
    let rights = cap.endpoint().map(|handler| handler.rights);
    let suits = rights.is_some_and(|rights| rights.write() && rights.answerable());
    Error::InvalidCapability(extra as u64 + 1).when(!suits)?;
    Ok(Some((slot, cap)))
}
