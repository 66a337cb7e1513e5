//! ReadRegisters, WriteRegisters and CopyRegisters (03, sections 4.1 to 4.3; 07, section 1).

use sandglass_abi::invocation::registers_flags as flags;
use sandglass_abi::message::REGISTER_MRS;

use crate::arch::{Transfer, FRAME_REGISTERS};
use crate::invoke::error::Error;
use crate::invoke::{Invocation, Outcome};
use crate::ipc::message::{buffer, Writer};
use crate::ipc::stall;
use crate::mem::Ref;
use crate::object::tcb::{State, Tcb};
use crate::time::schedule;
use crate::{thread, Kernel};

const ORDER: Transfer = Transfer::UserContext;

/// ReadRegisters of `thread`.
#[inline(never)]
pub fn read(k: &Kernel, call: &Invocation, thread: Ref<Tcb>) -> Result<Outcome, Error> {
    call.need(2)?;
    let count = call.word(k, 1);
    let total = ORDER.len() as u64;
    if !(1..=total).contains(&count) {
        return Err(Error::Range { min: 1, max: total });
    }
    if thread == call.caller {
        return Err(Error::IllegalOperation);
    }
    if call.word(k, 0) & flags::READ_SUSPEND_SOURCE != 0 {
        thread::suspend(k, thread);
    }
    if !call.phases.is_call() {
        return Ok(Outcome::Done);
    }
    let room = if buffer(k, call.caller, true).is_some() {
        count as usize
    } else {
        REGISTER_MRS
    };
    let mut message = Writer::new(k, call.caller, count as usize);
    for i in 0..room.min(count as usize) {
        message.push(thread.at(k).context().transfer_get(ORDER, i).unwrap_or(0));
    }
    message.finish(0, 0);
    call.caller.at(k).set_state(State::Running);
    Ok(Outcome::Answered)
}

/// WriteRegisters of `thread`.
#[inline(never)]
pub fn write(k: &Kernel, call: &Invocation, thread: Ref<Tcb>) -> Result<Outcome, Error> {
    call.need(2)?;
    let count = call.word(k, 1);
    if call.message.length() as u64 - 2 < count {
        return Err(Error::TruncatedMessage);
    }
    if thread == call.caller {
        return Err(Error::IllegalOperation);
    }
    let context = thread.at(k).context();
    for i in 0..ORDER.len().min(count as usize) {
        context.transfer_set(ORDER, i, call.word(k, 2 + i));
    }
    if count > 0 || !broken!(NextIpKept) {
        context.restart();
    }
    context.force_full_restore();
    if call.word(k, 0) & flags::WRITE_RESUME_TARGET != 0 {
        thread::resume(k, thread);
    }
    Ok(Outcome::Done)
}

/// CopyRegisters to `thread`.
#[inline(never)]
pub fn copy(k: &Kernel, call: &Invocation, thread: Ref<Tcb>) -> Result<Outcome, Error> {
    call.need(1)?;
    let source: Ref<Tcb> = call
        .extra_cap(k, 0)?
        .word()
        .get()
        .ok_or(Error::InvalidCapability(1))?;
    if stall::stall(k, source).is_err() {
        return Ok(Outcome::Preempted);
    }
    let wanted = call.word(k, 0);
    if wanted & flags::COPY_SUSPEND_SOURCE != 0 {
        thread::suspend(k, source);
    }
    if wanted & flags::COPY_RESUME_TARGET != 0 {
        thread::resume(k, thread);
    }
    let (from, to) = (source.at(k).context(), thread.at(k).context());
    if wanted & flags::COPY_TRANSFER_FRAME != 0 {
        to.copy_user_context(from, 0, FRAME_REGISTERS);
        to.restart();
    }
    if wanted & flags::COPY_TRANSFER_INTEGER != 0 {
        to.copy_user_context(from, FRAME_REGISTERS, ORDER.len());
    }
    if k.core().thread() == Some(thread) {
        schedule::force_reschedule(k);
    } else {
        to.force_full_restore();
    }
    Ok(Outcome::Done)
}
