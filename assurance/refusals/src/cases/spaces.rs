//! Address spaces and their identifiers (ABI 03, sections 8.2 to 8.5 and 9).

use alloc::vec::Vec;

use sandglass_abi::boot::slot;

use crate::case::{call, capability, Call, Case, DELETE_FIRST, REVOKE_FIRST};
use crate::isa::{self, ASID_CONTROL_MAKE_POOL, ASID_POOL_ASSIGN};
use crate::scene::Scene;

/// All but those of a system without identifiers left.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = isa::spaces::cases(s);
    pools(s, &mut cases);
    cases
}

fn pools(s: &Scene, cases: &mut Vec<Case>) {
    let caps = [s.page_memory, slot::CNODE];
    let make = call(
        ASID_CONTROL_MAKE_POOL,
        slot::ASID_CONTROL,
        &[s.empty, 64],
        &caps,
    );
    cases.extend(make.truncated());
    cases.extend(
        s.lookups("destination", false, false, |root, index, depth| {
            make.clone().cap(1, root).word(0, index).word(1, depth)
        }),
    );
    let assign = call(
        ASID_POOL_ASSIGN,
        slot::ASID_POOL,
        &[],
        &[s.unassigned_space],
    );
    cases.extend(assign.truncated());
    let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
    for other in [s.empty, s.endpoint, s.frame] {
        let other = make.clone().cap(0, other);
        case(other, "no memory", capability(1));
    }
    let small = make.clone().cap(0, s.memory);
    case(small, "memory of another size", capability(1));
    for device in [s.device_page_memory, s.device_memory] {
        let device = make.clone().cap(0, device);
        case(device, "device memory", capability(1));
    }
    let children = make.clone().cap(0, s.parent);
    case(children, "memory with children", REVOKE_FIRST);
    let occupied = make.word(0, s.endpoint);
    case(occupied, "destination: occupied", DELETE_FIRST);
    for other in [s.empty, s.endpoint, s.tables[0]] {
        let other = assign.clone().cap(0, other);
        case(other, "no root table", capability(1));
    }
    for assigned in [s.space, s.gone_space, slot::VSPACE] {
        let assigned = assign.clone().cap(0, assigned);
        case(assigned, "assigned", capability(1));
    }
}

/// Where every pool is in use, and `pool` is full: `memory` of 4 KiB does not become one, nor is
/// `space` given an identifier.
pub fn without_identifiers(memory: u64, pool: u64, space: u64, empty: u64) -> [Case; 2] {
    let caps = [memory, slot::CNODE];
    let make = call(
        ASID_CONTROL_MAKE_POOL,
        slot::ASID_CONTROL,
        &[empty, 64],
        &caps,
    );
    let assign = call(ASID_POOL_ASSIGN, pool, &[], &[space]);
    [
        make.fails("all pools are in use", DELETE_FIRST),
        assign.fails("the pool is full", DELETE_FIRST),
    ]
}
