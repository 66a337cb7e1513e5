//! The domain capability (03, section 6.3; 04, section 11).

use sandglass_abi::invocation as label;
use sandglass_abi::sched::domain::MAX_DURATION;

use super::{Error, Invocation, Outcome};
use crate::ipc::stall;
use crate::mem::Ref;
use crate::object::domain::{Entry, DOMAINS, LENGTH};
use crate::object::Tcb;
use crate::time::{schedule, Turn};
use crate::{Kernel, View};

/// A checked invocation of the domain capability.
#[derive(Clone, Copy)]
enum Operation {
    Set { thread: Ref<Tcb>, domain: u8 },
    Configure { index: u64, entry: Entry },
    SetStart { index: u64 },
}

/// Invokes the domain capability.
pub fn invoke(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Error> {
    let operation = decode(k, call)?;
    Ok(commit(k, turn, operation))
}

fn decode(k: &View, call: &Invocation) -> Result<Operation, Error> {
    match call.label() {
        label::DOMAIN_SET => {
            call.need(1)?;
            let domain = call.word(k, 0);
            if domain >= DOMAINS {
                return Err(Error::InvalidArgument(0));
            }
            let thread = call
                .extra_cap(k, 0)?
                .word()
                .get()
                .ok_or(Error::InvalidArgument(1))?;
            Ok(Operation::Set {
                thread,
                domain: domain as u8,
            })
        }
        label::DOMAIN_SCHEDULE_CONFIGURE => decode_configure(k, call),
        label::DOMAIN_SCHEDULE_SET_START => {
            call.need(1)?;
            let index = call.word(k, 0);
            Error::check_range(index, 0, LENGTH as u64 - 1)?;
            k.domains.entry(index).ok_or(Error::InvalidArgument(0))?;
            Ok(Operation::SetStart { index })
        }
        _ => Err(Error::IllegalOperation),
    }
}

fn decode_configure(k: &View, call: &Invocation) -> Result<Operation, Error> {
    call.need(3)?;
    let (index, domain, duration) = (call.word(k, 0), call.word(k, 1), call.word(k, 2));
    Error::check_range(index, 0, LENGTH as u64 - 2)?;
    Error::check_range(domain, 0, DOMAINS - 1)?;
    if duration > MAX_DURATION {
        return Err(Error::InvalidArgument(2));
    }
    if duration == 0 && domain != 0 {
        return Err(Error::InvalidArgument(1));
    }
    if duration == 0 && index == k.domains.start() {
        return Err(Error::InvalidArgument(2));
    }
    Ok(Operation::Configure {
        index,
        entry: Entry {
            domain: domain as u8,
            duration,
        },
    })
}

fn commit(k: &Kernel, turn: &Turn, operation: Operation) -> Outcome {
    match operation {
        Operation::Set { thread, domain } => {
            if stall::quiesce(k, turn, thread).is_err() {
                return Outcome::Preempted;
            }
            trace!(k, domain(Some(thread), domain));
            thread.at(k).set_domain(k, domain);
            if k.core().thread() == Some(thread) {
                turn.reschedule(k);
            } else if schedule::is_schedulable(k, thread) {
                // One that still waits for its refill stays where it is, as in any domain. One
                // whose time has just come may be above the current one.
                schedule::enqueue(k, thread);
                turn.reschedule(k);
            }
        }
        Operation::Configure { index, entry } => k.domains.configure(k, index, entry),
        Operation::SetStart { index } => {
            k.domains.set_start(k, index);
            turn.reschedule(k);
        }
    }
    Outcome::Done
}
