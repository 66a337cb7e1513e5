//! Capabilities in messages (ABI 02, section 8), and the rights that sending them takes.

use sandglass::cap::{Capability, Endpoint, Notification, Rights, Slot};
use sandglass::testing::{Failure, Suite, TestResult};
use sandglass::{ensure, ensure_eq, thread_block, Message, SetupError};

use crate::fixture::Fixture;

const PRIORITY: u8 = 100;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "transfer",
        &[
            ("a_sent_capability_arrives_and_works", arrives),
            (
                "a_badged_endpoint_of_the_message_arrives_as_badge",
                unwrapped,
            ),
            ("without_grant_nothing_is_transferred", no_grant),
            ("into_an_occupied_slot_nothing_is_transferred", occupied),
            ("at_most_one_capability_is_transferred", one_slot),
            ("a_reply_carries_capabilities_too", reply),
            ("a_sent_capability_is_derived_from_the_senders", derived),
        ],
    );
}

/// Lets a thread send `caps` through `through`, and receives the message with `slot` as receive
/// slot.
fn pass(
    fixture: &mut Fixture,
    endpoint: Endpoint,
    through: Endpoint,
    caps: &'static [u64],
    slot: Slot,
) -> Result<Message, SetupError> {
    fixture.spawn_full(PRIORITY, move || {
        let mut pointers = [sandglass::cap::CPtr::NULL; 3];
        for (pointer, &cap) in pointers.iter_mut().zip(caps) {
            *pointer = sandglass::cap::CPtr::new(cap);
        }
        through.send(Message::new(1, [2]).with_caps(&pointers[..caps.len()]));
    })?;
    thread_block::set_receive_slot(slot);
    Ok(endpoint.wait().message)
}

/// The message of [`pass`] is whole in any case.
fn check(message: &Message, extra_caps: usize, unwrapped: u64) -> TestResult {
    ensure_eq!((message.label(), message.word(0)), (1, 2));
    ensure_eq!(message.info().extra_caps(), extra_caps);
    ensure_eq!(message.info().caps_unwrapped(), unwrapped);
    Ok(())
}

fn leak(caps: &[u64]) -> &'static [u64] {
    alloc::boxed::Box::leak(caps.to_vec().into_boxed_slice())
}

fn arrives(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (endpoint, gift) = (resources.endpoint()?, resources.notification()?);
    let badged = resources.mint(gift, Rights::WRITE, 9)?;
    let slot = resources.allocate_slot()?;
    let message = pass(fixture, endpoint, endpoint, leak(&[badged.address()]), slot)?;
    check(&message, 1, 0)?;
    let received: Notification = slot.capability();
    received.signal();
    ensure_eq!(gift.poll(), 9);
    Ok(())
}

fn unwrapped(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (endpoint, gift) = (resources.endpoint()?, resources.notification()?);
    let badged = resources.mint(endpoint, Rights::ALL, 0xb)?;
    let slot = resources.allocate_slot()?;
    let caps = leak(&[badged.address(), gift.address(), badged.address()]);
    let message = pass(fixture, endpoint, endpoint, caps, slot)?;
    check(&message, 3, 0b101)?;
    ensure_eq!(message.unwrapped_badge(0), Some(0xb));
    ensure_eq!(message.unwrapped_badge(2), Some(0xb));
    slot.capability::<Notification>().signal();
    Ok(())
}

fn no_grant(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (endpoint, gift) = (resources.endpoint()?, resources.notification()?);
    let through = resources.copy(endpoint, Rights::WRITE.union(Rights::GRANT_REPLY))?;
    let slot = resources.allocate_slot()?;
    let message = pass(fixture, endpoint, through, leak(&[gift.address()]), slot)?;
    check(&message, 0, 0)?;
    ensure!(fixture.is_empty(slot)?);
    Ok(())
}

fn occupied(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (endpoint, gift) = (resources.endpoint()?, resources.notification()?);
    let kept = resources.notification()?;
    let slot = resources.slot_of(kept);
    let message = pass(fixture, endpoint, endpoint, leak(&[gift.address()]), slot)?;
    check(&message, 0, 0)?;
    kept.signal();
    ensure_eq!(gift.poll(), 0);
    Ok(())
}

fn one_slot(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let endpoint = resources.endpoint()?;
    let (first, second) = (resources.notification()?, resources.notification()?);
    let first = resources.mint(first, Rights::ALL, 1)?;
    let slot = resources.allocate_slot()?;
    let caps = leak(&[first.address(), second.address()]);
    let message = pass(fixture, endpoint, endpoint, caps, slot)?;
    check(&message, 1, 0)?;
    slot.capability::<Notification>().signal();
    ensure_eq!(second.poll(), 0);
    ensure_eq!(first.poll(), 1);
    Ok(())
}

fn reply(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let endpoint = resources.endpoint()?;
    let reply = resources.reply()?;
    let gift = resources.notification()?;
    fixture.spawn_full(PRIORITY, move || {
        endpoint.recv(reply);
        reply.send(Message::new(1, [2]).with_caps(&[gift.cptr()]));
    })?;
    fixture.settle();
    let slot = fixture.process.resources.allocate_slot()?;
    thread_block::set_receive_slot(slot);
    let message = endpoint.call(Message::EMPTY);
    check(&message, 1, 0)?;
    slot.capability::<Notification>().signal();
    let original: Notification = gift;
    ensure_eq!(original.poll(), 0);
    // A signal through an unbadged capability sets no flag, but makes a waiter go on; that the
    // capability is the notification shows by a badge.
    let again =
        fixture
            .process
            .resources
            .mint(slot.capability::<Notification>(), Rights::ALL, 0x40)?;
    again.signal();
    ensure_eq!(original.poll(), 0x40);
    Ok(())
}

fn derived(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (endpoint, gift) = (resources.endpoint()?, resources.notification()?);
    let slot = resources.allocate_slot()?;
    let message = pass(fixture, endpoint, endpoint, leak(&[gift.address()]), slot)?;
    check(&message, 1, 0)?;
    if fixture.is_empty(slot)? {
        return Err(Failure::from("nothing arrived"));
    }
    let original = fixture.process.resources.slot_of(gift);
    original.revoke()?;
    ensure!(fixture.is_empty(slot)?, "it survived revocation");
    ensure!(!fixture.is_empty(original)?);
    Ok(())
}
