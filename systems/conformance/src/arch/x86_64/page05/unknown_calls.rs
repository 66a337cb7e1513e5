//! 05, section 2.2: unknown system calls and software interrupts.

use conformance_kit::arch::order::{
    R11, RAX, RBP, RBX, RCX, RDX, RFLAGS, RIP, RSP, UNKNOWN_SYSCALL_ORDER,
};
use sandglass::abi::fault::user_exception;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("05/2.2/all-registers-in-order", all_registers),
    check("05/2.2/rsp-rcx-r11-may-be-stale", stale_registers),
    check("05/2.2/the-number-has-64-bits", number_bits),
    check(
        "05/2.2/software-interrupts-are-unknown-calls",
        software_interrupts,
    ),
    check(
        "05/2.2/the-number-of-a-software-interrupt-is-sign-extended",
        interrupt_numbers,
    ),
    check(
        "05/2.2/a-software-interrupts-registers-are-fresh",
        interrupt_registers,
    ),
    check(
        "05/2.2/interrupts-between-cores-are-not-the-user's",
        between_cores,
    ),
    check(
        "05/2.2/a-software-interrupt-restarts-at-itself",
        interrupt_restarts,
    ),
];

const UD2: [u8; 2] = [0x0f, 0x0b];

/// First vector of the traps: behind those of the interrupts between cores, if there are such.
fn first_trap(f: &Fixture) -> u8 {
    if f.is_for_several_cores() {
        160
    } else {
        158
    }
}

/// Fails unless the message is that of an unknown system call with these registers.
fn expect_unknown(stopped: &Stopped, registers: &UserContext, number: u64) -> TestResult {
    let mut expected: Vec<u64> = UNKNOWN_SYSCALL_ORDER
        .iter()
        .map(|&index| registers.get(index))
        .collect();
    expected.push(number);
    ensure!(
        stopped.label == fault::UNKNOWN_SYSCALL && stopped.words == expected,
        "expected an unknown system call {expected:x?}, saw fault {} {:x?}",
        stopped.label,
        stopped.words
    );
    Ok(())
}

fn all_registers(f: &mut Fixture) -> TestResult {
    for number in [77, -20_i64 as u64, -100_i64 as u64] {
        let before = registers(&[(RDX, number)]);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        let expected = changed(&before, &[(RIP, thread.code)]);
        expect_unknown(&stopped, &expected, number)?;
        ensure_eq!(stopped.registers, expected);
    }
    Ok(())
}

fn stale_registers(f: &mut Fixture) -> TestResult {
    // mov rsp, rax; mov rcx, rax; mov r11, rax; mov rbp, rax; syscall
    let code = [
        &[0x48, 0x89, 0xc4][..],
        &[0x48, 0x89, 0xc1],
        &[0x49, 0x89, 0xc3],
        &[0x48, 0x89, 0xc5],
        &[0x0f, 0x05],
        &UD2,
    ]
    .concat();
    let before = registers(&[(RDX, 77)]);
    let thread = f.raw(&code, &before)?;
    let stopped = thread.run(f)?;
    let expected = changed(&before, &[(RIP, thread.code + 12), (RBP, before.get(RAX))]);
    expect_unknown(&stopped, &expected, 77)
}

fn number_bits(f: &mut Fixture) -> TestResult {
    for bit in 0..64 {
        let number = 1 << bit;
        let stopped = f.caller(&registers(&[(RDX, number)]))?.run(f)?;
        ensure_eq!(stopped.label, fault::UNKNOWN_SYSCALL);
        ensure_eq!(stopped.words[fault::unknown_syscall::SYSCALL], number);
    }
    Ok(())
}

/// The number of `int vector` with this EAX.
fn interrupt_number(vector: u8, eax: u64) -> u64 {
    let number = u32::from(vector) << 24 | (eax as u32 & 0xff_ffff);
    number as i32 as i64 as u64
}

fn software_interrupts(f: &mut Fixture) -> TestResult {
    for vector in first_trap(f)..=254 {
        let before = registers(&[(RAX, 0x5)]);
        let thread = f.raw(&[0xcd, vector, 0x0f, 0x0b], &before)?;
        let stopped = thread.run(f)?;
        let flags = stopped.registers.get(RFLAGS);
        let expected = changed(&before, &[(RIP, thread.code), (RFLAGS, flags)]);
        expect_unknown(&stopped, &expected, interrupt_number(vector, 0x5))?;
    }
    Ok(())
}

fn interrupt_numbers(f: &mut Fixture) -> TestResult {
    // All trap vectors have bit 31 of the number set.
    for eax in [
        0,
        0xff_ffff,
        0x100_0000,
        0xffff_ffff,
        u64::MAX,
        0x1234_5678_9abc_def0,
    ] {
        for vector in [first_trap(f), 200, 254] {
            let thread = f.raw(&[0xcd, vector], &registers(&[(RAX, eax)]))?;
            let stopped = thread.run(f)?;
            let number = interrupt_number(vector, eax);
            ensure!(number >> 32 == 0xffff_ffff);
            ensure_eq!(stopped.words[fault::unknown_syscall::SYSCALL], number);
            ensure_eq!(stopped.words[fault::unknown_syscall::RAX], eax);
        }
    }
    Ok(())
}

/// A program cannot raise the interrupts between cores.
fn between_cores(f: &mut Fixture) -> TestResult {
    const GENERAL_PROTECTION: u64 = 13;
    if !f.is_for_several_cores() {
        return Err(Failure::skip("these vectors are traps with one core"));
    }
    for vector in [158, 159] {
        let thread = f.raw(&[0xcd, vector, 0x0f, 0x0b], &distinct())?;
        let stopped = thread.run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(stopped.words[user_exception::NUMBER], GENERAL_PROTECTION);
        ensure_eq!(stopped.words[user_exception::FAULT_IP], thread.code);
    }
    Ok(())
}

fn interrupt_registers(f: &mut Fixture) -> TestResult {
    // mov rsp, rax; mov rcx, rbx; mov r11, rdx; int 200
    let code = [
        &[0x48, 0x89, 0xc4][..],
        &[0x48, 0x89, 0xd9],
        &[0x49, 0x89, 0xd3],
        &[0xcd, 200],
    ]
    .concat();
    let before = distinct();
    let thread = f.raw(&code, &before)?;
    let stopped = thread.run(f)?;
    let expected = changed(
        &before,
        &[
            (RSP, before.get(RAX)),
            (RCX, before.get(RBX)),
            (R11, before.get(RDX)),
            (RIP, thread.code + 9),
            (RFLAGS, stopped.registers.get(RFLAGS)),
        ],
    );
    expect_unknown(&stopped, &expected, interrupt_number(200, before.get(RAX)))
}

fn interrupt_restarts(f: &mut Fixture) -> TestResult {
    let thread = f.raw(&[0xcd, 200, 0x0f, 0x0b], &distinct())?;
    thread.start()?;
    for _ in 0..3 {
        let stopped = thread.stopped(f)?;
        ensure_eq!(stopped.label, fault::UNKNOWN_SYSCALL);
        ensure_eq!(stopped.words[fault::unknown_syscall::FAULT_IP], thread.code);
        thread.reply.send(Message::EMPTY);
    }
    // Behind it, if the handler says so.
    let stopped = thread.stopped(f)?;
    let mut words = stopped.words;
    words.truncate(fault::unknown_syscall::REPLY_LENGTH);
    words[fault::unknown_syscall::FAULT_IP] += 2;
    thread.reply.send(Message::long(0, &words));
    let stopped = thread.stopped(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(stopped.registers.get(RIP), thread.code + 2);
    Ok(())
}
