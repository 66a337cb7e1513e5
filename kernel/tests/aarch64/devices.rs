//! Interrupts of the GIC, and those that software generates (03, sections 7.1 and 7.3 to 7.5; 02, section 5.2).

use sandglass_abi::invocation as common;
use sandglass_kernel::arch::abi::devices::Trigger;
use sandglass_kernel::arch::abi::Line;
use sandglass_kernel::{CoreId, CORES};

use super::*;

fn get(w: &mut World, id: u64) -> Result<u64, Refused> {
    let slot = w.fresh_slot();
    let words = [id, slot, 64];
    w.invoke(
        slot::IRQ_CONTROL,
        common::IRQ_CONTROL_GET,
        &words,
        &[slot::CNODE],
    )?;
    Ok(slot)
}

fn get_trigger(w: &mut World, id: u64, trigger: u64) -> Result<u64, Refused> {
    let slot = w.fresh_slot();
    let words = [id, trigger, slot, 64];
    let label = label::IRQ_CONTROL_GET_TRIGGER;
    w.invoke(slot::IRQ_CONTROL, label, &words, &[slot::CNODE])?;
    Ok(slot)
}

#[test]
fn interrupts_are_those_of_the_gic_but_for_the_kernels_own() {
    let mut w = World::new();
    for id in 0..160 {
        let is_reserved = id == 27 || (CORES > 1 && id < 2);
        match get(&mut w, id) {
            Ok(handler) => {
                assert!(!is_reserved, "{id} is the kernel's");
                let irq = w.cap(handler).irq().expect("a handler");
                let line = Line {
                    id: id as u16,
                    core: CoreId::BOOT,
                    trigger: None,
                };
                assert_eq!(w.k.machine.route_of(irq), Some(line));
                assert!(!w.k.machine.is_masked(irq));
                assert!(CORES > 1 || u64::from(irq) == id);
                assert_eq!(error(get(&mut w, id)).0, ErrorNumber::RevokeFirst, "once");
                w.delete(handler).expect("deleted");
                assert!(w.k.machine.is_masked(irq));
                let again = get(&mut w, id).expect("free again");
                w.delete(again).expect("deleted");
            }
            Err(refused) => {
                assert!(is_reserved, "{id}");
                assert_eq!(refused.error, ErrorNumber::RevokeFirst);
            }
        }
    }
    for beyond in [160, 1019, u64::MAX] {
        let range = (ErrorNumber::RangeError, vec![0, 159]);
        assert_eq!(error(get(&mut w, beyond)), range);
        assert_eq!(error(get_trigger(&mut w, beyond, 0)), range);
    }
}

#[test]
fn a_trigger_is_told_the_machine() {
    let mut w = World::new();
    for (id, word, trigger) in [
        (40, 0, Trigger::Level),
        (41, 1, Trigger::Edge),
        (42, 9, Trigger::Edge),
    ] {
        let handler = get_trigger(&mut w, id, word).expect("issued");
        let irq = w.cap(handler).irq().expect("a handler");
        let line = w.k.machine.route_of(irq).expect("a line");
        assert_eq!((line.id, line.trigger), (id as u16, Some(trigger)));
        assert_eq!(
            error(get_trigger(&mut w, id, word)).0,
            ErrorNumber::RevokeFirst
        );
    }
    let private = get_trigger(&mut w, 30, 0);
    match CORES {
        1 => assert!(private.is_ok()),
        _ => assert_eq!(error(private).0, ErrorNumber::IllegalOperation),
    }
    let slot = w.fresh_slot();
    let short = w.invoke(
        slot::IRQ_CONTROL,
        label::IRQ_CONTROL_GET_TRIGGER,
        &[50, 0, slot],
        &[slot::CNODE],
    );
    assert_eq!(error(short).0, ErrorNumber::TruncatedMessage);
    let taken = [50, 0, slot::TCB, 64];
    let taken = w.invoke(
        slot::IRQ_CONTROL,
        label::IRQ_CONTROL_GET_TRIGGER,
        &taken,
        &[slot::CNODE],
    );
    assert_eq!(error(taken).0, ErrorNumber::DeleteFirst);
    let other = w.invoke(slot::IRQ_CONTROL, 57, &[0; 7], &[slot::CNODE]);
    assert_eq!(error(other).0, ErrorNumber::IllegalOperation);
}

/// On several cores, label 56 names a core.
#[cfg(feature = "smp")]
#[test]
fn private_interrupts_are_each_cores_own() {
    let mut w = World::new();
    let get = |w: &mut World, id: u64, core: u64| {
        let slot = w.fresh_slot();
        // Of the depth only eight bits count (03, section 7.4).
        let words = [id, 1, slot, 64 + 256, core];
        let label = label::IRQ_CONTROL_GET_TRIGGER_CORE;
        w.invoke(slot::IRQ_CONTROL, label, &words, &[slot::CNODE])?;
        Ok::<_, Refused>(slot)
    };
    for id in [30, 50] {
        let mut irqs = Vec::new();
        for core in CoreId::all() {
            match get(&mut w, id, core.index() as u64) {
                Ok(handler) => {
                    let irq = w.cap(handler).irq().expect("a handler");
                    let line = w.k.machine.route_of(irq).expect("a line");
                    assert_eq!((line.id, line.core), (id as u16, core));
                    irqs.push(irq);
                }
                Err(refused) => assert_eq!(refused.error, ErrorNumber::RevokeFirst),
            }
        }
        let expected = if id < 32 { CORES } else { 1 };
        assert_eq!(irqs.len(), expected, "{id}");
    }
    let absent = error(get(&mut w, 51, CORES as u64));
    assert_eq!(absent.0, ErrorNumber::InvalidArgument);
    let beyond = error(get(&mut w, 160, CORES as u64));
    assert_eq!(beyond.0, ErrorNumber::RangeError, "this comes first");
    assert_eq!(error(get(&mut w, 27, 1)).0, ErrorNumber::RevokeFirst);
}

#[cfg(not(feature = "smp"))]
mod sgis {
    use super::*;
    use sandglass_kernel::mem::Kind;

    fn issue(w: &mut World, sgi: u64, target: u64) -> Result<u64, Refused> {
        let slot = w.fresh_slot();
        let words = [sgi, target, slot, 64];
        let label = label::IRQ_CONTROL_ISSUE_SGI_SIGNAL;
        w.invoke(slot::IRQ_CONTROL, label, &words, &[slot::CNODE])?;
        Ok(slot)
    }

    #[test]
    fn whatever_is_asked_of_it_raises_the_interrupt() {
        let mut w = World::new();
        for (sgi, target) in [(0, 0), (15, 7)] {
            let signal = issue(&mut w, sgi, target).expect("issued");
            for label in [0, 1, 56, 1000] {
                w.invoke(signal, label, &[], &[]).expect("raised");
                assert_eq!(w.k.machine.take_sgis(), [(sgi as u8, target as u32)]);
            }
        }
        let range = (ErrorNumber::RangeError, vec![0, 15]);
        assert_eq!(error(issue(&mut w, 16, 8)), range);
        let target = (ErrorNumber::InvalidArgument, vec![1]);
        assert_eq!(error(issue(&mut w, 15, 8)), target);
        assert_eq!(w.k.machine.take_sgis(), []);
    }

    /// Copies are derived from what was issued, and that from IRQ control; what was issued for the same interrupt by
    /// itself is not (02, section 5.2, rule 3).
    #[test]
    fn each_signal_has_its_own_copies() {
        let mut w = World::new();
        let first = issue(&mut w, 3, 0).expect("issued");
        let copy = w.copy(first, ALL).expect("copied");
        let second = issue(&mut w, 3, 0).expect("issued again");
        let other = w.copy(second, ALL).expect("copied");
        w.revoke(second).expect("revoked");
        assert!(w.cap(other).is_null());
        assert!(w.cap(first).is(Kind::SgiSignal) && w.cap(copy).is(Kind::SgiSignal));
        w.revoke(copy).expect("revoked");
        assert!(!w.cap(first).is_null(), "a copy has no children");
        w.revoke(first).expect("revoked");
        assert!(w.cap(copy).is_null() && !w.cap(first).is_null());
        w.delete(first).expect("deleted");
        w.revoke(slot::IRQ_CONTROL).expect("revoked");
        assert!(w.cap(second).is_null(), "IRQ control is the parent of all");
    }
}

/// 01, section 7. What is no core, or no software-generated interrupt, is refused in words.
#[cfg(all(feature = "smp", feature = "debug"))]
#[test]
fn a_debug_call_raises_an_interrupt_at_a_core() {
    use sandglass_abi::message::MessageInfo;
    use sandglass_abi::syscall::Syscall;

    let mut w = World::new();
    let mut send = |core, number| {
        let info = MessageInfo::from_raw(number);
        w.syscall(Syscall::DebugSendIPI, core, 0, info, &[]);
        (
            w.k.machine.take_sgis(),
            w.k.machine.take_console().is_empty(),
        )
    };
    for (core, number) in [(0, 0), (1, 15), (CORES as u64 - 1, 7)] {
        assert_eq!(
            send(core, number),
            (vec![(number as u8, core as u32)], true)
        );
    }
    for (core, number) in [(CORES as u64, 0), (u64::MAX, 0), (0, 16), (0, u64::MAX)] {
        assert_eq!(send(core, number), (vec![], false), "{core} {number}");
    }
}
