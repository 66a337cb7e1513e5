//! 05, section 2.2: unknown system calls.

use conformance_kit::arch::order::{RAX, RBX, RDX, RFLAGS, RIP, RSP};
use conformance_kit::arch::unknown_syscall::{FAULT_IP, NEXT_IP, REPLY_LENGTH, SP, SPSR, SYSCALL};
use conformance_kit::arch::{code, unknown_call_words};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("05/2.2/all-registers-in-order", all_registers),
    check("05/2.2/registers-are-fresh", fresh_registers),
    check("05/2.2/the-number-has-64-bits", number_bits),
    check("05/2.2/next-ip-is-behind-the-call", next_ip),
    check(
        "05/6/an-answer-to-an-unknown-call-is-all-effective",
        answered,
    ),
];

const SVC: u32 = 0xd400_0001;

/// Fails unless the message is that of an unknown system call with these registers.
fn expect_unknown(stopped: &Stopped, registers: &UserContext, number: u64) -> TestResult {
    let mut expected = unknown_call_words(registers);
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
    for number in [77, -20_i64 as u64, -33_i64 as u64, -100_i64 as u64] {
        let before = registers(&[(RDX, number), (RFLAGS, sanitised(RFLAGS, 0x6000_0000))]);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        let expected = changed(&before, &[(RIP, thread.code)]);
        expect_unknown(&stopped, &expected, number)?;
        ensure_eq!(stopped.registers, expected);
    }
    Ok(())
}

fn fresh_registers(f: &mut Fixture) -> TestResult {
    // mov sp, x9; mov x0, x10; svc
    let before = registers(&[(RDX, 77)]);
    let thread = f.raw(&code(&[0x9100_013f, 0xaa0a_03e0, SVC, 0]), &before)?;
    let stopped = thread.run(f)?;
    let (sp, x0) = (before.get(RAX), before.get(RBX));
    let rdi = conformance_kit::arch::order::RDI;
    let expected = changed(&before, &[(RSP, sp), (rdi, x0), (RIP, thread.code + 8)]);
    expect_unknown(&stopped, &expected, 77)
}

fn number_bits(f: &mut Fixture) -> TestResult {
    for bit in 0..64 {
        let number = 1 << bit;
        let stopped = f.caller(&registers(&[(RDX, number)]))?.run(f)?;
        ensure_eq!(stopped.label, fault::UNKNOWN_SYSCALL);
        ensure_eq!(stopped.words[SYSCALL], number);
    }
    Ok(())
}

fn next_ip(f: &mut Fixture) -> TestResult {
    let thread = f.raw(&code(&[0xd503_201f, SVC, 0]), &registers(&[(RDX, 77)]))?;
    let words = thread.run(f)?.words;
    let at = thread.code + 4;
    ensure_eq!((words[FAULT_IP], words[NEXT_IP]), (at, at + 4));
    Ok(())
}

/// Stack pointer and flags too; where the thread goes on is FaultIP, whatever NextIP was made.
fn answered(f: &mut Fixture) -> TestResult {
    let before = registers(&[(RDX, 77)]);
    let thread = f.caller(&before)?;
    let mut words = thread.run(f)?.words[..REPLY_LENGTH].to_vec();
    for (word, value) in words.iter_mut().zip(0x5500..).take(FAULT_IP) {
        *word = value;
    }
    words[FAULT_IP] += 4;
    words[SP] = 0x7654_3210;
    words[NEXT_IP] = 0x1000;
    words[SPSR] = u64::MAX;
    thread.reply.send(Message::long(0, &words));
    let stopped = thread.stopped(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    let seen = stopped.registers;
    ensure_eq!(seen.get(RIP), thread.code + 4);
    ensure_eq!(seen.get(RSP), 0x7654_3210);
    ensure_eq!(seen.get(RFLAGS), sanitised(RFLAGS, u64::MAX));
    ensure_eq!(unknown_call_words(&seen)[..FAULT_IP], words[..FAULT_IP]);
    Ok(())
}
