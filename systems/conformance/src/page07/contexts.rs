//! Section 1: register contexts.

use sandglass::abi::context::x86_64::{COUNT, RFLAGS};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check(
    "07/1.4/initial-registers-of-a-new-tcb",
    initial_registers,
)];

fn initial_registers(f: &mut Fixture) -> TestResult {
    let mut expected = [0; COUNT];
    expected[RFLAGS] = 0x202;
    let tcb = f.tcb()?;
    let read = Invocation::new(tcb, label::TCB_READ_REGISTERS, &[0, COUNT as u64], &[]);
    read.expect_ok(&expected)
}
