//! 01, section 2: the message info word.

use conformance_kit::arch::order::{R10, R15, R8, R9, RDI, RSI};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/2/a-length-above-120-is-120-in-ipc", long_messages),
    check(
        "01/2/a-length-above-120-is-120-in-invocations",
        long_invocations,
    ),
    check("01/2/the-label-has-52-bits", label_bits),
    check("01/2/caps-unwrapped-is-ignored-on-input", unwrapped_input),
    check(
        "01/2/extra-caps-without-grant-are-reported-as-none",
        extra_caps_input,
    ),
    check("01/2/an-answer-has-zeros-in-unset-fields", answer_fields),
];

/// Lets a raw thread call with this info word, and returns what arrives.
fn received_info(f: &mut Fixture, info: u64, buffer: bool) -> Result<u64, Failure> {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let sender = f.with_rights(endpoint, Rights::WRITE)?;
    let caller = f.caller(&entry(
        Syscall::Send,
        &[(RDI, sender.address()), (RSI, info)],
    ))?;
    if buffer {
        let own = f.buffer()?;
        own.set_caps(&[endpoint, endpoint, endpoint]);
        caller.use_buffer(own)?;
    }
    caller.start()?;
    Ok(endpoint.recv(reply).message.info().raw())
}

fn long_messages(f: &mut Fixture) -> TestResult {
    for length in 119..=127 {
        let expected = u64::min(length, 120);
        ensure_eq!(received_info(f, length, true)?, expected);
    }
    Ok(())
}

fn long_invocations(f: &mut Fixture) -> TestResult {
    let (tcb, buffer) = (f.tcb()?, f.buffer()?);
    // WriteRegisters of n registers needs n + 2 words.
    for (count, label_back) in [(118, NoError), (119, TruncatedMessage)] {
        let info = MessageInfo::new(label::TCB_WRITE_REGISTERS, 0, 0, 127);
        let before = entry(
            Syscall::Call,
            &[
                (RDI, tcb.address()),
                (RSI, info.raw()),
                (R10, 0),
                (R8, count),
                (R9, 0),
                (R15, 0),
            ],
        );
        let caller = f.caller(&before)?;
        caller.use_buffer(buffer)?;
        let stopped = caller.run(f)?;
        let answer = MessageInfo::new(label_back as u64, 0, 0, 0).raw();
        caller.expect_return(&stopped, &before, &[(RDI, 0), (RSI, answer)])?;
    }
    Ok(())
}

fn label_bits(f: &mut Fixture) -> TestResult {
    for bit in 0..52 {
        let info = 1 << (12 + bit);
        ensure_eq!(received_info(f, info, false)?, info);
    }
    let all = u64::MAX << 12;
    ensure_eq!(received_info(f, all | 3, false)?, all | 3);
    Ok(())
}

fn unwrapped_input(f: &mut Fixture) -> TestResult {
    for bits in 1..8 {
        let info = MessageInfo::new(5, bits, 0, 2).raw();
        let expected = MessageInfo::new(5, 0, 0, 2).raw();
        ensure_eq!(received_info(f, info, true)?, expected);
    }
    Ok(())
}

fn extra_caps_input(f: &mut Fixture) -> TestResult {
    for count in 1..4 {
        let info = MessageInfo::new(5, 7, count, 2).raw();
        let expected = MessageInfo::new(5, 0, 0, 2).raw();
        ensure_eq!(received_info(f, info, true)?, expected);
        ensure_eq!(received_info(f, info, false)?, expected);
    }
    Ok(())
}

fn answer_fields(f: &mut Fixture) -> TestResult {
    // Of an invocation that succeeds, one that fails, one that answers words, and of a reply.
    let tcb = f.tcb()?;
    let junk = MessageInfo::new(0, 7, 3, 2).raw();
    let answers = [
        (label::TCB_SUSPEND, MessageInfo::new(0, 0, 0, 0)),
        (
            label::TCB_UNBIND_NOTIFICATION,
            MessageInfo::new(IllegalOperation as u64, 0, 0, 0),
        ),
        (label::TCB_SET_FLAGS, MessageInfo::new(0, 0, 0, 1)),
    ];
    for (label, expected) in answers {
        let info = MessageInfo::new(label, 0, 0, 0).raw() | junk;
        let before = entry(
            Syscall::Call,
            &[(RDI, tcb.address()), (RSI, info), (R10, 0), (R8, 0)],
        );
        let stopped = f.caller(&before)?.run(f)?;
        ensure_eq!(stopped.registers.get(RSI), expected.raw());
    }
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let caller = f.caller(&entry(
        Syscall::Call,
        &[(RDI, endpoint.address()), (RSI, junk)],
    ))?;
    caller.start()?;
    endpoint.recv(reply);
    sys::send(
        Syscall::Send,
        reply.address(),
        MessageInfo::new(9, 7, 0, 1),
        [0; 4],
    );
    let stopped = caller.stopped(f)?;
    ensure_eq!(
        stopped.registers.get(RSI),
        MessageInfo::new(9, 0, 0, 1).raw()
    );
    Ok(())
}
