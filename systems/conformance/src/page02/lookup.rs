//! 02, section 4: CSpace lookup, by a model of the page's procedure.

use conformance_kit::arch::order;
use sandglass::abi::syscall::Syscall;

use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/4/a-root-that-is-no-cnode", invalid_root),
    check("02/4/depths-beyond-1-to-64-are-out-of-range", depth_range),
    check("02/4/every-depth-of-guarded-cnodes", every_depth),
    check("02/4/a-guard-or-radix-that-needs-all-bits", limits),
    check("02/4/64-levels", sixty_four_levels),
    check("02/4/only-the-low-bits-of-an-index-count", low_bits),
    check("02/4/system-calls-ignore-bits-that-remain", early_success),
    check("02/4/system-calls-report-failed-walks", failing_walks),
    check("02/4/an-empty-cspace-is-an-invalid-root", empty_cspace),
    check("02/4/an-empty-slot-is-an-invalid-capability", empty_slots),
    check("02/4/a-failing-extra-capability-fails-the-call", extra_caps),
];

/// A CNode of a chain: guard, guard size and radix. A slot of each holds the next one.
#[derive(Clone, Copy, Debug)]
struct Level {
    guard: u64,
    size: u32,
    radix: u32,
}

const fn level(guard: u64, size: u32, radix: u32) -> Level {
    Level { guard, size, radix }
}

/// How a walk ends.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Walk {
    /// At the slot of the chain's CNode `level` with this index; this many bits remain.
    Slot { level: usize, index: u64, left: u32 },
    /// Failure type and details.
    Failed(Vec<u64>),
}

/// The procedure of the page over a chain, in which slot `next` of each CNode holds the next one.
fn walk(chain: &[Level], next: &[u64], cptr: u64, depth: u32) -> Walk {
    let field = |above: u32, count: u32| match count {
        0 => 0,
        64 => cptr,
        _ => cptr >> (above - count) & ((1 << count) - 1),
    };
    let mut left = depth;
    for (at, level) in chain.iter().enumerate() {
        if level.size > left || field(left, level.size) != level.guard {
            return Walk::Failed(vec![4, left.into(), level.guard, level.size.into()]);
        }
        let bits = level.size + level.radix;
        if bits > left {
            return Walk::Failed(vec![3, left.into(), bits.into()]);
        }
        let index = field(left - level.size, level.radix);
        left -= bits;
        if left == 0 || next.get(at) != Some(&index) {
            return Walk::Slot {
                level: at,
                index,
                left,
            };
        }
    }
    Walk::Failed(vec![1])
}

/// Makes the CNodes of a chain; returns its first capability. In each but the last, slot `next`
/// holds the next one.
fn build(f: &mut Fixture, chain: &[Level], next: &[u64]) -> Result<CNode, Failure> {
    let mut below: Option<CNode> = None;
    for (at, level) in chain.iter().enumerate().rev() {
        let cnode = f.cnode(level.radix)?;
        let slot = f.empty_slot()?;
        let guard = GuardData::new(level.guard, level.size);
        slot.mint_from(f.slot_of(cnode), Rights::ALL, guard.raw())?;
        if let Some(below) = below {
            let link = cnode.slot_at(next[at], level.radix as u8);
            link.copy_from(f.slot_of(below), Rights::ALL)?;
        }
        below = Some(slot.capability());
    }
    below.ok_or_else(|| Failure::from("an empty chain"))
}

/// What a CNode operation answers to a walk.
fn expected(walk: &Walk, is_source: u64) -> Option<Vec<u64>> {
    match walk {
        Walk::Slot { left: 0, .. } => None,
        Walk::Slot { left, .. } => Some(vec![is_source, 3, u64::from(*left), 0]),
        Walk::Failed(details) => {
            let mut words = vec![is_source];
            words.extend(details);
            Some(words)
        }
    }
}

/// Compares what the kernel finds by CNode operations, as target and as source, with the model.
fn compare(f: &mut Fixture, chain: &[Level], next: &[u64], cptrs: &[u64]) -> TestResult {
    let root = build(f, chain, next)?;
    let free = f.empty_slot()?;
    for &cptr in cptrs {
        for depth in 1..=64 {
            let found = walk(chain, next, cptr, depth);
            // CancelBadgedSends finds its slot, and then no endpoint.
            let words = [cptr, u64::from(depth)];
            let target = Invocation::new(root, label::CNODE_CANCEL_BADGED_SENDS, &words, &[]);
            match expected(&found, 0) {
                None => target.expect_error(IllegalOperation, &[])?,
                Some(words) => target.expect_error(FailedLookup, &words)?,
            }
            let copy = Invocation::new(
                boot::CNODE,
                label::CNODE_COPY,
                &[free.index(), 64, cptr, depth.into(), 15],
                &[root.cptr()],
            );
            match (expected(&found, 1), &found) {
                (Some(words), _) => copy.expect_error(FailedLookup, &words)?,
                (None, Walk::Slot { level, index, .. }) if next.get(*level) == Some(index) => {
                    copy.expect_ok(&[])?;
                    free.delete()?;
                }
                // An empty slot: its error says the depth.
                (None, _) => copy.expect_error(FailedLookup, &[1, 2, depth.into()])?,
            }
        }
    }
    Ok(())
}

fn invalid_root(f: &mut Fixture) -> TestResult {
    let (tcb, slot) = (f.tcb()?, f.empty_slot()?);
    let null: CPtr = f.null()?;
    for root in [tcb.cptr(), null, boot::IRQ_CONTROL.cptr()] {
        // As a source, and the root is looked at before the depth.
        for depth in [64, 0, 65] {
            let words = [slot.index(), 64, 0, depth, 15];
            let copy = Invocation::new(boot::CNODE, label::CNODE_COPY, &words, &[root]);
            copy.expect_error(FailedLookup, &[1, 1])?;
            // As a destination.
            let memory = f.untyped(12)?;
            let words = [0, depth];
            let caps = [memory.cptr(), root];
            let label = arch_label::ASID_CONTROL_MAKE_POOL;
            let make = Invocation::new(boot::ASID_CONTROL, label, &words, &caps);
            make.expect_error(FailedLookup, &[0, 1])?;
        }
    }
    Ok(())
}

fn depth_range(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    let target = Invocation::new(boot::CNODE, label::CNODE_DELETE, &[slot.index(), 64], &[]);
    target.expect_ok(&[])?;
    let words = [slot.index(), 64, slot.index(), 64, 15];
    let copy = Invocation::new(
        boot::CNODE,
        label::CNODE_COPY,
        &words,
        &[boot::CNODE.cptr()],
    );
    copy.expect_error(FailedLookup, &[1, 2, 64])?;
    for depth in [0, 65, 127, 128, 256, 256 + 64, 1 << 32, u64::MAX] {
        target
            .with_word(1, depth)
            .expect_error(RangeError, &[1, 64])?;
        copy.with_word(1, depth)
            .expect_error(RangeError, &[1, 64])?;
        copy.with_word(3, depth)
            .expect_error(RangeError, &[1, 64])?;
    }
    Ok(())
}

fn every_depth(f: &mut Fixture) -> TestResult {
    let chain = [
        level(0b101, 3, 4),
        level(0, 0, 2),
        level(0xbeef, 16, 3),
        level(0, 1, 1),
    ];
    let next = [0b1001, 0b10, 0b111];
    // Right-aligned to each of these numbers of bits, the path leads as far as they reach.
    let full: u64 = 0b101_1001 << 2 | 0b10;
    let full = (full << 16 | 0xbeef) << 3 | 0b111;
    let full = full << 2 | 0b01;
    let bits = 7 + 2 + 19 + 2;
    let mut cptrs = vec![full, full << (64 - bits), !full, 0, u64::MAX];
    // A wrong bit at each place in turn.
    cptrs.extend((0..bits).map(|bit| (full ^ 1 << bit) << (64 - bits)));
    cptrs.extend((0..bits).map(|bit| full >> bit));
    compare(f, &chain, &next, &cptrs)
}

fn limits(f: &mut Fixture) -> TestResult {
    // The guard's value has 58 bits in the data word.
    let value = 0x0234_5678_9abc_def0;
    // A guard of 63 bits, the widest.
    let guard = value >> 1;
    compare(
        f,
        &[level(guard, 63, 1)],
        &[],
        &[value, !value, value ^ 1 << 63],
    )?;
    // Guard and radix have 64 bits.
    let guard = value >> 10;
    compare(
        f,
        &[level(guard, 54, 10)],
        &[],
        &[value, 0, value ^ 1 << 10],
    )?;
    // A guard that fills what the first CNode leaves, but for a bit.
    let chain = [level(0, 0, 1), level(value, 62, 1)];
    compare(
        f,
        &chain,
        &[1],
        &[1 << 63 | value << 1, value << 1, 1 << 63],
    )?;
    // A second level that can never be passed with 64 bits.
    let chain = [level(0, 4, 4), level(0, 0, 8), level(0, 60, 1)];
    compare(f, &chain, &[0, 0], &[0, 1 << 56, 1 << 48])
}

fn sixty_four_levels(f: &mut Fixture) -> TestResult {
    let chain = [level(0, 0, 1); 64];
    let next: Vec<u64> = (0..63).map(|at| at & 1).collect();
    let path = 0x5555_5555_5555_5555;
    compare(f, &chain, &next, &[path, !path, path ^ 1, path ^ 1 << 20])?;
    let chain = [level(1, 1, 1); 32];
    let next = [1; 31];
    compare(f, &chain, &next, &[u64::MAX, u64::MAX - 1, u64::MAX - 2])
}

fn low_bits(f: &mut Fixture) -> TestResult {
    let (cnode, endpoint) = (f.cnode(3)?, f.endpoint()?);
    cnode
        .slot_at(5, 3)
        .copy_from(f.slot_of(endpoint), Rights::ALL)?;
    for above in [0, 8, 1 << 32, u64::MAX << 3] {
        cnode.slot_at(5 | above, 3).cancel_badged_sends()?;
    }
    // With 64 bits all of them do.
    let slot = f.slot_of(endpoint);
    let (index, depth) = (slot.index(), slot.depth());
    boot::CNODE.slot_at(index, depth).cancel_badged_sends()?;
    ensure!(boot::CNODE
        .slot_at(index | 1 << 63, depth)
        .cancel_badged_sends()
        .is_err());
    Ok(())
}

/// A prober whose CSpace begins at this CNode capability, whose own guard is kept.
fn prober_in(f: &mut Fixture, root: CNode) -> Result<Prober, Failure> {
    let prober = f.prober()?;
    prober.move_to(root)?;
    Ok(prober)
}

fn early_success(f: &mut Fixture) -> TestResult {
    // Eight bits lead to a notification; whatever follows them, they do.
    let chain = [level(0b1100, 4, 4)];
    let root = build(f, &chain, &[])?;
    let notification = f.notification()?;
    let slot = root.slot_at(0b1100_0011, 8);
    slot.mint_from(f.slot_of(notification), Rights::ALL, 9)?;
    let prober = prober_in(f, root)?;
    for rest in [0, 1, 0x00ff_ffff_ffff_ffff, 0x0012_3456_789a_bcde] {
        let cptr = CPtr::new(0b1100_0011 << 56 | rest);
        let stopped = prober.call_on(f, Syscall::NBSend, cptr)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        ensure_eq!(notification.poll(), 9);
        // Call answers, and receiving finds the notification, too.
        let stopped = prober.call_on(f, Syscall::Call, cptr)?;
        ensure_eq!(stopped.registers.get(order::RSI), 0);
        let stopped = prober.call_on(f, Syscall::NBWait, cptr)?;
        ensure_eq!(stopped.registers.get(order::RDI), 9);
    }
    Ok(())
}

fn failing_walks(f: &mut Fixture) -> TestResult {
    let chain = [level(0x5a, 8, 4), level(0xff, 52, 4)];
    let next = [3];
    let root = build(f, &chain, &next)?;
    let prober = prober_in(f, root)?;
    let notification = f.notification()?;
    let inside = root.slot_at(0x5a4, 12);
    inside.copy_from(f.slot_of(notification), Rights::ALL)?;
    let good = 0x5a4 << 52;
    let cptrs = [
        0,
        0x5b3 << 52,
        0x5a3 << 52,
        0x5a3 << 52 | 0xff << 4,
        u64::MAX,
    ];
    for cptr in cptrs {
        let Walk::Failed(details) = walk(&chain, &next, cptr, 64) else {
            return Err(Failure::from(format!("{cptr:#x} leads to a slot")));
        };
        let cap_fault = |phase: u64| {
            let mut words = vec![cptr, phase];
            words.extend(&details);
            words
        };
        for call in [Syscall::Send, Syscall::Call] {
            let stopped = prober.call_on(f, call, CPtr::new(cptr))?;
            ensure_eq!(stopped.label, fault::CAP_FAULT);
            ensure_eq!(stopped.words[1..], cap_fault(0));
        }
        let stopped = prober.call_on(f, Syscall::NBSend, CPtr::new(cptr))?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
        let receiving = [
            Syscall::Recv,
            Syscall::NBRecv,
            Syscall::Wait,
            Syscall::NBWait,
        ];
        for call in receiving {
            let stopped = prober.call_on(f, call, CPtr::new(cptr))?;
            ensure_eq!(stopped.label, fault::CAP_FAULT);
            ensure_eq!(stopped.words[1..], cap_fault(1));
        }
    }
    let stopped = prober.call_on(f, Syscall::NBSend, CPtr::new(good))?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    ensure_eq!(notification.poll(), 0);
    Ok(())
}

fn empty_cspace(f: &mut Fixture) -> TestResult {
    let original = f.cnode(4)?;
    let root = f.badged(original, GuardData::new(0, 60).raw())?;
    let prober = prober_in(f, root)?;
    // The thread's own capability is derived from the original, and goes with it.
    f.slot_of(original).revoke()?;
    for (call, phase) in [(Syscall::Send, 0), (Syscall::Call, 0), (Syscall::NBWait, 1)] {
        let stopped = prober.call_on(f, call, CPtr::new(77))?;
        ensure_eq!(stopped.label, fault::CAP_FAULT);
        ensure_eq!(stopped.words[1..], [77, phase, 1]);
    }
    let stopped = prober.call_on(f, Syscall::NBSend, CPtr::new(77))?;
    ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    Ok(())
}

fn empty_slots(f: &mut Fixture) -> TestResult {
    let root = build(f, &[level(0, 60, 4)], &[])?;
    let prober = prober_in(f, root)?;
    let empty = CPtr::new(7);
    let answer = prober.call_on(f, Syscall::Call, empty)?;
    // InvalidCapability(0): label 2, one word.
    ensure_eq!(answer.label, fault::USER_EXCEPTION);
    ensure_eq!(answer.registers.get(order::RSI), 2 << 12 | 1);
    ensure_eq!(answer.registers.get(order::R10), 0);
    for call in [Syscall::Send, Syscall::NBSend] {
        let stopped = prober.call_on(f, call, empty)?;
        ensure_eq!(stopped.label, fault::USER_EXCEPTION);
    }
    for call in [
        Syscall::Recv,
        Syscall::NBRecv,
        Syscall::Wait,
        Syscall::NBWait,
    ] {
        let stopped = prober.call_on(f, call, empty)?;
        ensure_eq!(stopped.label, fault::CAP_FAULT);
        ensure_eq!(stopped.words[1..], [7, 1, 2, 0]);
    }
    Ok(())
}

fn extra_caps(f: &mut Fixture) -> TestResult {
    let endpoint = f.endpoint()?;
    let handler = f.endpoint()?;
    let outside = CPtr::new(1 << 40);
    let null: CPtr = f.null()?;
    let params = ThreadParams {
        fault_handler: Some(handler),
        ..f.active(253)?
    };
    // An extra capability that is null is fine; one beyond the guard of the root is a fault.
    f.spawn(params, move || {
        let message = Message::EMPTY.with_caps(&[null, outside]);
        endpoint.nb_send(message);
        endpoint.call(message);
    })?;
    let reply = f.reply()?;
    let stopped = handler.recv(reply).message;
    ensure_eq!(stopped.label(), fault::CAP_FAULT);
    let words: Vec<u64> = (1..stopped.len()).map(|i| stopped.word(i)).collect();
    ensure_eq!(words, [1 << 40, 0, 4, 64, 0, ROOT_GUARD]);
    Ok(())
}
