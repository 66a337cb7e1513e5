//! Tables and frames in address spaces: what is mapped where, and what the end of a capability does
//! to it (03, section 8; 07, section 6).

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation::x86_64 as arch;
use sandglass_abi::object::x86_64 as types;
use sandglass_abi::vspace::x86_64::ROOT_TASK_ASID;
use sandglass_kernel::arch::abi::object::table::Child;
use sandglass_kernel::arch::abi::pte::Level;
use sandglass_kernel::arch::abi::space;
use sandglass_kernel::mem::PhysAddr;
use sandglass_testkit::world::{Refused, World};

const ALL: u64 = 0b1111;
const READ_WRITE: u64 = 0b11;
const BASE: u64 = 0x100_0000_0000;

/// Object, and its invocations for mapping and unmapping, from the upper level to the lower.
const TABLES: [(u64, u64, u64); 3] = [
    (types::PDPT, arch::PDPT_MAP, arch::PDPT_UNMAP),
    (
        types::PAGE_DIRECTORY,
        arch::PAGE_DIRECTORY_MAP,
        arch::PAGE_DIRECTORY_UNMAP,
    ),
    (
        types::PAGE_TABLE,
        arch::PAGE_TABLE_MAP,
        arch::PAGE_TABLE_UNMAP,
    ),
];

fn map_table(w: &mut World, level: usize, at: u64) -> Result<u64, Refused> {
    let (object, map, _) = TABLES[level];
    let table = w.make(object, 0);
    w.invoke(table, map, &[at, 0], &[slot::VSPACE])?;
    Ok(table)
}

fn map_page(w: &mut World, page: u64, at: u64) -> Result<Vec<u64>, Refused> {
    let words = [at, READ_WRITE, 0];
    w.invoke(page, arch::PAGE_MAP, &words, &[slot::VSPACE])
}

/// Tables of all levels at `at`, from the upper to the lower.
fn map_tables(w: &mut World, at: u64) -> [u64; 3] {
    [0, 1, 2].map(|level| map_table(w, level, at).expect("mapped"))
}

/// The page that is mapped at `vaddr` for the root task.
fn page_at(w: &World, vaddr: u64) -> Option<PhysAddr> {
    let root = space::root_of(&w.k, ROOT_TASK_ASID as u16).expect("a root table");
    let table = space::table(&w.k, root.at(&w.k).as_ref(), vaddr, Level::PAGE_TABLE);
    let table = table.expect("tables");
    match table.child(&w.k, Level::PAGE_TABLE, Level::PAGE_TABLE.index(vaddr)) {
        Child::Page(start) => Some(start),
        _ => None,
    }
}

fn error<T: std::fmt::Debug>(result: Result<T, Refused>) -> ErrorNumber {
    result.expect_err("refused").error
}

#[test]
fn a_table_is_needed_at_every_level_and_fits_once() {
    let mut w = World::new();
    let page = w.make(types::PAGE, 0);
    for level in 0..3 {
        assert_eq!(
            error(map_page(&mut w, page, BASE)),
            ErrorNumber::FailedLookup
        );
        for lower in level + 1..3 {
            let missing = error(map_table(&mut w, lower, BASE));
            assert_eq!(
                missing,
                ErrorNumber::FailedLookup,
                "{lower} without {level}"
            );
        }
        map_table(&mut w, level, BASE).expect("mapped");
        assert_eq!(
            error(map_table(&mut w, level, BASE)),
            ErrorNumber::DeleteFirst
        );
    }
    map_page(&mut w, page, BASE).expect("mapped");
}

/// A table whose capability is gone, or that is unmapped, makes room for another.
#[test]
fn a_table_that_goes_leaves_its_place() {
    for level in 0..3 {
        for deleted in [true, false] {
            let mut w = World::new();
            let tables = map_tables(&mut w, BASE);
            let copy = w.copy(tables[level], ALL).expect("copied");
            w.delete(tables[level]).expect("deleted");
            let taken = error(map_table(&mut w, level, BASE));
            assert_eq!(taken, ErrorNumber::DeleteFirst, "a copy is left");
            if deleted {
                w.delete(copy).expect("deleted");
            } else {
                w.invoke(copy, TABLES[level].2, &[], &[]).expect("unmapped");
                assert!(w
                    .cap(copy)
                    .paging()
                    .is_some_and(|table| table.mapping.is_none()));
            }
            map_table(&mut w, level, BASE).expect("there is room");
        }
    }
}

#[test]
fn addresses_end_where_the_users_half_does() {
    let mut w = World::new();
    // The very last page is nobody's (07, section 6).
    let top = 0x7fff_ffff_f000;
    map_tables(&mut w, top);
    let page = w.make(types::PAGE, 0);
    map_page(&mut w, page, top - 4096).expect("the last page");
    let page = w.make(types::PAGE, 0);
    assert_eq!(
        error(map_page(&mut w, page, top)),
        ErrorNumber::InvalidArgument
    );
    for beyond in [0x8000_0000_0000, u64::MAX << 12] {
        assert_eq!(
            error(map_page(&mut w, page, beyond)),
            ErrorNumber::InvalidArgument
        );
        let table = error(map_table(&mut w, 0, beyond));
        assert_eq!(table, ErrorNumber::InvalidArgument);
    }
    for crooked in [BASE + 1, BASE + 0xfff, top - 1] {
        assert_eq!(
            error(map_page(&mut w, page, crooked)),
            ErrorNumber::AlignmentError
        );
    }
}

/// The page that is mapped where another was before stays when that one is unmapped or goes.
#[test]
fn a_page_takes_only_itself_away() {
    for deleted in [true, false] {
        let mut w = World::new();
        let tables = map_tables(&mut w, BASE);
        let (first, second) = (w.make(types::PAGE, 0), w.make(types::PAGE, 0));
        map_page(&mut w, first, BASE).expect("mapped");
        w.delete(tables[2]).expect("deleted");
        map_table(&mut w, 2, BASE).expect("another table");
        map_page(&mut w, second, BASE).expect("mapped");
        if deleted {
            w.delete(first).expect("deleted");
        } else {
            w.invoke(first, arch::PAGE_UNMAP, &[], &[])
                .expect("unmapped");
        }
        let start = w.cap(second).word().address();
        assert_eq!(page_at(&w, BASE), Some(start), "the second is there");
        w.invoke(second, arch::PAGE_UNMAP, &[], &[])
            .expect("unmapped");
        assert_eq!(page_at(&w, BASE), None);
    }
}

/// So does the table that is mapped where another was before.
#[test]
fn a_table_takes_only_itself_away() {
    for deleted in [true, false] {
        let mut w = World::new();
        let [_, upper, first] = map_tables(&mut w, BASE);
        w.delete(upper).expect("deleted");
        map_table(&mut w, 1, BASE).expect("another upper table");
        map_table(&mut w, 2, BASE).expect("another table below it");
        if deleted {
            w.delete(first).expect("deleted");
        } else {
            w.invoke(first, arch::PAGE_TABLE_UNMAP, &[], &[])
                .expect("unmapped");
        }
        let page = w.make(types::PAGE, 0);
        map_page(&mut w, page, BASE).expect("the second table is there");
    }
}

/// A mapping can be given other rights, and is not moved by mapping it again.
#[test]
fn a_mapped_page_is_mapped_again_in_its_place_only() {
    let mut w = World::new();
    map_tables(&mut w, BASE);
    let page = w.make(types::PAGE, 0);
    map_page(&mut w, page, BASE).expect("mapped");
    map_page(&mut w, page, BASE).expect("again");
    assert_eq!(
        error(map_page(&mut w, page, BASE + 4096)),
        ErrorNumber::InvalidArgument
    );
    let copy = w.copy(page, ALL).expect("copied");
    map_page(&mut w, copy, BASE + 4096).expect("a copy is mapped where there is room");
    assert_eq!(
        error(map_page(&mut w, copy, BASE)),
        ErrorNumber::InvalidArgument
    );
}
