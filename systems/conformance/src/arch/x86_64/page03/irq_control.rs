//! 03, sections 7.1 and 7.2: IRQControl_Get, GetIOAPIC, GetMSI.

use crate::prelude::*;

use crate::page03::common::{
    destination_refused, refuses_other_labels, truncated, works_in_first_phase,
    works_without_answer, Destination,
};

pub const CHECKS: &[Check] = &[
    check("03/7.1/illegal-with-an-ioapic", get),
    check("03/7.2/1-other-labels", other_labels),
    check("03/7.2/2-truncated", short_messages),
    check("03/7.2/3-vectors", vectors),
    check("03/7.2/4-vectors-in-use", vectors_in_use),
    check("03/7.2/5-destinations", destinations),
    check("03/7.2/6-ioapic-arguments", ioapic_arguments),
    check("03/7.2/6-msi-arguments", msi_arguments),
    check("03/7.2/order-of-the-checks", order),
    check("03/7.2/a-refusal-takes-no-vector", refusal),
    check("03/7.2/deleting-the-handler-frees-the-vector", freed),
    check("03/7.2/by-send", by_send),
    check("03/7.2/in-a-first-phase", in_first_phase),
];

/// Words of both messages.
mod word {
    pub const INDEX: usize = 0;
    pub const DEPTH: usize = 1;
    pub const IOAPIC: usize = 2;
    pub const PIN: usize = 3;
    pub const LEVEL: usize = 4;
    pub const POLARITY: usize = 5;
    pub const BUS: usize = 2;
    pub const DEVICE: usize = 3;
    pub const FUNCTION: usize = 4;
    pub const HANDLE: usize = 5;
    pub const VECTOR: usize = 6;
}

const AT: Destination = Destination {
    index: word::INDEX,
    depth: word::DEPTH,
    root: 0,
};
/// A vector that nothing else uses.
const VECTOR: u64 = 77;
/// A pin that no device drives.
const PIN: u64 = 22;
/// The largest vector.
const MAX_VECTOR: u64 = 107;

/// GetIOAPIC and GetMSI of the same vector into the same slot.
fn scene(f: &mut Fixture) -> Result<([Invocation; 2], Slot), Failure> {
    let slot = f.empty_slot()?;
    let get = |label, words: [u64; 4]| {
        let [a, b, c, d] = words;
        let words = [slot.index(), 64, a, b, c, d, VECTOR];
        Invocation::new(boot::IRQ_CONTROL, label, &words, &[boot::CNODE.cptr()])
    };
    let ioapic = get(arch_label::IRQ_CONTROL_GET_IOAPIC, [0, PIN, 0, 0]);
    let msi = get(arch_label::IRQ_CONTROL_GET_MSI, [0, 3, 1, 9]);
    Ok(([ioapic, msi], slot))
}

fn get(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    let words = [5, slot.index(), 64];
    let get = Invocation::new(
        boot::IRQ_CONTROL,
        label::IRQ_CONTROL_GET,
        &words,
        &[boot::CNODE.cptr()],
    );
    truncated(&get)?;
    for irq in [0, 5, 15, 16, 200, u64::MAX] {
        get.with_word(0, irq).expect_error(IllegalOperation, &[])?;
        get.with_word(0, irq)
            .with_word(2, 65)
            .expect_error(IllegalOperation, &[])?;
    }
    Ok(())
}

fn other_labels(f: &mut Fixture) -> TestResult {
    let ([ioapic, msi], _) = scene(f)?;
    let own = [label::IRQ_CONTROL_GET, ioapic.label, msi.label];
    refuses_other_labels(&ioapic, &own)
}

fn short_messages(f: &mut Fixture) -> TestResult {
    let (both, _) = scene(f)?;
    for get in both {
        truncated(&get)?;
        truncated(&get.with_word(word::VECTOR, 108))?;
        truncated(&get.with_word(word::DEPTH, 65))?;
    }
    Ok(())
}

fn vectors(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    for get in both {
        for vector in [108, 109, 255, 256, 1 << 32, u64::MAX - 16, u64::MAX] {
            get.with_word(word::VECTOR, vector)
                .expect_error(RangeError, &[0, MAX_VECTOR])?;
        }
        get.with_word(word::VECTOR, MAX_VECTOR).expect_ok(&[])?;
        slot.delete()?;
    }
    Ok(())
}

fn vectors_in_use(f: &mut Fixture) -> TestResult {
    let (both, _) = scene(f)?;
    for get in &both {
        let taken = f.empty_slot()?;
        get.with_word(word::INDEX, taken.index()).expect_ok(&[])?;
        for again in &both {
            again.expect_error(RevokeFirst, &[])?;
        }
        taken.delete()?;
    }
    Ok(())
}

fn destinations(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    for get in both {
        destination_refused(f, &get, AT)?;
        get.expect_ok(&[])?;
        slot.delete()?;
    }
    Ok(())
}

fn ioapic_arguments(f: &mut Fixture) -> TestResult {
    let ([get, _], slot) = scene(f)?;
    for (which, most) in [
        (word::IOAPIC, 0),
        (word::PIN, 23),
        (word::LEVEL, 1),
        (word::POLARITY, 1),
    ] {
        for above in [most + 1, 255, 1 << 32, u64::MAX] {
            get.with_word(which, above)
                .expect_error(RangeError, &[0, most])?;
        }
        // The largest is right, but a level on a pin that may be driven might never end.
        if which != word::PIN {
            get.with_word(which, most).expect_ok(&[])?;
            slot.delete()?;
        }
    }
    // In this order.
    let all = get
        .with_word(word::POLARITY, 2)
        .with_word(word::LEVEL, 3)
        .with_word(word::PIN, 24)
        .with_word(word::IOAPIC, 1);
    all.expect_error(RangeError, &[0, 0])?;
    let all = all.with_word(word::IOAPIC, 0);
    all.expect_error(RangeError, &[0, 23])?;
    all.with_word(word::PIN, PIN)
        .expect_error(RangeError, &[0, 1])
}

fn msi_arguments(f: &mut Fixture) -> TestResult {
    let ([_, get], slot) = scene(f)?;
    for (which, most) in [(word::BUS, 255), (word::DEVICE, 31), (word::FUNCTION, 7)] {
        for above in [most + 1, 1 << 32, u64::MAX] {
            get.with_word(which, above)
                .expect_error(RangeError, &[0, most])?;
        }
        get.with_word(which, most).expect_ok(&[])?;
        slot.delete()?;
    }
    let all = get
        .with_word(word::FUNCTION, 8)
        .with_word(word::DEVICE, 32)
        .with_word(word::BUS, 256);
    all.expect_error(RangeError, &[0, 255])?;
    let all = all.with_word(word::BUS, 0);
    all.expect_error(RangeError, &[0, 31])?;
    all.with_word(word::DEVICE, 0)
        .expect_error(RangeError, &[0, 7])?;
    // Any handle.
    get.with_word(word::HANDLE, u64::MAX).expect_ok(&[])
}

fn order(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    let taken = f.empty_slot()?;
    both[0]
        .with_word(word::INDEX, taken.index())
        .expect_ok(&[])?;
    let occupied = f.slot_of(f.done).index();
    for get in both {
        let bad_vector = get.with_word(word::VECTOR, 108).with_word(word::DEPTH, 65);
        bad_vector.expect_error(RangeError, &[0, MAX_VECTOR])?;
        for destination in [
            get.with_word(word::DEPTH, 65),
            get.with_word(word::INDEX, occupied),
        ] {
            destination.expect_error(RevokeFirst, &[])?;
        }
        let bad_device = get
            .with_word(word::VECTOR, VECTOR + 1)
            .with_word(word::IOAPIC, 256);
        bad_device
            .with_word(word::DEPTH, 65)
            .expect_error(RangeError, &[1, 64])?;
        bad_device
            .with_word(word::INDEX, occupied)
            .expect_error(DeleteFirst, &[])?;
    }
    ensure!(f.is_empty(slot)?, "a refused Get filled its slot");
    Ok(())
}

fn refusal(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    for get in both {
        get.with_word(word::BUS, 256).call();
        get.with_word(word::DEPTH, 65).call();
        ensure!(f.is_empty(slot)?, "a refused Get filled its slot");
        get.expect_ok(&[])?;
        slot.delete()?;
    }
    Ok(())
}

fn freed(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    let copy = f.empty_slot()?;
    for get in both {
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

/// Whether there is a handler in the slot; takes it back.
fn take_back(f: &mut Fixture, slot: Slot) -> Result<bool, Failure> {
    let made = !f.is_empty(slot)?;
    slot.delete()?;
    Ok(made)
}

fn by_send(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    for get in both {
        works_without_answer(f, &get, |f| take_back(f, slot))?;
    }
    Ok(())
}

fn in_first_phase(f: &mut Fixture) -> TestResult {
    let (both, slot) = scene(f)?;
    for get in both {
        works_in_first_phase(f, &get, |f| take_back(f, slot))?;
    }
    Ok(())
}
