//! The refills of a context, as a test wants them.

use sandglass_kernel::mem::{objects, Ref};
use sandglass_kernel::object::sched_context::{Queued, Refill, SchedContext};
use sandglass_kernel::Kernel;

/// Gives `context` these refills: the head, and from place `first` of its ring on those that follow it.
pub fn put(
    k: &Kernel,
    context: Ref<SchedContext>,
    first: u8,
    refills: impl IntoIterator<Item = Refill>,
) {
    let mut refills = refills.into_iter();
    let head = refills.next().expect("a context has a refill");
    context.at(k).set_head(k, head);
    context.at(k).set_first(k, first);
    // As if so much had been used before.
    let mut end = 1000 + head.amount;
    let mut queued = 0;
    for Refill { amount, time } in refills {
        objects::refill(k, context, first + queued).set(Queued { start: end, time });
        end += amount;
        queued += 1;
    }
    context.at(k).set_queued(k, queued);
    context.at(k).set_end(k, end);
}
