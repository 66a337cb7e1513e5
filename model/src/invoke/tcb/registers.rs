//! Reading, writing and copying registers (03, sections 4.1 to 4.3).

use sandglass_abi::invocation::registers_flags;

use super::reschedule_if_current;
use crate::error::Error;
use crate::invoke::{Call, Outcome};
use crate::isa::{sanitise, COUNT, FRAME_COUNT, PC};
use crate::state::{Cap, State, ThreadId};
use crate::thread;
use crate::time::cores;

/// 03, section 4.1.
pub fn read(s: &mut State, call: &Call, source: ThreadId) -> Result<Outcome, Error> {
    call.require(2, 0)?;
    let (flags, count) = (call.words[0], call.words[1]);
    let max = COUNT as u64;
    if !(1..=max).contains(&count) {
        return Err(Error::Range { min: 1, max });
    }
    refuse_current(s, source)?;
    if flags & registers_flags::READ_SUSPEND_SOURCE != 0 {
        thread::suspend(s, source);
    }
    let registers = &s.threads[&source].registers.user[..count as usize];
    Ok(Outcome::Words(registers.to_vec()))
}

/// 03, section 4.2.
pub fn write(s: &mut State, call: &Call, target: ThreadId) -> Result<Outcome, Error> {
    call.require(2, 0)?;
    let (flags, count, values) = (call.words[0], call.words[1], &call.words[2..]);
    if (values.len() as u64) < count {
        return Err(Error::TruncatedMessage);
    }
    refuse_current(s, target)?;
    let registers = &mut s.thread_mut(target).registers;
    for (i, &value) in values[..count as usize].iter().take(COUNT).enumerate() {
        registers.user[i] = sanitise(i, value);
    }
    registers.next_ip = registers.user[PC];
    if flags & registers_flags::WRITE_RESUME_TARGET != 0 {
        thread::resume(s, target);
    }
    Ok(Outcome::Done)
}

/// 03, section 4.3.
pub fn copy(s: &mut State, call: &Call, target: ThreadId) -> Result<Outcome, Error> {
    call.require(1, 1)?;
    let flags = call.words[0];
    let Some(Cap::Thread(source)) = call.extra_cap(s, 0).flatten() else {
        return Err(Error::InvalidCapability(1));
    };
    cores::stall(s, source);
    if flags & registers_flags::COPY_SUSPEND_SOURCE != 0 {
        thread::suspend(s, source);
    }
    if flags & registers_flags::COPY_RESUME_TARGET != 0 {
        thread::resume(s, target);
    }
    let from = s.threads[&source].registers.user;
    let to = &mut s.thread_mut(target).registers;
    if flags & registers_flags::COPY_TRANSFER_FRAME != 0 {
        to.user[..FRAME_COUNT].copy_from_slice(&from[..FRAME_COUNT]);
        to.next_ip = to.user[PC];
    }
    if flags & registers_flags::COPY_TRANSFER_INTEGER != 0 {
        to.user[FRAME_COUNT..].copy_from_slice(&from[FRAME_COUNT..]);
    }
    reschedule_if_current(s, target);
    Ok(Outcome::Done)
}

/// # Errors
/// `thread` is the current one, whose registers are in use.
fn refuse_current(s: &State, thread: ThreadId) -> Result<(), Error> {
    if s.core().thread == Some(thread) {
        Err(Error::IllegalOperation)
    } else {
        Ok(())
    }
}
