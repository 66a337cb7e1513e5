//! Untyped memory (ABI 03, section 3).

use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation::UNTYPED_RETYPE;
use sandglass_abi::object as types;

use crate::case::{argument, call, memory, missing, range, Case, DELETE_FIRST};
use crate::isa;
use crate::scene::{Scene, RADIX};

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    // One endpoint into slot 2 of the node.
    let words = [types::ENDPOINT, 0, 0, 0, 2, 1];
    let valid = call(UNTYPED_RETYPE, s.memory, &words, &[s.node]);
    let mut cases = valid.truncated();
    let mut case = |call: crate::case::Call, check: &str, refusal| {
        cases.push(call.fails(check, refusal));
    };
    for object in [isa::FIRST_INVALID, isa::FIRST_INVALID + 1, u64::MAX] {
        case(valid.clone().word(0, object), "type", argument(0));
    }
    for size in [64, u64::MAX] {
        case(
            valid.clone().word(1, size),
            "size argument of 64",
            range(0, 47),
        );
    }
    for (object, size) in [
        (types::UNTYPED, 48),
        (types::CNODE, 43),
        (types::SCHED_CONTEXT, 63),
    ] {
        let large = valid.clone().word(0, object).word(1, size);
        case(large, "object too large", range(0, 47));
    }
    for (object, size, check) in [
        (types::CNODE, 0, "CNode of one slot"),
        (types::UNTYPED, 3, "untyped memory too small"),
        (types::SCHED_CONTEXT, 6, "scheduling context too small"),
    ] {
        let small = valid.clone().word(0, object).word(1, size);
        case(small, check, argument(1));
    }
    // A depth of 0 says that the root itself is meant.
    let below = |root, index, depth| valid.clone().cap(0, root).word(2, index).word(3, depth);
    for root in [s.endpoint, s.empty] {
        case(
            below(root, 0, 0),
            "CNode: the root is none",
            missing(false, 0),
        );
    }
    let other = below(slot::CNODE, s.endpoint, 64);
    case(other, "CNode: another capability", missing(false, 64));
    case(
        below(s.node, 1, RADIX),
        "CNode: another capability",
        missing(false, 4),
    );
    case(
        below(s.node, 2, RADIX),
        "CNode: empty slot",
        missing(false, 4),
    );
    for offset in [16, u64::MAX] {
        case(valid.clone().word(4, offset), "offset", range(0, 15));
    }
    for count in [0, 257, u64::MAX] {
        case(
            valid.clone().word(5, count),
            "number of objects",
            range(1, 256),
        );
    }
    case(valid.clone().word(5, 15), "window", range(1, 14));
    for (first, count) in [(1, 1), (0, 2)] {
        let occupied = valid.clone().word(4, first).word(5, count);
        case(occupied, "window: occupied", DELETE_FIRST);
    }
    let frame = valid.clone().word(0, isa::PAGE);
    case(frame, "memory without children", memory(256));
    let five = valid.clone().word(0, types::NOTIFICATION).word(5, 5);
    case(five, "memory without children", memory(256));
    let frame = valid.clone().word(0, isa::PAGE).of(s.parent);
    case(frame, "memory with children", memory(4096 - 64));
    for object in [types::TCB, isa::TABLES[2].0] {
        let device = valid.clone().of(s.device_page_memory).word(0, object);
        case(device, "device memory", argument(1));
    }
    cases.extend(
        s.lookups("CNode", false, false, below)
            .into_iter()
            .filter(|case| case.call.arguments().words[3] != 0),
    );
    cases
}
