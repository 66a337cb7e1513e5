//! Interrupts of the GIC, and those that software generates (ABI 03, sections 7.1 and 7.3 to 7.5).

use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation::aarch64::*;
use sandglass_abi::invocation::IRQ_CONTROL_GET;
use sandglass_abi::vspace::aarch64::{FIRST_SPI, IRQ_TIMER, MAX_IRQ, SGIS};

use super::IRQ;
use crate::case::{argument, call, range, Call, Case, DELETE_FIRST, ILLEGAL, REVOKE_FIRST};
use crate::scene::Scene;

/// All.
pub fn cases(s: &Scene) -> Vec<Case> {
    let mut cases = handlers(s);
    if !s.is_for_several_cores {
        signals(s, &mut cases);
    }
    cases
}

/// An invocation that issues a handler.
struct Issue {
    valid: Call,
    /// The word with the index of the slot, before that with the depth.
    index: usize,
    /// The word with the core.
    core: Option<usize>,
    /// Whether it also issues private interrupts.
    has_private: bool,
}

fn handlers(s: &Scene) -> Vec<Case> {
    let issue = |label, words: &[u64], index| Issue {
        valid: call(label, slot::IRQ_CONTROL, words, &[slot::CNODE]),
        index,
        core: None,
        has_private: true,
    };
    let mut issues = Vec::from([
        issue(IRQ_CONTROL_GET, &[40, s.empty, 64], 1),
        Issue {
            has_private: !s.is_for_several_cores,
            ..issue(IRQ_CONTROL_GET_TRIGGER, &[40, 1, s.empty, 64], 2)
        },
    ]);
    if s.is_for_several_cores {
        issues.push(Issue {
            core: Some(4),
            ..issue(IRQ_CONTROL_GET_TRIGGER_CORE, &[40, 1, s.empty, 64, 0], 2)
        });
    }
    let mut cases = Vec::new();
    for Issue {
        valid,
        index,
        core,
        has_private,
    } in issues
    {
        destination(s, &valid, index, &mut cases);
        let mut case = |call: Call, check: &str, refusal| cases.push(call.fails(check, refusal));
        for irq in [MAX_IRQ + 1, 1019, u64::MAX] {
            case(valid.clone().word(0, irq), "interrupt", range(0, MAX_IRQ));
        }
        case(valid.clone().word(0, IRQ), "issued", REVOKE_FIRST);
        let own = valid.clone().word(0, IRQ_TIMER);
        if has_private {
            case(own, "the kernel's", REVOKE_FIRST);
        } else {
            case(own, "private", ILLEGAL);
            case(valid.clone().word(0, FIRST_SPI - 1), "private", ILLEGAL);
        }
        for target in [4, u64::MAX] {
            if let Some(word) = core {
                case(valid.clone().word(word, target), "core", argument(4));
            }
        }
    }
    cases
}

/// Kernels for one core only.
fn signals(s: &Scene, cases: &mut Vec<Case>) {
    let words = [4, 0, s.empty, 64];
    let signal = call(
        IRQ_CONTROL_ISSUE_SGI_SIGNAL,
        slot::IRQ_CONTROL,
        &words,
        &[slot::CNODE],
    );
    destination(s, &signal, 2, cases);
    for sgi in [SGIS, u64::MAX] {
        let other = signal.clone().word(0, sgi);
        cases.push(other.fails("interrupt", range(0, SGIS - 1)));
    }
    // No controller knows this one.
    let target = signal.word(1, u64::MAX);
    cases.push(target.fails("target", argument(1)));
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
