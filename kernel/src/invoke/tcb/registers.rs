//! ReadRegisters, WriteRegisters and CopyRegisters (03, sections 4.1 to 4.3; 07, section 1).

use sandglass_abi::invocation::registers_flags as flags;
use sandglass_abi::message::REGISTER_MRS;

use crate::arch::{Transfer, FRAME_REGISTERS};
use crate::invoke::{Error, Invocation, Outcome};
use crate::ipc::{stall, Writer};
use crate::mem::Ref;
use crate::object::{State, Tcb};
use crate::time::{Preempted, Turn};
use crate::{thread, Kernel, View};

const ORDER: Transfer = Transfer::UserContext;

/// A checked ReadRegisters.
pub struct Read {
    suspend: bool,
    /// Registers to read.
    count: usize,
}

impl Read {
    pub fn decode(k: &View, call: &Invocation, thread: Ref<Tcb>) -> Result<Self, Error> {
        call.need(2)?;
        let count = call.word(k, 1);
        Error::check_range(count, 1, ORDER.len() as u64)?;
        Error::IllegalOperation.when(thread == call.caller)?;
        Ok(Read {
            suspend: call.word(k, 0) & flags::READ_SUSPEND_SOURCE != 0,
            count: count as usize,
        })
    }

    pub fn commit(self, k: &Kernel, turn: &Turn, call: &Invocation, thread: Ref<Tcb>) -> Outcome {
        if self.suspend {
            thread::suspend(k, turn, thread);
        }
        if !call.phases.is_call() {
            return Outcome::Done;
        }
        let mut message = Writer::new(k, call.caller, self.count);
        let register = |i| thread.at(k).context().transfer_get(ORDER, i).unwrap_or(0);
        message.fill::<{ (ORDER.len() - REGISTER_MRS) as u64 }>(self.count, register);
        message.finish(0, 0);
        call.caller.at(k).set_state(k, State::Running);
        Outcome::Answered
    }
}

/// A checked WriteRegisters.
pub struct Write {
    resume: bool,
    /// Registers that the message has.
    count: usize,
}

impl Write {
    pub fn decode(k: &View, call: &Invocation, thread: Ref<Tcb>) -> Result<Self, Error> {
        call.need(2)?;
        let count = call.word(k, 1);
        Error::TruncatedMessage.when(call.message.length() as u64 - 2 < count)?;
        Error::IllegalOperation.when(thread == call.caller)?;
        Ok(Write {
            resume: call.word(k, 0) & flags::WRITE_RESUME_TARGET != 0,
            count: count as usize,
        })
    }

    pub fn commit(self, k: &Kernel, turn: &Turn, call: &Invocation, thread: Ref<Tcb>) {
        let context = thread.at(k).context();
        let word = |i| call.word(k, 2 + i);
        context.transfer_set::<{ ORDER.len() as u64 }>(k, ORDER, 0..self.count, word);
        context.restart(k);
        thread.at(k).set_full_restore(k, true);
        thread.at(k).forget_progress(k);
        if self.resume {
            thread::resume(k, turn, thread);
        }
    }
}

/// A checked CopyRegisters.
pub struct CopyFrom {
    source: Ref<Tcb>,
    /// What is wanted: `COPY_...`.
    wanted: u64,
}

impl CopyFrom {
    pub fn decode(k: &View, call: &Invocation) -> Result<Self, Error> {
        call.need(1)?;
        let source = call.extra_object(k, 0)?;
        let wanted = call.word(k, 0);
        Ok(CopyFrom { source, wanted })
    }

    pub fn commit(self, k: &Kernel, turn: &Turn, thread: Ref<Tcb>) -> Result<(), Preempted> {
        let CopyFrom { source, wanted } = self;
        stall::quiesce(k, turn, source)?;
        if wanted & flags::COPY_SUSPEND_SOURCE != 0 {
            thread::suspend(k, turn, source);
        }
        if wanted & flags::COPY_RESUME_TARGET != 0 {
            thread::resume(k, turn, thread);
        }
        let (from, to) = (source.at(k).context(), thread.at(k).context());
        if wanted & flags::COPY_TRANSFER_FRAME != 0 {
            to.copy_user_context(k, from, 0, FRAME_REGISTERS);
            to.restart(k);
            thread.at(k).forget_progress(k);
        }
        if wanted & flags::COPY_TRANSFER_INTEGER != 0 {
            to.copy_user_context(k, from, FRAME_REGISTERS, ORDER.len());
        }
        if k.core().thread() == Some(thread) {
            turn.reschedule(k);
        } else {
            thread.at(k).set_full_restore(k, true);
        }
        Ok(())
    }
}
