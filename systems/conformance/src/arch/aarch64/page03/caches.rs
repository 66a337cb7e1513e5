//! 03, section 9.1, and of 03, section 9.3, what maintains caches.

use crate::page03::common::{refuses_other_labels, truncated, works_in_first_phase};
use crate::page03::levels::{root_above, VADDR};
use crate::page03::pages::{frame, map, SIZES};
use crate::page03::stale::{replaced_root, stale_root};
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("03/9.1/1-other-labels", space_labels),
    check("03/9.1/2-truncated", space_truncated),
    check("03/9.1/3-and-4-addresses", space_addresses),
    check("03/9.1/5-and-6-roots", space_roots),
    check(
        "03/9.1/7-where-nothing-is-mapped-nothing-is-done",
        space_unmapped,
    ),
    check("03/9.1/8-within-one-page", space_ranges),
    check("03/9.1/9-invalidate-wants-a-writable-page", space_writable),
    check("03/9.1/order-of-the-checks", space_order),
    check("03/9.3/maintenance-truncated", page_truncated),
    check("03/9.3/maintenance-wants-a-mapped-page", page_mapped),
    check("03/9.3/maintenance-offsets", page_offsets),
    check("03/9.3/maintenance-of-another's-place", page_replaced),
    check("03/9.3/invalidate-wants-a-writable-page", page_writable),
    check("03/9.3/maintenance-in-a-first-phase", page_in_first_phase),
];

const OF_SPACES: [u64; 4] = [
    arch_label::VSPACE_CLEAN_DATA,
    arch_label::VSPACE_INVALIDATE_DATA,
    arch_label::VSPACE_CLEAN_INVALIDATE_DATA,
    arch_label::VSPACE_UNIFY_INSTRUCTION,
];
const OF_PAGES: [u64; 4] = [
    arch_label::PAGE_CLEAN_DATA,
    arch_label::PAGE_INVALIDATE_DATA,
    arch_label::PAGE_CLEAN_INVALIDATE_DATA,
    arch_label::PAGE_UNIFY_INSTRUCTION,
];
const END: u64 = 1 << 47;
const READ: u64 = 2;

/// For 4 KiB and 2 MiB: bytes, and Map of a frame of memory.
fn scenes(f: &mut Fixture) -> Result<Vec<(u64, Invocation)>, Failure> {
    let mut scenes = vec![];
    for (kind, bits, levels) in SIZES.into_iter().filter(|&(_, bits, _)| bits < 30) {
        let root = root_above(f, levels)?;
        let map = map(frame(f, kind)?, root);
        map.expect_ok(&[])?;
        scenes.push((1 << bits, map));
    }
    Ok(scenes)
}

/// Maintenance of an address space.
fn of_space(root: CPtr, label: u64, start: u64, end: u64) -> Invocation {
    Invocation::new(root, label, &[start, end], &[])
}

/// Maintenance of a page.
fn of_page(page: CPtr, label: u64, start: u64, end: u64) -> Invocation {
    Invocation::new(page, label, &[start, end], &[])
}

fn space_labels(f: &mut Fixture) -> TestResult {
    for root in [f.vspace()?.root(), f.pml4()?] {
        let any = Invocation::new(
            root,
            label::INVALID,
            &[VADDR, VADDR + 1, 0],
            &[root.cptr(); 3],
        );
        refuses_other_labels(&any, &OF_SPACES)?;
    }
    Ok(())
}

fn space_truncated(f: &mut Fixture) -> TestResult {
    for label in OF_SPACES {
        // Before the addresses.
        truncated(&of_space(f.vspace()?.root().cptr(), label, 5, 5))?;
    }
    Ok(())
}

fn space_addresses(f: &mut Fixture) -> TestResult {
    let root = f.vspace()?.root().cptr();
    for label in OF_SPACES {
        for (start, end) in [
            (0, 0),
            (VADDR, VADDR),
            (VADDR, VADDR - 1),
            (u64::MAX, 0),
            (END, END),
        ] {
            of_space(root, label, start, end).expect_error(InvalidArgument, &[1])?;
        }
        for (start, end) in [(0, END), (END - 1, END), (END, END + 1), (VADDR, u64::MAX)] {
            of_space(root, label, start, end).expect_error(IllegalOperation, &[])?;
        }
        of_space(root, label, END - 2, END - 1).expect_ok(&[])?;
    }
    Ok(())
}

fn space_roots(f: &mut Fixture) -> TestResult {
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    let (none, stale) = (f.pml4()?.cptr(), stale_root(f)?);
    for label in OF_SPACES {
        let whole = of_space(none, label, VADDR, VADDR + 8);
        whole.expect_error(InvalidCapability, &[0])?;
        whole
            .on(stale)
            .expect_error(FailedLookup, &[0, invalid_root])?;
    }
    let replaced = replaced_root(f)?;
    for label in OF_SPACES {
        let whole = of_space(replaced, label, VADDR, VADDR + 8);
        whole.expect_error(InvalidCapability, &[0])?;
    }
    Ok(())
}

fn space_unmapped(f: &mut Fixture) -> TestResult {
    let root = f.vspace()?.root().cptr();
    for label in OF_SPACES {
        // However long it is.
        of_space(root, label, VADDR, VADDR + (1 << 40)).expect_ok(&[])?;
    }
    Ok(())
}

fn space_ranges(f: &mut Fixture) -> TestResult {
    for (size, map) in scenes(f)? {
        let root = map.caps[0];
        for label in OF_SPACES {
            for (start, end) in [(0, 1), (0, size), (1, 2), (size - 1, size), (63, 65)] {
                of_space(root, label, VADDR + start, VADDR + end).expect_ok(&[])?;
            }
            for (start, end) in [(0, size + 1), (size - 1, size + 1), (7, 2 * size)] {
                let details = [VADDR + start, VADDR + size - 1];
                of_space(root, label, VADDR + start, VADDR + end)
                    .expect_error(RangeError, &details)?;
            }
        }
    }
    Ok(())
}

fn space_writable(f: &mut Fixture) -> TestResult {
    for (size, map) in scenes(f)? {
        map.with_word(1, READ).expect_ok(&[])?;
        for label in OF_SPACES {
            let whole = of_space(map.caps[0], label, VADDR, VADDR + 64);
            if label == arch_label::VSPACE_INVALIDATE_DATA {
                whole.expect_error(IllegalOperation, &[])?;
                // After the range.
                whole
                    .with_word(1, VADDR + size + 1)
                    .expect_error(RangeError, &[VADDR, VADDR + size - 1])?;
            } else {
                whole.expect_ok(&[])?;
            }
        }
    }
    Ok(())
}

fn space_order(f: &mut Fixture) -> TestResult {
    let none = f.pml4()?.cptr();
    for label in OF_SPACES {
        of_space(none, label, END + 1, END).expect_error(InvalidArgument, &[1])?;
        of_space(none, label, 0, END).expect_error(IllegalOperation, &[])?;
    }
    Ok(())
}

fn page_truncated(f: &mut Fixture) -> TestResult {
    let unmapped: CPtr = f.make(ObjectType::Page)?;
    for label in OF_PAGES {
        // Before it is mapped.
        truncated(&of_page(unmapped, label, 5, 5))?;
    }
    Ok(())
}

fn page_mapped(f: &mut Fixture) -> TestResult {
    let invalid_root = LookupFailureType::InvalidRoot as u64;
    let unmapped: CPtr = f.make(ObjectType::Page)?;
    for label in OF_PAGES {
        // Before the offsets.
        of_page(unmapped, label, 5, 5).expect_error(IllegalOperation, &[])?;
    }
    // Its address space is gone.
    for (_, map) in scenes(f)? {
        f.slot_of(map.caps[0]).delete()?;
        for label in OF_PAGES {
            let whole = of_page(map.cap, label, 5, 5);
            whole.expect_error(FailedLookup, &[0, invalid_root])?;
        }
    }
    Ok(())
}

fn page_offsets(f: &mut Fixture) -> TestResult {
    for (size, map) in scenes(f)? {
        for label in OF_PAGES {
            for (start, end) in [(0, 0), (5, 5), (6, 5), (size, size), (u64::MAX, 0)] {
                of_page(map.cap, label, start, end).expect_error(InvalidArgument, &[1])?;
            }
            for (start, end) in [(0, size + 1), (size, size + 1), (1, u64::MAX)] {
                of_page(map.cap, label, start, end).expect_error(InvalidArgument, &[0])?;
            }
            for (start, end) in [(0, 1), (0, size), (size - 1, size), (63, 129)] {
                of_page(map.cap, label, start, end).expect_ok(&[])?;
            }
        }
    }
    Ok(())
}

/// The recorded mapping is another frame's, or nobody's.
fn page_replaced(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        let other = f.copy(map.cap)?;
        let kind = [ObjectType::Page, ObjectType::LargePage];
        for kind in kind {
            let new: CPtr = f.make(kind)?;
            if map.on(new).call().label == 0 {
                for label in OF_PAGES {
                    let whole = of_page(map.cap, label, 0, 8);
                    whole.expect_error(InvalidCapability, &[0])?;
                }
                Invocation::new(new, arch_label::PAGE_UNMAP, &[], &[]).expect_ok(&[])?;
            }
        }
        for label in OF_PAGES {
            let whole = of_page(map.cap, label, 0, 8);
            whole.expect_error(InvalidCapability, &[0])?;
        }
        map.expect_ok(&[])?;
        ensure!(other != map.cap);
    }
    Ok(())
}

fn page_writable(f: &mut Fixture) -> TestResult {
    for (_, map) in scenes(f)? {
        for (rights, is_writable) in [(READ, false), (3, true)] {
            map.with_word(1, rights).expect_ok(&[])?;
            for label in OF_PAGES {
                let whole = of_page(map.cap, label, 0, 8);
                if label == arch_label::PAGE_INVALIDATE_DATA && !is_writable {
                    whole.expect_error(IllegalOperation, &[])?;
                } else {
                    whole.expect_ok(&[])?;
                }
            }
        }
    }
    Ok(())
}

/// It is allowed there, as for all capabilities of the architecture; what memory holds is not changed.
fn page_in_first_phase(f: &mut Fixture) -> TestResult {
    let buffer = f.buffer()?;
    buffer.fill(0x5100);
    for label in OF_PAGES {
        let whole = of_page(buffer.frame.cptr(), label, 0, 4096);
        let unchanged = |_: &mut Fixture| Ok(buffer.changed_words(0x5100).is_empty());
        works_in_first_phase(f, &whole, unchanged)?;
    }
    Ok(())
}
