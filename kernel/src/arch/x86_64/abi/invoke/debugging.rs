//! Invocations of a TCB by which its thread is watched (09, section 3). How long a message is is not asked: words that it
//! does not have are what registers and buffer hold.

use sandglass_abi::invocation as label;
use sandglass_abi::message::ipc_buffer;

use crate::arch::abi::debugging::{Access, Breakpoint, Watch, BREAKPOINTS};
use crate::arch::abi::Devices;
use crate::arch::MessageRegister;
use crate::invoke::{Error, Invocation, Outcome, Stop};
use crate::ipc::{message, Writer};
use crate::mem::Ref;
use crate::object::{State, Tcb};
use crate::{Kernel, View};

/// The first address that is watched nowhere.
const END: u64 = 0x7fff_ffff_ffff;
/// Bits of a message word that are a number.
const NUMBER: u64 = 0xffff;
/// What is watched, as messages have it.
const DATA: u64 = 0;
const INSTRUCTION: u64 = 1;
/// How it is accessed.
const READ: u64 = 0;
const WRITE: u64 = 1;
const READ_WRITE: u64 = 2;

/// A checked invocation.
enum Operation {
    /// Replaces the breakpoint of this number.
    Set(u64, Breakpoint),
    Get(u64),
    /// Steps by so many instructions.
    Step {
        number: u64,
        count: u64,
    },
}

/// Invokes the TCB of `thread`, which does not run on another core.
///
/// # Errors
/// The first check that failed, in the order of the ABI.
#[inline(never)]
pub fn invoke(k: &Kernel, call: &Invocation, thread: Ref<Tcb>) -> Result<Outcome, Stop> {
    let operation = decode(k, call)?;
    Ok(commit(k, call, thread, operation))
}

fn decode(k: &View, call: &Invocation) -> Result<Operation, Error> {
    let number = word(k, call, 0) & NUMBER;
    Ok(match call.label() {
        label::TCB_SET_BREAKPOINT => Operation::Set(number, decode_breakpoint(k, call, number)?),
        label::TCB_GET_BREAKPOINT => {
            Error::check_range(number, 0, BREAKPOINTS - 1)?;
            Operation::Get(number)
        }
        label::TCB_UNSET_BREAKPOINT => {
            Error::check_range(number, 0, BREAKPOINTS - 1)?;
            Operation::Set(number, Breakpoint::NONE)
        }
        label::TCB_CONFIGURE_SINGLE_STEPPING => Operation::Step {
            number,
            count: word(k, call, 1),
        },
        _ => return Err(Error::IllegalOperation),
    })
}

/// What SetBreakpoint is to set.
fn decode_breakpoint(k: &View, call: &Invocation, number: u64) -> Result<Breakpoint, Error> {
    let [address, kind, size, access] = [1, 2, 3, 4].map(|i| word(k, call, i));
    Error::InvalidArgument(1).when(address >= END)?;
    Error::InvalidArgument(2).when(kind > INSTRUCTION)?;
    if kind == INSTRUCTION {
        Error::InvalidArgument(3).when(size != 0)?;
        Error::InvalidArgument(4).when(access != 0)?;
    }
    Error::InvalidArgument(3).when(kind == DATA && size == 0)?;
    Error::InvalidArgument(3).when(access > READ_WRITE)?;
    Error::InvalidArgument(3).when(!matches!(size, 0 | 1 | 2 | 4 | 8))?;
    // The sizes that there are are powers of two, and no size divides every address.
    Error::Alignment.when(address & size.saturating_sub(1) != 0)?;
    Error::check_range(number, 0, BREAKPOINTS - 1)?;
    Error::InvalidArgument(3).when(size == 8 && !k.machine.watches_eight_bytes())?;
    let access = match access {
        WRITE => Access::Write,
        _ => Access::ReadWrite,
    };
    Ok(Breakpoint {
        address,
        watch: match kind {
            DATA => Watch::Data { size, access },
            _ => Watch::Instruction,
        },
        is_enabled: true,
    })
}

fn commit(k: &Kernel, call: &Invocation, thread: Ref<Tcb>, operation: Operation) -> Outcome {
    let context = thread.at(k).context();
    match operation {
        Operation::Set(number, breakpoint) => {
            context.debugging().set_breakpoint(k, number, breakpoint);
            Outcome::Done
        }
        Operation::Get(number) => tell(k, call, context.debugging().breakpoint(number)),
        Operation::Step { number, count } => {
            context.debugging().set_used(k, number, count != 0);
            context.set_steps(k, count);
            Outcome::Value(0)
        }
    }
}

/// Answers the caller what `breakpoint` is.
fn tell(k: &Kernel, call: &Invocation, breakpoint: Breakpoint) -> Outcome {
    if !call.phases.is_call() {
        return Outcome::Done;
    }
    let (kind, size, access) = match breakpoint.watch {
        Watch::Instruction => (INSTRUCTION, 0, READ),
        Watch::Data { size, access } => match access {
            Access::Write => (DATA, size, WRITE),
            Access::ReadWrite => (DATA, size, READ_WRITE),
        },
    };
    let mut message = Writer::new(k, call.caller, 5);
    message.push(breakpoint.address);
    message.push(kind);
    message.push(size);
    message.push(access);
    message.push(breakpoint.is_enabled.into());
    message.finish(0, 0);
    call.caller.at(k).set_state(k, State::Running);
    Outcome::Answered
}

/// Word `i` of the caller's registers and buffer, whether its message has it or not; 0 without a buffer.
fn word(k: &View, call: &Invocation, i: usize) -> u64 {
    match MessageRegister::new(i) {
        Some(register) => call.caller.at(k).context().message(register),
        None => message::buffer(k, call.caller, false)
            .map_or(0, |buffer| buffer.read(k, ipc_buffer::MESSAGE + i)),
    }
}
