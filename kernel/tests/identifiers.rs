//! Address-space identifiers: pools, who gets which, and what the loss of one means (03, sections
//! 8.4 and 8.5; 07, section 8).

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_testkit::isa::{self, ASIDS_PER_POOL, ASID_POOLS, ROOT_TASK_ASID};
use sandglass_testkit::world::{Refused, World};

const ALL: u64 = 0b1111;

fn make_pool(w: &mut World, untyped: u64) -> Result<u64, Refused> {
    let slot = w.fresh_slot();
    let caps = [untyped, slot::CNODE];
    w.invoke(
        slot::ASID_CONTROL,
        isa::label::ASID_CONTROL_MAKE_POOL,
        &[slot, 64],
        &caps,
    )?;
    Ok(slot)
}

fn assign(w: &mut World, pool: u64, root: u64) -> Result<u16, Refused> {
    w.invoke(pool, isa::label::ASID_POOL_ASSIGN, &[], &[root])?;
    Ok(w.cap(root).root_asid().expect("an identifier"))
}

fn error<T: std::fmt::Debug>(result: Result<T, Refused>) -> (ErrorNumber, Vec<u64>) {
    let refused = result.expect_err("refused");
    (refused.error, refused.details)
}

#[test]
fn identifiers_are_the_lowest_free_and_never_nothing() {
    let mut w = World::new();
    let mut roots = Vec::new();
    for expected in 2..ASIDS_PER_POOL as u16 {
        let root = w.make(isa::types::ROOT_TABLE, 0);
        assert_eq!(assign(&mut w, slot::ASID_POOL, root), Ok(expected));
        roots.push(root);
    }
    let one_more = w.make(isa::types::ROOT_TABLE, 0);
    let full = error(assign(&mut w, slot::ASID_POOL, one_more));
    assert_eq!(full.0, ErrorNumber::DeleteFirst);
    for i in [7, 300] {
        let asid = w.cap(roots[i]).root_asid();
        w.delete(roots[i]).expect("deleted");
        let root = w.make(isa::types::ROOT_TABLE, 0);
        assert_eq!(assign(&mut w, slot::ASID_POOL, root).ok(), asid);
    }
    let memory = w.make(types::UNTYPED, 12);
    let pool = make_pool(&mut w, memory).expect("a pool");
    let first = ASIDS_PER_POOL as u16;
    assert_eq!(
        assign(&mut w, pool, one_more),
        Ok(first),
        "of the next pool"
    );
}

/// A pool is inserted like a copy of its memory: it is no parent, wherever it moves, and neither are
/// its copies (02, section 5.1).
#[test]
fn a_pool_is_no_parent_of_its_copies() {
    let mut w = World::new();
    let memory = w.make(types::UNTYPED, 12);
    let pool = make_pool(&mut w, memory).expect("a pool");
    let first = w.copy(pool, ALL).expect("a copy");
    let second = w.copy(first, ALL).expect("a copy");
    for slot in [pool, first, second] {
        w.revoke(slot).expect("revoked");
        for kept in [pool, first, second] {
            assert!(!w.cap(kept).is_null(), "revoking {slot} took {kept}");
        }
    }
    w.revoke(memory).expect("revoked");
    for gone in [pool, first, second] {
        assert!(w.cap(gone).is_null());
    }
}

#[test]
fn pools_have_the_lowest_free_numbers() {
    let mut w = World::new();
    let mut pools = Vec::new();
    let mut memory = Vec::new();
    for number in 1..ASID_POOLS as u64 {
        let untyped = w.make(types::UNTYPED, 12);
        let pool = make_pool(&mut w, untyped).expect("a pool");
        assert_eq!(w.cap(pool).pool_number(), number);
        pools.push(pool);
        memory.push(untyped);
    }
    let untyped = w.make(types::UNTYPED, 12);
    assert_eq!(
        error(make_pool(&mut w, untyped)).0,
        ErrorNumber::DeleteFirst
    );
    w.revoke(memory[2]).expect("revoked");
    assert!(w.cap(pools[2]).is_null());
    let pool = make_pool(&mut w, untyped).expect("a pool");
    assert_eq!(w.cap(pool).pool_number(), 3);
    let used = error(make_pool(&mut w, memory[4]));
    assert_eq!(
        used.0,
        ErrorNumber::DeleteFirst,
        "numbers come before memory"
    );
}

#[test]
fn a_pool_is_made_of_one_page_of_unused_memory() {
    let mut w = World::new();
    for wrong in [
        w.make(types::UNTYPED, 11),
        w.make(types::UNTYPED, 13),
        w.make(types::ENDPOINT, 0),
    ] {
        let refused = error(make_pool(&mut w, wrong));
        assert_eq!(refused, (ErrorNumber::InvalidCapability, vec![1]));
    }
    let is_device = |i: &u64| w.cap(*i).untyped().is_some_and(|memory| memory.is_device());
    let device = (0..w.untyped + 64).find(is_device).expect("device memory");
    let page = w.fresh_slot();
    w.retype(device, types::UNTYPED, 12, page, 1)
        .expect("a page");
    let refused = error(make_pool(&mut w, page));
    assert_eq!(refused, (ErrorNumber::InvalidCapability, vec![1]));
    let page = w.make(types::UNTYPED, 12);
    let inner = w.fresh_slot();
    w.retype(page, types::ENDPOINT, 0, inner, 1)
        .expect("an endpoint");
    assert_eq!(error(make_pool(&mut w, page)).0, ErrorNumber::RevokeFirst);
    w.delete(inner).expect("deleted");
    make_pool(&mut w, page).expect("what was there is reset");
}

/// What the memory of a pool held before is no identifier's table.
#[test]
fn a_new_pool_is_empty_whatever_its_memory_held() {
    let mut w = World::new();
    let page = w.make(types::UNTYPED, 12);
    let threads = [w.fresh_slot(), w.fresh_slot()];
    w.retype(page, types::TCB, 0, threads[0], 2)
        .expect("threads");
    for thread in threads {
        let mut words = vec![0, 20];
        words.extend([0x10_1000; 20]);
        w.invoke(thread, label::TCB_WRITE_REGISTERS, &words, &[])
            .expect("written");
        w.delete(thread).expect("deleted");
    }
    let pool = make_pool(&mut w, page).expect("a pool");
    for number in 0..ASIDS_PER_POOL as u16 {
        let asid = ASIDS_PER_POOL as u16 + number;
        let handle = w.k.arch.asids.pool(asid).expect("the pool");
        assert!(handle.at(&w.k).root(asid).is_none(), "{number}");
    }
    let root = w.make(isa::types::ROOT_TABLE, 0);
    assert_eq!(assign(&mut w, pool, root), Ok(ASIDS_PER_POOL as u16));
}

#[test]
fn a_root_table_gets_one_identifier() {
    let mut w = World::new();
    let root = w.make(isa::types::ROOT_TABLE, 0);
    let table = w.make(isa::types::TABLES[2], 0);
    let invalid = (ErrorNumber::InvalidCapability, vec![1]);
    assert_eq!(error(assign(&mut w, slot::ASID_POOL, table)), invalid);
    assert_eq!(
        error(assign(&mut w, slot::ASID_POOL, slot::VSPACE)),
        invalid
    );
    assign(&mut w, slot::ASID_POOL, root).expect("assigned");
    assert_eq!(error(assign(&mut w, slot::ASID_POOL, root)), invalid);
}

/// The thread that runs goes on where nothing is mapped; others are not touched.
#[test]
fn an_address_space_ends_with_its_pool() {
    let mut w = World::new();
    let own = w.k.machine.address_space();
    let memory = w.make(types::UNTYPED, 12);
    let pool = make_pool(&mut w, memory).expect("a pool");
    let root = w.make(isa::types::ROOT_TABLE, 0);
    assign(&mut w, pool, root).expect("assigned");
    let flushes = w.k.machine.flushes();
    w.delete(pool).expect("deleted");
    assert!(
        w.k.machine.flushes() > flushes,
        "translations are forgotten"
    );
    assert_eq!(
        w.k.machine.address_space(),
        own,
        "another pool's space stays"
    );
    let page = w.make(isa::types::TABLES[0], 0);
    let refused = error(w.invoke(
        page,
        isa::label::TABLE_MAP[0],
        &[0x100_0000_0000, 0],
        &[root],
    ));
    assert_eq!(
        refused.0,
        ErrorNumber::FailedLookup,
        "no pool has the identifier"
    );
    w.delete(root).expect("a root table may go after its pool");
    assert_eq!(w.cap(slot::VSPACE).root_asid(), Some(ROOT_TASK_ASID as u16));
    w.delete(slot::ASID_POOL).expect("deleted");
    assert_eq!(w.k.machine.address_space(), None);
}

#[test]
fn an_address_space_ends_with_its_root_table() {
    let mut w = World::new();
    let root = w.make(isa::types::ROOT_TABLE, 0);
    let asid = assign(&mut w, slot::ASID_POOL, root).expect("assigned");
    let flushes = w.k.machine.flushes();
    w.delete(root).expect("deleted");
    assert!(
        w.k.machine.flushes() > flushes,
        "translations are forgotten"
    );
    let pool = w.k.arch.asids.pool(asid).expect("the first pool");
    assert!(pool.at(&w.k).root(asid).is_none(), "the identifier is free");
}

/// 03, section 4.10.
#[test]
fn whoever_gives_itself_another_address_space_goes_on_in_it() {
    let mut w = World::new();
    let root = w.make(isa::types::ROOT_TABLE, 0);
    assign(&mut w, slot::ASID_POOL, root).expect("assigned");
    let handler = w.make(types::ENDPOINT, 0);
    let caps = [handler, slot::CNODE, root];
    w.invoke(slot::TCB, label::TCB_SET_SPACE, &[0, 0], &caps)
        .expect("another address space");
    let address = w.cap(root).word().address();
    assert_eq!(w.k.machine.address_space(), Some(address));
}

/// What a thread knows of its former address space counts no more, though nobody has lost that one.
#[test]
fn whoever_is_given_another_address_space_while_it_waits_goes_on_in_it() {
    let mut w = World::new();
    let thread = w.start_thread(10, 5_000, 10_000);
    for _ in 0..2 {
        let root = w.make(isa::types::ROOT_TABLE, 0);
        assign(&mut w, slot::ASID_POOL, root).expect("assigned");
        let caps = [slot::NULL, slot::CNODE, root];
        w.invoke(thread.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
            .expect("another address space");
        let wakes = w.sleep();
        assert_eq!(w.running(), Some(thread.handle));
        let address = w.cap(root).word().address();
        assert_eq!(w.k.machine.address_space(), Some(address));
        w.wake(wakes);
    }
}

/// What a thread knows of an address space counts no more once that has lost its identifier.
#[test]
fn whoever_loses_its_address_space_while_it_waits_goes_on_where_nothing_is_mapped() {
    let mut w = World::new();
    let thread = w.start_thread(10, 5_000, 10_000);
    let memory = w.make(types::UNTYPED, 12);
    let pool = make_pool(&mut w, memory).expect("a pool");
    let root = w.make(isa::types::ROOT_TABLE, 0);
    assign(&mut w, pool, root).expect("assigned");
    let caps = [slot::NULL, slot::CNODE, root];
    w.invoke(thread.tcb, label::TCB_SET_SPACE, &[0, 0], &caps)
        .expect("another address space");
    let wakes = w.sleep();
    let address = w.cap(root).word().address();
    assert_eq!(w.k.machine.address_space(), Some(address));
    w.wake(wakes);
    w.delete(pool).expect("deleted");
    w.sleep();
    assert_eq!(w.running(), Some(thread.handle));
    assert_eq!(w.k.machine.address_space(), None);
}
