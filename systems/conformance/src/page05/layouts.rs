//! 05, section 1: fault types, and what all fault messages have in common.

use conformance_kit::arch::order::{R12, RDI, RDX, RSI};

use conformance_kit::arch::unknown_syscall;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("05/1/the-label-is-the-number-of-the-fault", labels),
    check(
        "05/1/info-word-and-badge-of-a-fault-message",
        info_and_badge,
    ),
    check("05/1/without-a-buffer-four-words-arrive", without_buffer),
    check(
        "05/1/with-a-read-only-buffer-four-words-arrive",
        with_read_only_buffer,
    ),
    check(
        "05/1/a-short-fault-message-needs-no-buffer",
        short_without_buffer,
    ),
    check(
        "05/1/words-beyond-the-fourth-lie-in-the-buffer",
        words_in_buffer,
    ),
];

use conformance_kit::arch::LOAD as READ_AT_RDI;
use conformance_kit::arch::STOP as UD2;
use conformance_kit::arch::SYSCALL;

/// Code and registers that fault, the fault's number and its length.
fn faults() -> [(&'static [u8], UserContext, u64, usize); 4] {
    let null_receive = entry(Syscall::Recv, &[(RDI, 0)]);
    [
        (&SYSCALL, null_receive, fault::CAP_FAULT, 5),
        (
            &SYSCALL,
            registers(&[(RDX, 77)]),
            fault::UNKNOWN_SYSCALL,
            unknown_syscall::LENGTH,
        ),
        (&UD2, distinct(), fault::USER_EXCEPTION, 5),
        (&READ_AT_RDI, distinct(), fault::VM_FAULT, 4),
    ]
}

fn labels(f: &mut Fixture) -> TestResult {
    for (code, registers, number, length) in faults() {
        let stopped = f.raw(code, &registers)?.run(f)?;
        ensure_eq!((stopped.label, stopped.words.len()), (number, length));
    }
    ensure_eq!(
        [1, 2, 3, 5, 6],
        [
            fault::CAP_FAULT,
            fault::UNKNOWN_SYSCALL,
            fault::USER_EXCEPTION,
            fault::TIMEOUT,
            fault::VM_FAULT
        ]
    );
    Ok(())
}

fn info_and_badge(f: &mut Fixture) -> TestResult {
    for (code, registers, number, length) in faults() {
        // Received while it is waited for, and from the queue.
        for queued in [false, true] {
            let thread = f.raw(code, &registers)?;
            thread.start()?;
            if queued {
                f.settle()?;
            }
            let received = thread.endpoint.recv(thread.reply);
            ensure_eq!(received.badge, crate::fixture::raw::RAW_FAULT_BADGE);
            ensure_eq!(
                received.message.info(),
                MessageInfo::new(number, 0, 0, length)
            );
        }
    }
    Ok(())
}

/// Runs a thread that receives the fault of `code`: its registers when it has.
fn received_by_raw(
    f: &mut Fixture,
    code: &[u8],
    registers: &UserContext,
    buffer: Option<Buffer>,
) -> Result<UserContext, Failure> {
    let (faulter, reply) = (f.raw(code, registers)?, f.reply()?);
    let before = entry(
        Syscall::Recv,
        &[(RDI, faulter.endpoint.address()), (R12, reply.address())],
    );
    let handler = f.caller(&before)?;
    if let Some(buffer) = buffer {
        handler.use_buffer(buffer)?;
    }
    handler.start_and_settle(f)?;
    faulter.start()?;
    Ok(handler.stopped(f)?.registers)
}

/// Fails unless four words of each fault arrive.
fn expect_four_words(f: &mut Fixture, buffer: Option<Buffer>) -> TestResult {
    for (code, registers, number, _) in faults() {
        let after = received_by_raw(f, code, &registers, buffer)?;
        ensure_eq!(after.get(RSI), MessageInfo::new(number, 0, 0, 4).raw());
        ensure_eq!(after.get(RDI), crate::fixture::raw::RAW_FAULT_BADGE);
    }
    Ok(())
}

fn without_buffer(f: &mut Fixture) -> TestResult {
    expect_four_words(f, None)
}

fn with_read_only_buffer(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    let frame = f.with_rights(buffer.frame, Rights::READ)?;
    expect_four_words(f, Some(Buffer { frame, ..buffer }))?;
    ensure!(
        buffer.read(ipc_buffer::MESSAGE + 4) == 0,
        "the buffer was written"
    );
    Ok(())
}

fn short_without_buffer(f: &mut Fixture) -> TestResult {
    // A timeout of two words.
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let before = entry(
        Syscall::Recv,
        &[(RDI, endpoint.address()), (R12, reply.address())],
    );
    let handler = f.caller(&before)?;
    handler.start_and_settle(f)?;
    let params = ThreadParams {
        timeout_handler: Some(endpoint),
        ..f.active_on(200, SchedParams::new(100, 10_000).badge(0x7b))?
    };
    f.spawn(params, || spin())?;
    let after = handler.stopped(f)?.registers;
    ensure_eq!(
        after.get(RSI),
        MessageInfo::new(fault::TIMEOUT, 0, 0, 2).raw()
    );
    ensure_eq!(after.get(conformance_kit::arch::order::R10), 0x7b);
    Ok(())
}

fn words_in_buffer(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    buffer.fill(0x8800);
    let sent = registers(&[(RDX, 77)]);
    let after = received_by_raw(f, &SYSCALL, &sent, Some(buffer))?;
    ensure_eq!(
        after.get(RSI),
        MessageInfo::new(fault::UNKNOWN_SYSCALL, 0, 0, unknown_syscall::LENGTH).raw()
    );
    let expected: Vec<usize> = (5..=unknown_syscall::LENGTH).collect();
    ensure_eq!(buffer.changed_words(0x8800), expected);
    ensure_eq!(buffer.read(unknown_syscall::LENGTH), 77);
    Ok(())
}
