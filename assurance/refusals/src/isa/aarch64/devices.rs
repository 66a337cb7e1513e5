//! Interrupts of the GIC, and those that software generates (ABI 03, sections 7.1, 7.3 and 7.5).

use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation::aarch64::*;
use sandglass_abi::invocation::IRQ_CONTROL_GET;
use sandglass_abi::vspace::aarch64::{IRQ_TIMER, MAX_IRQ, SGIS};

use super::IRQ;
use crate::case::{argument, call, range, Call, Case, DELETE_FIRST, REVOKE_FIRST};
use crate::scene::Scene;

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = Vec::new();
    let root = [slot::CNODE];
    let get = call(
        IRQ_CONTROL_GET,
        slot::IRQ_CONTROL,
        &[40, s.empty, 64],
        &root,
    );
    let trigger = [40, 1, s.empty, 64];
    let trigger = call(IRQ_CONTROL_GET_TRIGGER, slot::IRQ_CONTROL, &trigger, &root);
    // The word with the index.
    for (valid, index) in [(get, 1), (trigger, 2)] {
        destination(s, &valid, index, &mut cases);
        let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
        for irq in [MAX_IRQ + 1, 1019, u64::MAX] {
            case(valid.clone().word(0, irq), "interrupt", range(0, MAX_IRQ));
        }
        case(valid.clone().word(0, IRQ), "issued", REVOKE_FIRST);
        let own = valid.clone().word(0, IRQ_TIMER);
        case(own, "the kernel's", REVOKE_FIRST);
    }
    let words = [4, 0, s.empty, 64];
    let signal = call(
        IRQ_CONTROL_ISSUE_SGI_SIGNAL,
        slot::IRQ_CONTROL,
        &words,
        &root,
    );
    destination(s, &signal, 2, &mut cases);
    for sgi in [SGIS, u64::MAX] {
        let other = signal.clone().word(0, sgi);
        cases.push(other.fails("interrupt", range(0, SGIS - 1)));
    }
    // No controller knows this one.
    let target = signal.word(1, u64::MAX);
    cases.push(target.fails("target", argument(1)));
    cases
}

/// What is checked of a place for a new capability, whose index is word `index`.
fn destination(s: &Scene, valid: &Call, index: usize, cases: &mut Vec<Case>) {
    cases.extend(valid.truncated());
    cases.extend(s.lookups("destination", false, false, |root, at, depth| {
        let below = valid.clone().cap(0, root);
        below.word(index, at).word(index + 1, depth)
    }));
    let occupied = valid.clone().word(index, s.endpoint);
    cases.push(occupied.fails("destination: occupied", DELETE_FIRST));
}
