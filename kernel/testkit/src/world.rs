//! A hosted kernel with its root task, and what a user can do: set registers, enter the kernel,
//! let time pass.

use std::collections::BTreeMap;

use sandglass_abi::boot::slot;
use sandglass_abi::invocation as label;
use sandglass_abi::message::{ipc_buffer, MessageInfo};
use sandglass_abi::object as types;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::hosted::Machine;
use sandglass_kernel::arch::Context;
use sandglass_kernel::cap::Capability;
use sandglass_kernel::event::{self, Event, Next, Trap};
use sandglass_kernel::ipc::{message, notification};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::time::account;
use sandglass_kernel::time::turn::Turn;
use sandglass_kernel::{CoreId, Kernel};

pub use crate::boot::US;
use crate::boot::{boot, RootCNode};
pub use crate::call::Refused;
use crate::call::{self, Call};
use crate::isa;

/// Ticks that an entry to the kernel takes, unless a test says otherwise.
pub const KERNEL_PATH: u64 = 700;

/// The kernel, the root task as the thread that runs first, and who ran when.
pub struct World {
    pub k: Box<Kernel>,
    slots: RootCNode,
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

/// The kernel handles `event`. Whom it returns is who runs on this core, and the debug kernel has found nothing
/// wrong with what the event touched.
pub fn enter(k: &mut Kernel, event: Event) -> Next {
    let next = event::handle(k, event);
    let running = match next {
        Next::Thread(thread) => Some(thread),
        Next::Idle => None,
    };
    assert_eq!(k.core().thread(), running, "who runs after {event:?}");
    assert!(
        matches!(k.machine.halted(), None | Some(0)),
        "the kernel found itself wrong: {}",
        String::from_utf8_lossy(&k.machine.take_console())
    );
    next
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
    /// A world with room for everything.
    #[expect(
        clippy::new_without_default,
        reason = "a kernel that has booted is no default"
    )]
    pub fn new() -> Self {
        Self::with_memory(64 << 20)
    }

    /// A world on a machine with `bytes` of memory.
    pub fn with_memory(bytes: usize) -> Self {
        Self::on(Machine::new(bytes, isa::TICKS_PER_UNIT))
    }

    /// A world on `machine`.
    ///
    /// # Panics
    /// If the kernel refuses it.
    pub fn on(machine: Machine) -> Self {
        let (k, root) = boot(machine);
        let slots = RootCNode::of(&k, root);
        World {
            next_slot: slots.first_free(&k),
            untyped: slots.largest_untyped(&k),
            k,
            slots,
            ran: Vec::new(),
            path: KERNEL_PATH,
        }
    }

    /// The CNode that the root task began with.
    pub fn root_cnode(&self) -> RootCNode {
        self.slots
    }

    /// The capability in `slot` of the root CNode.
    pub fn cap(&self, slot: u64) -> Capability {
        self.slots.cap(&self.k, slot)
    }

    /// The slot of the scheduling control of `core`.
    pub fn sched_control(core: CoreId) -> u64 {
        isa::SCHED_CONTROL + core.index() as u64
    }

    /// Issues the handler of the device interrupt `number`, as [`isa::irq`] numbers them; its slot.
    pub fn issue_irq(&mut self, number: u64) -> Result<u64, Refused> {
        let slot = self.fresh_slot();
        let (label, words) = isa::issue(number, slot);
        self.invoke(slot::IRQ_CONTROL, label, &words, &[slot::CNODE])?;
        Ok(slot)
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
        let _ = enter(&mut self.k, event);
        self.k.machine.advance(self.path);
    }

    /// Enters the kernel in a turn that is under way.
    pub fn trap_in(&mut self, turn: &Turn, trap: Trap) {
        account::update_time(&self.k, self.k.core());
        let _ = event::trap(&mut self.k, turn, trap);
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
        let call = Call {
            number: call.raw() as i64,
            cap,
            reply,
            info: info.raw(),
            words: words.to_vec(),
            ..Call::default()
        };
        self.perform(thread, &call);
    }

    /// `thread`, which runs, makes the system call `call`.
    pub fn perform(&mut self, thread: Ref<Tcb>, call: &Call) {
        let has_room = message::buffer(&self.k, thread, true).is_some();
        assert!(
            has_room || call.buffer().next().is_none(),
            "the thread has a buffer for {call}"
        );
        call.issue(&self.k, thread);
        self.event(Event::Syscall);
    }

    /// Whoever runs names capabilities to go with its next message.
    pub fn set_extra_caps(&mut self, caps: &[u64]) {
        let thread = self.running().expect("a thread runs");
        for (i, &cptr) in caps.iter().enumerate() {
            call::store(&self.k, thread, ipc_buffer::CAPS_OR_BADGES + i, cptr);
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
        self.call_once(cap, label, words, caps);
        // A preempted call is executed again.
        while self.running() == Some(caller) && call::is_preempted(&self.k, caller) {
            call::step(&self.k, caller);
            self.event(Event::Syscall);
        }
        self.result(caller)
    }

    /// What the last call told `caller`.
    pub fn result(&self, caller: Ref<Tcb>) -> Result<Vec<u64>, Refused> {
        call::answer(&self.k, caller)
    }

    /// The message words that `thread` has received.
    pub fn message_of(&self, thread: Ref<Tcb>) -> Vec<u64> {
        call::received(&self.k, thread)
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
        let control = Self::sched_control(core);
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
            Self::sched_control(CoreId::BOOT),
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
        let frame = self.make(isa::types::PAGE, 0);
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
        let turn = Turn::new();
        notification::signal(&self.k, &turn, cap.object, 1);
        self.k.core().request_reprogram(&self.k);
        self.trap_in(&turn, Trap::Timer);
    }

    /// An invocation by whoever runs, executed once: it may be preempted.
    pub fn call_once(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) {
        let caller = self.running().expect("a thread runs");
        self.perform(caller, &Call::new(Syscall::Call, cap, label, words, caps));
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
