//! Threads.
//!
//! Invariants: a thread is in at most one queue, as its place and state say; its scheduling
//! context and its bound notification name it; a thread that is blocked on an object is in that
//! object's queue.

use crate::Kernel;
use core::cell::Cell;

use super::queue::Links;
use super::ready::ReadyLinks;
use super::{Cancellation, Endpoint, Fault, Key, Notification, Reply, Rights, SchedContext};
use crate::arch::{abi::object::Progress, remembered::Remembered, Context, FpuState};
use crate::cores::CoreId;
use crate::mem::{PhysAddr, Ref, Slot};

/// What a thread does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Inactive,
    /// Continues behind the instruction at which it entered the kernel.
    Running,
    /// Executes that instruction anew.
    Restart,
    BlockedOnReceive {
        endpoint: Ref<Endpoint>,
        /// The reply object that it offered.
        reply: Option<Ref<Reply>>,
    },
    BlockedOnSend {
        endpoint: Ref<Endpoint>,
        sender: Sender,
    },
    BlockedOnReply {
        reply: Ref<Reply>,
    },
    BlockedOnNotification {
        notification: Ref<Notification>,
    },
}

/// What a blocked sender wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sender {
    pub badge: u64,
    /// Those of the capability through which it sends.
    pub rights: Rights,
    pub is_call: bool,
}

/// The capability slots of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum TcbSlot {
    VSpace,
    Buffer,
    FaultHandler,
    TimeoutHandler,
    // The last: in a line of a cache with the first registers of the context.
    CSpace,
}

impl TcbSlot {
    /// Number of slots.
    pub const COUNT: u64 = sandglass_abi::object::TCB_SLOTS as u64;
}

/// In which queue of the scheduler a thread is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    None,
    Ready,
    Release,
}

/// Bytes of a thread's name for debugging.
pub const NAME_BYTES: usize = 64;

/// How far a preempted system call of a thread has come, where the objects themselves do not
/// tell: left by the call that was preempted for the next one that the thread makes, which goes
/// on from there if it is the same in every respect. Objects are named by address and never
/// looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResumePoint {
    /// With the last sender looked at.
    CancelBadgedSends(Cancellation, Key),
    /// With the number of objects that exist.
    Retype(Retyping, u64),
    Arch(Progress),
}

/// What a Retype is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retyping {
    /// Slot of the untyped memory.
    pub untyped: PhysAddr,
    /// Type number and size argument.
    pub object: (u64, u64),
    /// The first slot of the window.
    pub first: Option<PhysAddr>,
    /// Objects that the whole call creates.
    pub count: u64,
}

/// For which system call of a thread its progress is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Age {
    /// There is none.
    None,
    /// For the next one.
    Next,
    /// For the one that is being handled.
    This,
}

/// A thread control block.
#[repr(C, align(2048))]
pub struct Tcb {
    pub(crate) slots: [Slot; TcbSlot::COUNT as usize],
    context: Context,
    // What most events look at, in few lines of a cache with the last registers.
    state: Cell<State>,
    sched_context: Cell<Option<Ref<SchedContext>>>,
    place: Cell<Place>,
    priority: Cell<u8>,
    max_controlled_priority: Cell<u8>,
    domain: Cell<u8>,
    core: Cell<CoreId>,
    fpu_disabled: Cell<bool>,
    full_restore: Cell<bool>,
    progress_age: Cell<Age>,
    space: Cell<Remembered>,
    yield_to: Cell<Option<Ref<SchedContext>>>,
    notification: Cell<Option<Ref<Notification>>>,
    fpu: FpuState,
    buffer_address: Cell<u64>,
    links: Links,
    ready_links: ReadyLinks,
    fault: Cell<Option<Fault>>,
    progress: Cell<Option<ResumePoint>>,
    name: Cell<[u8; NAME_BYTES]>,
}

const _: () = assert!(size_of::<Tcb>() == 1 << sandglass_abi::object::TCB_BITS);

/// Where the fields are that entry and exit code need, and who watches from outside on which time a thread runs.
pub mod offset {
    use core::mem::offset_of;

    use super::Tcb;

    pub const REGISTERS: usize = offset_of!(Tcb, context);
    pub const LINKS_FORK: usize = offset_of!(Tcb, links) + super::Links::FORK;
    pub const SCHED_CONTEXT: usize = offset_of!(Tcb, sched_context);
    pub const PLACE: usize = offset_of!(Tcb, place);
    pub const FULL_RESTORE: usize = offset_of!(Tcb, full_restore);

    /// Bytes of the fault, not all of which mean something.
    #[cfg(not(target_os = "none"))]
    pub const FAULT: core::ops::Range<usize> = {
        let start = offset_of!(Tcb, fault);
        start..start + size_of::<Option<super::Fault>>()
    };
}

impl Tcb {
    /// A new thread in `domain` (03, section 4.0), at `own`: inactive, of priority 0, without anything.
    pub const fn new(own: Ref<Tcb>, domain: u8) -> Self {
        Tcb {
            slots: [const { Slot::new() }; TcbSlot::COUNT as usize],
            context: Context::new(),
            fpu: FpuState::new(),
            state: Cell::new(State::Inactive),
            sched_context: Cell::new(None),
            notification: Cell::new(None),
            yield_to: Cell::new(None),
            buffer_address: Cell::new(0),
            fault: Cell::new(None),
            links: Links::new(own),
            ready_links: ReadyLinks::new(),
            place: Cell::new(Place::None),
            priority: Cell::new(0),
            max_controlled_priority: Cell::new(0),
            domain: Cell::new(domain),
            core: Cell::new(CoreId::BOOT),
            fpu_disabled: Cell::new(false),
            full_restore: Cell::new(true),
            progress: Cell::new(None),
            progress_age: Cell::new(Age::None),
            space: Cell::new(Remembered::NOTHING),
            name: Cell::new([0; NAME_BYTES]),
        }
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    pub fn fpu(&self) -> &FpuState {
        &self.fpu
    }

    pub fn links(&self) -> &Links {
        &self.links
    }

    pub fn ready_links(&self) -> &ReadyLinks {
        &self.ready_links
    }

    cells! {
        state, set_state: State;
        /// The context that the thread runs on; a thread without one is passive.
        sched_context, set_sched_context: Option<Ref<SchedContext>>;
        /// The notification whose signals the thread also receives at endpoints.
        notification, set_notification: Option<Ref<Notification>>;
        /// The context that the thread has yielded to and whose consumption it is to be told.
        yield_to, set_yield_to: Option<Ref<SchedContext>>;
        /// User address of the IPC buffer; 0 for none.
        buffer_address, set_buffer_address: u64;
        /// The fault that the thread waits to have handled.
        fault, set_fault: Option<Fault>;
        /// What is known of the thread's address space.
        space, set_space: Remembered;
        place, set_place: Place;
        priority, set_priority: u8;
        max_controlled_priority, set_max_controlled_priority: u8;
        domain, set_domain: u8;
        /// The core of the context that the thread has, or had last (04, section 15).
        core, set_core: CoreId;
        fpu_disabled, set_fpu_disabled: bool;
        /// Whether all registers take effect at the next return (07, section 1.5), where there is another way back: that of a
        /// system call. Entry code writes it, and exit code looks at it.
        full_restore, set_full_restore: bool;
        /// Name for debugging, padded with zeroes.
        name, set_name: [u8; NAME_BYTES];
    }

    /// A system call of the thread begins: what the last one left is for this one, and gone with
    /// it.
    #[inline(always)]
    pub fn age_progress(&self, _: &Kernel) {
        if self.progress_age.get() != Age::None {
            self.progress_age.set(match self.progress_age.get() {
                Age::Next => Age::This,
                Age::This | Age::None => Age::None,
            });
        }
    }

    /// Whether an earlier system call of the thread has left anything.
    pub fn has_progress(&self) -> bool {
        self.progress_age.get() != Age::None
    }

    /// What a preempted system call left for the one that is being handled.
    pub fn progress(&self) -> Option<ResumePoint> {
        self.progress
            .get()
            .filter(|_| self.progress_age.get() == Age::This)
    }

    /// Leaves `progress` for the thread's next system call.
    pub fn leave_progress(&self, _: &Kernel, progress: ResumePoint) {
        self.progress.set(Some(progress));
        self.progress_age.set(Age::Next);
    }

    /// What a preempted system call left is for no other one: the thread has been given other registers, and what it calls
    /// next is another call, be it the same in every respect.
    pub fn forget_progress(&self, _: &Kernel) {
        self.progress_age.set(Age::None);
    }

    /// Whether the thread could run if it had time.
    pub fn is_runnable(&self) -> bool {
        matches!(self.state.get(), State::Running | State::Restart)
    }

    /// Whether the thread waits for somebody.
    pub fn is_blocked(&self) -> bool {
        !matches!(
            self.state.get(),
            State::Running | State::Restart | State::Inactive
        )
    }
}
