//! A small state of the specification to play scenes in: some threads that share a capability
//! space of 32 slots, whose addresses are their indices, each with a buffer and a periodic context.

use std::collections::{BTreeMap, BTreeSet};

use sandglass_abi::syscall::Syscall;
use sandglass_model::event::{self, Event};
use sandglass_model::isa::{
    CAP_OR_BADGE, COUNT, MESSAGE_INFO, MESSAGE_REGISTERS, PC, REPLY, SYSCALL_NUMBER, UNIT_US,
};
use sandglass_model::state::{
    Above, CNodeId, Cap, Capabilities, Clock, ContextId, Core, CoreId, Devices, Domains, Endpoint,
    EndpointId, FrameRights, Held, Notification, NotificationId, Refill, Registers, Reply, ReplyId,
    Rights, SchedContext, Signals, SlotId, State, Thread, ThreadId, ThreadSlot, ThreadState, Ticks,
};

/// Ticks in a microsecond.
const RATE: u64 = 10;
/// Of every thread, in ticks.
pub const BUDGET: Ticks = 1000 * RATE;
const PERIOD: Ticks = 10 * BUDGET;
const ROOT: CNodeId = CNodeId(0x10_0000);
const RADIX: u8 = 5;

pub const ALL: Rights = Rights {
    write: true,
    read: true,
    grant: true,
    grant_reply: true,
    call: false,
};

pub struct Scene {
    pub state: State,
    now: Ticks,
}

impl Scene {
    /// `threads` threads, four at most, of which the first runs. Slot 0 names the capability space
    /// itself, slots from 24 on the threads and their contexts.
    pub fn new(threads: usize) -> Self {
        let mut scene = Scene {
            state: empty(),
            now: 0,
        };
        scene.hold(SlotId::CNode(ROOT, 0), root());
        for i in 0..threads {
            scene.add_thread(i);
        }
        scene.run(0);
        scene
    }

    fn add_thread(&mut self, i: usize) {
        let (thread, context) = (self.id(i), ContextId(0x30_0000 + 0x80 * i as u64));
        self.state.threads.insert(thread, new_thread(i, context));
        self.state.contexts.insert(context, new_context(thread));
        // What no capability names is gone.
        self.hold(SlotId::CNode(ROOT, 24 + i as u64), Cap::Thread(thread));
        let time = Cap::SchedContext {
            object: context,
            bits: 7,
        };
        self.hold(SlotId::CNode(ROOT, 28 + i as u64), time);
        self.hold(SlotId::Thread(thread, ThreadSlot::CSpace), root());
        let frame = Cap::Frame {
            start: 0x40_0000 + 0x1000 * i as u64,
            bits: 12,
            device: false,
            rights: FrameRights::ReadWrite,
            mapping: None,
        };
        self.hold(SlotId::Thread(thread, ThreadSlot::Buffer), frame);
    }

    pub fn id(&self, i: usize) -> ThreadId {
        ThreadId(0x20_0000 + 0x800 * i as u64)
    }

    pub fn thread(&self, i: usize) -> &Thread {
        &self.state.threads[&self.id(i)]
    }

    pub fn current(&self) -> Option<usize> {
        let current = self.state.core().thread?;
        (0..self.state.threads.len()).find(|&i| self.id(i) == current)
    }

    // ---------------------------------------------------------------- what the scene is played with

    fn hold(&mut self, slot: SlotId, cap: Cap) {
        let held = Held {
            cap,
            revocable: true,
            first_badged: true,
        };
        if self.state.caps.slots.insert(slot, held).is_none() {
            self.state.caps.lists.push(vec![slot]);
            self.state.caps.lists.sort();
        }
    }

    /// A new endpoint, named by slot `index`.
    pub fn endpoint(&mut self, index: u64, badge: u64, rights: Rights) -> EndpointId {
        let object = EndpointId(0x50_0000 + 0x10 * index);
        self.state.endpoints.insert(object, Endpoint::Idle);
        let cap = Cap::Endpoint {
            object,
            badge,
            rights,
        };
        self.hold(SlotId::CNode(ROOT, index), cap);
        object
    }

    /// A new notification, named by slot `index`.
    pub fn notification(&mut self, index: u64) -> NotificationId {
        let object = NotificationId(0x60_0000 + 0x40 * index);
        let idle = Notification {
            state: Signals::Idle,
            thread: None,
            context: None,
        };
        self.state.notifications.insert(object, idle);
        self.hold(SlotId::CNode(ROOT, index), signals(object, 0));
        object
    }

    /// Slot `index` names its notification with `badge` from now on.
    pub fn badge(&mut self, index: u64, badge: u64) {
        let Some(Cap::Notification { object, .. }) = self.cap(index) else {
            panic!("slot {index} is to name a notification");
        };
        self.hold(SlotId::CNode(ROOT, index), signals(object, badge));
    }

    /// A new reply object, named by slot `index`.
    pub fn reply(&mut self, index: u64) -> ReplyId {
        let object = ReplyId(0x70_0000 + 0x20 * index);
        let unused = Reply {
            thread: None,
            above: Above::Nothing,
            below: None,
        };
        self.state.replies.insert(object, unused);
        let cap = Cap::Reply {
            object,
            can_grant: true,
        };
        self.hold(SlotId::CNode(ROOT, index), cap);
        object
    }

    pub fn cap(&self, index: u64) -> Option<Cap> {
        let held = self.state.caps.slots.get(&SlotId::CNode(ROOT, index))?;
        Some(held.cap)
    }

    pub fn fault_handler(&mut self, thread: usize, index: u64) {
        let cap = self.cap(index).expect("the handler is in its slot");
        self.hold(
            SlotId::Thread(self.id(thread), ThreadSlot::FaultHandler),
            cap,
        );
    }

    pub fn timeout_handler(&mut self, thread: usize, index: u64) {
        let cap = self.cap(index).expect("the handler is in its slot");
        self.hold(
            SlotId::Thread(self.id(thread), ThreadSlot::TimeoutHandler),
            cap,
        );
    }

    pub fn remove_buffer(&mut self, thread: usize) {
        let slot = SlotId::Thread(self.id(thread), ThreadSlot::Buffer);
        self.state.caps.slots.remove(&slot);
        self.state.caps.lists.retain(|list| list[0] != slot);
    }

    pub fn set_priority(&mut self, thread: usize, priority: u8) {
        let id = self.id(thread);
        self.state.thread_mut(id).priority = priority;
    }

    /// Takes the context of `thread` away.
    pub fn passive(&mut self, thread: usize) {
        let id = self.id(thread);
        if let Some(context) = self.state.thread_mut(id).context.take() {
            self.state.context_mut(context).thread = None;
        }
        self.run(0);
    }

    /// The budget of `thread` comes back only after `ticks`.
    pub fn postpone(&mut self, thread: usize, ticks: Ticks) {
        let context = self.thread(thread).context.expect("it has a context");
        self.state.context_mut(context).refills[0].time = self.now + ticks;
    }

    // -------------------------------------------------------------------------------- the play

    /// `thread` runs, on its own context, and nobody else can.
    pub fn run(&mut self, thread: usize) {
        let id = self.id(thread);
        self.state.thread_mut(id).state = ThreadState::Running;
        self.state.core_mut().thread = Some(id);
        self.state.core_mut().context = self.thread(thread).context;
        self.state.core_mut().queues[0].ready.clear();
    }

    /// Sets a register of the current thread.
    pub fn set(&mut self, register: usize, value: u64) {
        let current = self.state.core().thread.expect("somebody runs");
        self.state.thread_mut(current).registers.user[register] = value;
    }

    pub fn happens(&mut self, event: Event) {
        self.now += RATE;
        event::handle(&mut self.state, CoreId(0), event, self.now);
    }

    pub fn syscall(&mut self, call: Syscall) {
        self.set(SYSCALL_NUMBER, call.raw());
        self.happens(Event::Syscall);
    }

    /// The current thread invokes slot `index` with one word.
    pub fn call(&mut self, call: Syscall, index: u64, info: u64, word: u64) {
        self.set(CAP_OR_BADGE, index);
        self.set(MESSAGE_INFO, info);
        self.set(MESSAGE_REGISTERS[0], word);
        self.syscall(call);
    }

    /// The current thread receives from slot `index` with the reply object of slot `reply`.
    pub fn receive(&mut self, call: Syscall, index: u64, reply: u64) {
        self.set(CAP_OR_BADGE, index);
        self.set(REPLY, reply);
        self.syscall(call);
    }

    /// The current thread answers through slot `reply` with one word, and receives from `index`.
    pub fn reply_and_receive(&mut self, reply: u64, index: u64, info: u64, word: u64) {
        self.set(REPLY, reply);
        self.call(Syscall::ReplyRecv, index, info, word);
    }

    fn buffer(&self, thread: usize) -> u64 {
        0x40_0000 + 0x1000 * thread as u64 + self.thread(thread).buffer_address % 0x1000
    }

    pub fn buffer_word(&mut self, thread: usize, index: u64, word: u64) {
        let address = self.buffer(thread) + 8 * index;
        self.state.memory.insert(address, word);
    }

    pub fn read_buffer(&self, thread: usize, index: u64) -> u64 {
        let address = self.buffer(thread) + 8 * index;
        self.state.memory.get(&address).copied().unwrap_or(0)
    }
}

fn root() -> Cap {
    Cap::CNode {
        object: ROOT,
        radix: RADIX,
        guard: 0,
        guard_size: 64 - RADIX,
    }
}

fn signals(object: NotificationId, badge: u64) -> Cap {
    Cap::Notification {
        object,
        badge,
        rights: ALL,
    }
}

fn new_thread(i: usize, context: ContextId) -> Thread {
    let mut user = [0; COUNT];
    user[PC] = 0x1000 * (i as u64 + 1);
    Thread {
        state: ThreadState::Inactive,
        registers: Registers {
            user,
            next_ip: user[PC] + 2,
        },
        priority: 100,
        mcp: 255,
        domain: 0,
        core: CoreId(0),
        fpu_disabled: false,
        buffer_address: 0x7000_0400,
        fault: None,
        context: Some(context),
        notification: None,
        yield_to: None,
    }
}

fn new_context(thread: ThreadId) -> SchedContext {
    SchedContext {
        bits: 7,
        period: PERIOD,
        max_refills: 2,
        refills: vec![Refill {
            amount: BUDGET,
            time: 0,
        }],
        consumed: 0,
        badge: 0,
        sporadic: false,
        core: CoreId(0),
        thread: Some(thread),
        notification: None,
        reply: None,
        yield_from: None,
    }
}

fn empty() -> State {
    State {
        clock: Clock {
            ticks_per_unit: RATE * UNIT_US,
        },
        caps: Capabilities::default(),
        cnodes: BTreeMap::from([(ROOT, RADIX)]),
        threads: BTreeMap::new(),
        endpoints: BTreeMap::new(),
        notifications: BTreeMap::new(),
        replies: BTreeMap::new(),
        contexts: BTreeMap::new(),
        tables: BTreeMap::new(),
        pools: BTreeMap::new(),
        asids: BTreeMap::new(),
        irqs: BTreeMap::new(),
        ports: BTreeSet::new(),
        domains: Domains {
            entries: vec![(0, (1 << 56) - 1), (0, 0)],
            start: 0,
            index: 0,
            current: 0,
            end: Ticks::MAX,
        },
        cores: vec![Core::idle(0)],
        executing: CoreId(0),
        readings: sandglass_model::state::Readings::default(),
        memory: BTreeMap::new(),
        devices: Devices::default(),
    }
}
