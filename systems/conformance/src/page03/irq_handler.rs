//! 03, section 7.6: IRQHandler, and the delivery of interrupts, which the PIT raises.

use sandglass::cap::{IoApicPin, IoPort, IrqHandler};

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

/// Vectors that nothing else uses, and a pin that no device drives.
const VECTOR: u64 = 79;
const UNUSED_PIN: u64 = 22;

fn handler(f: &mut Fixture, pin: u64) -> Result<IrqHandler, Failure> {
    let slot = f.empty_slot()?;
    let pin = IoApicPin {
        ioapic: 0,
        pin,
        level: false,
        active_low: false,
        vector: VECTOR,
    };
    boot::IRQ_CONTROL.get_ioapic(pin, slot)?;
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
    let handler = handler(f, UNUSED_PIN)?;
    let own = [
        label::IRQ_HANDLER_ACK,
        label::IRQ_HANDLER_SET_NOTIFICATION,
        label::IRQ_HANDLER_CLEAR,
    ];
    refuses_other_labels(&set(handler, f.notification()?), &own)
}

fn set_refusals(f: &mut Fixture) -> TestResult {
    let (handler, notification) = (handler(f, UNUSED_PIN)?, f.notification()?);
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
    let handler = handler(f, UNUSED_PIN)?;
    for _ in 0..2 {
        invoke(handler, label::IRQ_HANDLER_ACK).expect_ok(&[])?;
        invoke(handler, label::IRQ_HANDLER_CLEAR).expect_ok(&[])?;
        set(handler, f.notification()?).expect_ok(&[])?;
    }
    Ok(())
}

/// Channel 0 of the programmable interval timer, and its interrupt.
struct Pit {
    ports: IoPort,
    handler: IrqHandler,
}

impl Pit {
    const CHANNEL_0: u16 = 0x40;
    const COMMAND: u16 = 0x43;
    /// Mode 0 of channel 0: the output rises when the count ends.
    const ONE_SHOT: u8 = 0b0011_0000;
    /// Of 1.19 MHz: about 100 µs.
    const COUNT: u16 = 120;
    /// The input of the IOAPIC.
    const PIN: u64 = 2;

    fn new(f: &mut Fixture) -> Result<Self, Failure> {
        let ports = f
            .process
            .resources
            .io_ports(Self::CHANNEL_0, Self::COMMAND)?;
        // Without a count it stays silent.
        ports.out8(Self::COMMAND, Self::ONE_SHOT)?;
        let handler = handler(f, Self::PIN)?;
        Ok(Self { ports, handler })
    }

    /// Raises one interrupt, and waits long enough for it.
    fn fire(&self, f: &mut Fixture) -> TestResult {
        self.ports.out8(Self::COMMAND, Self::ONE_SHOT)?;
        for byte in Self::COUNT.to_le_bytes() {
            self.ports.out8(Self::CHANNEL_0, byte)?;
        }
        f.sleep(500)?;
        Ok(())
    }

    /// Acknowledges, and takes the edge that came while the line was masked: the IOAPIC may have
    /// kept it.
    fn unmask(&self, notification: Notification) -> TestResult {
        self.handler.ack()?;
        while notification.poll() != 0 {
            self.handler.ack()?;
        }
        Ok(())
    }
}

fn delivery(f: &mut Fixture) -> TestResult {
    const BADGE: u64 = 0x1234_0000_0000_0001;
    let (pit, notification) = (Pit::new(f)?, f.notification()?);
    let badged = f.badged(notification, BADGE)?;
    set(pit.handler, badged).expect_ok(&[])?;
    pit.unmask(notification)?;
    for _ in 0..3 {
        pit.fire(f)?;
        ensure_eq!(notification.poll(), BADGE);
        pit.unmask(notification)?;
    }
    Ok(())
}

fn masked(f: &mut Fixture) -> TestResult {
    let (pit, notification) = (Pit::new(f)?, f.notification()?);
    let badged = f.badged(notification, 1)?;
    set(pit.handler, badged).expect_ok(&[])?;
    pit.unmask(notification)?;
    pit.fire(f)?;
    ensure_eq!(notification.poll(), 1);
    pit.fire(f)?;
    ensure_eq!(notification.poll(), 0);
    pit.unmask(notification)?;
    pit.fire(f)?;
    ensure_eq!(notification.poll(), 1);
    Ok(())
}

fn cleared(f: &mut Fixture) -> TestResult {
    let (pit, notification) = (Pit::new(f)?, f.notification()?);
    let badged = f.badged(notification, 1)?;
    set(pit.handler, badged).expect_ok(&[])?;
    pit.unmask(notification)?;
    invoke(pit.handler, label::IRQ_HANDLER_CLEAR).expect_ok(&[])?;
    pit.fire(f)?;
    ensure_eq!(notification.poll(), 0);
    // That interrupt masked the line, although nobody was told.
    set(pit.handler, badged).expect_ok(&[])?;
    pit.fire(f)?;
    ensure_eq!(notification.poll(), 0);
    pit.unmask(notification)?;
    pit.fire(f)?;
    ensure_eq!(notification.poll(), 1);
    Ok(())
}

fn replaced(f: &mut Fixture) -> TestResult {
    let (pit, old, new) = (Pit::new(f)?, f.notification()?, f.notification()?);
    let (old_badged, new_badged) = (f.badged(old, 1)?, f.badged(new, 2)?);
    set(pit.handler, old_badged).expect_ok(&[])?;
    pit.unmask(old)?;
    set(pit.handler, new_badged).expect_ok(&[])?;
    // A refused one replaces nothing.
    set(pit.handler, f.me).expect_error(InvalidCapability, &[0])?;
    pit.fire(f)?;
    ensure_eq!((old.poll(), new.poll()), (0, 2));
    Ok(())
}

fn derived(f: &mut Fixture) -> TestResult {
    let (pit, notification) = (Pit::new(f)?, f.notification()?);
    let badged = f.badged(notification, 1)?;
    set(pit.handler, badged).expect_ok(&[])?;
    pit.unmask(notification)?;
    // The stored copy does without the capability it was made of, but not without the original.
    f.slot_of(badged).delete()?;
    pit.fire(f)?;
    ensure_eq!(notification.poll(), 1);
    pit.unmask(notification)?;
    f.slot_of(notification).revoke()?;
    pit.fire(f)?;
    ensure_eq!(notification.poll(), 0);
    Ok(())
}

fn without_answer(f: &mut Fixture) -> TestResult {
    let (pit, notification) = (Pit::new(f)?, f.notification()?);
    let badged = f.badged(notification, 1)?;
    let arrives = |f: &mut Fixture| {
        pit.unmask(notification)?;
        pit.fire(f)?;
        let arrived = notification.poll() == 1;
        pit.unmask(notification)?;
        invoke(pit.handler, label::IRQ_HANDLER_CLEAR).expect_ok(&[])?;
        Ok(arrived)
    };
    let set = set(pit.handler, badged);
    works_without_answer(f, &set, arrives)?;
    works_in_first_phase(f, &set, arrives)?;
    set.expect_ok(&[])?;
    let acknowledged = |f: &mut Fixture| {
        pit.fire(f)?;
        Ok(notification.poll() == 1)
    };
    let ack = invoke(pit.handler, label::IRQ_HANDLER_ACK);
    pit.unmask(notification)?;
    works_without_answer(f, &ack, acknowledged)?;
    works_in_first_phase(f, &ack, acknowledged)
}
