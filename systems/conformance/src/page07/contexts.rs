//! 07, section 1: register contexts, as far as every architecture has the same.

use conformance_kit::arch::order::{
    COUNT, FRAME_COUNT, FS_BASE, GS_BASE, RDI, RFLAGS, RIP, RSI, SYSCALL_INSTRUCTION_BYTES,
};
use sandglass::cap::CopyRegisters;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("07/1.1/written-words-are-read-back", read_back),
    check(
        "07/1.1/copy-registers-copies-the-groups-asked-for",
        copied_groups,
    ),
    check(
        "07/1.2/the-program-counter-that-is-read-is-fault-ip",
        read_fault_ip,
    ),
    check(
        "07/1.2/after-write-registers-a-thread-continues-at-fault-ip",
        write_sets_next_ip,
    ),
    check(
        "07/1.2/after-a-copy-of-the-frame-a-thread-continues-at-fault-ip",
        copy_sets_next_ip,
    ),
    check(
        "07/1.2/a-copy-of-the-integer-group-leaves-next-ip",
        integer_copy_keeps_next_ip,
    ),
    check(
        "07/1.3/tcb-set-tls-base-does-not-sanitise",
        tls_base_does_not_sanitise,
    ),
    check("07/1.4/initial-registers-of-a-new-tcb", initial_registers),
];

pub const FRAME: CopyRegisters = CopyRegisters {
    suspend_source: false,
    resume_target: false,
    frame: true,
    integer: false,
};
const INTEGER: CopyRegisters = CopyRegisters {
    frame: false,
    integer: true,
    ..FRAME
};

fn read_back(f: &mut Fixture) -> TestResult {
    let (tcb, fresh) = (f.tcb()?, fresh());
    for count in 1..=COUNT {
        tcb.write_registers(&fresh, false)?;
        tcb.write_first_registers(&distinct().words()[..count], false)?;
        let mut expected = fresh;
        expected.words_mut()[..count].copy_from_slice(&distinct().words()[..count]);
        ensure_eq!(tcb.read_registers(false)?, expected);
        // And the first ones alone.
        Invocation::new(tcb, label::TCB_READ_REGISTERS, &[0, count as u64], &[])
            .expect_ok(&distinct().words()[..count])?;
    }
    Ok(())
}

fn copied_groups(f: &mut Fixture) -> TestResult {
    let both = CopyRegisters {
        integer: true,
        ..FRAME
    };
    let none = CopyRegisters::default();
    for (what, range) in [
        (FRAME, 0..FRAME_COUNT),
        (INTEGER, FRAME_COUNT..COUNT),
        (both, 0..COUNT),
        (none, 0..0),
    ] {
        let (source, target) = (f.tcb()?, f.tcb()?);
        source.write_registers(&distinct(), false)?;
        target.copy_registers(source, what)?;
        let mut expected = fresh();
        expected.words_mut()[range.clone()].copy_from_slice(&distinct().words()[range]);
        ensure_eq!(target.read_registers(false)?, expected);
        ensure_eq!(source.read_registers(false)?, distinct());
    }
    Ok(())
}

/// A thread whose message was just taken: it is ready to continue behind its Send.
fn sent(f: &mut Fixture) -> Result<(RawThread, UserContext, Endpoint, Reply), Failure> {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let before = entry(Syscall::Send, &[(RDI, endpoint.address()), (RSI, 0)]);
    let thread = f.caller(&before)?;
    thread.start_and_settle(f)?;
    endpoint.nb_recv(reply);
    Ok((thread, before, endpoint, reply))
}

fn read_fault_ip(f: &mut Fixture) -> TestResult {
    let (thread, before, ..) = sent(f)?;
    ensure_eq!(thread.registers()?, changed(&before, &[(RIP, thread.code)]));
    thread.expect_return(&thread.stopped(f)?, &before, &[])
}

fn write_sets_next_ip(f: &mut Fixture) -> TestResult {
    for count in [0, 1, COUNT] {
        let (thread, ..) = sent(f)?;
        let registers = thread.registers()?;
        let words = &registers.words()[..count];
        thread.tcb.write_first_registers(words, false)?;
        // It sends once more.
        ensure!(thread.goes_on_or_waits(f)?, "{count} registers: it went on");
    }
    Ok(())
}

fn copy_sets_next_ip(f: &mut Fixture) -> TestResult {
    let (thread, _, endpoint, reply) = sent(f)?;
    let source = f.tcb()?;
    source.write_registers(&thread.registers()?, false)?;
    thread.tcb.copy_registers(source, FRAME)?;
    ensure!(thread.goes_on_or_waits(f)?, "it went on");
    endpoint.nb_recv(reply);
    ensure_eq!(thread.stopped(f)?.label, fault::USER_EXCEPTION);
    Ok(())
}

fn integer_copy_keeps_next_ip(f: &mut Fixture) -> TestResult {
    let (thread, before, ..) = sent(f)?;
    let (source, bases) = (f.tcb()?, [(FS_BASE, 0x7000), (GS_BASE, 0x8000)]);
    source.write_registers(&registers(&bases), false)?;
    thread.tcb.copy_registers(source, INTEGER)?;
    let stopped = thread.stopped(f)?;
    for (index, value) in bases
        .into_iter()
        .chain([(RIP, thread.code + SYSCALL_INSTRUCTION_BYTES)])
    {
        ensure_eq!(stopped.registers.get(index), value);
    }
    ensure_eq!(stopped.registers.get(RDI), before.get(RDI));
    Ok(())
}

fn tls_base_does_not_sanitise(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    for base in [0x7fff_ffff_f000, 0x8000_0000_0000, 1 << 63, u64::MAX] {
        tcb.set_tls_base(base)?;
        ensure_eq!(tcb.read_registers(false)?.get(FS_BASE), base);
    }
    Ok(())
}

fn initial_registers(f: &mut Fixture) -> TestResult {
    let mut expected = [0; COUNT];
    expected[RFLAGS] = sanitised(RFLAGS, 0);
    let tcb = f.tcb()?;
    let read = Invocation::new(tcb, label::TCB_READ_REGISTERS, &[0, COUNT as u64], &[]);
    read.expect_ok(&expected)
}
