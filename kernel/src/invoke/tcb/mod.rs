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

/// A checked invocation of a TCB.
enum Operation {
    ReadRegisters(Read),
    WriteRegisters(Write),
    CopyRegisters(CopyFrom),
    /// Configure, SetSpace and SetIPCBuffer.
    Install(Spaces),
    SetMaxControlledPriority(u8),
    SetSchedParams(SchedParams),
    SetTimeoutHandler(Install),
    Suspend,
    Resume,
    BindNotification(Ref<Notification>),
    UnbindNotification(Ref<Notification>),
    SetTlsBase(u64),
    SetFlags {
        clear: u64,
        set: u64,
    },
}

struct SchedParams {
    max_controlled_priority: u8,
    priority: u8,
    /// The context that the thread is to have, if it has another one or none now.
    context: Change,
    fault_handler: Install,
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

/// The invocations that are made less often than SetPriority.
#[inline(never)]
fn invoke_other(
    k: &Kernel,
    turn: &Turn,
    call: &Invocation,
    thread: Ref<Tcb>,
) -> Result<Outcome, Stop> {
    let operation = decode(k, call, thread)?;
    Ok(commit(k, turn, call, thread, operation)?)
}

fn decode(k: &View, call: &Invocation, thread: Ref<Tcb>) -> Result<Operation, Error> {
    Ok(match call.label() {
        label::TCB_READ_REGISTERS => Operation::ReadRegisters(Read::decode(k, call, thread)?),
        label::TCB_WRITE_REGISTERS => Operation::WriteRegisters(Write::decode(k, call, thread)?),
        label::TCB_COPY_REGISTERS => Operation::CopyRegisters(CopyFrom::decode(k, call)?),
        label::TCB_CONFIGURE => Operation::Install(space::decode_configure(k, call, thread)?),
        label::TCB_SET_SPACE => Operation::Install(space::decode_set_space(k, call, thread)?),
        label::TCB_SET_IPC_BUFFER => Operation::Install(space::decode_buffer(k, call)?),
        label::TCB_SET_MC_PRIORITY => {
            Operation::SetMaxControlledPriority(decode_priority(k, call)?)
        }
        label::TCB_SET_SCHED_PARAMS => {
            Operation::SetSchedParams(decode_sched_params(k, call, thread)?)
        }
        label::TCB_SET_TIMEOUT_ENDPOINT => {
            Operation::SetTimeoutHandler(space::decode_handler(k, call, 0)?)
        }
        label::TCB_SUSPEND => Operation::Suspend,
        label::TCB_RESUME => Operation::Resume,
        label::TCB_BIND_NOTIFICATION => {
            Operation::BindNotification(decode_bind_notification(k, call, thread)?)
        }
        label::TCB_UNBIND_NOTIFICATION => {
            let bound = thread.at(k).notification();
            Operation::UnbindNotification(bound.ok_or(Error::IllegalOperation)?)
        }
        label::TCB_SET_TLS_BASE => {
            call.need(1)?;
            Operation::SetTlsBase(call.word(k, 0))
        }
        label::TCB_SET_FLAGS => {
            call.need(2)?;
            let (clear, set) = (call.word(k, 0), call.word(k, 1));
            Operation::SetFlags { clear, set }
        }
        _ => return Err(Error::IllegalOperation),
    })
}

fn commit(
    k: &Kernel,
    turn: &Turn,
    call: &Invocation,
    thread: Ref<Tcb>,
    operation: Operation,
) -> Result<Outcome, Preempted> {
    let tcb = thread.at(k);
    match operation {
        Operation::ReadRegisters(read) => return Ok(read.commit(k, turn, call, thread)),
        Operation::WriteRegisters(write) => write.commit(k, turn, call, thread),
        Operation::CopyRegisters(copy) => copy.commit(k, turn, thread)?,
        Operation::Install(spaces) => space::install(k, turn, call, thread, spaces)?,
        Operation::SetMaxControlledPriority(limit) => tcb.set_max_controlled_priority(k, limit),
        Operation::SetSchedParams(params) => set_sched_params(k, turn, thread, params)?,
        Operation::SetTimeoutHandler(handler) => {
            let slot = tcb_slot(thread, TcbSlot::TimeoutHandler);
            Deletion::new().replace(k, turn, slot, handler, None)?;
        }
        Operation::Suspend => thread::suspend(k, turn, thread),
        Operation::Resume => thread::resume(k, turn, thread),
        Operation::BindNotification(notification) => {
            notification.at(k).set_thread(k, Some(thread));
            tcb.set_notification(k, Some(notification));
        }
        Operation::UnbindNotification(notification) => {
            notification.at(k).set_thread(k, None);
            tcb.set_notification(k, None);
        }
        Operation::SetTlsBase(base) => {
            tcb.context().set_tls_base(k, base);
            if k.core().thread() == Some(thread) {
                turn.reschedule(k);
            }
        }
        Operation::SetFlags { clear, set } => {
            return Ok(Outcome::Value(set_flags(k, thread, clear, set)));
        }
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

fn decode_sched_params(
    k: &View,
    call: &Invocation,
    thread: Ref<Tcb>,
) -> Result<SchedParams, Error> {
    call.need(2)?;
    call.extra_slot(2)?;
    let limit = authority(k, call)?;
    let max_controlled_priority = check_priority(call.word(k, 0), limit)?;
    let priority = check_priority(call.word(k, 1), limit)?;
    let context = decode_context(k, call, thread)?;
    let fault_handler = space::decode_handler(k, call, 2)?;
    Ok(SchedParams {
        max_controlled_priority,
        priority,
        context,
        fault_handler,
    })
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

fn set_sched_params(
    k: &Kernel,
    turn: &Turn,
    thread: Ref<Tcb>,
    params: SchedParams,
) -> Result<(), Preempted> {
    let slot = tcb_slot(thread, TcbSlot::FaultHandler);
    Deletion::new().replace(k, turn, slot, params.fault_handler, None)?;
    let limit = params.max_controlled_priority;
    thread.at(k).set_max_controlled_priority(k, limit);
    priority::set_priority(k, turn, thread, params.priority);
    match params.context {
        Change::Keep => {}
        Change::Bind(handle) => context::bind_thread(k, turn, handle, thread),
        Change::Unbind(handle) => context::unbind_thread(k, turn, handle),
    }
    Ok(())
}

/// Sets and clears flags; returns the new ones.
fn set_flags(k: &Kernel, thread: Ref<Tcb>, clear: u64, set: u64) -> u64 {
    let tcb = thread.at(k);
    let old = if tcb.fpu_disabled() {
        tcb_flags::FPU_DISABLED
    } else {
        0
    };
    let new = (old & !clear) | (set & tcb_flags::ALL);
    tcb.set_fpu_disabled(k, new & tcb_flags::FPU_DISABLED != 0);
    if old != new && k.core().thread() == Some(thread) {
        fpu::switch(k, thread);
    }
    new
}
