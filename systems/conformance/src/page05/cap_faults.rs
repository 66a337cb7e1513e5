//! 05, section 2.1: capability faults.

use conformance_kit::arch::order::{R12, RDI, RIP, RSI};

use conformance_kit::arch::{NOP, STOP, SYSCALL};

use crate::page01::cspaces::OddSpace;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "05/2.1/layout-and-length-of-each-lookup-failure",
        lookup_failures,
    ),
    check("05/2.1/the-ip-is-that-of-the-system-call", ip),
    check(
        "05/2.1/the-pointer-is-reported-with-all-its-bits",
        whole_pointer,
    ),
    check("05/2.1/which-pointer-and-phase", which_pointer),
    check(
        "05/2.1/registers-are-left-as-they-were",
        registers_untouched,
    ),
];

fn lookup_failures(f: &mut Fixture) -> TestResult {
    let space = OddSpace::new(f)?;
    for case in &space.failing {
        let thread = f.caller(&entry(Syscall::Call, &[(RDI, case.address), (RSI, 0)]))?;
        space.give_to(thread)?;
        let stopped = thread.run(f)?;
        let expected_length = 4 + case.failure[0] as usize - 1;
        ensure_eq!(stopped.words.len(), expected_length);
        thread.expect_cap_fault(&stopped, case.address, false, &case.failure)?;
    }
    // Missing, of length 5; and the invalid root, of length 4.
    let thread = f.caller(&entry(Syscall::Wait, &[(RDI, 0)]))?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.words, [thread.code, 0, 1, 2, 0]);
    let root = f.cnode(1)?;
    let thread = f.caller(&entry(Syscall::Wait, &[(RDI, 3)]))?;
    thread.use_cspace(root, GuardData(0))?;
    f.slot_of(root).revoke()?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.words, [thread.code, 3, 1, 1]);
    Ok(())
}

fn ip(f: &mut Fixture) -> TestResult {
    let code = [&NOP[..], &NOP, &NOP, &SYSCALL, &STOP].concat();
    let at_call = 3 * NOP.len() as u64;
    let thread = f.raw(&code, &entry(Syscall::Recv, &[(RDI, 0)]))?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.words[fault::cap_fault::IP], thread.code + at_call);
    ensure_eq!(stopped.registers.get(RIP), thread.code + at_call);
    Ok(())
}

fn whole_pointer(f: &mut Fixture) -> TestResult {
    for address in [u64::MAX, 1 << 63, 0x8765_4321_0fed_cba9] {
        let thread = f.caller(&entry(Syscall::Recv, &[(RDI, address)]))?;
        let stopped = thread.run(f)?;
        ensure_eq!(stopped.words[fault::cap_fault::ADDRESS], address);
    }
    Ok(())
}

fn which_pointer(f: &mut Fixture) -> TestResult {
    const BAD: u64 = 1 << 62;
    let endpoint = f.endpoint()?;
    let null: CPtr = f.null()?;
    let one_cap = MessageInfo::new(0, 0, 1, 0).raw();
    let good = endpoint.address();
    // Registers, extra capability, and the pointer and phase that the fault names.
    let cases = [
        (entry(Syscall::Send, &[(RDI, BAD), (RSI, 0)]), 0, BAD, 0),
        (
            entry(Syscall::Send, &[(RDI, good), (RSI, one_cap)]),
            BAD + 1,
            BAD + 1,
            0,
        ),
        (entry(Syscall::Recv, &[(RDI, BAD + 2)]), 0, BAD + 2, 1),
        (entry(Syscall::Recv, &[(RDI, null.raw())]), 0, null.raw(), 1),
        (
            entry(Syscall::Recv, &[(RDI, good), (R12, BAD + 3)]),
            0,
            BAD + 3,
            1,
        ),
        (
            entry(Syscall::Recv, &[(RDI, good), (R12, null.raw())]),
            0,
            null.raw(),
            1,
        ),
    ];
    for (before, extra_cap, address, phase) in cases {
        let (thread, buffer) = (f.caller(&before)?, f.buffer()?);
        buffer.write(ipc_buffer::CAPS_OR_BADGES, extra_cap);
        thread.use_buffer(buffer)?;
        let stopped = thread.run(f)?;
        ensure_eq!(stopped.label, fault::CAP_FAULT);
        ensure_eq!(stopped.words[..3], [thread.code, address, phase]);
    }
    Ok(())
}

fn registers_untouched(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Recv, Syscall::NBRecv, Syscall::Wait, Syscall::Send] {
        let before = entry(call, &[(RDI, 1 << 63)]);
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        ensure_eq!(stopped.label, fault::CAP_FAULT);
        ensure_eq!(stopped.registers, changed(&before, &[(RIP, thread.code)]));
    }
    Ok(())
}
