//! What an object leaves behind when its last capability goes: nobody waits for it, nobody names
//! it (02, section 7.1), also where what had to end took more than one step.

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::inspect::BranchView;
use sandglass_kernel::object::tcb::State;
use sandglass_testkit::isa;
use sandglass_testkit::world::{Thread, World};

/// Threads that wait: more than a long operation lets go between two looks for an interrupt.
const WAITING: usize = 20;

const ALL_RIGHTS: u64 = 15;

/// `WAITING` threads that wait for `notification`; the root task runs.
fn queue_waiters(w: &mut World, notification: u64) -> Vec<Thread> {
    let start = |_| w.start_thread(50, 1_000, 10_000);
    let threads: Vec<_> = (0..WAITING).map(start).collect();
    let wakes = w.sleep();
    while w.running().is_some() {
        w.wait(notification);
    }
    w.wake(wakes);
    threads
}

/// A call of whoever runs while an interrupt is pending: executed once, and preempted.
fn preempted_call(w: &mut World, cap: u64, label: u64, words: &[u64], caps: &[u64]) {
    let caller = w.running().expect("a thread runs");
    w.k.machine.set_interrupt_pending(true);
    w.call_once(cap, label, words, caps);
    w.k.machine.set_interrupt_pending(false);
    let context = caller.at(&w.k).context();
    assert_eq!(
        context.get(Register::NextIp),
        context.fault_ip(),
        "the call is not over"
    );
}

/// An interrupt's handler.
fn handler(w: &mut World) -> u64 {
    w.issue_irq(5).expect("a handler")
}

/// A thread of priority 50 that waits on `endpoint` and offers `reply`; the root task runs.
fn receiver(w: &mut World, endpoint: u64, reply: u64) -> Thread {
    let thread = w.start_thread(50, 1_000, 10_000);
    let wakes = w.sleep();
    assert_eq!(w.running(), Some(thread.handle));
    w.recv(endpoint, reply);
    w.wake(wakes);
    thread
}

#[test]
fn a_reply_object_offered_to_an_endpoint_that_ends_is_free() {
    let mut w = World::new();
    let (endpoint, reply) = (w.make(types::ENDPOINT, 0), w.make(types::REPLY, 0));
    let thread = receiver(&mut w, endpoint, reply);
    let object = w.cap(reply).reply().expect("a reply object").object;
    assert_eq!(object.at(&w.k).thread(), Some(thread.handle));
    w.delete(endpoint).expect("deleted");
    assert_eq!(object.at(&w.k).thread(), None);
    assert_eq!(thread.handle.at(&w.k).state(), State::Restart);
}

/// 02, section 7.1: the receiver's IPC is cancelled.
#[test]
fn a_reply_object_that_ends_while_it_is_offered_stops_the_receiver() {
    let mut w = World::new();
    let (endpoint, reply) = (w.make(types::ENDPOINT, 0), w.make(types::REPLY, 0));
    let thread = receiver(&mut w, endpoint, reply);
    let object = w.cap(endpoint).endpoint().expect("an endpoint").object;
    assert!(!object.at(&w.k).queue().is_empty());
    w.delete(reply).expect("deleted");
    assert!(object.at(&w.k).queue().is_empty());
    assert_eq!(thread.handle.at(&w.k).state(), State::Inactive);
}

#[test]
fn a_notification_that_ends_is_bound_to_nothing() {
    let mut w = World::new();
    let notification = w.make(types::NOTIFICATION, 0);
    let thread = w.start_thread(50, 1_000, 10_000);
    let bind = label::TCB_BIND_NOTIFICATION;
    w.invoke(thread.tcb, bind, &[], &[notification])
        .expect("bound to the thread");
    let lent = w.make(types::SCHED_CONTEXT, 8);
    w.configure(lent, 1_000, 10_000, 0, 0);
    w.invoke(lent, label::SCHED_CONTEXT_BIND, &[], &[notification])
        .expect("bound to the context");
    assert!(thread.handle.at(&w.k).notification().is_some());
    assert!(w.context(lent).at(&w.k).notification().is_some());
    w.delete(notification).expect("deleted");
    assert!(thread.handle.at(&w.k).notification().is_none());
    assert!(w.context(lent).at(&w.k).notification().is_none());
}

/// The interrupt's own capability is the last; what takes its place is there in the end, and no
/// waiter is left behind (02, section 7.1).
#[test]
fn an_interrupt_gets_another_notification_in_more_than_one_step() {
    let set = label::IRQ_HANDLER_SET_NOTIFICATION;
    let clear = label::IRQ_HANDLER_CLEAR;
    for operation in [set, clear] {
        let mut w = World::new();
        let handler = handler(&mut w);
        let (first, second) = (
            w.make(types::NOTIFICATION, 0),
            w.make(types::NOTIFICATION, 0),
        );
        let threads = queue_waiters(&mut w, first);
        w.invoke(handler, set, &[], &[first]).expect("set");
        w.delete(first).expect("the interrupt has one more");
        let blocked = |w: &World| {
            threads
                .iter()
                .filter(|t| t.handle.at(&w.k).is_blocked())
                .count()
        };
        assert_eq!(blocked(&w), WAITING);
        let caps = [second];
        let caps = if operation == set { &caps[..] } else { &[] };
        preempted_call(&mut w, handler, operation, &[], caps);
        assert!((1..WAITING).contains(&blocked(&w)), "{}", blocked(&w));
        w.invoke(handler, operation, &[], caps).expect("done");
        assert_eq!(blocked(&w), 0);
        let event = Event::Trap(Trap::Interrupt { irq: isa::irq(5) });
        w.event(event);
        let object = w.cap(second).notification().expect("another").object;
        assert_eq!(object.at(&w.k).is_active(), operation == set);
    }
}

/// While an endpoint is emptied, whoever is still at it can be given another priority, stopped, lose the context that its call
/// would bring, or be looked for by its badge; the rest are let go none the less.
#[test]
fn whoever_is_left_at_an_endpoint_that_ends_can_be_changed_and_stopped() {
    let mut w = World::new();
    let unbadged = w.make(types::ENDPOINT, 0);
    let endpoint = w.mint(unbadged, ALL_RIGHTS, 7).expect("badged");
    let calls = w
        .mint_call(unbadged, ALL_RIGHTS, 7)
        .expect("it may only call");
    w.delete(unbadged).expect("one more is left");
    let threads: Vec<_> = (0..WAITING)
        .map(|_| w.start_thread(50, 1_000, 10_000))
        .collect();
    let wakes = w.sleep();
    let mut caller = None;
    while let Some(running) = w.running() {
        // The last at the endpoint, that is.
        let is_last = threads
            .iter()
            .filter(|t| t.handle.at(&w.k).is_blocked())
            .count()
            == WAITING - 1;
        caller = is_last.then_some(running).or(caller);
        w.call(if is_last { calls } else { endpoint }, &[]);
    }
    w.wake(wakes);
    w.delete(calls).expect("the message does not need it");
    let delete = label::CNODE_DELETE;
    preempted_call(&mut w, slot::CNODE, delete, &[endpoint, 64], &[]);
    let object = w.cap(endpoint).endpoint().expect("still there").object;
    let queued = |w: &World| -> Vec<Thread> {
        let is_blocked = |t: &&Thread| t.handle.at(&w.k).is_blocked();
        threads.iter().filter(is_blocked).copied().collect()
    };
    let left = queued(&w);
    let first = object.at(&w.k).queue().first();
    let calling = left.iter().find(|t| Some(t.handle) == caller);
    let calling = *calling.expect("it is still there");
    let others = left
        .iter()
        .filter(|t| ![first, caller].contains(&Some(t.handle)));
    let [raised, stopped, .., lowered] = others.copied().collect::<Vec<_>>()[..] else {
        panic!("{} are left", left.len());
    };
    for (thread, priority) in [(raised, 200), (lowered, 1)] {
        w.invoke(
            thread.tcb,
            label::TCB_SET_PRIORITY,
            &[priority],
            &[slot::TCB],
        )
        .expect("set");
        assert_eq!(u64::from(thread.handle.at(&w.k).priority()), priority);
    }
    // Who was let go may be in another tree by now, so nothing of the old one is touched.
    let tree = |w: &World| -> Vec<_> {
        let links = threads.iter().map(|t| t.handle.at(&w.k).links().inspect());
        links.map(|links| (links.leaf, links.node)).collect()
    };
    let before = tree(&w);
    w.invoke(stopped.tcb, label::TCB_SUSPEND, &[], &[])
        .expect("stopped");
    w.invoke(calling.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
        .expect("unbound");
    assert_eq!(calling.handle.at(&w.k).state(), State::Restart);
    assert!(tree(&w) == before);
    let copy = w.copy(endpoint, ALL_RIGHTS).expect("copied");
    w.invoke(
        slot::CNODE,
        label::CNODE_CANCEL_BADGED_SENDS,
        &[copy, 64],
        &[],
    )
    .expect("nobody is looked for");
    assert_eq!(object.at(&w.k).queue().first(), first);
    assert_eq!(object.at(&w.k).queue().inspect().root, BranchView::Nowhere);
    assert_eq!(queued(&w).len(), left.len() - 2);
    w.delete(copy).expect("deleted");
    w.delete(endpoint).expect("deleted");
    assert!(queued(&w).is_empty());
    for thread in threads {
        let state = thread.handle.at(&w.k).state();
        let is_stopped = thread.handle == stopped.handle;
        let expected = if is_stopped {
            State::Inactive
        } else {
            State::Restart
        };
        assert_eq!(state, expected);
    }
}

#[test]
fn a_fault_handler_is_replaced_in_more_than_one_step() {
    let mut w = World::new();
    let (first, second) = (w.make(types::ENDPOINT, 0), w.make(types::ENDPOINT, 0));
    let thread = w.make_thread(50, 8);
    let caps = [first, slot::CNODE, slot::VSPACE];
    w.invoke(thread.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
        .expect("a fault handler");
    w.queue_senders(first);
    w.delete(first).expect("the thread has one more");
    let set = label::TCB_SET_SCHED_PARAMS;
    let words = [100, 70];
    let caps = [slot::TCB, thread.context, second];
    preempted_call(&mut w, thread.tcb, set, &words, &caps);
    assert_eq!(
        thread.handle.at(&w.k).priority(),
        50,
        "the parameters come when the handler is there"
    );
    w.invoke(thread.tcb, set, &words, &caps).expect("set");
    assert_eq!(thread.handle.at(&w.k).priority(), 70);
}
