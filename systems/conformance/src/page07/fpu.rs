//! 07, section 4: the floating-point unit.

use conformance_kit::arch::order::{R10, R8, RDI, RSI};
use conformance_kit::arch::{
    class_of, BREAKPOINT, FPU_UNAVAILABLE, INVALID_OPCODE, STOP as UD2, SYSCALL, USE_FPU,
};
use sandglass::abi::fault::user_exception;
use sandglass::abi::invocation::tcb_flags::FPU_DISABLED;

use crate::arch::page07::fpu::{restore, save, uses, Image, BREAK, DELAY};
use crate::fixture::raw::RAW_PRIORITY;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("07/4/every-thread-has-its-own-state", own_state),
    check("07/4/without-the-fpu-its-use-is-exception-7", disabled),
    check(
        "07/4/disabling-and-enabling-preserves-the-state",
        state_preserved,
    ),
    check("07/4/a-thread-can-enable-its-own-fpu", enables_itself),
    check("07/4/a-thread-can-disable-its-own-fpu", disables_itself),
];

fn own_state(f: &mut Fixture) -> TestResult {
    // Three threads take turns of 100 µs.
    let code = [&restore()[..], &DELAY, &save(), &UD2].concat();
    let mut threads = Vec::new();
    for seed in 1..=3 {
        let image = Image::new(f, seed)?;
        let params = f.active_on(RAW_PRIORITY, SchedParams::new(100, 100))?;
        let thread = f.raw_with(params, &code, &image.registers())?;
        thread.start()?;
        threads.push((thread, image));
    }
    for (thread, image) in threads {
        ensure_eq!(thread.stopped(f)?.label, fault::USER_EXCEPTION);
        image.expect_saved()?;
    }
    Ok(())
}

/// Fails unless the thread stopped by the use of a disabled FPU at this offset.
fn expect_disabled(thread: &RawThread, stopped: &Stopped, offset: u64) -> TestResult {
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    let number = class_of(stopped.words[user_exception::NUMBER]);
    ensure_eq!(number, FPU_UNAVAILABLE);
    ensure_eq!(
        stopped.words[user_exception::FAULT_IP],
        thread.code + offset
    );
    Ok(())
}

fn disabled(f: &mut Fixture) -> TestResult {
    for code in uses() {
        let thread = f.raw(&code, &distinct())?;
        thread.tcb.set_flags(0, FPU_DISABLED)?;
        let stopped = thread.run(f)?;
        expect_disabled(&thread, &stopped, 0)?;
    }
    Ok(())
}

fn state_preserved(f: &mut Fixture) -> TestResult {
    let (restore, save) = (restore(), save());
    let code = [&restore[..], &BREAK, &save, &UD2].concat();
    let image = Image::new(f, 5)?;
    let thread = f.raw(&code, &image.registers())?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.exception(), Some(BREAKPOINT));
    thread.tcb.set_flags(0, FPU_DISABLED)?;
    let behind = (restore.len() + BREAK.len()) as u64;
    thread.reply.send(Message::new(0, [thread.code + behind]));
    let stopped = thread.stopped(f)?;
    expect_disabled(&thread, &stopped, behind)?;
    // Meanwhile another uses the FPU.
    let other = Image::new(f, 6)?;
    f.raw(&[&restore[..], &UD2].concat(), &other.registers())?
        .run(f)?;
    thread.tcb.set_flags(FPU_DISABLED, 0)?;
    thread.reply.send(Message::EMPTY);
    let stopped = thread.stopped(f)?;
    ensure_eq!(stopped.words[user_exception::NUMBER], INVALID_OPCODE);
    image.expect_saved()
}

/// A thread that sets its own flags by Call, then saves its FPU state.
fn sets_own_flags(f: &mut Fixture, clear: u64, set: u64) -> Result<RawThread, Failure> {
    let code = [&SYSCALL[..], &USE_FPU, &UD2].concat();
    let info = MessageInfo::new(label::TCB_SET_FLAGS, 0, 0, 2).raw();
    let before = entry(Syscall::Call, &[(RSI, info), (R10, clear), (R8, set)]);
    let thread = f.raw(&code, &before)?;
    let registers = thread.registers()?;
    thread
        .tcb
        .write_registers(&changed(&registers, &[(RDI, thread.tcb.address())]), false)?;
    Ok(thread)
}

fn enables_itself(f: &mut Fixture) -> TestResult {
    let thread = sets_own_flags(f, FPU_DISABLED, 0)?;
    thread.tcb.set_flags(0, FPU_DISABLED)?;
    let stopped = thread.run(f)?;
    ensure_eq!(stopped.words[user_exception::NUMBER], INVALID_OPCODE);
    ensure_eq!(stopped.registers.get(R10), 0);
    Ok(())
}

fn disables_itself(f: &mut Fixture) -> TestResult {
    let thread = sets_own_flags(f, 0, FPU_DISABLED)?;
    let stopped = thread.run(f)?;
    expect_disabled(&thread, &stopped, SYSCALL.len() as u64)?;
    ensure_eq!(stopped.registers.get(R10), FPU_DISABLED);
    Ok(())
}
