//! Scheduling contexts: processor time as an object (04, section 2; thesis, section 6.1).
//!
//! The core of the object is followed by its refills (`time/refills.rs`). Invariants: a
//! context names its thread, its notification and the topmost reply object of its stack exactly
//! if they name it; it is active exactly if it was configured.

#[cfg(not(target_os = "none"))]
mod inspect;

use crate::Kernel;
use core::cell::Cell;

use super::{Notification, Reply, Tcb};
use crate::cores::CoreId;
use crate::mem::Ref;

/// An amount of processor time that may be used from a certain time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Refill {
    /// Ticks.
    pub amount: u64,
    /// Tick from which on it may be used.
    pub time: u64,
}

impl Refill {
    /// Most refills of one context that the kernel uses, so that no loop is under the control of
    /// whoever configures contexts (docs/src/decisions/refills.md).
    pub const MAX: u8 = 128;

    /// No time at all.
    pub const NONE: Refill = Refill::new(0, 0);

    pub const fn new(amount: u64, time: u64) -> Self {
        Refill { amount, time }
    }

    /// One tick after the refill, were it used without interruption. No refill lies so late that
    /// this overflows: beyond the last release there is room for five of the longest periods.
    pub const fn end(self) -> u64 {
        self.time + self.amount
    }
}

/// A refill that waits behind the head. Its amount is what lies between its start and that of the next one: so what
/// concerns many refills in a row is one search, and not a sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
// All of one is in one line of a cache.
#[repr(C, align(16))]
pub struct Queued {
    /// Budget in front of it, in ticks: all that was used since the context was configured, and all that comes before.
    pub start: u64,
    /// Tick from which on it may be used.
    pub time: u64,
}

impl Queued {
    /// When it could be used up to `end`, a start behind it, without interruption.
    #[inline(always)]
    pub const fn end(self, end: u64) -> u64 {
        self.time + (end - self.start)
    }
}

const _: () = assert!(size_of::<Queued>() as u64 == sandglass_abi::sched::REFILL_SIZE);

/// Number of refills that a scheduling context of 2^`bits` bytes has room for (04, section 2.1),
/// of which the kernel uses at most [`Refill::MAX`].
const fn refill_capacity(bits: u8) -> u8 {
    if bits >= 12 {
        return Refill::MAX;
    }
    let room = ((1usize << bits) - size_of::<SchedContext>()) / size_of::<Queued>();
    if room < Refill::MAX as usize {
        room as u8
    } else {
        Refill::MAX
    }
}

/// Parameters of a configuration, checked: ticks, and the number of refills to use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    pub budget: u64,
    pub period: u64,
    pub max_refills: u8,
    pub badge: u64,
    pub sporadic: bool,
}

/// The fixed part of a scheduling context, in front of its refills.
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
    is_sporadic: Cell<bool>,
    core: Cell<CoreId>,
    end: Cell<u64>,
}

const _: () = assert!(size_of::<SchedContext>() as u64 == sandglass_abi::sched::CONTEXT_CORE_SIZE);

/// Offsets of the fields that an observer from outside, the plugin of the oracle for time, reads.
pub mod offset {
    use core::mem::offset_of;

    use super::{Refill, SchedContext};

    pub const PERIOD: usize = offset_of!(SchedContext, period);
    pub const CONSUMED: usize = offset_of!(SchedContext, consumed);
    pub const THREAD: usize = offset_of!(SchedContext, thread);
    pub const HEAD_AMOUNT: usize = offset_of!(SchedContext, head) + offset_of!(Refill, amount);
    pub const HEAD_TIME: usize = offset_of!(SchedContext, head) + offset_of!(Refill, time);
    pub const END: usize = offset_of!(SchedContext, end);
    pub const FIRST: usize = offset_of!(SchedContext, first);
    pub const QUEUED: usize = offset_of!(SchedContext, queued);
    pub const MAX_REFILLS: usize = offset_of!(SchedContext, max_refills);
    pub const SPORADIC: usize = offset_of!(SchedContext, is_sporadic);
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
            is_sporadic: Cell::new(false),
            core: Cell::new(CoreId::BOOT),
            end: Cell::new(0),
        }
    }

    /// Number of refills that the object has room for and the kernel uses.
    pub fn capacity(&self) -> u8 {
        self.capacity
    }

    cells! {
        /// Period in ticks; 0 for round-robin.
        period: u64;
        /// Number of refills that may be in the queue; 0 if not configured.
        max_refills: u8;
        /// Whether the refills start anew when the thread wakes rather than when it is chosen.
        is_sporadic, set_sporadic: bool;
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
        /// Where a refill behind the last one would start ([`Queued::start`]), if it is not round-robin.
        end, set_end: u64;
        /// Where its thread runs (04, section 15).
        core, set_core: CoreId;
    }

    pub fn is_active(&self) -> bool {
        self.max_refills.get() > 0
    }

    pub fn is_round_robin(&self) -> bool {
        self.is_active() && self.period.get() == 0
    }

    /// Sets the period in ticks and the number of refills, at most what there is room for.
    pub fn configure(&self, _: &Kernel, period: u64, max_refills: u8) {
        self.period.set(period);
        self.max_refills.set(max_refills.min(self.capacity));
    }

    /// Makes the context unconfigured.
    pub fn deactivate(&self, _: &Kernel) {
        self.max_refills.set(0);
        self.queued.set(0);
        self.is_sporadic.set(false);
    }

    /// Adds ticks to the consumption that is reported next.
    pub fn add_consumed(&self, _: &Kernel, ticks: u64) {
        self.consumed.set(self.consumed.get() + ticks);
    }

    /// Takes the ticks consumed since the last report.
    pub fn take_consumed(&self, _: &Kernel) -> u64 {
        self.consumed.replace(0)
    }
}
