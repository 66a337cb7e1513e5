//! The domain capability (03, section 6.3; 04, section 11).

use sandglass_abi::invocation as label;
use sandglass_abi::sched::domain::MAX_DURATION;

use super::{Error, Invocation, Outcome, Stop};
use crate::ipc::stall;
use crate::mem::Ref;
use crate::object::domain::{Entry, DOMAINS, LENGTH};
use crate::object::Tcb;
use crate::time::{schedule, Preempted, Turn};
use crate::{Kernel, View};

/// A checked invocation of the domain capability.
enum Operation {
    Set(Ref<Tcb>, u8),
    /// This entry is to be so.
    Configure(u64, Entry),
    SetStart(u64),
}

/// Invokes the domain capability.
pub fn invoke(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Stop> {
    let operation = decode(k, call)?;
    commit(k, turn, operation)?;
    Ok(Outcome::Done)
}

fn decode(k: &View, call: &Invocation) -> Result<Operation, Error> {
    match call.label() {
        label::DOMAIN_SET => {
            call.need(1)?;
            let domain = call.word(k, 0);
            Error::InvalidArgument(0).when(domain >= DOMAINS)?;
            let thread = call.extra_cap(k, 0)?.word().get();
            let thread = thread.ok_or(Error::InvalidArgument(1))?;
            Ok(Operation::Set(thread, domain as u8))
        }
        label::DOMAIN_SCHEDULE_CONFIGURE => decode_configure(k, call),
        label::DOMAIN_SCHEDULE_SET_START => {
            call.need(1)?;
            let index = call.word(k, 0);
            Error::check_range(index, 0, LENGTH as u64 - 1)?;
            k.domains.entry(index).ok_or(Error::InvalidArgument(0))?;
            Ok(Operation::SetStart(index))
        }
        _ => Err(Error::IllegalOperation),
    }
}

fn decode_configure(k: &View, call: &Invocation) -> Result<Operation, Error> {
    call.need(3)?;
    let (index, domain, duration) = (call.word(k, 0), call.word(k, 1), call.word(k, 2));
    Error::check_range(index, 0, LENGTH as u64 - 2)?;
    Error::check_range(domain, 0, DOMAINS - 1)?;
    Error::InvalidArgument(2).when(duration > MAX_DURATION)?;
    Error::InvalidArgument(1).when(duration == 0 && domain != 0)?;
    Error::InvalidArgument(2).when(duration == 0 && index == k.domains.start())?;
    let domain = domain as u8;
    Ok(Operation::Configure(index, Entry { domain, duration }))
}

fn commit(k: &Kernel, turn: &Turn, operation: Operation) -> Result<(), Preempted> {
    match operation {
        Operation::Set(thread, domain) => {
            stall::quiesce(k, turn, thread)?;
            trace!(k, domain(Some(thread), domain));
            thread.at(k).set_domain(k, domain);
            if k.core().thread() == Some(thread) {
                turn.reschedule(k);
            } else if schedule::is_schedulable(k, thread) {
                // One that still waits for its refill stays where it is, as in any domain. One
                // whose time has just come may be above the current one.
                schedule::unqueue(k, thread);
                schedule::enqueue(k, thread);
                turn.reschedule(k);
            }
        }
        Operation::Configure(index, entry) => k.domains.configure(k, index, entry),
        Operation::SetStart(index) => {
            k.domains.set_start(k, index);
            turn.reschedule(k);
        }
    }
    Ok(())
}
