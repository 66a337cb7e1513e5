//! Properties that a review of the kernel found broken: what happens between the steps of long
//! operations, and to what they leave behind.

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::fault;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::registers_flags as flags;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::{Event, Trap};
use sandglass_kernel::object::tcb::State;
use sandglass_testkit::call;
use sandglass_testkit::isa::{self, SYSCALL_INSTRUCTION_BYTES};
use sandglass_testkit::world::{Thread, World, US};

const ALL: u64 = 0b1111;
/// Priority of the root task where threads above it are needed.
const ROOT_PRIORITY: u64 = 200;

fn lower_root(w: &mut World) {
    let words = [ROOT_PRIORITY];
    w.invoke(slot::TCB, label::TCB_SET_PRIORITY, &words, &[slot::TCB])
        .expect("a priority");
}

/// Executes the preempted call of whoever runs until it is done.
fn finish_call(w: &mut World) {
    let caller = w.running().expect("a thread runs");
    loop {
        let context = caller.at(&w.k).context();
        if w.running() != Some(caller) || context.get(Register::NextIp) != context.fault_ip() {
            return;
        }
        context.set(
            &*w.k,
            Register::NextIp,
            context.fault_ip() + SYSCALL_INSTRUCTION_BYTES,
        );
        w.event(Event::Syscall);
    }
}

fn set_fault_handler(w: &mut World, thread: Thread, handler: u64) {
    let caps = [handler, slot::CNODE, slot::VSPACE];
    w.invoke(thread.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
        .expect("a handler");
}

/// 04, section 10, and 02, section 7: cancelling the IPC of a thread, which Resume does, clears
/// its fault, also that of a thread which became inactive because the handler offered no reply
/// object (05, section 3).
#[test]
fn a_resumed_thread_has_no_fault_pending() {
    let mut w = World::new();
    let (handler, service) = (w.make(types::ENDPOINT, 0), w.make(types::ENDPOINT, 0));
    let reply = w.make(types::REPLY, 0);
    let thread = w.start_thread(100, 5_000, 10_000);
    set_fault_handler(&mut w, thread, handler);
    w.wait(handler);
    assert_eq!(w.running(), Some(thread.handle));
    w.event(Event::Trap(Trap::Exception(isa::data_fault(0x1234))));
    assert_eq!(thread.handle.at(&w.k).state(), State::Inactive);
    let root = w.running().expect("the handler runs");
    w.resume(thread);
    w.recv(service, reply);
    assert_eq!(w.running(), Some(thread.handle));
    let info = MessageInfo::new(77, 0, 0, 1);
    w.syscall(Syscall::Call, service, 0, info, &[4711]);
    assert_eq!(w.running(), Some(root));
    let info = MessageInfo::from_raw(w.registers().info());
    assert_eq!(info.label(), 77, "the message, not the fault of long ago");
    assert_eq!(w.message_of(root), [4711]);
}

/// A thread of priority 250 in whose handler slot is the last capability to an endpoint that the
/// root task is deleting; it was preempted, and the thread has just been woken.
fn thread_with_dying_handler(w: &mut World, timeout: bool) -> Thread {
    lower_root(w);
    let endpoint = w.make(types::ENDPOINT, 0);
    let empty = w.fresh_slot();
    let thread = w.make_thread(250, 8);
    w.configure(thread.context, 100, 1_000, 0, 0);
    w.bind(thread);
    if timeout {
        let caps = [endpoint];
        w.invoke(thread.tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &caps)
            .expect("a handler");
    } else {
        set_fault_handler(w, thread, endpoint);
    }
    let wakes_by = w.make(types::NOTIFICATION, 0);
    w.resume(thread);
    assert_eq!(w.running(), Some(thread.handle));
    w.wait(wakes_by);
    w.queue_senders(endpoint);
    w.delete(endpoint).expect("deleted");
    w.k.machine.set_interrupt_pending(true);
    if timeout {
        w.call_once(thread.tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &[empty]);
    } else {
        let caps = [empty, slot::CNODE, slot::VSPACE];
        w.call_once(thread.tcb, label::TCB_SET_SPACE, &[0, 0], &caps);
    }
    w.k.machine.set_interrupt_pending(false);
    w.wake(wakes_by);
    assert_eq!(w.running(), Some(thread.handle));
    thread
}

/// 05, section 3: a thread that faults does not go on by itself, even while its handler's endpoint
/// is being deleted.
#[test]
fn a_fault_stops_the_thread_while_the_handler_is_being_deleted() {
    let mut w = World::new();
    let thread = thread_with_dying_handler(&mut w, false);
    w.event(Event::Trap(Trap::Exception(isa::data_fault(0x1234))));
    assert!(
        !thread.handle.at(&w.k).is_runnable(),
        "{:?} with {:?}",
        thread.handle.at(&w.k).state(),
        thread.handle.at(&w.k).fault()
    );
}

/// Design, promise 3: no thread exceeds its budget, even while its timeout handler's endpoint is
/// being deleted.
#[test]
fn a_budget_holds_while_the_timeout_handler_is_being_deleted() {
    let mut w = World::new();
    let thread = thread_with_dying_handler(&mut w, true);
    let from = w.now();
    w.pass(900 * US);
    let context = w.context(thread.context).address().get();
    let used = w.usage(from, from + 900 * US)[&context];
    assert!(used <= 110 * US, "{} µs of 100", used / US);
}

/// A client of priority 100 whose Retype of 64 TCBs into the returned slots was preempted, and
/// what the root task waits for.
fn preempted_retype(w: &mut World, waits: impl FnOnce(&mut World, Thread)) -> (Thread, u64) {
    let untyped = w.make(types::UNTYPED, 18);
    let first = w.fresh_slot();
    for _ in 1..64 {
        w.fresh_slot();
    }
    let client = w.start_thread(100, 100, 1_000);
    waits(w, client);
    assert_eq!(w.running(), Some(client.handle));
    w.k.machine.set_interrupt_pending(true);
    retype(w, untyped, first);
    w.k.machine.set_interrupt_pending(false);
    assert!(!w.cap(first).is_null() && w.cap(first + 63).is_null());
    (client, first)
}

fn retype(w: &mut World, untyped: u64, first: u64) {
    let words = [types::TCB, 0, 0, 0, first, 64];
    w.call_once(untyped, label::UNTYPED_RETYPE, &words, &[slot::CNODE]);
}

/// 03, section 3, and 05, section 6: a timeout handler that replies without changing a register
/// lets the system call go on as if nothing had happened.
#[test]
fn a_retype_survives_a_timeout_fault() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let (client, _) = preempted_retype(&mut w, |w, client| {
        let caps = [endpoint];
        w.invoke(client.tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &caps)
            .expect("a handler");
        w.recv(endpoint, reply);
    });
    w.pass(150 * US);
    assert_eq!(
        MessageInfo::from_raw(w.registers().info()).label(),
        fault::TIMEOUT
    );
    w.configure(client.context, 100, 1_000, 0, 0);
    w.reply_recv(endpoint, reply, &[]);
    assert_eq!(w.running(), Some(client.handle));
    finish_call(&mut w);
    assert_eq!(w.result(client.handle), Ok(vec![]));
}

/// 04, section 10: Suspend and Resume make a thread repeat its system call; what it had done of it
/// stays done, and the rest is done then.
#[test]
fn a_retype_survives_suspend_and_resume() {
    let mut w = World::new();
    let wakes_by = w.make(types::NOTIFICATION, 0);
    let (client, _) = preempted_retype(&mut w, |w, _| w.wait(wakes_by));
    w.wake(wakes_by);
    w.invoke(client.tcb, label::TCB_SUSPEND, &[], &[])
        .expect("suspended");
    w.resume(client);
    w.wait(wakes_by);
    assert_eq!(w.running(), Some(client.handle));
    finish_call(&mut w);
    assert_eq!(w.result(client.handle), Ok(vec![]));
}

/// 03, section 3: every Retype that succeeds makes all its objects; what an earlier one, that
/// failed when it was restarted, had made does not count.
#[test]
fn a_failed_retype_leaves_no_mark_on_the_next() {
    let mut w = World::new();
    let wakes_by = w.make(types::NOTIFICATION, 0);
    let obstacle = w.make(types::ENDPOINT, 0);
    let (client, first) = preempted_retype(&mut w, |w, _| w.wait(wakes_by));
    let untyped = first - 1;
    w.wake(wakes_by);
    let words = [first + 40, 64, obstacle, 64, ALL];
    w.invoke(slot::CNODE, label::CNODE_COPY, &words, &[slot::CNODE])
        .expect("copied");
    w.wait(wakes_by);
    assert_eq!(w.running(), Some(client.handle));
    finish_call(&mut w);
    let error = w.result(client.handle).expect_err("a slot is occupied");
    assert_eq!(error.error, ErrorNumber::DeleteFirst);
    for i in 0..64 {
        w.delete(first + i).expect("deleted");
    }
    retype(&mut w, untyped, first);
    assert_eq!(w.result(client.handle), Ok(vec![]));
    let missing = (0..64).filter(|i| w.cap(first + i).is_null()).count();
    assert_eq!(missing, 0, "objects that a successful Retype did not make");
}

/// 02, section 6: CancelBadgedSends cancels every queued send with the badge; what an earlier
/// call, that failed when it was restarted, had left alone does not count.
#[test]
fn a_failed_cancellation_leaves_no_mark_on_the_next() {
    let mut w = World::new();
    lower_root(&mut w);
    let endpoint = w.make(types::ENDPOINT, 0);
    let badged = w.mint(endpoint, ALL, 1).expect("minted");
    let away = w.fresh_slot();
    let wakes_by = w.make(types::NOTIFICATION, 0);
    let sleep = w.make(types::NOTIFICATION, 0);
    let other = w.start_thread(250, 1_000, 10_000);
    assert_eq!(w.running(), Some(other.handle));
    w.wait(wakes_by);
    w.queue_senders(badged);
    w.k.machine.set_interrupt_pending(true);
    let words = [badged, 64];
    w.call_once(slot::CNODE, label::CNODE_CANCEL_BADGED_SENDS, &words, &[]);
    w.k.machine.set_interrupt_pending(false);
    // Somebody takes the capability away for a moment: the restarted call fails.
    w.wake(wakes_by);
    assert_eq!(w.running(), Some(other.handle));
    let there = [away, 64, badged, 64];
    w.invoke(slot::CNODE, label::CNODE_MOVE, &there, &[slot::CNODE])
        .expect("moved");
    w.wait(wakes_by);
    finish_call(&mut w);
    let root = w.running().expect("the root task");
    w.result(root).expect_err("no capability is there");
    let back = [badged, 64, away, 64];
    w.invoke(slot::CNODE, label::CNODE_MOVE, &back, &[slot::CNODE])
        .expect("moved");
    // Everybody sends again.
    w.wait(sleep);
    while let Some(sender) = w.running() {
        assert_ne!(sender, root);
        w.call(badged, &[]);
    }
    w.wake(sleep);
    let cap = w.cap(badged).endpoint().expect("an endpoint");
    assert!(!cap.object.at(&w.k).queue().is_empty());
    w.invoke(slot::CNODE, label::CNODE_CANCEL_BADGED_SENDS, &words, &[])
        .expect("cancelled");
    assert!(cap.object.at(&w.k).queue().is_empty(), "senders are left");
}

/// 01, section 5.5: a blocking Wait returns with a signal, or not at all, even while the
/// notification is being deleted.
#[test]
fn a_wait_for_a_dying_notification_does_not_return() {
    let mut w = World::new();
    lower_root(&mut w);
    let (notification, wakes_by) = (
        w.make(types::NOTIFICATION, 0),
        w.make(types::NOTIFICATION, 0),
    );
    let thread = w.start_thread(250, 1_000, 10_000);
    assert_eq!(w.running(), Some(thread.handle));
    w.wait(wakes_by);
    for _ in 0..20 {
        w.start_thread(50, 1_000, 10_000);
    }
    let sleep = w.sleep();
    while w.running().is_some() {
        w.wait(notification);
    }
    w.wake(sleep);
    w.k.machine.set_interrupt_pending(true);
    w.call_once(slot::CNODE, label::CNODE_DELETE, &[notification, 64], &[]);
    w.k.machine.set_interrupt_pending(false);
    w.wake(wakes_by);
    assert_eq!(w.running(), Some(thread.handle));
    w.wait(notification);
    assert_ne!(w.running(), Some(thread.handle), "nobody signalled");
}

/// 01, sections 1 and 7: on one core, the calls for several cores are unknown system calls.
#[cfg(all(feature = "debug", not(feature = "smp")))]
#[test]
fn debug_calls_for_several_cores_are_unknown_on_one() {
    for call in [Syscall::DebugSendIPI, Syscall::DebugGetThreadAffinity] {
        let mut w = World::new();
        let root = w.running().expect("the root task");
        w.syscall(call, slot::TCB, 0, MessageInfo::default(), &[]);
        assert_eq!(root.at(&w.k).state(), State::Inactive, "{call:?} faults");
    }
}

/// 02, section 7.1: what got a new capability while it was being emptied is as good as new.
#[test]
fn an_endpoint_that_is_copied_while_it_is_emptied_lives_on() {
    let mut w = World::new();
    lower_root(&mut w);
    let endpoint = w.make(types::ENDPOINT, 0);
    w.queue_senders(endpoint);
    w.k.machine.set_interrupt_pending(true);
    let delete = label::CNODE_DELETE;
    w.call_once(slot::CNODE, delete, &[endpoint, 64], &[]);
    w.k.machine.set_interrupt_pending(false);
    let object = w.cap(endpoint).endpoint().expect("half done").object;
    assert!(!object.at(&w.k).queue().admits());
    let copy = w.copy(endpoint, ALL).expect("copied");
    w.delete(endpoint).expect("deleted");
    assert!(object.at(&w.k).queue().admits());
    let sender = w.start_thread(250, 1_000, 10_000);
    assert_eq!(w.running(), Some(sender.handle));
    w.call(copy, &[7]);
    assert!(matches!(
        sender.handle.at(&w.k).state(),
        State::BlockedOnSend { .. }
    ));
}

/// As above, and a signal that comes then is not lost.
#[test]
fn a_notification_that_is_copied_while_it_is_emptied_lives_on() {
    let mut w = World::new();
    let notification = w.make(types::NOTIFICATION, 0);
    for _ in 0..20 {
        w.start_thread(50, 1_000, 10_000);
    }
    let sleep = w.sleep();
    while w.running().is_some() {
        w.wait(notification);
    }
    w.wake(sleep);
    w.k.machine.set_interrupt_pending(true);
    let delete = label::CNODE_DELETE;
    w.call_once(slot::CNODE, delete, &[notification, 64], &[]);
    w.k.machine.set_interrupt_pending(false);
    let object = w
        .cap(notification)
        .notification()
        .expect("half done")
        .object;
    assert!(!object.at(&w.k).queue().admits() && !object.at(&w.k).is_active());
    let copy = w.copy(notification, ALL).expect("copied");
    w.delete(notification).expect("deleted");
    assert!(object.at(&w.k).queue().admits() && !object.at(&w.k).is_active());
    let none = MessageInfo::default();
    w.syscall(Syscall::Send, copy, 0, none, &[]);
    assert!(object.at(&w.k).is_active());
    let root = w.running();
    w.wait(copy);
    assert_eq!(w.running(), root, "the signal was there");
}

/// 01, section 8: work on nobody's time does not go on; and who has lost its context does not run.
#[test]
fn an_operation_that_deletes_its_callers_context_stops() {
    let mut w = World::new();
    lower_root(&mut w);
    let memory = w.make(types::UNTYPED, 16);
    let first = w.make_endpoints(memory, 200);
    let context = w.fresh_slot();
    w.retype(memory, types::SCHED_CONTEXT, 8, context, 1)
        .expect("a context, which goes first");
    let thread = w.make_thread(250, 8);
    w.configure(context, 1_000, 10_000, 0, 0);
    w.invoke(context, label::SCHED_CONTEXT_BIND, &[], &[thread.tcb])
        .expect("bound");
    w.resume(thread);
    assert_eq!(w.running(), Some(thread.handle));
    let root_cnode = slot::CNODE;
    w.call_once(root_cnode, label::CNODE_REVOKE, &[memory, 64], &[]);
    assert_ne!(w.running(), Some(thread.handle));
    assert_eq!(thread.handle.at(&w.k).sched_context(), None);
    assert_eq!(thread.handle.at(&w.k).state(), State::Restart);
    let left = (0..200).filter(|i| !w.cap(first + i).is_null()).count();
    assert!(left > 150, "only {left} of 200 are left");
}

/// 04, section 6.4: a long operation ends with the budget, which is charged, and its thread waits.
#[test]
fn a_budget_that_ends_in_a_long_operation_ends_it() {
    let mut w = World::new();
    lower_root(&mut w);
    let memory = w.make(types::UNTYPED, 16);
    let first = w.make_endpoints(memory, 200);
    let thread = w.start_thread(250, 1_000, 10_000);
    assert_eq!(w.running(), Some(thread.handle));
    let start = w.context(thread.context).at(&w.k).head().time;
    w.k.machine.set_ticks_per_look(100 * US);
    w.call_once(slot::CNODE, label::CNODE_REVOKE, &[memory, 64], &[]);
    w.k.machine.set_ticks_per_look(0);
    assert_ne!(w.running(), Some(thread.handle));
    assert!(!w.cap(first).is_null(), "the first endpoint goes last");
    let head = w.context(thread.context).at(&w.k).head();
    assert!(
        head.time >= start + 10_000 * US,
        "the next budget comes a period later"
    );
}

/// 03, sections 4.2 and 4.3, and 05, section 6: a thread that is given another address at which it goes on makes another call,
/// be it the same in every respect; what it had done of the first, and what of that has been taken away, does not count.
fn retype_of_a_thread_begun_anew(begin: impl FnOnce(&mut World, Thread, u64, u64)) {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let mut start = 0;
    let (client, first) = preempted_retype(&mut w, |w, client| {
        let caps = [endpoint];
        w.invoke(client.tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &caps)
            .expect("a handler");
        w.recv(endpoint, reply);
        start = w.registers().get(Register::NextIp);
    });
    w.pass(150 * US);
    let info = MessageInfo::from_raw(w.registers().info());
    assert_eq!(info.label(), fault::TIMEOUT);
    let untyped = first - 1;
    w.revoke(untyped).expect("revoked");
    w.configure(client.context, 100, 1_000, 0, 0);
    begin(&mut w, client, start, reply);
    if w.running() != Some(client.handle) {
        w.recv(endpoint, reply);
    }
    assert_eq!(w.running(), Some(client.handle));
    assert_eq!(w.registers().get(Register::NextIp), start);
    retype(&mut w, untyped, first);
    assert_eq!(w.result(client.handle), Ok(vec![]));
    let missing = (0..64).filter(|i| w.cap(first + i).is_null()).count();
    assert_eq!(missing, 0, "objects that a successful Retype did not make");
}

#[test]
fn a_thread_with_registers_written_makes_another_call() {
    retype_of_a_thread_begun_anew(|w, client, start, _| {
        let words = [flags::WRITE_RESUME_TARGET, 1, start];
        w.invoke(client.tcb, label::TCB_WRITE_REGISTERS, &words, &[])
            .expect("begun anew");
    });
}

#[test]
fn a_thread_with_registers_of_another_makes_another_call() {
    retype_of_a_thread_begun_anew(|w, client, start, _| {
        let model = w.make_thread(50, 8);
        w.invoke(model.tcb, label::TCB_WRITE_REGISTERS, &[0, 1, start], &[])
            .expect("written");
        let words = [flags::COPY_RESUME_TARGET | flags::COPY_TRANSFER_FRAME];
        w.invoke(client.tcb, label::TCB_COPY_REGISTERS, &words, &[model.tcb])
            .expect("begun anew");
    });
}

#[test]
fn a_thread_whose_timeout_is_answered_with_registers_makes_another_call() {
    retype_of_a_thread_begun_anew(|w, _, start, reply| {
        let info = MessageInfo::new(0, 0, 0, 1);
        w.syscall(Syscall::Send, reply, 0, info, &[start]);
    });
}

/// What becomes of twenty senders with a badge, if the CancelBadgedSends that is to restart them is preempted, and then, of
/// those that it has not come to, one is given this priority, which it has or not: how many are left at the endpoint.
fn left_by_a_cancellation(priority: Option<u64>) -> usize {
    let mut w = World::new();
    lower_root(&mut w);
    let endpoint = w.make(types::ENDPOINT, 0);
    let badged = w.mint(endpoint, ALL, 7).expect("badged");
    let other_badge = w.mint(endpoint, ALL, 8).expect("badged");
    let wakes_by = w.make(types::NOTIFICATION, 0);
    let other = w.start_thread(250, 1_000, 10_000);
    assert_eq!(w.running(), Some(other.handle));
    w.wait(wakes_by);
    let start = |w: &mut World| w.start_thread(50, 1_000, 10_000);
    let bystander = start(&mut w);
    let threads: Vec<Thread> = (0..20).map(|_| start(&mut w)).collect();
    let sleep = w.sleep();
    while let Some(sender) = w.running() {
        let is_bystander = sender == bystander.handle;
        w.call(if is_bystander { other_badge } else { badged }, &[]);
    }
    w.wake(sleep);
    let root = w.running().expect("the root task");
    let words = [badged, 64];
    w.k.machine.set_interrupt_pending(true);
    w.call_once(slot::CNODE, label::CNODE_CANCEL_BADGED_SENDS, &words, &[]);
    w.k.machine.set_interrupt_pending(false);
    let sends = |w: &World, thread: &&Thread| {
        let state = thread.handle.at(&w.k).state();
        matches!(state, State::BlockedOnSend { .. })
    };
    let waiting: Vec<Thread> = threads.iter().filter(|it| sends(&w, it)).copied().collect();
    assert!((1..20).contains(&waiting.len()), "{}", waiting.len());
    w.wake(wakes_by);
    assert_eq!(w.running(), Some(other.handle));
    if let Some(priority) = priority {
        for thread in [waiting[3], bystander] {
            let set = w.invoke(
                thread.tcb,
                label::TCB_SET_PRIORITY,
                &[priority],
                &[slot::TCB],
            );
            set.expect("a priority");
        }
    }
    w.wait(wakes_by);
    assert_eq!(w.running(), Some(root));
    finish_call(&mut w);
    w.result(root).expect("cancelled");
    assert!(sends(&w, &&bystander), "of another badge");
    threads.iter().filter(|it| sends(&w, it)).count()
}

/// 02, section 7.4: every queued sender with the badge is restarted, whatever place it has meanwhile.
#[test]
fn no_sender_escapes_a_cancellation_by_another_place() {
    for priority in [None, Some(10), Some(50), Some(60)] {
        assert_eq!(left_by_a_cancellation(priority), 0, "{priority:?}");
    }
}

/// The same where another cancellation was preempted in between, on the same core: the first begins anew.
#[test]
fn a_cancellation_that_another_one_followed_begins_anew() {
    let mut w = World::new();
    lower_root(&mut w);
    let [first, second] = [7, 8].map(|badge| {
        let endpoint = w.make(types::ENDPOINT, 0);
        w.mint(endpoint, ALL, badge).expect("badged")
    });
    let wakes_by = w.make(types::NOTIFICATION, 0);
    let other = w.start_thread(250, 1_000, 10_000);
    assert_eq!(w.running(), Some(other.handle));
    w.wait(wakes_by);
    w.queue_senders(second);
    let start = |w: &mut World| w.start_thread(50, 1_000, 10_000);
    let threads: Vec<Thread> = (0..20).map(|_| start(&mut w)).collect();
    let sleep = w.sleep();
    while w.running().is_some() {
        w.call(first, &[]);
    }
    w.wake(sleep);
    let root = w.running().expect("the root task");
    let cancel = |w: &mut World, badged| {
        w.k.machine.set_interrupt_pending(true);
        let words = [badged, 64];
        w.call_once(slot::CNODE, label::CNODE_CANCEL_BADGED_SENDS, &words, &[]);
        w.k.machine.set_interrupt_pending(false);
    };
    let sends = |w: &World, thread: &&Thread| {
        let state = thread.handle.at(&w.k).state();
        matches!(state, State::BlockedOnSend { .. })
    };
    cancel(&mut w, first);
    w.wake(wakes_by);
    assert_eq!(w.running(), Some(other.handle));
    cancel(&mut w, second);
    let waiting = threads.iter().find(|it| sends(&w, it)).expect("a sender");
    let set = w.invoke(waiting.tcb, label::TCB_SET_PRIORITY, &[60], &[slot::TCB]);
    set.expect("a priority");
    w.wait(wakes_by);
    assert_eq!(w.running(), Some(root));
    finish_call(&mut w);
    w.result(root).expect("cancelled");
    assert_eq!(threads.iter().filter(|it| sends(&w, it)).count(), 0);
}

/// Two threads with slices in turn, each of which cancels at an endpoint of its own and comes past one sender of another badge in
/// a slice: both get to the end, in as many slices as there are senders.
#[test]
fn cancellations_on_one_core_do_not_keep_each_other_from_ending() {
    const SENDERS: usize = 20;
    let mut w = World::new();
    let badged = [0, 1].map(|_| {
        let endpoint = w.make(types::ENDPOINT, 0);
        let [own, of_others] = [7, 8].map(|badge| w.mint(endpoint, ALL, badge).expect("badged"));
        w.queue_senders(of_others);
        own
    });
    let callers = [0, 1].map(|_| w.start_thread(100, 1_000, 1_000));
    w.sleep();
    w.k.machine.set_interrupt_pending(true);
    let mut slices = [0, 0];
    let mut ended = 0;
    while ended < callers.len() {
        let running = w.running().expect("slices follow each other");
        let which = usize::from(running == callers[1].handle);
        match slices[which] {
            0 => w.call_once(
                slot::CNODE,
                label::CNODE_CANCEL_BADGED_SENDS,
                &[badged[which], 64],
                &[],
            ),
            _ => {
                call::step(&w.k, running);
                w.event(Event::Syscall);
            }
        }
        slices[which] += 1;
        assert!(slices[which] <= SENDERS, "it begins anew each time");
        if call::is_preempted(&w.k, running) {
            w.pass(1_000 * US);
        } else {
            w.sleep_of(callers[which]);
            ended += 1;
        }
    }
    assert_eq!(slices, [SENDERS; 2]);
}
