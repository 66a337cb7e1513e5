//! 03, section 6.3: the domain capability, of a kernel with one domain or several (09, section 5).

use crate::prelude::*;

use super::common::{refuses_other_labels, truncated};

pub const CHECKS: &[Check] = &[
    check("03/6.3/unknown-labels", other_labels),
    check("03/6.3/set", set),
    check("03/6.3/schedule-configure", configure),
    check("03/6.3/schedule-set-start", set_start),
    check("03/6.3/set-keeps-the-thread-going", set_effect),
    check("03/6.3/by-send-and-in-a-first-phase", without_answer),
];

/// How many domains there are, and entries of their schedule.
const D: u64 = PROFILE.domains;
const L: u64 = PROFILE.schedule_entries as u64;

/// The duration of the first entry at boot, ticks (04, section 11).
const MAX_DURATION: u64 = (1 << 56) - 1;

fn domain_set(tcb: impl Capability) -> Invocation {
    Invocation::new(boot::DOMAIN, label::DOMAIN_SET, &[0], &[tcb.cptr()])
}

fn schedule(index: u64, domain: u64, duration: u64) -> Invocation {
    let words = [index, domain, duration];
    Invocation::new(boot::DOMAIN, label::DOMAIN_SCHEDULE_CONFIGURE, &words, &[])
}

fn start_at(index: u64) -> Invocation {
    Invocation::new(
        boot::DOMAIN,
        label::DOMAIN_SCHEDULE_SET_START,
        &[index],
        &[],
    )
}

fn other_labels(f: &mut Fixture) -> TestResult {
    let own = [
        label::DOMAIN_SET,
        label::DOMAIN_SCHEDULE_CONFIGURE,
        label::DOMAIN_SCHEDULE_SET_START,
    ];
    let any = Invocation::new(boot::DOMAIN, label::INVALID, &[0; 8], &[f.tcb()?.cptr(); 3]);
    refuses_other_labels(&any, &own)
}

fn set(f: &mut Fixture) -> TestResult {
    let set = domain_set(f.tcb()?);
    set.with_length(0).expect_error(TruncatedMessage, &[])?;
    set.with_length(0)
        .with_cap_count(0)
        .expect_error(TruncatedMessage, &[])?;
    set.with_cap_count(0).expect_error(TruncatedMessage, &[])?;
    for domain in [D, D + 1, 256, 1 << 32, u64::MAX] {
        let beyond = set.with_word(0, domain);
        beyond.expect_error(InvalidArgument, &[0])?;
        // Before the capability.
        beyond
            .with_cap_count(0)
            .expect_error(InvalidArgument, &[0])?;
    }
    for wrong in [f.null()?, f.endpoint()?.cptr(), boot::DOMAIN.cptr()] {
        set.with_cap(0, wrong).expect_error(InvalidArgument, &[1])?;
    }
    set.expect_ok(&[])?;
    set.with_cap(0, f.me).expect_ok(&[])
}

fn configure(_: &mut Fixture) -> TestResult {
    let whole = schedule(0, 0, MAX_DURATION);
    truncated(&whole)?;
    truncated(&schedule(1, 0, 0))?;
    // The last entry always is an end marker: of two, one can be set.
    for index in [L - 1, L, 100, 1 << 32, u64::MAX] {
        schedule(index, 0, 1000).expect_error(RangeError, &[0, L - 2])?;
        schedule(index, 0, 1 << 56).expect_error(RangeError, &[0, L - 2])?;
    }
    for domain in [D, D + 1, 256, u64::MAX] {
        for duration in [1000, 0, 1 << 56] {
            schedule(0, domain, duration).expect_error(RangeError, &[0, D - 1])?;
        }
    }
    if D > 1 {
        schedule(1, D - 1, 0).expect_error(InvalidArgument, &[1])?;
        schedule(L - 2, D - 1, 1000).expect_ok(&[])?;
        // Ends are made, too.
        schedule(L - 2, 0, 0).expect_ok(&[])?;
    }
    for duration in [1 << 56, u64::MAX] {
        schedule(0, 0, duration).expect_error(InvalidArgument, &[2])?;
    }
    // No end marker where the schedule starts.
    schedule(0, 0, 0).expect_error(InvalidArgument, &[2])?;
    for duration in [1, 1000, MAX_DURATION] {
        schedule(0, 0, duration).expect_ok(&[])?;
    }
    Ok(())
}

fn set_start(_: &mut Fixture) -> TestResult {
    truncated(&start_at(0))?;
    truncated(&start_at(2))?;
    for index in [L, L + 1, 100, 1 << 32, u64::MAX] {
        start_at(index).expect_error(RangeError, &[0, L - 1])?;
    }
    // End markers.
    for index in [1, L - 1] {
        start_at(index).expect_error(InvalidArgument, &[0])?;
    }
    start_at(0).expect_ok(&[])
}

fn set_effect(f: &mut Fixture) -> TestResult {
    let trace = Trace::leak();
    let tcb = f.helper(100, move || trace.note(1))?;
    domain_set(tcb).expect_ok(&[])?;
    domain_set(f.me).expect_ok(&[])?;
    start_at(0).expect_ok(&[])?;
    f.settle()?;
    ensure_eq!(trace.len(), 1);
    Ok(())
}

/// There is nothing to see but that nothing is answered.
fn without_answer(f: &mut Fixture) -> TestResult {
    let all = [
        domain_set(f.tcb()?),
        domain_set(f.null::<CPtr>()?),
        schedule(0, 0, MAX_DURATION),
        schedule(L - 1, 1, 1),
        start_at(0),
        start_at(L - 1),
    ];
    for invocation in all {
        for call in SENDING {
            invocation.send(call)?;
        }
        for call in FIRST_PHASE {
            invocation.send_first(f, call)?;
        }
    }
    Ok(())
}
