//! Communication in the specification itself: small scenes whose ends the ABI pages give. That the
//! kernel does the same is the business of the lock step.

use crate::scene::{Scene, ALL, BUDGET};
use sandglass_abi::fault::{CAP_FAULT, TIMEOUT};
use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;
use sandglass_model::isa::{CAP_OR_BADGE, MESSAGE_INFO, MESSAGE_REGISTERS, PC};
use sandglass_model::state::{Cap, Endpoint, Signals, ThreadState};

/// What a receiver finds in its registers: badge, label, length, and the first word.
pub fn received(scene: &Scene, thread: usize) -> (u64, u64, usize, u64) {
    let user = scene.thread(thread).registers.user;
    let info = MessageInfo::from_raw(user[MESSAGE_INFO]);
    (
        user[CAP_OR_BADGE],
        info.label(),
        info.length(),
        user[MESSAGE_REGISTERS[0]],
    )
}

pub fn info(label: u64, length: usize) -> u64 {
    MessageInfo::new(label, 0, 0, length).raw()
}

/// A call lends its context to a passive server, and the answer returns it (04, sections 7.2 and
/// 7.4).
#[test]
fn a_call_lends_its_context_and_the_answer_returns_it() {
    let mut scene = Scene::new(2);
    let (endpoint, reply) = (scene.endpoint(1, 7, ALL), scene.reply(2));
    let context = scene.thread(0).context;
    // The server receives, and is passive from then on.
    scene.run(1);
    scene.receive(Syscall::Recv, 1, 2);
    scene.passive(1);
    scene.call(Syscall::Call, 1, info(5, 1), 42);
    assert_eq!(scene.current(), Some(1));
    assert_eq!(received(&scene, 1), (7, 5, 1, 42));
    assert_eq!(scene.thread(1).context, context);
    assert_eq!(scene.thread(0).state, ThreadState::BlockedOnReply { reply });
    scene.reply_and_receive(2, 1, info(6, 1), 43);
    assert_eq!(scene.current(), Some(0));
    assert_eq!(received(&scene, 0), (0, 6, 1, 43));
    assert_eq!(scene.thread(0).context, context);
    assert_eq!(scene.thread(1).context, None);
    let waits = Endpoint::Receivers(vec![scene.id(1)]);
    assert_eq!(scene.state.endpoints[&endpoint], waits);
}

/// Senders wait by priority, first-come, first-served among equals (04, section 8.1).
#[test]
fn senders_wait_by_priority() {
    let mut scene = Scene::new(4);
    let endpoint = scene.endpoint(1, 0, ALL);
    for (thread, priority) in [(0, 10), (1, 20), (2, 10), (3, 20)] {
        scene.set_priority(thread, priority);
    }
    for thread in 0..4 {
        scene.run(thread);
        scene.call(Syscall::Send, 1, info(0, 0), 0);
    }
    let order = [1, 3, 0, 2].map(|i| scene.id(i)).to_vec();
    assert_eq!(scene.state.endpoints[&endpoint], Endpoint::Senders(order));
    assert_eq!(scene.current(), None);
}

/// A capability travels into the receive slot, one to the endpoint itself becomes its badge, and
/// a second one for the slot is dropped (02, section 8).
#[test]
fn capabilities_travel_as_copies_or_badges() {
    let mut scene = Scene::new(2);
    scene.endpoint(1, 9, ALL);
    let other = scene.notification(3);
    scene.run(1);
    scene.buffer_word(1, 125, 0);
    scene.buffer_word(1, 126, 20);
    scene.buffer_word(1, 127, 64);
    scene.receive(Syscall::Wait, 1, 0);
    scene.run(0);
    for (i, cap) in [1, 3, 3].into_iter().enumerate() {
        scene.buffer_word(0, 122 + i as u64, cap);
    }
    let sent = MessageInfo::new(0, 0, 3, 0).raw();
    scene.call(Syscall::Send, 1, sent, 0);
    let got = scene.thread(1).registers.user[MESSAGE_INFO];
    assert_eq!(got, MessageInfo::new(0, 0b1, 2, 0).raw());
    assert_eq!(scene.read_buffer(1, 122), 9);
    let copied = scene.cap(20);
    assert!(matches!(copied, Some(Cap::Notification { object, .. }) if object == other));
}

/// Without a buffer four words are a message (01, section 5.6).
#[test]
fn messages_are_short_without_a_buffer() {
    let mut scene = Scene::new(2);
    scene.endpoint(1, 0, ALL);
    scene.run(1);
    scene.remove_buffer(1);
    scene.receive(Syscall::Wait, 1, 0);
    scene.run(0);
    scene.call(Syscall::Send, 1, info(0, 100), 0);
    assert_eq!(received(&scene, 1).2, 4);
}

/// Signals add up while nobody waits, and tell only the badge (01, section 5.5).
#[test]
fn signals_add_up_and_write_only_the_badge() {
    let mut scene = Scene::new(1);
    let notification = scene.notification(3);
    scene.badge(3, 0b01);
    scene.call(Syscall::Send, 3, info(0, 0), 0);
    scene.badge(3, 0b10);
    scene.call(Syscall::Send, 3, info(0, 0), 0);
    let pending = &scene.state.notifications[&notification].state;
    assert_eq!(pending, &Signals::Active(0b11));
    scene.set(MESSAGE_INFO, 99);
    scene.receive(Syscall::Wait, 3, 0);
    let user = scene.thread(0).registers.user;
    assert_eq!((user[CAP_OR_BADGE], user[MESSAGE_INFO]), (0b11, 99));
}

/// A non-blocking receive from nothing is a fault nevertheless, and without a handler the end of
/// the thread (01, section 5.2; 05, section 3).
#[test]
fn receiving_from_nothing_faults() {
    let mut scene = Scene::new(2);
    scene.endpoint(1, 5, ALL);
    scene.fault_handler(0, 1);
    scene.receive(Syscall::NBRecv, 21, 0);
    assert!(scene.thread(0).fault.is_some());
    scene.run(1);
    scene.receive(Syscall::NBRecv, 1, 2);
    assert_eq!(scene.thread(1).state, ThreadState::Inactive);
    scene.run(1);
    scene.reply(2);
    scene.receive(Syscall::NBRecv, 1, 2);
    let ip = scene.thread(0).registers.user[PC];
    assert_eq!(received(&scene, 1), (5, CAP_FAULT, 5, ip));
}

/// Who is answered when its time is out tells its timeout handler (04, section 7.4 step 5).
#[test]
fn whose_time_is_out_when_it_is_answered_times_out() {
    let mut scene = Scene::new(2);
    scene.endpoint(1, 0, ALL);
    scene.reply(2);
    scene.endpoint(4, 3, ALL);
    scene.timeout_handler(0, 4);
    scene.run(1);
    scene.receive(Syscall::Recv, 1, 2);
    scene.run(0);
    scene.call(Syscall::Call, 1, info(0, 0), 0);
    scene.postpone(0, BUDGET);
    scene.reply_and_receive(2, 1, info(0, 0), 0);
    assert!(matches!(
        scene.thread(0).state,
        ThreadState::BlockedOnSend { badge: 3, .. }
    ));
    scene.run(1);
    scene.receive(Syscall::NBRecv, 4, 2);
    assert_eq!(received(&scene, 1).1, TIMEOUT);
}
