//! Scheduling contexts: processor time as an object (04, section 2; thesis, section 6.1).
//!
//! The core of the object is followed by its refills ([`crate::time::refills`]). Invariants: a
//! context names its thread, its notification and the topmost reply object of its stack exactly
//! if they name it; it is active exactly if it was configured.

#[cfg(not(target_os = "none"))]
#[path = "../inspect/sched_context.rs"]
mod inspect;

use core::cell::Cell;

use sandglass_abi::invocation as label;

use super::error::Error;
use super::notification::Notification;
use super::reply::Reply;
use super::tcb::Tcb;
use super::{Invocation, Outcome};
use crate::cores::CoreId;
use crate::ipc::message::Writer;
use crate::ipc::{reply, thread};
use crate::mem::{refill_capacity, Ref};
use crate::time::context::is_released;
use crate::time::{account, context, remote, schedule, Refill};
use crate::Kernel;

/// The core of a scheduling context.
#[repr(C, align(16))]
pub struct SchedContext {
    period: Cell<u64>,
    consumed: Cell<u64>,
    badge: Cell<u64>,
    thread: Cell<Option<Ref<Tcb>>>,
    notification: Cell<Option<Ref<Notification>>>,
    reply: Cell<Option<Ref<Reply>>>,
    yield_from: Cell<Option<Ref<Tcb>>>,
    head: Cell<Refill>,
    slice_used: Cell<u64>,
    first: Cell<u8>,
    queued: Cell<u8>,
    max_refills: Cell<u8>,
    capacity: u8,
    sporadic: Cell<bool>,
    core: Cell<CoreId>,
    reserved: u64,
}

const _: () = assert!(size_of::<SchedContext>() as u64 == sandglass_abi::sched::CONTEXT_CORE_SIZE);

/// Where the fields are that somebody needs who watches from outside which time a context has.
pub mod offset {
    use core::mem::offset_of;

    use super::SchedContext;
    use crate::time::Refill;

    pub const PERIOD: usize = offset_of!(SchedContext, period);
    pub const CONSUMED: usize = offset_of!(SchedContext, consumed);
    pub const THREAD: usize = offset_of!(SchedContext, thread);
    pub const HEAD_AMOUNT: usize = offset_of!(SchedContext, head) + offset_of!(Refill, amount);
    pub const HEAD_TIME: usize = offset_of!(SchedContext, head) + offset_of!(Refill, time);
    pub const FIRST: usize = offset_of!(SchedContext, first);
    pub const QUEUED: usize = offset_of!(SchedContext, queued);
    pub const MAX_REFILLS: usize = offset_of!(SchedContext, max_refills);
    pub const CAPACITY: usize = offset_of!(SchedContext, capacity);
    pub const SPORADIC: usize = offset_of!(SchedContext, sporadic);
    /// The refills behind the head.
    pub const REFILLS: usize = size_of::<SchedContext>();
}

impl SchedContext {
    /// An unconfigured context that fills 2^`bits` bytes.
    pub const fn new(bits: u8) -> Self {
        SchedContext {
            period: Cell::new(0),
            consumed: Cell::new(0),
            badge: Cell::new(0),
            thread: Cell::new(None),
            notification: Cell::new(None),
            reply: Cell::new(None),
            yield_from: Cell::new(None),
            head: Cell::new(Refill::NONE),
            slice_used: Cell::new(0),
            first: Cell::new(0),
            queued: Cell::new(0),
            max_refills: Cell::new(0),
            capacity: refill_capacity(bits),
            sporadic: Cell::new(false),
            core: Cell::new(CoreId::BOOT),
            reserved: 0,
        }
    }

    /// Number of refills that the object has room for and the kernel uses.
    #[inline(always)]
    pub fn capacity(&self) -> u8 {
        self.capacity
    }

    cells! {
        /// Names the context in timeout faults.
        badge, set_badge: u64;
        /// The thread that runs on it.
        thread, set_thread: Option<Ref<Tcb>>;
        notification, set_notification: Option<Ref<Notification>>;
        /// The topmost reply object of the calls over which it was lent.
        reply, set_reply: Option<Ref<Reply>>;
        /// The thread that yielded to it and is to be told the time consumed.
        yield_from, set_yield_from: Option<Ref<Tcb>>;
        /// The refill in use, or next to be used.
        head, set_head: Refill;
        /// Round-robin: ticks of the slice that were used.
        slice_used, set_slice_used: u64;
        /// Index, in the array behind the context, of the refill that follows the head.
        first, set_first: u8;
        /// Number of refills in the array.
        queued, set_queued: u8;
        /// Where its thread runs (04, section 15).
        core, set_core: CoreId;
    }

    pub fn set_sporadic(&self, sporadic: bool) {
        self.sporadic.set(sporadic);
    }

    /// Period in ticks; 0 for round-robin.
    #[inline(always)]
    pub fn period(&self) -> u64 {
        self.period.get()
    }

    /// Number of refills that may be in the queue; 0 if not configured.
    #[inline(always)]
    pub fn max_refills(&self) -> u8 {
        self.max_refills.get()
    }

    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.max_refills.get() > 0
    }

    #[inline(always)]
    pub fn is_round_robin(&self) -> bool {
        self.is_active() && self.period.get() == 0
    }

    /// Whether the refills start anew when the thread wakes rather than when it is chosen.
    #[inline(always)]
    pub fn is_sporadic(&self) -> bool {
        self.sporadic.get()
    }

    /// Sets the period in ticks and the number of refills, at most what there is room for.
    pub fn configure(&self, period: u64, max_refills: u8) {
        self.period.set(period);
        self.max_refills.set(max_refills.min(self.capacity));
    }

    /// Makes the context unconfigured.
    pub fn deactivate(&self) {
        self.max_refills.set(0);
        self.queued.set(0);
        self.sporadic.set(false);
    }

    /// Adds ticks to the consumption that is reported next.
    #[inline(always)]
    pub fn add_consumed(&self, ticks: u64) {
        self.consumed.set(self.consumed.get().wrapping_add(ticks));
    }

    /// Takes the ticks consumed since the last report.
    pub fn take_consumed(&self) -> u64 {
        self.consumed.replace(0)
    }
}

/// A checked invocation of a scheduling context.
#[derive(Clone, Copy)]
enum Operation {
    BindThread(Ref<SchedContext>, Ref<Tcb>),
    BindNotification(Ref<SchedContext>, Ref<Notification>),
    Unbind(Ref<SchedContext>),
    UnbindThread(Ref<SchedContext>),
    UnbindNotification(Ref<SchedContext>),
    Consumed(Ref<SchedContext>),
    YieldTo {
        context: Ref<SchedContext>,
        thread: Ref<Tcb>,
    },
}

/// Invokes a scheduling context (03, section 6.2).
pub fn invoke(k: &Kernel, call: &Invocation) -> Result<Outcome, Error> {
    let handle = call
        .cap
        .word()
        .get::<SchedContext>()
        .ok_or(Error::InvalidCapability(0))?;
    if remote::stall_user(k, handle).is_err() {
        return Ok(Outcome::Preempted);
    }
    let operation = decode(k, call, handle)?;
    Ok(commit(k, call, operation))
}

fn decode(k: &Kernel, call: &Invocation, handle: Ref<SchedContext>) -> Result<Operation, Error> {
    match call.label {
        label::SCHED_CONTEXT_BIND => decode_bind(k, call, handle),
        label::SCHED_CONTEXT_UNBIND => {
            if handle.at(k).thread() == Some(call.caller) {
                return Err(Error::IllegalOperation);
            }
            Ok(Operation::Unbind(handle))
        }
        label::SCHED_CONTEXT_UNBIND_OBJECT => decode_unbind_object(k, call, handle),
        label::SCHED_CONTEXT_CONSUMED => Ok(Operation::Consumed(handle)),
        label::SCHED_CONTEXT_YIELD_TO => decode_yield_to(k, call, handle),
        _ => Err(Error::IllegalOperation),
    }
}

fn decode_bind(
    k: &Kernel,
    call: &Invocation,
    handle: Ref<SchedContext>,
) -> Result<Operation, Error> {
    let context = handle.at(k);
    let object = call.extra_cap(k, 0)?.word();
    if let Some(thread) = object.get::<Tcb>() {
        if context.thread().is_some() || thread.at(k).sched_context().is_some() {
            return Err(Error::IllegalOperation);
        }
        if thread.at(k).is_blocked() && !is_released(k, handle) {
            return Err(Error::IllegalOperation);
        }
        Ok(Operation::BindThread(handle, thread))
    } else if let Some(notification) = object.get::<Notification>() {
        if context.notification().is_some() || notification.at(k).sched_context().is_some() {
            return Err(Error::IllegalOperation);
        }
        Ok(Operation::BindNotification(handle, notification))
    } else {
        Err(Error::InvalidCapability(1))
    }
}

fn decode_unbind_object(
    k: &Kernel,
    call: &Invocation,
    handle: Ref<SchedContext>,
) -> Result<Operation, Error> {
    let context = handle.at(k);
    let object = call.extra_cap(k, 0)?.word();
    if let Some(thread) = object.get::<Tcb>() {
        if context.thread() != Some(thread) || thread == call.caller {
            return Err(Error::IllegalOperation);
        }
        Ok(Operation::UnbindThread(handle))
    } else if let Some(notification) = object.get::<Notification>() {
        if context.notification() != Some(notification) {
            return Err(Error::IllegalOperation);
        }
        Ok(Operation::UnbindNotification(handle))
    } else {
        Err(Error::InvalidCapability(1))
    }
}

fn decode_yield_to(
    k: &Kernel,
    call: &Invocation,
    context: Ref<SchedContext>,
) -> Result<Operation, Error> {
    let caller = call.caller.at(k);
    match context.at(k).thread() {
        Some(thread)
            if thread != call.caller
                && thread.at(k).priority() <= caller.max_controlled_priority() =>
        {
            Ok(Operation::YieldTo { context, thread })
        }
        _ => Err(Error::IllegalOperation),
    }
}

fn commit(k: &Kernel, call: &Invocation, operation: Operation) -> Outcome {
    match operation {
        Operation::BindThread(handle, thread) => context::bind_thread(k, handle, thread),
        Operation::BindNotification(handle, notification) => {
            context::bind_notification(k, handle, notification);
        }
        Operation::Unbind(handle) => {
            context::unbind_thread(k, handle);
            context::unbind_notification(k, handle);
            reply::detach_stack(k, handle);
        }
        Operation::UnbindThread(handle) => context::unbind_thread(k, handle),
        Operation::UnbindNotification(handle) => context::unbind_notification(k, handle),
        Operation::Consumed(handle) => return Outcome::Value(account::report_consumed(k, handle)),
        Operation::YieldTo { context, thread } => {
            return yield_to(k, call.caller, context, thread);
        }
    }
    Outcome::Done
}

/// The caller lets `thread` run on `handle` in its place (04, section 9.2); it is told what was
/// consumed when it runs again, or at once if `thread` does not run now.
///
/// Until it is told, its call has succeeded, with nothing to tell: it is suspended as a thread that
/// was running.
fn yield_to(k: &Kernel, caller: Ref<Tcb>, handle: Ref<SchedContext>, thread: Ref<Tcb>) -> Outcome {
    complete_yield(k, handle);
    context::resume(k, handle);
    if !schedule::is_schedulable(k, thread) {
        return Outcome::Value(account::report_consumed(k, handle));
    }
    if thread.at(k).priority() < caller.at(k).priority() || !k.is_here(thread) {
        schedule::enqueue(k, thread);
        return Outcome::Value(account::report_consumed(k, handle));
    }
    caller.at(k).set_yield_to(Some(handle));
    handle.at(k).set_yield_from(Some(caller));
    schedule::enqueue(k, caller);
    schedule::enqueue(k, thread);
    schedule::force_reschedule(k);
    Outcome::Done
}

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
    thread::cancel_yield(k, thread);
    let mut message = Writer::new(k, thread, 1);
    message.push(account::report_consumed(k, handle));
    message.finish(0, 0);
}
