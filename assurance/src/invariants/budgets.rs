//! The budget of a context is never changed by anything but its configuration: an invariant of two
//! states.

use rustc_hash::FxHashMap;
use sandglass_kernel::time::refills::Refills;

use super::{require, Finding};
use crate::census::Census;

/// The refills of every active context, added up, as they were last.
#[derive(Clone, Default, Debug)]
pub struct Budgets {
    ticks: FxHashMap<u64, u64>,
}

impl Budgets {
    /// Compares with what was seen last, unless the event between `configured` some context, and
    /// remembers what is now.
    ///
    /// # Errors
    /// A context has another sum of refills than before.
    pub fn follow(&mut self, census: &Census, configured: bool) -> Finding {
        let k = census.k;
        let mut now = FxHashMap::default();
        for &(handle, _) in &census.contexts {
            let context = handle.at(k);
            if !context.is_active() {
                continue;
            }
            let refills = Refills::of(k, handle);
            let sum = if context.is_round_robin() {
                refills.head().amount + context.slice_used()
            } else {
                refills.iter().map(|refill| refill.amount).sum()
            };
            now.insert(handle.address().get(), sum);
        }
        let before = std::mem::replace(&mut self.ticks, now);
        if !configured {
            for (address, sum) in &self.ticks {
                let was = before.get(address).unwrap_or(sum);
                require!(
                    was == sum,
                    "the context at {address:#x} had {was} ticks and has {sum}"
                );
            }
        }
        Ok(())
    }
}
