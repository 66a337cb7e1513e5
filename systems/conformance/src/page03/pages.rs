//! 03, sections 8.3 and 9.3: what pages have in common on every architecture; the checks are listed in `arch`.

use crate::prelude::*;

use super::common::truncated;
use super::levels::{no_roots, root_above, VADDR};

pub const READ_WRITE: u64 = 3;

pub const READ: u64 = 2;

/// Bits of a frame, and the levels of paging structures that it needs.
pub const SIZES: [(ObjectType, u32, usize); 3] = [
    (ObjectType::Page, 12, 3),
    (ObjectType::LargePage, 21, 2),
    (ObjectType::HugePage, 30, 1),
];

pub fn map(frame: CPtr, root: CPtr) -> Invocation {
    Invocation::new(
        frame,
        arch_label::PAGE_MAP,
        &[VADDR, READ_WRITE, Attributes::WriteBack.raw()],
        &[root],
    )
}

pub fn unmap(frame: CPtr) -> Invocation {
    Invocation::new(frame, arch_label::PAGE_UNMAP, &[], &[])
}

/// A frame of this size; the largest is of device memory, which nothing touches.
pub fn frame(f: &mut Fixture, kind: ObjectType) -> Result<CPtr, Failure> {
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
pub fn scenes(f: &mut Fixture) -> Result<Vec<(u32, Invocation)>, Failure> {
    let mut scenes = vec![];
    for (kind, bits, levels) in SIZES {
        let root = root_above(f, levels)?;
        scenes.push((bits, map(frame(f, kind)?, root)));
    }
    Ok(scenes)
}

pub fn map_truncated(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        truncated(&map)?;
        truncated(&map.with_cap(0, f.me))?;
        map.expect_ok(&[])?;
    }
    Ok(())
}

pub fn map_no_root(f: &mut Fixture) -> TestResult {
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

pub fn map_alignment(f: &mut Fixture) -> TestResult {
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

/// The first word of a frame, marked.
pub fn marked(f: &mut Fixture, mark: u64) -> Result<CPtr, Failure> {
    Ok(f.code_frame(&mark.to_le_bytes())?.cptr())
}

/// Tables at an address of the check's own address space.
pub const OWN: u64 = 0x4a_0000_0000;

pub fn own_tables(f: &mut Fixture) -> TestResult {
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

pub fn map_own(frame: CPtr) -> Invocation {
    map(frame, boot::VSPACE.cptr()).with_word(0, OWN)
}

pub fn read_own() -> u64 {
    // SAFETY: the caller has mapped a page there.
    unsafe { (OWN as *const u64).read_volatile() }
}

pub fn map_overwrites(f: &mut Fixture) -> TestResult {
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

pub fn map_again(f: &mut Fixture) -> TestResult {
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

pub fn unmap_succeeds(f: &mut Fixture) -> TestResult {
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

pub fn unmap_other(f: &mut Fixture) -> TestResult {
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

pub fn get_address(f: &mut Fixture) -> TestResult {
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
