//! 02, sections 5.1 and 7.2: where capabilities stand that other invocations than Retype make.

use super::support::{alive, delete, irq_handler, revoke};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "02/5.1/handlers-follow-their-control",
        handlers_follow_control,
    ),
    check("02/5.1/a-pool-follows-its-memory", pool_follows_memory),
    check(
        "02/7.2/revoking-a-pool-of-make-pool-deletes-nothing",
        made_pool,
    ),
    check(
        "02/7.2/revoking-the-pool-of-boot-deletes-its-copies",
        boot_pool,
    ),
];

fn handlers_follow_control(f: &mut Fixture) -> TestResult {
    // A handler is revocable, as its interrupt control is not the handler; its copies are not.
    let handler = irq_handler(f, 60)?;
    let (first, second) = (f.copy(handler)?, f.null::<CPtr>()?);
    f.slot_of(second).copy_from(f.slot_of(first), Rights::ALL)?;
    let caps = [handler, first, second];
    revoke(f, first)?;
    ensure_eq!(alive(f, caps)?, [true; 3]);
    revoke(f, handler)?;
    ensure_eq!(alive(f, caps)?, [true, false, false]);
    Ok(())
}

/// A pool and the memory that it was made of.
fn pool(f: &mut Fixture) -> Result<(CPtr, Untyped), Failure> {
    let (memory, slot) = (f.untyped(12)?, f.empty_slot()?);
    boot::ASID_CONTROL.make_pool(memory, slot)?;
    Ok((slot.capability(), memory))
}

/// It stands behind its memory, of which it and its copies are children.
fn pool_follows_memory(f: &mut Fixture) -> TestResult {
    let (pool, memory) = pool(f)?;
    let first = f.copy(pool)?;
    let second = f.copy(first)?;
    delete(f, pool)?;
    // The last ones stand where it stood.
    let third = f.copy(second)?;
    let caps = [pool, first, second, third];
    ensure_eq!(alive(f, caps)?, [false, true, true, true]);
    revoke(f, memory)?;
    ensure_eq!(alive(f, caps)?, [false; 4]);
    let again = f.empty_slot()?;
    boot::ASID_CONTROL.make_pool(memory, again)?;
    Ok(())
}

/// It is inserted like a copy, and so is no more revocable than its copies are, wherever it is.
fn made_pool(f: &mut Fixture) -> TestResult {
    let (pool, _) = pool(f)?;
    let first = f.copy(pool)?;
    let second = f.copy(first)?;
    let moved: CPtr = f.null()?;
    for cap in [pool, first, second] {
        revoke(f, cap)?;
        ensure_eq!(alive(f, [pool, first, second])?, [true; 3]);
    }
    f.slot_of(moved).move_from(f.slot_of(pool))?;
    revoke(f, moved)?;
    ensure_eq!(alive(f, [moved, first, second])?, [true; 3]);
    Ok(())
}

/// Capabilities of boot are originals.
fn boot_pool(f: &mut Fixture) -> TestResult {
    let first = f.copy(boot::ASID_POOL)?;
    let second = f.copy(first)?;
    let caps = [boot::ASID_POOL.cptr(), first.cptr(), second.cptr()];
    revoke(f, first)?;
    ensure_eq!(alive(f, caps)?, [true; 3]);
    revoke(f, boot::ASID_POOL)?;
    ensure_eq!(alive(f, caps)?, [true, false, false]);
    Ok(())
}
