//! Domains (03, section 6.3; 04, section 11; 09, section 5). The last entry of their schedule ends it.

use sandglass_abi::invocation as label;
use sandglass_abi::sched::domain::{DOMAINS, MAX_DURATION};

use super::{Call, Outcome};
use crate::error::Error;
use crate::state::{Cap, State};
use crate::time::{cores, schedule};

/// Invokes the domain capability.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    match call.label {
        label::DOMAIN_SET => set(s, call),
        label::DOMAIN_SCHEDULE_CONFIGURE => configure(s, call),
        label::DOMAIN_SCHEDULE_SET_START => set_start(s, call),
        _ => Err(Error::IllegalOperation),
    }
}

/// Set (30). A thread that waits for its refill goes on waiting, among those of its domain: 04, section 11, has it dequeued
/// and then enqueued if it is schedulable, which it is not. Whoever is enqueued may just have been
/// released, and be above the current thread.
fn set(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    call.require(1, 0)?;
    if call.words[0] >= DOMAINS {
        return Err(Error::InvalidArgument(0));
    }
    call.require(1, 1)?;
    let Some(Cap::Thread(thread)) = call.extra_cap(s, 0).flatten() else {
        return Err(Error::InvalidArgument(1));
    };
    cores::stall(s, thread);
    let waits_until = schedule::release_time(s, thread);
    if DOMAINS > 1 {
        schedule::dequeue(s, thread);
    }
    s.thread_mut(thread).domain = call.words[0] as u8;
    if s.core().thread == Some(thread) {
        schedule::force_reschedule(s);
    } else if let Some(time) = waits_until.filter(|_| DOMAINS > 1) {
        schedule::wait_until(s, thread, time);
    } else if schedule::is_schedulable(s, thread) {
        schedule::enqueue(s, thread);
        schedule::force_reschedule(s);
    }
    Ok(Outcome::Done)
}

/// ScheduleConfigure (31).
fn configure(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    call.require(3, 0)?;
    let [index, domain, duration] = [0, 1, 2].map(|i| call.words[i]);
    let last = s.domains.entries.len() as u64 - 1;
    if index >= last {
        return Err(Error::Range {
            min: 0,
            max: last - 1,
        });
    }
    if domain >= DOMAINS {
        return Err(Error::Range {
            min: 0,
            max: DOMAINS - 1,
        });
    }
    if duration > MAX_DURATION {
        return Err(Error::InvalidArgument(2));
    }
    if duration == 0 && domain != 0 {
        return Err(Error::InvalidArgument(1));
    }
    if duration == 0 && index == s.domains.start {
        return Err(Error::InvalidArgument(2));
    }
    s.domains.entries[index as usize] = (domain as u8, duration);
    Ok(Outcome::Done)
}

/// ScheduleSetStart (32). The turn is over, and with the next decision the schedule starts over: as the last entry always ends
/// it, behind the last but one (04, section 11). The time of an only domain is not counted, so that what it has left, and the
/// entry that is current, stay as they are.
fn set_start(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    call.require(1, 0)?;
    let index = call.words[0];
    let length = s.domains.entries.len() as u64;
    if index >= length {
        return Err(Error::Range {
            min: 0,
            max: length - 1,
        });
    }
    if s.domains.entries[index as usize] == (0, 0) {
        return Err(Error::InvalidArgument(0));
    }
    s.domains.start = index;
    if DOMAINS > 1 {
        s.domains.index = length - 2;
        s.domains.end = 0;
    }
    schedule::force_reschedule(s);
    Ok(Outcome::Done)
}
