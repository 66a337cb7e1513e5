//! Section 2: message layouts.

use crate::prelude::*;

pub const CHECKS: &[Check] = &[check("05/2.5/a-read-of-an-unmapped-page", unmapped_read)];

/// `mov rax, [rdi]`.
const READ_AT_RDI: [u8; 3] = [0x48, 0x8b, 0x07];

fn unmapped_read(f: &mut Fixture) -> TestResult {
    const ADDRESS: u64 = 0x1234_5678_9abc;
    const USER: u64 = 1 << 2;
    let mut registers = UserContext::default();
    registers.set(sandglass::abi::context::x86_64::RDI, ADDRESS);
    let stopped = f.run_code(&READ_AT_RDI, &registers)?;
    ensure_eq!(stopped.label, fault::VM_FAULT);
    ensure_eq!(stopped.words, [stopped.registers.ip(), ADDRESS, 0, USER]);
    Ok(())
}
