//! CNodes (ABI 02, section 6).

use alloc::vec;
use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation::extension::CNODE_MINT_CALL;
use sandglass_abi::invocation::*;

use crate::case::{call, missing, Call, Case, DELETE_FIRST, ILLEGAL, REVOKE_FIRST};
use crate::isa;
use crate::scene::{Scene, ALL, RADIX, READ, WRITE};

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    for label in [CNODE_REVOKE, CNODE_DELETE, CNODE_CANCEL_BADGED_SENDS] {
        let valid = call(label, slot::CNODE, &[s.endpoint, 64], &[]);
        cases.extend(valid.truncated());
        cases.extend(s.lookups("destination", false, true, |root, index, depth| {
            call(label, root, &[index, depth], &[])
        }));
    }
    let cancel = |slot| call(CNODE_CANCEL_BADGED_SENDS, slot::CNODE, &[slot, 64], &[]);
    for other in [s.empty, s.notification, s.node] {
        cases.push(cancel(other).fails("no endpoint", ILLEGAL));
    }
    for weak in [s.receive_endpoint, s.write_endpoint] {
        cases.push(cancel(weak).fails("a right is missing", ILLEGAL));
    }
    for label in [CNODE_COPY, CNODE_MINT, CNODE_MOVE, CNODE_MUTATE] {
        // A CNode can be copied, minted, moved and mutated.
        insertion(s, label, s.node, &mut cases);
    }
    insertion(s, CNODE_MINT_CALL, s.endpoint, &mut cases);
    for other in [s.notification, s.node, s.frame] {
        let call = insert(s, CNODE_MINT_CALL, other);
        cases.push(call.fails("no endpoint", ILLEGAL));
    }
    derived(s, &mut cases);
    updated(s, &mut cases);
    rotate(s, &mut cases);
    cases
}

/// The words of an insertion from the slot `from` of the root CNode into an empty slot: all but
/// Move have rights, a badge or a guard, or both.
fn words(s: &Scene, label: u64, from: u64) -> Vec<u64> {
    let mut words = vec![s.empty, 64, from, 64];
    words.extend(match label {
        CNODE_COPY => vec![ALL],
        CNODE_MINT | CNODE_MINT_CALL => vec![ALL, 9],
        CNODE_MUTATE => vec![0],
        _ => vec![],
    });
    words
}

/// An insertion of the capability in slot `from` of the root CNode.
fn insert(s: &Scene, label: u64, from: u64) -> Call {
    call(label, slot::CNODE, &words(s, label, from), &[slot::CNODE])
}

/// What fails whatever is inserted, which is otherwise the capability in slot `from`.
fn insertion(s: &Scene, label: u64, from: u64, cases: &mut Vec<Case>) {
    let valid = insert(s, label, from);
    cases.extend(valid.truncated());
    cases.extend(s.lookups("destination", false, true, |root, index, depth| {
        valid.clone().of(root).word(0, index).word(1, depth)
    }));
    for occupied in [s.notification, s.node, slot::CNODE] {
        let occupied = valid.clone().word(0, occupied);
        cases.push(occupied.fails("destination: occupied", DELETE_FIRST));
    }
    let from = |root, index, depth| valid.clone().cap(0, root).word(2, index).word(3, depth);
    cases.extend(s.lookups("source", true, false, from));
    cases.push(s.empty_source(from));
    let empty = from(slot::CNODE, s.empty, 64);
    cases.push(empty.fails("source: empty", missing(true, 64)));
}

/// What Copy and Mint do not derive (02, section 6.2).
fn derived(s: &Scene, cases: &mut Vec<Case>) {
    for label in [CNODE_COPY, CNODE_MINT] {
        let mut case = |from, check: &str, refusal| {
            cases.push(insert(s, label, from).fails(check, refusal));
        };
        case(s.parent, "derive: memory with children", REVOKE_FIRST);
        for control in [slot::IRQ_CONTROL].into_iter().chain(isa::NOT_COPIED) {
            case(control, "derive: not copied", ILLEGAL);
        }
        for table in s.free_tables {
            case(table, "derive: table that is not mapped", ILLEGAL);
        }
        let check = "derive: space without identifier";
        case(s.unassigned_space, check, ILLEGAL);
    }
}

/// Badges and guards that cannot be had (02, section 6.1).
fn updated(s: &Scene, cases: &mut Vec<Case>) {
    // The last word is the badge or guard.
    let with = |label, from, data| {
        let call = insert(s, label, from);
        let last = call.usual.words.len() - 1;
        call.word(last, data)
    };
    for badged in [s.badged_endpoint, s.badged_notification] {
        for data in [0, 7, 8] {
            for label in [CNODE_MINT, CNODE_MINT_CALL, CNODE_MUTATE] {
                cases.push(with(label, badged, data).fails("update: badged", ILLEGAL));
            }
        }
    }
    for unbadged in [s.endpoint, s.notification] {
        for data in [0, 7] {
            let mutate = with(CNODE_MUTATE, unbadged, data);
            cases.push(mutate.fails("update: unbadged", ILLEGAL));
        }
    }
    for guard_size in [61, 63] {
        for label in [CNODE_MINT, CNODE_MUTATE] {
            let large = with(label, s.node, guard_size);
            cases.push(large.fails("update: guard too large", ILLEGAL));
        }
    }
    // Rights that leave nothing make no difference.
    for rights in [0, READ, WRITE] {
        let masked = with(CNODE_MINT, s.badged_endpoint, 1).word(4, rights);
        cases.push(masked.fails("update: badged", ILLEGAL));
    }
}

fn rotate(s: &Scene, cases: &mut Vec<Case>) {
    // From the frame's slot through the node's into an empty one.
    let (source, pivot) = (s.frame, s.node);
    let words = [s.empty, 64, 0, pivot, 64, 0, source, 64];
    let valid = call(CNODE_ROTATE, slot::CNODE, &words, &[slot::CNODE; 2]);
    cases.extend(valid.truncated());
    cases.extend(s.lookups("destination", false, true, |root, index, depth| {
        valid.clone().of(root).word(0, index).word(1, depth)
    }));
    let from = |root, index, depth| valid.clone().cap(1, root).word(6, index).word(7, depth);
    cases.extend(s.lookups("source", true, false, from));
    cases.push(s.empty_source(from));
    // Both lookups are source lookups.
    let through = |root, index, depth| valid.clone().cap(0, root).word(3, index).word(4, depth);
    cases.extend(s.lookups("pivot", true, false, through));
    let empty = through(s.node, 3, RADIX);
    cases.push(empty.fails("pivot: empty", missing(false, RADIX)));
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    let same = valid.clone().word(3, source);
    case(same, "pivot: is the source", ILLEGAL);
    let same = valid.clone().word(0, pivot);
    case(same, "pivot: is the destination", ILLEGAL);
    let occupied = valid.clone().word(0, s.notification);
    case(occupied, "destination: occupied", DELETE_FIRST);
    for fixed in [s.endpoint, s.badged_notification] {
        let source = valid.clone().word(6, fixed);
        case(source, "update: source", ILLEGAL);
        let pivot = valid.clone().word(3, fixed);
        case(pivot, "update: pivot", ILLEGAL);
    }
    let guard = valid.clone().word(2, 61);
    case(guard, "update: pivot", ILLEGAL);
    let guard = valid.clone().word(3, source).word(6, pivot).word(5, 61);
    case(guard, "update: source", ILLEGAL);
}
