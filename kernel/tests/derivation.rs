//! Which capability is derived from which, for every kind, and what deletion does where CNodes hold
//! themselves (02, sections 5 and 7).

use proptest::prelude::*;
use sandglass_abi::boot::slot;
use sandglass_abi::cnode::GuardData;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation as label;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::mem::Slot;
use sandglass_kernel::mem::{Kind, Ref};
use sandglass_testkit::isa;
use sandglass_testkit::world::{Refused, World};

const ALL: u64 = 0b1111;

/// Copies of the capabilities that the root task was given are derived from them, and from nothing
/// else that they stand beside.
#[test]
fn copies_of_what_there_is_once_are_derived_from_it() {
    let mut w = World::new();
    assert_eq!(w.cap(isa::SCHED_CONTROL).core(), 0);
    let once = [
        isa::SCHED_CONTROL, // Scheduling control.
        slot::DOMAIN,
        slot::ASID_CONTROL,
    ];
    let copies = once.map(|original| w.copy(original, ALL).expect("copied"));
    let second = once.map(|original| w.copy(original, ALL).expect("copied"));
    w.revoke(copies[0]).expect("revoked");
    assert!(!w.cap(second[0]).is_null(), "copies have no children");
    for (i, &original) in once.iter().enumerate() {
        w.revoke(original).expect("revoked");
        for (j, &copy) in copies.iter().chain(&second).enumerate() {
            assert_eq!(w.cap(copy).is_null(), j % 3 <= i, "{copy} after {original}");
        }
    }
}

#[test]
fn handlers_are_derived_from_their_control() {
    let mut w = World::new();
    let handlers = [3, 4].map(|number| w.issue_irq(number).expect("a handler"));
    assert_eq!(
        w.copy(slot::IRQ_CONTROL, ALL)
            .map_err(|refused| refused.error),
        Err(ErrorNumber::IllegalOperation),
        "there is one control"
    );
    w.revoke(slot::IRQ_CONTROL).expect("revoked");
    assert!(handlers.iter().all(|&slot| w.cap(slot).is_null()));
    w.issue_irq(3).expect("free again");
}

/// An interrupt is free when the last of its capabilities is gone: those of others that stand beside it do not count.
#[test]
fn the_last_capability_of_an_interrupt_frees_it() {
    let mut w = World::new();
    let [below, middle, above] = [5, 6, 7].map(|i| w.issue_irq(i).expect("issued"));
    let copy = w.copy(middle, ALL).expect("copied");
    w.delete(middle).expect("deleted");
    let taken = w.issue_irq(6).map_err(|refused| refused.error);
    assert_eq!(taken, Err(ErrorNumber::RevokeFirst), "there is a copy");
    w.revoke(copy).expect("revoked");
    w.delete(copy).expect("deleted");
    let middle = w.issue_irq(6).expect("free");
    for slot in [below, above, middle] {
        w.delete(slot).expect("deleted");
    }
    for number in [5, 6, 7] {
        w.issue_irq(number).expect("free");
    }
}

/// Whatever an object is: copies of its original capability are derived from that.
#[test]
fn copies_are_revoked_with_the_original() {
    let mut w = World::new();
    for object in [
        types::TCB,
        types::ENDPOINT,
        types::NOTIFICATION,
        types::REPLY,
        isa::types::PAGE,
        isa::types::LARGE_PAGE,
    ] {
        let original = w.make(object, 0);
        let copies = [(); 2].map(|()| w.copy(original, ALL).expect("copied"));
        let copy_of_copy = w.copy(copies[0], ALL).expect("copied");
        w.revoke(copies[0]).expect("revoked");
        assert!(!w.cap(copy_of_copy).is_null(), "of object {object}");
        w.revoke(original).expect("revoked");
        assert!(!w.cap(original).is_null());
        for copy in copies.into_iter().chain([copy_of_copy]) {
            assert!(w.cap(copy).is_null(), "of object {object}");
        }
    }
}

/// A deletion that was given up is finished by revoking the memory.
#[test]
fn a_deletion_that_is_given_up_is_finished_with_the_memory() {
    for steps in 0..6 {
        let mut w = World::new();
        let memory = w.make(types::UNTYPED, 12);
        let notification = w.make(types::NOTIFICATION, 0);
        let next = next_of(&w, notification);
        let node = w.fresh_slot();
        w.retype(memory, types::CNODE, 6, node, 1).expect("a CNode");
        for i in 0..64 {
            let words = [i, 6, notification, 64, ALL];
            w.invoke(node, label::CNODE_COPY, &words, &[slot::CNODE])
                .expect("copied");
        }
        w.k.machine.set_interrupt_pending(true);
        for _ in 0..steps {
            let info = MessageInfo::new(label::CNODE_DELETE, 0, 0, 2);
            w.syscall(Syscall::Call, slot::CNODE, 0, info, &[node, 64]);
        }
        w.k.machine.set_interrupt_pending(false);
        w.revoke(memory).expect("revoked");
        assert!(w.cap(node).is_null());
        assert_eq!(next_of(&w, notification), next, "a copy is left");
    }
}

/// What lies in memory is derived from it, up to its very end, and nothing beyond.
#[test]
fn memory_is_revoked_with_all_that_lies_in_it_and_no_more() {
    let objects = [
        (types::UNTYPED, 12, 12),
        (types::TCB, 0, types::TCB_BITS),
        (types::ENDPOINT, 0, types::ENDPOINT_BITS),
        (types::NOTIFICATION, 0, types::NOTIFICATION_BITS),
        (types::REPLY, 0, types::REPLY_BITS),
        (types::CNODE, 3, 3 + types::SLOT_BITS),
        (types::SCHED_CONTEXT, 9, 9),
        (isa::types::PAGE, 0, 12),
        (isa::types::TABLES[2], 0, 12),
        (isa::types::TABLES[1], 0, 12),
        (isa::types::TABLES[0], 0, 12),
        (isa::types::ROOT_TABLE, 0, 12),
    ];
    for (object, size, bits) in objects {
        let mut w = World::new();
        let whole = w.make(types::UNTYPED, u64::from(bits) + 2);
        let parts = [w.fresh_slot(), w.fresh_slot()];
        w.retype(whole, types::UNTYPED, u64::from(bits) + 1, parts[0], 2)
            .expect("two halves");
        let made = parts.map(|part| {
            let first = w.fresh_slot();
            w.fresh_slot();
            w.retype(part, object, size, first, 2).expect("two objects");
            first
        });
        w.revoke(parts[0]).expect("revoked");
        let is_null = |first: u64| [w.cap(first).is_null(), w.cap(first + 1).is_null()];
        assert_eq!(is_null(made[0]), [true; 2], "object {object}");
        assert_eq!(is_null(made[1]), [false; 2], "object {object}");
        w.revoke(whole).expect("revoked");
        assert!(w.cap(made[1]).is_null() && w.cap(parts[0]).is_null());
    }
}

/// A guard may be as long as the address leaves room for.
#[test]
fn guard_and_radix_fill_the_address_at_most() {
    let mut w = World::new();
    for radix in [1, 5, 13] {
        let node = w.make(types::CNODE, radix);
        let longest = 64 - radix as u32;
        let fits = w.mint(node, ALL, GuardData::new(0b101, longest.min(63)).raw());
        let minted = w.cap(fits.expect("minted")).cnode().expect("a CNode");
        assert_eq!(
            (minted.guard_size(), minted.guard()),
            (longest.min(63), 0b101)
        );
        if longest < 63 {
            let longer = w.mint(node, ALL, GuardData::new(0, longest + 1).raw());
            let error = longer.map_err(|refused| refused.error);
            assert_eq!(error, Err(ErrorNumber::IllegalOperation));
        }
    }
}

/// What is not mapped cannot be copied, but for frames, whose copies are not mapped.
#[test]
fn mappings_are_not_copied() {
    let mut w = World::new();
    let illegal = |copied: Result<u64, Refused>| {
        assert_eq!(
            copied.map_err(|refused| refused.error),
            Err(ErrorNumber::IllegalOperation)
        );
    };
    for table in [
        isa::types::TABLES[2],
        isa::types::TABLES[1],
        isa::types::TABLES[0],
        isa::types::ROOT_TABLE,
    ] {
        let table = w.make(table, 0);
        illegal(w.copy(table, ALL));
    }
    let pdpt = w.make(isa::types::TABLES[0], 0);
    let map = [0x100_0000_0000, 0];
    w.invoke(pdpt, isa::label::TABLE_MAP[0], &map, &[slot::VSPACE])
        .expect("mapped");
    let copy = w.copy(pdpt, ALL).expect("a mapped table can be copied");
    assert_eq!(w.cap(copy), w.cap(pdpt));
    let root = w.make(isa::types::ROOT_TABLE, 0);
    w.invoke(slot::ASID_POOL, isa::label::ASID_POOL_ASSIGN, &[], &[root])
        .expect("assigned");
    w.copy(root, ALL)
        .expect("a root with an identifier can be copied");
    let copy = w.copy(slot::IPC_BUFFER, ALL).expect("copied");
    assert!(w
        .cap(slot::IPC_BUFFER)
        .frame()
        .is_some_and(|f| f.mapping.is_some()));
    assert!(w.cap(copy).frame().is_some_and(|f| f.mapping.is_none()));
    let memory = w.make(types::UNTYPED, 10);
    w.copy(memory, ALL)
        .expect("memory without children can be copied");
    let taken = w.copy(memory, ALL).map_err(|refused| refused.error);
    assert_eq!(taken, Err(ErrorNumber::RevokeFirst), "the copy is a child");
}

/// Moves the capability in `from` of the root CNode into slot `to` of the CNode `node` of radix 2.
fn move_into(w: &mut World, node: u64, to: u64, from: u64) {
    let words = [to, 2, from, 64];
    w.invoke(node, label::CNODE_MOVE, &words, &[slot::CNODE])
        .expect("moved");
}

/// A CNode that only it itself can reach is found by revoking its memory, wherever in itself it is.
#[test]
fn a_cnode_that_holds_itself_is_deleted_with_its_memory() {
    for at in 0..4 {
        for others in [0, 1, 3] {
            for preempted in [false, true] {
                let mut w = World::new();
                let memory = w.make(types::UNTYPED, 12);
                let node = w.fresh_slot();
                w.retype(memory, types::CNODE, 2, node, 1).expect("a CNode");
                for i in (0..4).filter(|&i| i != at).take(others) {
                    let thread = w.fresh_slot();
                    w.retype(memory, types::ENDPOINT, 0, thread, 1)
                        .expect("made");
                    move_into(&mut w, node, i, thread);
                }
                move_into(&mut w, node, at, node);
                assert!(w.cap(node).is_null());
                w.k.machine.set_interrupt_pending(preempted);
                w.revoke(memory).expect("revoked");
                w.k.machine.set_interrupt_pending(false);
                let again = w.fresh_slot();
                w.retype(memory, types::UNTYPED, 12, again, 1)
                    .expect("all memory is free");
            }
        }
    }
}

/// Two CNodes that hold each other.
#[test]
fn cnodes_that_hold_each_other_are_deleted_with_their_memory() {
    for (a, b) in [(0, 0), (0, 3), (3, 0), (3, 3), (1, 2)] {
        for preempted in [false, true] {
            let mut w = World::new();
            let memory = w.make(types::UNTYPED, 12);
            let nodes = [w.fresh_slot(), w.fresh_slot()];
            w.retype(memory, types::CNODE, 2, nodes[0], 2)
                .expect("CNodes");
            move_into(&mut w, nodes[1], b, nodes[0]);
            // The first is named through the second now.
            let outer = w.fresh_slot();
            let copy = [outer, 64, b, 2, ALL];
            w.invoke(slot::CNODE, label::CNODE_COPY, &copy, &[nodes[1]])
                .expect("copied");
            move_into(&mut w, outer, a, nodes[1]);
            w.delete(outer).expect("deleted");
            w.k.machine.set_interrupt_pending(preempted);
            w.revoke(memory).expect("revoked");
            w.k.machine.set_interrupt_pending(false);
            let again = w.fresh_slot();
            w.retype(memory, types::UNTYPED, 12, again, 1)
                .expect("all memory is free");
        }
    }
}

/// A deletion that is given up after any number of steps is finished by deleting what holds it.
#[test]
fn a_deletion_that_is_given_up_is_finished_from_outside() {
    // A deletion stops at every eighth step: what is in the CNode shifts where that is.
    for (calls, filling) in (0..4).flat_map(|calls| (0..7).map(move |filling| (calls, filling))) {
        let mut w = World::new();
        let memory = w.make(types::UNTYPED, 12);
        let nodes = [w.fresh_slot(), w.fresh_slot(), w.fresh_slot()];
        w.retype(memory, types::CNODE, 3, nodes[0], 3)
            .expect("CNodes");
        // The first in the second, beside its copy; something in the first.
        let place = |w: &mut World, node, to, what| {
            let words = [to, 3, what, 64];
            w.invoke(node, label::CNODE_MOVE, &words, &[slot::CNODE])
                .expect("moved");
        };
        place(&mut w, nodes[0], 1, nodes[2]);
        for i in 0..filling {
            // Slot 1 is taken.
            let to = if i == 0 { 0 } else { i + 1 };
            let words = [to, 3, slot::VSPACE, 64, ALL];
            w.invoke(nodes[0], label::CNODE_COPY, &words, &[slot::CNODE])
                .expect("copied");
        }
        place(&mut w, nodes[1], 2, nodes[0]);
        w.k.machine.set_interrupt_pending(true);
        for _ in 0..calls {
            let info = MessageInfo::new(label::CNODE_DELETE, 0, 0, 2);
            w.syscall(Syscall::Call, nodes[1], 0, info, &[2, 3]);
        }
        w.k.machine.set_interrupt_pending(false);
        w.delete(nodes[1]).expect("deleted");
        assert!(w.cap(nodes[1]).is(Kind::Null));
        let again = w.fresh_slot();
        w.retype(memory, types::UNTYPED, 12, again, 1)
            .expect("all memory is free");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever is exchanged with what: each capability keeps its place among its relatives.
    #[test]
    fn rotated_capabilities_keep_their_relatives(swaps in prop::collection::vec((0usize..8, 0usize..8), 1..12)) {
        let mut w = World::new();
        // Two families: memory, a thread in it, and copies of the thread's capability.
        let mut slots = Vec::new();
        for _ in 0..2 {
            let memory = w.make(types::UNTYPED, types::TCB_BITS.into());
            let thread = w.fresh_slot();
            w.retype(memory, types::TCB, 0, thread, 1).expect("a thread");
            let copies = [(); 2].map(|()| w.copy(thread, ALL).expect("copied"));
            slots.extend([memory, thread, copies[0], copies[1]]);
        }
        for (a, b) in swaps {
            if a == b {
                continue;
            }
            let (source, pivot) = (slots[a], slots[b]);
            let words = [source, 64, 0, pivot, 64, 0, source, 64];
            let caps = [slot::CNODE, slot::CNODE];
            w.invoke(slot::CNODE, label::CNODE_ROTATE, &words, &caps).expect("rotated");
            slots.swap(a, b);
        }
        let is_null = |w: &World, i: usize| w.cap(slots[i]).is_null();
        w.revoke(slots[1]).expect("revoked");
        for i in 0..8 {
            prop_assert_eq!(is_null(&w, i), i == 2 || i == 3, "{} after a thread", i);
        }
        w.revoke(slots[4]).expect("revoked");
        for i in 0..8 {
            prop_assert_eq!(is_null(&w, i), matches!(i, 2 | 3 | 5..), "{} after memory", i);
        }
        w.revoke(slots[0]).expect("revoked");
        for i in 0..8 {
            prop_assert_eq!(is_null(&w, i), i % 4 != 0, "{} after both", i);
        }
    }
}

/// CNodes made from one piece of memory, and a notification of which there are copies in them.
struct Tangle {
    w: World,
    memory: u64,
    notification: u64,
    /// The neighbour of the notification's capability before there were copies.
    next: Option<Ref<Slot>>,
}

fn next_of(w: &World, slot: u64) -> Option<Ref<Slot>> {
    let node = sandglass_kernel::cap::lookup::cspace(&w.k, w.running().expect("a thread runs"));
    let slots = node.cnode().expect("a CNode").slots().expect("its slots");
    let slot = slots.slot(slot).expect("a slot");
    slot.at(&w.k).inspect().next
}

impl Tangle {
    /// A CNode of 2^`radix` slots for each of `places`, which are a CNode and a slot of it that
    /// hold its only capability; all other slots hold copies of the notification. Somebody begins to
    /// delete the slot `begun` of the first CNode, and gives up after `steps`.
    fn new(radix: u64, places: &[(usize, u64)], begun: u64, steps: usize) -> Self {
        let mut w = World::new();
        let memory = w.make(types::UNTYPED, 12);
        let notification = w.make(types::NOTIFICATION, 0);
        let next = next_of(&w, notification);
        let nodes: Vec<u64> = places.iter().map(|_| w.fresh_slot()).collect();
        w.retype(memory, types::CNODE, radix, nodes[0], nodes.len() as u64)
            .expect("CNodes");
        let access: Vec<u64> = nodes
            .iter()
            .map(|&node| w.copy(node, ALL).expect("copied"))
            .collect();
        for (&(holder, slot), &node) in places.iter().zip(&nodes) {
            let words = [slot, radix, node, 64];
            // Two may want one place: then one stays outside.
            let _ = w.invoke(access[holder], label::CNODE_MOVE, &words, &[slot::CNODE]);
        }
        for &node in &access {
            for slot in 0..1 << radix {
                let words = [slot, radix, notification, 64, ALL];
                let _ = w.invoke(node, label::CNODE_COPY, &words, &[slot::CNODE]);
            }
        }
        for &node in &access[1..] {
            w.delete(node).expect("deleted");
        }
        w.k.machine.set_interrupt_pending(true);
        for _ in 0..steps {
            let info = MessageInfo::new(label::CNODE_DELETE, 0, 0, 2);
            w.syscall(Syscall::Call, access[0], 0, info, &[begun, radix]);
        }
        Tangle {
            w,
            memory,
            notification,
            next,
        }
    }

    /// Revokes the memory, and finds nothing left of what was in it.
    fn revoke(mut self, preempted: bool) {
        let w = &mut self.w;
        w.k.machine.set_interrupt_pending(preempted);
        w.revoke(self.memory).expect("revoked");
        w.k.machine.set_interrupt_pending(false);
        assert_eq!(next_of(w, self.notification), self.next, "a copy is left");
        let again = w.fresh_slot();
        w.retype(self.memory, types::UNTYPED, 12, again, 1)
            .expect("all memory is free");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However CNodes hold each other and themselves, and whatever deletion was given up on the
    /// way: when their memory is revoked, they and what is in them is gone.
    #[test]
    fn tangled_cnodes_are_deleted_with_their_memory(
        radix in 1u64..3,
        places in prop::collection::vec((0usize..3, 0u64..4), 3),
        begun in 0u64..4,
        steps in 0usize..16,
        preempted: bool,
    ) {
        let slots = 1 << radix;
        let places: Vec<_> = places.iter().map(|&(node, slot)| (node, slot % slots)).collect();
        Tangle::new(radix, &places, begun % slots, steps).revoke(preempted);
    }
}
