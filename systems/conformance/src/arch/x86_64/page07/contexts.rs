//! 07, section 1: register contexts.

use conformance_kit::arch::order::{
    COUNT, FS_BASE, GS_BASE, R11, R12, RAX, RCX, RDI, RFLAGS, RIP, RSI, RSP, UNKNOWN_SYSCALL_ORDER,
};

use crate::fixture::raw::RAW_PRIORITY;
use crate::page07::contexts::FRAME;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("07/1.1/every-word-is-its-register", words_are_registers),
    check(
        "07/1.3/write-registers-sanitises-the-flags",
        sanitised_flags,
    ),
    check(
        "07/1.3/write-registers-sanitises-addresses",
        sanitised_addresses,
    ),
    check(
        "07/1.3/copy-registers-does-not-sanitise",
        copy_does_not_sanitise,
    ),
    check("07/1.4/initial-fpu-state-of-a-new-tcb", initial_fpu_state),
    check("07/1.5/written-rsp-rcx-r11-are-effective", full_restore),
    check(
        "07/1.5/a-copy-to-oneself-returns-by-sysret",
        copy_to_oneself,
    ),
    check(
        "07/1.6/flags-that-a-thread-sets-survive-interrupts",
        flags_survive,
    ),
];

const UD2: [u8; 2] = [0x0f, 0x0b];
/// RFLAGS bits that only POPF sets.
const ALIGNMENT_CHECK: u64 = 1 << 18;
const ID: u64 = 1 << 21;

fn words_are_registers(f: &mut Fixture) -> TestResult {
    // The processor's registers, as a software interrupt finds them.
    let before = distinct();
    let thread = f.raw(&[0xcd, 200], &before)?;
    let words = thread.run(f)?.words;
    for (&index, &word) in UNKNOWN_SYSCALL_ORDER.iter().zip(&words) {
        match index {
            RIP => ensure_eq!(word, thread.code),
            RFLAGS => ensure_eq!(word & 0xfff, 0x202),
            _ => ensure_eq!(word, before.get(index)),
        }
    }
    Ok(())
}

fn sanitised_flags(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let bits = (0..64).map(|bit| 1 << bit);
    for flags in bits.chain([0, u64::MAX, 0x128, 0xfff]) {
        tcb.write_first_registers(&[0, 0, flags], false)?;
        let expected = ((flags | 0x202) & !0x128) & 0xfff;
        ensure_eq!(tcb.read_registers(false)?.get(RFLAGS), expected);
    }
    Ok(())
}

fn sanitised_addresses(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    for (address, canonical) in [
        (0x0000_7fff_ffff_ffff, true),
        (0x0000_8000_0000_0000, false),
        (0x8765_4321_0000_0000, false),
        (0xffff_7fff_ffff_ffff, false),
        (0xffff_8000_0000_0000, true),
        (u64::MAX, true),
    ] {
        let words = [address; COUNT];
        tcb.write_first_registers(&words, false)?;
        let seen = tcb.read_registers(false)?;
        let sane = if canonical { address } else { 0 };
        for index in (0..COUNT).filter(|&index| index != RFLAGS) {
            let checked = matches!(index, RIP | FS_BASE | GS_BASE);
            ensure_eq!(seen.get(index), if checked { sane } else { address });
        }
    }
    Ok(())
}

/// A thread that has set flags by POPF, which WriteRegisters would take away.
fn with_odd_flags(f: &mut Fixture) -> Result<Stopped, Failure> {
    // push AC | ID | 0x202; popf; ud2
    let stack = f.buffer()?;
    let before = registers(&[(RSP, stack.address + 64)]);
    let code = [&[0x68, 0x02, 0x02, 0x24, 0x00, 0x9d][..], &UD2].concat();
    let stopped = f.raw(&code, &before)?.run(f)?;
    let flags = stopped.registers.get(RFLAGS);
    ensure_eq!(flags & (ALIGNMENT_CHECK | ID), ALIGNMENT_CHECK | ID);
    Ok(stopped)
}

fn copy_does_not_sanitise(f: &mut Fixture) -> TestResult {
    let (stopped, target) = (with_odd_flags(f)?, f.tcb()?);
    target.copy_registers(stopped.tcb, FRAME)?;
    let seen = target.read_registers(false)?.get(RFLAGS);
    ensure_eq!(seen, stopped.registers.get(RFLAGS));
    // A write of what was read does.
    target.write_registers(&stopped.registers, false)?;
    ensure_eq!(target.read_registers(false)?.get(RFLAGS), 0x202);
    Ok(())
}

fn initial_fpu_state(f: &mut Fixture) -> TestResult {
    // fxsave [rdi]; ud2, beside threads that have used the FPU.
    let area = f.buffer()?;
    area.fill(0x99);
    let before = registers(&[(RDI, area.address)]);
    f.raw(&[0x0f, 0xae, 0x07, 0x0f, 0x0b], &before)?.run(f)?;
    // FCW, FSW and the tags of FNINIT, and MXCSR.
    ensure_eq!(area.read(0) & 0xff_ffff_ffff, 0x00_0000_037f);
    ensure_eq!(area.read(3) & 0xffff_ffff, 0x1f80);
    Ok(())
}

fn full_restore(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let before = entry(
        Syscall::Recv,
        &[(RDI, endpoint.address()), (R12, reply.address())],
    );
    let thread = f.caller(&before)?;
    thread.start_and_settle(f)?;
    let values = [(RSP, 0x5000), (RCX, 0xcccc), (R11, 0x1111)];
    let written = changed(&thread.registers()?, &values);
    let written = changed(&written, &[(RIP, thread.code + 2)]);
    thread.tcb.write_registers(&written, false)?;
    endpoint.send(Message::EMPTY);
    let stopped = thread.stopped(f)?;
    for (index, value) in values {
        ensure_eq!(stopped.registers.get(index), value);
    }
    Ok(())
}

fn copy_to_oneself(f: &mut Fixture) -> TestResult {
    // The thread copies the registers of another to itself by Send, and goes on as that one
    // would, but for what a SYSRET loads.
    let source = f.tcb()?;
    let flags = (label::TCB_COPY_REGISTERS, 1 << 2);
    let info = MessageInfo::new(flags.0, 0, 1, 1).raw();
    let r10 = conformance_kit::arch::order::R10;
    let before = entry(Syscall::Send, &[(RSI, info), (r10, flags.1)]);
    let thread = f.caller(&before)?;
    let buffer = f.buffer()?;
    buffer.set_caps(&[source]);
    thread.use_buffer(buffer)?;
    thread.tcb.write_registers(
        &changed(&before, &[(RIP, thread.code), (RDI, thread.tcb.address())]),
        false,
    )?;
    let copied = registers(&[(RIP, thread.code + 2), (RAX, 0xaaaa), (RFLAGS, 0x203)]);
    source.write_registers(&copied, false)?;
    let stopped = thread.run(f)?;
    let bases = [
        (FS_BASE, before.get(FS_BASE)),
        (GS_BASE, before.get(GS_BASE)),
    ];
    let rsp = (RSP, stopped.registers.get(RSP));
    thread.expect_return(&stopped, &changed(&copied, &[rsp]), &bases)?;
    ensure!(
        stopped.registers.get(RSP) != copied.get(RSP),
        "RSP was taken from the copy"
    );
    Ok(())
}

fn flags_survive(f: &mut Fixture) -> TestResult {
    // push AC | ID | 0x203; popf; mov ecx, 200000; loop; ud2, in slices of 100 µs
    let stack = f.buffer()?;
    let code = [
        &[0x68, 0x03, 0x02, 0x24, 0x00, 0x9d][..],
        &[0xb9, 0x40, 0x0d, 0x03, 0x00],
        // lea ecx, [ecx - 1]; jecxz to the end; jmp back: these leave the flags alone
        &[0x8d, 0x49, 0xff, 0x67, 0xe3, 0x02, 0xeb, 0xf8],
        &UD2,
    ]
    .concat();
    let before = registers(&[(RSP, stack.address + 64)]);
    let params = f.active_on(RAW_PRIORITY, SchedParams::new(100, 100))?;
    let thread = f.raw_with(params, &code, &before)?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.words[0], thread.code + code.len() as u64 - 2);
    let flags = stopped.registers.get(RFLAGS);
    ensure_eq!(flags & 0x3f_0fff, ALIGNMENT_CHECK | ID | 0x203);
    Ok(())
}
