//! 02, section 5: where signals of software-generated interrupts stand, which kernels for one core have.

use conformance_kit::arch::made;

use crate::page02::support::{alive, delete, revoke};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/5.1/signals-follow-their-control", follow_control),
    check("02/5.2/a-signal-is-no-parent-of-an-equal-one", no_parent),
    check(
        "02/5.2/irq-control-is-the-parent-of-all-signals",
        control_parent,
    ),
    check("02/7.1/a-deleted-signal-leaves-its-copies", deleted),
];

/// A capability that signals this interrupt to the first core.
fn signal(f: &mut Fixture, number: u64) -> Result<CPtr, Failure> {
    match made(f, number)?.first() {
        Some(&(cap, _)) => Ok(cap),
        None => Err(Failure::skip("kernels for several cores have no signals")),
    }
}

/// One is revocable, as its interrupt control is no signal; its copies are not.
fn follow_control(f: &mut Fixture) -> TestResult {
    let signal = signal(f, 3)?;
    let first = f.copy(signal)?;
    let second = f.copy(first)?;
    let caps = [signal, first, second];
    revoke(f, first)?;
    ensure_eq!(alive(f, caps)?, [true; 3]);
    revoke(f, signal)?;
    ensure_eq!(alive(f, caps)?, [true, false, false]);
    Ok(())
}

/// Each that IRQ control made begins anew, whichever comes first.
fn no_parent(f: &mut Fixture) -> TestResult {
    let caps = [signal(f, 4)?, signal(f, 4)?, signal(f, 5)?];
    for cap in caps {
        revoke(f, cap)?;
        ensure_eq!(alive(f, caps)?, [true; 3]);
    }
    Ok(())
}

fn control_parent(f: &mut Fixture) -> TestResult {
    let signal = signal(f, 6)?;
    let caps = [signal, f.copy(signal)?, boot::IRQ_CONTROL.cptr()];
    revoke(f, boot::IRQ_CONTROL)?;
    ensure_eq!(alive(f, caps)?, [false, false, true]);
    Ok(())
}

fn deleted(f: &mut Fixture) -> TestResult {
    let signal = signal(f, 7)?;
    let copy = f.copy(signal)?;
    delete(f, signal)?;
    // It still signals: that never fails.
    Invocation::new(copy, label::INVALID, &[], &[]).expect_ok(&[])?;
    delete(f, copy)
}
