//! 03, section 6.1: SchedControl_ConfigureFlags.

use crate::prelude::*;

use super::common::{refuses_other_labels, truncated};

pub const CHECKS: &[Check] = &[
    check("03/6.1/1-other-labels", other_labels),
    check("03/6.1/2-and-3-truncated", short_messages),
    check("03/6.1/4-to-7-budget-and-period-out-of-range", out_of_range),
    check("03/6.1/8-budget-above-the-period", above_period),
    check("03/6.1/9-no-scheduling-context", no_context),
    check("03/6.1/10-extra-refills", extra_refills),
    check("03/6.1/order-of-the-checks", order),
    check("03/6.1/flags-beyond-the-first-are-ignored", flags),
    check("03/6.1/a-refusal-changes-nothing", refusal),
    check("03/6.1/lets-the-thread-run", effect),
    check("03/6.1/by-send", by_send),
    check("03/6.1/not-in-a-first-phase", not_in_first_phase),
];

/// Words of the message.
mod word {
    pub const BUDGET: usize = 0;
    pub const PERIOD: usize = 1;
    pub const EXTRA_REFILLS: usize = 2;
    pub const BADGE: usize = 3;
    pub const FLAGS: usize = 4;
}

const MIN_US: u64 = 20;

/// The longest period, µs (04, section 1).
fn max_us(f: &Fixture) -> u64 {
    conformance_kit::arch::max_period_us(f)
}

/// 100 µs of 1 ms, for a context of this size.
fn scene(f: &mut Fixture, size_bits: u32) -> Result<(SchedContext, Invocation), Failure> {
    let context = f.unconfigured_context(size_bits)?;
    let configure = Invocation::new(
        f.control,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        &[100, 1000, 0, 0, 0],
        &[context.cptr()],
    );
    Ok((context, configure))
}

fn other_labels(f: &mut Fixture) -> TestResult {
    let (_, configure) = scene(f, 7)?;
    refuses_other_labels(&configure, &[label::SCHED_CONTROL_CONFIGURE_FLAGS])
}

fn short_messages(f: &mut Fixture) -> TestResult {
    let (_, configure) = scene(f, 7)?;
    truncated(&configure)?;
    truncated(&configure.with_word(word::BUDGET, 0))?;
    configure.expect_ok(&[])
}

fn out_of_range(f: &mut Fixture) -> TestResult {
    let (_, configure) = scene(f, 7)?;
    let max = max_us(f);
    for which in [word::BUDGET, word::PERIOD] {
        for value in [0, 1, MIN_US - 1, max + 1, 1 << 63, u64::MAX] {
            configure
                .with_word(which, value)
                .expect_error(RangeError, &[MIN_US, max])?;
        }
    }
    for (budget, period) in [(MIN_US, MIN_US), (MIN_US, max), (max, max), (max - 1, max)] {
        configure
            .with_word(word::BUDGET, budget)
            .with_word(word::PERIOD, period)
            .expect_ok(&[])?;
    }
    Ok(())
}

fn above_period(f: &mut Fixture) -> TestResult {
    let (_, configure) = scene(f, 7)?;
    for (budget, period) in [(1001, 1000), (21, 20), (max_us(f), max_us(f) - 1)] {
        configure
            .with_word(word::BUDGET, budget)
            .with_word(word::PERIOD, period)
            .expect_error(RangeError, &[MIN_US, period])?;
    }
    configure.with_word(word::BUDGET, 1000).expect_ok(&[])
}

fn no_context(f: &mut Fixture) -> TestResult {
    let (_, configure) = scene(f, 7)?;
    let wrong = [
        f.null()?,
        f.tcb()?.cptr(),
        f.notification()?.cptr(),
        f.control.cptr(),
    ];
    for wrong in wrong {
        let configure = configure.with_cap(0, wrong);
        configure.expect_error(InvalidCapability, &[1])?;
        configure
            .with_word(word::EXTRA_REFILLS, u64::MAX)
            .expect_error(InvalidCapability, &[1])?;
    }
    Ok(())
}

fn extra_refills(f: &mut Fixture) -> TestResult {
    for (bits, most) in [(7, 0), (8, 8), (9, 24), (10, 56), (12, 248)] {
        let (_, configure) = scene(f, bits)?;
        for above in [most + 1, 1 << 32, u64::MAX - 1, u64::MAX] {
            configure
                .with_word(word::EXTRA_REFILLS, above)
                .expect_error(RangeError, &[0, most])?;
        }
        configure
            .with_word(word::EXTRA_REFILLS, most)
            .expect_ok(&[])?;
    }
    Ok(())
}

fn order(f: &mut Fixture) -> TestResult {
    let (_, configure) = scene(f, 7)?;
    let max = max_us(f);
    let all = configure
        .with_cap(0, f.me)
        .with_word(word::EXTRA_REFILLS, 1);
    // The budget is compared with the period when both are in range.
    for (budget, period, range) in [
        (max + 1, 100, [MIN_US, max]),
        (100, max + 1, [MIN_US, max]),
        (0, 100, [MIN_US, max]),
        (100, 19, [MIN_US, max]),
        (100, 99, [MIN_US, 99]),
    ] {
        all.with_word(word::BUDGET, budget)
            .with_word(word::PERIOD, period)
            .expect_error(RangeError, &range)?;
    }
    all.expect_error(InvalidCapability, &[1])
}

fn flags(f: &mut Fixture) -> TestResult {
    let (_, configure) = scene(f, 7)?;
    for flags in [0, 1, 2, 3, u64::MAX - 1, u64::MAX] {
        configure.with_word(word::FLAGS, flags).expect_ok(&[])?;
    }
    Ok(())
}

/// A refused change of badge and budget shows neither in the timeout that follows.
fn refusal(f: &mut Fixture) -> TestResult {
    let (context, configure) = scene(f, 7)?;
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    configure.with_word(word::BADGE, 77).expect_ok(&[])?;
    let params = ThreadParams {
        sched_context: Some(context),
        timeout_handler: Some(endpoint),
        ..f.passive(100)
    };
    f.spawn(params, || spin())?;
    configure
        .with_word(word::BADGE, 88)
        .with_word(word::BUDGET, 500)
        .with_word(word::EXTRA_REFILLS, 1)
        .expect_error(RangeError, &[0, 0])?;
    let timeout = endpoint.recv(reply).message;
    ensure_eq!((timeout.label(), timeout.word(0)), (fault::TIMEOUT, 77));
    let consumed = timeout.word(1);
    ensure!((80..200).contains(&consumed), "it ran for {consumed} µs");
    Ok(())
}

/// Whether a thread on a new context runs after `configure` was given the invocation.
fn runs_after(
    f: &mut Fixture,
    configure: impl FnOnce(&mut Fixture, &Invocation) -> TestResult,
) -> Result<bool, Failure> {
    let (context, invocation) = scene(f, 7)?;
    let trace = Trace::leak();
    let params = ThreadParams {
        sched_context: Some(context),
        ..f.passive(100)
    };
    f.spawn(params, move || trace.note(1))?;
    f.settle()?;
    ensure_eq!(trace.len(), 0);
    configure(f, &invocation)?;
    f.settle()?;
    Ok(trace.len() == 1)
}

fn effect(f: &mut Fixture) -> TestResult {
    ensure!(runs_after(f, |_, configure| configure.expect_ok(&[]))?);
    Ok(())
}

fn by_send(f: &mut Fixture) -> TestResult {
    for call in SENDING {
        ensure!(runs_after(f, |_, configure| configure.send(call))?);
        let refused = |_: &mut Fixture, configure: &Invocation| {
            configure.with_word(word::BUDGET, 0).send(call)
        };
        ensure!(!runs_after(f, refused)?);
    }
    Ok(())
}

fn not_in_first_phase(f: &mut Fixture) -> TestResult {
    for call in FIRST_PHASE {
        ensure!(!runs_after(f, |f, configure| configure.send_first(f, call))?);
    }
    Ok(())
}
