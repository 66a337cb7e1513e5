//! What only aarch64 has, or has in another way.

use sandglass_abi::invocation::aarch64 as label;
use sandglass_abi::object;
use sandglass_abi::object::aarch64 as kind;
use sandglass_model::cap::derivation::get;
use sandglass_model::error::Error;
use sandglass_model::state::{Cap, LookupFailure, Mapping};
use sandglass_model::State;

use crate::capabilities::{
    boot, call, delete, retype, revoke, slot, ALL_RIGHTS, ASID_CONTROL, IRQ_CONTROL, NODE, UNTYPED,
};

/// A root table in slot 30 with an identifier, tables in 31 to 33, not mapped, and two frames in 40 and 41.
fn address_space(s: &mut State) {
    let make = |s: &mut State, kind, to, number| retype(s, UNTYPED, kind, 0, to, number).unwrap();
    retype(s, UNTYPED, object::UNTYPED, 12, 50, 1).unwrap();
    make(s, kind::VSPACE, 30, 1);
    make(s, kind::PAGE_TABLE, 31, 3);
    make(s, kind::SMALL_PAGE, 40, 2);
    let make_pool = label::ASID_CONTROL_MAKE_POOL;
    call(s, ASID_CONTROL, make_pool, &[51, 64], &[50, NODE]).unwrap();
    call(s, 51, label::ASID_POOL_ASSIGN, &[], &[30]).unwrap();
}

fn map(s: &mut State, frame: u64, vaddr: u64) -> Result<(), Error> {
    let words = [vaddr, ALL_RIGHTS, 3];
    call(s, frame, label::PAGE_MAP, &words, &[30])
}

fn map_table(s: &mut State, table: u64, vaddr: u64) -> Result<(), Error> {
    call(s, table, label::PAGE_TABLE_MAP, &[vaddr, 0], &[30])
}

/// 03, section 9.2: tables at the same address build one level after the other; what is reached is named by what its
/// entries cover.
#[test]
fn tables_are_built_from_the_root_down() {
    let mut s = boot();
    address_space(&mut s);
    let missing = |bits_left| {
        let failure = LookupFailure::MissingCapability { bits_left };
        Err(Error::FailedLookup {
            is_source: false,
            failure,
        })
    };
    for (table, (bits, covered)) in (31..).zip([(39, 39), (30, 30), (21, 21)]) {
        assert_eq!(map(&mut s, 40, 0x3000), missing(bits));
        map_table(&mut s, table, (1 << 30) + 0x3000 - (1 << 30)).unwrap();
        let Some(Cap::Paging { mapping, .. }) = get(&s, slot(table)) else {
            panic!("there is a table in slot {table}");
        };
        let vaddr = 0x3000 >> covered << covered;
        assert_eq!(mapping, Some(Mapping { asid: 1, vaddr }));
    }
    map(&mut s, 40, 0x3000).unwrap();
    retype(&mut s, UNTYPED, kind::PAGE_TABLE, 0, 34, 1).unwrap();
    assert_eq!(map_table(&mut s, 34, 0x3000), Err(Error::DeleteFirst));
    // The table in the middle goes: what was below it is reached no more.
    delete(&mut s, 32);
    assert_eq!(map(&mut s, 41, 0x4000), missing(30));
}

/// 02, section 5.2: signals that were issued for the same interrupt are not derived from each other.
#[test]
fn each_signal_has_its_own_copies() {
    let mut s = boot();
    let issue = |s: &mut State, slot: u64| {
        let words = [3, 0, slot, 64];
        let issue = label::IRQ_CONTROL_ISSUE_SGI_SIGNAL;
        call(s, IRQ_CONTROL, issue, &words, &[NODE]).unwrap();
    };
    issue(&mut s, 10);
    issue(&mut s, 11);
    revoke(&mut s, 11);
    assert!(get(&s, slot(10)).is_some() && get(&s, slot(11)).is_some());
    revoke(&mut s, IRQ_CONTROL);
    assert!(get(&s, slot(10)).is_none() && get(&s, slot(11)).is_none());
}
