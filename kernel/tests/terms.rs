//! On what terms a message passes: rights of the endpoint, buffers, capabilities that cannot be
//! copied, time that goes with it (01, section 5; 02, section 8; 04, section 7.3).

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::message::{ipc_buffer, MessageInfo};
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::ipc::message;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::{State, Tcb};
use sandglass_testkit::isa;
use sandglass_testkit::world::{Thread, World};

const WRITE: u64 = 0b0001;
const READ: u64 = 0b0010;
const GRANT: u64 = 0b0100;
const GRANT_REPLY: u64 = 0b1000;
const ALL: u64 = 0b1111;

/// A thread of priority 100 that waits at a new endpoint, to which it offers a reply object, and
/// the root task, which runs.
struct Pair {
    endpoint: u64,
    reply: u64,
    receiver: Thread,
}

fn pair(w: &mut World) -> Pair {
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let receiver = w.start_thread(100, 5_000, 10_000);
    let root_wakes_by = w.sleep();
    w.recv(endpoint, reply);
    w.wake(root_wakes_by);
    Pair {
        endpoint,
        reply,
        receiver,
    }
}

/// Writes where whoever runs wants to receive a capability.
fn offer_slot(w: &World, thread: Ref<Tcb>, slot: u64) {
    let buffer = message::buffer(&w.k, thread, true).expect("a buffer");
    buffer.write(&*w.k, ipc_buffer::RECEIVE_CNODE, slot::CNODE);
    buffer.write(&*w.k, ipc_buffer::RECEIVE_INDEX, slot);
    buffer.write(&*w.k, ipc_buffer::RECEIVE_DEPTH, 64);
}

fn send_caps(w: &mut World, endpoint: u64, caps: &[u64]) {
    w.set_extra_caps(caps);
    let info = MessageInfo::new(0, 0, caps.len(), 0);
    w.syscall(Syscall::Send, endpoint, 0, info, &[]);
}

fn received(w: &World, receiver: Thread) -> MessageInfo {
    MessageInfo::from_raw(receiver.handle.at(&w.k).context().info())
}

#[test]
fn a_capability_that_cannot_be_copied_does_not_arrive() {
    let mut w = World::new();
    let table = w.make(isa::types::TABLES[2], 0);
    let copyable = w.make(types::NOTIFICATION, 0);
    for (cap, arrives) in [(slot::IRQ_CONTROL, 0), (table, 0), (copyable, 1)] {
        let p = pair(&mut w);
        let target = w.fresh_slot();
        offer_slot(&w, p.receiver.handle, target);
        send_caps(&mut w, p.endpoint, &[cap]);
        assert_eq!(received(&w, p.receiver).extra_caps(), arrives, "{cap}");
        assert_eq!(w.cap(target).is_null(), arrives == 0, "{cap}");
    }
}

/// A capability to the endpoint that carries it arrives as its badge, one to another as a copy.
#[test]
fn only_capabilities_to_the_carrying_endpoint_arrive_as_badges() {
    for (waits, own_at) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
        let mut w = World::new();
        let p = pair(&mut w);
        let other = w.make(types::ENDPOINT, 0);
        let badged = w.mint(other, ALL, 8).expect("minted");
        let own = w.mint(p.endpoint, ALL, 9).expect("minted");
        let mut caps = [badged, badged];
        caps[own_at] = own;
        let target = w.fresh_slot();
        offer_slot(&w, p.receiver.handle, target);
        if waits {
            send_caps(&mut w, p.endpoint, &caps);
        } else {
            // The sender is there first.
            let root = w.running().expect("the root task");
            let sender = w.start_thread(90, 5_000, 10_000);
            w.invoke(p.receiver.tcb, label::TCB_SUSPEND, &[], &[])
                .expect("stopped");
            let wakes = w.sleep();
            assert_eq!(w.running(), Some(sender.handle));
            send_caps(&mut w, p.endpoint, &caps);
            w.wake(wakes);
            offer_slot(&w, root, target);
            w.recv(p.endpoint, p.reply);
        }
        let receiver = if waits {
            p.receiver.handle
        } else {
            w.running().expect("root")
        };
        let info = MessageInfo::from_raw(receiver.at(&w.k).context().info());
        assert_eq!((info.extra_caps(), info.caps_unwrapped()), (2, 1 << own_at));
        let buffer = message::buffer(&w.k, receiver, false).expect("a buffer");
        assert_eq!(buffer.read(&w.k, ipc_buffer::CAPS_OR_BADGES + own_at), 9);
        let copy = w.cap(target).endpoint().expect("a copy");
        assert_eq!(copy.badge, 8);
        assert_eq!(w.cap(target).word(), w.cap(badged).word());
    }
}

/// Without a right to it nobody can answer: the caller stops for good, and the reply object stays
/// free.
#[test]
fn a_call_without_grant_waits_for_no_reply() {
    for (rights, expects) in [
        (WRITE, false),
        (WRITE | READ, false),
        (WRITE | GRANT, true),
        (WRITE | GRANT_REPLY, true),
    ] {
        let mut w = World::new();
        let p = pair(&mut w);
        let endpoint = w.copy(p.endpoint, rights).expect("copied");
        let root = w.running().expect("the root task");
        w.call(endpoint, &[]);
        let reply = w.cap(p.reply).reply().expect("a reply object").object;
        let waits = matches!(root.at(&w.k).state(), State::BlockedOnReply { .. });
        assert_eq!(waits, expects, "{rights:b}");
        assert_eq!(
            root.at(&w.k).state() == State::Inactive,
            !expects,
            "{rights:b}"
        );
        assert_eq!(reply.at(&w.k).thread().is_some(), expects, "{rights:b}");
    }
}

/// The sends of two-phase system calls lend time to a passive receiver; other sends do not.
#[test]
fn a_send_that_waits_afterwards_lends_its_time() {
    for (call, lends) in [(Syscall::NBSendWait, true), (Syscall::NBSend, false)] {
        let mut w = World::new();
        let p = pair(&mut w);
        w.invoke(p.receiver.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
            .expect("unbound");
        let root = w.running().expect("the root task");
        let own = root.at(&w.k).sched_context();
        let notification = w.make(types::NOTIFICATION, 0);
        let (cap, reply) = match call {
            Syscall::NBSendWait => (notification, p.endpoint),
            _ => (p.endpoint, 0),
        };
        w.syscall(call, cap, reply, MessageInfo::default(), &[]);
        let context = p.receiver.handle.at(&w.k).sched_context();
        assert_eq!(context, own.filter(|_| lends), "{call:?}");
        assert_eq!(
            w.running(),
            Some(if lends { p.receiver.handle } else { root })
        );
    }
}

/// Who offers a reply object that another waits for takes it away from that one.
#[test]
fn a_reply_object_is_taken_from_whoever_waits_for_it() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let reply = w.make(types::REPLY, 0);
    let caller = w.start_thread(100, 5_000, 10_000);
    let root_wakes_by = w.sleep();
    w.call(endpoint, &[]);
    w.wake(root_wakes_by);
    w.recv(endpoint, reply);
    let waits = matches!(caller.handle.at(&w.k).state(), State::BlockedOnReply { .. });
    assert!(waits);
    let root = w.running();
    let none = MessageInfo::default();
    w.syscall(Syscall::NBRecv, endpoint, reply, none, &[]);
    assert_eq!(w.running(), root);
    assert_eq!(caller.handle.at(&w.k).state(), State::Inactive);
    let object = w.cap(reply).reply().expect("a reply object").object;
    assert_eq!(object.at(&w.k).thread(), None);
}

/// From a buffer that can only be read, messages are sent, and none received beyond the registers.
#[test]
fn a_buffer_that_can_only_be_read_is_for_sending() {
    let words: Vec<u64> = (10..20).collect();
    for (rights, sends, receives) in [
        (READ | WRITE, 10, 10),
        (READ, 10, 4),
        // Frames that can only be written do not exist: neither right is left.
        (WRITE, 4, 4),
    ] {
        let mut w = World::new();
        let p = pair(&mut w);
        let root = w.running().expect("the root task");
        let frame = w.copy(slot::IPC_BUFFER, rights).expect("copied");
        for (i, &word) in words.iter().enumerate() {
            let buffer = message::buffer(&w.k, root, true).expect("a buffer");
            buffer.write(&*w.k, ipc_buffer::MESSAGE + i, word);
        }
        let address = root.at(&w.k).buffer_address();
        let set = label::TCB_SET_IPC_BUFFER;
        w.invoke(slot::TCB, set, &[address], &[frame]).expect("set");
        let info = MessageInfo::new(0, 0, 0, words.len());
        w.syscall(Syscall::Send, p.endpoint, 0, info, &words[..4]);
        let got = w.message_of(p.receiver.handle);
        let target = message::buffer(&w.k, p.receiver.handle, false).expect("a buffer");
        for i in 0..4 {
            let word = target.read(&w.k, ipc_buffer::MESSAGE + i);
            assert_eq!(word, 0, "words in registers are not in the buffer");
        }
        assert_eq!(got, words[..sends], "sent with rights {rights:b}");
        assert_eq!(message::buffer(&w.k, root, true).is_some(), receives == 10);
    }
}

/// The unbadged capability cancels nothing: senders without a badge stay queued.
#[test]
fn sends_without_badge_are_not_cancelled() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let sender = w.start_thread(100, 5_000, 10_000);
    let root_wakes_by = w.sleep();
    w.call(endpoint, &[]);
    w.wake(root_wakes_by);
    let queued = sender.handle.at(&w.k).state();
    let cancel = label::CNODE_CANCEL_BADGED_SENDS;
    w.invoke(slot::CNODE, cancel, &[endpoint, 64], &[])
        .expect("nothing to do");
    assert_eq!(sender.handle.at(&w.k).state(), queued);
    assert!(matches!(queued, State::BlockedOnSend { .. }));
    let badged = w.mint(endpoint, ALL, 5).expect("minted");
    w.invoke(slot::CNODE, cancel, &[badged, 64], &[])
        .expect("nobody has it");
    assert_eq!(sender.handle.at(&w.k).state(), queued);
}

/// What can end threads or address spaces, or take long, is not done in the first phase of a system
/// call that waits afterwards.
#[test]
fn the_first_phase_of_two_invokes_no_cnode_and_nothing_of_time() {
    let mut w = World::new();
    let notification = w.make(types::NOTIFICATION, 0);
    let thread = w.start_thread(20, 5_000, 10_000);
    let frame = w.make(isa::types::PAGE, 0);
    let context = w.context(thread.context);
    let period = context.at(&w.k).period();
    let configure = label::SCHED_CONTROL_CONFIGURE_FLAGS;
    let set = label::DOMAIN_SET;
    let root = w.running().expect("the root task");
    let calls: [(u64, u64, &[u64], &[u64]); 4] = [
        (slot::CNODE, label::CNODE_DELETE, &[frame, 64], &[]),
        (thread.context, label::SCHED_CONTEXT_UNBIND, &[], &[]),
        (
            isa::SCHED_CONTROL,
            configure,
            &[50, 60, 0, 0],
            &[thread.context],
        ),
        (slot::DOMAIN, set, &[0], &[thread.tcb]),
    ];
    for (cap, label, words, caps) in calls {
        // The second phase does not wait: there is a signal.
        w.syscall(Syscall::Send, notification, 0, MessageInfo::default(), &[]);
        w.set_extra_caps(caps);
        let info = MessageInfo::new(label, 0, caps.len(), words.len());
        w.syscall(Syscall::NBSendWait, notification, cap, info, words);
        assert_eq!(w.running(), Some(root));
        assert!(!w.cap(frame).is_null());
        assert_eq!(context.at(&w.k).thread(), Some(thread.handle));
        assert_eq!(context.at(&w.k).period(), period);
    }
}
