//! 04, section 4: the refill algorithms, seen in when a thread runs that would always like to.

use conformance_kit::arch::TIMER_IS_EARLY;
use sandglass::testing::run_log::busiest_window;

use super::kit::{near, run_log, runner, Clock, Runner};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "04/4/new-gives-the-budget-now-and-once-per-period",
        once_per_period,
    ),
    check("04/4/a-part-used-early-comes-back-early", parts_come_back),
    check(
        "04/4/sporadic-parts-used-without-unblocking-join",
        sporadic_parts_join,
    ),
    check("04/4/a-full-queue-merges-into-its-tail", full_queue),
    check(
        "04/4/a-full-queue-of-many-refills-merges-into-its-tail",
        full_queue_of_many,
    ),
    check("04/4/extra-refills-keep-every-fragment", every_fragment),
    check(
        "04/4/a-head-below-the-minimum-joins-and-delays-the-next",
        small_head,
    ),
    check("04/4/a-head-above-the-minimum-stays", small_rest_stays),
    check("04/4/unblocking-merges-what-overlaps", unblock_merges),
    check(
        "04/4/unblocking-keeps-apart-what-does-not-overlap",
        unblock_keeps_apart,
    ),
    check("04/4/unblocking-restarts-the-period", unblock_restarts),
    check(
        "04/4/no-window-of-a-period-exceeds-the-budget",
        no_window_exceeds,
    ),
    check(
        "04/4/a-head-used-up-before-others-comes-back-behind-them",
        used_up_heads_return,
    ),
    check("04/2.3/the-amounts-add-up-to-the-budget", amounts_add_up),
    check("04/2.1/every-size-takes-its-extra-refills", sizes),
    check("04/2.1/fifty-refills-keep-fifty-fragments", many_refills),
];

/// A thread of priority 100 with these parameters, running from the clock's origin, now.
fn probe(f: &mut Fixture, params: SchedParams) -> Result<(Clock, Runner), Failure> {
    let clock = Clock::new(f)?;
    let probe = runner(f, clock, 100, params)?;
    clock.start();
    probe.tcb.resume()?;
    Ok((clock, probe))
}

/// As [`probe`]; after `until` µs the thread waits for the signal.
fn blocking_probe(
    f: &mut Fixture,
    params: SchedParams,
    until: u64,
) -> Result<(Clock, &'static sandglass::testing::RunLog, Notification), Failure> {
    let (clock, gate, log) = (Clock::new(f)?, f.notification()?, run_log());
    let thread = f.active_on(100, params)?;
    let tcb = f.prepare(thread, move || {
        clock.log_until(log, until);
        gate.wait();
        clock.log_forever(log);
    })?;
    clock.start();
    tcb.resume()?;
    Ok((clock, log, gate))
}

fn once_per_period(f: &mut Fixture) -> TestResult {
    for params in [
        SchedParams::new(1_000, 5_000),
        SchedParams::new(1_000, 5_000).sporadic(),
        SchedParams::new(1_000, 5_000).extra_refills(8),
    ] {
        let (clock, probe) = probe(f, params)?;
        clock.sleep_until(12_000)?;
        clock.ensure_runs(probe.log, &[(0, 1_000), (5_000, 6_000), (10_000, 11_000)])?;
        probe.tcb.suspend()?;
    }
    Ok(())
}

/// Where the timer fires at the end of a budget and not before (04, section 1), a little of the next refill is used when one
/// ends, and comes back by itself: 300 µs for 5000 end with a little of the 700 for 6300, which finds for 11300 a queue full of
/// the 700, a little for 10000, and the 300 for 10000. These are the tail, which then starts at 11300 - 300.
fn parts_come_back(f: &mut Fixture) -> TestResult {
    let (clock, probe) = probe(f, SchedParams::new(1_000, 5_000).extra_refills(1))?;
    clock.hold(300, 1_300)?;
    clock.sleep_until(13_000)?;
    let mut expected = vec![(0, 300), (1_300, 2_000), (5_000, 5_300), (6_300, 7_000)];
    if TIMER_IS_EARLY {
        expected.extend([(10_000, 10_300), (11_300, 12_000)]);
    } else {
        expected.push((11_000, 12_000));
    }
    clock.ensure_runs(probe.log, &expected)
}

/// Preemption is no unblocking: the second part is charged as if it had followed the first.
fn sporadic_parts_join(f: &mut Fixture) -> TestResult {
    let (clock, probe) = probe(
        f,
        SchedParams::new(1_000, 5_000).extra_refills(1).sporadic(),
    )?;
    clock.hold(300, 1_300)?;
    clock.sleep_until(12_000)?;
    let expected = [(0, 300), (1_300, 2_000), (5_000, 6_000), (10_000, 11_000)];
    clock.ensure_runs(probe.log, &expected)
}

/// With two refills: the timer, 1 µs early, leaves 1 µs in the head, so 699 µs for 6300 find the
/// queue full of that and of 300 µs for 5000: the tail then starts at 6300 - 300.
///
/// A timer that is not early leaves nothing: the queue has room for 700 µs for 6300, and is full when a little of those for
/// 5000 is used, for 10000. The tail then starts at 10000 - 700.
fn full_queue(f: &mut Fixture) -> TestResult {
    let (clock, probe) = probe(f, SchedParams::new(1_000, 5_000))?;
    clock.hold(300, 1_300)?;
    clock.sleep_until(13_000)?;
    let mut expected = vec![(0, 300), (1_300, 2_000)];
    if TIMER_IS_EARLY {
        expected.extend([(6_000, 7_000), (11_000, 12_000)]);
    } else {
        expected.extend([(5_000, 5_300), (9_300, 10_000)]);
    }
    clock.ensure_runs(probe.log, &expected)
}

/// Runs 100 of every 300 µs, six times: a whole budget of 600 µs.
fn six_fragments(clock: Clock) -> TestResult {
    for i in 0..5 {
        clock.hold(300 * i + 100, 300 * i + 300)?;
    }
    Ok(())
}

/// Five refills. The fifth part of 100 µs, for 7200, merges with the fourth, for 6900: 200 from
/// 7100. The sixth, 99 for 7500, merges too: 299 from 7300.
///
/// If the timer is not early, there is room for the sixth. A little for 12000 merges with it: from 12000 - 100. From then on
/// each part ends with a little of the next, which merges with what was put back just before, to end when it is due.
fn full_queue_of_many(f: &mut Fixture) -> TestResult {
    let (clock, probe) = probe(f, SchedParams::new(600, 6_000).extra_refills(3))?;
    six_fragments(clock)?;
    clock.sleep_until(14_000)?;
    let mut expected: Vec<_> = (0..6).map(|i| (300 * i, 300 * i + 100)).collect();
    if !TIMER_IS_EARLY {
        expected.extend((0..3).map(|i| (6_000 + 300 * i, 6_000 + 300 * i + 100)));
        expected.push((7_100, 7_300));
        expected.extend((0..3).map(|i| (11_900 + 300 * i, 12_000 + 300 * i)));
        expected.push((13_000, 13_100));
        return clock.ensure_runs(probe.log, &expected);
    }
    for period in [6_000, 12_000] {
        expected.extend((0..3).map(|i| (period + 300 * i, period + 300 * i + 100)));
        expected.push((period + 1_300, period + 1_600));
    }
    clock.ensure_runs(probe.log, &expected)
}

/// Ten refills have room for six fragments, and for three of the little that is used of the next when one ends, if the timer
/// is not early: of the second period, the fourth and the fifth then merge with the next one's.
fn every_fragment(f: &mut Fixture) -> TestResult {
    let (clock, probe) = probe(f, SchedParams::new(600, 6_000).extra_refills(8))?;
    six_fragments(clock)?;
    clock.sleep_until(14_000)?;
    let fragments = |period: u64| (0..6).map(move |i| (period + 300 * i, period + 300 * i + 100));
    let mut expected: Vec<_> = [0, 6_000, 12_000].into_iter().flat_map(fragments).collect();
    if !TIMER_IS_EARLY {
        expected.truncate(15);
        expected.extend([(13_100, 13_200), (13_400, 13_600)]);
    }
    clock.ensure_runs(probe.log, &expected)
}

/// 10 µs are left: they join the rest, which is usable 10 µs earlier.
fn small_head(f: &mut Fixture) -> TestResult {
    let (clock, probe) = probe(f, SchedParams::new(1_000, 5_000))?;
    // The processor is taken 4 µs early.
    clock.hold(990, 1_500)?;
    clock.sleep_until(7_000)?;
    clock.ensure_runs(probe.log, &[(0, 990), (4_990, 5_990)])
}

/// 60 µs are left: they are usable at once, and come back by themselves.
fn small_rest_stays(f: &mut Fixture) -> TestResult {
    let (clock, probe) = probe(f, SchedParams::new(1_000, 5_000).extra_refills(1))?;
    clock.hold(940, 1_500)?;
    clock.sleep_until(8_000)?;
    let expected = [(0, 940), (1_500, 1_560), (5_000, 5_940), (6_500, 6_560)];
    clock.ensure_runs(probe.log, &expected)
}

/// 700 µs are left at 4500, and the 300 for 5000 would follow before they are used up.
fn unblock_merges(f: &mut Fixture) -> TestResult {
    for params in [
        SchedParams::new(1_000, 5_000).extra_refills(1),
        SchedParams::new(1_000, 5_000).extra_refills(1).sporadic(),
    ] {
        let (clock, log, gate) = blocking_probe(f, params, 300)?;
        clock.sleep_until(4_500)?;
        gate.signal();
        clock.sleep_until(11_000)?;
        clock.ensure_runs(log, &[(0, 300), (4_500, 5_500), (9_500, 10_500)])?;
    }
    Ok(())
}

/// 700 µs are left at 4000, and used up before 5000. A timer that is not early lets the 700 end with a little of the 300, for
/// 10000, and these with a little of the 700, for 14000. A constant-bandwidth context is released a little late and starts the
/// 300 anew then: for 10000 they do not merge with that little, and are the tail of a full queue, which then starts at 14000 -
/// 300. A sporadic one does not start them anew.
fn unblock_keeps_apart(f: &mut Fixture) -> TestResult {
    let constant = SchedParams::new(1_000, 5_000).extra_refills(1);
    let sporadic = constant.sporadic();
    for params in [constant, sporadic] {
        let (clock, log, gate) = blocking_probe(f, params, 300)?;
        clock.sleep_until(4_000)?;
        gate.signal();
        clock.sleep_until(11_000)?;
        let mut expected = vec![(0, 300), (4_000, 4_700), (5_000, 5_300), (9_000, 9_700)];
        if TIMER_IS_EARLY || params == sporadic {
            expected.push((10_000, 10_300));
        }
        clock.ensure_runs(log, &expected)?;
        ensure_eq!(clock.runs(log).len(), expected.len());
    }
    Ok(())
}

/// Budget that lay idle for long is still only one budget, and its period starts when it is used.
fn unblock_restarts(f: &mut Fixture) -> TestResult {
    for params in [
        SchedParams::new(1_000, 3_000),
        SchedParams::new(1_000, 3_000).sporadic(),
    ] {
        let (clock, log, gate) = blocking_probe(f, params, 300)?;
        clock.sleep_until(10_500)?;
        gate.signal();
        clock.sleep_until(15_000)?;
        clock.ensure_runs(log, &[(0, 300), (10_500, 11_500), (13_500, 14_500)])?;
    }
    Ok(())
}

/// Whatever the preemptions of a constant-bandwidth context; they are arbitrary here, but always
/// the same. (A sporadic one does not restart its head after a preemption, so it may.)
fn no_window_exceeds(f: &mut Fixture) -> TestResult {
    const BUDGET_US: u64 = 700;
    const PERIOD_US: u64 = 2_500;
    for extra in [0, 1, 6] {
        let params = SchedParams::new(BUDGET_US, PERIOD_US).extra_refills(extra);
        let (clock, probe) = probe(f, params)?;
        let (mut state, mut at) = (0x2545_f491_4f6c_dd1d_u64, 0);
        while at < 15_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let from = at + 150 + (state >> 33) % 400;
            let to = from + 20 + (state >> 48) % 300;
            clock.hold(from, to)?;
            at = to;
        }
        let busiest = busiest_window(&probe.log.intervals(), f.ticks(PERIOD_US));
        let limit = f.ticks(BUDGET_US + 2);
        ensure!(
            busiest <= limit,
            "{params:?}: {busiest} ticks in one period, more than {limit}"
        );
        probe.tcb.suspend()?;
    }
    Ok(())
}

/// Nothing is lost: whatever the fragments, a long time has its share.
/// Over five periods, where timers are early: otherwise a little of the next refill is used whenever one ends, and may move what
/// comes back behind what it merges with. And all at once, when nothing was used for longer than a period.
fn amounts_add_up(f: &mut Fixture) -> TestResult {
    for extra in [0, 2, 8] {
        let (clock, probe) = probe(f, SchedParams::new(600, 3_000).extra_refills(extra))?;
        for i in 0..8 {
            clock.hold(1_500 * i + 200, 1_500 * i + 330)?;
        }
        // From here on alone. Five periods, whatever the phase.
        clock.sleep_until(13_000)?;
        probe.context.consumed_us()?;
        clock.sleep_until(28_000)?;
        let used = probe.context.consumed_us()?;
        ensure!(
            used <= 3_030 && (used >= 2_970 || !TIMER_IS_EARLY),
            "with {extra} extra refills: {used} µs in five periods of 600"
        );
        clock.hold(28_200, 35_000)?;
        clock.sleep_until(37_000)?;
        let runs = clock.runs(probe.log);
        let whole = |run: &(u64, u64)| near(run.0, 35_000) && near(run.1, 35_600);
        ensure!(
            runs.iter().any(whole),
            "with {extra} extra refills: {runs:?}"
        );
        probe.tcb.suspend()?;
    }
    Ok(())
}

fn sizes(f: &mut Fixture) -> TestResult {
    for (bits, most) in [(7, 0), (8, 8), (9, 24), (10, 56), (12, 248)] {
        let context = f.unconfigured_context(bits)?;
        let configure = Invocation::new(
            f.control,
            label::SCHED_CONTROL_CONFIGURE_FLAGS,
            &[100, 1_000, most, 0, 0],
            &[context.cptr()],
        );
        configure.expect_ok(&[])?;
        configure
            .with_word(2, most + 1)
            .expect_error(RangeError, &[0, most])?;
    }
    Ok(())
}

/// 100 of every 300 µs, 50 times, come back as 50 fragments, and what was left then as another.
fn many_refills(f: &mut Fixture) -> TestResult {
    const PARTS: u64 = 50;
    const PERIOD_US: u64 = 20_000;
    let params = SchedParams::new(100 * PARTS + 500, PERIOD_US).extra_refills(PARTS + 1);
    let (clock, probe) = probe(f, params)?;
    for i in 0..PARTS {
        clock.hold(300 * i + 100, 300 * i + 300)?;
    }
    clock.sleep_until(PERIOD_US + 300 * PARTS)?;
    let parts = |period: u64| (0..PARTS).map(move |i| (period + 300 * i, period + 300 * i + 100));
    let rest = &clock.runs(probe.log)[PARTS as usize];
    let expected: Vec<_> = parts(0).chain([*rest]).chain(parts(PERIOD_US)).collect();
    clock.ensure_runs(probe.log, &expected)
}

/// Yielding uses up the whole head, while 300 µs for 5000 and then 200 µs for 6300 wait behind it: all
/// three come back a period after they were usable, and again a period later.
fn used_up_heads_return(f: &mut Fixture) -> TestResult {
    let (clock, log) = (Clock::new(f)?, run_log());
    let params = SchedParams::new(1_000, 5_000).extra_refills(8);
    let thread = f.active_on(100, params)?;
    let tcb = f.prepare(thread, move || {
        clock.log_until(log, 2_500);
        sys::yield_now();
        clock.log_forever(log);
    })?;
    clock.start();
    tcb.resume()?;
    clock.hold(300, 1_300)?;
    clock.hold(1_500, 2_300)?;
    clock.sleep_until(13_000)?;
    let mut expected = vec![(0, 300), (1_300, 1_500), (2_300, 2_500)];
    for period in [5_000, 10_000] {
        expected.extend([
            (period, period + 300),
            (period + 1_300, period + 1_500),
            (period + 2_300, period + 2_800),
        ]);
    }
    clock.ensure_runs(log, &expected)
}
