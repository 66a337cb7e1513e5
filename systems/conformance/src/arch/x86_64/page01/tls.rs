//! 01, section 9: TLS registers; 01, section 7: the system call that sets one.

use conformance_kit::arch::order::{FS_BASE, GS_BASE, RAX, RDI, RDX};
use conformance_kit::arch::{HAS_SET_TLS_BASE, USERS_SET_BASES};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/9/fs-and-gs-bases-are-per-thread", per_thread),
    check("01/9/set-tls-base-takes-effect-at-once", takes_effect),
    check("01/9/tcb-set-tls-base-of-another-thread", of_another),
    check("01/9/bases-cannot-be-written-by-instructions", not_writable),
    check("01/7/set-tls-base-sets-the-fs-base", set_tls_base),
    check(
        "01/7/set-tls-base-ignores-a-non-canonical-address",
        set_tls_base_non_canonical,
    ),
];

/// `mov rax, fs:[0]; mov rdx, gs:[0]; ud2`.
const READ_BASES: [u8; 20] = [
    0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, //
    0x65, 0x48, 0x8b, 0x14, 0x25, 0, 0, 0, 0, //
    0x0f, 0x0b,
];
/// `syscall; mov rax, fs:[0]; ud2`.
const SYSCALL_THEN_READ_FS: [u8; 13] = [
    0x0f, 0x05, 0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0x0f, 0x0b,
];

fn per_thread(f: &mut Fixture) -> TestResult {
    for _ in 0..3 {
        let (one, two) = (f.buffer()?, f.buffer()?);
        one.write(0, one.address + 1);
        two.write(0, two.address + 2);
        let before = registers(&[(FS_BASE, one.address), (GS_BASE, two.address)]);
        let stopped = f.raw(&READ_BASES, &before)?.run(f)?;
        ensure_eq!(stopped.registers.get(RAX), one.address + 1);
        ensure_eq!(stopped.registers.get(RDX), two.address + 2);
    }
    Ok(())
}

/// Skips a check of the system call where there is none.
fn needs_call() -> TestResult {
    match HAS_SET_TLS_BASE {
        true => Ok(()),
        false => Err(Failure::skip("the profile has no system call for it")),
    }
}

fn takes_effect(f: &mut Fixture) -> TestResult {
    needs_call()?;
    let target = f.buffer()?;
    target.write(0, 0x1e7e);
    let before = entry(Syscall::SetTLSBase, &[(RDI, target.address)]);
    let stopped = f.raw(&SYSCALL_THEN_READ_FS, &before)?.run(f)?;
    ensure_eq!(stopped.registers.get(RAX), 0x1e7e);
    ensure_eq!(stopped.registers.get(FS_BASE), target.address);
    Ok(())
}

fn of_another(f: &mut Fixture) -> TestResult {
    let target = f.buffer()?;
    target.write(0, 0x1e7e);
    let before = registers(&[(GS_BASE, target.address)]);
    let thread = f.raw(&READ_BASES, &before)?;
    thread.tcb.set_tls_base(target.address)?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.registers.get(RAX), 0x1e7e);
    ensure_eq!(stopped.registers.get(GS_BASE), target.address);
    Ok(())
}

fn not_writable(f: &mut Fixture) -> TestResult {
    if USERS_SET_BASES {
        return Err(Failure::skip("the profile has the instructions"));
    }
    // wrfsbase rax; wrgsbase rax; rdfsbase rax; rdgsbase rax
    for code in [
        [0xf3, 0x48, 0x0f, 0xae, 0xd0],
        [0xf3, 0x48, 0x0f, 0xae, 0xd8],
        [0xf3, 0x48, 0x0f, 0xae, 0xc0],
        [0xf3, 0x48, 0x0f, 0xae, 0xc8],
    ] {
        let thread = f.raw(&code, &distinct())?;
        let stopped = thread.run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(stopped.words[fault::user_exception::NUMBER], 6);
        ensure_eq!(stopped.words[fault::user_exception::FAULT_IP], thread.code);
    }
    Ok(())
}

/// Fails unless the system call returns with these registers changed and no others.
fn returns(f: &mut Fixture, before: &UserContext, named: &[(usize, u64)]) -> TestResult {
    let thread = f.caller(before)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, before, named)
}

fn set_tls_base(f: &mut Fixture) -> TestResult {
    needs_call()?;
    for base in [
        0,
        0x7fff_ffff_ffff,
        0x1234_5678,
        0xffff_8000_0000_0000,
        u64::MAX,
    ] {
        let before = entry(Syscall::SetTLSBase, &[(RDI, base)]);
        returns(f, &before, &[(FS_BASE, base)])?;
    }
    Ok(())
}

fn set_tls_base_non_canonical(f: &mut Fixture) -> TestResult {
    needs_call()?;
    for base in [0x8000_0000_0000, 0xffff_7fff_ffff_ffff, 1 << 63] {
        returns(f, &entry(Syscall::SetTLSBase, &[(RDI, base)]), &[])?;
    }
    Ok(())
}
