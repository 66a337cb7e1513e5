//! 02, section 3: rights and badges.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::abi::syscall::Syscall;

use super::support::{operation, unmapped_pages};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/3/rights-of-endpoints-under-every-mask", endpoint_masks),
    check(
        "02/3/rights-of-notifications-under-every-mask",
        notification_masks,
    ),
    check("02/3/rights-of-replies-under-every-mask", reply_masks),
    check("02/3/rights-of-frames-under-every-mask", frame_masks),
    check(
        "02/3/other-capabilities-have-no-rights-to-lose",
        unmasked_kinds,
    ),
    check("02/3/bits-above-the-four-rights-are-ignored", other_bits),
    check("02/3/badges-have-64-bits", wide_badges),
    check(
        "02/3/a-cnode's-guard-is-truncated-to-its-size",
        guard_truncated,
    ),
    check("02/3/guard-and-radix-have-at-most-64-bits", guard_limit),
];

/// Rights, by the bits of the rights word.
const WRITE: u64 = 1;
const READ: u64 = 2;
const GRANT: u64 = 4;
const GRANT_REPLY: u64 = 8;

/// Counts the messages of an endpoint, and those that came with a capability.
#[derive(Default)]
struct Count {
    messages: AtomicU64,
    with_cap: AtomicU64,
}

/// The rights of an endpoint capability, as far as its use tells: without Write there is no
/// telling of Grant and GrantReply.
fn endpoint_rights(
    f: &mut Fixture,
    prober: Prober,
    count: &Count,
    cap: Endpoint,
) -> Result<u64, Failure> {
    let before = count.messages.load(Relaxed);
    let with_cap = count.with_cap.load(Relaxed);
    cap.nb_send(Message::EMPTY.with_caps(&[cap.cptr()]));
    let write = count.messages.load(Relaxed) - before;
    let grant = count.with_cap.load(Relaxed) - with_cap;
    let read = can_wait(f, prober, cap)?;
    // A fault handler needs Write and one of Grant and GrantReply (ABI 05, section 5).
    let handler = f.with_rights(cap, Rights(WRITE | READ | GRANT_REPLY))?;
    let valid = prober_handler_valid(f, handler)?;
    f.process.resources.delete(handler)?;
    Ok(write * WRITE + u64::from(read) * READ + grant * GRANT + u64::from(valid) * GRANT_REPLY)
}

fn prober_handler_valid(f: &mut Fixture, handler: Endpoint) -> Result<bool, Failure> {
    let tcb = f.tcb()?;
    let set = Invocation::new(tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &[handler.cptr()]);
    let valid = set.call().label == 0;
    f.process.resources.delete(tcb)?;
    Ok(valid)
}

/// Whether NBWait works on a capability; without the right to read it is a fault.
fn can_wait(f: &Fixture, prober: Prober, cap: impl Capability) -> Result<bool, Failure> {
    let stopped = prober.call_on(f, Syscall::NBWait, cap)?;
    if stopped.label != fault::CAP_FAULT {
        return Ok(true);
    }
    let missing = [cap.cptr().raw(), 1, 2, 0];
    ensure_eq!(stopped.words[1..], missing);
    Ok(false)
}

fn endpoint_masks(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let prober = f.prober()?;
    let count: &Count = shared();
    f.helper(255, move || loop {
        let received = endpoint.wait();
        count.messages.fetch_add(1, Relaxed);
        let caps = received.message.info().extra_caps() as u64;
        count.with_cap.fetch_add(caps, Relaxed);
    })?;
    for first in 0..16 {
        let source = f.with_rights(endpoint, Rights(first))?;
        for second in 0..16 {
            let copy = f.with_rights(source, Rights(second))?;
            let seen = endpoint_rights(f, prober, count, copy)?;
            let all = first & second;
            let expected = if all & WRITE == 0 { all & READ } else { all };
            ensure!(
                seen == expected,
                "rights {first:#b} masked by {second:#b} behave as {seen:#b}"
            );
            // All four are needed (02, section 6).
            ensure_eq!(f.slot_of(copy).cancel_badged_sends().is_ok(), all == 15);
            f.process.resources.delete(copy)?;
        }
    }
    Ok(())
}

fn notification_masks(f: &mut Fixture) -> TestResult {
    let notification = f.notification()?;
    let prober = f.prober()?;
    for first in 0..16 {
        let source = f.with_rights(notification, Rights(first))?;
        for second in 0..16 {
            let copy = f.with_rights(source, Rights(second))?;
            let signal = Invocation::new(copy, 0, &[], &[]);
            let all = first & second;
            if all & WRITE != 0 {
                signal.expect_ok(&[])?;
            } else {
                signal.expect_error(InvalidCapability, &[0])?;
            }
            ensure_eq!(can_wait(f, prober, copy)?, all & READ != 0);
            f.process.resources.delete(copy)?;
        }
    }
    Ok(())
}

fn reply_masks(f: &mut Fixture) -> TestResult {
    let (endpoint, reply, notification) = (f.endpoint()?, f.reply()?, f.notification()?);
    let seen: &AtomicU64 = shared();
    let slot = f.empty_slot()?;
    f.helper(255, move || {
        sandglass::thread_block::set_receive_slot(slot);
        loop {
            let answer = endpoint.call(Message::EMPTY);
            seen.store(answer.info().extra_caps() as u64, Relaxed);
            // Not there if nothing came.
            let _ = slot.delete();
        }
    })?;
    for first in 0..16 {
        let source = f.with_rights(reply, Rights(first))?;
        for second in 0..16 {
            let copy = f.with_rights(source, Rights(second))?;
            endpoint.recv(reply);
            seen.store(u64::MAX, Relaxed);
            copy.send(Message::EMPTY.with_caps(&[notification.cptr()]));
            let granted = u64::from(first & second & GRANT != 0);
            ensure_eq!(seen.load(Relaxed), granted);
            f.process.resources.delete(copy)?;
        }
    }
    Ok(())
}

fn frame_masks(f: &mut Fixture) -> TestResult {
    let frame = f.frame(FrameSize::Small)?;
    let prober = f.prober()?;
    let address = unmapped_pages(f, 1)?;
    let (space, write_back) = (f.process.space.vspace(), Attributes::WriteBack);
    // What can be loaded and stored, by the rights of the source and the mask.
    for (rights, source_can) in [(3, (true, true)), (2, (true, false)), (0, (false, false))] {
        let source = f.with_rights(frame, Rights(rights))?;
        for mask in 0..16 {
            let copy = f.with_rights(source, Rights(mask))?;
            copy.map(space.root(), address, Rights::READ_WRITE, write_back)?;
            let read = mask & READ != 0 && source_can.0;
            let write = read && mask & WRITE != 0 && source_can.1;
            let seen = (prober.can_load(f, address)?, prober.can_store(f, address)?);
            ensure!(
                seen == (read, write),
                "a frame of rights {rights:#b} masked by {mask:#b}: (load, store) is {seen:?}"
            );
            f.process.resources.delete(copy)?;
        }
    }
    Ok(())
}

fn unmasked_kinds(f: &mut Fixture) -> TestResult {
    use super::support::{kind_of, originals, Kind};
    let with_rights = [Kind::Endpoint, Kind::Notification, Kind::Reply, Kind::Frame];
    for (kind, original) in originals(f, 0)? {
        if with_rights.contains(&kind) {
            continue;
        }
        let copy = f.with_rights(original, Rights::NONE)?;
        ensure_eq!(kind_of(f, copy)?, kind);
    }
    // Such copies can all that their originals can.
    let target = f.tcb()?;
    let tcb = f.with_rights(target, Rights::NONE)?;
    tcb.set_priority(boot::TCB, 7)?;
    let cnode = f.cnode(1)?;
    let weak = f.with_rights(cnode, Rights::NONE)?;
    let (endpoint, slot) = (f.endpoint()?, weak.slot_at(0, 1));
    slot.copy_from(f.slot_of(endpoint), Rights::ALL)?;
    slot.cancel_badged_sends()?;
    let context = f.context(FULL)?;
    f.with_rights(context, Rights::NONE)?.bind(tcb)?;
    let untyped = f.untyped(4)?;
    let weak = f.with_rights(untyped, Rights::NONE)?;
    let slot = f.empty_slot()?;
    weak.retype(ObjectType::Endpoint, slot, 1)?;
    Ok(slot.cancel_badged_sends()?)
}

fn other_bits(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let source = f.slot_of(endpoint);
    for (label, more) in [(label::CNODE_COPY, vec![]), (label::CNODE_MINT, vec![0])] {
        for (rights, all) in [(!0, true), (!0b1111, false), (15, true), (7 | 16, false)] {
            let slot = f.empty_slot()?;
            let mut words = vec![rights];
            words.extend(&more);
            operation(label, slot, source, &words).expect_ok(&[])?;
            ensure_eq!(slot.cancel_badged_sends().is_ok(), all);
        }
    }
    Ok(())
}

fn wide_badges(f: &mut Fixture) -> TestResult {
    let (endpoint, notification) = (f.endpoint()?, f.notification()?);
    let badges = [1, 1 << 27, 1 << 28, 1 << 31, 1 << 32, 1 << 63, u64::MAX];
    for badge in badges {
        f.badged(notification, badge)?.signal();
        ensure_eq!(notification.poll(), badge);
        let sender = f.badged(endpoint, badge)?;
        f.helper(255, move || sender.send(Message::EMPTY))?;
        ensure_eq!(endpoint.wait().badge, badge);
    }
    Ok(())
}

fn guard_truncated(f: &mut Fixture) -> TestResult {
    let cnode = f.cnode(1)?;
    let source = f.slot_of(cnode);
    for size in [1u32, 3, 29, 57, 63] {
        let slot = f.empty_slot()?;
        // The value's field has 58 bits.
        let data = !0 << 6 | u64::from(size);
        operation(label::CNODE_MINT, slot, source, &[0, data]).expect_ok(&[])?;
        let guard = (u64::MAX >> 6) & ((1u64 << size) - 1);
        let depth = size + 1;
        let minted: CNode = slot.capability();
        let inside = |guard: u64| minted.slot_at(guard << 1, depth as u8).delete();
        inside(guard)?;
        ensure!(inside(guard ^ 1).is_err());
        let wrong = Invocation::new(minted, label::CNODE_DELETE, &[0, depth.into()], &[]);
        wrong.expect_error(FailedLookup, &[0, 4, depth.into(), guard, size.into()])?;
    }
    Ok(())
}

fn guard_limit(f: &mut Fixture) -> TestResult {
    for radix in [1u32, 2, 5, 10] {
        let cnode = f.cnode(radix)?;
        let source = f.slot_of(cnode);
        for size in 0..64u32 {
            let slot = f.empty_slot()?;
            let mint = operation(label::CNODE_MINT, slot, source, &[0, size.into()]);
            if size + radix <= 64 {
                mint.expect_ok(&[])?;
                let minted: CNode = slot.capability();
                minted.slot_at(0, (size + radix) as u8).delete()?;
            } else {
                mint.expect_error(IllegalOperation, &[])?;
            }
        }
    }
    Ok(())
}
