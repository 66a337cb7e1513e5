//! A hosted kernel with its root task, and what a user can do: set registers, enter the kernel,
//! let time pass.

// Other crates' tests use their part of this.
#![allow(dead_code)]

pub mod service;

use std::collections::BTreeMap;

use sandglass_abi::boot::slot;
use sandglass_abi::error::ErrorNumber;
use sandglass_abi::invocation as label;
use sandglass_abi::message::{ipc_buffer, MessageInfo};
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::hosted::{self, Machine};
use sandglass_kernel::arch::{Context, MessageRegister, Register};
use sandglass_kernel::event::{self, Event, Next, Trap};
use sandglass_kernel::ipc::message;
use sandglass_kernel::mem::{Ref, Span};
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::{CoreId, Kernel};

/// Ticks in a microsecond: a machine of 1 GHz.
pub const US: u64 = 1000;
/// Ticks that an entry to the kernel takes, unless a test says otherwise.
pub const KERNEL_PATH: u64 = 700;

/// A refused invocation: its number and detail words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    pub error: ErrorNumber,
    pub details: Vec<u64>,
}

/// The kernel, the root task as the thread that runs first, and who ran when.
pub struct World {
    pub k: Box<Kernel>,
    slots: Span,
    /// First empty slot of the root CNode.
    next_slot: u64,
    /// A large piece of untyped memory.
    pub untyped: u64,
    /// Time in ticks that each scheduling context (by address; 0 for idleness) has run, as
    /// intervals.
    pub ran: Vec<(u64, u64, u64)>,
    /// Ticks that an entry to the kernel takes.
    pub path: u64,
}

/// A root task that does nothing: its registers are set by the tests.
fn root_task() -> Vec<u8> {
    const ENTRY: u64 = 0x40_0000;
    let mut file = vec![0; 0x2000];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    put(16, &2u16.to_le_bytes());
    put(18, &62u16.to_le_bytes());
    put(20, &1u32.to_le_bytes());
    put(24, &ENTRY.to_le_bytes());
    put(32, &64u64.to_le_bytes());
    put(52, &64u16.to_le_bytes());
    put(54, &56u16.to_le_bytes());
    put(56, &1u16.to_le_bytes());
    put(64, &1u32.to_le_bytes());
    put(68, &7u32.to_le_bytes());
    put(72, &0x1000u64.to_le_bytes());
    put(80, &ENTRY.to_le_bytes());
    put(96, &0x1000u64.to_le_bytes());
    put(104, &0x1000u64.to_le_bytes());
    file
}

/// What a thread is made with.
#[derive(Clone, Copy)]
pub struct Thread {
    /// Slots of its capabilities in the root CNode.
    pub tcb: u64,
    pub context: u64,
    pub handle: Ref<Tcb>,
}

impl World {
    pub fn new() -> Self {
        Self::with_memory(64 << 20)
    }

    /// A world on a machine with `bytes` of memory.
    pub fn with_memory(bytes: usize) -> Self {
        let machine = Machine::new(bytes, US);
        let (k, next) = hosted::boot(machine, &root_task()).unwrap_or_else(|_| panic!("refused"));
        let Next::Thread(root) = next else {
            panic!("the root task does not run")
        };
        let slots = sandglass_kernel::cap::lookup::cspace(&k, root)
            .cnode()
            .expect("the root CNode")
            .slots()
            .expect("its slots");
        let mut world = World {
            k,
            slots,
            next_slot: 0,
            untyped: 0,
            ran: Vec::new(),
            path: KERNEL_PATH,
        };
        let used = (0..slots.length()).rev().find(|&i| !world.cap(i).is_null());
        world.next_slot = used.expect("initial capabilities") + 1;
        let size = |i: &u64| {
            world
                .cap(*i)
                .untyped()
                .filter(|u| !u.is_device())
                .map(|u| u.bits())
        };
        world.untyped = (0..world.next_slot)
            .max_by_key(size)
            .expect("untyped memory");
        world
    }

    /// The capability in `slot` of the root CNode.
    pub fn cap(&self, slot: u64) -> sandglass_kernel::cap::Capability {
        self.slots
            .slot(slot)
            .expect("a slot of the root CNode")
            .at(&self.k)
            .cap()
    }

    /// A slot of the root CNode that is used for nothing yet.
    pub fn fresh_slot(&mut self) -> u64 {
        self.next_slot += 1;
        self.next_slot - 1
    }

    /// Whoever runs.
    pub fn running(&self) -> Option<Ref<Tcb>> {
        self.k.core().thread()
    }

    /// The registers of whoever runs.
    pub fn registers(&self) -> &Context {
        self.running().expect("a thread runs").at(&self.k).context()
    }

    pub fn now(&self) -> u64 {
        self.k.machine.clock()
    }

    /// What happens from now on happens on `core`, after everything that has happened.
    pub fn go_to(&mut self, core: CoreId) {
        let clocks = CoreId::all().map(|core| self.k.machine.clock_of(core));
        let now = clocks.max().expect("a core");
        self.k.machine.set_clock_of(core, now);
        self.k.execute_on(core);
    }

    /// The interrupts that cores have raised at others are taken there, as long as there are any;
    /// then this goes on at the core at which it was.
    pub fn take_looks(&mut self) {
        let here = self.k.core_id();
        while let Some(core) = CoreId::all().find(|&core| self.k.machine.take_interrupted(core)) {
            self.go_to(core);
            self.event(Event::Trap(Trap::Look));
        }
        self.go_to(here);
    }

    /// Enters the kernel.
    pub fn event(&mut self, event: Event) {
        let _ = event::handle(&mut self.k, event);
        self.k.machine.advance(self.path);
    }

    /// Lets `ticks` pass in user code; the timer fires when its time has come. Records who ran.
    pub fn pass(&mut self, ticks: u64) {
        let end = self.now() + ticks;
        while self.now() < end {
            let deadline = self.k.machine.deadline().max(self.now());
            let until = deadline.min(end);
            let context = self.k.core().context().map_or(0, |c| c.address().get());
            self.ran.push((self.now(), until, context));
            self.k.machine.advance(until - self.now());
            if until == deadline {
                self.event(Event::Trap(Trap::Timer));
            }
        }
    }

    /// A system call of whoever runs. Message words beyond the fourth go into its buffer.
    pub fn syscall(
        &mut self,
        call: Syscall,
        cap: u64,
        reply: u64,
        info: MessageInfo,
        words: &[u64],
    ) {
        let thread = self.running().expect("a thread runs");
        let context = thread.at(&self.k).context();
        context.set(&*self.k, Register::Rdx, call.raw());
        context.set(&*self.k, Register::Rdi, cap);
        context.set(&*self.k, Register::Rsi, info.raw());
        context.set(&*self.k, Register::R12, reply);
        for (i, &word) in words.iter().enumerate() {
            match MessageRegister::new(i) {
                Some(register) => context.set_message(&*self.k, register, word),
                None => {
                    let buffer = message::buffer(&self.k, thread, true).expect("a buffer");
                    buffer.write(&*self.k, ipc_buffer::MESSAGE + i, word);
                }
            }
        }
        let ip = context.get(Register::NextIp);
        context.set(&*self.k, Register::FaultIp, ip);
        context.set(&*self.k, Register::NextIp, ip + 2);
        self.event(Event::Syscall);
    }

    pub fn set_extra_caps(&mut self, caps: &[u64]) {
        let thread = self.running().expect("a thread runs");
        if caps.is_empty() {
            return;
        }
        let buffer = message::buffer(&self.k, thread, true).expect("a buffer");
        for (i, &cptr) in caps.iter().enumerate() {
            buffer.write(&*self.k, ipc_buffer::CAPS_OR_BADGES + i, cptr);
        }
    }

    /// An invocation by whoever runs, which must go on running: the result words.
    pub fn invoke(
        &mut self,
        cap: u64,
        label: u64,
        words: &[u64],
        caps: &[u64],
    ) -> Result<Vec<u64>, Refused> {
        let caller = self.running().expect("a thread runs");
        self.set_extra_caps(caps);
        let info = MessageInfo::new(label, 0, caps.len(), words.len());
        self.syscall(Syscall::Call, cap, 0, info, words);
        // A preempted call is executed again.
        while self.running() == Some(caller)
            && caller.at(&self.k).context().get(Register::NextIp)
                == caller.at(&self.k).context().fault_ip()
        {
            let ip = caller.at(&self.k).context().fault_ip();
            caller
                .at(&self.k)
                .context()
                .set(&*self.k, Register::NextIp, ip + 2);
            self.event(Event::Syscall);
        }
        self.result(caller)
    }

    /// What the last call told `caller`.
    pub fn result(&self, caller: Ref<Tcb>) -> Result<Vec<u64>, Refused> {
        let info = MessageInfo::from_raw(caller.at(&self.k).context().info());
        let words = self.message_of(caller);
        match ErrorNumber::from_raw(info.label()).expect("an error number") {
            ErrorNumber::NoError => Ok(words),
            error => Err(Refused {
                error,
                details: words,
            }),
        }
    }

    /// The message words that `thread` has received.
    pub fn message_of(&self, thread: Ref<Tcb>) -> Vec<u64> {
        let context = thread.at(&self.k).context();
        let length = MessageInfo::from_raw(context.info()).length();
        let buffer = message::buffer(&self.k, thread, false);
        let word = |i| match MessageRegister::new(i) {
            Some(register) => context.message(register),
            None => buffer
                .expect("a buffer")
                .read(&self.k, ipc_buffer::MESSAGE + i),
        };
        (0..length).map(word).collect()
    }

    /// Retypes one object of `object` into a fresh slot; returns the slot.
    pub fn make(&mut self, object: u64, size: u64) -> u64 {
        let slot = self.fresh_slot();
        let untyped = self.untyped;
        self.retype(untyped, object, size, slot, 1)
            .expect("memory for an object");
        slot
    }

    /// Fills fresh slots, one behind the other, with `count` endpoints in the untyped memory in
    /// `memory`; returns the first.
    pub fn make_endpoints(&mut self, memory: u64, count: u64) -> u64 {
        let first = self.next_slot;
        self.next_slot += count;
        self.retype(memory, types::ENDPOINT, 0, first, count)
            .expect("memory for endpoints");
        first
    }

    pub fn retype(
        &mut self,
        untyped: u64,
        object: u64,
        size: u64,
        slot: u64,
        count: u64,
    ) -> Result<Vec<u64>, Refused> {
        let words = [object, size, 0, 0, slot, count];
        self.invoke(untyped, label::UNTYPED_RETYPE, &words, &[slot::CNODE])
    }

    /// Copies the capability in `source` to a fresh slot, with `rights`.
    pub fn copy(&mut self, source: u64, rights: u64) -> Result<u64, Refused> {
        let slot = self.fresh_slot();
        let words = [slot, 64, source, 64, rights];
        self.invoke(slot::CNODE, label::CNODE_COPY, &words, &[slot::CNODE])?;
        Ok(slot)
    }

    /// A copy with a badge or guard.
    pub fn mint(&mut self, source: u64, rights: u64, data: u64) -> Result<u64, Refused> {
        let slot = self.fresh_slot();
        let words = [slot, 64, source, 64, rights, data];
        self.invoke(slot::CNODE, label::CNODE_MINT, &words, &[slot::CNODE])?;
        Ok(slot)
    }

    /// A copy of an endpoint capability that can be called only.
    pub fn mint_call(&mut self, source: u64, rights: u64, badge: u64) -> Result<u64, Refused> {
        let slot = self.fresh_slot();
        let words = [slot, 64, source, 64, rights, badge];
        let label = label::extension::CNODE_MINT_CALL;
        self.invoke(slot::CNODE, label, &words, &[slot::CNODE])?;
        Ok(slot)
    }

    pub fn delete(&mut self, slot: u64) -> Result<Vec<u64>, Refused> {
        self.invoke(slot::CNODE, label::CNODE_DELETE, &[slot, 64], &[])
    }

    pub fn revoke(&mut self, slot: u64) -> Result<Vec<u64>, Refused> {
        self.invoke(slot::CNODE, label::CNODE_REVOKE, &[slot, 64], &[])
    }

    /// Gives a scheduling context `budget` and `period` in microseconds on `core`.
    pub fn configure_on(&mut self, core: CoreId, context: u64, budget: u64, period: u64) {
        let words = [budget, period, 0, context, 0];
        let control = slot::FIRST_DYNAMIC + core.index() as u64;
        self.invoke(
            control,
            label::SCHED_CONTROL_CONFIGURE_FLAGS,
            &words,
            &[context],
        )
        .expect("a configuration");
    }

    /// Gives a scheduling context `budget` and `period` in microseconds.
    pub fn configure(&mut self, context: u64, budget: u64, period: u64, extra: u64, flags: u64) {
        let words = [budget, period, extra, context, flags];
        self.invoke(
            slot::FIRST_DYNAMIC,
            label::SCHED_CONTROL_CONFIGURE_FLAGS,
            &words,
            &[context],
        )
        .expect("a configuration");
    }

    /// A thread of `priority` in the root task's spaces with a scheduling context of 2^`bits`
    /// bytes that is not configured, not bound; the thread is inactive.
    pub fn make_thread(&mut self, priority: u64, bits: u64) -> Thread {
        let tcb = self.make(types::TCB, 0);
        let context = self.make(types::SCHED_CONTEXT, bits);
        let frame = self.make(types::x86_64::PAGE, 0);
        let words = [0, 0, 0x7000_0000];
        let caps = [slot::CNODE, slot::VSPACE, frame];
        self.invoke(tcb, label::TCB_CONFIGURE, &words, &caps)
            .expect("the spaces");
        self.invoke(tcb, label::TCB_SET_PRIORITY, &[priority], &[slot::TCB])
            .expect("a priority");
        let handle = self.cap(tcb).word().get().expect("a thread");
        Thread {
            tcb,
            context,
            handle,
        }
    }

    /// A thread of `priority` with a budget of `budget` in every `period` microseconds, started.
    pub fn start_thread(&mut self, priority: u64, budget: u64, period: u64) -> Thread {
        let thread = self.make_thread(priority, 8);
        self.configure(thread.context, budget, period, 0, 0);
        self.bind(thread);
        self.resume(thread);
        thread
    }

    pub fn bind(&mut self, thread: Thread) {
        self.invoke(
            thread.context,
            label::SCHED_CONTEXT_BIND,
            &[],
            &[thread.tcb],
        )
        .expect("bound");
    }

    pub fn resume(&mut self, thread: Thread) {
        self.invoke(thread.tcb, label::TCB_RESUME, &[], &[])
            .expect("resumed");
    }

    /// The running thread waits for ever on a new notification; returns it.
    pub fn sleep(&mut self) -> u64 {
        let notification = self.make(types::NOTIFICATION, 0);
        self.wait(notification);
        notification
    }

    pub fn wait(&mut self, cap: u64) {
        self.syscall(Syscall::Wait, cap, 0, MessageInfo::default(), &[]);
    }

    pub fn recv(&mut self, endpoint: u64, reply: u64) {
        self.syscall(Syscall::Recv, endpoint, reply, MessageInfo::default(), &[]);
    }

    pub fn call(&mut self, endpoint: u64, words: &[u64]) {
        let info = MessageInfo::new(0, 0, 0, words.len());
        self.syscall(Syscall::Call, endpoint, 0, info, words);
    }

    pub fn reply_recv(&mut self, endpoint: u64, reply: u64, words: &[u64]) {
        let info = MessageInfo::new(0, 0, 0, words.len());
        self.syscall(Syscall::ReplyRecv, endpoint, reply, info, words);
    }

    /// The scheduling context in `slot`.
    pub fn context(&self, slot: u64) -> Ref<SchedContext> {
        self.cap(slot).word().get().expect("a scheduling context")
    }

    /// Ticks that each context ran in the window `from..to`.
    pub fn usage(&self, from: u64, to: u64) -> BTreeMap<u64, u64> {
        let mut usage = BTreeMap::new();
        for &(start, end, context) in &self.ran {
            let inside = end.min(to).saturating_sub(start.max(from));
            *usage.entry(context).or_default() += inside;
        }
        usage
    }

    /// Wakes whoever waits for `notification` from outside: an interrupt would do the same.
    pub fn wake(&mut self, notification: u64) {
        let cap = self
            .cap(notification)
            .notification()
            .expect("a notification");
        sandglass_kernel::ipc::notification::signal(&self.k, cap.object, 1);
        self.k.core().request_reprogram(&self.k);
        self.event(Event::Trap(Trap::Timer));
    }

    /// An invocation by whoever runs, executed once: it may be preempted.
    pub fn call_once(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) {
        self.set_extra_caps(caps);
        let info = MessageInfo::new(label, 0, caps.len(), words.len());
        self.syscall(Syscall::Call, cap, 0, info, words);
    }

    /// Twenty threads of priority 50 that are queued at `endpoint` as callers: more than a long
    /// operation lets go between two looks for an interrupt.
    pub fn queue_senders(&mut self, endpoint: u64) {
        for _ in 0..20 {
            self.start_thread(50, 1_000, 10_000);
        }
        let sleep = self.sleep();
        while self.running().is_some() {
            self.call(endpoint, &[]);
        }
        self.wake(sleep);
    }

    /// An invocation after which somebody else may run.
    pub fn invoke_blocking(&mut self, cap: u64, label: u64) {
        self.syscall(Syscall::Call, cap, 0, MessageInfo::new(label, 0, 0, 0), &[]);
    }

    /// `thread`, which runs, waits for ever: it suspends itself.
    pub fn sleep_of(&mut self, thread: Thread) {
        assert_eq!(self.running(), Some(thread.handle));
        self.invoke_blocking(thread.tcb, label::TCB_SUSPEND);
    }
}
