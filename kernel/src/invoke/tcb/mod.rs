//! Invocations of a TCB (03, section 4). The thread is made to stop first, if it runs on another core
//! ([`stall::quiesce`]): what is checked is then what is changed.

use sandglass_abi::invocation::{self as label, tcb_flags};

mod registers;
mod space;

use crate::invoke::deletion::{Deletion, Install};
use crate::invoke::{Error, Invocation, Outcome, Stop};
use crate::ipc::stall;
use crate::mem::objects::tcb_slot;
use crate::mem::Ref;
use crate::object::{Notification, SchedContext, Tcb, TcbSlot};
use crate::thread::{self, priority};
use crate::time::{context, fpu, Preempted, Turn};
use crate::{Kernel, View};
use registers::{CopyFrom, Read, Write};
use space::Spaces;

struct SchedParams {
    max_controlled_priority: u8,
    priority: u8,
    /// The context that the thread is to have, if it has another one or none now.
    context: Change,
    fault_handler: Install,
}

impl SchedParams {
    fn decode(k: &View, call: &Invocation, thread: Ref<Tcb>) -> Result<Self, Error> {
        call.need(2)?;
        call.extra_slot(2)?;
        let limit = authority(k, call)?;
        Ok(SchedParams {
            max_controlled_priority: check_priority(call.word(k, 0), limit)?,
            priority: check_priority(call.word(k, 1), limit)?,
            context: decode_context(k, call, thread)?,
            fault_handler: space::decode_handler(k, call, 2)?,
        })
    }

    fn commit(self, k: &Kernel, turn: &Turn, thread: Ref<Tcb>) -> Result<(), Preempted> {
        let slot = tcb_slot(thread, TcbSlot::FaultHandler);
        let mut deletion = Deletion::new();
        deletion.replace(k, turn, slot, self.fault_handler, None)?;
        // What follows takes as long as taking an object apart.
        deletion.object(k)?;
        thread
            .at(k)
            .set_max_controlled_priority(k, self.max_controlled_priority);
        priority::set_priority(k, turn, thread, self.priority);
        match self.context {
            Change::Keep => {}
            Change::Bind(handle) => context::bind_thread(k, turn, handle, thread),
            Change::Unbind(handle) => context::unbind_thread(k, turn, handle),
        }
        Ok(())
    }
}

enum Change {
    Keep,
    Bind(Ref<SchedContext>),
    Unbind(Ref<SchedContext>),
}

/// Invokes the TCB of `thread`.
#[inline(always)]
pub fn invoke(
    k: &Kernel,
    turn: &Turn,
    call: &Invocation,
    thread: Ref<Tcb>,
) -> Result<Outcome, Stop> {
    stall::quiesce(k, turn, thread)?;
    if call.label() == label::TCB_SET_PRIORITY {
        let priority = decode_priority(k, call)?;
        priority::set_priority(k, turn, thread, priority);
        return Ok(Outcome::Done);
    }
    invoke_other(k, turn, call, thread)
}

/// The invocations that are made less often than SetPriority: each is checked, and then made.
#[inline(never)]
fn invoke_other(
    k: &Kernel,
    turn: &Turn,
    call: &Invocation,
    thread: Ref<Tcb>,
) -> Result<Outcome, Stop> {
    let tcb = thread.at(k);
    match call.label() {
        label::TCB_READ_REGISTERS => {
            return Ok(Read::decode(k, call, thread)?.commit(k, turn, call, thread));
        }
        label::TCB_WRITE_REGISTERS => {
            Write::decode(k, call, thread)?.commit(k, turn, call, thread);
        }
        label::TCB_COPY_REGISTERS => CopyFrom::decode(k, call)?.commit(k, turn, thread)?,
        label::TCB_CONFIGURE | label::TCB_SET_SPACE | label::TCB_SET_IPC_BUFFER => {
            Spaces::decode(k, call, thread)?.install(k, turn, call, thread)?;
        }
        label::TCB_SET_MC_PRIORITY => {
            tcb.set_max_controlled_priority(k, decode_priority(k, call)?);
        }
        label::TCB_SET_SCHED_PARAMS => {
            SchedParams::decode(k, call, thread)?.commit(k, turn, thread)?;
        }
        label::TCB_SET_TIMEOUT_ENDPOINT => {
            let handler = space::decode_handler(k, call, 0)?;
            let slot = tcb_slot(thread, TcbSlot::TimeoutHandler);
            Deletion::new().replace(k, turn, slot, handler, None)?;
        }
        label::TCB_SUSPEND => thread::suspend(k, turn, thread),
        label::TCB_RESUME => thread::resume(k, turn, thread),
        label::TCB_BIND_NOTIFICATION => {
            let notification = decode_bind_notification(k, call, thread)?;
            notification.at(k).set_thread(k, Some(thread));
            tcb.set_notification(k, Some(notification));
        }
        label::TCB_UNBIND_NOTIFICATION => {
            let bound = tcb.notification().ok_or(Error::IllegalOperation)?;
            bound.at(k).set_thread(k, None);
            tcb.set_notification(k, None);
        }
        label::TCB_SET_TLS_BASE => set_tls_base(k, turn, call, thread)?,
        label::TCB_SET_FLAGS => return set_flags(k, call, thread),
        _ => return crate::arch::abi::invoke::thread(k, call, thread),
    }
    Ok(Outcome::Done)
}

/// The thread whose maximum controlled priority limits what may be set: extra capability 0.
fn authority(k: &View, call: &Invocation) -> Result<u8, Error> {
    let authority: Ref<Tcb> = call.extra_object(k, 0)?;
    Ok(authority.at(k).max_controlled_priority())
}

fn check_priority(priority: u64, limit: u8) -> Result<u8, Error> {
    Error::check_range(priority, 0, u64::from(limit))?;
    Ok(priority as u8)
}

#[inline(always)]
fn decode_priority(k: &View, call: &Invocation) -> Result<u8, Error> {
    call.need(1)?;
    let limit = authority(k, call)?;
    check_priority(call.word(k, 0), limit)
}

fn decode_context(k: &View, call: &Invocation, thread: Ref<Tcb>) -> Result<Change, Error> {
    let tcb = thread.at(k);
    let present = tcb.sched_context();
    if call.extra_cap(k, 1)?.is_null() {
        Error::IllegalOperation.when(thread == call.caller)?;
        return Ok(present.map_or(Change::Keep, Change::Unbind));
    }
    let wanted: Ref<SchedContext> = call.extra_object(k, 1)?;
    let differs = present != Some(wanted);
    let is_bound = differs && (present.is_some() || wanted.at(k).thread().is_some());
    let waits = tcb.is_blocked() && !context::is_released(k, wanted);
    Error::IllegalOperation.when(is_bound || waits)?;
    Ok(if differs {
        Change::Bind(wanted)
    } else {
        Change::Keep
    })
}

fn decode_bind_notification(
    k: &View,
    call: &Invocation,
    thread: Ref<Tcb>,
) -> Result<Ref<Notification>, Error> {
    let cap = call.extra_cap(k, 0)?.notification();
    let cap = cap.ok_or(Error::IllegalOperation)?;
    let object = cap.object.at(k);
    let is_free = object.queue().is_empty() && object.thread().is_none();
    let is_bound = thread.at(k).notification().is_some();
    Error::IllegalOperation.when(is_bound || !cap.rights.read() || !is_free)?;
    Ok(cap.object)
}

fn set_tls_base(k: &Kernel, turn: &Turn, call: &Invocation, thread: Ref<Tcb>) -> Result<(), Error> {
    call.need(1)?;
    thread.at(k).context().set_tls_base(k, call.word(k, 0));
    if k.core().thread() == Some(thread) {
        turn.reschedule(k);
    }
    Ok(())
}

/// Sets and clears flags; the result is the new ones.
fn set_flags(k: &Kernel, call: &Invocation, thread: Ref<Tcb>) -> Result<Outcome, Stop> {
    call.need(2)?;
    let (clear, set) = (call.word(k, 0), call.word(k, 1));
    let tcb = thread.at(k);
    let old = if tcb.fpu_disabled() {
        tcb_flags::FPU_DISABLED
    } else {
        0
    };
    let new = (old & !clear) | (set & tcb_flags::ALL);
    let disabled = new & tcb_flags::FPU_DISABLED != 0;
    tcb.set_fpu_disabled(k, disabled);
    if disabled {
        fpu::release(k, thread);
    }
    if old != new && k.core().thread() == Some(thread) {
        fpu::switch(k, k.core(), thread);
    }
    Ok(Outcome::Value(new))
}
