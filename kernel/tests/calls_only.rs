//! An endpoint capability that can be called, and not sent to (decision *calls only*): whatever comes
//! through it brings time along, so that no message leaves a passive server without any.

use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::object::tcb::State;
use sandglass_testkit::isa;
use sandglass_testkit::service::{service, Service};
use sandglass_testkit::world::{Refused, World, US};

const WRITE: u64 = 0b0001;
const READ: u64 = 0b0010;
const GRANT_REPLY: u64 = 0b1000;
const ALL: u64 = 0b1111;

/// The service, whose client runs, and a capability with which its endpoint can be called only.
fn called_service(w: &mut World) -> (Service, u64) {
    let s = service(w);
    w.wake(s.root_wakes_by);
    let call = w
        .mint_call(s.endpoint, WRITE | GRANT_REPLY, 7)
        .expect("minted");
    w.wait(s.root_wakes_by);
    assert_eq!(w.running(), Some(s.client.handle));
    (s, call)
}

fn send(w: &mut World, by: Syscall, cap: u64, reply: u64) {
    w.syscall(by, cap, reply, MessageInfo::new(0, 0, 0, 1), &[5]);
}

#[test]
fn a_call_arrives_with_its_badge_and_brings_time() {
    let mut w = World::new();
    let (s, call) = called_service(&mut w);
    w.call(call, &[5]);
    assert_eq!(w.running(), Some(s.server.handle));
    assert_eq!(w.registers().get(isa::CAP), 7);
    assert_eq!(w.k.core().context(), Some(w.context(s.client.context)));
    w.reply_recv(s.endpoint, s.reply, &[]);
    assert_eq!(w.running(), Some(s.client.handle), "and takes it back");
}

#[test]
fn what_is_no_call_is_refused_and_leaves_the_server_as_it_was() {
    let mut w = World::new();
    let (s, call) = called_service(&mut w);
    let waits = s.server.handle.at(&w.k).state();
    for by in [Syscall::Send, Syscall::NBSend] {
        send(&mut w, by, call, 0);
        assert_eq!(w.running(), Some(s.client.handle), "{by:?} does not block");
        assert_eq!(s.server.handle.at(&w.k).state(), waits, "{by:?}");
    }
    // The other system calls with an invocation phase that is no call; they go on to receive.
    for by in [Syscall::NBSendWait, Syscall::ReplyRecv] {
        let mut w = World::new();
        let (s, call) = called_service(&mut w);
        let waits = s.server.handle.at(&w.k).state();
        send(&mut w, by, s.endpoint, call);
        assert_eq!(s.server.handle.at(&w.k).state(), waits, "{by:?}");
    }
}

#[test]
fn who_cannot_be_answered_does_not_call() {
    let mut w = World::new();
    let s = service(&mut w);
    w.wake(s.root_wakes_by);
    let lost = w.mint_call(s.endpoint, WRITE, 7).expect("minted");
    let refusal = w.invoke(lost, 0, &[], &[]);
    let refusal = refusal.expect_err("a call that nobody could answer");
    assert_eq!(refusal.error, ErrorNumber::InvalidCapability);
    assert_eq!(s.server.handle.at(&w.k).sched_context(), None);
    assert!(!s.server.handle.at(&w.k).is_runnable());
}

/// 02, section 3: copies have no more rights than their source; and no rights word makes one that sends.
#[test]
fn copies_call_only_and_none_makes_such_a_capability_of_another_object() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let call = w.mint_call(endpoint, ALL, 0).expect("minted");
    let rights = |w: &World, slot| {
        let rights = w.cap(slot).endpoint().expect("an endpoint").rights;
        (rights.write(), rights.calls_only(), rights.read())
    };
    assert_eq!(rights(&w, call), (false, true, true));
    for mask in [ALL, u64::MAX, WRITE | GRANT_REPLY] {
        let copy = w.copy(call, mask).expect("copied");
        assert_eq!(rights(&w, copy), (false, true, mask & READ != 0));
    }
    let minted = w.mint(call, ALL, 7).expect("a badge");
    assert_eq!(rights(&w, minted), (false, true, true));
    let again = w.mint_call(call, ALL, 8).expect("twice is once");
    assert_eq!(rights(&w, again), (false, true, true));
    let vain = w.copy(call, WRITE | READ).expect("copied");
    assert_eq!(
        rights(&w, vain),
        (false, false, true),
        "nobody could answer"
    );
    let mute = w.copy(call, READ | GRANT_REPLY).expect("copied");
    assert_eq!(rights(&w, mute), (false, false, true));
    let receives = w.mint_call(mute, ALL, 0).expect("minted");
    assert_eq!(
        rights(&w, receives),
        (false, false, true),
        "nothing to turn"
    );
    let notification = w.make(types::NOTIFICATION, 0);
    let memory = w.make(types::UNTYPED, 12);
    for other in [notification, memory, sandglass_abi::boot::slot::TCB] {
        assert_eq!(
            w.mint_call(other, ALL, 0).map_err(|refusal| refusal.error),
            Err(ErrorNumber::IllegalOperation)
        );
    }
}

#[test]
fn a_fault_is_no_call() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let call = w.mint_call(endpoint, ALL, 0).expect("minted");
    let thread = w.make_thread(100, 8);
    let handled = w.invoke(thread.tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &[call]);
    let Err(Refused { error, .. }) = handled else {
        panic!("a handler that nothing reaches was accepted");
    };
    assert_eq!(error, ErrorNumber::InvalidCapability);
}

/// Who waits to be heard loses its context: were it heard now, the server would have its message and no
/// time. It calls anew when it has a context again.
#[test]
fn a_queued_caller_that_loses_its_context_is_not_heard_without_it() {
    let mut w = World::new();
    let (s, call) = called_service(&mut w);
    w.call(call, &[5]);
    assert_eq!(w.running(), Some(s.server.handle));
    w.wake(s.root_wakes_by);
    let second = w.start_thread(150, 5_000, 10_000);
    w.wait(s.root_wakes_by);
    assert_eq!(w.running(), Some(s.server.handle));
    // The server has a turn of its own to wait in, so that the second is queued.
    w.pass(6_000 * US);
    assert_eq!(
        w.running(),
        Some(second.handle),
        "the client's budget is over"
    );
    w.call(call, &[6]);
    assert!(matches!(
        second.handle.at(&w.k).state(),
        State::BlockedOnSend { .. }
    ));
    w.wake(s.root_wakes_by);
    w.invoke(second.context, label::SCHED_CONTEXT_UNBIND, &[], &[])
        .expect("unbound");
    assert_eq!(second.handle.at(&w.k).state(), State::Restart);
    w.wait(s.root_wakes_by);
    w.pass(6_000 * US);
    assert_eq!(w.running(), Some(s.server.handle));
    w.reply_recv(s.endpoint, s.reply, &[]);
    assert_eq!(w.running(), Some(s.client.handle));
    assert!(
        !s.server.handle.at(&w.k).is_runnable(),
        "the server waits for a message"
    );
    // With its context it calls as it would have.
    w.wake(s.root_wakes_by);
    w.bind(second);
    w.wait(s.root_wakes_by);
    assert_eq!(w.running(), Some(second.handle));
    w.call(call, &[6]);
    assert_eq!(w.running(), Some(s.server.handle));
    assert_eq!(w.k.core().context(), Some(w.context(second.context)));
}

/// A server on lent time waits to be heard by another one when somebody else answers its client: the
/// context goes home, and the server would be heard without any.
#[test]
fn a_server_whose_lent_time_goes_home_leaves_the_queue() {
    let mut w = World::new();
    let (s, call) = called_service(&mut w);
    // A second endpoint, at which nobody receives.
    w.wake(s.root_wakes_by);
    let far = w.make(types::ENDPOINT, 0);
    let far_call = w.mint_call(far, WRITE | GRANT_REPLY, 9).expect("minted");
    w.wait(s.root_wakes_by);
    w.call(call, &[5]);
    assert_eq!(w.running(), Some(s.server.handle));
    w.call(far_call, &[5]);
    assert!(matches!(
        s.server.handle.at(&w.k).state(),
        State::BlockedOnSend { .. }
    ));
    // The root task answers in its place.
    w.wake(s.root_wakes_by);
    w.syscall(Syscall::Send, s.reply, 0, MessageInfo::default(), &[]);
    assert!(s.client.handle.at(&w.k).is_runnable());
    assert_eq!(s.server.handle.at(&w.k).sched_context(), None);
    assert_eq!(s.server.handle.at(&w.k).state(), State::Restart);
    let reply = w.make(types::REPLY, 0);
    w.syscall(Syscall::NBRecv, far, reply, MessageInfo::default(), &[]);
    assert_eq!(w.registers().get(isa::CAP), 0, "nobody is heard");
}
