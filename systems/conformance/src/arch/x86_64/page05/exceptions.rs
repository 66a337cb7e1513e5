//! 05, section 2.3: user exceptions; 05, section 7: the spurious interrupt vector.

use conformance_kit::arch::order::{RAX, RCX, RDI, RDX, RFLAGS, RIP, RSP};
use conformance_kit::arch::USERS_SET_BASES;
use sandglass::abi::fault::user_exception::CODE;
use sandglass::abi::invocation::tcb_flags;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("05/2.3/layout", layout),
    check("05/2.3/divide-error", divide_error),
    check("05/2.3/single-step", single_step),
    check("05/2.3/breakpoint-is-reported-behind-it", breakpoint),
    check("05/2.3/invalid-opcode", invalid_opcode),
    check("05/2.3/fpu-disabled", fpu_disabled),
    check("05/2.3/privileged-instructions", privileged),
    check("05/2.3/non-canonical-addresses", non_canonical),
    check(
        "05/2.3/software-interrupts-below-the-traps",
        software_interrupts,
    ),
    check("05/7/int-255-is-ignored", int_255),
];

/// RFLAGS bit that a processor may set in the flags that an exception saves.
const RESUME_FLAG: u64 = 1 << 16;

/// Fails unless the thread stops with this exception at this offset of its code, and the message
/// is that of its registers.
fn expect_exception(
    f: &mut Fixture,
    code: &[u8],
    registers: &UserContext,
    offset: u64,
    number: u64,
    error_code: u64,
) -> Result<Stopped, Failure> {
    let thread = f.raw(code, registers)?;
    let stopped = thread.run(f)?;
    expect(&thread, &stopped, offset, number, error_code)?;
    Ok(stopped)
}

fn expect(
    thread: &RawThread,
    stopped: &Stopped,
    offset: u64,
    number: u64,
    error_code: u64,
) -> TestResult {
    let expected = [
        thread.code + offset,
        stopped.registers.get(RSP),
        stopped.registers.get(RFLAGS),
        number,
        error_code,
    ];
    ensure!(
        stopped.label == fault::USER_EXCEPTION && stopped.words == expected,
        "expected a user exception {expected:x?}, saw fault {} {:x?}",
        stopped.label,
        stopped.words
    );
    Ok(())
}

fn layout(f: &mut Fixture) -> TestResult {
    let before = distinct();
    let stopped = expect_exception(f, &[0x0f, 0x0b], &before, 0, 6, 0)?;
    ensure_eq!(stopped.words[1], before.get(RSP));
    ensure_eq!(stopped.words[2] & !RESUME_FLAG, before.get(RFLAGS));
    let flags = stopped.registers.get(RFLAGS);
    let expected = changed(&before, &[(RIP, stopped.words[0]), (RFLAGS, flags)]);
    ensure_eq!(stopped.registers, expected);
    Ok(())
}

fn divide_error(f: &mut Fixture) -> TestResult {
    // nop; div rcx, by zero and with a quotient that does not fit.
    for (rdx, rcx) in [(0, 0), (5, 1)] {
        let before = registers(&[(RDX, rdx), (RCX, rcx)]);
        expect_exception(f, &[0x90, 0x48, 0xf7, 0xf1], &before, 1, 0, 0)?;
    }
    Ok(())
}

/// In profiles with the debug API, the exceptions 1 and 3 are its faults (09, section 3).
fn without_debug_api() -> TestResult {
    match PROFILE.hardware_debug {
        false => Ok(()),
        true => Err(Failure::skip("the profile has the debug API")),
    }
}

fn single_step(f: &mut Fixture) -> TestResult {
    without_debug_api()?;
    // push 0x302; popf; nop; nop: the trap flag takes effect after one instruction.
    let stack = f.buffer()?;
    let before = registers(&[(RSP, stack.address + 64)]);
    let code = [0x68, 2, 3, 0, 0, 0x9d, 0x90, 0x90];
    let stopped = expect_exception(f, &code, &before, 7, 1, 0)?;
    ensure!(stopped.words[2] & 0x100 != 0, "the trap flag is clear");
    Ok(())
}

fn breakpoint(f: &mut Fixture) -> TestResult {
    without_debug_api()?;
    expect_exception(f, &[0x90, 0xcc], &distinct(), 2, 3, 0)?;
    // As `int 3` too.
    expect_exception(f, &[0xcd, 3], &distinct(), 2, 3, 0)?;
    Ok(())
}

fn invalid_opcode(f: &mut Fixture) -> TestResult {
    // ud2; into, which long mode does not have; wrfsbase, where it is not enabled.
    let wrfsbase = [&[0xf3, 0x48, 0x0f, 0xae, 0xd0][..]];
    let bases = wrfsbase.into_iter().filter(|_| !USERS_SET_BASES);
    for code in [&[0x0f, 0x0b][..], &[0xce]].into_iter().chain(bases) {
        expect_exception(f, code, &distinct(), 0, 6, 0)?;
    }
    Ok(())
}

fn fpu_disabled(f: &mut Fixture) -> TestResult {
    // fninit; movaps xmm0, xmm1.
    for code in [&[0xdb, 0xe3][..], &[0x0f, 0x28, 0xc1]] {
        let thread = f.raw(code, &distinct())?;
        thread.tcb.set_flags(0, tcb_flags::FPU_DISABLED)?;
        let stopped = thread.run(f)?;
        expect(&thread, &stopped, 0, 7, 0)?;
    }
    Ok(())
}

fn privileged(f: &mut Fixture) -> TestResult {
    let instructions: [&[u8]; 8] = [
        &[0xf4],             // hlt
        &[0xfa],             // cli
        &[0xfb],             // sti
        &[0xec],             // in al, dx
        &[0xe6, 0x80],       // out 0x80, al
        &[0x0f, 0x32],       // rdmsr
        &[0x0f, 0x20, 0xc0], // mov rax, cr0
        &[0x0f, 0x01, 0x17], // lgdt [rdi]
    ];
    for code in instructions {
        expect_exception(f, code, &distinct(), 0, 13, 0)?;
    }
    Ok(())
}

fn non_canonical(f: &mut Fixture) -> TestResult {
    // mov rax, [rdi]; mov [rdi], rax
    for code in [[0x48, 0x8b, 0x07], [0x48, 0x89, 0x07]] {
        for address in [0x8000_0000_0000, 0xffff_7fff_ffff_fff0, 1 << 63] {
            let before = registers(&[(RDI, address), (RAX, 1)]);
            expect_exception(f, &code, &before, 0, 13, 0)?;
        }
    }
    Ok(())
}

fn software_interrupts(f: &mut Fixture) -> TestResult {
    for vector in [0, 1, 2, 4, 5, 6, 8, 13, 14, 32, 48, 100, 128, 156, 157] {
        let thread = f.raw(&[0x90, 0xcd, vector], &distinct())?;
        let stopped = thread.run(f)?;
        // The processor's code: of hardware, and of QEMU's emulation.
        let code = stopped.words.get(CODE).copied();
        let n = u64::from(vector);
        ensure!(
            [Some(n * 8 + 2), Some(n * 16 + 2)].contains(&code),
            "int {vector}: the code is {code:x?}"
        );
        expect(&thread, &stopped, 1, 13, code.unwrap_or(0))?;
    }
    Ok(())
}

fn int_255(f: &mut Fixture) -> TestResult {
    // int 255; ud2
    let before = distinct();
    let stopped = expect_exception(f, &[0xcd, 255, 0x0f, 0x0b], &before, 2, 6, 0)?;
    let (ip, flags) = (stopped.words[0], stopped.registers.get(RFLAGS));
    let expected = changed(&before, &[(RIP, ip), (RFLAGS, flags)]);
    ensure_eq!(stopped.registers, expected);
    Ok(())
}
