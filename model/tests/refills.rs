//! The refill algorithms of the model keep what the ABI page promises of them (04, section 4): the
//! worked examples, and the postconditions on random contexts.

use proptest::prelude::*;
use sandglass_model::isa::UNIT_US;
use sandglass_model::state::{Clock, CoreId, Refill, SchedContext, Ticks};
use sandglass_model::time::refills;

/// One tick is a microsecond, so the least budget is 20.
const CLOCK: Clock = Clock {
    ticks_per_unit: UNIT_US,
};

fn context(max_refills: u64, period: Ticks, queue: &[(Ticks, Ticks)]) -> SchedContext {
    let refill = |&(amount, time): &(Ticks, Ticks)| Refill { amount, time };
    SchedContext {
        bits: 12,
        period,
        max_refills,
        refills: queue.iter().map(refill).collect(),
        consumed: 0,
        badge: 0,
        sporadic: false,
        core: CoreId(0),
        thread: None,
        notification: None,
        reply: None,
        yield_from: None,
    }
}

/// The queue as (amount, time).
fn queue(c: &SchedContext) -> Vec<(Ticks, Ticks)> {
    c.refills.iter().map(|r| (r.amount, r.time)).collect()
}

fn budget(c: &SchedContext) -> Ticks {
    c.refills.iter().map(|r| r.amount).sum()
}

/// How much a thread that runs whenever it may can have used by `time`.
fn supply(c: &SchedContext, time: Ticks) -> Ticks {
    let used = |r: &Refill| r.amount.min(time.saturating_sub(r.time));
    c.refills.iter().map(used).sum()
}

/// Instants at which one of two supplies may change its slope.
fn corners(before: &SchedContext, after: &SchedContext) -> Vec<Ticks> {
    let refills = before.refills.iter().chain(&after.refills);
    refills.flat_map(|r| [r.time, r.end()]).collect()
}

fn assert_in_order(c: &SchedContext) -> Result<(), TestCaseError> {
    for pair in c.refills.windows(2) {
        prop_assert!(pair[0].end() <= pair[1].time, "{:?}", queue(c));
    }
    prop_assert!(c.refills.len() as u64 <= c.max_refills, "{:?}", queue(c));
    Ok(())
}

prop_compose! {
    /// A context in order whose head is ready at the time returned with it, and sufficient.
    fn any_context()(
        max in 2u64..8,
        pieces in prop::collection::vec((1u64..60, 0u64..100), 1..8),
        delay in 0u64..300,
        slack in 0u64..1000,
    ) -> (SchedContext, Ticks) {
        let mut time = 1000;
        let mut queue = Vec::new();
        for &(amount, gap) in pieces.iter().take(max as usize) {
            let amount = if queue.is_empty() { amount + 20 } else { amount };
            queue.push((amount, time));
            time += amount + gap;
        }
        // All was scheduled one period after its use, and so lies within one period.
        (context(max, time - 1000 + slack, &queue), 1000 + delay)
    }
}

#[test]
fn a_new_context_has_its_whole_budget_now() {
    let mut c = context(0, 0, &[]);
    refills::new(&mut c, 5, 30, 100, 1000);
    assert_eq!(
        (queue(&c), c.period, c.max_refills),
        (vec![(30, 1000)], 100, 5)
    );
    assert!(c.is_ready(1000) && c.is_sufficient(0, CLOCK));
    assert!(c.is_sufficient(10, CLOCK) && !c.is_sufficient(11, CLOCK));
    assert!(!c.is_sufficient(31, CLOCK));
}

#[test]
fn a_round_robin_context_has_a_full_slice_and_nothing_used() {
    let mut c = context(0, 0, &[]);
    refills::new(&mut c, 2, 100, 0, 1000);
    assert_eq!(queue(&c), [(100, 1000), (0, 1000)]);
    refills::use_slice(&mut c, 30);
    assert_eq!(queue(&c), [(70, 1000), (30, 1000)]);
    assert!(!refills::unblock_check(&mut c, 5000));
    refills::renew_slice(&mut c);
    assert_eq!(queue(&c), [(100, 1000), (0, 1000)]);
}

#[test]
fn at_most_128_refills_are_used() {
    let mut c = context(0, 0, &[]);
    refills::new(&mut c, 1000, 200, 10_000, 0);
    assert_eq!(c.max_refills, 128);
}

#[test]
fn what_was_used_merges_is_appended_or_delays_the_tail() {
    let used = Refill {
        amount: 5,
        time: 150,
    };
    let mut touching = context(2, 100, &[(50, 100)]);
    refills::schedule_used(&mut touching, used);
    assert_eq!(queue(&touching), [(55, 100)]);
    let mut apart = context(2, 100, &[(49, 100)]);
    refills::schedule_used(&mut apart, used);
    assert_eq!(queue(&apart), [(49, 100), (5, 150)]);
    let mut full = context(2, 100, &[(20, 50), (20, 100)]);
    refills::schedule_used(&mut full, used);
    assert_eq!(queue(&full), [(20, 50), (25, 130)]);
}

#[test]
fn a_part_of_the_head_comes_back_a_period_after_its_start() {
    let mut c = context(4, 1000, &[(100, 0)]);
    refills::budget_check(&mut c, 30, CLOCK);
    assert_eq!(queue(&c), [(70, 30), (30, 1000)]);
    // The rest of it starts later, and comes back later.
    refills::budget_check(&mut c, 40, CLOCK);
    assert_eq!(queue(&c), [(30, 70), (70, 1000)]);
}

#[test]
fn an_overrun_is_taken_from_the_next_refill() {
    let mut c = context(4, 1000, &[(50, 0), (50, 500)]);
    refills::budget_check(&mut c, 60, CLOCK);
    assert_eq!(queue(&c), [(40, 510), (50, 1000), (10, 1500)]);
}

#[test]
fn an_overrun_of_the_only_refill_takes_from_the_next_period() {
    let mut c = context(4, 1000, &[(50, 0)]);
    refills::budget_check(&mut c, 60, CLOCK);
    assert_eq!(queue(&c), [(40, 1010), (10, 2000)]);
}

#[test]
fn a_head_too_small_to_run_on_delays_itself() {
    let mut c = context(4, 1000, &[(50, 0), (50, 500)]);
    refills::budget_check(&mut c, 45, CLOCK);
    assert_eq!(queue(&c), [(55, 495), (45, 1000)]);
}

#[test]
fn what_is_far_beyond_is_not_charged() {
    let late = CLOCK.max_release();
    let mut c = context(4, 1000, &[(50, late)]);
    refills::budget_check(&mut c, 60, CLOCK);
    assert_eq!(queue(&c), [(50, late)]);
}

#[test]
fn a_machine_that_stood_still_pays_for_256_refills() {
    let mut c = context(4, 1000, &[(50, 0)]);
    refills::budget_check(&mut c, 1_000_000, CLOCK);
    assert_eq!(queue(&c), [(50, 256_000)]);
}

#[test]
fn unblocking_joins_what_the_running_end_reaches() {
    let mut c = context(4, 1000, &[(20, 0), (30, 120), (10, 150), (5, 161)]);
    assert!(refills::unblock_check(&mut c, 100));
    assert_eq!(queue(&c), [(60, 100), (5, 161)]);
    let mut later = context(4, 1000, &[(20, 101)]);
    assert!(!refills::unblock_check(&mut later, 100));
    assert_eq!(queue(&later), [(20, 101)]);
}

#[test]
fn an_update_gives_no_more_than_the_head_had() {
    let mut more = context(4, 1000, &[(30, 10), (70, 900)]);
    refills::update(&mut more, 6, 200, 500, 100);
    assert_eq!(queue(&more), [(30, 100), (170, 600)]);
    assert_eq!((more.period, more.max_refills), (500, 6));
    let mut less = context(4, 1000, &[(90, 200), (10, 900)]);
    refills::update(&mut less, 2, 40, 500, 100);
    assert_eq!(queue(&less), [(40, 200)]);
}

proptest! {
    #[test]
    fn scheduling_used_time_adds_it_and_never_earlier((c, _) in any_context(),
                                                     amount in 1u64..100, gap in 0u64..200) {
        let tail = *c.refills.last().unwrap();
        let used = Refill { amount, time: tail.time + gap };
        let mut after = c.clone();
        refills::schedule_used(&mut after, used);
        prop_assert_eq!(budget(&after), budget(&c) + amount);
        prop_assert!(after.refills.len() <= c.refills.len() + 1);
        assert_in_order(&after)?;
        let alone = context(2, 0, &[(amount, used.time)]);
        for x in corners(&c, &after) {
            prop_assert!(supply(&after, x) <= supply(&c, x) + supply(&alone, x));
        }
    }

    #[test]
    fn charging_keeps_the_budget_and_the_order((c, _) in any_context(), used in 0u64..600) {
        let mut after = c.clone();
        refills::budget_check(&mut after, used, CLOCK);
        prop_assert_eq!(budget(&after), budget(&c));
        prop_assert!(after.refills[0].amount >= CLOCK.min_budget());
        assert_in_order(&after)?;
    }

    #[test]
    fn charging_gives_nothing_back_within_a_period((c, _) in any_context(), used in 1u64..600) {
        // Before the first refill of old comes back, at most what was not used can be had.
        let mut after = c.clone();
        refills::budget_check(&mut after, used, CLOCK);
        let back = c.refills[0].time + c.period;
        prop_assert!(supply(&after, back) <= budget(&c).saturating_sub(used));
    }

    #[test]
    fn unblocking_starts_now_and_keeps_the_budget((c, now) in any_context()) {
        let mut after = c.clone();
        prop_assert!(refills::unblock_check(&mut after, now));
        prop_assert_eq!(budget(&after), budget(&c));
        prop_assert_eq!(after.refills[0].time, now);
        assert_in_order(&after)?;
        if let Some(next) = after.refills.get(1) {
            prop_assert!(after.refills[0].end() < next.time);
        }
    }

    #[test]
    fn updating_sets_the_budget((c, now) in any_context(), new in 20u64..500, extra in 1u64..500) {
        let mut after = c.clone();
        refills::update(&mut after, 5, new, new + extra, now);
        prop_assert_eq!(budget(&after), new);
        prop_assert!(after.refills.len() <= 2);
        prop_assert!(after.refills[0].amount <= c.refills[0].amount);
        prop_assert!(after.refills[0].time >= now.min(c.refills[0].time));
        assert_in_order(&after)?;
    }
}
