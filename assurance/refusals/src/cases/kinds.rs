//! Labels that an object does not understand, and capabilities that have no invocations (ABI 03,
//! section 10).

use alloc::vec;
use alloc::vec::Vec;

use core::ops::RangeInclusive;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation::extension::{self, CNODE_MINT_CALL};
use sandglass_abi::invocation::*;

use crate::case::{call, capability, Case, ILLEGAL};
use crate::isa;
use crate::scene::Scene;

/// Labels that are tried: all there are, and some that are none.
pub const LABELS: RangeInclusive<u64> = INVALID..=isa::LAST_LABEL + 4;
/// The largest label that a message can have.
const LARGEST: u64 = (1 << 52) - 1;

/// What a case of this file is called.
pub const LABEL: &str = "label";

/// A capability of every kind, and the labels that it understands.
fn kinds(s: &Scene) -> Vec<(u64, Vec<RangeInclusive<u64>>)> {
    let one = |label: u64| vec![label..=label];
    vec![
        (s.memory, one(UNTYPED_RETYPE)),
        (s.thread, vec![TCB_READ_REGISTERS..=TCB_SET_FLAGS]),
        (
            s.node,
            vec![
                CNODE_REVOKE..=CNODE_ROTATE,
                CNODE_MINT_CALL..=CNODE_MINT_CALL,
            ],
        ),
        (s.sched_control, one(SCHED_CONTROL_CONFIGURE_FLAGS)),
        (s.context, vec![SCHED_CONTEXT_BIND..=SCHED_CONTEXT_YIELD_TO]),
        (slot::DOMAIN, vec![DOMAIN_SET..=DOMAIN_SCHEDULE_SET_START]),
        (s.irq_handler, vec![IRQ_HANDLER_ACK..=IRQ_HANDLER_CLEAR]),
        (slot::ASID_CONTROL, one(isa::ASID_CONTROL_MAKE_POOL)),
        (slot::ASID_POOL, one(isa::ASID_POOL_ASSIGN)),
    ]
}

/// Every kind with every label that is not its own, with and without arguments; and what is invoked
/// in vain whatever the label.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    let arguments = [s.empty, 64, 1, 1, 0, 1, 1, 64];
    let caps = [slot::CNODE; 3];
    let mut both = |label, cap, refusal: &crate::case::Refusal| {
        cases.push(call(label, cap, &[], &[]).fails(LABEL, refusal.clone()));
        cases.push(call(label, cap, &arguments, &caps).fails(LABEL, refusal.clone()));
    };
    for (cap, own) in kinds(s).into_iter().chain(isa::kinds(s)) {
        let extensions = extension::ALL.iter().map(|&(label, _)| label);
        for label in LABELS.chain(extensions).chain([LARGEST]) {
            if !own.iter().any(|own| own.contains(&label)) {
                both(label, cap, &ILLEGAL);
            }
        }
    }
    // Nothing there, and endpoints and notifications without the right to write.
    for cap in [slot::NULL, s.empty, s.receive_endpoint, s.read_notification] {
        for label in [INVALID, UNTYPED_RETYPE, CNODE_DELETE, LARGEST] {
            both(label, cap, &capability(0));
        }
    }
    cases
}
