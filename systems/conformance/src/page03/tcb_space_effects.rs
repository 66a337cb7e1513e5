//! 03, sections 4.4, 4.8 and 4.9: what Configure, SetIPCBuffer and SetSpace install.

use conformance_kit::arch::order::{COUNT, RIP, RSI};
use sandglass::abi::message::{ipc_buffer, MessageInfo};
use sandglass::abi::syscall::Syscall;

use crate::prelude::*;

use super::raw::{call_registers, Raw, CODE};

pub const CHECKS: &[Check] = &[
    check("03/4.4/installs-a-cspace-with-its-guard", cspace_guards),
    check("03/4.4/installs-a-vspace", installs_vspace),
    check("03/4.4/installs-a-buffer", installs_buffer),
    check("03/4.4/address-0-removes-the-buffer", removes_buffer),
    check("03/4.4/keeps-the-fault-handler", keeps_handler),
    check(
        "03/4.4/a-refusal-installs-nothing",
        refusal_installs_nothing,
    ),
    check("03/4.4/installs-derived-copies", installs_copies),
    check("03/4.8/installs-a-buffer", set_buffer),
    check("03/4.8/of-the-current-thread", set_own_buffer),
    check("03/4.9/installs-all-three", set_space_installs),
    check("03/4.9/null-removes-the-handler", set_space_removes_handler),
];

const RADIX: u32 = 4;
/// Slot of a notification in the CSpaces that are installed.
const INDEX: u64 = 3;

fn configure(tcb: Tcb, guard: GuardData, caps: [CPtr; 3], buffer: u64) -> Invocation {
    Invocation::new(tcb, label::TCB_CONFIGURE, &[guard.raw(), 0, buffer], &caps)
}

/// A CNode with a capability to the notification at [`INDEX`].
fn cspace(f: &mut Fixture, notification: Notification) -> Result<CNode, Failure> {
    let cnode = f.cnode(RADIX)?;
    let slot = cnode.slot_at(INDEX, RADIX as u8);
    slot.copy_from(f.slot_of(notification), Rights::ALL)?;
    Ok(cnode)
}

/// A thread that signals what it finds at this address of its CSpace.
fn signaller(f: &mut Fixture, address: u64) -> Result<Raw, Failure> {
    Raw::calling(f, Syscall::Send, CPtr::new(address), 0, &[])
}

fn cspace_guards(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let cnode = cspace(f, notification)?;
    let guarded = f.badged(cnode, GuardData::new(5, 60).raw())?;
    let null = f.null()?;
    for (cap, data, address) in [
        // The capability's own guard.
        (guarded, GuardData(0), 5 << RADIX | INDEX),
        // Another.
        (guarded, GuardData::new(0, 60), INDEX),
        (cnode, GuardData::new(9, 60), 9 << RADIX | INDEX),
        // None: the first bits count, and the rest does not matter as the lookup is over.
        (cnode, GuardData(0), INDEX << 60),
        (cnode, GuardData::new(1, 1), 1 << 63 | INDEX << 59 | 12345),
    ] {
        let raw = signaller(f, address)?;
        let caps = [cap.cptr(), boot::VSPACE.cptr(), null];
        configure(raw.tcb, data, caps, 0).expect_ok(&[])?;
        let stopped = raw.run(f)?;
        raw.ensure_after_call(&stopped)?;
    }
    Ok(())
}

fn installs_vspace(f: &mut Fixture) -> TestResult {
    const VADDR: u64 = 0x7000;
    let (notification, vspace) = (f.notification()?, f.vspace()?);
    f.code_in(vspace, VADDR, &CODE)?;
    let raw = signaller(f, notification.address())?;
    let caps = [boot::CNODE.cptr(), vspace.root().cptr(), f.null()?];
    configure(raw.tcb, GuardData(0), caps, 0).expect_ok(&[])?;
    raw.tcb.write_first_registers(&[VADDR], false)?;
    let stopped = raw.run(f)?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(stopped.words[0], VADDR + super::raw::INSTRUCTION_BYTES);
    Ok(())
}

/// A thread that reads all registers of another.
fn reader(f: &mut Fixture) -> Result<(Raw, UserContext), Failure> {
    let tcb = f.tcb()?;
    let mut context = UserContext::default();
    for (i, word) in (1..).zip(context.words_mut().iter_mut().take(2)) {
        *word = i << 20;
    }
    context.words_mut()[4] = 0xbeef;
    tcb.write_registers(&context, false)?;
    let raw = Raw::calling(
        f,
        Syscall::Call,
        tcb,
        label::TCB_READ_REGISTERS,
        &[0, COUNT as u64],
    )?;
    Ok((raw, context))
}

/// Lets a reader run, whose buffer is at `offset` of this page of memory, if it has one.
fn ensure_buffer(
    f: &mut Fixture,
    reader: (Raw, UserContext),
    buffer: Option<(Frame, u64)>,
) -> TestResult {
    let (raw, context) = reader;
    let after = raw.run(f)?.registers;
    let length = if buffer.is_some() { COUNT } else { 4 };
    ensure_eq!(after.get(RSI), MessageInfo::new(0, 0, 0, length).raw());
    if let Some((frame, offset)) = buffer {
        let mut words = [0; COUNT - 4];
        let process = &mut f.process;
        process
            .space
            .fill_frame(&mut process.resources, frame, |page| {
                let first = offset as usize + 8 * (ipc_buffer::MESSAGE + 4);
                let bytes = page[first..].chunks_exact(8);
                for (word, bytes) in words.iter_mut().zip(bytes) {
                    *word = bytes
                        .iter()
                        .rev()
                        .fold(0, |all, &b| all << 8 | u64::from(b));
                }
            })?;
        ensure_eq!(words[..], context.words()[4..]);
    }
    Ok(())
}

fn installs_buffer(f: &mut Fixture) -> TestResult {
    for offset in [0, 0x400, 0xc00] {
        let (reader, frame) = (reader(f)?, f.frame(FrameSize::Small)?);
        let caps = [boot::CNODE.cptr(), boot::VSPACE.cptr(), frame.cptr()];
        let set = configure(reader.0.tcb, GuardData(0), caps, 0x5000_0000 + offset);
        set.expect_ok(&[])?;
        ensure_buffer(f, reader, Some((frame, offset)))?;
    }
    Ok(())
}

fn removes_buffer(f: &mut Fixture) -> TestResult {
    let (reader, frame) = (reader(f)?, f.frame(FrameSize::Small)?);
    let caps = [boot::CNODE.cptr(), boot::VSPACE.cptr(), frame.cptr()];
    let set = configure(reader.0.tcb, GuardData(0), caps, 0x1000);
    set.expect_ok(&[])?;
    set.with_word(2, 0).expect_ok(&[])?;
    ensure_buffer(f, reader, None)
}

fn keeps_handler(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let raw = signaller(f, notification.address())?;
    let caps = [boot::CNODE.cptr(), boot::VSPACE.cptr(), f.null()?];
    configure(raw.tcb, GuardData(0), caps, 0).expect_ok(&[])?;
    let stopped = raw.run(f)?;
    raw.ensure_after_call(&stopped)
}

fn refusal_installs_nothing(f: &mut Fixture) -> TestResult {
    let (reader, frame) = (reader(f)?, f.frame(FrameSize::Small)?);
    let (cnode, other, null) = (f.cnode(RADIX)?, f.vspace()?.root(), f.null()?);
    let tcb = reader.0.tcb;
    tcb.set_ipc_buffer(0x1000, frame)?;
    // Each is right but for one argument.
    let good = configure(
        tcb,
        GuardData(0),
        [
            cnode.cptr(),
            other.cptr(),
            f.frame(FrameSize::Small)?.cptr(),
        ],
        0x2000,
    );
    good.with_cap(0, null).expect_error(IllegalOperation, &[])?;
    good.with_cap(1, null).expect_error(IllegalOperation, &[])?;
    good.with_cap(2, null).expect_error(IllegalOperation, &[])?;
    let caps = [null, cnode.cptr(), other.cptr()];
    let set_space = Invocation::new(tcb, label::TCB_SET_SPACE, &[0, 0], &caps);
    set_space
        .with_cap(2, null)
        .expect_error(IllegalOperation, &[])?;
    set_space
        .with_cap(0, cnode)
        .expect_error(InvalidCapability, &[1])?;
    ensure_buffer(f, reader, Some((frame, 0)))
}

/// The slots of the thread hold children of what was supplied: revoking that empties them.
fn installs_copies(f: &mut Fixture) -> TestResult {
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    let notification = f.notification()?;
    let cnode = cspace(f, notification)?;
    let raw = signaller(f, INDEX << 60)?;
    let (vspace, frame) = (f.vspace()?, f.frame(FrameSize::Small)?);
    f.code_in(vspace, raw.code, &CODE)?;
    let caps = [cnode.cptr(), vspace.root().cptr(), frame.cptr()];
    configure(raw.tcb, GuardData(0), caps, 0x1000).expect_ok(&[])?;
    let stopped = raw.run(f)?;
    raw.ensure_after_call(&stopped)?;
    let registers = call_registers(Syscall::Send, CPtr::new(INDEX << 60), 0, &[]);
    let again = |f: &Fixture| -> Result<Stopped, Failure> {
        let mut registers = registers;
        registers.set(RIP, raw.code);
        raw.tcb.write_registers(&registers, true)?;
        raw.stopped(f)
    };
    f.slot_of(cnode).revoke()?;
    let stopped = again(f)?;
    ensure_eq!(stopped.label, fault::CAP_FAULT);
    ensure_eq!(stopped.words, [raw.code, INDEX << 60, 0, invalid_root]);
    f.slot_of(vspace.root()).revoke()?;
    let stopped = again(f)?;
    ensure_eq!(stopped.label, fault::VM_FAULT);
    ensure_eq!(stopped.words[..2], [raw.code, raw.code]);
    Ok(())
}

fn set_buffer(f: &mut Fixture) -> TestResult {
    let (first, frame) = (reader(f)?, f.frame(FrameSize::Small)?);
    first.0.tcb.set_ipc_buffer(0x800, frame)?;
    ensure_buffer(f, first, Some((frame, 0x800)))?;
    // Address 0 removes it; revoking the frame does too.
    let (second, null) = (reader(f)?, f.null()?);
    second.0.tcb.set_ipc_buffer(0x800, frame)?;
    second.0.tcb.set_ipc_buffer(0, null)?;
    ensure_buffer(f, second, None)?;
    let third = reader(f)?;
    third.0.tcb.set_ipc_buffer(0x800, frame)?;
    f.slot_of(frame).revoke()?;
    ensure_buffer(f, third, None)
}

fn set_own_buffer(f: &mut Fixture) -> TestResult {
    // A thread without a buffer cannot name a frame; one with a buffer removes it.
    let done = f.done;
    let seen = shared::<core::sync::atomic::AtomicU64>();
    let tcb = f.tcb()?;
    let own = f.empty_slot()?;
    let helper = f.prepare(f.passive(100), move || {
        let remove = Invocation::new(
            own.capability::<Tcb>(),
            label::TCB_SET_IPC_BUFFER,
            &[0],
            &[tcb.cptr()],
        );
        let removed = remove.message();
        let answer = sys::call(own.index(), removed.info(), removed.registers());
        let read = MessageInfo::new(label::TCB_READ_REGISTERS, 0, 0, 2);
        let after = sys::call(tcb.address(), read, [0, 20, 0, 0]);
        let lengths = answer.info.label() << 32 | after.info.length() as u64;
        seen.store(lengths, core::sync::atomic::Ordering::Relaxed);
        done.signal();
    })?;
    own.copy_from(f.slot_of(helper), Rights::ALL)?;
    f.context(FULL)?.bind(helper)?;
    helper.resume()?;
    done.wait();
    ensure_eq!(seen.load(core::sync::atomic::Ordering::Relaxed), 4);
    Ok(())
}

fn set_space_installs(f: &mut Fixture) -> TestResult {
    const VADDR: u64 = 0x9000;
    let (notification, vspace) = (f.notification()?, f.vspace()?);
    let cnode = cspace(f, notification)?;
    f.code_in(vspace, VADDR, &CODE)?;
    let raw = signaller(f, INDEX)?;
    let handler = f.endpoint()?;
    raw.tcb.set_space(
        Some(f.badged(handler, 0x55)?),
        cnode,
        GuardData::new(0, 60),
        vspace.root(),
    )?;
    raw.tcb.write_first_registers(&[VADDR], true)?;
    let received = handler.recv(raw.reply);
    ensure_eq!(received.badge, 0x55);
    ensure_eq!(received.message.label(), fault::USER_EXCEPTION);
    ensure_eq!(
        received.message.word(0),
        VADDR + super::raw::INSTRUCTION_BYTES
    );
    // The buffer is kept.
    let (second, frame) = (reader(f)?, f.frame(FrameSize::Small)?);
    second.0.tcb.set_ipc_buffer(0x400, frame)?;
    second.0.tcb.set_space(
        Some(second.0.endpoint),
        boot::CNODE,
        GuardData(0),
        boot::VSPACE,
    )?;
    ensure_buffer(f, second, Some((frame, 0x400)))
}

fn set_space_removes_handler(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let raw = signaller(f, notification.address())?;
    raw.tcb
        .set_space(None, boot::CNODE, GuardData(0), boot::VSPACE)?;
    raw.tcb.resume()?;
    notification.wait();
    f.settle()?;
    // It has stopped for good, and nobody heard.
    ensure!(!raw.has_stopped(), "the removed handler got a fault");
    raw.tcb.resume()?;
    f.settle()?;
    ensure!(!raw.has_stopped(), "the removed handler got a fault");
    Ok(())
}
