//! 05, section 5: valid handler capabilities.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("05/5/what-set-space-accepts", set_space),
    check("05/5/what-set-sched-params-accepts", set_sched_params),
    check(
        "05/5/what-set-timeout-endpoint-accepts",
        set_timeout_endpoint,
    ),
    check(
        "05/5/the-slot-holds-a-copy-of-the-capability",
        slot_holds_copy,
    ),
];

/// Handlers that are valid, and such that are not.
fn handlers(f: &mut Fixture) -> Result<(Vec<CPtr>, Vec<CPtr>), Failure> {
    let endpoint = f.endpoint()?;
    let null: CPtr = f.null()?;
    let (write, read) = (Rights::WRITE, Rights::READ);
    let (grant, grant_reply) = (Rights::GRANT, Rights::GRANT_REPLY);
    let mut valid = vec![null, endpoint.cptr(), f.badged(endpoint, 9)?.cptr()];
    for rights in [
        write.union(grant),
        write.union(grant_reply),
        write.union(grant).union(grant_reply),
        write.union(read).union(grant),
    ] {
        valid.push(f.with_rights(endpoint, rights)?.cptr());
    }
    let mut invalid = vec![
        f.notification()?.cptr(),
        f.tcb()?.cptr(),
        f.reply()?.cptr(),
        f.cnode(1)?.cptr(),
        f.frame(FrameSize::Small)?.cptr(),
        boot::IRQ_CONTROL.cptr(),
    ];
    for rights in [
        Rights::NONE,
        write,
        Rights::READ_WRITE,
        read.union(grant).union(grant_reply),
        grant.union(grant_reply),
    ] {
        invalid.push(f.with_rights(endpoint, rights)?.cptr());
    }
    Ok((valid, invalid))
}

/// Fails unless the invocation takes the valid handlers as its extra capability `index`, and
/// refuses the others as capability `index` + 1.
fn expect_rules(f: &mut Fixture, invocation: &Invocation, index: usize) -> TestResult {
    let (valid, invalid) = handlers(f)?;
    for handler in valid {
        invocation.with_cap(index, handler).expect_ok(&[])?;
    }
    for handler in invalid {
        let refused = invocation.with_cap(index, handler);
        refused.expect_error(InvalidCapability, &[index as u64 + 1])?;
    }
    Ok(())
}

fn set_space(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let caps = [CPtr::NULL, boot::CNODE.cptr(), boot::VSPACE.cptr()];
    let set = Invocation::new(tcb, label::TCB_SET_SPACE, &[0, 0], &caps);
    expect_rules(f, &set, 0)
}

fn set_sched_params(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let caps = [boot::TCB.cptr(), CPtr::NULL, CPtr::NULL];
    let set = Invocation::new(tcb, label::TCB_SET_SCHED_PARAMS, &[0, 0], &caps);
    expect_rules(f, &set, 2)
}

fn set_timeout_endpoint(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let set = Invocation::new(tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &[CPtr::NULL]);
    expect_rules(f, &set, 0)
}

fn slot_holds_copy(f: &mut Fixture) -> TestResult {
    // Deleting the capability that was given changes nothing.
    let thread = f.raw(&conformance_kit::arch::STOP, &distinct())?;
    f.slot_of(thread.handler).delete()?;
    ensure_eq!(thread.run(f)?.label, fault::USER_EXCEPTION);
    Ok(())
}
