//! 02, section 8: capabilities in messages.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::abi::message::ipc_buffer::{CAPS_OR_BADGES, RECEIVE_CNODE};
use sandglass::thread_block;

use super::support::{alive, delete, kind_of, revoke, Kind};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/8/one-capability-is-transferred", one_capability),
    check("02/8/without-grant-nothing-is-transferred", without_grant),
    check("02/8/the-receiver's-rights-play-no-role", receiver_rights),
    check("02/8/the-endpoint-itself-arrives-as-its-badge", unwrapping),
    check("02/8/badges-and-one-capability-in-any-order", mixed),
    check(
        "02/8/a-second-capability-stops-the-transfer",
        second_capability,
    ),
    check("02/8/another-endpoint-is-not-unwrapped", other_endpoint),
    check("02/8/a-null-capability-stops-the-transfer", null_stops),
    check(
        "02/8/what-cannot-be-derived-stops-the-transfer",
        underivable_stops,
    ),
    check("02/8/unused-badges-are-not-cleared", badges_not_cleared),
    check("02/8/rights-and-badge-are-not-diminished", rights_kept),
    check(
        "02/8/a-transferred-capability-stands-after-its-source",
        position,
    ),
    check("02/8/a-transferred-frame-is-not-mapped", frame_unmapped),
    check("02/8/replies-transfer-and-do-not-unwrap", replies),
    check("02/8/queued-senders-transfer-when-received", queued_sender),
    check(
        "02/8/without-a-receive-buffer-nothing-is-transferred",
        no_receive_buffer,
    ),
];

/// What a capability slot in the badges' array holds before each message.
pub const UNTOUCHED: u64 = 0xabad_cafe_0000_0001;

/// What arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub extra_caps: u64,
    pub unwrapped: u64,
    pub badges: [u64; 3],
}

pub const fn arrival(extra_caps: u64, unwrapped: u64, badges: [u64; 3]) -> Arrival {
    Arrival {
        extra_caps,
        unwrapped,
        badges,
    }
}

/// A thread above the check's that receives at an endpoint and publishes what arrives.
pub struct Receiver {
    pub endpoint: Endpoint,
    /// Where its capabilities are to arrive; an empty slot at first.
    pub slot: Slot,
    seen: &'static Seen,
}

#[derive(Default)]
pub struct Seen {
    messages: AtomicU64,
    label: AtomicU64,
    extra_caps: AtomicU64,
    unwrapped: AtomicU64,
    badges: [AtomicU64; 3],
    /// Address of the thread's IPC buffer.
    buffer: AtomicU64,
}

impl Seen {
    pub fn publish(&self, message: &Message) {
        self.label.store(message.label(), Relaxed);
        self.extra_caps
            .store(message.info().extra_caps() as u64, Relaxed);
        self.unwrapped
            .store(message.info().caps_unwrapped(), Relaxed);
        for (i, badge) in self.badges.iter().enumerate() {
            badge.store(thread_block::read_word(CAPS_OR_BADGES + i), Relaxed);
        }
        self.messages.fetch_add(1, Relaxed);
    }

    pub fn arrival(&self) -> Arrival {
        let [first, second, third] = &self.badges;
        arrival(
            self.extra_caps.load(Relaxed),
            self.unwrapped.load(Relaxed),
            [first, second, third].map(|badge| badge.load(Relaxed)),
        )
    }
}

pub fn mark_badges() {
    for i in 0..3 {
        thread_block::write_word(CAPS_OR_BADGES + i, UNTOUCHED);
    }
}

impl Receiver {
    pub fn new(f: &mut Fixture) -> Result<Self, Failure> {
        let endpoint = f.endpoint()?;
        Self::at(f, endpoint, endpoint)
    }

    /// Receives at `endpoint` by the capability `by`.
    fn at(f: &mut Fixture, endpoint: Endpoint, by: Endpoint) -> Result<Self, Failure> {
        let (slot, seen): (Slot, &'static Seen) = (f.empty_slot()?, shared());
        f.helper(255, move || {
            thread_block::set_receive_slot(slot);
            seen.buffer
                .store(thread_block::current_ipc_buffer() as u64, Relaxed);
            loop {
                mark_badges();
                let message = by.wait().message;
                seen.publish(&message);
            }
        })?;
        Ok(Self {
            endpoint,
            slot,
            seen,
        })
    }

    /// Sends capabilities; the message arrives in any case.
    pub fn send(&self, by: Endpoint, caps: &[CPtr]) -> Result<Arrival, Failure> {
        let before = self.seen.messages.load(Relaxed);
        by.nb_send(Message::new(77, []).with_caps(caps));
        ensure_eq!(self.seen.messages.load(Relaxed), before + 1);
        ensure_eq!(self.seen.label.load(Relaxed), 77);
        Ok(self.seen.arrival())
    }

    /// Sets the receive slot, in the words of the waiting thread's IPC buffer.
    pub fn set_slot(&self, cnode: u64, index: u64, depth: u64) {
        let buffer = self.seen.buffer.load(Relaxed) as *mut u64;
        for (i, word) in [cnode, index, depth].into_iter().enumerate() {
            // SAFETY: the buffer is mapped, and its thread waits.
            unsafe { buffer.add(RECEIVE_CNODE + i).write_volatile(word) };
        }
    }
}

/// No badge was written.
pub const NONE: [u64; 3] = [UNTOUCHED; 3];

fn one_capability(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let tcb = f.tcb()?;
    let arrived = receiver.send(receiver.endpoint, &[tcb.cptr()])?;
    ensure_eq!(arrived, arrival(1, 0, NONE));
    ensure_eq!(kind_of(f, receiver.slot.capability::<CPtr>())?, Kind::Tcb);
    // The sender keeps its own.
    ensure_eq!(alive(f, [tcb.cptr()])?, [true]);
    // Now the slot is not empty.
    let arrived = receiver.send(receiver.endpoint, &[tcb.cptr()])?;
    ensure_eq!(arrived, arrival(0, 0, NONE));
    Ok(())
}

fn without_grant(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let tcb = f.tcb()?;
    for rights in [0b1011, 0b0001, 0b1001] {
        let weak = f.with_rights(receiver.endpoint, Rights(rights))?;
        let arrived = receiver.send(weak, &[tcb.cptr(), receiver.endpoint.cptr()])?;
        ensure_eq!(arrived, arrival(0, 0, NONE));
    }
    ensure!(f.is_empty(receiver.slot)?);
    Ok(())
}

fn receiver_rights(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let reading = f.with_rights(endpoint, Rights::READ)?;
    let receiver = Receiver::at(f, endpoint, reading)?;
    let tcb = f.tcb()?.cptr();
    ensure_eq!(receiver.send(endpoint, &[tcb])?, arrival(1, 0, NONE));
    Ok(())
}

fn unwrapping(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let endpoint = receiver.endpoint;
    let (one, two) = (f.badged(endpoint, 11)?, f.badged(endpoint, u64::MAX)?);
    let sending = f.badged(endpoint, 5)?;
    // The rights of the capability that is sent play no role.
    let weak = f.with_rights(one, Rights::NONE)?;
    for by in [endpoint, sending] {
        let caps = [one.cptr(), two.cptr(), endpoint.cptr()];
        let arrived = receiver.send(by, &caps)?;
        ensure_eq!(arrived, arrival(3, 0b111, [11, u64::MAX, 0]));
        let arrived = receiver.send(by, &[weak.cptr()])?;
        ensure_eq!(arrived, arrival(1, 1, [11, UNTOUCHED, UNTOUCHED]));
    }
    ensure!(f.is_empty(receiver.slot)?);
    // No slot is needed for badges.
    receiver.set_slot(0, 0, 0);
    let arrived = receiver.send(sending, &[sending.cptr(), two.cptr()])?;
    ensure_eq!(arrived, arrival(2, 0b11, [5, u64::MAX, UNTOUCHED]));
    Ok(())
}

fn mixed(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let endpoint = receiver.endpoint;
    let (badged, tcb) = (f.badged(endpoint, 11)?.cptr(), f.tcb()?.cptr());
    for at in 0..3 {
        let mut caps = [badged; 3];
        caps[at] = tcb;
        let mut badges = [11; 3];
        badges[at] = UNTOUCHED;
        let arrived = receiver.send(endpoint, &caps)?;
        ensure_eq!(arrived, arrival(3, 0b111 & !(1 << at), badges));
        ensure_eq!(kind_of(f, receiver.slot.capability::<CPtr>())?, Kind::Tcb);
        receiver.slot.delete()?;
    }
    Ok(())
}

fn second_capability(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let endpoint = receiver.endpoint;
    let (badged, tcb, reply) = (f.badged(endpoint, 11)?, f.tcb()?, f.reply()?);
    let caps = [tcb.cptr(), reply.cptr(), badged.cptr()];
    ensure_eq!(receiver.send(endpoint, &caps)?, arrival(1, 0, NONE));
    ensure_eq!(kind_of(f, receiver.slot.capability::<CPtr>())?, Kind::Tcb);
    receiver.slot.delete()?;
    let caps = [badged.cptr(), tcb.cptr(), reply.cptr()];
    let expected = arrival(2, 0b1, [11, UNTOUCHED, UNTOUCHED]);
    ensure_eq!(receiver.send(endpoint, &caps)?, expected);
    Ok(())
}

fn other_endpoint(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let other = f.endpoint()?;
    let badged = f.badged(other, 9)?;
    let arrived = receiver.send(receiver.endpoint, &[badged.cptr()])?;
    ensure_eq!(arrived, arrival(1, 0, NONE));
    receiver.slot.cancel_badged_sends()?;
    Ok(())
}

fn null_stops(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let endpoint = receiver.endpoint;
    let (null, tcb): (CPtr, CPtr) = (f.null()?, f.tcb()?.cptr());
    let badged = f.badged(endpoint, 4)?.cptr();
    let one = arrival(1, 1, [4, UNTOUCHED, UNTOUCHED]);
    ensure_eq!(
        receiver.send(endpoint, &[null, tcb, badged])?,
        arrival(0, 0, NONE)
    );
    ensure_eq!(receiver.send(endpoint, &[badged, null, badged])?, one);
    ensure!(f.is_empty(receiver.slot)?);
    Ok(())
}

fn underivable_stops(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let endpoint = receiver.endpoint;
    let badged = f.badged(endpoint, 4)?.cptr();
    let memory = f.untyped(5)?;
    let child = f.empty_slot()?;
    memory.retype(ObjectType::Reply, child, 1)?;
    let unmapped: CPtr = f.make(ObjectType::PageTable)?;
    let unassigned = f.pml4()?;
    let objects = [memory.cptr(), unmapped, unassigned.cptr()];
    for bad in conformance_kit::arch::underivable()
        .into_iter()
        .chain(objects)
    {
        let arrived = receiver.send(endpoint, &[badged, bad, badged])?;
        ensure_eq!(arrived, arrival(1, 1, [4, UNTOUCHED, UNTOUCHED]));
        ensure!(f.is_empty(receiver.slot)?);
    }
    // The slot is still there for the next message.
    let arrived = receiver.send(endpoint, &[f.tcb()?.cptr()])?;
    ensure_eq!(arrived, arrival(1, 0, NONE));
    Ok(())
}

fn badges_not_cleared(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let endpoint = receiver.endpoint;
    let badged = f.badged(endpoint, 8)?.cptr();
    ensure_eq!(receiver.send(endpoint, &[])?, arrival(0, 0, NONE));
    let one = arrival(1, 1, [8, UNTOUCHED, UNTOUCHED]);
    ensure_eq!(receiver.send(endpoint, &[badged])?, one);
    let two = arrival(2, 0b11, [8, 8, UNTOUCHED]);
    ensure_eq!(receiver.send(endpoint, &[badged, badged])?, two);
    Ok(())
}

fn rights_kept(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let notification = f.notification()?;
    let badged = f.badged(notification, 0x55)?;
    let signal_only = f.with_rights(badged, Rights::WRITE)?;
    receiver.send(receiver.endpoint, &[signal_only.cptr()])?;
    receiver.slot.capability::<Notification>().signal();
    ensure_eq!(notification.poll(), 0x55);
    receiver.slot.delete()?;
    // A sender with Grant alone hands on all rights of another endpoint.
    let strong = f.endpoint()?;
    let granting = f.with_rights(receiver.endpoint, Rights(0b0101))?;
    receiver.send(granting, &[strong.cptr()])?;
    receiver.slot.cancel_badged_sends()?;
    receiver.slot.delete()?;
    let weak = f.with_rights(notification, Rights::READ)?;
    receiver.send(receiver.endpoint, &[weak.cptr()])?;
    let signal = Invocation::new(receiver.slot.capability::<CPtr>(), 0, &[], &[]);
    signal.expect_error(InvalidCapability, &[0])
}

fn position(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let other = f.endpoint()?;
    let badged = f.badged(other, 6)?;
    let later = f.badged(other, 6)?;
    receiver.send(receiver.endpoint, &[badged.cptr()])?;
    let transferred: CPtr = receiver.slot.capability();
    // other, later, badged, transferred: a child of the one, not of the other.
    revoke(f, later)?;
    ensure_eq!(alive(f, [transferred])?, [true]);
    revoke(f, badged)?;
    ensure_eq!(alive(f, [badged.cptr(), transferred])?, [true, false]);
    // As a copy it is not revocable.
    receiver.send(receiver.endpoint, &[badged.cptr()])?;
    let copy = f.copy(transferred)?;
    revoke(f, transferred)?;
    ensure_eq!(alive(f, [copy])?, [true]);
    Ok(())
}

fn frame_unmapped(f: &mut Fixture) -> TestResult {
    let receiver = Receiver::new(f)?;
    let page = super::support::unmapped_pages(f, 2)?;
    let frame = f.frame(FrameSize::Small)?;
    frame.map(boot::VSPACE, page, Rights::ALL, Attributes::WriteBack)?;
    receiver.send(receiver.endpoint, &[frame.cptr()])?;
    let second: Frame = receiver.slot.capability();
    second.map(
        boot::VSPACE,
        page + 0x1000,
        Rights::ALL,
        Attributes::WriteBack,
    )?;
    delete(f, second)?;
    // SAFETY: the first mapping is still there.
    unsafe { (page as *const u64).read_volatile() };
    Ok(())
}

fn replies(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let (slot, seen): (Slot, &'static Seen) = (f.empty_slot()?, shared());
    f.helper(255, move || {
        thread_block::set_receive_slot(slot);
        loop {
            mark_badges();
            let answer = endpoint.call(Message::EMPTY);
            seen.publish(&answer);
        }
    })?;
    let badged = f.badged(endpoint, 3)?;
    endpoint.recv(reply);
    // The endpoint of the call is a capability like any other.
    reply.send(Message::EMPTY.with_caps(&[badged.cptr(), badged.cptr()]));
    ensure_eq!(seen.arrival(), arrival(1, 0, NONE));
    slot.cancel_badged_sends()?;
    slot.delete()?;
    let weak = f.with_rights(reply, Rights(0b1011))?;
    endpoint.recv(reply);
    weak.send(Message::EMPTY.with_caps(&[badged.cptr()]));
    ensure_eq!(seen.arrival(), arrival(0, 0, NONE));
    Ok(())
}

fn queued_sender(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let weak = f.with_rights(endpoint, Rights::WRITE)?;
    let (badged, tcb, slot) = (f.badged(endpoint, 2)?, f.tcb()?, f.empty_slot()?);
    let caps = [badged.cptr(), tcb.cptr()];
    for by in [endpoint, weak] {
        f.helper(100, move || {
            by.send(Message::new(1, []).with_caps(&caps));
        })?;
        f.settle()?;
    }
    thread_block::set_receive_slot(slot);
    mark_badges();
    let seen = Seen::default();
    seen.publish(&endpoint.wait().message);
    ensure_eq!(seen.arrival(), arrival(2, 1, [2, UNTOUCHED, UNTOUCHED]));
    ensure_eq!(kind_of(f, slot.capability::<CPtr>())?, Kind::Tcb);
    slot.delete()?;
    // Each with the right of its sender.
    mark_badges();
    seen.publish(&endpoint.wait().message);
    ensure_eq!(seen.arrival(), arrival(0, 0, NONE));
    Ok(())
}

fn no_receive_buffer(f: &mut Fixture) -> TestResult {
    use conformance_kit::arch::order;
    use sandglass::abi::syscall::Syscall;
    let (endpoint, tcb) = (f.endpoint()?, f.tcb()?);
    let badged = f.badged(endpoint, 2)?;
    let caps = [badged.cptr(), tcb.cptr()];
    f.helper(100, move || {
        endpoint.send(Message::new(1, [7]).with_caps(&caps));
    })?;
    f.settle()?;
    // The prober has no IPC buffer.
    let prober = f.prober()?;
    let stopped = prober.call_on(f, Syscall::NBWait, endpoint)?;
    ensure_eq!(stopped.registers.get(order::RSI), 1 << 12 | 1);
    ensure_eq!(stopped.registers.get(order::R10), 7);
    Ok(())
}
