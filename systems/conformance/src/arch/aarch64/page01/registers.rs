//! 01, section 4.3: register assignment.

use conformance_kit::arch::order::{R10, R12, RAX, RCX, RDI, RDX, RFLAGS, RIP, RSP};
use conformance_kit::arch::{code, STOP, SYSCALL};
use sandglass::cap::CopyRegisters;

use crate::page01::roles::receive;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "01/4.3/a-blocked-thread-stands-at-its-system-call",
        stands_at_syscall,
    ),
    check("01/4.3/a-system-call-refreshes-all-registers", refreshed),
    check("01/4.3/an-exception-refreshes-all-registers", by_exception),
    check("01/4.3/the-immediate-is-ignored", immediate),
    check("01/4.3/flags-are-kept", flags_kept),
    check(
        "01/4.3/written-registers-are-all-effective",
        effective_after_write,
    ),
    check(
        "01/4.3/copied-registers-are-all-effective",
        effective_after_copy,
    ),
];

const UDF: u32 = 0;
const NOP: u32 = 0xd503_201f;
const SVC: u32 = 0xd400_0001;
/// MOV SP, X9; MOV X10, X11; MSR TPIDR_EL0, X9; MSR NZCV, X9.
const CHANGE: [u32; 4] = [0x9100_013f, 0xaa0b_03ea, 0xd51b_d049, 0xd51b_4209];
/// Flags that a program sets.
const FLAGS: u64 = 0xa000_0000;

/// What [`CHANGE`] makes of these registers, whose X9 has the flags.
fn after_change(before: &UserContext) -> UserContext {
    use conformance_kit::arch::order::FS_BASE;
    let x9 = before.get(RAX);
    let x10 = conformance_kit::arch::order::RBX;
    changed(
        before,
        &[
            (RSP, x9),
            (x10, before.get(RCX)),
            (FS_BASE, x9),
            (RFLAGS, sanitised(RFLAGS, x9)),
        ],
    )
}

fn stands_at_syscall(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let before = receive(Syscall::Recv, endpoint, reply);
    let thread = f.raw(&code(&[NOP, NOP, SVC, UDF]), &before)?;
    thread.start_and_settle(f)?;
    ensure_eq!(
        thread.registers()?,
        changed(&before, &[(RIP, thread.code + 8)])
    );
    Ok(())
}

fn refreshed(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let before = changed(&receive(Syscall::Recv, endpoint, reply), &[(RAX, FLAGS)]);
    let thread = f.raw(&code(&[&CHANGE[..], &[SVC, UDF]].concat()), &before)?;
    thread.start_and_settle(f)?;
    let expected = after_change(&before);
    let at_call = [(RIP, thread.code + 16)];
    ensure_eq!(thread.registers()?, changed(&expected, &at_call));
    // And all are there when it goes on, but for what it receives.
    f.badged(endpoint, 0x77)?.send(Message::EMPTY);
    let stopped = thread.stopped(f)?;
    let received = [(RDI, 0x77), (conformance_kit::arch::order::RSI, 0)];
    let expected = changed(&expected, &received);
    ensure_eq!(
        stopped.registers,
        changed(&expected, &[(RIP, thread.code + 20)])
    );
    Ok(())
}

fn by_exception(f: &mut Fixture) -> TestResult {
    let before = registers(&[(RAX, FLAGS)]);
    let thread = f.raw(&code(&[&CHANGE[..], &[UDF]].concat()), &before)?;
    let stopped = thread.run(f)?;
    let expected = changed(&after_change(&before), &[(RIP, thread.code + 16)]);
    ensure_eq!(stopped.registers, expected);
    Ok(())
}

/// Any SVC is a system call, and X7 says which.
fn immediate(f: &mut Fixture) -> TestResult {
    for immediate in [1, 0x77, 0x8000, 0xffff] {
        let svc = SVC | immediate << 5;
        let before = entry(Syscall::Yield, &[]);
        let thread = f.raw(&code(&[svc, UDF]), &before)?;
        thread.expect_return(&thread.run(f)?, &before, &[])?;
        let stopped = f
            .raw(&code(&[svc, UDF]), &registers(&[(RDX, 77)]))?
            .run(f)?;
        ensure_eq!(stopped.label, fault::UNKNOWN_SYSCALL);
    }
    Ok(())
}

fn flags_kept(f: &mut Fixture) -> TestResult {
    for flags in (0..16).map(|flags| flags << 28) {
        let before = entry(Syscall::Yield, &[(RFLAGS, sanitised(RFLAGS, flags))]);
        let thread = f.caller(&before)?;
        thread.expect_return(&thread.run(f)?, &before, &[])?;
    }
    Ok(())
}

/// A thread that waits in Recv, its endpoint, and registers to let it continue with.
fn waiting(f: &mut Fixture) -> Result<(RawThread, Endpoint, UserContext), Failure> {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let code = [&SYSCALL[..], &STOP].concat();
    let thread = f.raw(&code, &receive(Syscall::Recv, endpoint, reply))?;
    thread.start_and_settle(f)?;
    let behind = thread.code + SYSCALL.len() as u64;
    let flags = sanitised(RFLAGS, FLAGS);
    let written = registers(&[(RIP, behind), (RSP, 0x7001), (RFLAGS, flags), (R12, 5)]);
    Ok((thread, endpoint, written))
}

/// Fails unless the thread stops with these registers, but what a message of no words writes.
fn expect_all(f: &mut Fixture, thread: RawThread, from: Endpoint, all: &UserContext) -> TestResult {
    from.send(Message::EMPTY);
    let stopped = thread.stopped(f)?;
    let received = [(RDI, 0), (conformance_kit::arch::order::RSI, 0)];
    ensure_eq!(stopped.registers, changed(all, &received));
    ensure_eq!(stopped.registers.get(R10), all.get(R10));
    Ok(())
}

fn effective_after_write(f: &mut Fixture) -> TestResult {
    let (thread, endpoint, written) = waiting(f)?;
    thread.tcb.write_registers(&written, false)?;
    expect_all(f, thread, endpoint, &written)
}

fn effective_after_copy(f: &mut Fixture) -> TestResult {
    let (thread, endpoint, written) = waiting(f)?;
    let source = f.tcb()?;
    source.write_registers(&written, false)?;
    let what = CopyRegisters {
        frame: true,
        integer: true,
        ..CopyRegisters::default()
    };
    thread.tcb.copy_registers(source, what)?;
    expect_all(f, thread, endpoint, &written)
}
