//! 07, sections 2, 3 and 5: what user code may do to the processor, TLS, and the debug API that is
//! not there.

use conformance_kit::arch::order::{FS_BASE, RAX, RCX, RDI, RDX, RIP, RSP};
use conformance_kit::arch::HAS_SET_TLS_BASE;
use sandglass::abi::fault::user_exception;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("07/2/rdtsc-and-cpuid-are-allowed", allowed),
    check("07/2/rdpmc-is-not-allowed", rdpmc),
    check("07/2/port-instructions-are-not-allowed", ports),
    check(
        "07/2/model-specific-registers-are-not-accessible",
        model_specific,
    ),
    check("07/2/sysenter-is-not-usable", sysenter),
    check("07/3/the-tls-base-is-the-fs-base", tls_base),
    check("07/5/labels-are-those-without-the-debug-api", labels),
];

const GENERAL_PROTECTION: u64 = 13;

fn allowed(f: &mut Fixture) -> TestResult {
    // rdtsc; ud2 and cpuid; ud2
    for code in [[0x0f, 0x31, 0x0f, 0x0b], [0x0f, 0xa2, 0x0f, 0x0b]] {
        let thread = f.raw(&code, &registers(&[(RAX, 0), (RCX, 0), (RDX, 0)]))?;
        let stopped = thread.run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(stopped.registers.get(RIP), thread.code + 2);
        ensure!(stopped.registers.get(RAX) != 0);
    }
    Ok(())
}

/// Fails unless the instruction is a general-protection exception.
fn expect_refused(f: &mut Fixture, code: &[u8], registers: &UserContext) -> TestResult {
    let thread = f.raw(code, registers)?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(
        stopped.words[user_exception::NUMBER..],
        [GENERAL_PROTECTION, 0]
    );
    ensure_eq!(stopped.words[user_exception::FAULT_IP], thread.code);
    Ok(())
}

fn rdpmc(f: &mut Fixture) -> TestResult {
    expect_refused(f, &[0x0f, 0x33], &registers(&[(RCX, 0)]))
}

fn ports(f: &mut Fixture) -> TestResult {
    let instructions: [&[u8]; 8] = [
        &[0xec],       // in al, dx
        &[0x66, 0xed], // in ax, dx
        &[0xed],       // in eax, dx
        &[0xee],       // out dx, al
        &[0xef],       // out dx, eax
        &[0xe4, 0x80], // in al, 0x80
        &[0x6c],       // ins
        &[0x6e],       // outs
    ];
    let memory = f.buffer()?;
    for port in [0x80, 0x3f8, 0xcf8] {
        let rsi = conformance_kit::arch::order::RSI;
        let addresses = [(RDX, port), (RDI, memory.address), (rsi, memory.address)];
        for code in instructions {
            expect_refused(f, code, &registers(&addresses))?;
        }
    }
    Ok(())
}

fn model_specific(f: &mut Fixture) -> TestResult {
    // rdmsr and wrmsr, of FS_BASE and EFER
    for msr in [0xc000_0100, 0xc000_0080] {
        for code in [[0x0f, 0x32], [0x0f, 0x30]] {
            expect_refused(f, &code, &registers(&[(RCX, msr)]))?;
        }
    }
    Ok(())
}

fn sysenter(f: &mut Fixture) -> TestResult {
    let stack = f.buffer()?;
    let before = entry(Syscall::Yield, &[(RSP, stack.address)]);
    let thread = f.raw(&[0x0f, 0x34, 0x0f, 0x0b], &before)?;
    let stopped = thread.run(f)?;
    // Processors without it in long mode call it an invalid opcode.
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure!([GENERAL_PROTECTION, 6].contains(&stopped.words[user_exception::NUMBER]));
    ensure_eq!(stopped.words[user_exception::FAULT_IP], thread.code);
    Ok(())
}

fn tls_base(f: &mut Fixture) -> TestResult {
    let (tcb, address) = (f.tcb()?, 0x1234_5678_9000);
    tcb.set_tls_base(address)?;
    let expected = changed(&UserContext::default(), &[(FS_BASE, address)]);
    ensure_eq!(tcb.read_registers(false)?, expected);
    if !HAS_SET_TLS_BASE {
        return Ok(());
    }
    // For oneself, by the system call.
    let before = entry(Syscall::SetTLSBase, &[(RDI, address)]);
    let thread = f.caller(&before)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, &before, &[(FS_BASE, address)])
}

fn labels(f: &mut Fixture) -> TestResult {
    if PROFILE.hardware_debug {
        return Err(Failure::skip("the profile has the debug API"));
    }
    // With the debug API, 16 to 19 would be its operations, and those after it four higher.
    let tcb = f.tcb()?;
    Invocation::new(tcb, 16, &[0x7000], &[]).expect_ok(&[])?;
    ensure_eq!(tcb.read_registers(false)?.get(FS_BASE), 0x7000);
    Invocation::new(tcb, 17, &[0, 1], &[]).expect_ok(&[1])?;
    for label in 18..=22 {
        Invocation::new(tcb, label, &[0, 0, 0, 0], &[]).expect_error(IllegalOperation, &[])?;
    }
    Ok(())
}
