//! Scheduling and domains (ABI 03, section 6).

use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation::*;
use sandglass_abi::sched::max_extra_refills;

use crate::case::{argument, call, capability, range, Call, Case, ILLEGAL};
use crate::scene::Scene;

/// Least budget, in microseconds (ABI 04, section 1).
const LEAST: u64 = 20;
/// Longest time of a domain, in ticks.
const LONGEST_DURATION: u64 = (1 << 56) - 1;

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    configure(s, &mut cases);
    contexts(s, &mut cases);
    domains(s, &mut cases);
    cases
}

fn configure(s: &Scene, cases: &mut Vec<Case>) {
    let control = s.sched_control;
    // The longest period, in microseconds (ABI 04, section 1).
    let longest = u64::MAX / s.ticks_per_unit / 8;
    let words = [100, 1000, 0, 7, 0];
    let valid = call(SCHED_CONTROL_CONFIGURE_FLAGS, control, &words, &[s.context]);
    cases.extend(valid.truncated());
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for long in [longest + 1, u64::MAX] {
        let times = range(LEAST, longest);
        case(
            valid.clone().word(0, long),
            "budget too long",
            times.clone(),
        );
        case(valid.clone().word(1, long), "period too long", times);
    }
    for short in [0, LEAST - 1] {
        let times = range(LEAST, longest);
        case(
            valid.clone().word(0, short),
            "budget too short",
            times.clone(),
        );
        case(valid.clone().word(1, short), "period too short", times);
    }
    let longer = valid.clone().word(0, 1001);
    case(longer, "budget longer than the period", range(LEAST, 1000));
    for other in [s.empty, s.endpoint, s.thread] {
        case(valid.clone().cap(0, other), "no context", capability(1));
    }
    let most = max_extra_refills(8);
    for extra in [most + 1, u64::MAX] {
        case(valid.clone().word(2, extra), "refills", range(0, most));
    }
}

fn contexts(s: &Scene, cases: &mut Vec<Case>) {
    let own = s.caller.context;
    let bind = call(SCHED_CONTEXT_BIND, s.context, &[], &[s.thread]);
    cases.extend(bind.truncated());
    let unbind = call(
        SCHED_CONTEXT_UNBIND_OBJECT,
        s.served.context,
        &[],
        &[s.served.tcb],
    );
    cases.extend(unbind.truncated());
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    let has_one = bind.clone().of(s.served.context);
    case(has_one, "thread: the context has one", ILLEGAL);
    let has_one = bind.clone().cap(0, s.served.tcb);
    case(has_one, "thread: it has a context", ILLEGAL);
    let blocked = bind.clone().cap(0, s.blocked);
    case(blocked, "thread: blocked, and not released", ILLEGAL);
    let has_one = bind.clone().of(s.spending).cap(0, s.notification);
    case(has_one, "notification: the context has one", ILLEGAL);
    let has_one = bind.clone().cap(0, s.funded_notification);
    case(has_one, "notification: it has a context", ILLEGAL);
    for other in [s.empty, s.endpoint, s.context] {
        let bind = bind.clone().cap(0, other);
        case(bind, "another capability", capability(1));
        let unbind = unbind.clone().cap(0, other);
        case(unbind, "another capability", capability(1));
    }
    let itself = call(SCHED_CONTEXT_UNBIND, own, &[], &[]);
    case(itself, "of the caller", ILLEGAL);
    for (context, thread) in [(s.context, s.thread), (s.served.context, s.thread)] {
        let other = unbind.clone().of(context).cap(0, thread);
        case(other, "thread: not bound", ILLEGAL);
    }
    let itself = unbind.clone().of(own).cap(0, s.caller.tcb);
    case(itself, "thread: the caller", ILLEGAL);
    for (context, notification) in [
        (s.context, s.notification),
        (s.spending, s.notification),
        (s.context, s.funded_notification),
    ] {
        let other = unbind.clone().of(context).cap(0, notification);
        case(other, "notification: not bound", ILLEGAL);
    }
    for (context, check) in [
        (s.context, "no thread"),
        (own, "of the caller"),
        (s.high.context, "above the caller"),
    ] {
        case(
            call(SCHED_CONTEXT_YIELD_TO, context, &[], &[]),
            check,
            ILLEGAL,
        );
    }
}

/// One domain, with a schedule of one entry and its end.
fn domains(s: &Scene, cases: &mut Vec<Case>) {
    let set = call(DOMAIN_SET, slot::DOMAIN, &[0], &[s.thread]);
    let configure = call(DOMAIN_SCHEDULE_CONFIGURE, slot::DOMAIN, &[0, 0, 1], &[]);
    let start = call(DOMAIN_SCHEDULE_SET_START, slot::DOMAIN, &[0], &[]);
    for valid in [&set, &configure, &start] {
        cases.extend(valid.truncated());
    }
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for domain in [1, u64::MAX] {
        case(set.clone().word(0, domain), "domain", argument(0));
        case(configure.clone().word(1, domain), "domain", range(0, 0));
    }
    for other in [s.empty, s.endpoint, s.context] {
        case(set.clone().cap(0, other), "no thread", argument(1));
    }
    for index in [1, 2, u64::MAX] {
        case(configure.clone().word(0, index), "index", range(0, 0));
    }
    for duration in [LONGEST_DURATION + 1, u64::MAX] {
        case(configure.clone().word(2, duration), "duration", argument(2));
    }
    case(configure.word(2, 0), "end at the start", argument(2));
    for index in [2, u64::MAX] {
        case(start.clone().word(0, index), "index", range(0, 1));
    }
    case(start.word(0, 1), "end", argument(0));
}
