//! Interrupts of devices, wherever they come from: whom they wake, and when they are masked (03, section 7.6).

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_kernel::event::{Event, Trap};
use sandglass_testkit::isa;
use sandglass_testkit::world::World;

const ALL: u64 = 0b1111;

fn is_masked(w: &World) -> bool {
    w.k.machine.is_masked(isa::mask(5))
}

#[test]
fn an_interrupt_signals_with_the_badge_and_stays_masked_until_it_is_acknowledged() {
    let mut w = World::new();
    let handler = w.issue_irq(5).expect("issued");
    let irq = isa::irq(5);
    let notification = w.make(types::NOTIFICATION, 0);
    let badged = w.mint(notification, ALL, 0x77).expect("minted");
    let set = label::IRQ_HANDLER_SET_NOTIFICATION;
    w.invoke(handler, set, &[], &[badged]).expect("set");
    for _ in 0..2 {
        w.event(Event::Trap(Trap::Interrupt { irq }));
        assert!(is_masked(&w));
        w.wait(notification);
        let badge = w.registers().get(isa::CAP);
        assert_eq!(badge, 0x77);
        w.invoke(handler, label::IRQ_HANDLER_ACK, &[], &[])
            .expect("acknowledged");
        assert!(!is_masked(&w));
    }
    w.invoke(handler, label::IRQ_HANDLER_CLEAR, &[], &[])
        .expect("cleared");
    w.event(Event::Trap(Trap::Interrupt { irq }));
    assert!(is_masked(&w), "masked, though nobody is told");
    let cap = w.cap(notification).notification().expect("a notification");
    assert!(!cap.object.at(&w.k).is_active(), "nothing is pending");
}

#[test]
fn only_a_notification_that_can_be_signalled_is_set() {
    let mut w = World::new();
    let handler = w.issue_irq(5).expect("issued");
    let notification = w.make(types::NOTIFICATION, 0);
    let readable = w.copy(notification, 0b10).expect("copied");
    let endpoint = w.make(types::ENDPOINT, 0);
    let set = label::IRQ_HANDLER_SET_NOTIFICATION;
    for wrong in [readable, endpoint, slot::TCB] {
        let refused = w.invoke(handler, set, &[], &[wrong]).unwrap_err();
        assert_eq!(refused.error, ErrorNumber::InvalidCapability);
    }
    let refused = w.invoke(handler, set, &[], &[]).unwrap_err();
    assert_eq!(refused.error, ErrorNumber::TruncatedMessage);
}

/// The kernel's own capability keeps a notification alive; with the handler it goes, and whoever
/// waits is let go.
#[test]
fn the_last_capability_to_a_notification_may_be_an_interrupts() {
    let mut w = World::new();
    let handler = w.issue_irq(5).expect("issued");
    let notification = w.make(types::NOTIFICATION, 0);
    let threads: Vec<_> = (0..20)
        .map(|_| w.start_thread(100, 1_000, 10_000))
        .collect();
    let wakes = w.sleep();
    while w.running().is_some() {
        w.wait(notification);
    }
    w.wake(wakes);
    let set = label::IRQ_HANDLER_SET_NOTIFICATION;
    w.invoke(handler, set, &[], &[notification]).expect("set");
    w.delete(notification).expect("deleted");
    let is_blocked = |w: &World| threads.iter().all(|t| t.handle.at(&w.k).is_blocked());
    assert!(is_blocked(&w), "the kernel has a capability to it");
    w.k.machine.set_interrupt_pending(true);
    w.delete(handler).expect("deleted");
    w.k.machine.set_interrupt_pending(false);
    assert!(threads.iter().all(|t| t.handle.at(&w.k).is_runnable()));
    assert!(is_masked(&w));
    w.issue_irq(5).expect("free again");
}
