//! 08, section 3: what headers say and the kernel does not do.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "08/3/set-notification-reports-capability-0",
        set_notification,
    ),
    check("08/3/domain-set-reports-argument-1", domain_set),
    check("08/3/retype-of-device-memory-reports-argument-1", device),
];

fn set_notification(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    conformance_kit::arch::issue_irq(boot::IRQ_CONTROL, 91, slot)?;
    let wrong = f.endpoint()?.cptr();
    let label = label::IRQ_HANDLER_SET_NOTIFICATION;
    Invocation::new(slot.capability::<CPtr>(), label, &[], &[wrong])
        .expect_error(InvalidCapability, &[0])
}

fn domain_set(f: &mut Fixture) -> TestResult {
    let wrong = f.endpoint()?.cptr();
    Invocation::new(boot::DOMAIN, label::DOMAIN_SET, &[0], &[wrong])
        .expect_error(InvalidArgument, &[1])
}

fn device(f: &mut Fixture) -> TestResult {
    let (memory, slot) = (f.device_untyped(12)?, f.empty_slot()?);
    for kind in [object::TCB, object::ENDPOINT, object::CNODE] {
        let words = [kind, 4, 0, 0, slot.index(), 1];
        Invocation::new(memory, label::UNTYPED_RETYPE, &words, &[boot::CNODE.cptr()])
            .expect_error(InvalidArgument, &[1])?;
    }
    Ok(())
}
