//! ReadRegisters, WriteRegisters and CopyRegisters (03, sections 4.1 to 4.3; 07, section 1).

use sandglass_abi::invocation::registers_flags as flags;
use sandglass_abi::message::REGISTER_MRS;

use super::Tcb;
use crate::arch::{Transfer, FRAME_REGISTERS};
use crate::ipc::message::{buffer, Reader, Writer};
use crate::ipc::thread;
use crate::mem::Ref;
use crate::object::error::Error;
use crate::object::{Invocation, Outcome};
use crate::time::schedule;
use crate::Kernel;

const ORDER: Transfer = Transfer::UserContext;

#[derive(Clone, Copy)]
pub struct ReadRegisters {
    suspend: bool,
    count: usize,
}

#[derive(Clone, Copy)]
pub struct WriteRegisters {
    resume: bool,
    count: usize,
}

#[derive(Clone, Copy)]
pub struct CopyRegisters {
    source: Ref<Tcb>,
    suspend: bool,
    resume: bool,
    frame: bool,
    integer: bool,
}

pub fn decode_read(call: &Invocation, thread: Ref<Tcb>) -> Result<ReadRegisters, Error> {
    call.need(2)?;
    let count = call.word(1);
    let total = ORDER.len() as u64;
    if !(1..=total).contains(&count) {
        return Err(Error::Range { min: 1, max: total });
    }
    if thread == call.caller {
        return Err(Error::IllegalOperation);
    }
    let suspend = call.word(0) & flags::READ_SUSPEND_SOURCE != 0;
    Ok(ReadRegisters {
        suspend,
        count: count as usize,
    })
}

pub fn decode_write(call: &Invocation, thread: Ref<Tcb>) -> Result<WriteRegisters, Error> {
    call.need(2)?;
    let count = call.word(1);
    if call.message.length() as u64 - 2 < count {
        return Err(Error::TruncatedMessage);
    }
    if thread == call.caller {
        return Err(Error::IllegalOperation);
    }
    let resume = call.word(0) & flags::WRITE_RESUME_TARGET != 0;
    Ok(WriteRegisters {
        resume,
        count: (count as usize).min(ORDER.len()),
    })
}

pub fn decode_copy(call: &Invocation) -> Result<CopyRegisters, Error> {
    call.need(1)?;
    let source = call
        .extra_cap(0)?
        .word()
        .get()
        .ok_or(Error::InvalidCapability(1))?;
    let word = call.word(0);
    Ok(CopyRegisters {
        source,
        suspend: word & flags::COPY_SUSPEND_SOURCE != 0,
        resume: word & flags::COPY_RESUME_TARGET != 0,
        frame: word & flags::COPY_TRANSFER_FRAME != 0,
        integer: word & flags::COPY_TRANSFER_INTEGER != 0,
    })
}

pub fn read(
    k: &Kernel,
    caller: Ref<Tcb>,
    is_call: bool,
    thread: Ref<Tcb>,
    read: ReadRegisters,
) -> Outcome {
    if read.suspend {
        thread::suspend(k, thread);
    }
    if !is_call {
        return Outcome::Done;
    }
    let room = if buffer(k, caller, true).is_some() {
        read.count
    } else {
        REGISTER_MRS
    };
    let mut message = Writer::new(k, caller);
    for i in 0..read.count.min(room) {
        message.push(thread.at(k).context().transfer_get(ORDER, i).unwrap_or(0));
    }
    message.finish(0, 0);
    caller.at(k).set_state(super::State::Running);
    Outcome::Answered
}

pub fn write(k: &Kernel, caller: Ref<Tcb>, thread: Ref<Tcb>, write: WriteRegisters) {
    let message = Reader::new(k, caller);
    let context = thread.at(k).context();
    for i in 0..write.count {
        context.transfer_set(ORDER, i, message.word(2 + i));
    }
    context.restart();
    context.force_full_restore();
    if write.resume {
        thread::resume(k, thread);
    }
}

pub fn copy(k: &Kernel, thread: Ref<Tcb>, copy: CopyRegisters) {
    if copy.suspend {
        thread::suspend(k, copy.source);
    }
    if copy.resume {
        thread::resume(k, thread);
    }
    let (from, to) = (copy.source.at(k).context(), thread.at(k).context());
    if copy.frame {
        to.copy_user_context(from, 0, FRAME_REGISTERS);
        to.restart();
    }
    if copy.integer {
        to.copy_user_context(from, FRAME_REGISTERS, ORDER.len());
    }
    if k.core().thread() == Some(thread) {
        schedule::force_reschedule(k);
    } else {
        to.force_full_restore();
    }
}
