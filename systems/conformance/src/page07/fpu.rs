//! 07, section 4: the floating-point unit.

use conformance_kit::arch::order::{R10, R8, RDI, RSI};
use sandglass::abi::fault::user_exception;
use sandglass::abi::invocation::tcb_flags::FPU_DISABLED;

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

/// `fxrstor64 [rdi]` and `fxsave64 [rsi]`.
pub const RESTORE: [u8; 4] = [0x48, 0x0f, 0xae, 0x0f];
pub const SAVE: [u8; 4] = [0x48, 0x0f, 0xae, 0x06];
const UD2: [u8; 2] = [0x0f, 0x0b];
/// `mov ecx, 200000; dec ecx; jnz`: 400 µs.
const DELAY: [u8; 9] = [0xb9, 0x40, 0x0d, 0x03, 0x00, 0xff, 0xc9, 0x75, 0xfc];
const DEVICE_NOT_AVAILABLE: u64 = 7;

/// An image as FXSAVE makes it, of a state that only this seed gives; to load and to save.
pub struct Image {
    pub loaded: Buffer,
    pub saved: Buffer,
}

impl Image {
    pub fn new(f: &mut Fixture, seed: u64) -> Result<Self, Failure> {
        let (loaded, saved) = (f.buffer()?, f.buffer()?);
        // FCW with another precision, all registers in use; MXCSR with another rounding.
        loaded.write(0, 0xff_0000_027f);
        loaded.write(3, 0x3f80);
        for register in 0..8 {
            loaded.write(4 + 2 * register, (1 << 63) | (seed << 8) | register as u64);
            loaded.write(5 + 2 * register, 0x3fff);
        }
        for word in 20..52 {
            loaded.write(word, (seed << 32) | word as u64);
        }
        Ok(Self { loaded, saved })
    }

    pub fn registers(&self) -> UserContext {
        registers(&[(RDI, self.loaded.address), (RSI, self.saved.address)])
    }

    /// Fails unless what was saved is what was loaded.
    pub fn expect_saved(&self) -> TestResult {
        // The words of the last instruction are of no account, nor is what is reserved.
        ensure_eq!(self.saved.read(0) & 0xff_ffff_ffff, 0xff_0000_027f);
        ensure_eq!(self.saved.read(3) & 0xffff_ffff, 0x3f80);
        for register in 0..8 {
            let low = 4 + 2 * register;
            ensure_eq!(self.saved.read(low), self.loaded.read(low));
            ensure_eq!(self.saved.read(low + 1) & 0xffff, 0x3fff);
        }
        for word in 20..52 {
            ensure_eq!(self.saved.read(word), self.loaded.read(word));
        }
        Ok(())
    }
}

fn own_state(f: &mut Fixture) -> TestResult {
    // Three threads take turns of 100 µs.
    let code = [&RESTORE[..], &DELAY, &SAVE, &UD2].concat();
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
    ensure_eq!(stopped.words[user_exception::NUMBER], DEVICE_NOT_AVAILABLE);
    ensure_eq!(
        stopped.words[user_exception::FAULT_IP],
        thread.code + offset
    );
    Ok(())
}

fn disabled(f: &mut Fixture) -> TestResult {
    // fninit; fld1; movaps xmm0, xmm0; fxsave64 [rsi]
    for code in [&[0xdb, 0xe3][..], &[0xd9, 0xe8], &[0x0f, 0x28, 0xc0], &SAVE] {
        let thread = f.raw(code, &distinct())?;
        thread.tcb.set_flags(0, FPU_DISABLED)?;
        let stopped = thread.run(f)?;
        expect_disabled(&thread, &stopped, 0)?;
    }
    Ok(())
}

fn state_preserved(f: &mut Fixture) -> TestResult {
    // fxrstor64 [rdi]; int3; fxsave64 [rsi]; ud2
    let code = [&RESTORE[..], &[0xcc], &SAVE, &UD2].concat();
    let image = Image::new(f, 5)?;
    let thread = f.raw(&code, &image.registers())?;
    ensure_eq!(thread.run(f)?.words[user_exception::NUMBER], 3);
    thread.tcb.set_flags(0, FPU_DISABLED)?;
    thread.reply.send(Message::EMPTY);
    let stopped = thread.stopped(f)?;
    expect_disabled(&thread, &stopped, 5)?;
    // Meanwhile another uses the FPU.
    let other = Image::new(f, 6)?;
    f.raw(&[&RESTORE[..], &UD2].concat(), &other.registers())?
        .run(f)?;
    thread.tcb.set_flags(FPU_DISABLED, 0)?;
    thread.reply.send(Message::EMPTY);
    ensure_eq!(thread.stopped(f)?.words[user_exception::NUMBER], 6);
    image.expect_saved()
}

/// A thread that sets its own flags by Call, then saves its FPU state.
fn sets_own_flags(f: &mut Fixture, clear: u64, set: u64) -> Result<RawThread, Failure> {
    let code = [&[0x0f, 0x05][..], &[0x0f, 0x28, 0xc0], &UD2].concat();
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
    ensure_eq!(stopped.words[user_exception::NUMBER], 6);
    ensure_eq!(stopped.registers.get(R10), 0);
    Ok(())
}

fn disables_itself(f: &mut Fixture) -> TestResult {
    let thread = sets_own_flags(f, 0, FPU_DISABLED)?;
    let stopped = thread.run(f)?;
    expect_disabled(&thread, &stopped, 2)?;
    ensure_eq!(stopped.registers.get(R10), FPU_DISABLED);
    Ok(())
}
