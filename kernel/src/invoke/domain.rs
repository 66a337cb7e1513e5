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

/// Invokes the domain capability: what is called for is checked, and then done.
pub fn invoke(k: &Kernel, turn: &Turn, call: &Invocation) -> Result<Outcome, Stop> {
    match call.label() {
        label::DOMAIN_SET => {
            call.need(1)?;
            let domain = call.word(k, 0);
            Error::InvalidArgument(0).when(domain >= DOMAINS)?;
            let thread = call.extra_cap(k, 0)?.word().get();
            let thread = thread.ok_or(Error::InvalidArgument(1))?;
            set(k, turn, thread, domain as u8)?;
        }
        label::DOMAIN_SCHEDULE_CONFIGURE => {
            let (index, entry) = decode_configure(k, call)?;
            k.domains.configure(k, index, entry);
        }
        label::DOMAIN_SCHEDULE_SET_START => {
            call.need(1)?;
            let index = call.word(k, 0);
            Error::check_range(index, 0, LENGTH as u64 - 1)?;
            k.domains.entry(index).ok_or(Error::InvalidArgument(0))?;
            k.domains.set_start(k, index);
            turn.reschedule(k);
        }
        _ => return Err(Error::IllegalOperation.into()),
    }
    Ok(Outcome::Done)
}

/// Which entry is to be how.
fn decode_configure(k: &View, call: &Invocation) -> Result<(u64, Entry), Error> {
    call.need(3)?;
    let (index, domain, duration) = (call.word(k, 0), call.word(k, 1), call.word(k, 2));
    Error::check_range(index, 0, LENGTH as u64 - 2)?;
    Error::check_range(domain, 0, DOMAINS - 1)?;
    Error::InvalidArgument(2).when(duration > MAX_DURATION)?;
    Error::InvalidArgument(1).when(duration == 0 && domain != 0)?;
    Error::InvalidArgument(2).when(duration == 0 && index == k.domains.start())?;
    let domain = domain as u8;
    Ok((index, Entry { domain, duration }))
}

fn set(k: &Kernel, turn: &Turn, thread: Ref<Tcb>, domain: u8) -> Result<(), Preempted> {
    stall::quiesce(k, turn, thread)?;
    trace!(k, domain(Some(thread), domain));
    let time = thread.at(k).links().key().time();
    let waits = DOMAINS > 1 && schedule::waits_for_release(k, thread);
    if DOMAINS > 1 {
        schedule::unqueue(k, thread);
    }
    thread.at(k).set_domain(k, domain);
    if k.core().thread() == Some(thread) {
        turn.reschedule(k);
    } else if waits {
        schedule::wait_for_release(k, thread, time);
    } else if schedule::is_schedulable(k, thread) {
        // One that still waits for its refill goes on waiting. One whose time has just come may be above the
        // current one.
        schedule::unqueue(k, thread);
        schedule::enqueue(k, thread);
        turn.reschedule(k);
    }
    Ok(())
}
