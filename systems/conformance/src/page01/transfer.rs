//! 01, section 5.6: message transfer.

use conformance_kit::arch::order::{R10, R12, R15, R8, R9, RDI, RSI};

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/5.6/words-need-both-buffers", both_buffers),
    check(
        "01/5.6/a-queued-message-is-read-when-it-is-received",
        read_when_received,
    ),
    check(
        "01/5.6/capabilities-need-grant-on-the-endpoint",
        caps_need_grant,
    ),
    check(
        "01/5.6/capabilities-of-a-reply-need-grant-on-the-reply",
        reply_caps_need_grant,
    ),
    check(
        "01/5.6/capabilities-are-looked-up-again-at-the-transfer",
        caps_looked_up_again,
    ),
    check(
        "01/5.6/a-lookup-that-fails-at-the-transfer-drops-all-capabilities",
        failing_at_transfer,
    ),
    check(
        "01/5.6/extra-caps-counts-what-was-processed",
        processed_count,
    ),
    check("01/5.6/the-badge-of-a-reply-is-0", reply_badge),
    check(
        "01/5.6/registers-beyond-the-length-are-unchanged",
        registers_beyond,
    ),
];

fn both_buffers(f: &mut Fixture) -> TestResult {
    for (sends, receives, length) in [
        (true, true, 10),
        (true, false, 4),
        (false, true, 4),
        (false, false, 4),
    ] {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let (theirs, own) = (f.buffer()?, f.buffer()?);
        let info = MessageInfo::new(1, 0, 0, 10).raw();
        let receiver = f.caller(&entry(
            Syscall::Recv,
            &[(RDI, endpoint.address()), (R12, reply.address())],
        ))?;
        let send = [(RDI, endpoint.address()), (RSI, info)];
        let sender = f.caller(&entry(Syscall::Send, &send))?;
        if sends {
            sender.use_buffer(theirs)?;
        }
        if receives {
            receiver.use_buffer(own)?;
        }
        receiver.start_and_settle(f)?;
        sender.start()?;
        let stopped = receiver.stopped(f)?;
        let expected = MessageInfo::new(1, 0, 0, length).raw();
        ensure_eq!(stopped.registers.get(RSI), expected);
    }
    Ok(())
}

fn read_when_received(f: &mut Fixture) -> TestResult {
    // The sender's registers and buffer are read at the transfer.
    let (endpoint, reply, buffer) = (f.endpoint()?, f.reply()?, f.buffer()?);
    let info = MessageInfo::new(1, 0, 0, 6).raw();
    let before = entry(Syscall::Send, &[(RDI, endpoint.address()), (RSI, info)]);
    let sender = f.caller(&before)?;
    sender.use_buffer(buffer)?;
    sender.start_and_settle(f)?;
    buffer.write(ipc_buffer::MESSAGE + 5, 0x1e7e);
    let later = changed(&sender.registers()?, &[(R10, 0xaf7e5)]);
    sender.tcb.write_registers(&later, false)?;
    let message = endpoint.nb_recv(reply).message;
    ensure_eq!((message.word(0), message.word(5)), (0xaf7e5, 0x1e7e));
    Ok(())
}

/// Sends a notification through `sender` to this thread; returns extraCaps and whether the
/// capability arrived.
fn pass_through(
    f: &mut Fixture,
    endpoint: Endpoint,
    sender: Endpoint,
) -> Result<(usize, bool), Failure> {
    let (reply, passed) = (f.reply()?, f.notification()?);
    let slot = f.empty_slot()?;
    sandglass::thread_block::set_receive_slot(slot);
    f.helper(200, move || {
        sender.send(Message::new(0, []).with_caps(&[passed.cptr()]));
    })?;
    let info = endpoint.recv(reply).message.info();
    Ok((info.extra_caps(), !f.is_empty(slot)?))
}

fn caps_need_grant(f: &mut Fixture) -> TestResult {
    for (rights, grant) in [
        (Rights::WRITE, false),
        (Rights::READ_WRITE.union(Rights::GRANT_REPLY), false),
        (Rights::WRITE.union(Rights::GRANT), true),
        (Rights::ALL, true),
    ] {
        let endpoint = f.endpoint()?;
        let sender = f.with_rights(endpoint, rights)?;
        let seen = pass_through(f, endpoint, sender)?;
        ensure_eq!(seen, (usize::from(grant), grant));
    }
    Ok(())
}

fn reply_caps_need_grant(f: &mut Fixture) -> TestResult {
    for grant in [false, true] {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let rights = if grant {
            Rights::GRANT
        } else {
            Rights::READ_WRITE
        };
        let answers = f.with_rights(reply, rights)?;
        let (buffer, slot, passed) = (f.buffer()?, f.empty_slot()?, f.notification()?);
        buffer.write(ipc_buffer::RECEIVE_CNODE, boot::CNODE.address());
        buffer.write(ipc_buffer::RECEIVE_INDEX, slot.index());
        buffer.write(ipc_buffer::RECEIVE_DEPTH, 64);
        let before = entry(Syscall::Call, &[(RDI, endpoint.address()), (RSI, 0)]);
        let client = f.caller(&before)?;
        client.use_buffer(buffer)?;
        client.start()?;
        endpoint.recv(reply);
        answers.send(Message::new(2, []).with_caps(&[passed.cptr()]));
        let stopped = client.stopped(f)?;
        let expected = MessageInfo::new(2, 0, usize::from(grant), 0).raw();
        ensure_eq!(stopped.registers.get(RSI), expected);
        ensure_eq!(!f.is_empty(slot)?, grant);
    }
    Ok(())
}

/// A sender that is queued with one extra capability, whose pointer is in the buffer.
fn queued_with_cap(f: &mut Fixture, cap: u64) -> Result<(Endpoint, Buffer, RawThread), Failure> {
    let (endpoint, buffer) = (f.endpoint()?, f.buffer()?);
    let info = MessageInfo::new(3, 0, 1, 1).raw();
    let before = entry(
        Syscall::Send,
        &[(RDI, endpoint.address()), (RSI, info), (R10, 0x77)],
    );
    let sender = f.caller(&before)?;
    buffer.write(ipc_buffer::CAPS_OR_BADGES, cap);
    sender.use_buffer(buffer)?;
    sender.start_and_settle(f)?;
    Ok((endpoint, buffer, sender))
}

fn caps_looked_up_again(f: &mut Fixture) -> TestResult {
    // While it is queued, the sender's pointer changes from a notification to the endpoint: a
    // badge arrives.
    let passed = f.notification()?;
    let (endpoint, buffer, _) = queued_with_cap(f, passed.address())?;
    let badged = f.badged(endpoint, 0x6a)?;
    buffer.set_caps(&[badged]);
    let message = endpoint.nb_wait().message;
    ensure_eq!(message.info(), MessageInfo::new(3, 1, 1, 1));
    ensure_eq!(message.unwrapped_badge(0), Some(0x6a));
    Ok(())
}

fn failing_at_transfer(f: &mut Fixture) -> TestResult {
    let passed = f.notification()?;
    let (endpoint, buffer, sender) = queued_with_cap(f, passed.address())?;
    buffer.write(ipc_buffer::CAPS_OR_BADGES, 1 << 63);
    let message = endpoint.nb_wait().message;
    ensure_eq!(message.info(), MessageInfo::new(3, 0, 0, 1));
    ensure_eq!(message.word(0), 0x77);
    // It is no fault of the sender.
    ensure_eq!(sender.stopped(f)?.label, fault::USER_EXCEPTION);
    Ok(())
}

fn processed_count(f: &mut Fixture) -> TestResult {
    // Three badges; two badges before a capability without a slot; a null one first.
    let endpoint = f.endpoint()?;
    let badged = f.badged(endpoint, 0x6a)?.cptr();
    let other = f.notification()?.cptr();
    let null: CPtr = f.null()?;
    let full = f.slot_of(endpoint);
    for (caps, unwrapped, count) in [
        ([badged, badged, badged], 0b111, 3),
        ([badged, badged, other], 0b011, 2),
        ([badged, other, badged], 0b001, 1),
        ([null, badged, badged], 0, 0),
    ] {
        f.helper(200, move || {
            endpoint.send(Message::new(0, []).with_caps(&caps));
        })?;
        sandglass::thread_block::set_receive_slot(full);
        let info = endpoint.wait().message.info();
        ensure_eq!(info, MessageInfo::new(0, unwrapped, count, 0));
    }
    Ok(())
}

fn reply_badge(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let badged = f.badged(endpoint, 0x6a)?;
    let before = entry(Syscall::Call, &[(RDI, badged.address()), (RSI, 0)]);
    let client = f.caller(&before)?;
    client.start()?;
    ensure_eq!(endpoint.recv(reply).badge, 0x6a);
    reply.send(Message::EMPTY);
    client.expect_return(&client.stopped(f)?, &before, &[(RDI, 0), (RSI, 0)])
}

fn registers_beyond(f: &mut Fixture) -> TestResult {
    let message = [(R10, 1), (R8, 2), (R9, 3), (R15, 4)];
    for length in 0..=4 {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let before = entry(
            Syscall::Recv,
            &[(RDI, endpoint.address()), (R12, reply.address())],
        );
        let thread = f.caller(&before)?;
        thread.start_and_settle(f)?;
        let info = MessageInfo::new(6, 0, 0, length);
        sys::send(Syscall::Send, endpoint.address(), info, [1, 2, 3, 4]);
        let mut named = vec![(RDI, 0), (RSI, info.raw())];
        named.extend_from_slice(&message[..length]);
        thread.expect_return(&thread.stopped(f)?, &before, &named)?;
    }
    Ok(())
}
