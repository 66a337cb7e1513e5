//! 08, section 5: traps that are easy to get wrong.

use conformance_kit::arch::order::RDI;
use sandglass::cap::IrqHandler;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("08/5/mint-of-a-badged-capability-fails", mint_of_badged),
    check("08/5/an-interrupt's-slot-keeps-its-notification", irq_slot),
    check("08/5/a-thread's-slots-keep-their-objects", thread_slots),
];

fn mint_of_badged(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let badged = f.badged(endpoint, 5)?;
    let (source, free) = (f.slot_of(badged), f.empty_slot()?);
    let mint = Invocation::new(
        boot::CNODE,
        label::CNODE_MINT,
        &[free.index(), 64, source.index(), 64, Rights::ALL.raw(), 0],
        &[boot::CNODE.cptr()],
    );
    for badge in [0, 5, 6] {
        mint.with_word(5, badge)
            .expect_error(IllegalOperation, &[])?;
    }
    ensure!(f.is_empty(free)?, "a refused Mint filled its slot");
    Ok(())
}

/// An interrupt that nothing raises.
fn handler(f: &mut Fixture) -> Result<IrqHandler, Failure> {
    let slot = f.empty_slot()?;
    conformance_kit::arch::issue_irq(boot::IRQ_CONTROL, 90, slot)?;
    Ok(slot.capability())
}

/// The end of a notification unbinds it: as long as the interrupt has it, it stays bound.
fn irq_slot(f: &mut Fixture) -> TestResult {
    let (handler, tcb, other) = (handler(f)?, f.tcb()?, f.notification()?);
    let bind = |notification: Notification| {
        let caps = [notification.cptr()];
        Invocation::new(tcb, label::TCB_BIND_NOTIFICATION, &[], &caps)
    };
    for cleared in [true, false] {
        let notification = f.notification()?;
        handler.set_notification(notification)?;
        bind(notification).expect_ok(&[])?;
        f.slot_of(notification).delete()?;
        bind(other).expect_error(IllegalOperation, &[])?;
        if cleared {
            handler.clear()?;
        } else {
            f.slot_of(handler).delete()?;
        }
        bind(other).expect_ok(&[])?;
        tcb.unbind_notification()?;
    }
    Ok(())
}

/// The end of an endpoint lets those who wait there make their system call again: as long as it
/// is another thread's handler, they wait.
fn thread_slots(f: &mut Fixture) -> TestResult {
    for by_deletion in [false, true] {
        let (endpoint, other) = (f.endpoint()?, f.tcb()?);
        other.set_timeout_endpoint(Some(endpoint))?;
        let cap = endpoint.cptr().raw();
        let waiting = f.caller(&entry(Syscall::Wait, &[(RDI, cap)]))?;
        waiting.start_and_settle(f)?;
        f.slot_of(endpoint).delete()?;
        ensure!(waiting.goes_on_or_waits(f)?, "the endpoint is gone");
        if by_deletion {
            f.slot_of(other).delete()?;
        } else {
            other.set_timeout_endpoint(None)?;
        }
        let stopped = waiting.stopped(f)?;
        ensure_eq!(stopped.label, fault::CAP_FAULT);
        ensure_eq!(stopped.words[..3], [waiting.code, cap, 1]);
    }
    Ok(())
}
