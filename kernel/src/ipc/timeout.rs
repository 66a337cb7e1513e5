//! The end of a budget: timeout faults, and what an event does about a charge that was not paid
//! (04, sections 6.1 to 6.4; 05, section 4).

use super::fault;
use crate::object::{Core, Fault, Tcb, TcbSlot};
use crate::time::account::Charge;
use crate::time::{account, schedule, Turn};
use crate::{cap::EndpointCap, mem::Ref, Kernel};

/// The time of `thread` is up: `handler`, its timeout handler, is told (05, section 4). Its context
/// stays with it.
pub fn raise(k: &Kernel, turn: &Turn, thread: Ref<Tcb>, handler: EndpointCap) {
    let badge = thread
        .at(k)
        .sched_context()
        .map_or(0, |context| context.at(k).badge());
    trace!(k, timeout(thread, badge));
    fault::tell(k, turn, thread, handler, Fault::Timeout { badge }, false);
}

/// Has the current context pay for the event; if it cannot, the current thread's turn is over. If its domain's is, it is
/// as if it could not, but nothing is charged.
#[inline(always)]
pub fn settle(k: &Kernel, turn: &Turn) -> Charge {
    let charge = account::check_budget(k.core());
    match charge {
        Charge::Paid => {}
        Charge::Exhausted => exhausted(k, turn, k.core()),
    }
    if account::domain_is_over(k) {
        k.domains.set_end(k, 0);
        turn.reschedule(k);
        return Charge::Exhausted;
    }
    charge
}

/// The current thread of `core`, which is schedulable, has used up its head refill or slice, and is charged
/// what it consumed: its timeout handler is told, if it has one, though not of a slice; or its turn is over.
#[inline(never)]
pub fn exhausted(k: &Kernel, turn: &Turn, core: &Core) {
    let (Some(thread), Some(context)) = (core.thread(), core.context()) else {
        return;
    };
    account::charge(k, core, context, core.consumed());
    if context.at(k).period() != 0 {
        if let Some(handler) = fault::handler(k, thread, TcbSlot::TimeoutHandler) {
            turn.reconsider(k, thread);
            return raise(k, turn, thread, handler);
        }
    }
    account::end_turn(k, turn, thread, context);
}

/// A long operation was preempted: what has been used is checked and charged
/// (04, section 6.4).
pub fn preempted(k: &Kernel, turn: &Turn) {
    let core = k.core();
    match (core.thread(), core.context()) {
        (Some(thread), _) if schedule::is_schedulable(k, thread) => {
            // Whatever it finds, the operation is over for now.
            let _ = settle(k, turn);
        }
        (_, Some(handle)) => account::charge(k, core, handle, core.consumed()),
        _ => {}
    }
}
