//! What holds at the very instant at which two times are equal.

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::sched::domain::DOMAINS;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::Refill;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::Place;
use sandglass_kernel::time::account;
use sandglass_kernel::time::refills::Refills;
use sandglass_testkit::world::{World, US};

/// A context that nobody uses, with room for ten refills.
fn context(w: &mut World) -> Ref<SchedContext> {
    let slot = w.make(types::SCHED_CONTEXT, 9);
    w.context(slot)
}

/// 04, section 4, unblockCheck: a refill that begins just when the head ends joins it.
#[test]
fn refills_that_touch_are_joined() {
    let mut w = World::new();
    let handle = context(&mut w);
    let refills = Refills::of(&w.k, handle);
    let least = w.k.constants.min_budget();
    let (budget, period) = (10 * least, 100 * least);
    let start = w.now();
    w.k.core().set_now(&w.k, start);
    refills.start(10, budget, period);
    refills.charge(4 * least);
    assert_eq!(refills.count(), 2);
    // Six times the least budget are left, and end when the other four come back.
    for (early, count) in [(1, 2), (0, 1)] {
        w.k.core().set_now(&w.k, start + period - 6 * least - early);
        assert!(refills.unblock());
        assert_eq!(refills.count(), count, "{early} ticks early");
    }
    assert_eq!(refills.head().amount, budget);
    assert_eq!(refills.head().time, w.k.core().now());
}

/// No refill comes later than the last release that is counted: what would is forgiven.
#[test]
fn a_charge_at_the_last_release_changes_nothing() {
    let mut w = World::new();
    let handle = context(&mut w);
    let refills = Refills::of(&w.k, handle);
    let least = w.k.constants.min_budget();
    let last = w.k.constants.max_release();
    for (now, is_charged) in [(last - 1, true), (last, false)] {
        w.k.core().set_now(&w.k, now);
        refills.start(10, 10 * least, 100 * least);
        refills.charge(least);
        assert_eq!(refills.count() == 2, is_charged);
        assert_eq!(refills.head().time == now, !is_charged);
    }
}

/// A machine that stood still charges more than all refills twice over: what exceeds that is
/// forgiven, and the budget stays whole.
#[test]
fn a_charge_that_is_cut_short_leaves_the_budget_whole() {
    let mut w = World::new();
    let handle = context(&mut w);
    let refills = Refills::of(&w.k, handle);
    let least = w.k.constants.min_budget();
    let budget = 10 * least;
    let (start, period) = (w.now(), 100 * least);
    w.k.core().set_now(&w.k, start);
    for rounds in 1..600 {
        refills.start(10, budget, period);
        refills.charge(rounds * budget);
        let total: u64 = refills.iter().map(|refill| refill.amount).sum();
        assert_eq!(total, budget, "{rounds} times the budget");
        let charged = rounds.min(2 * u64::from(Refill::MAX));
        let head = refills.head();
        assert_eq!((head.amount, head.time), (budget, start + charged * period));
    }
}

/// 04, section 3: a domain's turn ends with an event that leaves it just the least budget, or less.
#[test]
fn a_turn_of_which_the_least_budget_is_left_is_over() {
    if DOMAINS == 1 {
        return;
    }
    let mut w = World::new();
    let words = [0, 0, 1_000_000];
    w.invoke(slot::DOMAIN, label::DOMAIN_SCHEDULE_CONFIGURE, &words, &[])
        .expect("an entry");
    w.call_once(slot::DOMAIN, label::DOMAIN_SCHEDULE_SET_START, &[0], &[]);
    let (end, least) = (w.k.domains.end(), w.k.constants.min_budget());
    for (left, is_over) in [(least + 1, false), (least, true), (least - 1, true)] {
        w.k.core().set_now(&w.k, end - left);
        assert_eq!(account::domain_is_over(&w.k), is_over, "{left} ticks left");
    }
}

/// 04, section 2.4: a thread whose time comes now is released, whether or not it was moved.
#[test]
fn a_thread_is_released_at_its_very_instant() {
    for early in [1, 0] {
        let mut w = World::new();
        let thread = w.start_thread(10, 1_000, 10_000);
        let wakes = w.sleep();
        w.pass(2_000 * US);
        w.wake(wakes);
        assert_eq!(thread.handle.at(&w.k).place(), Place::Release);
        let release = w.context(thread.context).at(&w.k).head().time;
        w.pass(release - 100 * US - w.now());
        w.k.machine.advance(release - early - w.now());
        // The root task is above it, and yields to it in vain: it is only put into its queue.
        w.invoke(thread.context, label::SCHED_CONTEXT_YIELD_TO, &[], &[])
            .expect("at once");
        let place = if early == 0 {
            Place::Ready
        } else {
            Place::Release
        };
        assert_eq!(thread.handle.at(&w.k).place(), place, "{early} ticks early");
    }
}
