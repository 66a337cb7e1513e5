//! 03, sections 1 and 2: errors and the numbers of operations.

use conformance_kit::arch::order::{R10, R15, R8, R9, RDI, RDX, RSI};
use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/1/numbers-of-errors", error_numbers),
    check("03/1/registers-beyond-an-error-keep", registers_kept),
    check("03/1/details-without-a-buffer-end-at-four", details_capped),
    check("03/1/details-beyond-four-go-to-the-buffer", fifth_detail),
    check("03/1/a-success-without-data-is-empty", empty_success),
    check(
        "03/1/null-extra-capability-counts-as-supplied",
        null_supplied,
    ),
    check("03/2/generic-labels", generic_labels),
    check("03/10/null-capability", null_invoked),
    check("03/10/zombie", zombie_invoked),
];

fn error_numbers(_: &mut Fixture) -> TestResult {
    let numbers = [
        NoError,
        InvalidArgument,
        InvalidCapability,
        IllegalOperation,
        RangeError,
        AlignmentError,
        FailedLookup,
        TruncatedMessage,
        DeleteFirst,
        RevokeFirst,
        NotEnoughMemory,
    ];
    for (error, number) in numbers.into_iter().zip(0u64..) {
        ensure_eq!(error as u64, number);
    }
    Ok(())
}

/// Deletes in the CNode behind a guard that `index` does not match: five words of details.
fn guard_mismatch(f: &mut Fixture) -> Result<(Invocation, [u64; 5]), Failure> {
    const GUARD: u64 = 0b101;
    let cnode = f.cnode(4)?;
    let guarded = f.badged(cnode, GuardData::new(GUARD, 3).raw())?;
    let delete = Invocation::new(guarded, label::CNODE_DELETE, &[0, 7], &[]);
    let guard_mismatch = LookupFailureType::GuardMismatch as u64;
    Ok((delete, [0, guard_mismatch, 7, GUARD, 3]))
}

fn registers_kept(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let words = [1, 2, 3, 4];
    let refused = [
        (label::TCB_BIND_NOTIFICATION, TruncatedMessage, &[][..]),
        (label::TCB_READ_REGISTERS, NoError, &[0, 0][..]),
        (label::TCB_SET_PRIORITY, InvalidCapability, &[1][..]),
    ];
    for (label, error, details) in refused {
        let caps = match error {
            InvalidCapability => vec![f.null()?],
            _ => vec![],
        };
        let answer = Invocation::new(tcb, label, &words, &caps).call();
        ensure_eq!(answer.label, error as u64);
        ensure_eq!(answer.words, details);
        ensure_eq!(answer.registers[details.len()..], words[details.len()..]);
    }
    Ok(())
}

fn details_capped(f: &mut Fixture) -> TestResult {
    let (delete, details) = guard_mismatch(f)?;
    let mut registers = UserContext::default();
    registers.set(RDX, Syscall::Call.raw());
    registers.set(RDI, delete.cap.raw());
    registers.set(RSI, MessageInfo::new(delete.label, 0, 0, 2).raw());
    registers.set(R10, delete.words[0]);
    registers.set(R8, delete.words[1]);
    let stopped = f.system_call(&registers)?;
    let after = &stopped.registers;
    let expected = MessageInfo::new(FailedLookup as u64, 0, 0, 4);
    ensure_eq!(MessageInfo::from_raw(after.get(RSI)), expected);
    let seen = [R10, R8, R9, R15].map(|register| after.get(register));
    ensure_eq!(seen[..], details[..4]);
    Ok(())
}

fn fifth_detail(f: &mut Fixture) -> TestResult {
    let (delete, details) = guard_mismatch(f)?;
    delete.expect_error(FailedLookup, &details)
}

fn empty_success(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let words = [9, 8, 7, 6];
    let answer = Invocation::new(tcb, label::TCB_SUSPEND, &words, &[]).call();
    ensure_eq!((answer.badge, answer.label), (0, NoError as u64));
    ensure_eq!((answer.words.len(), answer.extra_caps), (0, 0));
    ensure_eq!(answer.registers, words);
    Ok(())
}

fn null_supplied(f: &mut Fixture) -> TestResult {
    let (tcb, null) = (f.tcb()?, f.null()?);
    let set = Invocation::new(tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &[null]);
    set.expect_ok(&[])?;
    set.with_cap_count(0).expect_error(TruncatedMessage, &[])
}

fn generic_labels(_: &mut Fixture) -> TestResult {
    let labels = [
        label::INVALID,
        label::UNTYPED_RETYPE,
        label::TCB_READ_REGISTERS,
        label::TCB_WRITE_REGISTERS,
        label::TCB_COPY_REGISTERS,
        label::TCB_CONFIGURE,
        label::TCB_SET_PRIORITY,
        label::TCB_SET_MC_PRIORITY,
        label::TCB_SET_SCHED_PARAMS,
        label::TCB_SET_TIMEOUT_ENDPOINT,
        label::TCB_SET_IPC_BUFFER,
        label::TCB_SET_SPACE,
        label::TCB_SUSPEND,
        label::TCB_RESUME,
        label::TCB_BIND_NOTIFICATION,
        label::TCB_UNBIND_NOTIFICATION,
        label::TCB_SET_TLS_BASE,
        label::TCB_SET_FLAGS,
        label::CNODE_REVOKE,
        label::CNODE_DELETE,
        label::CNODE_CANCEL_BADGED_SENDS,
        label::CNODE_COPY,
        label::CNODE_MINT,
        label::CNODE_MOVE,
        label::CNODE_MUTATE,
        label::CNODE_ROTATE,
        label::IRQ_CONTROL_GET,
        label::IRQ_HANDLER_ACK,
        label::IRQ_HANDLER_SET_NOTIFICATION,
        label::IRQ_HANDLER_CLEAR,
        label::DOMAIN_SET,
        label::DOMAIN_SCHEDULE_CONFIGURE,
        label::DOMAIN_SCHEDULE_SET_START,
        label::SCHED_CONTROL_CONFIGURE_FLAGS,
        label::SCHED_CONTEXT_BIND,
        label::SCHED_CONTEXT_UNBIND,
        label::SCHED_CONTEXT_UNBIND_OBJECT,
        label::SCHED_CONTEXT_CONSUMED,
        label::SCHED_CONTEXT_YIELD_TO,
    ];
    // The debug API has four between the sixteenth and what is behind.
    let debug = if PROFILE.hardware_debug { 4 } else { 0 };
    for (label, place) in labels.into_iter().zip(0..) {
        ensure_eq!(label, if place < 16 { place } else { place + debug });
    }
    Ok(())
}

fn null_invoked(f: &mut Fixture) -> TestResult {
    let null: CPtr = f.null()?;
    for label in [label::INVALID, label::UNTYPED_RETYPE, 255] {
        let invocation = Invocation::new(null, label, &[1, 2, 3, 4, 5, 6], &[]);
        invocation.expect_error(InvalidCapability, &[0])?;
        invocation
            .with_length(0)
            .expect_error(InvalidCapability, &[0])?;
        for call in SENDING {
            invocation.send(call)?;
        }
        for call in FIRST_PHASE {
            invocation.send_first(f, call)?;
        }
    }
    Ok(())
}

/// A thread that runs out of budget in the middle of deleting a CNode leaves a zombie.
fn zombie_invoked(f: &mut Fixture) -> TestResult {
    const RADIX: u32 = PROFILE.root_cnode_bits;
    let cnode = f.cnode(RADIX)?;
    let slot = f.slot_of(cnode);
    let params = f.active_on(100, SchedParams::new(50, 1_000_000))?;
    f.spawn(params, move || {
        let _ = slot.delete();
    })?;
    f.settle()?;
    ensure!(!f.is_empty(slot)?, "the CNode was deleted in 50 µs");
    let invocation = Invocation::new(cnode, label::CNODE_DELETE, &[0, u64::from(RADIX)], &[]);
    invocation.expect_error(InvalidCapability, &[0])?;
    invocation
        .with_label(label::INVALID)
        .expect_error(InvalidCapability, &[0])?;
    slot.delete()?;
    ensure!(f.is_empty(slot)?, "a zombie's deletion goes not on");
    Ok(())
}
