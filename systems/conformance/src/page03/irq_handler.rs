//! 03, section 7.6: IRQHandler, and the delivery of interrupts, which a timer raises.

use conformance_kit::arch::{issue_irq, Alarm};
use sandglass::cap::IrqHandler;

use crate::prelude::*;

use super::common::{refuses_other_labels, truncated, works_in_first_phase, works_without_answer};

pub const CHECKS: &[Check] = &[
    check("03/7.6/other-labels", other_labels),
    check("03/7.6/set-notification-refusals", set_refusals),
    check("03/7.6/ack-and-clear-always-succeed", no_arguments),
    check("03/7.6/signals-with-the-stored-badge", delivery),
    check("03/7.6/masked-until-acknowledged", masked),
    check("03/7.6/cleared-drops-and-masks", cleared),
    check("03/7.6/a-new-notification-replaces-the-old", replaced),
    check("03/7.6/stores-a-derived-copy", derived),
    check("03/7.6/by-send-and-in-a-first-phase", without_answer),
];

/// The handler of an interrupt that nothing raises.
fn handler(f: &mut Fixture) -> Result<IrqHandler, Failure> {
    let slot = f.empty_slot()?;
    issue_irq(boot::IRQ_CONTROL, 78, slot)?;
    Ok(slot.capability())
}

fn invoke(handler: IrqHandler, label: u64) -> Invocation {
    Invocation::new(handler, label, &[], &[])
}

fn set(handler: IrqHandler, notification: impl Capability) -> Invocation {
    let caps = [notification.cptr()];
    Invocation::new(handler, label::IRQ_HANDLER_SET_NOTIFICATION, &[], &caps)
}

fn other_labels(f: &mut Fixture) -> TestResult {
    let handler = handler(f)?;
    let own = [
        label::IRQ_HANDLER_ACK,
        label::IRQ_HANDLER_SET_NOTIFICATION,
        label::IRQ_HANDLER_CLEAR,
    ];
    refuses_other_labels(&set(handler, f.notification()?), &own)
}

fn set_refusals(f: &mut Fixture) -> TestResult {
    let (handler, notification) = (handler(f)?, f.notification()?);
    truncated(&set(handler, notification))?;
    let wrong = [
        f.null()?,
        f.endpoint()?.cptr(),
        f.me.cptr(),
        f.with_rights(notification, Rights::READ)?.cptr(),
    ];
    for wrong in wrong {
        // The number is that of the invoked capability.
        set(handler, wrong).expect_error(InvalidCapability, &[0])?;
    }
    set(handler, notification).expect_ok(&[])?;
    let write = f.with_rights(notification, Rights::WRITE)?;
    set(handler, write).expect_ok(&[])
}

fn no_arguments(f: &mut Fixture) -> TestResult {
    let handler = handler(f)?;
    for _ in 0..2 {
        invoke(handler, label::IRQ_HANDLER_ACK).expect_ok(&[])?;
        invoke(handler, label::IRQ_HANDLER_CLEAR).expect_ok(&[])?;
        set(handler, f.notification()?).expect_ok(&[])?;
    }
    Ok(())
}

/// Raises one interrupt, and waits long enough for it.
fn fire(f: &mut Fixture, alarm: &Alarm) -> TestResult {
    alarm.set(100)?;
    f.sleep(500)?;
    alarm.end();
    Ok(())
}

/// Acknowledges, and takes what came while the line was masked: an interrupt controller may have kept an edge.
fn unmask(alarm: &Alarm, notification: Notification) -> TestResult {
    alarm.handler.ack()?;
    while notification.poll() != 0 {
        alarm.handler.ack()?;
    }
    Ok(())
}

fn delivery(f: &mut Fixture) -> TestResult {
    const BADGE: u64 = 0x1234_0000_0000_0001;
    let (alarm, notification) = (Alarm::new(f)?, f.notification()?);
    let badged = f.badged(notification, BADGE)?;
    set(alarm.handler, badged).expect_ok(&[])?;
    unmask(&alarm, notification)?;
    for _ in 0..3 {
        fire(f, &alarm)?;
        ensure_eq!(notification.poll(), BADGE);
        unmask(&alarm, notification)?;
    }
    Ok(())
}

fn masked(f: &mut Fixture) -> TestResult {
    let (alarm, notification) = (Alarm::new(f)?, f.notification()?);
    let badged = f.badged(notification, 1)?;
    set(alarm.handler, badged).expect_ok(&[])?;
    unmask(&alarm, notification)?;
    fire(f, &alarm)?;
    ensure_eq!(notification.poll(), 1);
    fire(f, &alarm)?;
    ensure_eq!(notification.poll(), 0);
    unmask(&alarm, notification)?;
    fire(f, &alarm)?;
    ensure_eq!(notification.poll(), 1);
    Ok(())
}

fn cleared(f: &mut Fixture) -> TestResult {
    let (alarm, notification) = (Alarm::new(f)?, f.notification()?);
    let badged = f.badged(notification, 1)?;
    set(alarm.handler, badged).expect_ok(&[])?;
    unmask(&alarm, notification)?;
    invoke(alarm.handler, label::IRQ_HANDLER_CLEAR).expect_ok(&[])?;
    fire(f, &alarm)?;
    ensure_eq!(notification.poll(), 0);
    // That interrupt masked the line, although nobody was told.
    set(alarm.handler, badged).expect_ok(&[])?;
    fire(f, &alarm)?;
    ensure_eq!(notification.poll(), 0);
    unmask(&alarm, notification)?;
    fire(f, &alarm)?;
    ensure_eq!(notification.poll(), 1);
    Ok(())
}

fn replaced(f: &mut Fixture) -> TestResult {
    let (alarm, old, new) = (Alarm::new(f)?, f.notification()?, f.notification()?);
    let (old_badged, new_badged) = (f.badged(old, 1)?, f.badged(new, 2)?);
    set(alarm.handler, old_badged).expect_ok(&[])?;
    unmask(&alarm, old)?;
    set(alarm.handler, new_badged).expect_ok(&[])?;
    // A refused one replaces nothing.
    set(alarm.handler, f.me).expect_error(InvalidCapability, &[0])?;
    fire(f, &alarm)?;
    ensure_eq!((old.poll(), new.poll()), (0, 2));
    Ok(())
}

fn derived(f: &mut Fixture) -> TestResult {
    let (alarm, notification) = (Alarm::new(f)?, f.notification()?);
    let badged = f.badged(notification, 1)?;
    set(alarm.handler, badged).expect_ok(&[])?;
    unmask(&alarm, notification)?;
    // The stored copy does without the capability it was made of, but not without the original.
    f.slot_of(badged).delete()?;
    fire(f, &alarm)?;
    ensure_eq!(notification.poll(), 1);
    unmask(&alarm, notification)?;
    f.slot_of(notification).revoke()?;
    fire(f, &alarm)?;
    ensure_eq!(notification.poll(), 0);
    Ok(())
}

fn without_answer(f: &mut Fixture) -> TestResult {
    let (alarm, notification) = (Alarm::new(f)?, f.notification()?);
    let badged = f.badged(notification, 1)?;
    let arrives = |f: &mut Fixture| {
        unmask(&alarm, notification)?;
        fire(f, &alarm)?;
        let arrived = notification.poll() == 1;
        unmask(&alarm, notification)?;
        invoke(alarm.handler, label::IRQ_HANDLER_CLEAR).expect_ok(&[])?;
        Ok(arrived)
    };
    let set = set(alarm.handler, badged);
    works_without_answer(f, &set, arrives)?;
    works_in_first_phase(f, &set, arrives)?;
    set.expect_ok(&[])?;
    let acknowledged = |f: &mut Fixture| {
        fire(f, &alarm)?;
        Ok(notification.poll() == 1)
    };
    let ack = invoke(alarm.handler, label::IRQ_HANDLER_ACK);
    unmask(&alarm, notification)?;
    works_without_answer(f, &ack, acknowledged)?;
    works_in_first_phase(f, &ack, acknowledged)
}
