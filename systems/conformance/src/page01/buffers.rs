//! 01, section 3: the IPC buffer.

use conformance_kit::arch::order::{R10, R12, R15, R8, R9, RDI, RSI};
use sandglass::abi::message::REGISTER_MRS;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("01/3/sending-reads-words-5-to-120", layout_of_sending),
    check(
        "01/3/receiving-writes-words-of-the-message-only",
        layout_of_receiving,
    ),
    check(
        "01/3/words-of-register-messages-are-not-touched",
        register_words_untouched,
    ),
    check("01/3/capabilities-are-words-122-to-127", capability_words),
    check("01/3/the-frame-counts-not-the-mapping", frame_not_mapping),
    check(
        "01/3/every-1024-bytes-of-a-page-can-be-the-buffer",
        offsets_in_a_page,
    ),
    check("01/3/a-large-frame-can-hold-the-buffer", large_frame),
    check("01/3/a-misaligned-address-is-refused", misaligned),
    check("01/3/a-device-frame-is-refused", device_frame),
    check(
        "01/3/without-a-buffer-four-words-are-sent",
        sender_without_buffer,
    ),
    check(
        "01/3/without-a-buffer-four-words-are-received",
        receiver_without_buffer,
    ),
    check("01/3/a-read-only-buffer-sends", read_only_sends),
    check(
        "01/3/a-read-only-buffer-receives-four-words",
        read_only_receives,
    ),
    check("01/3/a-kernel-only-buffer-is-absent", kernel_only),
    check("01/3/a-revoked-buffer-is-absent", revoked),
    check("01/3/address-0-removes-the-buffer", removed),
    check(
        "01/3/without-a-buffer-no-capabilities-are-sent",
        no_caps_without_buffer,
    ),
    check(
        "01/3/without-a-buffer-an-invocation-has-four-words",
        short_invocation,
    ),
    check(
        "01/3/without-a-buffer-an-invocation-has-no-capabilities",
        capless_invocation,
    ),
    check(
        "01/3/a-read-only-buffer-holds-arguments",
        read_only_arguments,
    ),
];

/// Words of the buffer that a test message fills have these values plus their index.
const SEED: u64 = 0x5eed_0000_0000;

/// A message of the greatest length with label 7.
fn full_message() -> Message {
    let words: Vec<u64> = (0..120).map(|i| 0xabc0_0000 + i).collect();
    Message::long(7, &words)
}

/// The words of a message as they arrived here.
fn words(message: Message) -> Vec<u64> {
    let mut words = vec![0; message.len()];
    message.copy_words(&mut words);
    words
}

/// A raw thread that sends `length` words with label 7, and its endpoint.
fn sender(f: &mut Fixture, length: usize) -> Result<(RawThread, Endpoint), Failure> {
    let endpoint = f.endpoint()?;
    let info = MessageInfo::new(7, 0, 0, length).raw();
    let named = [
        (RDI, endpoint.address()),
        (RSI, info),
        (R10, 10),
        (R8, 11),
        (R9, 12),
        (R15, 13),
    ];
    Ok((f.caller(&entry(Syscall::Send, &named))?, endpoint))
}

/// A raw thread that receives, and its endpoint.
fn receiver(f: &mut Fixture) -> Result<(RawThread, Endpoint), Failure> {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let named = [(RDI, endpoint.address()), (R12, reply.address())];
    Ok((f.caller(&entry(Syscall::Recv, &named))?, endpoint))
}

/// What arrives from a sender.
fn arrived(f: &mut Fixture, sender: RawThread, endpoint: Endpoint) -> Result<Vec<u64>, Failure> {
    let reply = f.reply()?;
    sender.start()?;
    Ok(words(endpoint.recv(reply).message))
}

/// The info word that a receiver gets with the full message.
fn info_of_full_message(
    f: &mut Fixture,
    receiver: RawThread,
    endpoint: Endpoint,
) -> Result<MessageInfo, Failure> {
    receiver.start_and_settle(f)?;
    endpoint.send(full_message());
    let stopped = receiver.stopped(f)?;
    Ok(MessageInfo::from_raw(stopped.registers.get(RSI)))
}

/// The words of a buffer that [`Buffer::fill`] filled, as a message of `length` words has them.
fn words_of_filled(length: usize) -> Vec<u64> {
    let from_buffer = (REGISTER_MRS..length).map(|i| SEED + 1 + i as u64);
    (10..14).chain(from_buffer).collect()
}

fn layout_of_sending(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    buffer.fill(SEED);
    for length in [5, 64, 120] {
        let (sender, endpoint) = sender(f, length)?;
        sender.use_buffer(buffer)?;
        ensure_eq!(arrived(f, sender, endpoint)?, words_of_filled(length));
        ensure!(buffer.changed_words(SEED).is_empty());
    }
    Ok(())
}

fn layout_of_receiving(f: &mut Fixture) -> TestResult {
    for length in [5, 64, 120] {
        let buffer = f.buffer()?;
        buffer.fill(SEED);
        let (receiver, endpoint) = receiver(f)?;
        receiver.use_buffer(buffer)?;
        receiver.start_and_settle(f)?;
        let message = full_message();
        let info = MessageInfo::new(7, 0, 0, length);
        sys::send(Syscall::Send, endpoint.address(), info, message.registers());
        let stopped = receiver.stopped(f)?;
        ensure_eq!(stopped.registers.get(RSI), info.raw());
        let expected: Vec<usize> = (5..=length).collect();
        ensure_eq!(buffer.changed_words(SEED), expected);
        for index in expected {
            ensure_eq!(buffer.read(index), 0xabc0_0000 + index as u64 - 1);
        }
    }
    Ok(())
}

fn register_words_untouched(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    for length in 0..=4 {
        buffer.fill(SEED);
        let (receiver, endpoint) = receiver(f)?;
        receiver.use_buffer(buffer)?;
        receiver.start_and_settle(f)?;
        let info = MessageInfo::new(1, 0, 0, length);
        sys::send(Syscall::Send, endpoint.address(), info, [21, 22, 23, 24]);
        receiver.stopped(f)?;
        ensure!(buffer.changed_words(SEED).is_empty());
    }
    Ok(())
}

fn capability_words(f: &mut Fixture) -> TestResult {
    // The sender passes a notification and receives its own endpoint's badges; the receiver has
    // a slot for the former.
    let endpoint = f.endpoint()?;
    let (badged, passed) = (f.badged(endpoint, 0xbad6e)?, f.notification()?);
    let (own, slot, reply) = (f.buffer()?, f.empty_slot()?, f.reply()?);
    own.fill(SEED);
    for (index, word) in [
        (125, boot::CNODE.address()),
        (126, slot.index()),
        (127, u64::from(slot.depth())),
    ] {
        own.write(index, word);
    }
    let receive = [(RDI, endpoint.address()), (R12, reply.address())];
    let receiver = f.caller(&entry(Syscall::Recv, &receive))?;
    receiver.use_buffer(own)?;
    receiver.start_and_settle(f)?;

    let theirs = f.buffer()?;
    for (index, cap) in [
        (122, badged.address()),
        (123, passed.address()),
        (124, badged.address()),
    ] {
        theirs.write(index, cap);
    }
    let info = MessageInfo::new(1, 0, 3, 0).raw();
    let send = [(RDI, endpoint.address()), (RSI, info)];
    let sender = f.caller(&entry(Syscall::Send, &send))?;
    sender.use_buffer(theirs)?;
    sender.start()?;
    let stopped = receiver.stopped(f)?;
    ensure_eq!(
        stopped.registers.get(RSI),
        MessageInfo::new(1, 0b101, 3, 0).raw()
    );
    ensure_eq!([own.read(122), own.read(124)], [0xbad6e, 0xbad6e]);
    ensure_eq!(own.changed_words(SEED), [122, 124, 125, 126, 127]);
    ensure!(!f.is_empty(slot)?, "no capability arrived");
    Ok(())
}

fn frame_not_mapping(f: &mut Fixture) -> TestResult {
    // Mapped elsewhere than the thread is told, then nowhere.
    for unmap in [false, true] {
        let buffer = f.buffer()?;
        buffer.fill(SEED);
        let (sender, endpoint) = sender(f, 6)?;
        sender.tcb.set_ipc_buffer(0x7000_1234_5000, buffer.frame)?;
        if unmap {
            buffer.frame.unmap()?;
        }
        ensure_eq!(arrived(f, sender, endpoint)?, words_of_filled(6));
    }
    Ok(())
}

fn offsets_in_a_page(f: &mut Fixture) -> TestResult {
    let page = f.buffer()?;
    for offset in [0, 1024, 2048, 3072] {
        let part = Buffer {
            address: page.address + offset,
            ..page
        };
        part.fill(SEED + (offset << 16));
    }
    for offset in [0, 1024, 2048, 3072] {
        let (sender, endpoint) = sender(f, 5)?;
        sender
            .tcb
            .set_ipc_buffer(0x5000_0000_0000 + offset, page.frame)?;
        let seen = arrived(f, sender, endpoint)?;
        ensure_eq!(seen[4], SEED + (offset << 16) + 5);
    }
    Ok(())
}

fn large_frame(f: &mut Fixture) -> TestResult {
    let frame = f.frame(FrameSize::Large)?;
    let process = &mut f.process;
    let address = process.space.map_frame(
        &mut process.resources,
        frame,
        FrameSize::Large,
        Rights::READ_WRITE,
        Attributes::WriteBack,
    )?;
    for offset in [0, 0x1000, 0x12_3400, 0x1f_fc00] {
        let part = Buffer {
            address: address + offset,
            frame,
        };
        part.fill(SEED);
        let (sender, endpoint) = sender(f, 120)?;
        sender.use_buffer(part)?;
        ensure_eq!(arrived(f, sender, endpoint)?, words_of_filled(120));
        part.fill(0);
    }
    Ok(())
}

fn misaligned(f: &mut Fixture) -> TestResult {
    let (tcb, frame) = (f.tcb()?, f.frame(FrameSize::Small)?);
    let set = Invocation::new(tcb, label::TCB_SET_IPC_BUFFER, &[0x1000], &[frame.cptr()]);
    for offset in [1, 8, 512, 1023] {
        set.with_word(0, 0x1000 + offset)
            .expect_error(AlignmentError, &[])?;
    }
    set.with_word(0, 0x1400).expect_ok(&[])
}

fn device_frame(f: &mut Fixture) -> TestResult {
    let (tcb, device) = (f.tcb()?, f.device_untyped(12)?);
    let slot = f.empty_slot()?;
    device.retype(ObjectType::Page, slot, 1)?;
    let frame: Frame = slot.capability();
    Invocation::new(tcb, label::TCB_SET_IPC_BUFFER, &[0x1000], &[frame.cptr()])
        .expect_error(IllegalOperation, &[])
}

fn sender_without_buffer(f: &mut Fixture) -> TestResult {
    for length in [4, 5, 120] {
        let (sender, endpoint) = sender(f, length)?;
        ensure_eq!(arrived(f, sender, endpoint)?, [10, 11, 12, 13]);
    }
    Ok(())
}

fn receiver_without_buffer(f: &mut Fixture) -> TestResult {
    let (receiver, endpoint) = receiver(f)?;
    let info = info_of_full_message(f, receiver, endpoint)?;
    ensure_eq!(info, MessageInfo::new(7, 0, 0, 4));
    Ok(())
}

/// A buffer whose capability has these rights only, filled.
fn buffer_with(f: &mut Fixture, rights: Rights) -> Result<Buffer, Failure> {
    let buffer = f.buffer()?;
    buffer.fill(SEED);
    let frame = f.with_rights(buffer.frame, rights)?;
    Ok(Buffer { frame, ..buffer })
}

fn read_only_sends(f: &mut Fixture) -> TestResult {
    let buffer = buffer_with(f, Rights::READ)?;
    let (sender, endpoint) = sender(f, 9)?;
    sender.use_buffer(buffer)?;
    ensure_eq!(arrived(f, sender, endpoint)?, words_of_filled(9));
    Ok(())
}

fn read_only_receives(f: &mut Fixture) -> TestResult {
    let buffer = buffer_with(f, Rights::READ)?;
    let (receiver, endpoint) = receiver(f)?;
    receiver.use_buffer(buffer)?;
    let info = info_of_full_message(f, receiver, endpoint)?;
    ensure_eq!(info, MessageInfo::new(7, 0, 0, 4));
    ensure!(buffer.changed_words(SEED).is_empty());
    Ok(())
}

/// Fails unless the buffer serves neither to send nor to receive.
fn expect_absent(f: &mut Fixture, install: impl Fn(RawThread) -> TestResult) -> TestResult {
    let (sender, endpoint) = sender(f, 6)?;
    install(sender)?;
    ensure_eq!(arrived(f, sender, endpoint)?, [10, 11, 12, 13]);
    let (receiver, endpoint) = receiver(f)?;
    install(receiver)?;
    let info = info_of_full_message(f, receiver, endpoint)?;
    ensure_eq!(info, MessageInfo::new(7, 0, 0, 4));
    Ok(())
}

fn kernel_only(f: &mut Fixture) -> TestResult {
    // Write without read is kernel-only too (ABI 02, section 3).
    for rights in [Rights::NONE, Rights::WRITE] {
        let buffer = buffer_with(f, rights)?;
        expect_absent(f, |thread| thread.use_buffer(buffer))?;
    }
    Ok(())
}

fn revoked(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    let original = f.slot_of(buffer.frame);
    expect_absent(f, |thread| {
        thread.use_buffer(buffer)?;
        // The thread's own capability is a copy of this one.
        Ok(original.revoke()?)
    })?;
    ensure!(
        buffer.changed_words(0).len() == 127,
        "the buffer was written"
    );
    Ok(())
}

fn removed(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    expect_absent(f, |thread| {
        thread.use_buffer(buffer)?;
        Ok(thread.tcb.set_ipc_buffer(0, buffer.frame)?)
    })
}

fn no_caps_without_buffer(f: &mut Fixture) -> TestResult {
    let (endpoint, reply) = (f.endpoint()?, f.reply()?);
    let info = MessageInfo::new(3, 0, 3, 0).raw();
    let send = [(RDI, endpoint.address()), (RSI, info)];
    let sender = f.caller(&entry(Syscall::Send, &send))?;
    sender.start()?;
    let received = endpoint.recv(reply).message;
    ensure_eq!(received.info(), MessageInfo::new(3, 0, 0, 0));
    Ok(())
}

/// Registers for an invocation by Call.
fn invocation(cap: impl Capability, info: MessageInfo, words: [u64; 4]) -> UserContext {
    let named = [
        (RDI, cap.cptr().raw()),
        (RSI, info.raw()),
        (R10, words[0]),
        (R8, words[1]),
        (R9, words[2]),
        (R15, words[3]),
    ];
    entry(Syscall::Call, &named)
}

fn short_invocation(f: &mut Fixture) -> TestResult {
    // WriteRegisters of two registers needs four words, of three registers five.
    let tcb = f.tcb()?;
    for (count, error) in [(2, NoError), (3, TruncatedMessage)] {
        let info = MessageInfo::new(label::TCB_WRITE_REGISTERS, 0, 0, 2 + count);
        let before = invocation(tcb, info, [0, count as u64, 0x1000, 0x2000]);
        let caller = f.caller(&before)?;
        let stopped = caller.run(f)?;
        let answer = MessageInfo::new(error as u64, 0, 0, 0).raw();
        caller.expect_return(&stopped, &before, &[(RDI, 0), (RSI, answer)])?;
    }
    Ok(())
}

fn capless_invocation(f: &mut Fixture) -> TestResult {
    let tcb = f.tcb()?;
    let info = MessageInfo::new(label::TCB_SET_PRIORITY, 0, 1, 1);
    let before = invocation(tcb, info, [1, 0, 0, 0]);
    let caller = f.caller(&before)?;
    let stopped = caller.run(f)?;
    let answer = MessageInfo::new(TruncatedMessage as u64, 0, 0, 0).raw();
    caller.expect_return(&stopped, &before, &[(RDI, 0), (RSI, answer)])
}

fn read_only_arguments(f: &mut Fixture) -> TestResult {
    let (tcb, buffer) = (f.tcb()?, f.buffer()?);
    buffer.set_caps(&[boot::TCB]);
    buffer.write(5, 0x333);
    let frame = f.with_rights(buffer.frame, Rights::READ)?;
    for (info, words) in [
        (
            MessageInfo::new(label::TCB_SET_PRIORITY, 0, 1, 1),
            [1, 0, 0, 0],
        ),
        (
            MessageInfo::new(label::TCB_WRITE_REGISTERS, 0, 0, 5),
            [0, 3, 1, 2],
        ),
    ] {
        let before = invocation(tcb, info, words);
        let caller = f.caller(&before)?;
        caller.use_buffer(Buffer { frame, ..buffer })?;
        let stopped = caller.run(f)?;
        caller.expect_return(&stopped, &before, &[(RDI, 0), (RSI, 0)])?;
    }
    Ok(())
}
