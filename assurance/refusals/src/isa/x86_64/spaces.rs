//! Address spaces (ABI 03, sections 8.2 and 8.3).

use alloc::vec::Vec;

use sandglass_abi::invocation::x86_64::*;
use sandglass_abi::vspace::x86_64::{HIGHEST_PAGE, USER_TOP};

use crate::case::{
    argument, call, capability, invalid_root, missing, Call, Case, ALIGNMENT, DELETE_FIRST,
    REVOKE_FIRST,
};
use crate::scene::Scene;

/// Where the scene's address space has no PDPT, no directory, no table, and pages of 1 GiB and 2
/// MiB.
const NO_PDPT: u64 = 1 << 39;
const NO_DIRECTORY: u64 = 2 << 30;
const NO_TABLE: u64 = 2 << 21;
const HUGE: u64 = 1 << 30;
const LARGE: u64 = 1 << 21;

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    for (map, free, mapped) in [
        (PDPT_MAP, s.free_tables[0], s.tables[0]),
        (PAGE_DIRECTORY_MAP, s.free_tables[1], s.tables[1]),
        (PAGE_TABLE_MAP, s.free_tables[2], s.tables[2]),
    ] {
        let valid = call(map, free, &[NO_TABLE, 0], &[s.space]);
        common(s, &valid, &mut cases);
        let mapped = valid.clone().of(mapped);
        cases.push(mapped.fails("mapped", capability(0)));
        let table = valid.word(0, 0);
        cases.push(table.fails("entry in use: table", DELETE_FIRST));
    }
    tables(s, &mut cases);
    pages(s, &mut cases);
    sizes(s, &mut cases);
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
    for vaddr in [USER_TOP + 1, 1 << 63, u64::MAX] {
        case(valid.clone().word(0, vaddr), "address", argument(0));
    }
    let gone = valid.clone().cap(0, s.gone_space);
    case(gone, "space: gone", invalid_root());
    let replaced = valid.clone().cap(0, s.replaced_space);
    case(replaced, "space: replaced", capability(1));
}

fn tables(s: &Scene, cases: &mut Vec<Case>) {
    let directory = |vaddr| {
        call(
            PAGE_DIRECTORY_MAP,
            s.free_tables[1],
            &[vaddr, 0],
            &[s.space],
        )
    };
    let table = |vaddr| call(PAGE_TABLE_MAP, s.free_tables[2], &[vaddr, 0], &[s.space]);
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    case(directory(NO_PDPT), "no PDPT", missing(false, 39));
    case(table(NO_PDPT), "no PDPT", missing(false, 39));
    case(table(NO_DIRECTORY), "no directory", missing(false, 30));
    case(table(HUGE), "no directory: page", missing(false, 30));
    case(directory(HUGE), "entry in use: page", DELETE_FIRST);
    case(table(LARGE), "entry in use: page", DELETE_FIRST);
    for (unmap, mapped) in [
        (PDPT_UNMAP, s.tables[0]),
        (PAGE_DIRECTORY_UNMAP, s.tables[1]),
        (PAGE_TABLE_UNMAP, s.tables[2]),
    ] {
        let unmap = call(unmap, mapped, &[], &[]);
        case(unmap, "not the last capability", REVOKE_FIRST);
    }
}

fn pages(s: &Scene, cases: &mut Vec<Case>) {
    let valid = call(PAGE_MAP, s.free_page, &[0x2000, 3, 0], &[s.space]);
    common(s, &valid, cases);
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    let mapped = valid.clone().of(s.page);
    let elsewhere = mapped.clone().word(0, 0x1000).cap(0, s.other_space);
    case(elsewhere, "mapped in another space", capability(1));
    let gone = valid.clone().of(s.frame_of_gone);
    case(gone, "mapped in another space", capability(1));
    for vaddr in [0x2000, 0, 0x1001, u64::MAX] {
        let elsewhere = mapped.clone().word(0, vaddr);
        case(elsewhere, "mapped elsewhere", argument(0));
    }
    let mut again = valid.clone().of(s.frame_of_gone).cap(0, s.gone_space);
    again = again.word(0, 0x1000);
    case(again, "space: gone", invalid_root());
    for vaddr in [HIGHEST_PAGE + 0x1000, USER_TOP - 0xfff + 1, USER_TOP] {
        let end = valid.clone().word(0, vaddr);
        case(end, "end of the address space", argument(0));
    }
    for vaddr in [1, 0x1800, 0x2fff, HIGHEST_PAGE + 1] {
        case(valid.clone().word(0, vaddr), "alignment", ALIGNMENT);
    }
    let at = |vaddr| valid.clone().word(0, vaddr);
    case(at(NO_PDPT), "no PDPT", missing(false, 39));
    case(at(NO_DIRECTORY), "no directory", missing(false, 30));
    case(at(HUGE), "no directory: page", missing(false, 30));
    case(at(NO_TABLE), "no table", missing(false, 21));
    case(at(LARGE), "no table: page", missing(false, 21));
}

/// Larger pages.
fn sizes(s: &Scene, cases: &mut Vec<Case>) {
    let map = |frame, vaddr| call(PAGE_MAP, frame, &[vaddr, 3, 0], &[s.space]);
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for frame in [s.free_large_page, s.free_huge_page] {
        case(map(frame, 0x1000), "alignment", ALIGNMENT);
        case(map(frame, NO_PDPT), "no PDPT", missing(false, 39));
        let end = map(frame, HIGHEST_PAGE);
        case(end, "end of the address space", argument(0));
    }
    let large = s.free_large_page;
    case(map(large, NO_DIRECTORY), "no directory", missing(false, 30));
    case(map(large, HUGE), "no directory: page", missing(false, 30));
    case(map(large, 0), "2 MiB over a table", DELETE_FIRST);
    let huge = s.free_huge_page;
    case(map(huge, 0), "1 GiB over a directory", DELETE_FIRST);
}
