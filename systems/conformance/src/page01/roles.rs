//! 01, section 4.4: which registers each system call consumes and produces, by their roles.

use conformance_kit::arch::order::{R10, R12, R13, R15, R8, R9, RDI, RSI};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check(
        "01/4.4/send-and-nbsend-produce-nothing",
        senders_produce_nothing,
    ),
    check("01/4.4/call-gets-the-reply", call_outputs),
    check("01/4.4/receives-of-a-waiting-sender", receives_of_sender),
    check("01/4.4/receives-that-wait-for-a-sender", receives_that_wait),
    check("01/4.4/reply-recv", reply_recv),
    check("01/4.4/nbsend-recv", nb_send_recv),
    check("01/4.4/nbsend-wait", nb_send_wait),
    check("01/4.4/yield-produces-nothing", yield_outputs),
    check(
        "01/4.4/only-wait-variants-ignore-the-reply-register",
        reply_register_of_wait,
    ),
];

/// Registers of a thread that receives on `endpoint` with `reply`.
pub fn receive(call: Syscall, endpoint: Endpoint, reply: Reply) -> UserContext {
    entry(call, &[(RDI, endpoint.address()), (R12, reply.address())])
}

/// Registers for sending these four words, of which the first `length` count, with label 0x51.
fn message_of(length: usize) -> [(usize, u64); 5] {
    [
        (RSI, MessageInfo::new(0x51, 0, 0, length).raw()),
        (R10, 0x6001),
        (R8, 0x6002),
        (R9, 0x6003),
        (R15, 0x6004),
    ]
}

/// What a receiver finds of [`message_of`] besides the badge.
fn received_of(length: usize) -> Vec<(usize, u64)> {
    message_of(length)[..=length].to_vec()
}

/// A raw thread that makes `call`, with `message_of(length)` and these registers.
fn sender(
    f: &mut Fixture,
    call: Syscall,
    length: usize,
    named: &[(usize, u64)],
) -> Result<(RawThread, UserContext), Failure> {
    let before = changed(&entry(call, &message_of(length)), named);
    Ok((f.caller(&before)?, before))
}

fn senders_produce_nothing(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Send, Syscall::NBSend] {
        for length in 0..=4 {
            let (endpoint, reply) = (f.endpoint()?, f.reply()?);
            let badged = f.badged(endpoint, 0xbad6e)?;
            let (thread, before) = sender(f, call, length, &[(RDI, badged.address())])?;
            thread.start()?;
            let received = endpoint.recv(reply);
            ensure_eq!(received.badge, 0xbad6e);
            ensure_eq!(
                received.message.info(),
                MessageInfo::new(0x51, 0, 0, length)
            );
            ensure_eq!(
                received.message.registers()[..length],
                [0x6001, 0x6002, 0x6003, 0x6004][..length]
            );
            thread.expect_return(&thread.stopped(f)?, &before, &[])?;
        }
    }
    Ok(())
}

fn call_outputs(f: &mut Fixture) -> TestResult {
    for length in 0..=4 {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let badged = f.badged(endpoint, 0xbad6e)?;
        let (thread, before) = sender(f, Syscall::Call, 4, &[(RDI, badged.address())])?;
        thread.start()?;
        let received = endpoint.recv(reply);
        ensure_eq!(received.badge, 0xbad6e);
        ensure_eq!(
            received.message.registers(),
            [0x6001, 0x6002, 0x6003, 0x6004]
        );
        let info = MessageInfo::new(0x77, 0, 0, length);
        sys::send(Syscall::Send, reply.address(), info, [31, 32, 33, 34]);
        let produced = [(R10, 31), (R8, 32), (R9, 33), (R15, 34)];
        let mut named = vec![(RDI, 0), (RSI, info.raw())];
        named.extend_from_slice(&produced[..length]);
        thread.expect_return(&thread.stopped(f)?, &before, &named)?;
    }
    Ok(())
}

/// The system calls that only receive.
const RECEIVES: [Syscall; 4] = [
    Syscall::Recv,
    Syscall::NBRecv,
    Syscall::Wait,
    Syscall::NBWait,
];

/// What a receiver finds of `message_of(length)` sent with badge 0xbad6e.
fn with_badge(length: usize) -> Vec<(usize, u64)> {
    let mut named = received_of(length);
    named.push((RDI, 0xbad6e));
    named
}

fn receives_of_sender(f: &mut Fixture) -> TestResult {
    for call in RECEIVES {
        for length in [0, 1, 3, 4] {
            let (endpoint, reply) = (f.endpoint()?, f.reply()?);
            let badged = f.badged(endpoint, 0xbad6e)?;
            let (from, sent) = sender(f, Syscall::Send, length, &[(RDI, badged.address())])?;
            from.start_and_settle(f)?;
            let before = receive(call, endpoint, reply);
            let thread = f.caller(&before)?;
            let stopped = thread.run(f)?;
            thread.expect_return(&stopped, &before, &with_badge(length))?;
            from.expect_return(&from.stopped(f)?, &sent, &[])?;
        }
    }
    Ok(())
}

fn receives_that_wait(f: &mut Fixture) -> TestResult {
    for call in [Syscall::Recv, Syscall::Wait] {
        for length in [0, 1, 3, 4] {
            let (endpoint, reply) = (f.endpoint()?, f.reply()?);
            let badged = f.badged(endpoint, 0xbad6e)?;
            let before = receive(call, endpoint, reply);
            let thread = f.caller(&before)?;
            thread.start_and_settle(f)?;
            let (from, _) = sender(f, Syscall::Send, length, &[(RDI, badged.address())])?;
            from.start()?;
            thread.expect_return(&thread.stopped(f)?, &before, &with_badge(length))?;
        }
    }
    Ok(())
}

fn reply_recv(f: &mut Fixture) -> TestResult {
    // A client waits for an answer; the thread answers and receives the next call with the same
    // reply object.
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let badged = f.badged(endpoint, 0xbad6e)?;
    let (client, client_before) = sender(f, Syscall::Call, 1, &[(RDI, endpoint.address())])?;
    client.start()?;
    endpoint.recv(reply);
    let (thread, before) = sender(
        f,
        Syscall::ReplyRecv,
        3,
        &[(RDI, endpoint.address()), (R12, reply.address())],
    )?;
    thread.start_and_settle(f)?;
    let mut answered = received_of(3);
    answered.push((RDI, 0));
    client.expect_return(&client.stopped(f)?, &client_before, &answered)?;

    let (next, next_before) = sender(f, Syscall::Call, 2, &[(RDI, badged.address())])?;
    next.start()?;
    thread.expect_return(&thread.stopped(f)?, &before, &with_badge(2))?;
    // The reply object is that of the second client now.
    reply.send(Message::new(9, []));
    let answer = [(RDI, 0), (RSI, MessageInfo::new(9, 0, 0, 0).raw())];
    next.expect_return(&next.stopped(f)?, &next_before, &answer)
}

fn nb_send_recv(f: &mut Fixture) -> TestResult {
    let (to, from, reply) = (f.endpoint()?, f.endpoint()?, f.reply()?);
    let (to_badged, from_badged) = (f.badged(to, 0x1111)?, f.badged(from, 0xbad6e)?);
    let (thread, before) = sender(
        f,
        Syscall::NBSendRecv,
        3,
        &[
            (RDI, from.address()),
            (R12, reply.address()),
            (R13, to_badged.address()),
        ],
    )?;
    thread.start()?;
    let received = to.wait();
    ensure_eq!(received.badge, 0x1111);
    ensure_eq!(received.message.info(), MessageInfo::new(0x51, 0, 0, 3));
    ensure_eq!(received.message.registers()[..3], [0x6001, 0x6002, 0x6003]);
    let (client, client_before) = sender(f, Syscall::Call, 2, &[(RDI, from_badged.address())])?;
    client.start()?;
    thread.expect_return(&thread.stopped(f)?, &before, &with_badge(2))?;
    reply.send(Message::new(9, []));
    let answer = [(RDI, 0), (RSI, MessageInfo::new(9, 0, 0, 0).raw())];
    client.expect_return(&client.stopped(f)?, &client_before, &answer)
}

fn nb_send_wait(f: &mut Fixture) -> TestResult {
    let (to, from, other) = (f.endpoint()?, f.endpoint()?, f.endpoint()?);
    let (to_badged, from_badged) = (f.badged(to, 0x1111)?, f.badged(from, 0xbad6e)?);
    // The destination register is not looked at.
    for dest in [0, other.address(), u64::MAX] {
        let (thread, before) = sender(
            f,
            Syscall::NBSendWait,
            4,
            &[
                (RDI, from.address()),
                (R12, to_badged.address()),
                (R13, dest),
            ],
        )?;
        thread.start()?;
        let received = to.wait();
        ensure_eq!(received.badge, 0x1111);
        ensure_eq!(received.message.info(), MessageInfo::new(0x51, 0, 0, 4));
        ensure_eq!(
            received.message.registers(),
            [0x6001, 0x6002, 0x6003, 0x6004]
        );
        let (client, _) = sender(f, Syscall::Send, 2, &[(RDI, from_badged.address())])?;
        client.start()?;
        thread.expect_return(&thread.stopped(f)?, &before, &with_badge(2))?;
    }
    Ok(())
}

fn yield_outputs(f: &mut Fixture) -> TestResult {
    let before = entry(Syscall::Yield, &[]);
    let thread = f.caller(&before)?;
    let stopped = thread.run(f)?;
    thread.expect_return(&stopped, &before, &[])
}

fn reply_register_of_wait(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    for (call, ignored) in [
        (Syscall::Wait, true),
        (Syscall::NBWait, true),
        (Syscall::Recv, false),
        (Syscall::NBRecv, false),
    ] {
        // An endpoint is no reply object.
        let before = entry(
            call,
            &[(RDI, endpoint.address()), (R12, endpoint.address())],
        );
        let thread = f.caller(&before)?;
        thread.start()?;
        if ignored {
            endpoint.nb_send(Message::EMPTY);
            ensure!(call == Syscall::NBWait || thread.goes_on_or_waits(f)?);
        } else {
            let stopped = thread.stopped(f)?;
            thread.expect_cap_fault(&stopped, endpoint.address(), true, &[2, 0])?;
        }
    }
    Ok(())
}
