//! 01, section 4.1: register assignment.

use conformance_kit::arch::order::{R11, RAX, RCX, RDI, RDX, RFLAGS, RIP, RSI, RSP};
use sandglass::cap::CopyRegisters;

use crate::page01::roles::receive;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "01/4.1/a-blocked-thread-stands-at-its-system-call",
        stands_at_syscall,
    ),
    check(
        "01/4.1/saved-rsp-rcx-r11-are-stale-after-a-system-call",
        stale_registers,
    ),
    check(
        "01/4.1/an-exception-refreshes-all-saved-registers",
        exceptions_refresh,
    ),
    check("01/4.1/rflags-come-from-r11", rflags_from_r11),
    check("01/4.1/the-trap-flag-is-masked-on-entry", trap_flag),
    check(
        "01/4.1/written-registers-return-by-a-full-restore",
        full_restore_after_write,
    ),
    check(
        "01/4.1/copied-registers-return-by-a-full-restore",
        full_restore_after_copy,
    ),
];

const STD: u8 = 0xfd;

const STC: u8 = 0xf9;

const SYSCALL: [u8; 2] = [0x0f, 0x05];

const UD2: [u8; 2] = [0x0f, 0x0b];

const CARRY: u64 = 1 << 0;

const DIRECTION: u64 = 1 << 10;

const TRAP: u64 = 1 << 8;

fn stands_at_syscall(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let before = receive(Syscall::Recv, endpoint, reply);
    let code = [&[0x90, 0x90], &SYSCALL[..], &UD2].concat();
    let thread = f.raw(&code, &before)?;
    thread.start_and_settle(f)?;
    let expected = changed(&before, &[(RIP, thread.code + 2)]);
    ensure_eq!(thread.registers()?, expected);
    Ok(())
}

fn stale_registers(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let before = receive(Syscall::Recv, endpoint, reply);
    // mov rsp, rax; mov rcx, rax; mov r11, rax; mov rbp, rax
    let code = [
        &[0x48, 0x89, 0xc4][..],
        &[0x48, 0x89, 0xc1],
        &[0x49, 0x89, 0xc3],
        &[0x48, 0x89, 0xc5],
        &SYSCALL,
        &UD2,
    ]
    .concat();
    let thread = f.raw(&code, &before)?;
    thread.start_and_settle(f)?;
    let saved = thread.registers()?;
    // Those that an entry by SYSCALL refreshes are fresh, the three others as they were written.
    let rbp = conformance_kit::arch::order::RBP;
    let expected = changed(&before, &[(RIP, thread.code + 12), (rbp, before.get(RAX))]);
    ensure_eq!(saved, expected);
    Ok(())
}

fn exceptions_refresh(f: &mut Fixture) -> TestResult {
    // mov rsp, rax; mov rcx, rbx; mov r11, rdx; ud2
    let code = [
        &[0x48, 0x89, 0xc4][..],
        &[0x48, 0x89, 0xd9],
        &[0x49, 0x89, 0xd3],
        &UD2,
    ]
    .concat();
    let rbx = conformance_kit::arch::order::RBX;
    let before = distinct();
    let thread = f.raw(&code, &before)?;
    let stopped = thread.run(f)?;
    let expected = changed(
        &before,
        &[
            (RSP, before.get(RAX)),
            (RCX, before.get(rbx)),
            (R11, before.get(RDX)),
            (RIP, thread.code + 9),
            (RFLAGS, stopped.registers.get(RFLAGS)),
        ],
    );
    ensure_eq!(stopped.registers, expected);
    Ok(())
}

fn rflags_from_r11(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let code = [&[STC, STD], &SYSCALL[..], &UD2].concat();
    let thread = f.raw(&code, &receive(Syscall::Recv, endpoint, reply))?;
    thread.start_and_settle(f)?;
    let waiting = thread.registers()?.get(RFLAGS);
    ensure_eq!(waiting, 0x202 | CARRY | DIRECTION);
    // They are back after the system call, and R11 holds them.
    endpoint.send(Message::EMPTY);
    let stopped = thread.stopped(f)?;
    ensure_eq!(stopped.registers.get(R11), 0x202 | CARRY | DIRECTION);
    ensure_eq!(
        stopped.registers.get(RFLAGS) & 0xfff,
        0x202 | CARRY | DIRECTION
    );
    Ok(())
}

fn trap_flag(f: &mut Fixture) -> TestResult {
    // push 0x302; popf; syscall; nop; nop; ud2. The trap comes in user mode, after the call.
    let stack = f.buffer()?;
    let code = [&[0x68, 2, 3, 0, 0, 0x9d][..], &SYSCALL, &[0x90, 0x90], &UD2].concat();
    let before = entry(Syscall::NBSend, &[(RSP, stack.address + 64)]);
    let thread = f.raw(&code, &before)?;
    let stopped = thread.run(f)?;
    let ip = stopped.words[fault::user_exception::FAULT_IP];
    ensure!(
        stopped.exception() == Some(1) && ip >= thread.code + 8 && ip <= thread.code + 10,
        "expected exception 1 after the system call, saw fault {} {:#x?}",
        stopped.label,
        stopped.words
    );
    ensure!(stopped.registers.get(RFLAGS) & TRAP != 0);
    Ok(())
}

/// Where to let a thread continue: registers that a return by SYSRET cannot load.
fn full_registers(thread: RawThread) -> UserContext {
    registers(&[
        (RIP, thread.code + 2),
        (RSP, 0x7000_0000_1000),
        (RCX, 0xcccc),
        (R11, 0x1111),
    ])
}

/// A thread that waits in Recv, and its endpoint.
fn waiting(f: &mut Fixture) -> Result<(RawThread, Endpoint), Failure> {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let thread = f.caller(&receive(Syscall::Recv, endpoint, reply))?;
    thread.start_and_settle(f)?;
    Ok((thread, endpoint))
}

/// Fails unless the thread stopped with these registers, but what a message of no words writes.
fn expect_full(stopped: &Stopped, written: &UserContext) -> TestResult {
    let expected = changed(
        written,
        &[(RDI, 0), (RSI, 0), (RFLAGS, stopped.registers.get(RFLAGS))],
    );
    ensure_eq!(stopped.registers, expected);
    Ok(())
}

fn full_restore_after_write(f: &mut Fixture) -> TestResult {
    let (thread, endpoint) = waiting(f)?;
    let written = full_registers(thread);
    thread.tcb.write_registers(&written, false)?;
    endpoint.send(Message::EMPTY);
    expect_full(&thread.stopped(f)?, &written)
}

fn full_restore_after_copy(f: &mut Fixture) -> TestResult {
    let (thread, endpoint) = waiting(f)?;
    let (written, source) = (full_registers(thread), f.tcb()?);
    source.write_registers(&written, false)?;
    let what = CopyRegisters {
        frame: true,
        integer: true,
        ..CopyRegisters::default()
    };
    thread.tcb.copy_registers(source, what)?;
    endpoint.send(Message::EMPTY);
    expect_full(&thread.stopped(f)?, &written)
}
