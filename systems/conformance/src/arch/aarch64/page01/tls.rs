//! 01, section 9: TLS registers.

use conformance_kit::arch::code;
use conformance_kit::arch::order::{FS_BASE, GS_BASE, RAX, RBX, RDI, RIP};
use sandglass::abi::fault::user_exception;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/9/both-registers-are-per-thread", per_thread),
    check("01/9/a-thread-writes-its-own", written_by_itself),
    check("01/9/tcb-set-tls-base-of-another-thread", of_another),
    check("01/9/the-second-is-only-read", not_writable),
];

const UDF: u32 = 0;
const SVC: u32 = 0xd400_0001;
const MRS_X9_TPIDR: u32 = 0xd53b_d049;
const MRS_X10_TPIDRRO: u32 = 0xd53b_d06a;
const MSR_TPIDR_X9: u32 = 0xd51b_d049;
const MSR_TPIDRRO_X9: u32 = 0xd51b_d069;
const READ: [u32; 3] = [MRS_X9_TPIDR, MRS_X10_TPIDRRO, UDF];

fn per_thread(f: &mut Fixture) -> TestResult {
    for bases in [
        [1, 2],
        [0x7fff_ffff_ffff, 0x8000_0000_0000],
        [u64::MAX, 1 << 63],
    ] {
        let before = registers(&[(FS_BASE, bases[0]), (GS_BASE, bases[1])]);
        let stopped = f.raw(&code(&READ), &before)?.run(f)?;
        ensure_eq!([RAX, RBX].map(|index| stopped.registers.get(index)), bases);
        let kept = [FS_BASE, GS_BASE].map(|index| stopped.registers.get(index));
        ensure_eq!(kept, bases);
    }
    Ok(())
}

/// It is saved when the thread enters the kernel, and is there when it comes back, whoever ran meanwhile.
fn written_by_itself(f: &mut Fixture) -> TestResult {
    const BASE: u64 = 0x1234_5678_9abc_def1;
    let (endpoint, instructions) = (f.endpoint()?, [MSR_TPIDR_X9, SVC, MRS_X9_TPIDR, UDF]);
    let named = [(RDI, endpoint.address()), (RAX, BASE)];
    let thread = f.raw(&code(&instructions), &entry(Syscall::Wait, &named))?;
    thread.start_and_settle(f)?;
    ensure_eq!(thread.registers()?.get(FS_BASE), BASE);
    let other = f.raw(&code(&READ), &registers(&[(FS_BASE, 7)]))?.run(f)?;
    ensure_eq!(other.registers.get(RAX), 7);
    endpoint.send(Message::EMPTY);
    let stopped = thread.stopped(f)?;
    ensure_eq!(stopped.registers.get(RIP), thread.code + 12);
    ensure_eq!(
        [RAX, FS_BASE].map(|index| stopped.registers.get(index)),
        [BASE; 2]
    );
    Ok(())
}

fn of_another(f: &mut Fixture) -> TestResult {
    let thread = f.raw(&code(&READ), &registers(&[(GS_BASE, 9)]))?;
    thread.tcb.set_tls_base(0x1e7e)?;
    let stopped = thread.run(f)?;
    ensure_eq!(
        [RAX, RBX].map(|index| stopped.registers.get(index)),
        [0x1e7e, 9]
    );
    Ok(())
}

fn not_writable(f: &mut Fixture) -> TestResult {
    let thread = f.raw(&code(&[MSR_TPIDRRO_X9, UDF]), &distinct())?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(stopped.words[user_exception::FAULT_IP], thread.code);
    ensure_eq!(stopped.registers.get(GS_BASE), distinct().get(GS_BASE));
    Ok(())
}
