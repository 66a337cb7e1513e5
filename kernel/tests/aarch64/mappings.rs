//! Tables and frames in address spaces: what is mapped where, what the end of a capability does to it, and which
//! translations are forgotten (03, sections 9.2 and 9.3; 07, sections 6, 8 and 9).

use sandglass_abi::vspace::aarch64::{HIGHEST_PAGE, ROOT_TASK_ASID, USER_TOP};
use sandglass_kernel::arch::aarch64::hosted::Forgotten;
use sandglass_kernel::arch::abi::pte::{self, Entry};
use sandglass_kernel::arch::abi::space;

use super::*;

const ASID: u16 = ROOT_TASK_ASID as u16;

/// The entry at which the walk for `vaddr` ends, for the root task: as the machine reads it.
fn raw_at(w: &World, vaddr: u64) -> u64 {
    let root = space::root_of(&w.k, ASID).expect("a root table");
    let end = space::walk(&w.k, root.at(&w.k).as_ref(), vaddr);
    end.table.inspect().nth(end.index).expect("an entry")
}

/// The page that is mapped at `vaddr` for the root task.
fn page_at(w: &World, vaddr: u64) -> Option<u64> {
    match pte::decode(raw_at(w, vaddr)) {
        Entry::Page(page) => Some(page.start),
        _ => None,
    }
}

#[test]
fn tables_are_built_from_the_root_down_and_fit_once() {
    let mut w = World::new();
    let page = w.make(types::SMALL_PAGE, 0);
    for bits in [39, 30, 21] {
        assert_eq!(error(map_page(&mut w, page, BASE)), missing(bits));
        map_table(&mut w, BASE + 0x1234).expect("mapped");
    }
    let full = error(map_table(&mut w, BASE));
    assert_eq!(full, (ErrorNumber::DeleteFirst, vec![]));
    map_page(&mut w, page, BASE).expect("mapped");
    let beside = BASE + (1 << 30);
    assert_eq!(
        error(map_page(&mut w, page, beside)).0,
        ErrorNumber::InvalidArgument
    );
}

/// A frame stands at the level of its size; a table where a large frame should be, or a large frame where a table should
/// be, is the wrong level, and no table takes the place of a frame.
#[test]
fn frames_of_all_sizes_have_their_levels() {
    let mut w = World::with_memory(128 << 20);
    let [large, small] = [types::LARGE_PAGE, types::SMALL_PAGE].map(|page| w.make(page, 0));
    map_table(&mut w, BASE).expect("level 1");
    assert_eq!(error(map_page(&mut w, large, BASE)), missing(30));
    map_table(&mut w, BASE).expect("level 2");
    map_page(&mut w, large, BASE).expect("a block of 2 MiB");
    assert_eq!(page_at(&w, BASE + 0x1000), Some(start_of(&w, large)));
    assert_eq!(error(map_page(&mut w, small, BASE + 0x1000)), missing(21));
    let taken = error(map_table(&mut w, BASE));
    assert_eq!(taken.0, ErrorNumber::DeleteFirst, "a frame is there");
    let next = BASE + (2 << 20);
    map_table(&mut w, next).expect("level 3");
    let other = w.make(types::LARGE_PAGE, 0);
    assert_eq!(error(map_page(&mut w, other, next)), missing(12));
    map_page(&mut w, small, next).expect("a page of 4 KiB");
    w.invoke(large, label::PAGE_UNMAP, &[], &[])
        .expect("unmapped");
    assert_eq!(page_at(&w, BASE), None);
    assert_eq!(page_at(&w, next), Some(start_of(&w, small)));
}

/// 07, section 6.
#[test]
fn rights_and_attributes_are_in_the_entry() {
    let mut w = World::new();
    map_tables(&mut w, BASE);
    let page = w.make(types::SMALL_PAGE, 0);
    let readable = w.copy(page, 0b10).expect("a copy to read");
    let mut at = BASE;
    for (cap, rights, access) in [
        (page, 0b11, 0b01),
        (page, 0b10, 0b11),
        (page, 0b01, 0b00),
        (page, 0b00, 0b00),
        (readable, 0b11, 0b11),
        (readable, 0b01, 0b00),
    ] {
        for attributes in 0..8 {
            let copy = w.copy(cap, ALL).expect("copied");
            map_page_with(&mut w, copy, at, rights, attributes).expect("mapped");
            let raw = raw_at(&w, at);
            assert_eq!(raw >> 6 & 0b11, access, "rights {rights:b}");
            assert_eq!(
                raw >> 2 & 0b111,
                attributes & 1,
                "memory type of {attributes:b}"
            );
            assert_eq!(
                raw >> 54 & 1,
                attributes >> 2 & 1,
                "execute never of {attributes:b}"
            );
            assert_eq!(raw >> 53 & 1, 1, "never by the kernel");
            at += 0x1000;
        }
    }
}

#[test]
fn a_table_that_goes_leaves_its_place() {
    for level in 0..3 {
        for deleted in [true, false] {
            let mut w = World::new();
            let tables = map_tables(&mut w, BASE);
            let copy = w.copy(tables[level], ALL).expect("copied");
            let kept = error(w.invoke(copy, label::PAGE_TABLE_UNMAP, &[], &[]));
            assert_eq!(kept.0, ErrorNumber::RevokeFirst, "there is a copy");
            w.delete(tables[level]).expect("deleted");
            assert_eq!(w.k.machine.take_forgotten(), [], "a copy is left");
            if deleted {
                w.delete(copy).expect("deleted");
            } else {
                w.invoke(copy, label::PAGE_TABLE_UNMAP, &[], &[])
                    .expect("unmapped");
                assert_eq!(w.cap(copy).table_mapping(), None);
                w.invoke(copy, label::PAGE_TABLE_UNMAP, &[], &[])
                    .expect("again");
            }
            // What was cached of the way through the table, and what it led to.
            assert_eq!(w.k.machine.take_forgotten(), [Forgotten::Space(ASID)]);
            let page = w.make(types::SMALL_PAGE, 0);
            let bits = [39, 30, 21][level];
            assert_eq!(error(map_page(&mut w, page, BASE)), missing(bits));
            map_table(&mut w, BASE).expect("there is room");
        }
    }
}

/// A table that is unmapped is empty when it is mapped again.
#[test]
fn an_unmapped_table_forgets_what_it_held() {
    let mut w = World::new();
    let tables = map_tables(&mut w, BASE);
    let page = w.make(types::SMALL_PAGE, 0);
    map_page(&mut w, page, BASE).expect("mapped");
    w.invoke(tables[2], label::PAGE_TABLE_UNMAP, &[], &[])
        .expect("unmapped");
    w.invoke(
        tables[2],
        label::PAGE_TABLE_MAP,
        &[BASE, 0],
        &[slot::VSPACE],
    )
    .expect("mapped again");
    assert_eq!(page_at(&w, BASE), None);
    w.invoke(page, label::PAGE_UNMAP, &[], &[])
        .expect("nothing is to be done");
}

#[test]
fn addresses_end_where_the_users_half_does() {
    let mut w = World::new();
    map_tables(&mut w, HIGHEST_PAGE);
    let page = w.make(types::SMALL_PAGE, 0);
    map_page(&mut w, page, HIGHEST_PAGE).expect("the last page");
    let page = w.make(types::SMALL_PAGE, 0);
    for beyond in [USER_TOP + 1, u64::MAX << 12] {
        let refused = error(map_page(&mut w, page, beyond));
        assert_eq!(refused, (ErrorNumber::InvalidArgument, vec![0]));
        let table = error(map_table(&mut w, beyond));
        assert_eq!(table, (ErrorNumber::InvalidArgument, vec![0]));
    }
    for crooked in [BASE + 1, BASE + 0xfff, USER_TOP, u64::MAX] {
        let refused = error(map_page(&mut w, page, crooked));
        assert_eq!(refused.0, ErrorNumber::AlignmentError);
    }
    let table = map_table(&mut w, USER_TOP).map_err(|refused| refused.error);
    assert_eq!(table, Err(ErrorNumber::DeleteFirst), "all are there");
}

/// The page that is mapped where another was before stays when that one is unmapped or goes.
#[test]
fn a_page_takes_only_itself_away() {
    for deleted in [true, false] {
        let mut w = World::new();
        let tables = map_tables(&mut w, BASE);
        let (first, second) = (w.make(types::SMALL_PAGE, 0), w.make(types::SMALL_PAGE, 0));
        map_page(&mut w, first, BASE).expect("mapped");
        w.delete(tables[2]).expect("deleted");
        map_table(&mut w, BASE).expect("another table");
        map_page(&mut w, second, BASE).expect("mapped");
        let _ = w.k.machine.take_forgotten();
        if deleted {
            w.delete(first).expect("deleted");
        } else {
            w.invoke(first, label::PAGE_UNMAP, &[], &[])
                .expect("unmapped");
        }
        assert_eq!(w.k.machine.take_forgotten(), []);
        assert_eq!(page_at(&w, BASE), Some(start_of(&w, second)));
        w.invoke(second, label::PAGE_UNMAP, &[], &[])
            .expect("unmapped");
        assert_eq!(page_at(&w, BASE), None);
        assert_eq!(w.k.machine.take_forgotten(), [Forgotten::Page(ASID, BASE)]);
    }
}

/// So does the table that is mapped where another was before, at whatever level.
#[test]
fn a_table_takes_only_itself_away() {
    for deleted in [true, false] {
        let mut w = World::new();
        let [_, upper, first] = map_tables(&mut w, BASE);
        w.delete(upper).expect("deleted");
        map_table(&mut w, BASE).expect("another upper table");
        map_table(&mut w, BASE).expect("another table below it");
        if deleted {
            w.delete(first).expect("deleted");
        } else {
            w.invoke(first, label::PAGE_TABLE_UNMAP, &[], &[])
                .expect("unmapped");
        }
        let page = w.make(types::SMALL_PAGE, 0);
        map_page(&mut w, page, BASE).expect("the second table is there");
    }
}

/// A mapping can be given other rights, and is not moved by mapping it again; the old translation is forgotten before the
/// new one is there.
#[test]
fn a_mapped_page_is_mapped_again_in_its_place_only() {
    let mut w = World::new();
    map_tables(&mut w, BASE);
    let page = w.make(types::SMALL_PAGE, 0);
    map_page(&mut w, page, BASE).expect("mapped");
    assert_eq!(w.k.machine.take_forgotten(), [], "nothing was there");
    map_page_with(&mut w, page, BASE, 0b10, 1).expect("again, to read");
    assert_eq!(raw_at(&w, BASE) >> 6 & 0b11, 0b11);
    assert_eq!(w.k.machine.take_forgotten(), [Forgotten::Page(ASID, BASE)]);
    let elsewhere = error(map_page(&mut w, page, BASE + 4096));
    assert_eq!(elsewhere, (ErrorNumber::InvalidArgument, vec![0]));
    let copy = w.copy(page, ALL).expect("copied");
    map_page(&mut w, copy, BASE + 4096).expect("a copy is mapped where there is room");
    // A page that is there is replaced.
    let other = w.make(types::SMALL_PAGE, 0);
    map_page(&mut w, other, BASE).expect("mapped over the first");
    assert_eq!(page_at(&w, BASE), Some(start_of(&w, other)));
    assert_eq!(w.k.machine.take_forgotten(), [Forgotten::Page(ASID, BASE)]);
    let root = make_space(&mut w);
    let words = [BASE, READ_WRITE, 0];
    let foreign = error(w.invoke(page, label::PAGE_MAP, &words, &[root]));
    assert_eq!(foreign, (ErrorNumber::InvalidCapability, vec![1]));
}

/// The translations of an address space are forgotten when its identifier is free again; those of all when a pool goes.
#[test]
fn an_identifier_is_forgotten_before_it_is_used_again() {
    let mut w = World::new();
    let root = make_space(&mut w);
    let asid = w.cap(root).root_asid().expect("an identifier");
    map_table_in(&mut w, root, BASE).expect("mapped");
    let _ = w.k.machine.take_forgotten();
    w.delete(root).expect("deleted");
    assert_eq!(w.k.machine.take_forgotten(), [Forgotten::Space(asid)]);
    let again = make_space(&mut w);
    assert_eq!(w.cap(again).root_asid(), Some(asid));
    w.delete(slot::ASID_POOL).expect("deleted");
    assert_eq!(w.k.machine.take_forgotten(), [Forgotten::All]);
    w.delete(again).expect("deleted");
    assert_eq!(
        w.k.machine.take_forgotten(),
        [],
        "it was no pool's any more"
    );
}

/// The very last identifier of the last pool can be used (07, section 8).
#[test]
fn the_highest_identifier_names_an_address_space() {
    let mut w = World::with_memory(512 << 20);
    let mut pool = slot::ASID_POOL;
    for _ in 1..128 {
        let memory = w.make(sandglass_abi::object::UNTYPED, 12);
        pool = w.fresh_slot();
        let caps = [memory, slot::CNODE];
        w.invoke(
            slot::ASID_CONTROL,
            label::ASID_CONTROL_MAKE_POOL,
            &[pool, 64],
            &caps,
        )
        .expect("a pool");
    }
    let mut last = 0;
    for _ in 0..512 {
        last = w.make(types::VSPACE, 0);
        w.invoke(pool, label::ASID_POOL_ASSIGN, &[], &[last])
            .expect("an identifier");
    }
    assert_eq!(w.cap(last).root_asid(), Some(u16::MAX));
    let table = map_table_in(&mut w, last, BASE).expect("mapped");
    let mapping = w.cap(table).table_mapping().expect("a mapping");
    assert_eq!((mapping.asid, mapping.vaddr), (u16::MAX, BASE));
    let none = w.make(types::VSPACE, 0);
    let full = error(w.invoke(pool, label::ASID_POOL_ASSIGN, &[], &[none]));
    assert_eq!(full.0, ErrorNumber::DeleteFirst);
}

#[test]
fn address_spaces_are_told_apart() {
    let mut w = World::new();
    let root = make_space(&mut w);
    let unassigned = w.make(types::VSPACE, 0);
    let page = w.make(types::SMALL_PAGE, 0);
    let words = [BASE, READ_WRITE, 0];
    for wrong in [unassigned, page, slot::CNODE] {
        let refused = error(w.invoke(page, label::PAGE_MAP, &words, &[wrong]));
        assert_eq!(refused, (ErrorNumber::InvalidCapability, vec![1]));
        let table = error(map_table_in(&mut w, wrong, BASE));
        assert_eq!(table, (ErrorNumber::InvalidCapability, vec![1]));
    }
    for _ in 0..3 {
        map_table_in(&mut w, root, BASE).expect("mapped");
    }
    w.invoke(page, label::PAGE_MAP, &words, &[root])
        .expect("mapped there");
    assert_eq!(page_at(&w, BASE), None, "and not here");
    let address = w.invoke(page, label::PAGE_GET_ADDRESS, &[], &[]);
    assert_eq!(address, Ok(vec![start_of(&w, page)]));
}
