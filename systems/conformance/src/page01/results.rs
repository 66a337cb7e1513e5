//! 01, section 6: results of Call on kernel objects.

use conformance_kit::arch::order::{COUNT, MESSAGE_REGISTERS, R10, R8, RDI, RSI};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/6/success-without-data", without_data),
    check("01/6/success-with-data-in-registers", data_in_registers),
    check("01/6/success-with-data-in-the-buffer", data_in_buffer),
    check(
        "01/6/without-call-only-the-message-is-missing",
        without_call,
    ),
    check("01/6/an-error-has-its-number-and-details", error),
    check(
        "01/6/details-beyond-the-registers-lie-in-the-buffer",
        details_in_buffer,
    ),
];

/// Registers for an invocation by Call.
fn invocation(cap: impl Capability, label: u64, words: &[u64]) -> UserContext {
    let info = MessageInfo::new(label, 0, 0, words.len()).raw();
    let mut registers = entry(Syscall::Call, &[(RDI, cap.cptr().raw()), (RSI, info)]);
    for (&register, &word) in MESSAGE_REGISTERS.iter().zip(words) {
        registers.set(register, word);
    }
    registers
}

fn info(label: u64, length: usize) -> u64 {
    MessageInfo::new(label, 0, 0, length).raw()
}

fn without_data(f: &mut Fixture) -> TestResult {
    let before = invocation(f.tcb()?, label::TCB_SUSPEND, &[1, 2, 3, 4]);
    let thread = f.caller(&before)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, &before, &[(RDI, 0), (RSI, 0)])
}

fn data_in_registers(f: &mut Fixture) -> TestResult {
    let before = invocation(f.tcb()?, label::TCB_SET_FLAGS, &[0, 1, 3, 4]);
    let thread = f.caller(&before)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, &before, &[(RDI, 0), (RSI, info(0, 1)), (R10, 1)])
}

fn data_in_buffer(f: &mut Fixture) -> TestResult {
    let (target, buffer) = (f.tcb()?, f.buffer()?);
    let expected = distinct();
    target.write_registers(&expected, false)?;
    buffer.fill(0x99);
    let before = invocation(target, label::TCB_READ_REGISTERS, &[0, COUNT as u64]);
    let thread = f.caller(&before)?;
    thread.use_buffer(buffer)?;
    let stopped = thread.run(f)?;
    let mut named = vec![(RDI, 0), (RSI, info(0, COUNT))];
    for (&register, &word) in MESSAGE_REGISTERS.iter().zip(expected.words()) {
        named.push((register, word));
    }
    thread.expect_return(&stopped, &before, &named)?;
    let written: Vec<usize> = (5..=COUNT).collect();
    ensure_eq!(buffer.changed_words(0x99), written);
    for index in written {
        ensure_eq!(buffer.read(index), expected.get(index - 1));
    }
    Ok(())
}

/// Each operation that has results, by each system call that tells none: its effect is there.
/// (Page_GetAddress has none; Consumed and YieldTo have checks of their own, 03, section 6.2 and 04, section 9.2; so has what
/// an architecture adds.)
fn without_call(f: &mut Fixture) -> TestResult {
    const SUSPEND_SOURCE: u64 = 1;
    const FPU_DISABLED: u64 = 1;
    for call in SENDING {
        let thread = f.caller(&entry(Syscall::Yield, &[]))?;
        let read = Invocation::new(
            thread.tcb,
            label::TCB_READ_REGISTERS,
            &[SUSPEND_SOURCE, 1],
            &[],
        );
        thread.start()?;
        read.send(call)?;
        ensure!(
            thread.goes_on_or_waits(f)?,
            "{call:?} of ReadRegisters suspends nobody"
        );
        let tcb = f.tcb()?;
        Invocation::new(tcb, label::TCB_SET_FLAGS, &[0, FPU_DISABLED], &[]).send(call)?;
        ensure_eq!(tcb.set_flags(0, 0)?, FPU_DISABLED);
    }
    Ok(())
}

fn error(f: &mut Fixture) -> TestResult {
    // No detail, one, two.
    let tcb = f.tcb()?;
    let null: CPtr = f.null()?;
    let range = [(R10, 1), (R8, COUNT as u64)];
    let zero = [(R10, 0)];
    let cases = [
        (
            invocation(tcb, label::INVALID, &[1, 2]),
            IllegalOperation,
            &[][..],
        ),
        (
            invocation(null, label::TCB_SUSPEND, &[1, 2]),
            InvalidCapability,
            &zero,
        ),
        (
            invocation(tcb, label::TCB_READ_REGISTERS, &[0, 99]),
            RangeError,
            &range,
        ),
    ];
    for (before, error, details) in cases {
        let thread = f.caller(&before)?;
        let stopped = thread.run(f)?;
        let mut named = vec![(RDI, 0), (RSI, info(error as u64, details.len()))];
        named.extend_from_slice(details);
        thread.expect_return(&stopped, &before, &named)?;
    }
    Ok(())
}

fn details_in_buffer(f: &mut Fixture) -> TestResult {
    // A guard mismatch has five details. Without a buffer four arrive.
    let root = f.cnode(4)?;
    let guard = GuardData::new(0x5, 4);
    let guarded = f.process.resources.mint(root, Rights::ALL, guard.raw())?;
    let words = [6 << 4, 8];
    for with_buffer in [true, false] {
        let (thread, buffer) = {
            let before = invocation(guarded, label::CNODE_DELETE, &words);
            (f.caller(&before)?, f.buffer()?)
        };
        if with_buffer {
            thread.use_buffer(buffer)?;
        }
        let stopped = thread.run(f)?;
        let length = if with_buffer { 5 } else { 4 };
        ensure_eq!(
            stopped.registers.get(RSI),
            info(FailedLookup as u64, length)
        );
        let details = MESSAGE_REGISTERS.map(|register| stopped.registers.get(register));
        // Not the source; the type; bits left, guard found; in the buffer the guard's size.
        ensure_eq!(details, [0, 4, 8, 5]);
        ensure_eq!(buffer.read(5), if with_buffer { 4 } else { 0 });
    }
    Ok(())
}
