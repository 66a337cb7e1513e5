//! 03, sections 4.1 to 4.3: ReadRegisters, WriteRegisters, CopyRegisters.

use conformance_kit::arch::order::{
    COUNT, FRAME_COUNT, FS_BASE, GS_BASE, MESSAGE_REGISTERS, R11, RAX, RCX, RDI, RDX, RFLAGS, RIP,
    RSI, RSP,
};
use sandglass::abi::invocation::registers_flags as flags;
use sandglass::abi::message::MessageInfo;
use sandglass::abi::syscall::Syscall;
use sandglass::cap::CopyRegisters;

use crate::prelude::*;

use super::common::truncated;
use super::raw::{signalled, waiting, Raw, INSTRUCTION_BYTES};

pub const CHECKS: &[Check] = &[
    check("03/4.1/refusals", read_refusals),
    check("03/4.1/counts", read_counts),
    check("03/4.1/without-a-buffer-four-words", read_without_buffer),
    check("03/4.1/suspend-before-reading", read_suspends),
    check("03/4.1/reading-alone-stops-nobody", read_stops_nobody),
    check("03/4.2/refusals", write_refusals),
    check("03/4.2/counts", write_counts),
    check("03/4.2/sanitising", write_sanitises),
    check("03/4.2/continues-at-fault-ip", write_sets_next_ip),
    check("03/4.2/full-restore", write_restores_all),
    check("03/4.2/a-blocked-thread-stays-blocked", write_keeps_blocked),
    check("03/4.2/resume-cancels-ipc", write_resumes),
    check("03/4.3/refusals", copy_refusals),
    check("03/4.3/groups", copy_groups),
    check("03/4.3/no-sanitising", copy_unsanitised),
    check("03/4.3/frame-continues-at-fault-ip", copy_sets_next_ip),
    check("03/4.3/full-restore", copy_restores_all),
    check("03/4.3/suspend-and-resume", copy_suspends_and_resumes),
    check("03/4.3/from-and-to-oneself", copy_self),
];

/// Registers that are all different, and unchanged by sanitising.
fn sample(seed: u64) -> UserContext {
    let mut context = UserContext::default();
    for (i, word) in (0..).zip(context.words_mut()) {
        *word = seed << 32 | i << 12 | 0x123;
    }
    // The carry flag of x86_64, and a flag of aarch64.
    context.set(RFLAGS, sanitised(RFLAGS, (seed & 1) | (seed & 1) << 31));
    context
}

fn read_refusals(f: &mut Fixture) -> TestResult {
    let read = Invocation::new(f.tcb()?, label::TCB_READ_REGISTERS, &[0, COUNT as u64], &[]);
    truncated(&read)?;
    truncated(&read.with_word(1, 0))?;
    let most = COUNT as u64;
    for count in [0, most + 1, most + 16, 1 << 32 | 1, u64::MAX] {
        let range = read.with_word(1, count);
        range.expect_error(RangeError, &[1, most])?;
        // Before it is oneself.
        range.on(f.me).expect_error(RangeError, &[1, most])?;
    }
    for flags in [0, flags::READ_SUSPEND_SOURCE] {
        read.with_word(0, flags)
            .on(f.me)
            .expect_error(IllegalOperation, &[])?;
    }
    read.on(f.me)
        .with_length(1)
        .expect_error(TruncatedMessage, &[])
}

fn read_counts(f: &mut Fixture) -> TestResult {
    let (tcb, context) = (f.tcb()?, sample(5));
    tcb.write_registers(&context, false)?;
    for count in 1..=COUNT {
        // All flags but the first are without effect.
        for flags in [0, 0xff00] {
            let words = [flags, count as u64];
            Invocation::new(tcb, label::TCB_READ_REGISTERS, &words, &[])
                .expect_ok(&context.words()[..count])?;
        }
    }
    Ok(())
}

fn read_without_buffer(f: &mut Fixture) -> TestResult {
    let (tcb, context) = (f.tcb()?, sample(6));
    tcb.write_registers(&context, false)?;
    for (count, expected) in [(3, 3), (4, 4), (5, 4), (COUNT, 4)] {
        let words = [0, count as u64];
        let read = Raw::calling(f, Syscall::Call, tcb, label::TCB_READ_REGISTERS, &words)?;
        let after = read.run(f)?.registers;
        ensure_eq!(after.get(RSI), MessageInfo::new(0, 0, 0, expected).raw());
        let seen = MESSAGE_REGISTERS.map(|register| after.get(register));
        ensure_eq!(seen[..expected], context.words()[..expected]);
    }
    Ok(())
}

fn read_suspends(f: &mut Fixture) -> TestResult {
    let (raw, _) = signalled(f)?;
    // Running: FaultIP is where it entered the kernel; suspending copies NextIP there.
    ensure_eq!(raw.tcb.read_registers(false)?.ip(), raw.code);
    let behind = raw.code + INSTRUCTION_BYTES;
    ensure_eq!(raw.tcb.read_registers(true)?.ip(), behind);
    f.settle()?;
    ensure!(!raw.has_stopped(), "the suspended thread ran");
    let stopped = raw.run(f)?;
    raw.ensure_after_call(&stopped)
}

fn read_stops_nobody(f: &mut Fixture) -> TestResult {
    let (raw, _) = signalled(f)?;
    let words = [0xff00, COUNT as u64];
    Invocation::new(raw.tcb, label::TCB_READ_REGISTERS, &words, &[]).ok()?;
    let stopped = raw.stopped(f)?;
    raw.ensure_after_call(&stopped)
}

fn write_refusals(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let mut words = vec![0, COUNT as u64];
    words.extend(sample(7).words());
    let write = Invocation::new(tcb, label::TCB_WRITE_REGISTERS, &words, &[]);
    let before = tcb.read_registers(false)?;
    truncated(&write)?;
    truncated(&write.on(f.me))?;
    for count in [COUNT as u64 + 1, 1 << 32, u64::MAX - 1, u64::MAX] {
        write
            .with_word(1, count)
            .expect_error(TruncatedMessage, &[])?;
    }
    for count in [0, 1, COUNT as u64] {
        write
            .on(f.me)
            .with_word(1, count)
            .expect_error(IllegalOperation, &[])?;
    }
    ensure_eq!(tcb.read_registers(false)?, before);
    Ok(())
}

fn write_counts(f: &mut Fixture) -> TestResult {
    let (old, new) = (sample(8), sample(9));
    for count in 0..=COUNT + 3 {
        let tcb = f.tcb()?;
        tcb.write_registers(&old, false)?;
        // Words beyond the count, and registers beyond the last, are without effect.
        let mut words = vec![0xff00, count as u64];
        words.extend(new.words());
        words.extend([!0; 4]);
        Invocation::new(tcb, label::TCB_WRITE_REGISTERS, &words, &[]).expect_ok(&[])?;
        let mut expected = old;
        let written = count.min(COUNT);
        expected.words_mut()[..written].copy_from_slice(&new.words()[..written]);
        ensure_eq!(tcb.read_registers(false)?, expected);
    }
    Ok(())
}

fn write_sanitises(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let written = |register, value| -> Result<u64, Failure> {
        let mut context = UserContext::default();
        context.set(register, value);
        tcb.write_registers(&context, false)?;
        Ok(tcb.read_registers(false)?.get(register))
    };
    // As the formulas of the ABI have it, for every bit alone and for combinations.
    let flags = (0..64).map(|bit| 1 << bit);
    for value in flags.chain([0, u64::MAX, 0x28, 0x3000, 0x40000 | 1 << 21, 0xcd5, 0x128]) {
        let seen = written(RFLAGS, value)?;
        ensure_eq!((value, seen), (value, sanitised(RFLAGS, value)));
    }
    for register in (0..COUNT).filter(|&register| register != RFLAGS) {
        for value in [
            0x7fff_ffff_ffff,
            0x8000_0000_0000,
            0x1234_5678_9abc_def0,
            0xffff_7fff_ffff_ffff,
            0xffff_8000_0000_0000,
        ] {
            let seen = written(register, value)?;
            ensure_eq!(
                (register, value, seen),
                (register, value, sanitised(register, value))
            );
        }
    }
    Ok(())
}

fn write_sets_next_ip(f: &mut Fixture) -> TestResult {
    let (raw, notification) = signalled(f)?;
    raw.tcb.write_first_registers(&[], false)?;
    // So it makes the system call again.
    notification.wait();
    let stopped = raw.stopped(f)?;
    raw.ensure_after_call(&stopped)
}

/// Registers for a thread to stop with at once, at `ip`: those that a return from a system call
/// would not load are what they should be too.
fn visible(ip: u64) -> UserContext {
    let mut context = sample(10);
    context.set(RIP, ip);
    context.set(FS_BASE, 0x1000);
    context.set(GS_BASE, 0x2000);
    context
}

fn ensure_all_loaded(stopped: &Stopped, expected: &UserContext) -> TestResult {
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    for register in [RSP, RCX, R11, RAX, RDI] {
        ensure_eq!(
            (register, stopped.registers.get(register)),
            (register, expected.get(register))
        );
    }
    let seen = conformance_kit::arch::normalised(&stopped.registers, expected);
    ensure_eq!(seen, *expected);
    Ok(())
}

fn write_restores_all(f: &mut Fixture) -> TestResult {
    let (raw, _) = signalled(f)?;
    let context = visible(raw.code + INSTRUCTION_BYTES);
    raw.tcb.write_registers(&context, false)?;
    ensure_all_loaded(&raw.stopped(f)?, &context)?;
    let (raw, _) = waiting(f)?;
    let context = visible(raw.code + INSTRUCTION_BYTES);
    raw.tcb.write_registers(&context, true)?;
    ensure_all_loaded(&raw.stopped(f)?, &context)
}

fn write_keeps_blocked(f: &mut Fixture) -> TestResult {
    let (raw, notification) = waiting(f)?;
    let mut context = visible(raw.code + INSTRUCTION_BYTES);
    raw.tcb.write_registers(&context, false)?;
    f.settle()?;
    ensure!(!raw.has_stopped(), "the blocked thread ran");
    f.badged(notification, 0x77)?.signal();
    context.set(RDI, 0x77);
    ensure_all_loaded(&raw.stopped(f)?, &context)
}

fn write_resumes(f: &mut Fixture) -> TestResult {
    let (raw, notification) = waiting(f)?;
    // The first register only: the others keep those of the system call.
    let behind = raw.code + INSTRUCTION_BYTES;
    raw.tcb.write_first_registers(&[behind], true)?;
    let stopped = raw.stopped(f)?;
    ensure_eq!(stopped.registers.get(RDX), Syscall::Wait.raw());
    // It waits no longer.
    f.badged(notification, 4)?.signal();
    ensure_eq!(notification.poll(), 4);
    // A thread that runs is not touched by the flag.
    let (raw, _) = signalled(f)?;
    raw.tcb.write_first_registers(&[behind], true)?;
    ensure_eq!(raw.stopped(f)?.words[0], behind);
    Ok(())
}

fn copy_refusals(f: &mut Fixture) -> TestResult {
    let (target, source) = (f.tcb()?, f.tcb()?);
    let words = [flags::COPY_TRANSFER_FRAME];
    let copy = Invocation::new(target, label::TCB_COPY_REGISTERS, &words, &[source.cptr()]);
    truncated(&copy)?;
    let wrong = [f.null()?, f.endpoint()?.cptr(), boot::CNODE.cptr()];
    for cap in wrong {
        let wrong = copy.with_cap(0, cap);
        wrong.expect_error(InvalidCapability, &[1])?;
        truncated(&wrong)?;
    }
    copy.expect_ok(&[])
}

fn copy_groups(f: &mut Fixture) -> TestResult {
    let (target, source) = (f.tcb()?, f.tcb()?);
    let (old, new) = (sample(11), sample(12));
    source.write_registers(&new, false)?;
    for (flags, copied) in [
        (0, 0..0),
        (0xff00, 0..0),
        (flags::COPY_TRANSFER_FRAME, 0..FRAME_COUNT),
        (flags::COPY_TRANSFER_INTEGER, FRAME_COUNT..COUNT),
        (0xff00 | 0b1100, 0..COUNT),
    ] {
        target.write_registers(&old, false)?;
        let copy = Invocation::new(
            target,
            label::TCB_COPY_REGISTERS,
            &[flags],
            &[source.cptr()],
        );
        copy.expect_ok(&[])?;
        let mut expected = old;
        expected.words_mut()[copied.clone()].copy_from_slice(&new.words()[copied]);
        ensure_eq!(target.read_registers(false)?, expected);
        ensure_eq!(source.read_registers(false)?, new);
    }
    Ok(())
}

fn copy_unsanitised(f: &mut Fixture) -> TestResult {
    const RAW: u64 = 0x1234_5678_9abc_def0;
    let (target, source) = (f.tcb()?, f.tcb()?);
    source.set_tls_base(RAW)?;
    let what = CopyRegisters {
        integer: true,
        ..CopyRegisters::default()
    };
    target.copy_registers(source, what)?;
    ensure_eq!(target.read_registers(false)?.get(FS_BASE), RAW);
    Ok(())
}

fn copy_sets_next_ip(f: &mut Fixture) -> TestResult {
    let frame = CopyRegisters {
        frame: true,
        ..CopyRegisters::default()
    };
    let (raw, notification) = signalled(f)?;
    raw.tcb.copy_registers(raw.tcb, frame)?;
    notification.wait();
    let stopped = raw.stopped(f)?;
    raw.ensure_after_call(&stopped)?;
    // Not with the other group.
    let integer = CopyRegisters {
        integer: true,
        ..CopyRegisters::default()
    };
    let (raw, notification) = signalled(f)?;
    raw.tcb.copy_registers(raw.tcb, integer)?;
    let stopped = raw.stopped(f)?;
    raw.ensure_after_call(&stopped)?;
    f.badged(notification, 2)?.signal();
    ensure_eq!(notification.poll(), 2);
    Ok(())
}

fn copy_restores_all(f: &mut Fixture) -> TestResult {
    let source = f.tcb()?;
    let (raw, _) = signalled(f)?;
    let context = visible(raw.code + INSTRUCTION_BYTES);
    source.write_registers(&context, false)?;
    let what = CopyRegisters {
        frame: true,
        integer: true,
        ..CopyRegisters::default()
    };
    raw.tcb.copy_registers(source, what)?;
    ensure_all_loaded(&raw.stopped(f)?, &context)
}

fn copy_suspends_and_resumes(f: &mut Fixture) -> TestResult {
    let suspend = CopyRegisters {
        suspend_source: true,
        ..CopyRegisters::default()
    };
    let resume = CopyRegisters {
        resume_target: true,
        ..CopyRegisters::default()
    };
    let other = f.tcb()?;
    // The source stops, behind its system call.
    let (raw, _) = signalled(f)?;
    other.copy_registers(raw.tcb, suspend)?;
    f.settle()?;
    ensure!(!raw.has_stopped(), "the suspended source ran");
    ensure_eq!(
        raw.tcb.read_registers(false)?.ip(),
        raw.code + INSTRUCTION_BYTES
    );
    // The target starts.
    raw.tcb.copy_registers(other, resume)?;
    let stopped = raw.stopped(f)?;
    raw.ensure_after_call(&stopped)?;
    // First the source stops, then the target starts.
    let (raw, _) = signalled(f)?;
    let both = CopyRegisters {
        resume_target: true,
        ..suspend
    };
    raw.tcb.copy_registers(raw.tcb, both)?;
    let stopped = raw.stopped(f)?;
    raw.ensure_after_call(&stopped)
}

fn copy_self(f: &mut Fixture) -> TestResult {
    let target = f.tcb()?;
    let words = [flags::COPY_TRANSFER_FRAME | flags::COPY_TRANSFER_INTEGER];
    let copy = Invocation::new(target, label::TCB_COPY_REGISTERS, &words, &[f.me.cptr()]);
    copy.expect_ok(&[])?;
    let copied = target.read_registers(false)?;
    ensure_eq!(copied.get(RDX), Syscall::Call.raw());
    ensure_eq!(copied.get(RDI), target.address());
    // To oneself, without the registers, and with those that do not change.
    copy.on(f.me).with_word(0, 0).expect_ok(&[])?;
    copy.on(f.me)
        .with_word(0, flags::COPY_TRANSFER_INTEGER)
        .expect_ok(&[])
}
