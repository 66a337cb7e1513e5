//! 01, section 1: system call numbers.

use conformance_kit::arch::order::RDX;
use conformance_kit::arch::{unknown_syscall, HAS_SET_TLS_BASE};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/1/a-number-is-compared-as-64-bits", compared_as_64_bits),
    check("01/1/numbers-of-disabled-features-are-unknown", holes),
    check("01/1/numbers-outside-the-table-are-unknown", outside),
    check("01/1/debug-numbers-are-unknown-in-release", debug_numbers),
    check("01/1/there-is-no-number-0", no_zero),
];

/// Fails unless the number is an unknown system call, reported in full.
fn expect_unknown(f: &mut Fixture, number: u64) -> TestResult {
    let stopped = f.system_call(&registers(&[(RDX, number)]))?;
    ensure!(
        stopped.label == fault::UNKNOWN_SYSCALL
            && stopped.words.len() == unknown_syscall::LENGTH
            && stopped.words[unknown_syscall::SYSCALL] == number,
        "system call {number:#x}: expected an unknown system call of this number, saw fault {} {:#x?}",
        stopped.label,
        stopped.words
    );
    Ok(())
}

fn compared_as_64_bits(f: &mut Fixture) -> TestResult {
    let extra = HAS_SET_TLS_BASE.then_some(33);
    let known = (1..=11).chain(extra).map(|n: u64| n.wrapping_neg());
    for number in known {
        // The same low 32 bits, above them zeros; and one bit of the rest wrong.
        expect_unknown(f, number & 0xffff_ffff)?;
        expect_unknown(f, number ^ 1 << 63)?;
        expect_unknown(f, number ^ 1 << 32)?;
    }
    Ok(())
}

fn holes(f: &mut Fixture) -> TestResult {
    // With several cores, a debug kernel has two more.
    let first = if f.is_for_several_cores() && f.needs_debug_kernel().is_ok() {
        20
    } else {
        18
    };
    for n in first..=if HAS_SET_TLS_BASE { 32 } else { 33 } {
        expect_unknown(f, -n as u64)?;
    }
    Ok(())
}

fn outside(f: &mut Fixture) -> TestResult {
    for number in [-34, -35, -64, -128, -256, i64::MIN, i64::MAX, 1, 2, 11, 33] {
        expect_unknown(f, number as u64)?;
    }
    Ok(())
}

fn no_zero(f: &mut Fixture) -> TestResult {
    expect_unknown(f, 0)?;
    expect_unknown(f, u64::MAX << 32)
}

fn debug_numbers(f: &mut Fixture) -> TestResult {
    if f.needs_debug_kernel().is_ok() {
        return Err(Failure::skip("the debug kernel has these system calls"));
    }
    for n in 12..=17 {
        expect_unknown(f, -n as u64)?;
    }
    Ok(())
}
