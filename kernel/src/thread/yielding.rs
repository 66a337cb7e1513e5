//! Who yielded to a scheduling context is told what was consumed (04, section 9.2).

use crate::ipc::Writer;
use crate::mem::Ref;
use crate::object::{SchedContext, Tcb};
use crate::time::account;
use crate::Kernel;

/// Whoever yielded to `handle` is told now what was consumed.
pub fn complete_yield(k: &Kernel, handle: Ref<SchedContext>) {
    if let Some(waiting) = handle.at(k).yield_from() {
        report_yield(k, waiting);
    }
}

/// `thread` runs again, or its yield ends early: the result of its YieldTo is delivered.
pub fn report_yield(k: &Kernel, thread: Ref<Tcb>) {
    let Some(handle) = thread.at(k).yield_to() else {
        return;
    };
    cancel_yield(k, thread);
    let mut message = Writer::new(k, thread, 1);
    message.push(account::report_consumed(k, handle));
    message.finish(0, 0);
}

/// `thread` is not told any more what the context that it yielded to consumed.
pub fn cancel_yield(k: &Kernel, thread: Ref<Tcb>) {
    if let Some(target) = thread.at(k).yield_to() {
        target.at(k).set_yield_from(k, None);
        thread.at(k).set_yield_to(k, None);
    }
}
