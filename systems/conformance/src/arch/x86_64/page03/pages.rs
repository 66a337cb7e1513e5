//! 03, section 8.3: Page_Map, Page_Unmap and Page_GetAddress.

use crate::prelude::*;

use super::common::{refuses_other_labels, truncated, works_in_first_phase, works_without_answer};
use super::paging::{no_roots, root_above, LEVELS, VADDR};
use super::stale::{replaced_root, stale_root};

pub const CHECKS: &[Check] = &[
    check("03/8.3/other-labels", other_labels),
    check("03/8.3/map-1-truncated", map_truncated),
    check("03/8.3/map-2-no-assigned-root", map_no_root),
    check("03/8.3/map-3-of-a-mapped-page", map_mapped),
    check("03/8.3/map-3-addresses", map_addresses),
    check("03/8.3/map-4-stale-identifiers", map_stale),
    check("03/8.3/map-5-alignment", map_alignment),
    check("03/8.3/map-6-missing-tables", map_missing),
    check("03/8.3/map-7-tables-in-the-way", map_in_the_way),
    check("03/8.3/map-order-of-the-checks", map_order),
    check("03/8.3/map-overwrites-another-page", map_overwrites),
    check("03/8.3/map-again-changes-the-rights", map_again),
    check("03/8.3/unmap-always-succeeds", unmap_succeeds),
    check("03/8.3/unmap-leaves-another-page", unmap_other),
    check("03/8.3/get-address", get_address),
    check("03/8.3/by-send-and-in-a-first-phase", without_answer),
];

const READ_WRITE: u64 = 3;
const READ: u64 = 2;

/// Bits of a frame, and the levels of paging structures that it needs.
const SIZES: [(ObjectType, u32, usize); 3] = [
    (ObjectType::Page, 12, 3),
    (ObjectType::LargePage, 21, 2),
    (ObjectType::HugePage, 30, 1),
];

fn map(frame: CPtr, root: CPtr) -> Invocation {
    Invocation::new(
        frame,
        arch_label::PAGE_MAP,
        &[VADDR, READ_WRITE, 0],
        &[root],
    )
}

fn unmap(frame: CPtr) -> Invocation {
    Invocation::new(frame, arch_label::PAGE_UNMAP, &[], &[])
}

/// A frame of this size; the largest is of device memory, which nothing touches.
fn frame(f: &mut Fixture, kind: ObjectType) -> Result<CPtr, Failure> {
    if kind != ObjectType::HugePage {
        return Ok(f.make(kind)?);
    }
    let devices = f.boot.untypeds().filter(|initial| initial.is_device);
    let largest = devices.max_by_key(|initial| initial.size_bits);
    let device = largest.ok_or_else(|| Failure::from("there is no device memory"))?;
    let slot = f.empty_slot()?;
    device.untyped.retype(kind, slot, 1)?;
    Ok(slot.capability())
}

/// For each size: bits, and Map of a new frame that nothing keeps from being mapped.
fn scenes(f: &mut Fixture) -> Result<Vec<(u32, Invocation)>, Failure> {
    let mut scenes = vec![];
    for (kind, bits, levels) in SIZES {
        let root = root_above(f, levels)?;
        scenes.push((bits, map(frame(f, kind)?, root)));
    }
    Ok(scenes)
}

fn other_labels(f: &mut Fixture) -> TestResult {
    let own = [
        arch_label::PAGE_MAP,
        arch_label::PAGE_UNMAP,
        arch_label::PAGE_GET_ADDRESS,
    ];
    for (_, map) in scenes(f)? {
        refuses_other_labels(&map, &own)?;
    }
    Ok(())
}

fn map_truncated(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        truncated(&map)?;
        truncated(&map.with_cap(0, f.me))?;
        map.expect_ok(&[])?;
    }
    Ok(())
}

fn map_no_root(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        for mapped in [false, true] {
            for root in no_roots(f)? {
                let map = map.with_cap(0, root);
                map.expect_error(InvalidCapability, &[1])?;
                map.with_word(0, u64::MAX)
                    .expect_error(InvalidCapability, &[1])?;
            }
            if !mapped {
                map.expect_ok(&[])?;
            }
        }
    }
    Ok(())
}

fn map_mapped(f: &mut Fixture) -> TestResult {
    for (bits, map) in scenes(f)? {
        map.expect_ok(&[])?;
        let other = f.vspace()?.root();
        let elsewhere = map.with_cap(0, other);
        elsewhere.expect_error(InvalidCapability, &[1])?;
        // Before the address.
        elsewhere
            .with_word(0, VADDR + 1)
            .expect_error(InvalidCapability, &[1])?;
        for vaddr in [VADDR + (1 << bits), VADDR + 1, 0, u64::MAX] {
            map.with_word(0, vaddr)
                .expect_error(InvalidArgument, &[0])?;
        }
        // A copy is not mapped.
        let copy = f.copy(map.cap)?;
        map.on(copy).expect_ok(&[])?;
    }
    Ok(())
}

fn map_addresses(f: &mut Fixture) -> TestResult {
    const END: u64 = 1 << 47;
    for (bits, map) in scenes(f)? {
        let size = 1 << bits;
        let beyond = [
            END,
            1 << 63,
            u64::MAX,
            u64::MAX - size + 1,
            END - size,
            END - 1,
        ];
        for vaddr in beyond {
            map.with_word(0, vaddr)
                .expect_error(InvalidArgument, &[0])?;
        }
        // The last address for a page of this size; its tables are missing.
        let missing = LookupFailureType::MissingCapability as u64;
        map.with_word(0, END - 2 * size)
            .expect_error(FailedLookup, &[0, missing, 39])?;
        map.with_word(0, END - size - 1)
            .expect_error(AlignmentError, &[])?;
    }
    Ok(())
}

fn map_stale(f: &mut Fixture) -> TestResult {
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    let (stale, replaced) = (stale_root(f)?, replaced_root(f)?);
    for (_, map) in scenes(f)? {
        // `replaced_root` gave the number of the pool to another.
        let map = map.with_cap(0, stale);
        map.expect_error(InvalidCapability, &[1])?;
        map.with_cap(0, replaced)
            .expect_error(InvalidCapability, &[1])?;
        let gone = map.with_cap(0, stale_root(f)?);
        gone.expect_error(FailedLookup, &[0, invalid_root])?;
        // After the address, before the alignment.
        gone.with_word(0, 1 << 47)
            .expect_error(InvalidArgument, &[0])?;
        gone.with_word(0, VADDR + 1)
            .expect_error(FailedLookup, &[0, invalid_root])?;
    }
    Ok(())
}

fn map_alignment(f: &mut Fixture) -> TestResult {
    for (bits, map) in scenes(f)? {
        for offset in [1, 0x800, 1 << (bits - 1), (1 << bits) - 1] {
            map.with_word(0, VADDR + offset)
                .expect_error(AlignmentError, &[])?;
            // Before the tables.
            map.with_word(0, (1 << 40) + offset)
                .expect_error(AlignmentError, &[])?;
        }
        map.expect_ok(&[])?;
    }
    Ok(())
}

fn map_missing(f: &mut Fixture) -> TestResult {
    let missing = LookupFailureType::MissingCapability as u64;
    for (kind, _, levels) in SIZES {
        let frame = frame(f, kind)?;
        for (present, first_missing) in LEVELS[..levels].iter().enumerate() {
            let map = map(frame, root_above(f, present)?);
            let bits = u64::from(first_missing.coverage);
            map.expect_error(FailedLookup, &[0, missing, bits])?;
        }
    }
    // A larger page where a table should be.
    for (large, small, levels, bits) in [
        (ObjectType::LargePage, ObjectType::Page, 2, 21),
        (ObjectType::HugePage, ObjectType::Page, 1, 30),
        (ObjectType::HugePage, ObjectType::LargePage, 1, 30),
    ] {
        let root = root_above(f, levels)?;
        map(frame(f, large)?, root).expect_ok(&[])?;
        map(frame(f, small)?, root).expect_error(FailedLookup, &[0, missing, bits])?;
    }
    // The same for a page table, and a directory.
    let root = root_above(f, 1)?;
    map(frame(f, ObjectType::HugePage)?, root).expect_ok(&[])?;
    LEVELS[2]
        .map(f, root)?
        .expect_error(FailedLookup, &[0, missing, 30])?;
    LEVELS[1].map(f, root)?.expect_error(DeleteFirst, &[])
}

fn map_in_the_way(f: &mut Fixture) -> TestResult {
    for (kind, levels) in [(ObjectType::LargePage, 3), (ObjectType::HugePage, 2)] {
        let root = root_above(f, levels)?;
        map(frame(f, kind)?, root).expect_error(DeleteFirst, &[])?;
    }
    Ok(())
}

fn map_order(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        // Misaligned and beyond the end; misaligned and without tables.
        map.with_word(0, (1 << 47) + 1)
            .expect_error(InvalidArgument, &[0])?;
        map.with_word(0, (1 << 39) + 1)
            .expect_error(AlignmentError, &[])?;
        let all = map.with_cap(0, f.me).with_word(0, u64::MAX);
        all.expect_error(InvalidCapability, &[1])?;
        truncated(&all)?;
    }
    Ok(())
}

/// The first word of a frame, marked.
fn marked(f: &mut Fixture, mark: u64) -> Result<CPtr, Failure> {
    Ok(f.code_frame(&mark.to_le_bytes())?.cptr())
}

/// Tables at an address of the check's own address space.
const OWN: u64 = 0x4a_0000_0000;

fn own_tables(f: &mut Fixture) -> TestResult {
    let process = &mut f.process;
    let frame = process.resources.frame(FrameSize::Small)?;
    process.space.vspace().map(
        &mut process.resources,
        frame,
        OWN,
        Rights::ALL,
        Attributes::WriteBack,
    )?;
    frame.unmap()?;
    Ok(())
}

fn map_own(frame: CPtr) -> Invocation {
    map(frame, boot::VSPACE.cptr()).with_word(0, OWN)
}

fn read_own() -> u64 {
    // SAFETY: the caller has mapped a page there.
    unsafe { (OWN as *const u64).read_volatile() }
}

fn map_overwrites(f: &mut Fixture) -> TestResult {
    own_tables(f)?;
    let (first, second) = (marked(f, 1)?, marked(f, 2)?);
    map_own(first).expect_ok(&[])?;
    ensure_eq!(read_own(), 1);
    map_own(second).expect_ok(&[])?;
    ensure_eq!(read_own(), 2);
    // The first still says that it is mapped, so that mapping it there puts it back.
    map_own(first)
        .with_word(0, OWN + 0x1000)
        .expect_error(InvalidArgument, &[0])?;
    map_own(first).expect_ok(&[])?;
    ensure_eq!(read_own(), 1);
    Ok(())
}

fn map_again(f: &mut Fixture) -> TestResult {
    own_tables(f)?;
    let (frame, prober) = (marked(f, 7)?, f.prober()?);
    let map = map_own(frame);
    for (rights, load, store) in [
        (READ_WRITE, true, true),
        (READ, true, false),
        (0, false, false),
        (1, false, false),
        (READ_WRITE, true, true),
    ] {
        map.with_word(1, rights).expect_ok(&[])?;
        ensure_eq!((rights, prober.can_load(f, OWN)?), (rights, load));
        ensure_eq!((rights, prober.can_store(f, OWN)?), (rights, store));
    }
    unmap(frame).expect_ok(&[])?;
    ensure!(!prober.can_load(f, OWN)?, "an unmapped page can be read");
    Ok(())
}

fn unmap_succeeds(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        unmap(map.cap).expect_ok(&[])?;
        map.expect_ok(&[])?;
        unmap(map.cap).expect_ok(&[])?;
        unmap(map.cap).expect_ok(&[])?;
        // It may now be mapped elsewhere.
        let missing = LookupFailureType::MissingCapability as u64;
        map.with_word(0, 1 << 40)
            .expect_error(FailedLookup, &[0, missing, 39])?;
        map.expect_ok(&[])?;
        // Also when the address space is gone.
        f.slot_of(map.caps[0]).delete()?;
        unmap(map.cap).expect_ok(&[])?;
    }
    Ok(())
}

fn unmap_other(f: &mut Fixture) -> TestResult {
    own_tables(f)?;
    let (first, second) = (marked(f, 1)?, marked(f, 2)?);
    map_own(first).expect_ok(&[])?;
    map_own(second).expect_ok(&[])?;
    unmap(first).expect_ok(&[])?;
    ensure_eq!(read_own(), 2);
    // Nor does its deletion take the other's mapping.
    map_own(first).expect_ok(&[])?;
    map_own(second).expect_ok(&[])?;
    f.slot_of(first).delete()?;
    ensure_eq!(read_own(), 2);
    Ok(())
}

fn get_address(f: &mut Fixture) -> TestResult {
    let initial = f
        .boot
        .untypeds()
        .find(|initial| initial.is_device && initial.size_bits > 12);
    let initial = initial.ok_or_else(|| Failure::from("there is no device memory"))?;
    let slots = f.empty_slots(2)?;
    initial.untyped.retype(ObjectType::Page, slots, 2)?;
    for i in 0..2 {
        let frame: CPtr = boot::CNODE.slot(slots.index() + i).capability();
        let get = Invocation::new(frame, arch_label::PAGE_GET_ADDRESS, &[], &[]);
        get.expect_ok(&[initial.paddr + i * 0x1000])?;
    }
    // Copies and mappings change nothing.
    for (bits, map) in scenes(f)? {
        let get = Invocation::new(map.cap, arch_label::PAGE_GET_ADDRESS, &[1], &[]);
        let address = get.ok()?;
        ensure_eq!(address[0] % (1 << bits), 0);
        map.expect_ok(&[])?;
        get.expect_ok(&address)?;
        get.on(f.copy(map.cap)?).expect_ok(&address)?;
    }
    Ok(())
}

fn without_answer(f: &mut Fixture) -> TestResult {
    for (bits, map) in scenes(f)? {
        let unmap = unmap(map.cap);
        // A mapped page is refused another address.
        let is_mapped = move |map: &Invocation| {
            let elsewhere = map.with_word(0, VADDR + (1 << bits)).call();
            elsewhere.label == InvalidArgument as u64
        };
        let mapped = |_: &mut Fixture| {
            let mapped = is_mapped(&map);
            unmap.expect_ok(&[])?;
            Ok(mapped)
        };
        works_without_answer(f, &map, mapped)?;
        works_in_first_phase(f, &map, mapped)?;
        let unmapped = |_: &mut Fixture| {
            let unmapped = map.with_word(0, VADDR + 1).call().label == AlignmentError as u64;
            map.expect_ok(&[])?;
            Ok(unmapped)
        };
        map.expect_ok(&[])?;
        works_without_answer(f, &unmap, unmapped)?;
        works_in_first_phase(f, &unmap, unmapped)?;
    }
    Ok(())
}
