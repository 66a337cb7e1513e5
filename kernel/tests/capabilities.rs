//! Capabilities: derivation, lookup, deletion, revocation.

use sandglass_abi::boot::{slot, ROOT_CNODE_RADIX};
use sandglass_abi::error::{ErrorNumber, LookupFailureType};
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_testkit::isa;
use sandglass_testkit::world::{Refused, World};

const ALL: u64 = 0b1111;

fn refused(error: ErrorNumber, details: &[u64]) -> Result<Vec<u64>, Refused> {
    Err(Refused {
        error,
        details: details.to_vec(),
    })
}

#[test]
fn revoke_deletes_every_derived_capability_and_nothing_else() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let bystander = w.make(types::ENDPOINT, 0);
    let copy = w.copy(endpoint, ALL).expect("copied");
    let badged = w.mint(endpoint, ALL, 7).expect("minted");
    let copy_of_badged = w.copy(badged, ALL).expect("copied");
    w.revoke(badged).expect("revoked");
    assert!(
        w.cap(copy_of_badged).is_null(),
        "a copy of the badged capability is derived from it"
    );
    assert!(!w.cap(copy).is_null() && !w.cap(badged).is_null());
    w.revoke(copy).expect("revoked");
    assert!(!w.cap(badged).is_null(), "a plain copy has no children");
    w.revoke(endpoint).expect("revoked");
    for derived in [copy, badged, copy_of_badged] {
        assert!(
            w.cap(derived).is_null(),
            "slot {derived} is derived from the original"
        );
    }
    assert!(!w.cap(endpoint).is_null() && !w.cap(bystander).is_null());
}

#[test]
fn revoked_memory_is_zero_and_usable_again() {
    let mut w = World::new();
    let untyped = w.make(types::UNTYPED, 16);
    let slots = w.fresh_slot();
    w.retype(untyped, types::TCB, 0, slots, 1)
        .expect("a thread");
    let inner = w.fresh_slot();
    w.retype(untyped, types::CNODE, 4, inner, 1)
        .expect("a CNode");
    // The CNode holds the only capability to a thread.
    w.invoke(inner, label::CNODE_MOVE, &[0, 4, slots, 64], &[slot::CNODE])
        .expect("moved");
    let start = w.cap(untyped).untyped().expect("untyped").start().get();
    w.revoke(untyped).expect("revoked");
    assert!(w.cap(slots).is_null() && w.cap(inner).is_null());
    let again = w.fresh_slot();
    w.retype(untyped, isa::types::PAGE, 0, again, 16)
        .expect("frames over all of it");
    for _ in 1..16 {
        w.fresh_slot();
    }
    let memory = w.k.machine.read_memory(start, 1 << 16).expect("in memory");
    assert!(
        memory.iter().all(|&byte| byte == 0),
        "a new frame shows what was there before"
    );
}

#[test]
fn nested_cnodes_are_deleted_without_a_trace() {
    let mut w = World::new();
    let untyped = w.make(types::UNTYPED, 18);
    // Ten CNodes, each in the one before.
    let mut outer = slot::CNODE;
    let mut first = 0;
    for depth in 0..10 {
        let made = w.fresh_slot();
        w.retype(untyped, types::CNODE, 2, made, 1)
            .expect("a CNode");
        if depth == 0 {
            first = made;
        } else {
            w.invoke(outer, label::CNODE_MOVE, &[3, 2, made, 64], &[slot::CNODE])
                .expect("moved");
            // To reach it again, copy it to the root CNode.
            let copy = w.fresh_slot();
            w.invoke(
                slot::CNODE,
                label::CNODE_COPY,
                &[copy, 64, 3, 2, ALL],
                &[outer],
            )
            .expect("copied");
            if outer != first {
                w.delete(outer).expect("deleted");
            }
            outer = copy;
            continue;
        }
        outer = made;
    }
    w.delete(outer).expect("deleted");
    w.delete(first).expect("deleted");
    assert!(w.cap(first).is_null());
    // Nothing is left in the memory: it has no children.
    let again = w.fresh_slot();
    w.retype(untyped, types::UNTYPED, 18, again, 1)
        .expect("the whole memory is free");
}

/// Each of two CNodes holds the last capability to the other, so that the slot under deletion lies in
/// what is deleted (02, section 7.1: what is in the slots is deleted recursively).
#[test]
fn cnodes_in_each_other_are_deleted_whole() {
    for place in [0, 1, 5, 15] {
        let mut w = World::new();
        let memory = [0; 3].map(|_| w.make(types::UNTYPED, 14));
        let mut make = |i: usize, kind, size| {
            let made = w.fresh_slot();
            w.retype(memory[i], kind, size, made, 1).expect("an object");
            made
        };
        let (x, y) = (make(0, types::CNODE, 1), make(1, types::CNODE, 4));
        let bystanders = [0; 15].map(|_| make(2, types::ENDPOINT, 0));
        let copy = w.copy(x, ALL).expect("copied");
        let mut put = |node, i, bits, from| {
            let words = [i, bits, from, 64];
            w.invoke(node, label::CNODE_MOVE, &words, &[slot::CNODE])
                .expect("moved");
        };
        for (i, &endpoint) in (0..16).filter(|i| *i != place).zip(&bystanders) {
            put(y, i, 4, endpoint);
        }
        put(y, place, 4, x);
        put(copy, 1, 1, y);
        w.delete(copy).expect("deleted");
        w.revoke(memory[0]).expect("revoked");
        for untyped in memory {
            let again = w.fresh_slot();
            w.retype(untyped, types::UNTYPED, 14, again, 1)
                .expect("nothing is left in the memory");
        }
    }
}

#[test]
fn a_preempted_deletion_goes_on_where_it_was() {
    let mut w = World::new();
    let untyped = w.make(types::UNTYPED, 20);
    let node = w.fresh_slot();
    w.retype(untyped, types::CNODE, 8, node, 1)
        .expect("a CNode");
    for i in 0..256 {
        let words = [types::ENDPOINT, 0, 0, 0, i, 1];
        w.invoke(untyped, label::UNTYPED_RETYPE, &words, &[node])
            .expect("an endpoint");
    }
    w.k.machine.set_interrupt_pending(true);
    w.delete(node).expect("deleted in the end");
    w.k.machine.set_interrupt_pending(false);
    assert!(w.cap(node).is_null());
    let again = w.fresh_slot();
    w.retype(untyped, types::UNTYPED, 20, again, 1)
        .expect("the whole memory is free");
}

#[test]
fn a_preempted_retype_makes_every_object_once() {
    let mut w = World::new();
    let untyped = w.make(types::UNTYPED, 18);
    let first = w.fresh_slot();
    for _ in 0..64 {
        w.fresh_slot();
    }
    w.k.machine.set_interrupt_pending(true);
    w.retype(untyped, types::TCB, 0, first, 64)
        .expect("threads");
    w.k.machine.set_interrupt_pending(false);
    let mut addresses: Vec<_> = (0..64)
        .map(|i| w.cap(first + i).word().address().get())
        .collect();
    addresses.dedup();
    assert_eq!(addresses.len(), 64);
    assert_eq!(
        addresses[63] - addresses[0],
        63 * 2048,
        "objects are consecutive"
    );
}

/// The largest size that an object may be asked for is one that no memory has.
#[test]
fn sizes_of_objects_have_a_range() {
    let mut w = World::new();
    let memory = w.untyped;
    let slot = w.fresh_slot();
    let mut make = |size| w.retype(memory, types::UNTYPED, size, slot, 1).unwrap_err();
    assert_eq!(make(47).error, ErrorNumber::NotEnoughMemory);
    assert_eq!(Err(make(48)), refused(ErrorNumber::RangeError, &[0, 47]));
    assert_eq!(make(3).error, ErrorNumber::InvalidArgument);
}

/// A retype that was preempted and given up is not the beginning of another that is alike in all
/// but one respect: that one finds its slots taken.
#[test]
fn a_retype_begins_anew_whatever_was_given_up() {
    for differs in ["nothing", "memory", "size", "slot", "count"] {
        let mut w = World::new();
        let memories = [(); 2].map(|()| w.make(types::UNTYPED, 18));
        let first = w.fresh_slot();
        for _ in 0..128 {
            w.fresh_slot();
        }
        let mut words = [types::SCHED_CONTEXT, 9, 0, 0, first, 48];
        w.k.machine.set_interrupt_pending(true);
        w.set_extra_caps(&[slot::CNODE]);
        let info = MessageInfo::new(label::UNTYPED_RETYPE, 0, 1, 6);
        w.syscall(Syscall::Call, memories[0], 0, info, &words);
        w.k.machine.set_interrupt_pending(false);
        let made = (0..48).filter(|i| !w.cap(first + i).is_null()).count();
        assert!((1..48).contains(&made), "preempted after {made}");
        let mut memory = memories[0];
        match differs {
            "memory" => memory = memories[1],
            "size" => words[1] = 10,
            "slot" => words[4] = first + 64,
            "count" => words[5] = 47,
            _ => {}
        }
        let result = w.invoke(memory, label::UNTYPED_RETYPE, &words, &[slot::CNODE]);
        if matches!(differs, "nothing" | "slot") {
            assert_eq!(result, Ok(vec![]), "{differs}");
            let all = (0..48).all(|i| !w.cap(words[4] + i).is_null());
            assert!(all, "{differs}");
        } else {
            assert_eq!(result, refused(ErrorNumber::DeleteFirst, &[]), "{differs}");
        }
    }
}

#[test]
fn mint_never_changes_a_badge_and_copy_never_adds_rights() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let badged = w.mint(endpoint, ALL, 5).expect("minted");
    for data in [0, 5, 6] {
        let again = w.mint(badged, ALL, data).map(|_| vec![]);
        assert_eq!(
            again,
            refused(ErrorNumber::IllegalOperation, &[]),
            "badge {data}"
        );
    }
    let send_only = w.copy(endpoint, 1).expect("copied");
    let copy = w.copy(send_only, ALL).expect("copied");
    let rights = w.cap(copy).endpoint().expect("an endpoint").rights;
    assert!(rights.write() && !rights.read() && !rights.answerable());
}

#[test]
fn lookups_of_operations_report_where_they_failed() {
    let mut w = World::new();
    let endpoint = w.make(types::ENDPOINT, 0);
    let missing = w.fresh_slot();
    let copied = |w: &mut World, words: &[u64]| {
        w.invoke(slot::CNODE, label::CNODE_COPY, words, &[slot::CNODE])
    };
    let target = w.fresh_slot();
    assert_eq!(
        copied(&mut w, &[target, 64, missing, 64, ALL]),
        refused(
            ErrorNumber::FailedLookup,
            &[1, LookupFailureType::MissingCapability as u64, 64]
        )
    );
    // The root CNode's guard is longer than 13 bits.
    let guard = 64 - u64::from(ROOT_CNODE_RADIX);
    assert_eq!(
        copied(&mut w, &[target, 13, endpoint, 64, ALL]),
        refused(
            ErrorNumber::FailedLookup,
            &[0, LookupFailureType::GuardMismatch as u64, 13, 0, guard]
        )
    );
    assert_eq!(
        copied(&mut w, &[0, 13, endpoint, 64, ALL]),
        refused(
            ErrorNumber::FailedLookup,
            &[0, LookupFailureType::GuardMismatch as u64, 13, 0, guard]
        ),
        "as far as there are bits, they are the guard's"
    );
    assert_eq!(
        copied(&mut w, &[0, guard, endpoint, 64, ALL]),
        refused(
            ErrorNumber::FailedLookup,
            &[0, LookupFailureType::DepthMismatch as u64, guard, 64]
        )
    );
    assert_eq!(
        copied(&mut w, &[target, 65, endpoint, 64, ALL]),
        refused(ErrorNumber::RangeError, &[1, 64])
    );
    assert_eq!(
        copied(&mut w, &[endpoint, 64, endpoint, 64, ALL]),
        refused(ErrorNumber::DeleteFirst, &[])
    );
}

#[test]
fn rotate_swaps_and_shifts() {
    let mut w = World::new();
    let a = w.make(types::ENDPOINT, 0);
    let b = w.make(types::NOTIFICATION, 0);
    let (cap_a, cap_b) = (w.cap(a), w.cap(b));
    let caps = [slot::CNODE, slot::CNODE];
    w.invoke(
        slot::CNODE,
        label::CNODE_ROTATE,
        &[a, 64, 0, b, 64, 0, a, 64],
        &caps,
    )
    .expect_err("an endpoint capability cannot be updated in place");
    let x = w.make(types::TCB, 0);
    let y = w.make(types::REPLY, 0);
    let z = w.fresh_slot();
    let (cap_x, cap_y) = (w.cap(x), w.cap(y));
    w.invoke(
        slot::CNODE,
        label::CNODE_ROTATE,
        &[x, 64, 0, y, 64, 0, x, 64],
        &caps,
    )
    .expect("swapped");
    assert_eq!((w.cap(x), w.cap(y)), (cap_y, cap_x));
    w.invoke(
        slot::CNODE,
        label::CNODE_ROTATE,
        &[z, 64, 0, y, 64, 0, x, 64],
        &caps,
    )
    .expect("shifted");
    assert_eq!((w.cap(z), w.cap(y)), (cap_x, cap_y));
    assert!(w.cap(x).is_null());
    assert_eq!((w.cap(a), w.cap(b)), (cap_a, cap_b));
}
