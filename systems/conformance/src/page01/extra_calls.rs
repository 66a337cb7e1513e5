//! 01, section 7: the extra system calls.

use conformance_kit::arch;
use conformance_kit::arch::order::{RDI, RSI};
use sandglass::abi::cap_identify as kind;

use super::cspaces::OddSpace;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/7/debug-put-char-preserves-registers", put_char),
    check(
        "01/7/debug-dump-scheduler-preserves-registers",
        dump_scheduler,
    ),
    check("01/7/debug-snapshot-preserves-registers", snapshot),
    check("01/7/debug-name-thread-preserves-registers", name_thread),
    check("01/7/debug-cap-identify-numbers", identify),
    check(
        "01/7/wrong-arguments-of-debug-name-thread-return",
        name_thread_wrongly,
    )
    .with_wrong_debug_calls(),
    check(
        "01/7/debug-cap-identify-of-what-is-not-there",
        identify_nothing,
    ),
    check(
        "01/7/debug-cap-identify-writes-only-the-capability-register",
        identify_registers,
    ),
    check(
        "01/7/debug-get-thread-affinity-of-what-is-no-thread",
        wrong_affinity,
    )
    .with_wrong_debug_calls(),
    check("01/7/debug-send-ipi-returns", send_ipi).with_wrong_debug_calls(),
];

/// Fails unless the system call returns with these registers changed and no others.
fn expect_call(f: &mut Fixture, before: &UserContext, named: &[(usize, u64)]) -> TestResult {
    let thread = f.caller(before)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, before, named)
}

fn put_char(f: &mut Fixture) -> TestResult {
    f.needs_debug_kernel()?;
    // Only the low 8 bits are printed: spaces, before a line of this program.
    for word in [0x20, 0xffff_ffff_ffff_ff20] {
        expect_call(f, &entry(Syscall::DebugPutChar, &[(RDI, word)]), &[])?;
    }
    expect_call(f, &entry(Syscall::DebugPutChar, &[(RDI, 0x0a)]), &[])
}

fn dump_scheduler(f: &mut Fixture) -> TestResult {
    f.needs_debug_kernel()?;
    expect_call(f, &entry(Syscall::DebugDumpScheduler, &[]), &[])
}

fn snapshot(f: &mut Fixture) -> TestResult {
    f.needs_debug_kernel()?;
    expect_call(f, &entry(Syscall::DebugSnapshot, &[]), &[])
}

fn name_thread(f: &mut Fixture) -> TestResult {
    f.needs_debug_kernel()?;
    let (tcb, buffer) = (f.tcb()?, f.buffer()?);
    buffer.write(ipc_buffer::MESSAGE, u64::from_le_bytes(*b"a name\0\0"));
    let before = entry(Syscall::DebugNameThread, &[(RDI, tcb.address())]);
    let thread = f.caller(&before)?;
    thread.use_buffer(buffer)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, &before, &[])
}

fn name_thread_wrongly(f: &mut Fixture) -> TestResult {
    // The kernel prints and returns instead of halting: README, "Where Sandglass differs".
    f.needs_debug_kernel()?;
    let (tcb, endpoint, buffer) = (f.tcb()?, f.endpoint()?, f.buffer()?);
    for (cap, named, with_buffer) in [
        (endpoint.cptr(), true, true),
        (CPtr::NULL, true, true),
        (tcb.cptr(), true, false),
        (tcb.cptr(), false, true),
    ] {
        // Unless it is named, no byte from word 1 on ends the name.
        for index in 0..ipc_buffer::WORDS {
            buffer.write(index, if named { 0 } else { u64::MAX });
        }
        let before = entry(Syscall::DebugNameThread, &[(RDI, cap.raw())]);
        let thread = f.caller(&before)?;
        if with_buffer {
            thread.use_buffer(buffer)?;
        }
        let stopped = thread.run(f)?;
        thread.expect_return(&stopped, &before, &[])?;
    }
    Ok(())
}

/// What the kernel says of a capability.
fn kind_of(f: &mut Fixture, cap: u64) -> Result<u64, Failure> {
    let thread = f.caller(&entry(Syscall::DebugCapIdentify, &[(RDI, cap)]))?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    Ok(stopped.registers.get(RDI))
}

fn identify(f: &mut Fixture) -> TestResult {
    f.needs_debug_kernel()?;
    let handler_slot = f.empty_slot()?;
    arch::issue_irq(boot::IRQ_CONTROL, 95, handler_slot)?;
    let handler: CPtr = handler_slot.capability();
    let mut made = [arch::made(f, 0)?, arch::controls()].concat();
    let common = [
        (ObjectType::Tcb, kind::TCB),
        (ObjectType::Reply, kind::REPLY),
        (ObjectType::Endpoint, kind::ENDPOINT),
        (ObjectType::Notification, kind::NOTIFICATION),
        (ObjectType::CNode(2), kind::CNODE),
        (ObjectType::SchedContext(7), kind::SCHED_CONTEXT),
        (ObjectType::Untyped(4), kind::UNTYPED),
    ];
    for (object, number) in common.into_iter().chain(arch::IDENTIFIED) {
        let cap: CPtr = f.make(object)?;
        made.push((cap, number));
    }
    made.extend([
        (f.null()?, kind::NULL),
        (CPtr::NULL, kind::NULL),
        (boot::IRQ_CONTROL.cptr(), kind::IRQ_CONTROL),
        (handler, kind::IRQ_HANDLER),
        (boot::DOMAIN.cptr(), kind::DOMAIN),
        (f.control.cptr(), kind::SCHED_CONTROL),
    ]);
    for (cap, number) in made {
        let seen = kind_of(f, cap.raw())?;
        ensure!(seen == number, "{cap:?} is of kind {seen}, not {number}");
    }
    Ok(())
}

fn identify_nothing(f: &mut Fixture) -> TestResult {
    f.needs_debug_kernel()?;
    let space = OddSpace::new(f)?;
    for case in &space.failing {
        let thread = f.caller(&entry(Syscall::DebugCapIdentify, &[(RDI, case.address)]))?;
        space.give_to(thread)?;
        let stopped = thread.run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(stopped.registers.get(RDI), 0);
    }
    Ok(())
}

fn identify_registers(f: &mut Fixture) -> TestResult {
    f.needs_debug_kernel()?;
    let endpoint = f.endpoint()?;
    let before = entry(Syscall::DebugCapIdentify, &[(RDI, endpoint.address())]);
    expect_call(f, &before, &[(RDI, kind::ENDPOINT)])
}

/// The kernel prints and returns instead of halting: README, "Where Sandglass differs".
fn wrong_affinity(f: &mut Fixture) -> TestResult {
    several_core_calls(f)?;
    let endpoint = f.endpoint()?;
    for cap in [0, endpoint.address(), u64::MAX] {
        let named = [(RDI, cap)];
        let stopped = f
            .caller(&entry(Syscall::DebugGetThreadAffinity, &named))?
            .run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    }
    Ok(())
}

/// Of cores that there are not, at the latest, and of interrupts that are not software-generated: it is no reason to halt.
fn send_ipi(f: &mut Fixture) -> TestResult {
    several_core_calls(f)?;
    for (core, number) in [(77, 0), (u64::MAX, 8), (0, 16), (1, u64::MAX)] {
        let named = [(RDI, core), (RSI, number)];
        let stopped = f.caller(&entry(Syscall::DebugSendIPI, &named))?.run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    }
    Ok(())
}

/// Skips the check on kernels without the debug calls of several cores.
fn several_core_calls(f: &mut Fixture) -> TestResult {
    if !f.is_for_several_cores() {
        return Err(Failure::skip("only kernels for several cores have it"));
    }
    f.needs_debug_kernel()
}
