//! Messages, signals, replies and the time that goes with them.

use sandglass_abi::boot::slot;
use sandglass_abi::fault;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::{MessageRegister, Register};
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::object::reply::Above;
use sandglass_kernel::object::tcb::{Place, State};
use sandglass_testkit::isa;
use sandglass_testkit::service::service;
use sandglass_testkit::world::{World, US};

const ALL: u64 = 0b1111;

#[test]
fn a_call_lends_the_context_and_the_reply_returns_it() {
    let mut w = World::new();
    let s = service(&mut w);
    let context = Some(w.context(s.client.context));
    w.call(s.endpoint, &[1, 2, 3, 4, 5]);
    assert_eq!(w.running(), Some(s.server.handle));
    assert_eq!(s.server.handle.at(&w.k).sched_context(), context);
    assert_eq!(s.client.handle.at(&w.k).sched_context(), None);
    assert_eq!(w.k.core().context(), context, "the client pays");
    assert_eq!(w.message_of(s.server.handle), [1, 2, 3, 4, 5]);
    w.reply_recv(s.endpoint, s.reply, &[6]);
    assert_eq!(w.running(), Some(s.client.handle));
    assert_eq!(s.client.handle.at(&w.k).sched_context(), context);
    assert_eq!(s.server.handle.at(&w.k).sched_context(), None);
    assert_eq!(w.message_of(s.client.handle), [6]);
}

#[test]
fn a_deleted_reply_object_returns_the_context_and_stops_the_caller() {
    let mut w = World::new();
    let s = service(&mut w);
    let context = Some(w.context(s.client.context));
    w.call(s.endpoint, &[]);
    w.wake(s.root_wakes_by);
    w.delete(s.reply).expect("deleted");
    assert_eq!(
        s.client.handle.at(&w.k).sched_context(),
        context,
        "lent time is returned"
    );
    assert_eq!(s.server.handle.at(&w.k).sched_context(), None);
    assert_eq!(s.client.handle.at(&w.k).state(), State::Inactive);
}

/// 04, section 7.5: what is left of the stack names no context any more.
#[test]
fn a_lent_context_that_is_deleted_leaves_no_trace_in_the_stack() {
    let mut w = World::new();
    let s = service(&mut w);
    w.call(s.endpoint, &[]);
    w.wake(s.root_wakes_by);
    let reply = w.cap(s.reply).reply().expect("a reply object").object;
    assert_eq!(
        reply.at(&w.k).above(),
        Above::Context(w.context(s.client.context))
    );
    w.delete(s.client.context).expect("deleted");
    assert_eq!(reply.at(&w.k).above(), Above::Nothing);
    assert_eq!(s.server.handle.at(&w.k).sched_context(), None);
    w.delete(s.reply).expect("deleted");
    assert_eq!(s.client.handle.at(&w.k).state(), State::Inactive);
}

/// 04, section 7.4: who is answered and has no time tells its timeout handler, unless it is that
/// one that has just answered: then it waits.
#[test]
fn who_is_answered_without_time_tells_its_timeout_handler_once() {
    let mut w = World::new();
    let s = service(&mut w);
    w.wake(s.root_wakes_by);
    let timeouts = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let client = s.client;
    let caps = [s.endpoint, slot::CNODE, slot::VSPACE];
    w.invoke(client.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
        .expect("a fault handler");
    w.invoke(
        client.tcb,
        label::TCB_SET_TIMEOUT_ENDPOINT,
        &[],
        &[timeouts],
    )
    .expect("a timeout handler");
    w.wait(s.root_wakes_by);
    assert_eq!(w.running(), Some(client.handle));
    w.event(Event::Trap(Trap::Exception(isa::data_fault(0))));
    assert_eq!(w.running(), Some(s.server.handle), "on the client's time");
    w.pass(6_000 * US);
    assert_eq!(w.running(), None, "which is used up");
    w.wake(s.root_wakes_by);
    let answer = |w: &mut World, reply| {
        w.syscall(Syscall::Send, reply, 0, MessageInfo::default(), &[]);
    };
    let fault = |w: &World| client.handle.at(&w.k).fault();
    answer(&mut w, s.reply);
    assert!(fault(&w).is_some_and(|fault| fault.is_timeout()));
    w.recv(timeouts, reply);
    answer(&mut w, reply);
    assert_eq!(fault(&w), None);
    assert_eq!(client.handle.at(&w.k).state(), State::Restart);
    assert_eq!(client.handle.at(&w.k).place(), Place::Release);
}

#[test]
fn a_suspended_caller_does_not_get_its_context_back() {
    let mut w = World::new();
    let s = service(&mut w);
    w.call(s.endpoint, &[]);
    w.wake(s.root_wakes_by);
    w.invoke(s.client.tcb, label::TCB_SUSPEND, &[], &[])
        .expect("suspended");
    assert_eq!(s.client.handle.at(&w.k).sched_context(), None);
    assert_eq!(
        s.server.handle.at(&w.k).sched_context(),
        Some(w.context(s.client.context))
    );
    assert_eq!(
        w.context(s.client.context).at(&w.k).reply(),
        None,
        "the stack is empty"
    );
    w.wait(s.root_wakes_by);
    assert_eq!(w.running(), Some(s.server.handle));
    w.reply_recv(s.endpoint, s.reply, &[]);
    assert_ne!(w.running(), Some(s.client.handle));
}

#[test]
fn nested_calls_return_time_through_the_whole_stack() {
    let mut w = World::new();
    let s = service(&mut w);
    // A second passive server, above the first, which calls it.
    w.wake(s.root_wakes_by);
    let inner_endpoint = w.make(types::ENDPOINT, 0);
    let inner_reply = w.make(types::REPLY, 0);
    let inner = w.start_thread(210, 5_000, 10_000);
    w.wait(s.root_wakes_by);
    assert_eq!(w.running(), Some(inner.handle));
    w.recv(inner_endpoint, inner_reply);
    w.wake(s.root_wakes_by);
    w.invoke(inner.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
        .expect("unbound");
    w.wait(s.root_wakes_by);
    let context = Some(w.context(s.client.context));
    w.call(s.endpoint, &[]);
    w.call(inner_endpoint, &[]);
    assert_eq!(inner.handle.at(&w.k).sched_context(), context);
    // The server in the middle loses its reply object: its caller is cut off, and the inner
    // server can still return the time to the one in the middle.
    w.wake(s.root_wakes_by);
    w.delete(s.reply).expect("deleted");
    assert_eq!(s.client.handle.at(&w.k).state(), State::Inactive);
    assert_eq!(
        s.client.handle.at(&w.k).sched_context(),
        None,
        "it was not the topmost"
    );
    w.wait(s.root_wakes_by);
    assert_eq!(w.running(), Some(inner.handle));
    w.reply_recv(inner_endpoint, inner_reply, &[]);
    assert_eq!(w.running(), Some(s.server.handle));
    assert_eq!(s.server.handle.at(&w.k).sched_context(), context);
}

#[test]
fn a_server_does_not_outlast_its_clients_budget() {
    let mut w = World::new();
    let s = service(&mut w);
    w.call(s.endpoint, &[]);
    w.pass(20_000 * US);
    let context = w.context(s.client.context).address().get();
    let runs: Vec<_> = w
        .ran
        .iter()
        .filter(|run| run.2 == context)
        .copied()
        .collect();
    for run in &runs {
        let (from, to) = (run.0, run.0 + 10_000 * US);
        let inside: u64 = runs
            .iter()
            .map(|r| r.1.min(to).saturating_sub(r.0.max(from)))
            .sum();
        assert!(
            inside <= 5_000 * US + sandglass_testkit::world::KERNEL_PATH,
            "{inside} ticks in one window"
        );
    }
}

#[test]
fn a_signal_reaches_a_receiver_by_its_bound_notification() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let notification = w.make(types::NOTIFICATION, 0);
    let badged = w.mint(notification, ALL, 0x30).expect("minted");
    let thread = w.start_thread(100, 5_000, 10_000);
    w.invoke(
        thread.tcb,
        label::TCB_BIND_NOTIFICATION,
        &[],
        &[notification],
    )
    .expect("bound");
    let sleep = w.sleep();
    w.recv(endpoint, reply);
    assert!(matches!(
        thread.handle.at(&w.k).state(),
        State::BlockedOnReceive { .. }
    ));
    w.wake(sleep);
    let before = thread.handle.at(&w.k).context().info();
    w.syscall(Syscall::Send, badged, 0, MessageInfo::new(0, 0, 0, 1), &[]);
    let context = thread.handle.at(&w.k).context();
    assert_eq!(context.cap_register(), 0x30);
    assert_eq!(context.info(), before, "only the badge is written");
    assert!(thread.handle.at(&w.k).is_runnable());
    // Signals that nobody waits for add up.
    let other = w.mint(notification, ALL, 0x5).expect("minted");
    for cap in [badged, other] {
        w.syscall(Syscall::Send, cap, 0, MessageInfo::new(0, 0, 0, 1), &[]);
    }
    w.wait(sleep);
    assert_eq!(w.running(), Some(thread.handle));
    w.recv(endpoint, reply);
    assert_eq!(w.registers().cap_register(), 0x35);
}

#[test]
fn senders_are_served_by_priority_and_in_order() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let priorities = [10, 30, 20, 30, 10];
    let mut threads = Vec::new();
    for (i, priority) in priorities.into_iter().enumerate() {
        let badged = w.mint(endpoint, ALL, i as u64 + 1).expect("minted");
        threads.push((w.start_thread(priority, 1_000, 10_000), badged));
    }
    let sleep = w.sleep();
    while let Some(running) = w.running() {
        let &(_, badged) = threads
            .iter()
            .find(|(t, _)| t.handle == running)
            .expect("a sender");
        w.syscall(Syscall::Send, badged, 0, MessageInfo::default(), &[]);
    }
    w.wake(sleep);
    // The last one overtakes all but its equals.
    w.invoke(
        threads[4].0.tcb,
        label::TCB_SET_PRIORITY,
        &[30],
        &[slot::TCB],
    )
    .expect("set");
    let mut order = Vec::new();
    for _ in priorities {
        w.recv(endpoint, reply);
        order.push(w.registers().cap_register());
    }
    // Of the two of priority 30 the one resumed last ran first (04, section 8.2).
    assert_eq!(
        order,
        [4, 2, 5, 3, 1],
        "badges of the senders as they are served"
    );
}

#[test]
fn a_fault_becomes_a_message_and_the_reply_changes_registers() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let thread = w.start_thread(100, 5_000, 10_000);
    let caps = [endpoint, slot::CNODE, slot::VSPACE];
    w.invoke(thread.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
        .expect("a fault handler");
    w.recv(endpoint, reply);
    assert_eq!(w.running(), Some(thread.handle));
    w.registers().set(&*w.k, Register::FaultIp, 0x1234);
    w.registers().set(&*w.k, Register::NextIp, 0x1234);
    w.event(Event::Trap(Trap::Exception(isa::exception(6))));
    let handler = w.running().expect("the handler");
    assert_ne!(handler, thread.handle);
    assert_eq!(
        MessageInfo::from_raw(w.registers().info()).label(),
        fault::USER_EXCEPTION
    );
    let message = w.message_of(handler);
    assert_eq!((message.len(), message[0], message[3]), (5, 0x1234, 6));
    w.reply_recv(endpoint, reply, &[0x5678, 0x9000, 0xffff_ffff]);
    assert_eq!(w.running(), Some(thread.handle));
    let context = w.registers();
    assert_eq!(context.get(Register::NextIp), 0x5678);
    assert_eq!(context.get(isa::SP), 0x9000);
    assert_eq!(context.get(isa::FLAGS), isa::SANITISED_FLAGS, "sanitised");
    // A page fault, and a system call that does not exist.
    w.event(Event::Trap(Trap::Exception(isa::data_fault(0xdead_0000))));
    assert_eq!(
        w.message_of(handler)[1..],
        [0xdead_0000, 0, isa::DATA_FAULT]
    );
    w.reply_recv(endpoint, reply, &[]);
    w.registers().set(&*w.k, isa::NUMBER, 42);
    w.event(Event::Syscall);
    assert_eq!(
        MessageInfo::from_raw(w.registers().info()).label(),
        fault::UNKNOWN_SYSCALL
    );
    assert_eq!(w.message_of(handler).last(), Some(&42));
    w.reply_recv(endpoint, reply, &[]);
    w.event(Event::Trap(Trap::Exception(isa::exception(6))));
    // Refused: the thread stops.
    let info = MessageInfo::new(1, 0, 0, 0);
    w.syscall(Syscall::Send, reply, 0, info, &[]);
    assert_eq!(thread.handle.at(&w.k).state(), State::Inactive);
}

/// 02, section 7.4.
#[test]
fn who_waits_to_tell_of_a_fault_stays_inactive_when_the_message_is_cancelled() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let handler = w.mint(endpoint, ALL, 7).expect("a badge");
    let thread = w.start_thread(100, 5_000, 10_000);
    let caps = [handler, slot::CNODE, slot::VSPACE];
    w.invoke(thread.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
        .expect("a fault handler");
    let root_wakes_by = w.sleep();
    assert_eq!(w.running(), Some(thread.handle));
    w.event(Event::Trap(Trap::Exception(isa::data_fault(0xdead_0000))));
    let waits = matches!(thread.handle.at(&w.k).state(), State::BlockedOnSend { .. });
    assert!(waits, "nobody receives");
    w.wake(root_wakes_by);
    let words = [handler, 64];
    w.invoke(slot::CNODE, label::CNODE_CANCEL_BADGED_SENDS, &words, &[])
        .expect("cancelled");
    assert_eq!(thread.handle.at(&w.k).state(), State::Inactive);
    assert!(thread.handle.at(&w.k).fault().is_none());
}

#[test]
fn a_bad_capability_of_a_receive_faults_with_the_right_pointer() {
    let mut w = World::new();
    let handler = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let endpoint = w.make(types::ENDPOINT, 0);
    let thread = w.start_thread(100, 5_000, 10_000);
    let caps = [handler, slot::CNODE, slot::VSPACE];
    w.invoke(thread.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
        .expect("a fault handler");
    let root = w.running().expect("the root task");
    w.recv(handler, reply);
    // The reply capability is a notification's.
    let wrong = slot::DOMAIN;
    w.recv(endpoint, wrong);
    assert_eq!(w.running(), Some(root));
    assert_eq!(
        MessageInfo::from_raw(w.registers().info()).label(),
        fault::CAP_FAULT
    );
    assert_eq!(
        w.message_of(root)[1..],
        [wrong, 1, 2, 0],
        "the reply capability's pointer"
    );
}

#[test]
fn deleting_an_endpoint_restarts_whoever_waits_there() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let threads: Vec<_> = (0..20).map(|_| w.start_thread(50, 1_000, 10_000)).collect();
    let sleep = w.sleep();
    while w.running().is_some() {
        w.call(endpoint, &[]);
    }
    w.wake(sleep);
    w.k.machine.set_interrupt_pending(true);
    w.delete(endpoint).expect("deleted in the end");
    w.k.machine.set_interrupt_pending(false);
    for thread in threads {
        assert_eq!(thread.handle.at(&w.k).state(), State::Restart);
    }
}

#[test]
fn cancelled_sends_are_those_of_the_badge() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let badges = [
        w.mint(endpoint, ALL, 1).expect("minted"),
        w.mint(endpoint, ALL, 2).expect("m"),
    ];
    let threads: Vec<_> = (0..40)
        .map(|i| (w.start_thread(50, 1_000, 10_000), badges[i % 2]))
        .collect();
    let sleep = w.sleep();
    while let Some(running) = w.running() {
        let &(_, cap) = threads
            .iter()
            .find(|(t, _)| t.handle == running)
            .expect("a sender");
        w.syscall(Syscall::Send, cap, 0, MessageInfo::default(), &[]);
    }
    w.wake(sleep);
    w.k.machine.set_interrupt_pending(true);
    w.invoke(
        slot::CNODE,
        label::CNODE_CANCEL_BADGED_SENDS,
        &[badges[0], 64],
        &[],
    )
    .expect("done");
    w.k.machine.set_interrupt_pending(false);
    for (thread, badge) in threads {
        let restarted = thread.handle.at(&w.k).state() == State::Restart;
        assert_eq!(restarted, badge == badges[0]);
    }
}

#[test]
fn message_registers_beyond_the_message_are_left_alone() {
    let mut w = World::new();
    let s = service(&mut w);
    let server = s.server.handle;
    server
        .at(&w.k)
        .context()
        .set_message(&*w.k, MessageRegister::Mr2, 0x1111);
    w.call(s.endpoint, &[7, 8]);
    assert_eq!(
        server.at(&w.k).context().message(MessageRegister::Mr2),
        0x1111
    );
}

/// 02, section 7.4: a cancellation that was preempted and given up is not another's beginning.
#[test]
fn a_cancellation_begins_at_the_first_sender_whatever_was_given_up() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let badges = [1, 2].map(|badge| w.mint(endpoint, ALL, badge).expect("minted"));
    let threads: Vec<_> = (0..40)
        .map(|i| (w.start_thread(50, 1_000, 10_000), badges[i % 2]))
        .collect();
    let sleep = w.sleep();
    let mut first = None;
    while let Some(running) = w.running() {
        let sender = threads.iter().find(|(t, _)| t.handle == running);
        let &(_, cap) = sender.expect("a sender");
        first.get_or_insert(cap);
        w.syscall(Syscall::Send, cap, 0, MessageInfo::default(), &[]);
    }
    w.wake(sleep);
    let mut badges = badges;
    if first != Some(badges[0]) {
        badges.reverse();
    }
    let cancel = label::CNODE_CANCEL_BADGED_SENDS;
    w.k.machine.set_interrupt_pending(true);
    let info = MessageInfo::new(cancel, 0, 0, 2);
    w.syscall(Syscall::Call, slot::CNODE, 0, info, &[badges[0], 64]);
    w.k.machine.set_interrupt_pending(false);
    w.invoke(slot::CNODE, cancel, &[badges[1], 64], &[])
        .expect("done");
    let restarted = |badge| {
        let of_badge = threads.iter().filter(|(_, own)| *own == badge);
        let states = of_badge.map(|(thread, _)| thread.handle.at(&w.k).state());
        states.filter(|&state| state == State::Restart).count()
    };
    assert_eq!(restarted(badges[1]), 20);
    assert!((1..20).contains(&restarted(badges[0])), "preempted");
}
