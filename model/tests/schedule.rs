//! The order in which threads run: the effects that the ABI page says are to be preserved (04,
//! section 8.5), and the deliberate differences 8 and 11 of the documentation.

use crate::world::{add, empty, passive, MILLISECOND};
use sandglass_model::isa::PRECISION_US;
use sandglass_model::reply;
use sandglass_model::state::{Above, ContextId, Refill, Reply, ReplyId, ThreadId, Ticks};
use sandglass_model::time::{account, schedule};
use sandglass_model::{thread, State};

/// Somebody wakes `thread`, and the event ends.
fn wake(s: &mut State, thread: ThreadId) {
    thread::resume(s, thread);
    schedule::schedule(s);
}

/// `thread` waits for something, and the event ends.
fn stop(s: &mut State, thread: ThreadId) {
    thread::suspend(s, thread);
    schedule::schedule(s);
}

/// A timer interrupt at `now` milliseconds.
fn timer(s: &mut State, now: Ticks) {
    account::update_time(s, now * MILLISECOND);
    s.core_mut().reprogram = true;
    account::check_budget(s, s.executing);
    schedule::schedule(s);
}

/// Who runs if each that does stops at once.
fn order(s: &State) -> Vec<ThreadId> {
    let mut s = s.clone();
    let mut order = Vec::new();
    while let Some(thread) = s.core().thread {
        order.push(thread);
        stop(&mut s, thread);
    }
    order
}

#[test]
fn an_equal_does_not_preempt_and_goes_behind() {
    let mut s = empty();
    let [a, b, c] = [1, 2, 3].map(|n| add(&mut s, n, 10, 5, 5));
    [a, b, c].into_iter().for_each(|t| wake(&mut s, t));
    assert_eq!(order(&s), [a, b, c]);
}

#[test]
fn one_woken_by_a_lower_one_preempts_it_and_it_stays_the_first_of_its_equals() {
    let mut s = empty();
    let [a, b] = [1, 2].map(|n| add(&mut s, n, 10, 5, 5));
    let high = add(&mut s, 3, 11, 5, 5);
    [a, b, high].into_iter().for_each(|t| wake(&mut s, t));
    assert_eq!(s.core().thread, Some(high));
    assert_eq!(order(&s), [high, a, b]);
}

#[test]
fn one_woken_below_the_current_waits() {
    let mut s = empty();
    let low = add(&mut s, 1, 9, 5, 5);
    let current = add(&mut s, 2, 10, 5, 5);
    [current, low].into_iter().for_each(|t| wake(&mut s, t));
    assert_eq!(order(&s), [current, low]);
}

#[test]
fn whose_slice_is_over_goes_to_the_tail() {
    let mut s = empty();
    let [a, b] = [1, 2].map(|n| add(&mut s, n, 10, 5, 5));
    [a, b].into_iter().for_each(|t| wake(&mut s, t));
    timer(&mut s, 6);
    assert_eq!(order(&s), [b, a]);
    assert_eq!(s.contexts[&ContextId(1)].refills[0].amount, 5 * MILLISECOND);
    assert_eq!(s.contexts[&ContextId(1)].consumed, 5 * MILLISECOND);
}

#[test]
fn yielding_forfeits_the_rest_but_only_what_was_used_is_consumed() {
    let mut s = empty();
    let a = add(&mut s, 1, 10, 3, 10);
    wake(&mut s, a);
    account::update_time(&mut s, 2 * MILLISECOND);
    account::yield_rest(&mut s);
    schedule::schedule(&mut s);
    let c = &s.contexts[&ContextId(1)];
    assert_eq!(c.consumed, MILLISECOND);
    let refill = Refill {
        amount: 3 * MILLISECOND,
        time: 11 * MILLISECOND,
    };
    assert_eq!(c.refills, [refill]);
    assert_eq!((s.core().thread, s.core().deadline), (None, refill.time));
    timer(&mut s, 11);
    assert_eq!(s.core().thread, Some(a));
}

#[test]
fn a_priority_made_equal_goes_behind_the_current_and_before_the_others() {
    let mut s = empty();
    let [a, b] = [1, 2].map(|n| add(&mut s, n, 10, 5, 5));
    let c = add(&mut s, 3, 5, 5, 5);
    [a, b, c].into_iter().for_each(|t| wake(&mut s, t));
    schedule::set_priority(&mut s, c, 10);
    schedule::schedule(&mut s);
    assert_eq!(order(&s), [a, c, b]);
}

/// `waiting` has used up its budget, so that it is released at 11 ms, and `running` runs.
fn one_waits_and_one_runs(waiting_priority: u8) -> (State, ThreadId, ThreadId) {
    let mut s = empty();
    let waiting = add(&mut s, 1, waiting_priority, 1, 10);
    let running = add(&mut s, 2, 10, 50, 100);
    wake(&mut s, waiting);
    timer(&mut s, 2);
    wake(&mut s, running);
    (s, waiting, running)
}

#[test]
fn the_timer_is_for_releases_above_the_current_thread_only() {
    // The end of the budget is anticipated by the precision, a release is not.
    let budget_end = 52 * MILLISECOND - PRECISION_US; // A tick is a microsecond.
    assert_eq!(
        one_waits_and_one_runs(11).0.core().deadline,
        11 * MILLISECOND
    );
    assert_eq!(one_waits_and_one_runs(10).0.core().deadline, budget_end);
    assert_eq!(one_waits_and_one_runs(9).0.core().deadline, budget_end);
}

#[test]
fn a_release_preempts_from_above_only() {
    for (priority, preempts) in [(9, false), (10, false), (11, true)] {
        let (mut s, waiting, running) = one_waits_and_one_runs(priority);
        timer(&mut s, 20);
        assert_eq!(s.core().thread == Some(waiting), preempts);
        assert_eq!(order(&s).len(), 2);
        assert!(order(&s).contains(&running));
    }
}

#[test]
fn among_equals_the_released_stand_where_their_time_puts_them() {
    let (mut s, released, running) = one_waits_and_one_runs(10);
    let [early, late, preempted] = [3, 4, 5].map(|n| add(&mut s, n, 10, 50, 100));
    let high = add(&mut s, 6, 12, 50, 100);
    account::update_time(&mut s, 5 * MILLISECOND);
    wake(&mut s, early);
    account::update_time(&mut s, 20 * MILLISECOND);
    wake(&mut s, late);
    thread::resume(&mut s, preempted);
    schedule::force_reschedule(&mut s);
    schedule::schedule(&mut s);
    wake(&mut s, high);
    let expected = [high, running, preempted, early, released, late];
    assert_eq!(order(&s), expected);
}

#[test]
fn a_woken_thread_does_not_pass_a_released_one_above_it() {
    let (mut s, released, running) = one_waits_and_one_runs(12);
    let woken = add(&mut s, 3, 11, 50, 100);
    account::update_time(&mut s, 20 * MILLISECOND);
    wake(&mut s, woken);
    assert_eq!(order(&s), [released, woken, running]);
}

#[test]
fn a_context_goes_down_the_calls_and_comes_back() {
    let mut s = empty();
    let client = add(&mut s, 1, 10, 50, 100);
    let [middle, server] = [2, 3].map(|n| passive(&mut s, n, 10));
    let [first, second] = [1, 2].map(ReplyId);
    for id in [first, second] {
        let unused = Reply {
            thread: None,
            above: Above::Nothing,
            below: None,
        };
        s.replies.insert(id, unused);
    }
    wake(&mut s, client);
    let lent = Some(ContextId(1));
    reply::push(&mut s, client, middle, first, true);
    reply::push(&mut s, middle, server, second, true);
    assert_eq!(s.threads[&server].context, lent);
    assert_eq!(s.contexts[&ContextId(1)].reply, Some(second));

    // Answered in turn, it comes back to each.
    let mut answered = s.clone();
    assert_eq!(reply::pop(&mut answered, second), Some(middle));
    assert_eq!(answered.threads[&middle].context, lent);
    assert_eq!(reply::pop(&mut answered, first), Some(client));
    assert_eq!(answered.threads[&client].context, lent);
    assert_eq!(answered.contexts[&ContextId(1)].reply, None);

    // Whoever stops waiting in between does not get it, nor do those below.
    thread::suspend(&mut s, middle);
    assert_eq!(s.contexts[&ContextId(1)].reply, None);
    assert_eq!(s.replies[&first].above, Above::Nothing);
    assert_eq!(reply::pop(&mut s, first), Some(client));
    assert_eq!(s.threads[&client].context, None);
    assert_eq!(s.threads[&server].context, lent);
}
