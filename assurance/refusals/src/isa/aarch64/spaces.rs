//! Address spaces, and the maintenance of caches (ABI 03, sections 9.1 to 9.3).

use alloc::vec::Vec;

use sandglass_abi::invocation::aarch64::*;
use sandglass_abi::vspace::aarch64::{HIGHEST_PAGE, USER_TOP};

use crate::case::{
    argument, call, capability, invalid_root, missing, range, Call, Case, ALIGNMENT, DELETE_FIRST,
    ILLEGAL, REVOKE_FIRST,
};
use crate::scene::Scene;

/// Where the scene's address space has no table of level 1, of level 2, of level 3, and pages of 1 GiB and 2 MiB.
const NO_LEVEL_1: u64 = 1 << 39;
const NO_LEVEL_2: u64 = 2 << 30;
const NO_LEVEL_3: u64 = 2 << 21;
const HUGE: u64 = 1 << 30;
const LARGE: u64 = 1 << 21;

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    tables(s, &mut cases);
    pages(s, &mut cases);
    sizes(s, &mut cases);
    caches_of_spaces(s, &mut cases);
    caches_of_pages(s, &mut cases);
    cases
}

/// What all mappings check of the address space.
fn common(s: &Scene, valid: &Call, cases: &mut Vec<Case>) {
    cases.extend(valid.truncated());
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for other in [s.empty, s.endpoint, s.tables[0], s.frame] {
        let other = valid.clone().cap(0, other);
        case(other, "space: no root table", capability(1));
    }
    let unassigned = valid.clone().cap(0, s.unassigned_space);
    case(unassigned, "space: no identifier", capability(1));
    let gone = valid.clone().cap(0, s.gone_space);
    case(gone, "space: gone", invalid_root());
    let replaced = valid.clone().cap(0, s.replaced_space);
    case(replaced, "space: replaced", capability(1));
}

fn tables(s: &Scene, cases: &mut Vec<Case>) {
    let valid = call(
        PAGE_TABLE_MAP,
        s.free_tables[0],
        &[NO_LEVEL_3, 0],
        &[s.space],
    );
    common(s, &valid, cases);
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for table in s.tables {
        case(valid.clone().of(table), "mapped", capability(0));
        let unmap = call(PAGE_TABLE_UNMAP, table, &[], &[]);
        case(unmap, "not the last capability", REVOKE_FIRST);
    }
    for vaddr in [USER_TOP + 1, 1 << 63, u64::MAX] {
        case(valid.clone().word(0, vaddr), "address", argument(0));
    }
    for vaddr in [0, 0x1234, 0x1f_ffff] {
        let full = valid.clone().word(0, vaddr);
        case(full, "all levels are there", DELETE_FIRST);
    }
    for vaddr in [HUGE, LARGE, LARGE + 0x1000] {
        let page = valid.clone().word(0, vaddr);
        case(page, "entry in use: page", DELETE_FIRST);
    }
}

fn pages(s: &Scene, cases: &mut Vec<Case>) {
    let valid = call(PAGE_MAP, s.free_page, &[0x2000, 3, 0], &[s.space]);
    common(s, &valid, cases);
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for vaddr in [1, 0x1800, 0x2fff, HIGHEST_PAGE + 1, u64::MAX] {
        case(valid.clone().word(0, vaddr), "alignment", ALIGNMENT);
    }
    let mapped = valid.clone().of(s.page);
    let elsewhere = mapped.clone().word(0, 0x1000).cap(0, s.other_space);
    case(elsewhere, "mapped in another space", capability(1));
    let gone = valid.clone().of(s.frame_of_gone);
    case(gone, "mapped in another space", capability(1));
    for vaddr in [0x2000, 0, USER_TOP + 1] {
        let elsewhere = mapped.clone().word(0, vaddr);
        case(elsewhere, "mapped elsewhere", argument(0));
    }
    for vaddr in [USER_TOP + 1, 1 << 63, u64::MAX << 12] {
        let end = valid.clone().word(0, vaddr);
        case(end, "end of the address space", argument(0));
    }
    for (vaddr, bits) in [
        (NO_LEVEL_1, 39),
        (NO_LEVEL_2, 30),
        (HUGE, 30),
        (NO_LEVEL_3, 21),
        (LARGE, 21),
    ] {
        let level = valid.clone().word(0, vaddr);
        case(level, "level", missing(false, bits));
    }
}

/// Larger pages.
fn sizes(s: &Scene, cases: &mut Vec<Case>) {
    let map = |frame, vaddr| call(PAGE_MAP, frame, &[vaddr, 3, 0], &[s.space]);
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for frame in [s.free_large_page, s.free_huge_page] {
        case(map(frame, 0x1000), "alignment", ALIGNMENT);
        case(map(frame, NO_LEVEL_1), "level", missing(false, 39));
        // A table of a lower level is there.
        case(map(frame, 0), "level", missing(false, 12));
        let end = map(frame, USER_TOP + 1);
        case(end, "end of the address space", argument(0));
    }
    let large = s.free_large_page;
    case(map(large, NO_LEVEL_2), "level", missing(false, 30));
    case(map(large, HUGE), "level", missing(false, 30));
}

fn caches_of_spaces(s: &Scene, cases: &mut Vec<Case>) {
    for label in VSPACE_CLEAN_DATA..=VSPACE_UNIFY_INSTRUCTION {
        let valid = call(label, s.space, &[0x1000, 0x1800], &[]);
        cases.extend(valid.truncated());
        let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
        for end in [0, 0xfff, 0x1000] {
            case(valid.clone().word(1, end), "end before start", argument(1));
        }
        for end in [USER_TOP + 1, u64::MAX] {
            let end = valid.clone().word(1, end);
            case(end, "end of the address space", ILLEGAL);
        }
        let unassigned = valid.clone().of(s.unassigned_space);
        case(unassigned, "no identifier", capability(0));
        case(valid.clone().of(s.gone_space), "gone", invalid_root());
        let replaced = valid.clone().of(s.replaced_space);
        case(replaced, "replaced", capability(0));
        let beyond = valid.clone().word(1, 0x2001);
        case(beyond, "beyond the page", range(0x1000, 0x1fff));
        let of_large = valid.clone().word(0, LARGE + 5).word(1, 2 * LARGE + 1);
        case(of_large, "beyond the page", range(LARGE + 5, 2 * LARGE - 1));
        if label == VSPACE_INVALIDATE_DATA {
            let readable = valid.word(0, 0x6000).word(1, 0x6001);
            case(readable, "not to be written", ILLEGAL);
        }
    }
}

fn caches_of_pages(s: &Scene, cases: &mut Vec<Case>) {
    for label in PAGE_CLEAN_DATA..=PAGE_UNIFY_INSTRUCTION {
        let valid = call(label, s.page, &[0x10, 0x20], &[]);
        cases.extend(valid.truncated());
        let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
        case(valid.clone().of(s.free_page), "not mapped", ILLEGAL);
        let gone = valid.clone().of(s.frame_of_gone);
        case(gone, "space: gone", invalid_root());
        for end in [0, 0x10] {
            case(valid.clone().word(1, end), "end before start", argument(1));
        }
        for end in [0x1001, u64::MAX] {
            case(valid.clone().word(1, end), "beyond the page", argument(0));
        }
        let covered = valid.clone().of(s.covered_page);
        case(covered, "another page is there", capability(0));
        if label == PAGE_INVALIDATE_DATA {
            let readable = valid.of(s.readable_page);
            case(readable, "not to be written", ILLEGAL);
        }
    }
}
