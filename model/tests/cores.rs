//! Several cores: what an event on one means for another (04, section 15), and the deliberate
//! difference 1 of the documentation.

use crate::world::{add, add_on, empty, passive, MILLISECOND};
use sandglass_model::state::{Action, ContextId, Core, CoreId, ThreadId, ThreadState, Ticks};
use sandglass_model::time::{account, context, cores, schedule};
use sandglass_model::{thread, State};

const HERE: CoreId = CoreId(0);
const THERE: CoreId = CoreId(1);

/// Two cores; a thread of priority 100 runs on the first.
fn two() -> State {
    let mut s = empty();
    s.cores.push(Core::idle(MILLISECOND));
    let first = add(&mut s, 1, 100, 50, 100);
    thread::resume(&mut s, first);
    schedule::schedule(&mut s);
    s
}

/// A thread on the other core, 5 of 10 ms, that is ready there; the core has not looked.
fn ready_there(s: &mut State, n: u64, priority: u8) -> ThreadId {
    let id = add_on(s, THERE, n, priority, 5, 10);
    thread::resume(s, id);
    id
}

/// The other core looks at `now` milliseconds. (No capabilities name the threads here: a whole event
/// would forget them.)
fn look(s: &mut State, now: Ticks) {
    s.executing = THERE;
    account::update_time(s, now * MILLISECOND);
    s.core_mut().look = false;
    let _ = account::check_budget(s, THERE);
    schedule::schedule(s);
    s.executing = HERE;
}

fn runs_there(s: &State) -> Option<ThreadId> {
    s.cores[THERE.0].thread
}

#[test]
fn an_idle_core_is_asked_to_look_and_runs_who_is_ready_then() {
    let mut s = two();
    let id = ready_there(&mut s, 2, 10);
    assert!(s.cores[THERE.0].look && runs_there(&s).is_none());
    look(&mut s, 2);
    assert!(!s.cores[THERE.0].look);
    assert_eq!(runs_there(&s), Some(id));
    assert_eq!(s.cores[THERE.0].context, Some(ContextId(2)));
    assert_eq!(s.cores[HERE.0].thread, Some(ThreadId(1)), "it goes on");
}

#[test]
fn a_busy_core_is_asked_only_for_a_higher_thread() {
    for (priority, is_asked) in [(49, false), (50, false), (51, true)] {
        let mut s = two();
        let running = ready_there(&mut s, 2, 50);
        look(&mut s, 2);
        let other = ready_there(&mut s, 3, priority);
        assert_eq!(s.cores[THERE.0].look, is_asked, "{priority}");
        look(&mut s, 3);
        let expected = if is_asked { other } else { running };
        assert_eq!(runs_there(&s), Some(expected), "{priority}");
    }
}

#[test]
fn who_runs_elsewhere_pays_and_is_the_first_of_its_equals_when_it_is_stalled() {
    let mut s = two();
    let running = ready_there(&mut s, 2, 50);
    look(&mut s, 2);
    let equal = ready_there(&mut s, 3, 50);
    s.core_mut().now = 4 * MILLISECOND;
    cores::stall(&mut s, running);
    assert_eq!(runs_there(&s), None);
    assert_eq!(s.cores[THERE.0].action, Action::ChooseNew);
    assert!(s.cores[THERE.0].look);
    assert_eq!(s.threads[&running].state, ThreadState::Restart);
    let head = s.contexts[&ContextId(2)].refills[0];
    assert_eq!((head.amount, head.time), (3 * MILLISECOND, 4 * MILLISECOND));
    let queue = &s.cores[THERE.0].queues[0].ready[&50];
    let queue: Vec<_> = queue.iter().map(|ready| ready.thread).collect();
    assert_eq!(queue, [running, equal]);
}

#[test]
fn who_is_stalled_at_the_end_of_its_budget_waits_for_the_next() {
    let mut s = two();
    let running = ready_there(&mut s, 2, 50);
    look(&mut s, 2);
    s.core_mut().now = 7 * MILLISECOND;
    cores::stall(&mut s, running);
    assert_eq!(
        s.cores[THERE.0].queues[0].release,
        [(12 * MILLISECOND, running)]
    );
    look(&mut s, 8);
    assert_eq!(runs_there(&s), None);
    assert_eq!(s.cores[THERE.0].deadline, 12 * MILLISECOND);
}

#[test]
fn to_move_hands_out_no_budget() {
    let mut s = two();
    let moved = ready_there(&mut s, 2, 50);
    look(&mut s, 2);
    s.core_mut().now = 6 * MILLISECOND;
    let parameters = context::Parameters {
        budget: 5 * MILLISECOND,
        period: 10 * MILLISECOND,
        max_refills: 4,
        badge: 0,
        sporadic: false,
    };
    context::configure(&mut s, ContextId(2), HERE, parameters);
    assert_eq!(s.threads[&moved].core, HERE);
    let refills = &s.contexts[&ContextId(2)].refills;
    let amounts: Vec<_> = refills.iter().map(|refill| refill.amount).collect();
    assert_eq!(amounts, [MILLISECOND, 4 * MILLISECOND]);
    assert_eq!(refills[1].time, 16 * MILLISECOND);
}

#[test]
fn who_gets_a_context_goes_where_that_is() {
    let mut s = two();
    let server = passive(&mut s, 3, 60);
    s.thread_mut(server).state = ThreadState::Running;
    let client = ready_there(&mut s, 2, 50);
    context::donate(&mut s, ContextId(2), server);
    assert_eq!(s.threads[&server].core, THERE);
    assert_eq!(s.threads[&client].context, None);
    // And back: whoever loses it stays.
    context::donate(&mut s, ContextId(2), client);
    assert_eq!(s.threads[&server].core, THERE);
}

#[test]
fn the_current_thread_that_comes_to_belong_to_another_core_is_sent_off() {
    let mut s = two();
    let current = ThreadId(1);
    let parameters = context::Parameters {
        budget: 5 * MILLISECOND,
        period: 10 * MILLISECOND,
        max_refills: 4,
        badge: 0,
        sporadic: false,
    };
    context::configure(&mut s, ContextId(1), THERE, parameters);
    schedule::schedule(&mut s);
    assert_eq!(s.core().thread, None);
    assert!(s.cores[THERE.0].look);
    look(&mut s, 2);
    assert_eq!(runs_there(&s), Some(current));
}
