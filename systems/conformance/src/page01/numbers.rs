//! Section 1: system call numbers.

use sandglass::abi::context::x86_64::RDX;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "01/1/a-number-is-compared-as-64-bits",
    compared_as_64_bits,
)];

fn compared_as_64_bits(f: &mut Fixture) -> TestResult {
    for number in [0xffff_ffff, 0, 1, u64::MAX << 32] {
        let mut registers = UserContext::default();
        registers.set(RDX, number);
        let stopped = f.system_call(&registers)?;
        ensure_eq!(stopped.label, fault::UNKNOWN_SYSCALL);
        ensure_eq!(stopped.words[fault::unknown_syscall::SYSCALL], number);
    }
    Ok(())
}
