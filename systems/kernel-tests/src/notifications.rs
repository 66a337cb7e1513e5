//! Notifications: flags that accumulate, threads bound to them, and contexts bound to them
//! (ABI 01, section 5.5, ABI 04, section 7.6).

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::cap::{Notification, Rights};
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{ensure, ensure_eq, Message, SetupError};

use crate::fixture::{runs_on, Fixture, FULL};

const PRIORITY: u8 = 100;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "notifications",
        &[
            ("flags_accumulate_until_they_are_taken", accumulate),
            ("a_waiter_gets_the_badge_of_one_signal", waiter),
            ("a_bound_thread_is_woken_from_its_endpoint", bound_wakes),
            ("a_pending_signal_comes_before_a_message", bound_first),
            ("a_bound_thread_in_a_call_is_not_disturbed", bound_in_call),
            ("unbound_a_thread_is_not_woken", unbound),
            ("binding_is_exclusive", exclusive),
            ("a_passive_waiter_runs_on_the_notifications_context", lends),
            ("rights_are_needed_to_signal_and_to_wait", rights),
        ],
    );
}

fn badged(
    fixture: &mut Fixture,
    notification: Notification,
    badge: u64,
) -> Result<Notification, SetupError> {
    fixture
        .process
        .resources
        .mint(notification, Rights::ALL, badge)
}

fn accumulate(fixture: &mut Fixture) -> TestResult {
    let notification = fixture.process.resources.notification()?;
    for badge in [1, 4, 1 << 63] {
        badged(fixture, notification, badge)?.signal();
    }
    ensure_eq!(notification.poll(), 1 << 63 | 5);
    ensure_eq!(notification.poll(), 0);
    Ok(())
}

fn waiter(fixture: &mut Fixture) -> TestResult {
    let notification = fixture.process.resources.notification()?;
    let got: &AtomicU64 = shared();
    fixture.spawn_full(PRIORITY, move || got.store(notification.wait(), Relaxed))?;
    fixture.settle();
    badged(fixture, notification, 2)?.signal();
    badged(fixture, notification, 8)?.signal();
    fixture.settle();
    ensure_eq!(got.load(Relaxed), 2);
    ensure_eq!(notification.poll(), 8);
    Ok(())
}

fn bound_wakes(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (notification, endpoint) = (resources.notification()?, resources.endpoint()?);
    let reply = resources.reply()?;
    let got: &[AtomicU64; 2] = shared();
    let tcb = fixture.spawn_full(PRIORITY, move || {
        for slot in got {
            slot.store(endpoint.recv(reply).badge, Relaxed);
        }
    })?;
    tcb.bind_notification(notification)?;
    fixture.settle();
    badged(fixture, notification, 16)?.signal();
    fixture.settle();
    ensure_eq!(got[0].load(Relaxed), 16);
    // It serves its endpoint as before.
    let sender = fixture
        .process
        .resources
        .mint(endpoint, Rights::ALL, 0x55)?;
    sender.send(Message::EMPTY);
    fixture.settle();
    ensure_eq!(got[1].load(Relaxed), 0x55);
    Ok(())
}

fn bound_first(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (notification, endpoint) = (resources.notification()?, resources.endpoint()?);
    let reply = resources.reply()?;
    let sender = resources.mint(endpoint, Rights::ALL, 0x55)?;
    fixture.spawn_full(PRIORITY, move || sender.send(Message::EMPTY))?;
    fixture.settle();
    badged(fixture, notification, 32)?.signal();
    let got: &[AtomicU64; 2] = shared();
    let context = fixture.context(FULL)?;
    let tcb = fixture.prepare(ThreadParams::new(PRIORITY, context), move || {
        for slot in got {
            slot.store(endpoint.nb_recv(reply).badge, Relaxed);
        }
    })?;
    tcb.bind_notification(notification)?;
    tcb.resume()?;
    fixture.settle();
    ensure_eq!(got[0].load(Relaxed), 32);
    ensure_eq!(got[1].load(Relaxed), 0x55);
    Ok(())
}

/// A thread that waits for an answer stays there; the signal stays pending.
fn bound_in_call(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (notification, endpoint) = (resources.notification()?, resources.endpoint()?);
    let reply = resources.reply()?;
    let got: &AtomicU64 = shared();
    let tcb = fixture.spawn_full(PRIORITY, move || {
        got.store(endpoint.call(Message::EMPTY).label(), Relaxed);
    })?;
    tcb.bind_notification(notification)?;
    endpoint.recv(reply);
    badged(fixture, notification, 64)?.signal();
    fixture.settle();
    ensure_eq!(got.load(Relaxed), 0);
    reply.send(Message::new(3, []));
    fixture.settle();
    ensure_eq!(got.load(Relaxed), 3);
    tcb.unbind_notification()?;
    ensure_eq!(notification.poll(), 64);
    Ok(())
}

fn unbound(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (notification, endpoint) = (resources.notification()?, resources.endpoint()?);
    let got: &AtomicU64 = shared();
    let tcb = fixture.spawn_full(PRIORITY, move || {
        endpoint.wait();
        got.store(1, Relaxed);
    })?;
    tcb.bind_notification(notification)?;
    fixture.settle();
    tcb.unbind_notification()?;
    badged(fixture, notification, 2)?.signal();
    fixture.settle();
    ensure_eq!(got.load(Relaxed), 0);
    ensure_eq!(notification.poll(), 2);
    ensure!(tcb.unbind_notification().is_err());
    Ok(())
}

fn exclusive(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let (first, second) = (resources.notification()?, resources.notification()?);
    let one = fixture.spawn_full(PRIORITY, || ())?;
    let other = fixture.spawn_full(PRIORITY, || ())?;
    one.bind_notification(first)?;
    ensure!(one.bind_notification(second).is_err());
    ensure!(other.bind_notification(first).is_err());
    let waited = fixture.process.resources.notification()?;
    fixture.spawn_full(PRIORITY, move || {
        waited.wait();
    })?;
    fixture.settle();
    ensure!(other.bind_notification(waited).is_err());
    other.bind_notification(second)?;
    Ok(())
}

/// A context bound to a notification: whoever is woken without one runs on it, and gives it back
/// when it waits there again.
fn lends(fixture: &mut Fixture) -> TestResult {
    let notification = fixture.process.resources.notification()?;
    let context = fixture.context(FULL)?;
    context.bind_notification(notification)?;
    let turns: &AtomicU64 = shared();
    let initial = fixture.context(FULL)?;
    let (inside, go_on) = {
        let resources = &mut fixture.process.resources;
        (resources.notification()?, resources.notification()?)
    };
    let tcb = fixture.spawn(ThreadParams::new(PRIORITY, initial), move || loop {
        notification.wait();
        turns.fetch_add(1, Relaxed);
        inside.signal();
        go_on.wait();
    })?;
    fixture.settle();
    initial.unbind_tcb(tcb)?;
    for turn in 1..=3 {
        notification.signal();
        inside.wait();
        ensure_eq!(turns.load(Relaxed), turn);
        ensure!(runs_on(tcb, PRIORITY, context), "not lent");
        go_on.signal();
        fixture.settle();
        // Free again: it can be bound to another thread and taken back.
        let other = fixture.spawn(ThreadParams::passive(PRIORITY), || ())?;
        context.bind(other)?;
        context.unbind_tcb(other)?;
    }
    Ok(())
}

fn rights(fixture: &mut Fixture) -> TestResult {
    let resources = &mut fixture.process.resources;
    let notification = resources.notification()?;
    let (reader, writer) = (
        resources.copy(notification, Rights::READ)?,
        resources.copy(notification, Rights::WRITE)?,
    );
    reader.signal();
    ensure_eq!(notification.poll(), 0);
    let badged = fixture
        .process
        .resources
        .mint(notification, Rights::WRITE, 4)?;
    badged.signal();
    ensure_eq!(reader.poll(), 4);
    // Waiting without the right is a fault of the waiter.
    let handler = fixture.process.resources.endpoint()?;
    let reply = fixture.process.resources.reply()?;
    let context = fixture.context(FULL)?;
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..ThreadParams::new(PRIORITY, context)
    };
    fixture.spawn(params, move || {
        writer.wait();
    })?;
    let fault = handler.recv(reply).message;
    ensure_eq!(fault.label(), sandglass::abi::fault::CAP_FAULT);
    Ok(())
}
