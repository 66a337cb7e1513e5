//! 05, section 2.3: user exceptions.

use conformance_kit::arch::order::{RAX, RDI, RFLAGS, RIP, RSP};
use conformance_kit::arch::{class_of, code, FPU_UNAVAILABLE, INVALID_OPCODE, USE_FPU};
use sandglass::abi::invocation::tcb_flags;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("05/2.3/layout", layout),
    check("05/2.3/unknown-instructions", unknown_instructions),
    check("05/2.3/breakpoints-have-their-immediate", breakpoints),
    check("05/2.3/calls-of-other-levels", calls),
    check("05/2.3/fpu-disabled", fpu_disabled),
    check("05/2.3/privileged-instructions", privileged),
    check("05/2.3/a-misaligned-program-counter", misaligned),
];

const NOP: u32 = 0xd503_201f;
const MSR_NZCV_X9: u32 = 0xd51b_4209;

/// Fails unless the thread stops with this exception at the last instruction of its code, and the message is that of its
/// registers.
fn expect_exception(
    f: &mut Fixture,
    instructions: &[u32],
    registers: &UserContext,
    number: impl Fn(u64) -> bool,
) -> TestResult {
    let thread = f.raw(&code(instructions), registers)?;
    let stopped = thread.run(f)?;
    ensure_eq!(
        (stopped.label, stopped.words.len()),
        (fault::USER_EXCEPTION, 5)
    );
    let at = thread.code + 4 * (instructions.len() as u64 - 1);
    let seen = stopped.registers;
    ensure_eq!(seen.get(RIP), at);
    ensure_eq!(stopped.words[..3], [at, seen.get(RSP), seen.get(RFLAGS)]);
    ensure!(
        number(stopped.words[3]) && stopped.words[4] == 0,
        "{instructions:x?} is the exception {:#x} with the code {:#x}",
        stopped.words[3],
        stopped.words[4]
    );
    Ok(())
}

/// Flags and stack pointer are those of the moment.
fn layout(f: &mut Fixture) -> TestResult {
    for flags in [0, 0x9000_0000, 0xf000_0000] {
        let thread = f.raw(&code(&[NOP, MSR_NZCV_X9, 0]), &registers(&[(RAX, flags)]))?;
        let stopped = thread.run(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        let expected = [
            thread.code + 8,
            distinct().get(RSP),
            sanitised(RFLAGS, flags),
            INVALID_OPCODE,
            0,
        ];
        ensure_eq!(stopped.words, expected);
    }
    Ok(())
}

fn unknown_instructions(f: &mut Fixture) -> TestResult {
    // Undefined for good; others that nothing is encoded by.
    for word in [0, 1, 0xffff, 0x0001_0000, 0x0200_0000, 0x6400_0000] {
        expect_exception(f, &[NOP, word], &distinct(), |number| {
            number == INVALID_OPCODE
        })?;
    }
    Ok(())
}

fn breakpoints(f: &mut Fixture) -> TestResult {
    for immediate in [0, 1, 0x77, 0x8000, 0xffff] {
        let brk = 0xd420_0000 | immediate << 5;
        let expected = 0xf200_0000 + u64::from(immediate);
        expect_exception(f, &[NOP, brk], &distinct(), |number| number == expected)?;
    }
    Ok(())
}

/// HVC, SMC, and HLT, by which nothing is called: unknown instructions at this level.
fn calls(f: &mut Fixture) -> TestResult {
    for word in [0xd400_0002, 0xd400_0003, 0xd440_0000, 0xd4a0_0001] {
        expect_exception(f, &[NOP, word], &distinct(), |number| {
            number == INVALID_OPCODE
        })?;
    }
    Ok(())
}

fn fpu_disabled(f: &mut Fixture) -> TestResult {
    let thread = f.raw(&USE_FPU, &distinct())?;
    thread.tcb.set_flags(0, tcb_flags::FPU_DISABLED)?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(class_of(stopped.words[3]), FPU_UNAVAILABLE);
    ensure_eq!((stopped.words[0], stopped.words[4]), (thread.code, 0));
    Ok(())
}

/// Whether it is the exception of an instruction that this level does not have, or of a register that is kept from it.
pub fn is_refused(number: u64) -> bool {
    const REGISTER: u64 = 0x18 << 26;
    number == INVALID_OPCODE || class_of(number) == REGISTER
}

fn privileged(f: &mut Fixture) -> TestResult {
    for word in [
        0xd538_1009, // mrs x9, sctlr_el1
        0xd538_0009, // mrs x9, midr_el1
        0xd538_5209, // mrs x9, esr_el1
        0xd518_c009, // msr vbar_el1, x9
        0xd53b_4229, // mrs x9, daif
        0xd503_42df, // msr daifset, #2
        0xd508_871f, // tlbi vmalle1
        0xd508_751f, // ic iallu
        0xd508_7620, // dc ivac, x0
        0xd508_7e40, // dc cisw, x0
        0xd508_7840, // at s1e0r, x0
        0xd69f_03e0, // eret
    ] {
        expect_exception(f, &[NOP, word], &distinct(), is_refused)?;
    }
    Ok(())
}

/// The exception is at the address that was jumped to.
fn misaligned(f: &mut Fixture) -> TestResult {
    const CLASS: u64 = 0x22 << 26;
    const BR_X0: u32 = 0xd61f_0000;
    let thread = f.raw(&code(&[BR_X0, NOP, NOP]), &distinct())?;
    for offset in 1..4 {
        let registers = registers(&[(RIP, thread.code), (RDI, thread.code + 4 + offset)]);
        thread.tcb.write_registers(&registers, true)?;
        let stopped = thread.stopped(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(class_of(stopped.words[3]), CLASS);
        ensure_eq!(stopped.words[0], thread.code + 4 + offset);
    }
    Ok(())
}
