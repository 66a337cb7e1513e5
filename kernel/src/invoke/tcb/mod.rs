//! Invocations of a TCB (03, section 4), but for those that move registers.

use sandglass_abi::invocation::{self as label, tcb_flags};

mod registers;
mod space;

use crate::cap::Capability;
use crate::invoke::error::Error;
use crate::invoke::{Invocation, Outcome};
use crate::ipc::stall;
use crate::mem::Ref;
use crate::object::notification::Notification;
use crate::object::sched_context::SchedContext;
use crate::object::tcb::{Tcb, TcbSlot};
use crate::thread::{self, priority};
use crate::time::{context, fpu, schedule};
use crate::Kernel;
use space::Install;

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

/// Invokes the TCB of `thread`.
#[inline(always)]
pub fn invoke(k: &Kernel, call: &Invocation, thread: Ref<Tcb>) -> Result<Outcome, Error> {
    if stall::stall(k, thread).is_err() {
        return Ok(Outcome::Preempted);
    }
    if call.label == label::TCB_SET_PRIORITY {
        let priority = decode_priority(k, call)?;
        priority::set_priority(k, thread, priority);
        return Ok(Outcome::Done);
    }
    invoke_other(k, call, thread)
}

/// The invocations that are made less often than SetPriority.
#[inline(never)]
fn invoke_other(k: &Kernel, call: &Invocation, thread: Ref<Tcb>) -> Result<Outcome, Error> {
    match call.label {
        label::TCB_READ_REGISTERS => return registers::read(k, call, thread),
        label::TCB_WRITE_REGISTERS => return registers::write(k, call, thread),
        label::TCB_COPY_REGISTERS => return registers::copy(k, call, thread),
        label::TCB_CONFIGURE => {
            let spaces = space::decode_configure(k, call, thread)?;
            return Ok(space::install(k, thread, spaces));
        }
        label::TCB_SET_MC_PRIORITY => {
            let limit = decode_priority(k, call)?;
            thread.at(k).set_max_controlled_priority(limit);
        }
        label::TCB_SET_SCHED_PARAMS => {
            let params = decode_sched_params(k, call, thread)?;
            return Ok(set_sched_params(k, thread, params));
        }
        label::TCB_SET_TIMEOUT_ENDPOINT => {
            let handler = space::decode_handler(k, call, 0, 1)?;
            let slot = TcbSlot::TimeoutHandler;
            return Ok(space::install_handler(k, thread, slot, handler));
        }
        label::TCB_SET_IPC_BUFFER => {
            let spaces = space::decode_buffer(k, call)?;
            return Ok(space::install(k, thread, spaces));
        }
        label::TCB_SET_SPACE => {
            let spaces = space::decode_set_space(k, call, thread)?;
            return Ok(space::install(k, thread, spaces));
        }
        label::TCB_SUSPEND => thread::suspend(k, thread),
        label::TCB_RESUME => thread::resume(k, thread),
        label::TCB_BIND_NOTIFICATION => {
            let notification = decode_bind_notification(k, call, thread)?;
            notification.at(k).set_thread(Some(thread));
            thread.at(k).set_notification(Some(notification));
        }
        label::TCB_UNBIND_NOTIFICATION => {
            let bound = thread.at(k).notification();
            let notification = bound.ok_or(Error::IllegalOperation)?;
            notification.at(k).set_thread(None);
            thread.at(k).set_notification(None);
        }
        label::TCB_SET_TLS_BASE => {
            call.need(1)?;
            thread.at(k).context().set_tls_base(call.word(k, 0));
            if k.core().thread() == Some(thread) {
                schedule::force_reschedule(k);
            }
        }
        label::TCB_SET_FLAGS => {
            call.need(2)?;
            let flags = set_flags(k, thread, call.word(k, 0), call.word(k, 1));
            return Ok(Outcome::Value(flags));
        }
        _ => return Err(Error::IllegalOperation),
    }
    Ok(Outcome::Done)
}

/// The thread whose maximum controlled priority limits what may be set: extra capability 0.
fn authority(k: &Kernel, call: &Invocation) -> Result<u8, Error> {
    let authority = call
        .extra_cap(k, 0)?
        .word()
        .get::<Tcb>()
        .ok_or(Error::InvalidCapability(1))?;
    Ok(authority.at(k).max_controlled_priority())
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

#[inline(always)]
fn decode_priority(k: &Kernel, call: &Invocation) -> Result<u8, Error> {
    call.need(1)?;
    let limit = authority(k, call)?;
    if broken!(McpUnchecked) && call.label == label::TCB_SET_MC_PRIORITY {
        return check_priority(call.word(k, 0), u8::MAX);
    }
    check_priority(call.word(k, 0), limit)
}

fn decode_sched_params(
    k: &Kernel,
    call: &Invocation,
    thread: Ref<Tcb>,
) -> Result<SchedParams, Error> {
    call.need(2)?;
    call.extra_slot(2)?;
    let limit = authority(k, call)?;
    let max_controlled_priority = check_priority(call.word(k, 0), limit)?;
    let priority = check_priority(call.word(k, 1), limit)?;
    let context = decode_context(k, call, thread, call.extra_cap(k, 1)?)?;
    let fault_handler = space::decode_handler(k, call, 2, 3)?;
    Ok(SchedParams {
        max_controlled_priority,
        priority,
        context,
        fault_handler,
    })
}

fn decode_context(
    k: &Kernel,
    call: &Invocation,
    thread: Ref<Tcb>,
    argument: Capability,
) -> Result<Change, Error> {
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

fn decode_bind_notification(
    k: &Kernel,
    call: &Invocation,
    thread: Ref<Tcb>,
) -> Result<Ref<Notification>, Error> {
    let notification = call.extra_cap(k, 0)?.notification();
    match notification {
        Some(cap)
            if thread.at(k).notification().is_none()
                && cap.rights.read()
                && cap.object.at(k).queue().is_empty()
                && cap.object.at(k).thread().is_none() =>
        {
            Ok(cap.object)
        }
        _ => Err(Error::IllegalOperation),
    }
}

fn set_sched_params(k: &Kernel, thread: Ref<Tcb>, params: SchedParams) -> Outcome {
    let installed = space::install_handler(k, thread, TcbSlot::FaultHandler, params.fault_handler);
    if installed == Outcome::Preempted {
        return installed;
    }
    thread
        .at(k)
        .set_max_controlled_priority(params.max_controlled_priority);
    priority::set_priority(k, thread, params.priority);
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
        fpu::switch(k, thread);
    }
    new
}
