//! 06, sections 1.2 and 2: slots, and the layout of the boot information.

use sandglass::abi::boot::slot;

use conformance_kit::arch::IO_PAGE_TABLE_LEVELS;

use super::image::{paging_structures, Image};
use crate::arch::page02::TABLES;
use crate::arch::page06::{extra_pages, FIXED, NULL_SLOTS, REGIONS};
use crate::page02::support::{kind_of, Kind};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("06/1.2/fixed-slots-hold-what-the-table-says", fixed_slots),
    check("06/1.2/null-slots-are-empty", null_slots),
    check("06/1.2/regions-follow-each-other-in-order", region_order),
    check("06/1.2/each-region-holds-its-kind", region_kinds),
    check("06/1.2/slots-after-the-last-untyped-are-empty", empty_slots),
    check("06/2/cores-are-reported", cores),
    check("06/2/every-field-at-its-offset", fields),
    check("06/2/the-rest-of-the-page-is-zero", rest_is_zero),
    check("06/2/the-list-describes-the-untypeds-by-slot", untyped_list),
];

/// Word `index` of the boot-information page.
fn word(f: &Fixture, index: usize) -> u64 {
    let page: *const u64 = core::ptr::from_ref(f.boot.raw()).cast();
    // SAFETY: the kernel maps the whole page for good (06, section 3).
    unsafe { page.add(index).read_volatile() }
}

fn fixed_slots(f: &mut Fixture) -> TestResult {
    let common = [
        (1, Kind::Tcb),
        (2, Kind::CNode),
        (3, Kind::Pml4),
        (4, Kind::IrqControl),
        (5, Kind::AsidControl),
        (6, Kind::AsidPool),
        (9, Kind::Frame),
        (10, Kind::Frame),
        (11, Kind::Domain),
        (14, Kind::SchedContext),
    ];
    for &(index, kind) in common.iter().chain(FIXED) {
        let seen = kind_of(f, CPtr::new(index))?;
        ensure!(seen == kind, "slot {index} holds {seen:?}, not {kind:?}");
    }
    Ok(())
}

fn null_slots(f: &mut Fixture) -> TestResult {
    let null = [
        slot::NULL,
        slot::IO_SPACE,
        slot::SMMU_SID_CONTROL,
        slot::SMMU_CB_CONTROL,
        slot::SMC,
    ];
    ensure_eq!(null, [0, 8, 12, 13, 15]);
    for index in null.into_iter().chain(NULL_SLOTS.iter().copied()) {
        ensure!(
            f.is_empty(boot::CNODE.slot(index))?,
            "slot {index} is in use"
        );
    }
    Ok(())
}

fn region_order(f: &mut Fixture) -> TestResult {
    let info = f.boot.raw();
    let mut next = slot::FIRST_DYNAMIC;
    let first = [
        ("schedcontrol", info.sched_control),
        ("userImagePaging", info.user_image_paging),
        ("extraBIPages", info.extra_bi_pages),
    ];
    let then = [
        ("userImageFrames", info.user_image_frames),
        ("untyped", info.untyped),
        ("empty", info.empty),
    ];
    for (name, region) in REGIONS.map(|number| first[number]).into_iter().chain(then) {
        ensure!(
            region.start == next && region.end >= region.start,
            "{name} is {region:?}, which does not begin at slot {next}"
        );
        next = region.end;
    }
    ensure_eq!(next, 1 << info.init_thread_cnode_size_bits);
    Ok(())
}

fn region_kinds(f: &mut Fixture) -> TestResult {
    let info = *f.boot.raw();
    let image = Image::own();
    let mut paging = info.user_image_paging.start;
    for (count, kind) in paging_structures(f, image).into_iter().zip(TABLES) {
        for index in paging..paging + count {
            let seen = kind_of(f, CPtr::new(index))?;
            ensure!(seen == kind, "slot {index} holds {seen:?}, not {kind:?}");
        }
        paging += count;
    }
    ensure_eq!(paging, info.user_image_paging.end);
    ensure_eq!(info.user_image_frames.len(), image.pages());
    ensure_eq!(info.extra_bi_pages.len(), extra_pages(f));
    let frames = (info.extra_bi_pages.start..info.extra_bi_pages.end)
        .chain(info.user_image_frames.start..info.user_image_frames.start + 3)
        .chain(info.user_image_frames.end - 3..info.user_image_frames.end);
    for index in frames {
        ensure_eq!(kind_of(f, CPtr::new(index))?, Kind::Frame);
    }
    for index in info.sched_control.start..info.sched_control.end {
        ensure_eq!(kind_of(f, CPtr::new(index))?, Kind::SchedControl);
    }
    for index in info.untyped.start..info.untyped.end {
        ensure_eq!(kind_of(f, CPtr::new(index))?, Kind::Untyped);
    }
    Ok(())
}

fn empty_slots(f: &mut Fixture) -> TestResult {
    // Those that this program has not used yet.
    let (first, end) = (f.empty_slot()?.index() + 4096, f.boot.empty_slots().end);
    ensure!(first < end);
    // Of the largest, some.
    let step = ((end - first) / 8192).max(1) as usize;
    for index in (first..end).step_by(step) {
        ensure!(
            f.is_empty(boot::CNODE.slot(index))?,
            "slot {index} is in use"
        );
    }
    Ok(())
}

/// A kernel for several cores has an authority for each, and at most as many run: at least this.
fn cores(f: &mut Fixture) -> TestResult {
    let info = f.boot.raw();
    let configured = sandglass::abi::profile::cores(f.is_for_several_cores()) as u64;
    ensure_eq!(info.sched_control.len(), configured);
    ensure_eq!(info.node_id, 0);
    ensure!(
        (1..=configured).contains(&info.num_nodes),
        "{} of {configured} cores run",
        info.num_nodes
    );
    Ok(())
}

fn fields(f: &mut Fixture) -> TestResult {
    let info = *f.boot.raw();
    let image = Image::own();
    let region = |start: u64, end: u64| (start, end);
    let pair = |f: &Fixture, offset: usize| region(word(f, offset / 8), word(f, offset / 8 + 1));
    ensure_eq!(word(f, 1), 0);
    ensure_eq!(word(f, 2), info.num_nodes);
    ensure_eq!(word(f, 3), IO_PAGE_TABLE_LEVELS);
    ensure_eq!(word(f, 4), image.end);
    // Shared frames and I/O spaces: none.
    ensure_eq!(pair(f, 56), (0, 0));
    ensure_eq!(pair(f, 104), (0, 0));
    ensure_eq!(word(f, 17), PROFILE.root_cnode_bits.into());
    ensure_eq!(word(f, 18), 0);
    // The regions are where the structure of this program's library expects them.
    for (offset, expected) in [
        (40, info.empty),
        (72, info.user_image_frames),
        (88, info.user_image_paging),
        (120, info.extra_bi_pages),
        (152, info.sched_control),
        (168, info.untyped),
    ] {
        ensure_eq!(pair(f, offset), (expected.start, expected.end));
    }
    ensure_eq!(core::mem::size_of_val(&info), 3864);
    Ok(())
}

fn rest_is_zero(f: &mut Fixture) -> TestResult {
    let count = f.boot.raw().untyped.len() as usize;
    ensure!(count <= 230, "{count} untypeds");
    let first_unused = (184 + 16 * count) / 8;
    for index in first_unused..512 {
        ensure!(word(f, index) == 0, "word {index} of the page is not zero");
    }
    // The six bytes after size and device flag, too, and the flag is 0 or 1.
    for i in 0..count {
        let sizes = word(f, (184 + 16 * i) / 8 + 1);
        ensure!(sizes >> 8 <= 1, "untyped {i} has the bytes {sizes:#x}");
    }
    Ok(())
}

fn untyped_list(f: &mut Fixture) -> TestResult {
    // Those without children tell their size, and where the first frame of them is.
    let mut compared = 0;
    for initial in f.boot.untypeds() {
        let untyped = initial.untyped;
        let slot = f.empty_slot()?;
        let source = boot::CNODE.slot(untyped.address());
        if slot.copy_from(source, Rights::ALL).is_err() {
            f.process.resources.free_slot(slot);
            continue;
        }
        slot.delete()?;
        f.process.resources.free_slot(slot);
        // More than fits, of a type that every untyped accepts: nothing is reset.
        let bytes = crate::page02::support::free_bytes(f, untyped);
        if initial.size_bits < 47 {
            ensure_eq!(bytes?, 1 << initial.size_bits);
        }
        compared += 1;
    }
    ensure!(compared > 10, "only {compared} untypeds are unused");
    Ok(())
}
