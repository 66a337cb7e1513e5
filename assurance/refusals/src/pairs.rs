//! Two checks that fail at once: the first in the order of the ABI's pages is told.

use alloc::format;
use alloc::vec::Vec;

use alloc::collections::BTreeMap;
use sandglass_abi::invocation::extension::CNODE_MINT_CALL;
use sandglass_abi::invocation::*;

use crate::case::{Call, Case, Change};
use crate::catalogue::Check;
use crate::isa;

/// Checks, the first of which is only made of what passes the second: they cannot fail both.
const EXCLUSIVE: [(u64, &str, &str); 8] = [
    (
        TCB_CONFIGURE,
        "capability space: guard",
        "capability space: ",
    ),
    (
        TCB_SET_SPACE,
        "capability space: guard",
        "capability space: ",
    ),
    (SCHED_CONTEXT_BIND, "thread: ", "another capability"),
    (SCHED_CONTEXT_BIND, "thread: ", "notification: "),
    (SCHED_CONTEXT_BIND, "notification: ", "another capability"),
    (TCB_SET_SCHED_PARAMS, "context: ", "context: "),
    (CNODE_ROTATE, "pivot: is the source", ""),
    (CNODE_ROTATE, "pivot: is the destination", ""),
];

/// Where a case's check stands in `catalogue`. The message of a CNode's insertion is looked at several
/// times (02, section 6), so that its lack of words has no one place.
fn place(catalogue: &[Check], case: &Case) -> Option<usize> {
    let label = case.call.label;
    let words = case.call.changes.iter().find_map(|change| match change {
        Change::Words(words) => Some(*words),
        _ => None,
    });
    let of_cnodes = (CNODE_REVOKE..=CNODE_ROTATE).contains(&label) || label == CNODE_MINT_CALL;
    if of_cnodes && words.is_some_and(|words| words >= 2) {
        return None;
    }
    catalogue
        .iter()
        .position(|check| check.label == label && check.check == case.check)
}

fn exclude_each_other(first: &Case, second: &Case) -> bool {
    EXCLUSIVE
        .iter()
        .chain(&isa::EXCLUSIVE)
        .any(|&(label, one, other)| {
            first.call.label == label
                && first.check.starts_with(one)
                && second.check.starts_with(other)
        })
}

/// Both changes, if they can be had together.
fn together(first: &Call, second: &Call) -> Option<Call> {
    let apart = |change: &Change| {
        second
            .changes
            .iter()
            .all(|other| change.is_apart_from(*other))
    };
    let same = first.label == second.label && first.usual == second.usual;
    let both = !first.changes.is_empty() && !second.changes.is_empty();
    if !same || !both || !first.changes.iter().all(apart) {
        return None;
    }
    // What is taken away goes last.
    let (less, mut changes): (Vec<_>, Vec<_>) = [&first.changes[..], &second.changes]
        .concat()
        .into_iter()
        .partition(|change| matches!(change, Change::Words(_) | Change::Caps(_)));
    changes.extend(less);
    Some(Call {
        changes,
        ..first.clone()
    })
}

/// Of each two checks of an operation a case that fails both, where there is one.
pub fn pairs(catalogue: &[Check], cases: &[Case]) -> Vec<Case> {
    let mut by_check: BTreeMap<usize, Vec<&Case>> = BTreeMap::new();
    for case in cases {
        if let Some(place) = place(catalogue, case) {
            by_check.entry(place).or_default().push(case);
        }
    }
    let both = |first: &Case, second: &Case| {
        // Most are of two operations: these are told apart first, and no text is made of them.
        if first.call.label != second.call.label || exclude_each_other(first, second) {
            return None;
        }
        let call = together(&first.call, &second.call)?;
        let check = format!("{}, and {}", first.check, second.check);
        Some(call.fails(check, first.refusal.clone()))
    };
    let mut pairs = Vec::new();
    for (place, firsts) in &by_check {
        for seconds in by_check.range(place + 1..).map(|(_, seconds)| seconds) {
            let any = firsts
                .iter()
                .find_map(|first| seconds.iter().find_map(|second| both(first, second)));
            pairs.extend(any);
        }
    }
    pairs
}
