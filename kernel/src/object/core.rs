//! The state of one core: who runs, on whose time, and who waits for the processor.

use crate::{Kernel, View, CORES};
use core::cell::Cell;
use core::mem::offset_of;

use super::domain::DOMAINS;
use super::ready::ReadyQueues;
use super::release::ReleaseQueues;
use super::{records, SchedContext, State, Tcb};
use crate::mem::{PhysAddr, Ref};

/// The threads of a domain on a core that want to run.
#[derive(Clone, Copy)]
pub struct Queues<'k> {
    /// Those that are ready to run.
    pub ready: &'k ReadyQueues,
    /// Those that wait for their budget.
    pub release: &'k ReleaseQueues,
}

/// Whom a CancelBadgedSends restarts, objects by address: those who wait to send to this endpoint, with this badge, and took
/// their places before this number was given out, which none other has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cancellation {
    pub endpoint: PhysAddr,
    pub badge: u64,
    pub until: u64,
}

impl Cancellation {
    #[inline(always)]
    pub fn concerns(self, k: &View, thread: Ref<Tcb>) -> bool {
        let tcb = thread.at(k);
        match tcb.state() {
            State::BlockedOnSend { endpoint, sender } => {
                sender.badge == self.badge
                    && endpoint.address() == self.endpoint
                    && tcb.links().key().position() < self.until
            }
            _ => false,
        }
    }
}

/// Of a core's demands: the decision who runs there, and that the current context pays and the timer is programmed.
const UNDECIDED: u16 = 1;
const REPROGRAM: u16 = 2;

/// One core, and the queues of the domain that runs there. `None` as thread or context stands for idleness, which
/// is never charged.
#[repr(C, align(64))]
pub struct Core {
    context: Cell<Option<Ref<SchedContext>>>,
    paid: Cell<u64>,
    armed: Cell<u64>,
    fpu_owner: Cell<Option<Ref<Tcb>>>,
    ready: [ReadyQueues; DOMAINS as usize],
    // What most events look at, entry and exit among them, is in one line of a cache with the highest priority of those that
    // are ready, which is the last word of their queues, and the earliest release, the first one of theirs. `bench --touches`
    // counts the lines.
    thread: Cell<Option<Ref<Tcb>>>,
    now: Cell<u64>,
    pays_until: Cell<u64>,
    spaces: Cell<u64>,
    root: Cell<u64>,
    demands: Cell<u16>,
    fpu_enabled: Cell<bool>,
    /// Whether the GS base that x86_64's exit loaded last is not 0. Its code alone looks at it.
    base_loaded: Cell<bool>,
    domain: Cell<u8>,
    release: [ReleaseQueues; DOMAINS as usize],
    cancellation: Cell<Option<Cancellation>>,
    pub trace: records::OfCore,
}

impl Core {
    /// Offsets of what entry and exit code, and observers from outside, look at.
    pub const CLOCK: usize = offset_of!(Self, now);
    pub const THREAD: usize = offset_of!(Self, thread);
    pub const ROOT: usize = offset_of!(Self, root);
    pub const BASE_LOADED: usize = offset_of!(Self, base_loaded);

    pub const fn new() -> Self {
        Core {
            thread: Cell::new(None),
            context: Cell::new(None),
            now: Cell::new(0),
            paid: Cell::new(0),
            demands: Cell::new(0),
            fpu_enabled: Cell::new(false),
            base_loaded: Cell::new(false),
            pays_until: Cell::new(u64::MAX),
            armed: Cell::new(u64::MAX),
            fpu_owner: Cell::new(None),
            spaces: Cell::new(1),
            root: Cell::new(0),
            domain: Cell::new(0),
            ready: [const { ReadyQueues::new() }; DOMAINS as usize],
            release: [const { ReleaseQueues::new() }; DOMAINS as usize],
            cancellation: Cell::new(None),
            trace: records::OfCore::new(),
        }
    }

    cells! {
        /// The thread that runs, or that caused the event.
        thread, set_thread: Option<Ref<Tcb>>;
        /// The scheduling context that pays.
        context: Option<Ref<SchedContext>>;
        /// Until when the current context can pay for an event: the end of its head refill but for the least budget, in ticks;
        /// `u64::MAX` if nobody pays. Out of date from when the context pays until [`Self::set_context`].
        pays_until: u64;
        /// Number of the state in which address spaces are: it grows when a thread may have lost its own, so that what threads
        /// [remember](Tcb::space) of an older one counts no more. Not 0. It does not run out in 500 years of one in a nanosecond.
        /// The same on each core, so that it is beside what a switch looks at.
        spaces, set_spaces: u64;
        /// What the exit makes the root of the address space, as [`Platform::use_address_space`](crate::arch::Platform) says.
        root, set_root: u64;
        /// Time of entry to the kernel, in ticks.
        now, set_now: u64;
        /// The domain that runs, which new threads belong to.
        domain, set_domain: u8;
        /// For when the timer is programmed, in ticks; `u64::MAX` if it has fired.
        armed, set_armed: u64;
        /// Of the CancelBadgedSends that was preempted last on this core. It stays when that has ended, and concerns nobody
        /// then; and when that is never gone on with: whoever it concerns is restarted when given another place.
        cancellation, set_cancellation: Option<Cancellation>;
        /// The thread whose registers are in the FPU.
        fpu_owner, set_fpu_owner: Option<Ref<Tcb>>;
        /// Whether user code can use the FPU.
        fpu_enabled, set_fpu_enabled: bool;
    }

    /// The queues of `domain`.
    #[inline(always)]
    pub fn of(&self, domain: u8) -> Queues<'_> {
        let domain = domain as usize & (DOMAINS as usize - 1);
        Queues {
            ready: &self.ready[domain],
            release: &self.release[domain],
        }
    }

    /// Those of the domain that runs that are ready to run.
    #[inline(always)]
    pub fn ready(&self) -> &ReadyQueues {
        self.of(self.domain()).ready
    }

    /// Those of the domain that runs that wait for their budget.
    #[inline(always)]
    pub fn release(&self) -> &ReleaseQueues {
        self.of(self.domain()).release
    }

    /// From now on `context` pays, whose head refill has `amount` ticks; both are `None` for
    /// idleness.
    #[inline(always)]
    pub fn set_context(&self, k: &Kernel, context: Option<(Ref<SchedContext>, u64)>) {
        self.context.set(context.map(|(context, _)| context));
        self.pays_until.set(match context {
            // A context that pays has the least budget. Amounts are at most an eighth of the range.
            Some((_, amount)) => self.paid.get() + amount - k.constants.min_budget(),
            None => u64::MAX,
        });
    }

    /// When the head refill of the current context is used up, in ticks; `u64::MAX` if nobody pays. Out of date as
    /// [`Self::pays_until`] is.
    pub fn budget_end(&self, k: &View) -> u64 {
        self.pays_until().saturating_add(k.constants.min_budget())
    }

    /// Whether the time has come for anybody who waits for a refill.
    #[inline(always)]
    pub fn is_anybody_due(&self) -> bool {
        self.release().earliest() <= self.now()
    }

    /// Ticks that the current context has not paid for.
    pub fn consumed(&self) -> u64 {
        self.now.get() - self.paid.get()
    }

    /// Nothing is left to pay for.
    pub fn set_paid(&self, _: &Kernel) {
        self.paid.set(self.now.get());
    }

    /// `ticks` pass for which nobody pays.
    pub fn stand_still(&self, _: &Kernel, ticks: u64) {
        self.now.set(self.now.get() + ticks);
        self.paid.set(self.paid.get() + ticks);
    }

    /// Whether nothing is demanded of the core when an event begins. With one core that is always so: whatever is demanded,
    /// the event in which that happens ends with it done.
    #[inline(always)]
    pub fn is_at_rest(&self) -> bool {
        CORES == 1 || self.demands.get() == 0
    }

    /// Whether another core has left the decision who runs here to this one.
    pub fn undecided(&self) -> bool {
        self.demands.get() & UNDECIDED != 0
    }

    /// Leaves the decision who runs here to this core.
    pub fn leave_undecided(&self, _: &Kernel) {
        self.demands.set(self.demands.get() | UNDECIDED);
    }

    /// The turn of the core begins: the decision is its own.
    pub fn take_decision(&self, _: &Kernel) {
        self.demands.set(self.demands.get() & !UNDECIDED);
    }

    /// Whether the current context is to pay and the timer to be programmed anew.
    pub fn reprogram(&self) -> bool {
        self.demands.get() & REPROGRAM != 0
    }

    /// Asks for the current context to pay and the timer to be programmed at the end.
    pub fn request_reprogram(&self, _: &Kernel) {
        self.demands.set(self.demands.get() | REPROGRAM);
    }

    /// Who runs is decided, and the current context pays and the timer is programmed now: nothing is demanded of the core any
    /// more.
    pub fn rest(&self, _: &Kernel) {
        self.demands.set(0);
    }
}
