//! 02, sections 1 and 2: object types and sizes.

use conformance_kit::arch::FIRST_INVALID_TYPE;

use super::support::{free_bytes, kind_of, retype, Kind};
use crate::arch::page02::{HUGE_FRAME, TYPES};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("02/1/every-type-number-makes-its-object", type_numbers),
    check("02/1/numbers-behind-the-table-are-no-types", invalid_types),
    check("02/2/objects-take-their-size", sizes),
    check("02/2/a-1-GiB-frame-takes-its-size", huge_frame),
    check(
        "02/2/the-size-argument-of-fixed-sizes-is-ignored",
        ignored_sizes,
    ),
    check("02/2/limits-of-the-size-argument", size_limits),
    check("02/2/objects-are-aligned-to-their-size", alignment),
    check("02/2/a-cnode-of-radix-r-has-2^r-slots", cnode_slots),
    check("02/2/an-asid-pool-takes-an-untyped-of-2^12", asid_pool),
];

/// Number, size argument, kind, size as log2 bytes.
const COMMON: &[(u64, u64, Kind, u32)] = &[
    (0, 9, Kind::Untyped, 9),
    (1, 0, Kind::Tcb, 11),
    (2, 0, Kind::Endpoint, 4),
    (3, 0, Kind::Notification, 6),
    (4, 3, Kind::CNode, 8),
    (5, 9, Kind::SchedContext, 9),
    (6, 0, Kind::Reply, 5),
];

/// Those and the architecture's, but for frames of 1 GiB.
fn types() -> impl Iterator<Item = &'static (u64, u64, Kind, u32)> {
    COMMON.iter().chain(TYPES)
}

fn type_numbers(f: &mut Fixture) -> TestResult {
    for &(number, size, kind, bits) in types() {
        let memory = f.untyped(bits)?;
        let slot = f.empty_slot()?;
        retype(memory, number, size, slot, 1).expect_ok(&[])?;
        let made = kind_of(f, slot.capability::<CPtr>())?;
        ensure!(made == kind, "type {number} made {made:?}");
    }
    Ok(())
}

fn invalid_types(f: &mut Fixture) -> TestResult {
    let memory = f.untyped(12)?;
    let slot = f.empty_slot()?;
    for number in [FIRST_INVALID_TYPE, 15, 16, 0x80, 1 << 32, u64::MAX] {
        // The type is looked at before the size.
        retype(memory, number, 64, slot, 1).expect_error(InvalidArgument, &[0])?;
    }
    ensure!(f.is_empty(slot)?);
    Ok(())
}

fn sizes(f: &mut Fixture) -> TestResult {
    for &(number, size, kind, bits) in types() {
        let whole = 1u64 << (bits + 2);
        let memory = f.untyped(bits + 2)?;
        ensure_eq!(free_bytes(f, memory)?, whole);
        let first = f.empty_slots(5)?;
        for taken in 1..=3 {
            let slot = boot::CNODE.slot(first.index() + taken - 1);
            retype(memory, number, size, slot, 1).expect_ok(&[])?;
            let left = free_bytes(f, memory)?;
            let expected = whole - (taken << bits);
            ensure!(
                left == expected,
                "after {taken} of {kind:?} {left} of {whole} bytes are left, not {expected}"
            );
        }
        let rest = boot::CNODE.slot(first.index() + 3);
        retype(memory, number, size, rest, 2).expect_error(NotEnoughMemory, &[1 << bits])?;
        retype(memory, number, size, rest, 1).expect_ok(&[])?;
        let slot = boot::CNODE.slot(first.index() + 4);
        retype(memory, number, size, slot, 1).expect_error(NotEnoughMemory, &[0])?;
    }
    Ok(())
}

fn huge_frame(f: &mut Fixture) -> TestResult {
    let memory = f.device_untyped(31)?;
    ensure_eq!(free_bytes(f, memory)?, 1 << 31);
    let slot = f.empty_slot()?;
    retype(memory, HUGE_FRAME, 0, slot, 1).expect_ok(&[])?;
    ensure_eq!(kind_of(f, slot.capability::<CPtr>())?, Kind::Frame);
    ensure_eq!(free_bytes(f, memory)?, 1 << 30);
    Ok(())
}

fn ignored_sizes(f: &mut Fixture) -> TestResult {
    let fixed = |number: u64| ![0, 4, 5].contains(&number);
    for &(number, _, kind, bits) in types().filter(|row| fixed(row.0)) {
        for size in [0, 1, 48, 63] {
            let memory = f.untyped(bits)?;
            let slot = f.empty_slot()?;
            retype(memory, number, size, slot, 1).expect_ok(&[])?;
            ensure_eq!(kind_of(f, slot.capability::<CPtr>())?, kind);
            ensure_eq!(free_bytes(f, memory)?, 0);
            f.slot_of(memory).revoke()?;
            let other = retype(memory, number, 64, slot, 1);
            other.expect_error(RangeError, &[0, 47])?;
            f.slot_of(memory).delete()?;
        }
    }
    Ok(())
}

fn size_limits(f: &mut Fixture) -> TestResult {
    let memory = f.untyped(12)?;
    let slot = f.empty_slot()?;
    let with = |number, size| retype(memory, number, size, slot, 1);
    // Sizes of 2^47 are in range, but more than there is.
    for (number, size) in [(0, 47), (4, 42), (5, 47)] {
        with(number, size).expect_error(NotEnoughMemory, &[0x1000])?;
        for beyond in [size + 1, 63, 64, 1 << 32, u64::MAX, u64::MAX - 4] {
            with(number, beyond).expect_error(RangeError, &[0, 47])?;
        }
    }
    for (number, too_small, smallest) in [(0, 3, 4), (4, 0, 1), (5, 6, 7)] {
        with(number, too_small).expect_error(InvalidArgument, &[1])?;
        with(number, 0).expect_error(InvalidArgument, &[1])?;
        with(number, smallest).expect_ok(&[])?;
        f.slot_of(memory).revoke()?;
    }
    Ok(())
}

fn alignment(f: &mut Fixture) -> TestResult {
    for &(number, size, _, bits) in types().filter(|row| row.3 > 4) {
        let memory = f.untyped(bits + 2)?;
        let slots = f.empty_slots(3)?;
        let second = boot::CNODE.slot(slots.index() + 1);
        // 16 bytes, then the object at the next multiple of its size.
        retype(memory, object::ENDPOINT, 0, slots, 1).expect_ok(&[])?;
        retype(memory, number, size, second, 1).expect_ok(&[])?;
        ensure_eq!(free_bytes(f, memory)?, 2 << bits);
    }
    // Frames tell where they are: consecutive, from the start of the untyped.
    let memory = f.untyped(14)?;
    let slots = f.empty_slots(4)?;
    retype(memory, arch_object::PAGE, 0, slots, 4).expect_ok(&[])?;
    let mut expected = None;
    for index in slots.index()..slots.index() + 4 {
        let address = Frame::at(index).physical_address()?;
        ensure_eq!(address, *expected.get_or_insert(address & !0x3fff));
        expected = Some(address + 0x1000);
    }
    Ok(())
}

fn cnode_slots(f: &mut Fixture) -> TestResult {
    for radix in [1, 2, 5, 8] {
        let cnode = f.cnode(radix)?;
        let endpoint = f.endpoint()?;
        let source = f.slot_of(endpoint);
        for index in 0..1 << radix {
            let slot = cnode.slot_at(index, radix as u8);
            slot.copy_from(source, Rights::ALL)?;
        }
        // The index one beyond is the first again: only the low bits count.
        let copy = super::support::operation(
            label::CNODE_COPY,
            cnode.slot_at(1 << radix, radix as u8),
            source,
            &[15],
        );
        copy.expect_error(DeleteFirst, &[])?;
        copy.with_word(1, u64::from(radix) + 1).expect_error(
            FailedLookup,
            // The first bit leads to the endpoint, and one is left.
            &[0, LookupFailureType::DepthMismatch as u64, 1, 0],
        )?;
    }
    Ok(())
}

fn asid_pool(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    for (bits, fits) in [(11, false), (13, false), (12, true)] {
        let memory = f.untyped(bits)?;
        let make = Invocation::new(
            boot::ASID_CONTROL,
            arch_label::ASID_CONTROL_MAKE_POOL,
            &[slot.index(), 64],
            &[memory.cptr(), boot::CNODE.cptr()],
        );
        if fits {
            make.expect_ok(&[])?;
            ensure_eq!(free_bytes(f, memory)?, 0);
        } else {
            make.expect_error(InvalidCapability, &[1])?;
        }
    }
    ensure_eq!(kind_of(f, slot.capability::<CPtr>())?, Kind::AsidPool);
    Ok(())
}
