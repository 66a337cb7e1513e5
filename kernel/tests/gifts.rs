//! What comes with a message or a signal: capabilities, and time.

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::message::{ipc_buffer, MessageInfo};
use sandglass_abi::object as types;
use sandglass_abi::sched::flags::SPORADIC;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::ipc::message;
use sandglass_testkit::service::service;
use sandglass_testkit::world::{World, US};

const ALL: u64 = 0b1111;

#[test]
fn capabilities_travel_with_grant_and_arrive_as_badges_of_their_own_endpoint() {
    let mut w = World::new();
    let s = service(&mut w);
    w.wake(s.root_wakes_by);
    let target = w.fresh_slot();
    let gift = w.make(types::NOTIFICATION, 0);
    let unwrapped = w.mint(s.endpoint, ALL, 77).expect("minted");
    w.wait(s.root_wakes_by);
    let buffer = message::buffer(&w.k, s.server.handle, true).expect("a buffer");
    buffer.write(&*w.k, ipc_buffer::RECEIVE_CNODE, slot::CNODE);
    buffer.write(&*w.k, ipc_buffer::RECEIVE_INDEX, target);
    buffer.write(&*w.k, ipc_buffer::RECEIVE_DEPTH, 64);
    let sender = message::buffer(&w.k, s.client.handle, true).expect("a buffer");
    sender.write(&*w.k, ipc_buffer::CAPS_OR_BADGES, unwrapped);
    sender.write(&*w.k, ipc_buffer::CAPS_OR_BADGES + 1, gift);
    w.syscall(
        Syscall::Call,
        s.endpoint,
        0,
        MessageInfo::new(9, 0, 2, 1),
        &[5],
    );
    assert_eq!(w.running(), Some(s.server.handle));
    let info = MessageInfo::from_raw(w.registers().info());
    assert_eq!(
        (info.label(), info.extra_caps(), info.caps_unwrapped()),
        (9, 2, 0b01)
    );
    assert_eq!(buffer.read(&w.k, ipc_buffer::CAPS_OR_BADGES), 77);
    assert_eq!(w.cap(target), w.cap(gift));
}

/// 02, section 8: without the right to grant nothing travels, whoever came first.
#[test]
fn capabilities_stay_without_grant() {
    const WRITE: u64 = 0b0001;
    for receiver_first in [false, true] {
        let mut w = World::new();
        let endpoint = w.make(types::ENDPOINT, 0);
        let mute = w.copy(endpoint, WRITE).expect("copied");
        let reply = w.make(types::REPLY, 0);
        let (target, gift) = (w.fresh_slot(), w.make(types::NOTIFICATION, 0));
        let sender = w.start_thread(100, 5_000, 10_000);
        let root = w.running().expect("the root task");
        let buffer = message::buffer(&w.k, root, true).expect("a buffer");
        buffer.write(&*w.k, ipc_buffer::RECEIVE_CNODE, slot::CNODE);
        buffer.write(&*w.k, ipc_buffer::RECEIVE_INDEX, target);
        buffer.write(&*w.k, ipc_buffer::RECEIVE_DEPTH, 64);
        let sleep = w.make(types::NOTIFICATION, 0);
        if receiver_first {
            w.recv(endpoint, reply);
        } else {
            w.wait(sleep);
        }
        assert_eq!(w.running(), Some(sender.handle));
        w.set_extra_caps(&[gift]);
        w.syscall(Syscall::Send, mute, 0, MessageInfo::new(9, 0, 1, 1), &[5]);
        if !receiver_first {
            w.wake(sleep);
            w.recv(endpoint, reply);
        }
        assert_eq!(w.running(), Some(root));
        let info = MessageInfo::from_raw(w.registers().info());
        assert_eq!((info.label(), info.extra_caps()), (9, 0));
        assert!(w.cap(target).is_null(), "not granted");
    }
}

/// 04, section 7.6: a server that returned its client's time and finds its own notification
/// pending goes on with the context that comes with it; a sporadic one starts anew then.
#[test]
fn a_server_that_finds_a_signal_goes_on_with_the_context_of_its_notification() {
    let mut w = World::new();
    let s = service(&mut w);
    w.wake(s.root_wakes_by);
    let notification = w.make(types::NOTIFICATION, 0);
    let lent = w.make(types::SCHED_CONTEXT, 8);
    w.configure(lent, 1_000, 10_000, 0, SPORADIC);
    let bind = label::TCB_BIND_NOTIFICATION;
    w.invoke(s.server.tcb, bind, &[], &[notification])
        .expect("bound");
    w.invoke(lent, label::SCHED_CONTEXT_BIND, &[], &[notification])
        .expect("bound");
    w.wait(s.root_wakes_by);
    w.call(s.endpoint, &[]);
    assert_eq!(w.running(), Some(s.server.handle));
    w.pass(3_000 * US);
    w.syscall(Syscall::Send, notification, 0, MessageInfo::default(), &[]);
    w.reply_recv(s.endpoint, s.reply, &[]);
    assert_eq!(w.running(), Some(s.server.handle), "above its client");
    assert_eq!(w.k.core().context(), Some(w.context(lent)));
    let now = w.k.core().now();
    assert_eq!(w.context(lent).at(&w.k).head().time, now);
}
