//! The state of the kernel, as a value.
//!
//! Objects are named by the physical address at which they lie, which Retype determines (03,
//! section 3). Links between objects are stored on both sides where the ABI pages speak of both
//! sides.

use sandglass_abi::sched::domain::DOMAINS;

use crate::isa;
use std::collections::{BTreeMap, BTreeSet};

pub use crate::time::readings::Readings;

/// Time, or a length of time, in ticks.
pub type Ticks = u64;

/// A physical address.
pub type Address = u64;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(pub Address);
    )*};
}

/// The number of a core.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CoreId(pub usize);

ids!(
    /// A thread control block.
    ThreadId,
    EndpointId,
    NotificationId,
    ReplyId,
    /// A scheduling context.
    ContextId,
    CNodeId,
    /// A paging structure of any level.
    TableId,
    /// A pool of address-space identifiers.
    PoolId,
);

/// Everything that the kernel knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// The clock's frequency and what follows from it; never changes.
    pub clock: Clock,
    pub caps: Capabilities,
    /// Radix of every CNode.
    pub cnodes: BTreeMap<CNodeId, u8>,
    pub threads: BTreeMap<ThreadId, Thread>,
    pub endpoints: BTreeMap<EndpointId, Endpoint>,
    pub notifications: BTreeMap<NotificationId, Notification>,
    pub replies: BTreeMap<ReplyId, Reply>,
    pub contexts: BTreeMap<ContextId, SchedContext>,
    pub tables: BTreeMap<TableId, Table>,
    /// For every pool the address spaces that it names: index in the pool (0 to 511), root table.
    pub pools: BTreeMap<PoolId, BTreeMap<u16, TableId>>,
    /// The pools in use, by number.
    pub asids: BTreeMap<u8, PoolId>,
    /// Interrupts that were issued, by kernel IRQ number.
    pub irqs: BTreeMap<isa::IrqNumber, Irq>,
    /// I/O ports that were issued, as (first, last).
    pub ports: BTreeSet<(u16, u16)>,
    pub domains: Domains,
    /// The cores, by number.
    pub cores: Vec<Core>,
    /// The core that executes the kernel, or that did last (04, section 15: one at a time).
    pub executing: CoreId,
    /// What the clock shows during the event that is being handled; nothing between events.
    pub readings: Readings,
    /// User memory: the words that are not 0, by physical address, a multiple of 8.
    pub memory: BTreeMap<Address, u64>,
    /// The machine around the processor, as far as the kernel drives it.
    pub devices: Devices,
}

/// Constants of time (04, section 1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    /// Ticks in the unit of the architecture, [`isa::UNIT_US`].
    pub ticks_per_unit: u64,
}

// ---------------------------------------------------------------------------- capabilities

/// The capability slots that are not empty, and their derivations.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Capabilities {
    pub slots: BTreeMap<SlotId, Held>,
    /// The derivation lists (02, section 5), each in its order; every slot that is not empty is in
    /// exactly one. Lists of one are listed too. The lists are sorted by their first slot.
    pub lists: Vec<Vec<SlotId>>,
}

/// Where a capability can be.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum SlotId {
    CNode(CNodeId, u64),
    Thread(ThreadId, ThreadSlot),
    /// The notification of an interrupt.
    Irq(isa::IrqNumber),
}

/// The five slots of a thread (03, section 4.0).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ThreadSlot {
    CSpace,
    VSpace,
    Buffer,
    FaultHandler,
    TimeoutHandler,
}

/// A capability in its slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Held {
    pub cap: Cap,
    pub revocable: bool,
    pub first_badged: bool,
}

/// A capability (page 02). Sizes are log2 of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cap {
    Untyped {
        start: Address,
        bits: u8,
        device: bool,
        /// Bytes from the start that are, or may be, in use.
        watermark: u64,
    },
    Endpoint {
        object: EndpointId,
        badge: u64,
        rights: Rights,
    },
    Notification {
        object: NotificationId,
        badge: u64,
        /// Only `write` and `read` count; the others are not set.
        rights: Rights,
    },
    Reply {
        object: ReplyId,
        can_grant: bool,
    },
    CNode {
        object: CNodeId,
        radix: u8,
        guard: u64,
        guard_size: u8,
    },
    Thread(ThreadId),
    SchedContext {
        object: ContextId,
        bits: u8,
    },
    SchedControl {
        core: u64,
    },
    Domain,
    IrqControl,
    IrqHandler {
        irq: isa::IrqNumber,
    },
    Frame {
        start: Address,
        bits: u8,
        device: bool,
        rights: FrameRights,
        mapping: Option<Mapping>,
    },
    /// A table below the root. On aarch64 such tables have their level where they are mapped, and here that of
    /// `Level::PageTable`; never `Level::Pml4`.
    Paging {
        object: TableId,
        level: Level,
        mapping: Option<Mapping>,
    },
    /// A root table, with its identifier if it was assigned one.
    Root {
        object: TableId,
        asid: Option<u16>,
    },
    AsidControl,
    AsidPool {
        object: PoolId,
        number: u8,
    },
    IoPortControl,
    IoPort {
        first: u16,
        last: u16,
    },
    /// A software-generated interrupt.
    SgiSignal {
        sgi: u8,
        target: u32,
    },
}

/// Rights of an endpoint or notification capability (02, section 3). That to `call` stands in the place of
/// that to `write`, beside a right to grant, and with endpoints only (decision *calls only*).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    pub write: bool,
    pub read: bool,
    pub grant: bool,
    pub grant_reply: bool,
    pub call: bool,
}

impl Rights {
    /// Whether a message may be sent, one that is a call if `by_call`.
    pub fn sends(self, by_call: bool) -> bool {
        self.write || by_call && self.call
    }
}

/// What a frame capability lets a user do with the memory (02, section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameRights {
    KernelOnly,
    ReadOnly,
    ReadWrite,
}

/// Where a frame or a paging structure was mapped (07, section 8): possibly in an address space
/// that is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mapping {
    pub asid: u16,
    pub vaddr: u64,
}

// ---------------------------------------------------------------------------- threads

/// A thread (03, section 4.0).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Thread {
    pub state: ThreadState,
    pub registers: Registers,
    pub priority: u8,
    /// Maximum controlled priority.
    pub mcp: u8,
    pub domain: u8,
    /// Where it runs, and is queued to run (04, section 15).
    pub core: CoreId,
    pub fpu_disabled: bool,
    /// User address of the IPC buffer; 0 for none.
    pub buffer_address: u64,
    /// The fault that the thread waits to have handled.
    pub fault: Option<Fault>,
    pub context: Option<ContextId>,
    /// The bound notification.
    pub notification: Option<NotificationId>,
    /// The context that the thread has yielded to, until it is told the consumption.
    pub yield_to: Option<ContextId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ThreadState {
    Inactive,
    /// Continues at `next_ip`.
    Running,
    /// Continues at the restart address.
    Restart,
    BlockedOnReceive {
        endpoint: EndpointId,
        reply: Option<ReplyId>,
    },
    BlockedOnSend {
        endpoint: EndpointId,
        badge: u64,
        grant: bool,
        grant_reply: bool,
        is_call: bool,
        /// Through a capability with the right to call.
        calls_only: bool,
    },
    BlockedOnReply {
        reply: ReplyId,
    },
    BlockedOnNotification {
        notification: NotificationId,
    },
}

impl ThreadState {
    /// Whether a thread in this state could run, given time (04, section 2.4).
    pub fn is_runnable(self) -> bool {
        matches!(self, Self::Running | Self::Restart)
    }

    /// Whether a thread in this state waits for another.
    pub fn is_blocked(self) -> bool {
        !self.is_runnable() && self != Self::Inactive
    }
}

/// The registers of a thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registers {
    /// In the order of the user context (07, section 1.1); index 0 is the restart address.
    pub user: [u64; isa::COUNT],
    /// Where a running thread continues.
    pub next_ip: u64,
}

/// Why a thread cannot go on by itself (page 05).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    Cap {
        cptr: u64,
        in_receive_phase: bool,
        failure: LookupFailure,
    },
    UnknownSyscall {
        number: u64,
    },
    UserException {
        number: u32,
        code: u32,
    },
    /// With the badge of the scheduling context.
    Timeout {
        badge: u64,
    },
    Vm {
        address: u64,
        instruction: bool,
        status: u32,
    },
}

/// Why a capability address names nothing (02, section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookupFailure {
    InvalidRoot,
    MissingCapability {
        bits_left: u64,
    },
    DepthMismatch {
        bits_left: u64,
        bits_found: u64,
    },
    GuardMismatch {
        bits_left: u64,
        guard_found: u64,
        bits_found: u64,
    },
}

// ---------------------------------------------------------------------------- communication

/// An endpoint: the threads that wait, the first first (04, section 8.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Endpoint {
    Idle,
    Senders(Vec<ThreadId>),
    Receivers(Vec<ThreadId>),
}

/// A notification (01, section 5.5).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Notification {
    pub state: Signals,
    /// The thread that it is bound to.
    pub thread: Option<ThreadId>,
    pub context: Option<ContextId>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Signals {
    Idle,
    Waiting(Vec<ThreadId>),
    Active(u64),
}

/// A reply object (04, section 7).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The thread that waits in Recv with it, or whose call it will answer.
    pub thread: Option<ThreadId>,
    /// The neighbour in a reply stack towards the context.
    pub above: Above,
    /// The neighbour away from it.
    pub below: Option<ReplyId>,
}

/// What stands above a reply object in its stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Above {
    /// It belongs to no stack, or the stack was cut here.
    Nothing,
    /// It is the top of the stack of this context.
    Context(ContextId),
    Reply(ReplyId),
}

// ---------------------------------------------------------------------------- time

/// A scheduling context (04, section 2.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SchedContext {
    /// log2 of the object's bytes.
    pub bits: u8,
    /// 0 for round-robin.
    pub period: Ticks,
    /// 0 if the context is not configured, and so not active.
    pub max_refills: u64,
    /// The refill queue; the first is the head. Round-robin: what remains of the slice and what
    /// was used. Not meaningful (and empty here) if the context is not active.
    pub refills: Vec<Refill>,
    /// Ticks since the last report.
    pub consumed: Ticks,
    pub badge: u64,
    pub sporadic: bool,
    /// For which it is configured (04, section 15).
    pub core: CoreId,
    pub thread: Option<ThreadId>,
    pub notification: Option<NotificationId>,
    /// The top of the reply stack.
    pub reply: Option<ReplyId>,
    pub yield_from: Option<ThreadId>,
}

/// An amount of budget, and from when on it can be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refill {
    pub amount: Ticks,
    pub time: Ticks,
}

/// A core (04, sections 3, 8 and 15).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Core {
    /// Who runs; `None` for idleness.
    pub thread: Option<ThreadId>,
    /// Who pays; `None` for idleness.
    pub context: Option<ContextId>,
    /// Time of the last entry to the kernel.
    pub now: Ticks,
    /// What the current context has not paid for; 0 in idleness.
    pub consumed: Ticks,
    /// Who wants to run there, by domain.
    pub queues: Vec<Queues>,
    /// For when the timer is programmed; `u64::MAX` for never.
    pub deadline: Ticks,
    /// What the scheduler is to do at the end of the event on this core; between events
    /// `ResumeCurrent`, or `ChooseNew` if an event on another core made a decision necessary here.
    pub action: Action,
    /// Whether the current context is to pay and the timer to be programmed at the end of the
    /// event on this core; between events false, unless an event on another core asks for it.
    pub reprogram: bool,
    /// Whether another core has asked it to look at its queues, and it has not done so yet (04,
    /// section 15: the reschedule interrupt).
    pub look: bool,
}

/// The threads of a domain on a core that want to run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Queues {
    /// The ready queues, by priority, the first first; empty ones are left out. Released threads
    /// that were not moved yet are in here, at the place that docs, deliberate difference 8, gives
    /// them: behind those enqueued at the head, among those appended in the order of time, before
    /// those appended at the instant of their release or later.
    pub ready: BTreeMap<u8, Vec<Ready>>,
    /// Threads whose refill is not ready yet, ordered by its time; equal times first-come,
    /// first-served among equal priorities, and listed by priority otherwise, the lowest first.
    pub release: Vec<(Ticks, ThreadId)>,
}

impl Core {
    /// A core that idles at `now`, with nothing to do.
    pub fn idle(now: Ticks) -> Self {
        Core {
            thread: None,
            context: None,
            now,
            consumed: 0,
            queues: vec![Queues::default(); DOMAINS as usize],
            deadline: Ticks::MAX,
            action: Action::ResumeCurrent,
            reprogram: false,
            look: false,
        }
    }
}

/// The scheduler's action (04, section 8.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    ResumeCurrent,
    ChooseNew,
    Candidate(ThreadId),
}

/// A thread in a ready queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ready {
    pub thread: ThreadId,
    /// When it was appended or released; 0 if it was enqueued at the head.
    pub since: Ticks,
}

/// The domain schedule, and how far it is (04, section 11). Where there is one domain, its time does not decrease, and its
/// turn never ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domains {
    /// (domain, duration in ticks).
    pub entries: Vec<(u8, Ticks)>,
    pub start: u64,
    /// The entry whose turn it is.
    pub index: u64,
    /// The domain whose turn it is, which new threads belong to.
    pub current: u8,
    /// When the turn ends; 0 if it is over, and the next one begins with the next decision. The first one, which begins with
    /// the boot, never ends.
    pub end: Ticks,
}

// ---------------------------------------------------------------------------- memory and devices

/// Levels of the page tables (07, section 7), by the names of x86_64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    PageTable,
    PageDirectory,
    Pdpt,
    Pml4,
}

/// A paging structure.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table {
    pub level: Level,
    /// The entries in use for user addresses, by index (0 to 511; of a root 0 to 255).
    pub entries: BTreeMap<u16, Entry>,
}

/// An entry of a paging structure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The next level, with the attribute bits PWT (0) and PCD (1) of x86_64.
    Table { table: TableId, attributes: u8 },
    /// A page, with the attribute bits PWT (0), PCD (1) and PAT (2); of aarch64 cacheable (0) and execute never (2).
    Page {
        start: Address,
        rights: FrameRights,
        attributes: u8,
    },
}

/// An interrupt that was issued (03, section 7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Irq {
    /// By a pin of the I/O APIC.
    Pin {
        ioapic: u8,
        pin: u8,
        level: bool,
        active_low: bool,
    },
    /// Message-signalled: never masked by the kernel.
    Message,
    /// Of a GIC: its number there, its core, and whether it is triggered by an edge, if that was said.
    Gic {
        id: u16,
        core: u8,
        edge: Option<bool>,
    },
}

/// What the kernel drives outside the processor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Devices {
    /// Number of pins of each I/O APIC; never changes.
    pub ioapics: Vec<u8>,
    /// Which IRQ each pin raises.
    pub routes: BTreeMap<isa::Pin, isa::IrqNumber>,
    /// Pins that are masked.
    pub masked: BTreeSet<isa::Pin>,
    /// What was last written to I/O ports, or set for reading, by port.
    pub ports: BTreeMap<u16, u32>,
    /// The software-generated interrupt that was raised last, and its target.
    pub sgi: Option<(u8, u32)>,
}
