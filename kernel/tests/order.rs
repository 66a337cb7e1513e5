//! The order in which threads run: who goes on, who goes first among equals (04, section 8.5).

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_testkit::isa;
use sandglass_testkit::world::{Thread, World, US};

/// A slice that does not end by itself here.
const LONG: u64 = 1_000_000;

/// `count` threads of `priority` in the order in which they will run; the root task sleeps.
fn equals(priority: u64, count: usize) -> (World, Vec<Thread>) {
    let mut w = World::new();
    let mut threads: Vec<_> = (0..count)
        .map(|_| w.start_thread(priority, LONG, LONG))
        .collect();
    // Each was enqueued at the head.
    threads.reverse();
    (w, threads)
}

fn yield_now(w: &mut World) {
    w.syscall(Syscall::Yield, 0, 0, MessageInfo::default(), &[]);
}

fn signal(w: &mut World, notification: u64) {
    let info = MessageInfo::default();
    w.syscall(Syscall::Send, notification, 0, info, &[]);
}

/// Whoever runs sets the priority of `thread`.
fn set_priority(w: &mut World, thread: Thread, priority: u64) {
    let caller = w.running();
    w.set_extra_caps(&[slot::TCB]);
    let info = MessageInfo::new(label::TCB_SET_PRIORITY, 0, 1, 1);
    w.syscall(Syscall::Call, thread.tcb, 0, info, &[priority]);
    if let Some(caller) = caller {
        w.result(caller).expect("a new priority");
    }
}

#[track_caller]
fn assert_runs(w: &World, thread: Thread) {
    assert_eq!(w.running(), Some(thread.handle));
}

/// A server with a context of its own that answers a client below it, and waits, makes way for whoever is
/// between them.
#[test]
fn a_client_that_is_answered_waits_for_those_above_it() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let server = w.start_thread(200, LONG, LONG);
    let client = w.start_thread(100, LONG, LONG);
    let root_wakes_by = w.sleep();
    assert_runs(&w, server);
    w.recv(endpoint, reply);
    assert_runs(&w, client);
    w.call(endpoint, &[1]);
    w.wake(root_wakes_by);
    let between = w.start_thread(150, LONG, LONG);
    w.wait(root_wakes_by);
    assert_runs(&w, server);
    w.reply_recv(endpoint, reply, &[2]);
    assert_runs(&w, between);
}

#[test]
fn who_yields_goes_behind_its_equals() {
    let (mut w, threads) = equals(50, 3);
    w.sleep();
    for round in 0..3 {
        for (i, &thread) in threads.iter().enumerate() {
            assert_eq!(
                w.running(),
                Some(thread.handle),
                "turn {i} of round {round}"
            );
            yield_now(&mut w);
        }
    }
}

#[test]
fn who_yields_without_an_equal_goes_on_with_a_new_slice() {
    let (mut w, threads) = equals(50, 1);
    let lower = w.start_thread(49, LONG, LONG);
    w.sleep();
    w.pass(300 * US);
    assert_runs(&w, threads[0]);
    yield_now(&mut w);
    assert_runs(&w, threads[0]);
    let context = w.context(threads[0].context).at(&w.k);
    assert_eq!(context.head().amount, LONG * US, "a whole slice");
    assert_eq!(
        w.k.machine.deadline(),
        w.k.core().now() + LONG * US - isa::PRECISION
    );
    w.sleep_of(threads[0]);
    assert_runs(&w, lower);
}

#[test]
fn who_yields_makes_way_for_an_equal_whose_time_has_come() {
    let mut w = World::new();
    let periodic = w.start_thread(50, 100, 1000);
    let spinner = w.start_thread(50, LONG, LONG);
    w.sleep();
    assert_runs(&w, spinner);
    yield_now(&mut w);
    assert_runs(&w, periodic);
    while w.running() == Some(periodic.handle) {
        w.pass(10 * US);
    }
    assert_runs(&w, spinner);
    // It falls due, and does not preempt its equal.
    w.pass(1500 * US);
    assert_runs(&w, spinner);
    w.syscall(Syscall::NBSend, 0, 0, MessageInfo::default(), &[]);
    assert_runs(&w, spinner);
    yield_now(&mut w);
    assert_runs(&w, periodic);
}

/// Releases come before what else happens at their instant (04, section 8.5: a released thread is
/// enqueued at the head, who yields is appended at the tail).
#[test]
fn who_yields_at_the_very_release_of_an_equal_makes_way_for_it() {
    let mut w = World::new();
    let periodic = w.start_thread(50, 100, 1000);
    let spinner = w.start_thread(50, LONG, LONG);
    w.sleep();
    yield_now(&mut w);
    while w.running() == Some(periodic.handle) {
        w.pass(10 * US);
    }
    let release = periodic.handle.at(&w.k).links().key().time();
    w.pass(release - w.now());
    assert_eq!(w.now(), release);
    assert_runs(&w, spinner);
    yield_now(&mut w);
    assert_eq!(w.k.core().now(), release);
    assert_runs(&w, periodic);
}

/// Whatever is done to a thread at the instant of its release, it preempts who is below it (04,
/// section 8.5 step 1).
#[test]
fn a_thread_put_into_a_domain_at_its_very_release_preempts_who_is_below_it() {
    let mut w = World::new();
    let high = w.start_thread(51, 100, 1000);
    let spinner = w.start_thread(50, LONG, LONG);
    w.sleep();
    while w.running() == Some(high.handle) {
        w.pass(10 * US);
    }
    assert_runs(&w, spinner);
    let release = high.handle.at(&w.k).links().key().time();
    w.k.machine.advance(release - w.now());
    w.set_extra_caps(&[high.tcb]);
    let info = MessageInfo::new(label::DOMAIN_SET, 0, 1, 1);
    w.syscall(Syscall::Call, slot::DOMAIN, 0, info, &[0]);
    assert_eq!(w.k.core().now(), release);
    assert_runs(&w, high);
}

/// Also if it is but one priority above, and what happens would wake nobody (04, section 8.5 step 1).
#[test]
fn who_signals_at_the_very_release_of_the_next_higher_makes_way_for_it() {
    let mut w = World::new();
    let notification = w.make(types::NOTIFICATION, 0);
    let high = w.start_thread(51, 100, 1000);
    let spinner = w.start_thread(50, LONG, LONG);
    w.sleep();
    while w.running() == Some(high.handle) {
        w.pass(10 * US);
    }
    let release = high.handle.at(&w.k).links().key().time();
    w.k.machine.advance(release - w.now());
    assert_runs(&w, spinner);
    signal(&mut w, notification);
    assert_eq!(w.k.core().now(), release);
    assert_runs(&w, high);
}

/// Of three equals, while one runs, the time of the second comes, and then the third is woken: who came first is first (04,
/// section 8.5).
#[test]
fn after_who_waits_comes_an_equal_whose_time_came_before_another_was_woken() {
    let mut w = World::new();
    let running = w.start_thread(50, LONG, LONG);
    let due = w.start_thread(50, 100, 1000);
    let woken = w.start_thread(50, LONG, LONG);
    let [wakes, sleeps] = [(); 2].map(|()| w.make(types::NOTIFICATION, 0));
    w.sleep();
    assert_runs(&w, woken);
    w.wait(wakes);
    while w.running() == Some(due.handle) {
        w.pass(10 * US);
    }
    w.pass(1500 * US);
    assert_runs(&w, running);
    signal(&mut w, wakes);
    assert_runs(&w, running);
    w.wait(sleeps);
    assert_runs(&w, due);
}

#[test]
fn a_periodic_thread_that_yields_waits_for_its_refill_though_it_is_alone() {
    let mut w = World::new();
    let thread = w.start_thread(50, 100, 1000);
    w.sleep();
    assert_runs(&w, thread);
    let start = w.context(thread.context).at(&w.k).head().time;
    yield_now(&mut w);
    assert_eq!(w.running(), None);
    assert_eq!(w.k.machine.deadline(), start + 1000 * US);
}

#[test]
fn who_lowers_its_priority_to_that_of_others_goes_on_before_them() {
    let (mut w, equals) = equals(50, 2);
    let thread = w.start_thread(60, LONG, LONG);
    w.sleep();
    assert_runs(&w, thread);
    set_priority(&mut w, thread, 50);
    assert_runs(&w, thread);
    yield_now(&mut w);
    assert_runs(&w, equals[0]);
    yield_now(&mut w);
    assert_runs(&w, equals[1]);
    yield_now(&mut w);
    assert_runs(&w, thread);
}

/// Time management is bounded by priority: releases of those below do not interrupt.
#[test]
fn who_raises_its_priority_is_not_interrupted_by_releases_below_it_any_more() {
    let mut w = World::new();
    let periodic = w.start_thread(55, 100, 1000);
    let thread = w.start_thread(50, LONG, LONG);
    w.sleep();
    while w.running() == Some(periodic.handle) {
        w.pass(10 * US);
    }
    assert_runs(&w, thread);
    let release = w.context(periodic.context).at(&w.k).head().time;
    assert_eq!(w.k.machine.deadline(), release);
    set_priority(&mut w, thread, 60);
    assert_runs(&w, thread);
    assert!(w.k.machine.deadline() > release);
    set_priority(&mut w, thread, 50);
    assert_runs(&w, thread);
    assert_eq!(w.k.machine.deadline(), release);
}

#[test]
fn who_lowers_its_priority_below_others_stands_first_among_its_equals() {
    let (mut w, equals) = equals(50, 2);
    let middle = w.start_thread(55, LONG, LONG);
    let thread = w.start_thread(60, LONG, LONG);
    w.sleep();
    set_priority(&mut w, thread, 50);
    assert_runs(&w, middle);
    w.sleep_of(middle);
    assert_runs(&w, thread);
    w.sleep_of(thread);
    assert_runs(&w, equals[0]);
}

#[test]
fn another_set_to_the_priority_of_the_running_one_stands_behind_it_and_before_its_equals() {
    let (mut w, equals) = equals(50, 2);
    let other = w.start_thread(40, LONG, LONG);
    w.sleep();
    assert_runs(&w, equals[0]);
    set_priority(&mut w, other, 50);
    assert_runs(&w, equals[0]);
    yield_now(&mut w);
    assert_runs(&w, other);
    yield_now(&mut w);
    assert_runs(&w, equals[1]);
}

/// A caller that wakes an active server stops first, and then the server becomes ready: at the
/// head of its priority.
#[test]
fn a_called_server_runs_before_its_equals_and_after_its_betters() {
    for (server_priority, better) in [(50, false), (50, true), (70, false)] {
        let mut w = World::new();
        let endpoint = w.make(types::ENDPOINT, 0);
        let reply = w.make(types::REPLY, 0);
        let server = w.start_thread(server_priority, LONG, LONG);
        let equal = w.start_thread(50, LONG, LONG);
        let caller = w.start_thread(80, LONG, LONG);
        let between = w.start_thread(if better { 60 } else { 40 }, LONG, LONG);
        set_priority(&mut w, server, 90);
        let notification = w.sleep();
        w.recv(endpoint, reply);
        w.wake(notification);
        set_priority(&mut w, server, server_priority);
        w.wait(notification);
        assert_runs(&w, caller);
        w.call(endpoint, &[]);
        if better {
            assert_runs(&w, between);
            w.sleep_of(between);
        }
        assert_runs(&w, server);
        w.sleep_of(server);
        assert_runs(&w, equal);
    }
}

/// A thread that is woken while the running one goes on with equal priority waits behind all.
#[test]
fn a_woken_equal_goes_behind_those_that_are_ready() {
    let (mut w, threads) = equals(50, 3);
    let notification = w.make(types::NOTIFICATION, 0);
    w.sleep();
    w.wait(notification);
    assert_runs(&w, threads[1]);
    let none = MessageInfo::default();
    w.syscall(Syscall::Send, notification, 0, none, &[]);
    assert_runs(&w, threads[1]);
    yield_now(&mut w);
    assert_runs(&w, threads[2]);
    yield_now(&mut w);
    assert_runs(&w, threads[0]);
}

/// Who is preempted stays the first of its priority.
#[test]
fn a_preempted_thread_goes_on_before_its_equals() {
    let (mut w, threads) = equals(50, 2);
    let notification = w.sleep();
    assert_runs(&w, threads[0]);
    w.wake(notification);
    w.wait(notification);
    assert_runs(&w, threads[0]);
}
