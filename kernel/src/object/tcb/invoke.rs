//! Invocations of a TCB (03, section 4), but for those that move registers.

use sandglass_abi::invocation::{self as label, tcb_flags};

use super::registers::{self, CopyRegisters, ReadRegisters, WriteRegisters};
use super::space::{self, Install, Spaces};
use super::{Tcb, TcbSlot};
use crate::cap::Capability;
use crate::ipc::thread;
use crate::mem::{self, Ref};
use crate::object::error::Error;
use crate::object::notification::Notification;
use crate::object::sched_context::SchedContext;
use crate::object::{Invocation, Outcome};
use crate::time::{context, schedule};
use crate::Kernel;

/// A checked invocation of a thread.
#[derive(Clone, Copy)]
pub struct Operation {
    thread: Ref<Tcb>,
    action: Action,
}

#[derive(Clone, Copy)]
enum Action {
    ReadRegisters(ReadRegisters),
    WriteRegisters(WriteRegisters),
    CopyRegisters(CopyRegisters),
    SetSpaces(Spaces),
    SetPriority(u8),
    SetMaxControlledPriority(u8),
    SetSchedParams(SchedParams),
    SetTimeoutHandler(Install),
    Suspend,
    Resume,
    BindNotification(Ref<Notification>),
    UnbindNotification,
    SetTlsBase(u64),
    SetFlags { clear: u64, set: u64 },
}

#[derive(Clone, Copy)]
struct SchedParams {
    max_controlled_priority: u8,
    priority: u8,
    /// The context that the thread is to have, if it has another one or none now.
    context: Change,
    fault_handler: Install,
}

#[derive(Clone, Copy)]
enum Change {
    Keep,
    Bind(Ref<SchedContext>),
    Unbind(Ref<SchedContext>),
}

/// Checks an invocation of a TCB.
#[inline(always)]
pub fn decode(call: &Invocation) -> Result<Operation, Error> {
    let thread = call
        .cap
        .word()
        .get::<Tcb>()
        .ok_or(Error::InvalidCapability(0))?;
    let action = match call.label {
        label::TCB_READ_REGISTERS => Action::ReadRegisters(registers::decode_read(call, thread)?),
        label::TCB_WRITE_REGISTERS => {
            Action::WriteRegisters(registers::decode_write(call, thread)?)
        }
        label::TCB_COPY_REGISTERS => Action::CopyRegisters(registers::decode_copy(call)?),
        label::TCB_CONFIGURE => Action::SetSpaces(space::decode_configure(call, thread)?),
        label::TCB_SET_PRIORITY => Action::SetPriority(decode_priority(call)?),
        label::TCB_SET_MC_PRIORITY => Action::SetMaxControlledPriority(decode_priority(call)?),
        label::TCB_SET_SCHED_PARAMS => Action::SetSchedParams(decode_sched_params(call, thread)?),
        label::TCB_SET_TIMEOUT_ENDPOINT => {
            Action::SetTimeoutHandler(space::decode_handler(call, 0, 1)?)
        }
        label::TCB_SET_IPC_BUFFER => Action::SetSpaces(space::decode_buffer(call)?),
        label::TCB_SET_SPACE => Action::SetSpaces(space::decode_set_space(call, thread)?),
        label::TCB_SUSPEND => Action::Suspend,
        label::TCB_RESUME => Action::Resume,
        label::TCB_BIND_NOTIFICATION => decode_bind_notification(call, thread)?,
        label::TCB_UNBIND_NOTIFICATION => {
            thread
                .at(call.k)
                .notification()
                .ok_or(Error::IllegalOperation)?;
            Action::UnbindNotification
        }
        label::TCB_SET_TLS_BASE => {
            call.need(1)?;
            Action::SetTlsBase(call.word(0))
        }
        label::TCB_SET_FLAGS => {
            call.need(2)?;
            Action::SetFlags {
                clear: call.word(0),
                set: call.word(1),
            }
        }
        _ => return Err(Error::IllegalOperation),
    };
    Ok(Operation { thread, action })
}

/// The thread whose maximum controlled priority limits what may be set: extra capability 0.
fn authority(call: &Invocation) -> Result<u8, Error> {
    let authority = call
        .extra_cap(0)?
        .word()
        .get::<Tcb>()
        .ok_or(Error::InvalidCapability(1))?;
    Ok(authority.at(call.k).max_controlled_priority())
}

fn check_priority(priority: u64, limit: u8) -> Result<u8, Error> {
    if priority > u64::from(limit) {
        return Err(Error::Range {
            min: 0,
            max: u64::from(limit),
        });
    }
    Ok(priority as u8)
}

fn decode_priority(call: &Invocation) -> Result<u8, Error> {
    call.need(1)?;
    let limit = authority(call)?;
    check_priority(call.word(0), limit)
}

fn decode_sched_params(call: &Invocation, thread: Ref<Tcb>) -> Result<SchedParams, Error> {
    call.need(2)?;
    call.extra_slot(2)?;
    let limit = authority(call)?;
    let max_controlled_priority = check_priority(call.word(0), limit)?;
    let priority = check_priority(call.word(1), limit)?;
    let context = decode_context(call, thread, call.extra_cap(1)?)?;
    let fault_handler = space::decode_handler(call, 2, 3)?;
    Ok(SchedParams {
        max_controlled_priority,
        priority,
        context,
        fault_handler,
    })
}

fn decode_context(
    call: &Invocation,
    thread: Ref<Tcb>,
    argument: Capability,
) -> Result<Change, Error> {
    let k = call.k;
    let tcb = thread.at(k);
    let present = tcb.sched_context();
    if argument.is_null() {
        if thread == call.caller {
            return Err(Error::IllegalOperation);
        }
        return Ok(present.map_or(Change::Keep, Change::Unbind));
    }
    let wanted = argument
        .word()
        .get::<SchedContext>()
        .ok_or(Error::InvalidCapability(2))?;
    let differs = present != Some(wanted);
    if differs && (present.is_some() || wanted.at(k).thread().is_some()) {
        return Err(Error::IllegalOperation);
    }
    if tcb.is_blocked() && !context::is_released(k, wanted) {
        return Err(Error::IllegalOperation);
    }
    Ok(if differs {
        Change::Bind(wanted)
    } else {
        Change::Keep
    })
}

fn decode_bind_notification(call: &Invocation, thread: Ref<Tcb>) -> Result<Action, Error> {
    let cap = call.extra_cap(0)?;
    let notification = cap.notification();
    match notification {
        Some(cap)
            if thread.at(call.k).notification().is_none()
                && cap.rights.read()
                && cap.object.at(call.k).queue().is_empty()
                && cap.object.at(call.k).thread().is_none() =>
        {
            Ok(Action::BindNotification(cap.object))
        }
        _ => Err(Error::IllegalOperation),
    }
}

/// Performs a checked invocation of a thread for `caller`, which calls if `is_call`.
#[inline(always)]
pub fn commit(k: &Kernel, caller: Ref<Tcb>, is_call: bool, operation: Operation) -> Outcome {
    let Operation { thread, action } = operation;
    match action {
        Action::ReadRegisters(read) => return registers::read(k, caller, is_call, thread, read),
        Action::WriteRegisters(write) => registers::write(k, caller, thread, write),
        Action::CopyRegisters(copy) => registers::copy(k, thread, copy),
        Action::SetSpaces(spaces) => return space::install(k, thread, spaces),
        Action::SetPriority(priority) => thread::set_priority(k, thread, priority),
        Action::SetMaxControlledPriority(limit) => {
            thread.at(k).set_max_controlled_priority(limit);
        }
        Action::SetSchedParams(params) => return set_sched_params(k, thread, params),
        Action::SetTimeoutHandler(handler) => {
            return space::install_handler(k, thread, TcbSlot::TimeoutHandler, handler);
        }
        Action::Suspend => thread::suspend(k, thread),
        Action::Resume => thread::resume(k, thread),
        Action::BindNotification(notification) => {
            notification.at(k).set_thread(Some(thread));
            thread.at(k).set_notification(Some(notification));
        }
        Action::UnbindNotification => {
            if let Some(notification) = thread.at(k).notification() {
                notification.at(k).set_thread(None);
            }
            thread.at(k).set_notification(None);
        }
        Action::SetTlsBase(base) => {
            thread.at(k).context().set_tls_base(base);
            if k.core().thread() == Some(thread) {
                schedule::force_reschedule(k);
            }
        }
        Action::SetFlags { clear, set } => return Outcome::Value(set_flags(k, thread, clear, set)),
    }
    Outcome::Done
}

fn set_sched_params(k: &Kernel, thread: Ref<Tcb>, params: SchedParams) -> Outcome {
    let installed = space::install_handler(k, thread, TcbSlot::FaultHandler, params.fault_handler);
    if matches!(installed, Outcome::Preempted(_)) {
        return installed;
    }
    thread
        .at(k)
        .set_max_controlled_priority(params.max_controlled_priority);
    thread::set_priority(k, thread, params.priority);
    match params.context {
        Change::Keep => {}
        Change::Bind(handle) => context::bind_thread(k, handle, thread),
        Change::Unbind(handle) => context::unbind_thread(k, handle),
    }
    Outcome::Done
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
    tcb.set_fpu_disabled(new & tcb_flags::FPU_DISABLED != 0);
    if old != new && k.core().thread() == Some(thread) {
        super::fpu::switch(k, thread);
    }
    new
}

/// The slot of `thread` in which its capability space is rooted.
#[inline(always)]
pub fn cspace(k: &Kernel, thread: Ref<Tcb>) -> Capability {
    mem::tcb_slot(thread, TcbSlot::CSpace).at(k).cap()
}
