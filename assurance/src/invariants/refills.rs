//! The refills of scheduling contexts (ABI 04, section 2.3).

use sandglass_kernel::time::refills::Refills;

use super::{require, Finding};
use crate::census::Census;

/// An active context has one refill at least and no more than it may; each ends before the next
/// begins, with time between them; together they are less than the period. Where there are three or more, the last ends
/// before the head would come back, or just then: so of many that come back at once only the first can be joined to the last.
pub fn refills_are_in_order(census: &Census) -> Finding {
    let k = census.k;
    for &(handle, _) in &census.contexts {
        let context = handle.at(k);
        if !context.is_active() || context.is_round_robin() {
            continue;
        }
        let refills: Vec<_> = Refills::of(k, handle).iter().collect();
        require!(
            refills.len() <= usize::from(context.max_refills())
                && context.max_refills() <= context.capacity(),
            "{handle:?} has {} refills of {}, with room for {}",
            refills.len(),
            context.max_refills(),
            context.capacity()
        );
        for pair in refills.windows(2) {
            require!(
                pair[0].time.saturating_add(pair[0].amount) < pair[1].time,
                "{handle:?}: {:?} is not over when {:?} begins",
                pair[0],
                pair[1]
            );
        }
        if let [head, _, .., last] = refills[..] {
            require!(
                last.time + last.amount <= head.time + context.period(),
                "{handle:?}: {last:?} is not over when {head:?} comes back in {}",
                context.period()
            );
        }
        let sum: u64 = refills.iter().map(|refill| refill.amount).sum();
        require!(
            sum < context.period(),
            "{handle:?} has {sum} ticks in {}",
            context.period()
        );
    }
    Ok(())
}

/// The head refill of an active context has the least budget, so that it can be used.
pub fn heads_have_the_least_budget(census: &Census) -> Finding {
    let k = census.k;
    for &(handle, _) in &census.contexts {
        let context = handle.at(k);
        if !context.is_active() {
            continue;
        }
        let head = Refills::of(k, handle).head();
        // A slice may be nearly used up; the thread gets the next when it is charged.
        let had = if context.is_round_robin() {
            head.amount + context.slice_used()
        } else {
            head.amount
        };
        require!(
            had >= k.constants.min_budget(),
            "{handle:?} has {had} ticks, less than the least budget"
        );
    }
    Ok(())
}
