//! 05, section 6: replying to a fault.

use conformance_kit::arch;
use conformance_kit::arch::order::{
    R10, R11, R12, R13, R15, R8, R9, RDI, RDX, RFLAGS, RIP, RSI, RSP, SYSCALL_INSTRUCTION_BYTES,
    TIMEOUT_REPLY_ORDER, UNKNOWN_SYSCALL_ORDER,
};
use conformance_kit::arch::{unknown_syscall, UNKNOWN_REPLY_ORDER};

use crate::fixture::raw::RAW_PRIORITY;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "05/6/a-capability-fault-writes-nothing-and-resumes",
        cap_fault,
    ),
    check("05/6/a-vm-fault-writes-nothing-and-resumes", vm_fault),
    check(
        "05/6/an-unknown-call-writes-its-registers-in-order",
        unknown_registers,
    ),
    check(
        "05/6/an-unknown-call-restarts-unless-advanced",
        unknown_restarts,
    ),
    check(
        "05/6/an-unknown-call-with-another-label-is-not-resumed",
        unknown_not_resumed,
    ),
    check(
        "05/6/an-exception-writes-ip-sp-and-flags",
        exception_registers,
    ),
    check(
        "05/6/an-exception-with-another-label-is-not-resumed",
        exception_not_resumed,
    ),
    check(
        "05/6/a-timeout-writes-its-registers-in-order",
        timeout_registers,
    ),
    check("05/6/written-registers-are-sanitised", sanitising),
    check(
        "05/6/without-a-buffer-four-words-are-applied",
        without_buffer,
    ),
    check("05/6/no-capabilities-are-transferred", no_capabilities),
    check("05/6/every-system-call-that-sends-can-reply", reply_calls),
    check(
        "05/6/the-badge-and-message-registers-are-not-changed",
        message_registers,
    ),
];

use conformance_kit::arch::LOAD as READ_AT_RDI;
use conformance_kit::arch::STOP as UD2;

/// Words of an answer to an unknown system call that are written; the flags are the last.
const UNKNOWN: usize = unknown_syscall::REPLY_LENGTH;

/// Words for a reply, of which no two are equal and each is a canonical address.
fn reply_words(count: usize) -> Vec<u64> {
    (0..count as u64)
        .map(|i| 0x5a00_0000_0000 + i * 0x1110)
        .collect()
}

/// Labels and lengths that say nothing to a fault which takes no registers.
const ANSWERS: [(u64, usize); 4] = [(0, 0), (0, 20), (1, 0), (99, 20)];

/// Fails unless every answer lets the thread repeat its fault with unchanged registers.
fn expect_repeats(f: &mut Fixture, code: &[u8], before: &UserContext, number: u64) -> TestResult {
    let thread = f.raw(code, before)?;
    thread.start()?;
    let first = thread.stopped(f)?;
    ensure_eq!(first.label, number);
    for (label, length) in ANSWERS {
        thread
            .reply
            .send(Message::long(label, &reply_words(length)));
        let again = thread.stopped(f)?;
        ensure_eq!((again.label, &again.words), (number, &first.words));
        ensure_eq!(again.registers, first.registers);
    }
    Ok(())
}

fn cap_fault(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Recv, Syscall::NBWait, Syscall::Send, Syscall::Call] {
        let before = entry(call, &[(RDI, 1 << 63)]);
        expect_repeats(
            f,
            &conformance_kit::arch::SYSCALL,
            &before,
            fault::CAP_FAULT,
        )?;
    }
    Ok(())
}

fn vm_fault(f: &mut Fixture) -> TestResult {
    let before = registers(&[(RDI, 0x1234_5678_9abc)]);
    expect_repeats(f, &READ_AT_RDI, &before, fault::VM_FAULT)
}

/// Lets the thread's fault be answered by `count` words with a label that does not resume, and
/// fails unless the first registers of `order` are written, and no others.
fn expect_written(
    f: &mut Fixture,
    thread: RawThread,
    order: &[Option<usize>],
    count: usize,
) -> TestResult {
    let stopped = thread.stopped(f)?;
    let words = reply_words(count);
    thread.reply.send(Message::long(1, &words));
    let mut expected = stopped.registers;
    for (index, &word) in order.iter().zip(&words) {
        if let &Some(index) = index {
            expected.set(index, sanitised(index, word));
        }
    }
    ensure_eq!(thread.registers()?, expected);
    ensure!(thread.goes_on_or_waits(f)?, "the thread was resumed");
    Ok(())
}

fn unknown_registers(f: &mut Fixture) -> TestResult {
    for count in (0..=UNKNOWN + 2).chain([30]) {
        let thread = f.caller(&registers(&[(RDX, 77)]))?;
        thread.start()?;
        expect_written(f, thread, &UNKNOWN_REPLY_ORDER, count)?;
    }
    Ok(())
}

fn unknown_restarts(f: &mut Fixture) -> TestResult {
    let before = registers(&[(RDX, 77)]);
    let thread = f.caller(&before)?;
    thread.start()?;
    for _ in 0..2 {
        let stopped = thread.stopped(f)?;
        ensure_eq!(stopped.label, fault::UNKNOWN_SYSCALL);
        thread.reply.send(Message::EMPTY);
    }
    let stopped = thread.stopped(f)?;
    let mut words = stopped.words[..UNKNOWN].to_vec();
    words[unknown_syscall::FAULT_IP] += SYSCALL_INSTRUCTION_BYTES;
    words[0] = 0x1357;
    thread.reply.send(Message::long(0, &words));
    let first = UNKNOWN_SYSCALL_ORDER[0];
    thread.expect_return(&thread.stopped(f)?, &before, &[(first, 0x1357)])
}

fn unknown_not_resumed(f: &mut Fixture) -> TestResult {
    let thread = f.caller(&registers(&[(RDX, 77)]))?;
    thread.start()?;
    thread.stopped(f)?;
    thread.reply.send(Message::new(1, []));
    ensure!(thread.goes_on_or_waits(f)?, "the thread was resumed");
    // Inactive: a resume restarts it at its FaultIP.
    thread.tcb.resume()?;
    let stopped = thread.stopped(f)?;
    ensure_eq!(stopped.label, fault::UNKNOWN_SYSCALL);
    ensure_eq!(stopped.words[unknown_syscall::FAULT_IP], thread.code);
    Ok(())
}

fn exception_registers(f: &mut Fixture) -> TestResult {
    for count in [0, 1, 2, 3, 4, 5, 20] {
        let thread = f.raw(&UD2, &distinct())?;
        thread.start()?;
        expect_written(f, thread, &[Some(RIP), Some(RSP), Some(RFLAGS)], count)?;
    }
    // Resumed, all three take effect: the thread stops at the second instruction.
    let thread = f.raw(&[UD2, UD2].concat(), &distinct())?;
    let before = thread.run(f)?;
    let next = thread.code + UD2.len() as u64;
    let words = [next, 0x7777_0000, 0xa000_00d5];
    thread.reply.send(Message::new(0, words));
    let stopped = thread.stopped(f)?;
    let flags = sanitised(RFLAGS, 0xa000_00d5);
    let expected = [(RIP, next), (RSP, 0x7777_0000), (RFLAGS, flags)];
    let expected = changed(&before.registers, &expected);
    ensure_eq!(arch::normalised(&stopped.registers, &expected), expected);
    Ok(())
}

fn exception_not_resumed(f: &mut Fixture) -> TestResult {
    for label in [1, 3, u64::MAX >> 12] {
        let thread = f.raw(&UD2, &distinct())?;
        thread.run(f)?;
        thread.reply.send(Message::new(label, []));
        ensure!(thread.goes_on_or_waits(f)?, "the thread was resumed");
        thread.tcb.resume()?;
        let stopped = thread.stopped(f)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(stopped.words[0], thread.code);
    }
    Ok(())
}

fn timeout_registers(f: &mut Fixture) -> TestResult {
    let order = TIMEOUT_REPLY_ORDER.map(Some);
    for count in [0, 1, 4, 18, 19, 20, 30, 33, 34, 35, 40] {
        let endpoint = f.endpoint()?;
        let params = ThreadParams {
            timeout_handler: Some(endpoint),
            ..f.active_on(RAW_PRIORITY, SchedParams::new(50, 10_000))?
        };
        // jmp to itself
        let thread = f.raw_with(params, &conformance_kit::arch::SPIN, &distinct())?;
        let thread = RawThread { endpoint, ..thread };
        thread.start()?;
        expect_written(f, thread, &order, count)?;
    }
    Ok(())
}

fn sanitising(f: &mut Fixture) -> TestResult {
    // FaultIP, RSP, RFLAGS of an exception.
    for (ip, flags) in [
        (0x8000_0000_0000, u64::MAX),
        (0xffff_7fff_ffff_ffff, 0),
        (0x7fff_ffff_f000, 0x128),
        (0xffff_8000_0000_0000, 0xfff),
    ] {
        let thread = f.raw(&UD2, &distinct())?;
        thread.run(f)?;
        thread.reply.send(Message::new(1, [ip, u64::MAX, flags]));
        let registers = thread.registers()?;
        ensure_eq!(registers.get(RIP), sanitised(RIP, ip));
        ensure_eq!(registers.get(RSP), u64::MAX);
        ensure_eq!(registers.get(RFLAGS), sanitised(RFLAGS, flags));
    }
    // FaultIP and RFLAGS of an unknown system call.
    let thread = f.caller(&registers(&[(RDX, 77)]))?;
    let mut words = thread.run(f)?.words;
    words.truncate(UNKNOWN);
    words[unknown_syscall::FAULT_IP] = 0x8000_0000_0000;
    words[UNKNOWN - 1] = u64::MAX;
    thread.reply.send(Message::long(1, &words));
    let seen = thread.registers()?;
    ensure_eq!(seen.get(RIP), sanitised(RIP, 0x8000_0000_0000));
    ensure_eq!(seen.get(RFLAGS), sanitised(RFLAGS, u64::MAX));
    Ok(())
}

/// Registers of a thread that answers with all words in the way of `call`, to the reply object
/// `reply`; what it receives from afterwards is a notification.
fn answering(call: Syscall, reply: Reply, then: Notification) -> UserContext {
    let info = MessageInfo::new(1, 0, 0, UNKNOWN).raw();
    let cap = match call {
        Syscall::Send | Syscall::NBSend | Syscall::Call => reply.address(),
        _ => then.address(),
    };
    entry(
        call,
        &[
            (RDI, cap),
            (RSI, info),
            (R12, reply.address()),
            (R13, reply.address()),
            (R10, 0xa1),
            (R8, 0xa2),
            (R9, 0xa3),
            (R15, 0xa4),
        ],
    )
}

fn without_buffer(f: &mut Fixture) -> TestResult {
    let thread = f.caller(&registers(&[(RDX, 77)]))?;
    let stopped = thread.run(f)?;
    let then = f.notification()?;
    f.caller(&answering(Syscall::Send, thread.reply, then))?
        .run(f)?;
    let order = UNKNOWN_SYSCALL_ORDER.into_iter();
    let first_four: Vec<_> = order.zip(0xa1..=0xa4).collect();
    ensure_eq!(
        thread.registers()?,
        changed(&stopped.registers, &first_four)
    );
    Ok(())
}

fn reply_calls(f: &mut Fixture) -> TestResult {
    for call in [
        Syscall::Send,
        Syscall::NBSend,
        Syscall::Call,
        Syscall::ReplyRecv,
        Syscall::NBSendRecv,
        Syscall::NBSendWait,
    ] {
        let thread = f.caller(&registers(&[(RDX, 77)]))?;
        let stopped = thread.run(f)?;
        let (then, buffer) = (f.notification()?, f.buffer()?);
        then.signal();
        for word in 4..UNKNOWN {
            buffer.write(ipc_buffer::MESSAGE + word, 0xa1 + word as u64);
        }
        let handler = f.caller(&answering(call, thread.reply, then))?;
        handler.use_buffer(buffer)?;
        handler.run(f)?;
        let mut expected = stopped.registers;
        for (index, word) in UNKNOWN_REPLY_ORDER.into_iter().zip(0xa1..) {
            if let Some(index) = index {
                expected.set(index, sanitised(index, word));
            }
        }
        ensure_eq!(thread.registers()?, expected);
    }
    Ok(())
}

fn no_capabilities(f: &mut Fixture) -> TestResult {
    // The faulter has a slot for a capability, and a buffer; neither is touched.
    let thread = f.caller(&registers(&[(RDX, 77)]))?;
    let (buffer, slot) = (f.buffer()?, f.empty_slot()?);
    buffer.fill(0x99);
    buffer.write(ipc_buffer::RECEIVE_CNODE, boot::CNODE.address());
    buffer.write(ipc_buffer::RECEIVE_INDEX, slot.index());
    buffer.write(ipc_buffer::RECEIVE_DEPTH, 64);
    thread.use_buffer(buffer)?;
    thread.run(f)?;
    let passed = f.notification()?;
    let words = reply_words(UNKNOWN);
    let answer = Message::long(0, &words).with_caps(&[passed.cptr()]);
    thread.reply.send(answer);
    f.settle()?;
    ensure!(f.is_empty(slot)?, "a capability was transferred");
    ensure_eq!(buffer.changed_words(0x99), [125, 126, 127]);
    Ok(())
}

fn message_registers(f: &mut Fixture) -> TestResult {
    // Badge, info and message registers are as they were before the fault.
    let thread = f.raw(&[UD2, UD2].concat(), &distinct())?;
    let stopped = thread.run(f)?;
    thread
        .reply
        .send(Message::new(0, [thread.code + UD2.len() as u64]));
    let again = thread.stopped(f)?;
    for index in [RDI, RSI, R10, R8, R9, R15, R11] {
        ensure_eq!(again.registers.get(index), stopped.registers.get(index));
    }
    Ok(())
}
