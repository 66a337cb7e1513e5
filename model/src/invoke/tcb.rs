//! Threads (03, section 4).

mod registers;
mod spaces;

use sandglass_abi::invocation::{self, tcb_flags};

use super::{Call, Outcome};
use crate::error::Error;
use crate::ipc::fault;
use crate::isa::TLS_BASE;
use crate::state::{Cap, ContextId, Signals, SlotId, State, ThreadId, ThreadSlot};
use crate::thread;
use crate::time::{context, schedule};

/// Invokes `thread`.
pub fn invoke(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    match call.label {
        invocation::TCB_READ_REGISTERS => registers::read(s, call, thread),
        invocation::TCB_WRITE_REGISTERS => registers::write(s, call, thread),
        invocation::TCB_COPY_REGISTERS => registers::copy(s, call, thread),
        invocation::TCB_CONFIGURE => spaces::configure(s, call, thread),
        invocation::TCB_SET_PRIORITY => set_priority(s, call, thread),
        invocation::TCB_SET_MC_PRIORITY => set_mc_priority(s, call, thread),
        invocation::TCB_SET_SCHED_PARAMS => set_sched_params(s, call, thread),
        invocation::TCB_SET_TIMEOUT_ENDPOINT => set_timeout_endpoint(s, call, thread),
        invocation::TCB_SET_IPC_BUFFER => spaces::set_ipc_buffer(s, call, thread),
        invocation::TCB_SET_SPACE => spaces::set_space(s, call, thread),
        invocation::TCB_SUSPEND => {
            thread::suspend(s, thread);
            Ok(Outcome::Done)
        }
        invocation::TCB_RESUME => {
            thread::resume(s, thread);
            Ok(Outcome::Done)
        }
        invocation::TCB_BIND_NOTIFICATION => bind_notification(s, call, thread),
        invocation::TCB_UNBIND_NOTIFICATION => unbind_notification(s, thread),
        invocation::TCB_SET_TLS_BASE => set_tls_base(s, call, thread),
        invocation::TCB_SET_FLAGS => set_flags(s, call, thread),
        _ => Err(Error::IllegalOperation),
    }
}

/// The value `priority`, if the capability `authority` allows it (03, section 4.5).
fn allowed(s: &State, priority: u64, authority: ThreadId) -> Result<u8, Error> {
    let max = s.threads[&authority].mcp;
    match u8::try_from(priority) {
        Ok(priority) if priority <= max => Ok(priority),
        _ => Err(Error::Range {
            min: 0,
            max: max.into(),
        }),
    }
}

/// The thread whose authority is claimed by the first extra capability (03, section 4.5).
fn authority(s: &State, call: &Call) -> Result<ThreadId, Error> {
    match call.extra_cap(s, 0).flatten() {
        Some(Cap::Thread(thread)) => Ok(thread),
        _ => Err(Error::InvalidCapability(1)),
    }
}

/// 03, section 4.5.
fn set_priority(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    call.require(1, 1)?;
    let priority = allowed(s, call.words[0], authority(s, call)?)?;
    schedule::set_priority(s, thread, priority);
    Ok(Outcome::Done)
}

/// 03, section 4.5.
fn set_mc_priority(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    call.require(1, 1)?;
    s.thread_mut(thread).mcp = allowed(s, call.words[0], authority(s, call)?)?;
    Ok(Outcome::Done)
}

/// 03, section 4.6.
fn set_sched_params(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    // Steps 1 to 4.
    call.require(2, 3)?;
    let authority = authority(s, call)?;
    let mcp = allowed(s, call.words[0], authority)?;
    let priority = allowed(s, call.words[1], authority)?;
    // Step 5.
    let context = context_argument(s, call, thread)?;
    // Step 6.
    if !fault::is_valid_handler(call.extra_cap(s, 2).flatten()) {
        return Err(Error::InvalidCapability(3));
    }
    install_handler(s, call, thread, ThreadSlot::FaultHandler, 2);
    s.thread_mut(thread).mcp = mcp;
    schedule::set_priority(s, thread, priority);
    match (s.threads[&thread].context, context) {
        (old, new) if old == new => {}
        (_, Some(new)) => context::bind_thread(s, new, thread),
        (Some(old), None) => context::unbind_thread(s, old),
        (None, None) => {}
    }
    Ok(Outcome::Done)
}

/// The scheduling context that `thread` is to have, from extra capability 1 (03, section 4.6
/// step 5).
fn context_argument(s: &State, call: &Call, thread: ThreadId) -> Result<Option<ContextId>, Error> {
    let current = s.threads[&thread].context;
    match call.extra_cap(s, 1).flatten() {
        Some(Cap::SchedContext { object, .. }) => {
            let taken = current.is_some() || s.contexts[&object].thread.is_some();
            let waits = s.threads[&thread].state.is_blocked();
            if (current != Some(object) && taken) || (waits && !context::is_released(s, object)) {
                Err(Error::IllegalOperation)
            } else {
                Ok(Some(object))
            }
        }
        None if s.core().thread == Some(thread) => Err(Error::IllegalOperation),
        None => Ok(None),
        Some(_) => Err(Error::InvalidCapability(2)),
    }
}

/// 03, section 4.7.
fn set_timeout_endpoint(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    call.require(0, 1)?;
    if !fault::is_valid_handler(call.extra_cap(s, 0).flatten()) {
        return Err(Error::InvalidCapability(1));
    }
    install_handler(s, call, thread, ThreadSlot::TimeoutHandler, 0);
    Ok(Outcome::Done)
}

/// Installs extra capability `i`, an endpoint or null, as a handler (05, section 5).
fn install_handler(s: &mut State, call: &Call, thread: ThreadId, slot: ThreadSlot, i: usize) {
    let cap = call.extra_cap(s, i).flatten();
    spaces::install(s, SlotId::Thread(thread, slot), cap, call.extra[i]);
}

/// 03, section 4.11.
fn bind_notification(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    call.require(0, 1)?;
    if s.threads[&thread].notification.is_some() {
        return Err(Error::IllegalOperation);
    }
    let Some(Cap::Notification { object, rights, .. }) = call.extra_cap(s, 0).flatten() else {
        return Err(Error::IllegalOperation);
    };
    let notification = &s.notifications[&object];
    let in_use = notification.thread.is_some() || matches!(notification.state, Signals::Waiting(_));
    if !rights.read || in_use {
        return Err(Error::IllegalOperation);
    }
    s.notification_mut(object).thread = Some(thread);
    s.thread_mut(thread).notification = Some(object);
    Ok(Outcome::Done)
}

/// 03, section 4.11.
fn unbind_notification(s: &mut State, thread: ThreadId) -> Result<Outcome, Error> {
    let bound = s.thread_mut(thread).notification.take();
    let notification = bound.ok_or(Error::IllegalOperation)?;
    s.notification_mut(notification).thread = None;
    Ok(Outcome::Done)
}

/// 03, section 4.12.
fn set_tls_base(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    call.require(1, 0)?;
    s.thread_mut(thread).registers.user[TLS_BASE] = call.words[0];
    reschedule_if_current(s, thread);
    Ok(Outcome::Done)
}

/// 03, section 4.13.
fn set_flags(s: &mut State, call: &Call, thread: ThreadId) -> Result<Outcome, Error> {
    call.require(2, 0)?;
    let (clear, set) = (call.words[0], call.words[1]);
    let old = u64::from(s.threads[&thread].fpu_disabled) * tcb_flags::FPU_DISABLED;
    let new = (old & !clear) | (set & tcb_flags::ALL);
    s.thread_mut(thread).fpu_disabled = new & tcb_flags::FPU_DISABLED != 0;
    Ok(Outcome::Words(vec![new]))
}

/// What has changed of `thread` takes effect when it is switched to (03, sections 4.3, 4.8 and
/// 4.12).
fn reschedule_if_current(s: &mut State, thread: ThreadId) {
    if s.core().thread == Some(thread) {
        schedule::force_reschedule(s);
    }
}
