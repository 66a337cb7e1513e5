//! 03, sections 7.1 and 7.3 to 7.5: IRQControl_Get, GetTrigger, GetTriggerCore, IssueSGISignal.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use conformance_kit::arch::Timer;
use sandglass::cap::IrqHandler;

use super::super::page06;
use crate::page03::common::{
    destination_refused, refuses_other_labels, truncated, works_in_first_phase,
    works_without_answer, Destination,
};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/7.1/other-labels", other_labels),
    check("03/7.1/1-truncated", |f| {
        each(f, |_, get, _| truncated(get))
    }),
    check("03/7.1/2-numbers", numbers),
    check("03/7.1/3-numbers-in-use", in_use),
    check("03/7.1/3-numbers-that-the-kernel-keeps", reserved),
    check("03/7.1/4-destinations", destinations),
    check("03/7.1/order-of-the-checks", order),
    check("03/7.1/deleting-the-handler-frees-the-number", freed),
    check("03/7.1/by-send-and-in-a-first-phase", without_answer),
    check("03/7.3/either-trigger", triggers),
    check("03/7.3/private-interrupts", private_with_trigger),
    check("03/7.4/refusals", of_a_core),
    check("03/7.4/depths-have-eight-bits", of_a_core_depth),
    check("03/7.4/an-interrupt-of-each-core", arrives_at_each_core),
    check("03/7.5/refusals", signal_refusals),
    check("03/7.5/a-signal-raises-its-interrupt", signal_raises),
    check("03/7.5/any-label-signals", signal_labels),
    check("03/7.5/with-several-cores-there-are-none", no_signals),
];

/// A shared interrupt that nothing raises.
const IRQ: u64 = 111;
/// The highest interrupt of the profile's machine, and that of `xlnx-zcu102`.
const MAX: u64 = 159;
const MAX_ZYNQMP: u64 = 187;
const TIMER: u64 = 27;

/// The highest interrupt that a program can name.
fn max(f: &Fixture) -> Result<u64, Failure> {
    let is_zynqmp = page06::tree(f)?.has("xlnx,zynqmp");
    Ok(if is_zynqmp { MAX_ZYNQMP } else { MAX })
}

/// Get and GetTrigger of the same interrupt into the same slot, and where their words for a slot are.
fn scene(f: &mut Fixture) -> Result<([(Invocation, Destination); 2], Slot), Failure> {
    let slot = f.empty_slot()?;
    let get = |label, words: &[u64], index| {
        let get = Invocation::new(boot::IRQ_CONTROL, label, words, &[boot::CNODE.cptr()]);
        let depth = index + 1;
        let root = 0;
        (get, Destination { index, depth, root })
    };
    let plain = get(label::IRQ_CONTROL_GET, &[IRQ, slot.index(), 64], 1);
    let words = [IRQ, 1, slot.index(), 64];
    let with_trigger = get(arch_label::IRQ_CONTROL_GET_TRIGGER, &words, 2);
    Ok(([plain, with_trigger], slot))
}

/// Does this with each of the two.
fn each(
    f: &mut Fixture,
    mut what: impl FnMut(&mut Fixture, &Invocation, Destination) -> TestResult,
) -> TestResult {
    let (both, _) = scene(f)?;
    for (get, at) in &both {
        what(f, get, *at)?;
    }
    Ok(())
}

fn other_labels(f: &mut Fixture) -> TestResult {
    let own = [
        label::IRQ_CONTROL_GET,
        arch_label::IRQ_CONTROL_GET_TRIGGER,
        arch_label::IRQ_CONTROL_ISSUE_SGI_SIGNAL,
    ];
    each(f, |_, get, _| refuses_other_labels(get, &own))
}

fn numbers(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    let max = max(f)?;
    for (get, at) in &both {
        for number in [max + 1, 255, 1 << 16 | IRQ, 1 << 32 | IRQ, u64::MAX] {
            let wrong = get.with_word(0, number);
            wrong.expect_error(RangeError, &[0, max])?;
            // Before the destination.
            wrong
                .with_word(at.depth, 65)
                .expect_error(RangeError, &[0, max])?;
        }
        for number in [max, 32] {
            get.with_word(0, number).expect_ok(&[])?;
            slot.delete()?;
        }
    }
    Ok(())
}

fn in_use(f: &mut Fixture) -> TestResult {
    let (both, _) = scene(f)?;
    for (get, at) in &both {
        let taken = f.empty_slot()?;
        get.with_word(at.index, taken.index()).expect_ok(&[])?;
        for (again, at) in &both {
            again.expect_error(RevokeFirst, &[])?;
            // Before the destination.
            again
                .with_word(at.depth, 65)
                .expect_error(RevokeFirst, &[])?;
        }
        taken.delete()?;
    }
    Ok(())
}

/// The timer's, and with several cores those by which they call each other.
fn reserved(f: &mut Fixture) -> TestResult {
    let ([(get, _), _], slot) = scene(f)?;
    let several = f.is_for_several_cores();
    get.with_word(0, TIMER).expect_error(RevokeFirst, &[])?;
    for number in [0, 1, 2, 15, 16, 26, 28, 31] {
        let get = get.with_word(0, number);
        if several && number < 2 {
            get.expect_error(RevokeFirst, &[])?;
        } else {
            get.expect_ok(&[])?;
            get.expect_error(RevokeFirst, &[])?;
            slot.delete()?;
        }
    }
    Ok(())
}

fn destinations(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    for (get, at) in both {
        destination_refused(f, &get, at)?;
        get.expect_ok(&[])?;
        slot.delete()?;
    }
    Ok(())
}

fn order(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    let occupied = f.slot_of(f.done).index();
    for (get, at) in &both {
        let all = get.with_word(0, max(f)? + 1).with_word(at.depth, 65);
        truncated(&all)?;
        let in_slot = get.with_word(at.index, occupied);
        in_slot.with_word(0, TIMER).call();
        in_slot
            .with_word(at.depth, 65)
            .expect_error(RangeError, &[1, 64])?;
        in_slot.expect_error(DeleteFirst, &[])?;
    }
    ensure!(f.is_empty(slot)?, "a refused Get filled its slot");
    // No refusal took the number.
    both[0].0.expect_ok(&[])
}

fn freed(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    let copy = f.empty_slot()?;
    for (get, _) in both {
        get.expect_ok(&[])?;
        copy.copy_from(slot, Rights::ALL)?;
        slot.delete()?;
        // Not with the first of two capabilities.
        get.expect_error(RevokeFirst, &[])?;
        copy.delete()?;
        get.expect_ok(&[])?;
        slot.delete()?;
    }
    Ok(())
}

fn without_answer(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    let made = |f: &mut Fixture| {
        let made = !f.is_empty(slot)?;
        slot.delete()?;
        Ok(made)
    };
    for (get, _) in both {
        works_without_answer(f, &get, made)?;
        works_in_first_phase(f, &get, made)?;
    }
    Ok(())
}

fn triggers(f: &mut Fixture) -> TestResult {
    let ([_, (get, _)], slot) = scene(f)?;
    for trigger in [0, 1, 2, 1 << 32, u64::MAX] {
        get.with_word(1, trigger).expect_ok(&[])?;
        slot.delete()?;
    }
    Ok(())
}

/// With several cores they are asked for with the core.
fn private_with_trigger(f: &mut Fixture) -> TestResult {
    let ([_, (get, at)], slot) = scene(f)?;
    for number in [TIMER, 16, 30, 31] {
        let get = get.with_word(0, number);
        if f.is_for_several_cores() {
            get.expect_error(IllegalOperation, &[])?;
            get.with_word(at.depth, 65)
                .expect_error(IllegalOperation, &[])?;
        } else if number == TIMER {
            get.expect_error(RevokeFirst, &[])?;
        } else {
            get.expect_ok(&[])?;
            slot.delete()?;
        }
    }
    Ok(())
}

/// GetTriggerCore of a number, for a core.
fn get_of(number: u64, core: u64, slot: Slot) -> Invocation {
    let words = [number, 1, slot.index(), 64, core];
    let label = arch_label::IRQ_CONTROL_GET_TRIGGER_CORE;
    Invocation::new(boot::IRQ_CONTROL, label, &words, &[boot::CNODE.cptr()])
}

fn needs_several(f: &Fixture) -> TestResult {
    if f.is_for_several_cores() {
        return Ok(());
    }
    Err(Failure::skip("kernels for one core signal by this label"))
}

/// Only what a core that there is not is called is judged, and not which argument is named.
fn of_a_core(f: &mut Fixture) -> TestResult {
    needs_several(f)?;
    let slot = f.empty_slot()?;
    let max = max(f)?;
    get_of(max + 1, 99, slot).expect_error(RangeError, &[0, max])?;
    for core in [4, 99, 1 << 32, u64::MAX] {
        for number in [IRQ, TIMER, 30] {
            let answer = get_of(number, core, slot).call();
            ensure_eq!(
                (answer.label, answer.words.len()),
                (InvalidArgument as u64, 1)
            );
        }
    }
    for core in 0..f.boot.cores() {
        for number in [0, 1, TIMER] {
            get_of(number, core, slot).expect_error(RevokeFirst, &[])?;
        }
        // A private one is another on each core; a shared one is the same.
        for number in [2, 15, 30, IRQ] {
            get_of(number, core, slot).expect_ok(&[])?;
            let other = f.empty_slot()?;
            get_of(number, core, other).expect_error(RevokeFirst, &[])?;
            let elsewhere = (core + 1) % f.boot.cores();
            let again = get_of(number, elsewhere, other);
            if elsewhere == core || number == IRQ {
                again.expect_error(RevokeFirst, &[])?;
            } else {
                again.expect_ok(&[])?;
                other.delete()?;
            }
            slot.delete()?;
        }
    }
    let occupied = f.slot_of(f.done);
    get_of(IRQ, 0, occupied).expect_error(DeleteFirst, &[])?;
    get_of(IRQ, 0, slot)
        .with_word(3, 65)
        .expect_error(RangeError, &[1, 64])
}

fn of_a_core_depth(f: &mut Fixture) -> TestResult {
    needs_several(f)?;
    let slot = f.empty_slot()?;
    get_of(IRQ, 0, slot)
        .with_word(3, 1 << 8 | 64)
        .expect_ok(&[])
}

/// One thread on each core signals it to itself: by its physical timer, a private interrupt, which the kernel that the suite
/// runs on leaves to user level.
fn arrives_at_each_core(f: &mut Fixture) -> TestResult {
    needs_several(f)?;
    let (cores, ticks_per_us) = (f.needs_cores(1)?, f.ticks(1));
    for core in 0..cores {
        let (slot, signal) = (f.empty_slot()?, f.notification()?);
        // Level-triggered, as the timer is.
        get_of(30, core, slot).with_word(1, 0).expect_ok(&[])?;
        let handler: IrqHandler = slot.capability();
        let badged = f.badged(signal, 1 << core)?;
        handler.set_notification(badged)?;
        let seen: &'static AtomicU64 = shared();
        let params = ThreadParams {
            sched_context: Some(f.context_on(core, FULL)?),
            ..f.passive(100)
        };
        f.spawn(params, move || {
            let timer = Timer::new(ticks_per_us);
            timer.set(100);
            let badge = signal.wait();
            timer.end();
            seen.store(badge, Relaxed);
        })?;
        if core == 0 {
            // The check's own.
            f.sleep(500)?;
        }
        f.eventually("the timer of each core", || seen.load(Relaxed) != 0)?;
        ensure_eq!(seen.load(Relaxed), 1 << core);
        slot.delete()?;
    }
    Ok(())
}

/// IssueSGISignal.
fn issue(number: u64, target: u64, slot: Slot) -> Invocation {
    let words = [number, target, slot.index(), 64];
    let label = arch_label::IRQ_CONTROL_ISSUE_SGI_SIGNAL;
    Invocation::new(boot::IRQ_CONTROL, label, &words, &[boot::CNODE.cptr()])
}

fn needs_one(f: &Fixture) -> TestResult {
    if f.is_for_several_cores() {
        return Err(Failure::skip("kernels for several cores have no signals"));
    }
    Ok(())
}

fn signal_refusals(f: &mut Fixture) -> TestResult {
    needs_one(f)?;
    let slot = f.empty_slot()?;
    let at = Destination {
        index: 2,
        depth: 3,
        root: 0,
    };
    let right = issue(5, 0, slot);
    truncated(&right.with_word(0, 16))?;
    for number in [16, 255, 1 << 32, u64::MAX] {
        let wrong = right.with_word(0, number).with_word(1, u64::MAX);
        wrong.expect_error(RangeError, &[0, 15])?;
    }
    // Beyond what either interrupt controller has; a GICv2 has eight targets.
    for target in [1 << 32, u64::MAX] {
        let wrong = right.with_word(1, target).with_word(3, 65);
        wrong.expect_error(InvalidArgument, &[1])?;
    }
    let is_gic3 = crate::arch::page06::tree(f)?
        .registers("arm,gic-v3")
        .is_some();
    for target in [8, u64::from(u32::MAX)] {
        let wide = right.with_word(1, target);
        if is_gic3 {
            wide.expect_ok(&[])?;
            slot.delete()?;
        } else {
            wide.expect_error(InvalidArgument, &[1])?;
        }
    }
    destination_refused(f, &right, at)?;
    // As many as wanted, of the same.
    right.expect_ok(&[])?;
    right.with_word(2, f.empty_slot()?.index()).expect_ok(&[])
}

/// A capability that signals to the first core, the handler of its interrupt, and what that signals with badge 1.
fn signals(f: &mut Fixture, number: u64) -> Result<(CPtr, IrqHandler, Notification), Failure> {
    needs_one(f)?;
    let (slot, handler) = (f.empty_slot()?, f.empty_slot()?);
    issue(number, 0, slot).expect_ok(&[])?;
    boot::IRQ_CONTROL.get(number, handler)?;
    let notification = f.notification()?;
    let badged = f.badged(notification, 1)?;
    let handler: IrqHandler = handler.capability();
    handler.set_notification(badged)?;
    // One may have waited, of somebody who has signalled while nobody had the handler; it is gone, or comes now.
    f.settle()?;
    handler.ack()?;
    f.settle()?;
    while notification.poll() != 0 {
        handler.ack()?;
        f.settle()?;
    }
    Ok((slot.capability(), handler, notification))
}

fn signal_raises(f: &mut Fixture) -> TestResult {
    for number in [0, 5, 15] {
        let (signal, handler, notification) = signals(f, number)?;
        for _ in 0..3 {
            ensure_eq!(notification.poll(), 0);
            Invocation::new(signal, label::INVALID, &[], &[]).expect_ok(&[])?;
            f.settle()?;
            ensure_eq!(notification.poll(), 1);
            handler.ack()?;
        }
    }
    Ok(())
}

fn signal_labels(f: &mut Fixture) -> TestResult {
    let (signal, handler, notification) = signals(f, 7)?;
    for number in [0, 1, label::IRQ_HANDLER_ACK, 56, 255, (1 << 52) - 1] {
        Invocation::new(signal, number, &[1, 2, 3], &[]).expect_ok(&[])?;
        f.settle()?;
        ensure_eq!((number, notification.poll()), (number, 1));
        handler.ack()?;
    }
    let any = Invocation::new(signal, 9, &[], &[]);
    let raised = |f: &mut Fixture| {
        f.settle()?;
        let raised = notification.poll() == 1;
        handler.ack()?;
        Ok(raised)
    };
    works_without_answer(f, &any, raised)?;
    works_in_first_phase(f, &any, raised)
}

fn no_signals(f: &mut Fixture) -> TestResult {
    needs_several(f)?;
    // The label is that of GetTriggerCore, whose fifth word is the core.
    let slot = f.empty_slot()?;
    get_of(5, 0, slot).expect_ok(&[])?;
    let wrong = f.endpoint()?;
    let set = label::IRQ_HANDLER_SET_NOTIFICATION;
    let made: CPtr = slot.capability();
    Invocation::new(made, set, &[], &[wrong.cptr()]).expect_error(InvalidCapability, &[0])
}
