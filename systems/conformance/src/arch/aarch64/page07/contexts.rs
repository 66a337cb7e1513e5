//! 07, section 1: register contexts.

use conformance_kit::arch::code;
use conformance_kit::arch::order::{COUNT, FS_BASE, GS_BASE, RAX, RBX, RDI, RFLAGS, RIP, RSP};

use super::fpu::{save, Image, LAST};
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
        "07/1.3/write-registers-leaves-addresses-as-they-are",
        addresses,
    ),
    check("07/1.3/copy-registers-takes-the-flags", copied_flags),
    check("07/1.4/initial-fpu-state-of-a-new-tcb", initial_fpu_state),
    check(
        "07/1.6/flags-that-a-thread-sets-survive-interrupts",
        flags_survive,
    ),
    check(
        "07/1.6/what-a-thread-sets-of-the-fpu-survives-interrupts",
        fpu_survives,
    ),
];

const UDF: u32 = 0;

/// STP X1, X2, [X0, #8] and so on to X29, X30; X9 is used for what has no number, when it is stored.
fn store_all() -> Vec<u32> {
    let pair = |first: u32| {
        let words = first;
        0xa900_0000 | words << 15 | (first + 1) << 10 | first
    };
    let pairs = (1..30).step_by(2).map(pair);
    pairs
        .chain([
            0x9100_03e9, // mov x9, sp
            0xf900_7c09, // str x9, [x0, #248]
            0xd53b_4209, // mrs x9, nzcv
            0xf900_8009, // str x9, [x0, #256]
            0xd53b_d049, // mrs x9, tpidr_el0
            0xf900_8409, // str x9, [x0, #264]
            0xd53b_d069, // mrs x9, tpidrro_el0
            0xf900_8809, // str x9, [x0, #272]
            UDF,
        ])
        .collect()
}

/// Indices in the user context of X0 to X30 (07, section 1.1).
const NUMBERED: [usize; 31] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 17, 18, 19, 20, 21, 22, 23, 12, 13, 14, 24, 25, 26, 27, 28, 29,
    30, 31, 32, 33, 15, 16,
];

/// The processor's registers, as instructions find them.
fn words_are_registers(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    let flags = sanitised(RFLAGS, 0xb000_0000);
    let before = registers(&[(RDI, buffer.address), (RFLAGS, flags)]);
    let stopped = f.raw(&code(&store_all()), &before)?.run(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    for (number, index) in NUMBERED.into_iter().enumerate().skip(1) {
        ensure_eq!((number, buffer.read(number)), (number, before.get(index)));
    }
    let others = [31, 32, 33, 34].map(|word| buffer.read(word));
    let bases = [FS_BASE, GS_BASE].map(|index| before.get(index));
    ensure_eq!(others, [before.get(RSP), 0xb000_0000, bases[0], bases[1]]);
    Ok(())
}

fn sanitised_flags(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    // EL0, FIQ masked; SError too in kernels that are not for debugging.
    let fixed = if crate::fixture::is_debug() {
        0x40
    } else {
        0x140
    };
    let bits = (0..64).map(|bit| 1 << bit);
    for flags in bits.chain([0, u64::MAX, 0x3c5, 0x6000_01c0]) {
        tcb.write_first_registers(&[0, 0, flags], false)?;
        let seen = tcb.read_registers(false)?.get(RFLAGS);
        ensure_eq!((flags, seen), (flags, flags & 0xf000_0000 | fixed));
    }
    Ok(())
}

fn addresses(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    for address in [0x8000_0000_0000, 0x8765_4321_0000_0001, u64::MAX] {
        tcb.write_first_registers(&[address; COUNT], false)?;
        let seen = tcb.read_registers(false)?;
        for index in (0..COUNT).filter(|&index| index != RFLAGS) {
            ensure_eq!((index, seen.get(index)), (index, address));
        }
    }
    Ok(())
}

fn copied_flags(f: &mut Fixture) -> TestResult {
    // msr nzcv, x9; udf
    let before = registers(&[(RAX, 0xf000_0000)]);
    let stopped = f.raw(&code(&[0xd51b_4209, UDF]), &before)?.run(f)?;
    let target = f.tcb()?;
    target.copy_registers(stopped.tcb, FRAME)?;
    let seen = target.read_registers(false)?.get(RFLAGS);
    ensure_eq!(seen, sanitised(RFLAGS, 0xf000_0000));
    ensure_eq!(seen, stopped.registers.get(RFLAGS));
    Ok(())
}

/// Beside threads that have used the FPU.
fn initial_fpu_state(f: &mut Fixture) -> TestResult {
    let image = Image::new(f, 3)?;
    image.saved.fill(0x99);
    let code = [save(), code(&[UDF])].concat();
    f.raw(&code, &image.registers())?.run(f)?;
    for word in 0..=LAST {
        ensure_eq!((word, image.saved.read(word)), (word, 0));
    }
    Ok(())
}

/// A loop of about 400 µs that leaves flags alone: X12 counts down.
const LOOP: [u32; 4] = [0xd281_a80c, 0xf2a0_006c, 0xd100_058c, 0xb5ff_ffec];

/// In slices of 100 µs, of which others use the rest.
fn sliced(
    f: &mut Fixture,
    code: &[u8],
    before: &UserContext,
) -> Result<(RawThread, Stopped), Failure> {
    let params = f.active_on(RAW_PRIORITY, SchedParams::new(100, 100))?;
    let other = f.active_on(RAW_PRIORITY, SchedParams::new(100, 100))?;
    f.spawn(other, || spin())?;
    let thread = f.raw_with(params, code, before)?;
    let stopped = thread.run(f)?;
    Ok((thread, stopped))
}

fn flags_survive(f: &mut Fixture) -> TestResult {
    for flags in [0xf000_0000, 0x5000_0000, 0] {
        let code = code(&[&[0xd51b_4209], &LOOP[..], &[UDF]].concat());
        let (thread, stopped) = sliced(f, &code, &registers(&[(RAX, flags)]))?;
        ensure_eq!(stopped.registers.get(RIP), thread.code + 20);
        ensure_eq!(stopped.registers.get(RFLAGS), sanitised(RFLAGS, flags));
    }
    Ok(())
}

fn fpu_survives(f: &mut Fixture) -> TestResult {
    const CONTROL: u64 = 0x0340_0000;
    const STATUS: u64 = 0x0800_0013;
    // msr fpcr, x9; msr fpsr, x10; the loop; mrs x9, fpsr; mrs x10, fpcr
    let before = registers(&[(RAX, CONTROL), (RBX, STATUS)]);
    let set = [0xd51b_4409, 0xd51b_442a];
    let get = [0xd53b_4429, 0xd53b_440a, UDF];
    let code = code(&[&set[..], &LOOP, &get].concat());
    let (_, stopped) = sliced(f, &code, &before)?;
    let seen = [RAX, RBX].map(|index| stopped.registers.get(index));
    ensure_eq!(seen, [STATUS, CONTROL]);
    Ok(())
}
