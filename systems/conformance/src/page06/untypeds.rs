//! 06, section 5: the initial untypeds.

use sandglass::boot::InitialUntyped;

use super::image::{extra_region, paging_structures, Image, PAGE};
use crate::arch::page06::{memory, reserved_devices, DEVICE_TOP};
use crate::page02::support::{free_bytes, retype, unmapped_pages};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("06/5/device-untypeds-come-first", devices_first),
    check("06/5/untypeds-are-in-order-and-disjoint", disjoint),
    check("06/5/the-kernels-boot-code-comes-before-memory", boot_code),
    check("06/5/untypeds-are-aligned", aligned),
    check("06/5/device-untypeds-are-the-gaps", device_gaps),
    check("06/5/untypeds-of-memory-lie-in-memory", memory_in_memory),
    check("06/5/untypeds-of-memory-are-complete", memory_complete),
    check("06/5/no-untyped-holds-the-root-task", root_task_reserved),
    check("06/5/addresses-are-right", addresses),
    check("06/5/device-flags-are-right", device_flags),
    check("06/5/the-first-retype-zeroes", zeroed),
];

/// Physical addresses from `start` to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

pub const fn range(start: u64, end: u64) -> Range {
    Range { start, end }
}

/// Bytes that the kernel may keep of the memory behind the image: its own use is not judged.
const KERNEL_SHARE: u64 = 8 * PAGE;
/// Bytes in front of the image that may be the kernel's.
const KERNEL_IMAGE: u64 = 4 << 20;
/// The base of the kernel's window, by which alignment counts.
const WINDOW: u64 = 0xffff_ff80_0000_0000;

pub fn initial(f: &Fixture, device: bool) -> Vec<InitialUntyped> {
    let kind = |untyped: &InitialUntyped| untyped.is_device == device;
    f.boot.untypeds().filter(kind).collect()
}

fn range_of(untyped: &InitialUntyped) -> Range {
    range(untyped.paddr, untyped.paddr + (1 << untyped.size_bits))
}

/// The untypeds of a region by the page's splitting: (address, size as log2 bytes).
fn split(region: Range) -> Vec<(u64, u32)> {
    let mut pieces = Vec::new();
    let mut at = region.start;
    while at < region.end {
        let alignment = at.wrapping_add(WINDOW).trailing_zeros();
        let bits = (region.end - at).ilog2().min(alignment).min(47);
        if bits >= 4 {
            pieces.push((at, bits));
        }
        at += 1 << bits;
    }
    pieces
}

fn devices_first(f: &mut Fixture) -> TestResult {
    let flags: Vec<bool> = f.boot.untypeds().map(|untyped| untyped.is_device).collect();
    let devices = flags.iter().take_while(|&&device| device).count();
    ensure!(devices > 0 && devices < flags.len());
    ensure!(flags[devices..].iter().all(|&device| !device));
    Ok(())
}

fn disjoint(f: &mut Fixture) -> TestResult {
    let mut all: Vec<Range> = f
        .boot
        .untypeds()
        .map(|untyped| range_of(&untyped))
        .collect();
    // Devices ascend; memory ascends, but for what the kernel's boot code leaves, before it.
    let descents = |ranges: &[InitialUntyped]| {
        let pairs = ranges.windows(2);
        pairs.filter(|pair| pair[1].paddr < pair[0].paddr).count()
    };
    ensure_eq!(descents(&initial(f, true)), 0);
    ensure!(descents(&initial(f, false)) <= 1);
    all.sort_unstable_by_key(|range| range.start);
    for pair in all.windows(2) {
        ensure!(pair[0].end <= pair[1].start, "{:x?} overlap", pair);
    }
    ensure!(all.last().is_some_and(|last| last.end <= DEVICE_TOP));
    Ok(())
}

/// The image of the root task lies behind the kernel's, of which only the boot code is handed out.
fn boot_code(f: &mut Fixture) -> TestResult {
    let image = image_range(f)?;
    let memory = initial(f, false);
    let of_kernel = |untyped: &&InitialUntyped| {
        let end = range_of(untyped).end;
        end <= image.start && image.start - end < KERNEL_IMAGE
    };
    let first = memory.iter().take_while(of_kernel).count();
    ensure!(
        first > 0,
        "the first untyped of memory is {:x?}",
        memory.first()
    );
    ensure_eq!(memory.iter().filter(of_kernel).count(), first);
    Ok(())
}

fn aligned(f: &mut Fixture) -> TestResult {
    for untyped in f.boot.untypeds() {
        let alias = untyped.paddr.wrapping_add(WINDOW);
        ensure!(
            (4..=47).contains(&untyped.size_bits) && alias % (1 << untyped.size_bits) == 0,
            "{untyped:x?} is not aligned to its size"
        );
    }
    Ok(())
}

fn device_gaps(f: &mut Fixture) -> TestResult {
    let mut reserved = memory(f)?;
    reserved.extend(reserved_devices(f)?);
    reserved.sort_unstable_by_key(|range| range.start);
    let mut expected = Vec::new();
    let mut at = 0;
    for range_ in reserved.into_iter().chain([range(DEVICE_TOP, DEVICE_TOP)]) {
        expected.extend(split(range(at, range_.start)));
        at = range_.end;
    }
    let devices: Vec<(u64, u32)> = initial(f, true)
        .iter()
        .map(|untyped| (untyped.paddr, untyped.size_bits))
        .collect();
    for (seen, expected) in devices.iter().zip(&expected) {
        ensure!(
            seen == expected,
            "(address, bits) {seen:x?} is in the list, not {expected:x?}"
        );
    }
    ensure_eq!(devices.len(), expected.len());
    Ok(())
}

fn memory_in_memory(f: &mut Fixture) -> TestResult {
    let memory = memory(f)?;
    for untyped in initial(f, false) {
        let own = range_of(&untyped);
        let inside = memory
            .iter()
            .any(|m| m.start <= own.start && own.end <= m.end);
        ensure!(inside, "{untyped:x?} is not memory");
    }
    Ok(())
}

/// The physical addresses of the user image.
fn image_range(f: &Fixture) -> Result<Range, Failure> {
    let frames = f.boot.user_image_frames();
    let start = Frame::at(frames.start).physical_address()?;
    Ok(range(start, start + frames.len() * PAGE))
}

fn memory_complete(f: &mut Fixture) -> TestResult {
    let image = image_range(f)?;
    // What the root task's objects take: CNode, VSpace, ASID pool, buffer, boot information, its
    // extra pages, paging structures, TCB, context.
    let pages = 4 + paging_structures(f, Image::own()).iter().sum::<u64>();
    let objects =
        (32 << PROFILE.root_cnode_bits) + pages * PAGE + extra_region(f) + (1 << 11) + (1 << 7);
    let mut used: Vec<Range> = initial(f, false).iter().map(range_of).collect();
    used.push(image);
    used.sort_unstable_by_key(|range| range.start);
    let mut missing = 0;
    for memory in memory(f)? {
        // The kernel lies before the image, and keeps what it needs of that.
        let mut at = memory.start;
        if (memory.start..memory.end).contains(&image.start) {
            at = image.start;
        }
        let here = at..memory.end;
        for range in used.iter().filter(|range| here.contains(&range.start)) {
            missing += range.start - at;
            at = range.end;
        }
        missing += memory.end - at;
    }
    ensure!(
        (objects..=objects + KERNEL_SHARE).contains(&missing),
        "{missing:#x} bytes of memory are in no untyped; the root task has {objects:#x}"
    );
    Ok(())
}

fn root_task_reserved(f: &mut Fixture) -> TestResult {
    let image = image_range(f)?;
    let mut reserved = vec![image];
    let extra = f.boot.raw().extra_bi_pages;
    for frame in [9, 10].into_iter().chain(extra.start..extra.end) {
        let start = Frame::at(frame).physical_address()?;
        reserved.push(range(start, start + PAGE));
    }
    for untyped in f.boot.untypeds() {
        let own = range_of(&untyped);
        let overlap = reserved
            .iter()
            .find(|r| r.start < own.end && own.start < r.end);
        ensure!(overlap.is_none(), "{untyped:x?} overlaps {overlap:x?}");
    }
    Ok(())
}

/// The initial untypeds of at least a page that nothing was made of yet: they can be copied.
fn unused(f: &mut Fixture) -> Result<Vec<InitialUntyped>, Failure> {
    let slot = f.empty_slot()?;
    let mut unused = Vec::new();
    for untyped in f.boot.untypeds() {
        let source = boot::CNODE.slot(untyped.untyped.address());
        if slot.copy_from(source, Rights::ALL).is_ok() {
            slot.delete()?;
            unused.push(untyped);
        }
    }
    Ok(unused)
}

/// Small enough that zeroing it takes no time that counts.
fn is_small(untyped: &InitialUntyped) -> bool {
    untyped.size_bits >= 12 && (untyped.is_device || untyped.size_bits <= 16)
}

fn addresses(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    for untyped in unused(f)?.iter().filter(|untyped| is_small(untyped)) {
        retype(untyped.untyped, arch_object::PAGE, 0, slot, 1).expect_ok(&[])?;
        let frame: Frame = slot.capability();
        ensure_eq!(frame.physical_address()?, untyped.paddr);
        slot.delete()?;
    }
    Ok(())
}

fn device_flags(f: &mut Fixture) -> TestResult {
    let slot = f.empty_slot()?;
    for untyped in unused(f)? {
        let make = retype(untyped.untyped, object::ENDPOINT, 0, slot, 1);
        if untyped.is_device {
            make.expect_error(InvalidArgument, &[1])?;
        } else if untyped.size_bits <= 16 {
            make.expect_ok(&[])?;
            slot.delete()?;
        }
    }
    Ok(())
}

fn zeroed(f: &mut Fixture) -> TestResult {
    let (slot, window) = (f.empty_slot()?, unmapped_pages(f, 1)?);
    for untyped in unused(f)?.iter().filter(|u| is_small(u) && !u.is_device) {
        for round in 0..2 {
            retype(untyped.untyped, arch_object::PAGE, 0, slot, 1).expect_ok(&[])?;
            let left = free_bytes(f, untyped.untyped)?;
            ensure_eq!(left, (1 << untyped.size_bits) - PAGE);
            let frame: Frame = slot.capability();
            frame.map(boot::VSPACE, window, Rights::ALL, Attributes::WriteBack)?;
            for offset in (0..PAGE).step_by(8) {
                let word = (window + offset) as *mut u64;
                // SAFETY: the page is mapped.
                let content = unsafe { word.read_volatile() };
                ensure!(
                    content == 0,
                    "{:#x} is not zero in round {round}",
                    untyped.paddr + offset
                );
                // SAFETY: as above.
                unsafe { word.write_volatile(!0) };
            }
            slot.delete()?;
        }
    }
    Ok(())
}
