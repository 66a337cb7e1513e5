//! A kernel and its specification in lock step.
//!
//! [`Pair::perform`] lets one action happen to both. After every event the invariants of the kernel
//! are swept, and its whole state is compared with the specification's.
//!
//! A preempted operation is one event to the specification. The thread that was preempted repeats
//! its system call until it is done, and then the states are compared. Where that is not possible,
//! because the operation took away what its own caller runs on, the pair goes on without the
//! specification, with invariants only ([`Pair::follows`]).

mod cores;

use std::{fmt, iter};

use sandglass_abi::context::x86_64 as abi;
use sandglass_abi::invocation::{SCHED_CONTROL_CONFIGURE_FLAGS, TCB_COPY_REGISTERS};
use sandglass_abi::message::{ipc_buffer, MessageInfo, REGISTER_MRS};
use sandglass_kernel::arch::{MessageRegister, Register};
use sandglass_kernel::event::{self, Trap};
use sandglass_kernel::ipc::message as kernel_message;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::{Kernel, CORES};
use sandglass_model::cap::lookup;
use sandglass_model::event::Event;
use sandglass_model::ipc::message;
use sandglass_model::state::{SlotId, State, ThreadId};
use sandglass_oracle::Finding;

use crate::abstraction::{self, NotAbstract};
use crate::boot;
use crate::census::{Anchor, Census};
use crate::difference;
use crate::invariants::budgets::Budgets;
use crate::invariants::{self, Violation};
use crate::reach;
use crate::script::{Action, Call};
use crate::witness::Witness;
pub use cores::Traffic;
use cores::{moves, named, Late};

/// Ticks that an entry to the kernel takes.
const KERNEL_PATH: u64 = 700;
/// Most times that the timer fires in one action: enough for what can be of interest.
const MOST_TIMERS: usize = 24;
/// Most times that a preempted system call is repeated.
const MOST_REPETITIONS: usize = 1 << 16;

/// What is wrong after an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    Invariant(Violation),
    /// The kernel and the specification went different ways.
    Difference(String),
    /// Somebody executed for too long, or was charged or kept from it wrongly.
    Time(Finding),
    /// One of them panicked.
    Panic(String),
}

impl Failure {
    /// What stays the same when a script that fails this way is made smaller.
    pub fn kind(&self) -> &str {
        match self {
            Failure::Invariant(violation) => violation.invariant,
            Failure::Difference(_) => "difference",
            Failure::Time(finding) => finding.kind(),
            Failure::Panic(_) => "panic",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Invariant(violation) => violation.fmt(f),
            Failure::Difference(what) => write!(f, "the kernel differs:\n{what}"),
            Failure::Time(finding) => write!(f, "the oracle for time: {finding}"),
            Failure::Panic(what) => write!(f, "a panic: {what}"),
        }
    }
}

impl From<Finding> for Failure {
    fn from(finding: Finding) -> Failure {
        Failure::Time(finding)
    }
}

/// What is checked after every event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Checks {
    /// Invariants, the specification, and the oracle for time.
    All,
    /// Invariants and the oracle; preempted operations are left as they are, and others run in between.
    Invariants,
    /// The oracle for time only; preempted operations as with invariants.
    Time,
    /// Nothing: to get somewhere that was checked before.
    None,
}

/// A kernel, and the state that it is to have.
pub struct Pair {
    pub k: Box<Kernel>,
    pub anchor: Anchor,
    model: Option<State>,
    checks: Checks,
    budgets: Budgets,
    witness: Option<Witness>,
    /// How often each core had been stalled when it last entered the kernel.
    stalls: [u64; CORES],
    traffic: Traffic,
    /// The system call with which each core waits for its turn.
    late: [Option<Late>; CORES],
    /// Whether the event being handled may configure a context.
    configures: bool,
    events: u64,
}

impl Pair {
    /// A pair that has just booted. The specification starts from the abstraction of the kernel's
    /// state: boot is not specified by it.
    pub fn boot(checks: Checks) -> Pair {
        let k = boot::boot();
        let anchor = Anchor::of(&k);
        let mut pair = Pair {
            k,
            anchor,
            model: None,
            checks: Checks::None,
            budgets: Budgets::default(),
            witness: None,
            stalls: [0; CORES],
            traffic: Traffic::default(),
            late: [None; CORES],
            configures: true,
            events: 0,
        };
        pair.set_checks(checks);
        pair
    }

    /// Checks `checks` from now on: with [`Checks::All`], the specification starts from where the
    /// kernel is.
    ///
    /// # Panics
    /// If a long operation is half done.
    pub fn set_checks(&mut self, checks: Checks) {
        self.checks = checks;
        self.model = (checks == Checks::All).then(|| {
            let mut state = self.state().expect("a settled state");
            difference::normalise(&mut state);
            state
        });
        self.configures = true;
        self.witness = (checks != Checks::None).then(|| {
            let census = Census::of(&self.k, self.anchor);
            Witness::new(&self.k, contexts(&census), census.threads.iter().copied())
        });
    }

    /// Whether the kernel is still compared with the specification.
    pub fn follows(&self) -> bool {
        self.model.is_some()
    }

    /// Number of events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The kernel's state in the words of the specification.
    ///
    /// # Errors
    /// A long operation is half done.
    pub fn state(&self) -> Result<State, NotAbstract> {
        abstraction::of(&self.k, self.anchor)
    }

    /// The specification's state, while it is compared.
    pub fn specified(&self) -> Option<&State> {
        self.model.as_ref()
    }

    /// Lets `action` happen.
    ///
    /// # Errors
    /// The first event after which something is wrong.
    pub fn perform(&mut self, action: &Action) -> Result<(), Failure> {
        if let Action::On(core) = action {
            self.go_to(named(*core));
            return Ok(());
        }
        if let Action::Delays(delays) = action {
            self.k.machine.set_delays(delays.clone());
            return Ok(());
        }
        self.arrive()?;
        self.fire()?;
        if self.k.core().thread().is_none() && action.needs_thread() && !self.was_stalled() {
            return Ok(());
        }
        match action {
            Action::On(_) | Action::Delays(_) => Ok(()),
            Action::Look => {
                let asked = self.k.machine.take_interrupted(self.k.core_id());
                self.traffic.looks += u64::from(asked);
                self.enter(0);
                self.trap(Trap::Look, Event::Look)
            }
            Action::Pass(ticks) => self.pass(*ticks),
            Action::Call(call) => self.call(call, None),
            Action::Preempted(looks, call) => self.call(call, Some(*looks)),
            Action::Late(call) => {
                self.late[self.k.core_id().index()] = self.issue(call);
                if let Some(witness) = &mut self.witness {
                    witness.waits(&self.k, self.k.core_id());
                }
                Ok(())
            }
            Action::ReceiveSlot(cnode, index, depth) => {
                self.store(ipc_buffer::RECEIVE_CNODE, *cnode);
                self.store(ipc_buffer::RECEIVE_INDEX, *index);
                self.store(ipc_buffer::RECEIVE_DEPTH, *depth);
                Ok(())
            }
            Action::SoftwareInterrupt(vector) => {
                self.enter(abi::SYSCALL_INSTRUCTION_BYTES);
                let vector = *vector;
                self.trap(
                    Trap::SoftwareInterrupt { vector },
                    Event::SoftwareInterrupt { vector },
                )
            }
            Action::Exception(number, code) => {
                self.enter(0);
                let (number, code) = (*number, *code);
                self.trap(
                    Trap::Exception { number, code },
                    Event::Exception { number, code },
                )
            }
            Action::PageFault(address, code) => {
                self.enter(0);
                let (address, code) = (*address, *code);
                self.trap(
                    Trap::PageFault { address, code },
                    Event::PageFault { address, code },
                )
            }
            Action::Interrupt(irq) => {
                self.enter(0);
                let irq = *irq;
                self.trap(Trap::Interrupt { irq }, Event::Interrupt { irq })
            }
        }
    }

    fn now(&self) -> u64 {
        self.k.machine.clock()
    }

    /// The timer fires if its time has come, and again if it is programmed for a time that is past.
    fn fire(&mut self) -> Result<(), Failure> {
        for _ in 0..MOST_TIMERS {
            if self.k.core().armed() > self.now() {
                break;
            }
            self.enter(0);
            self.trap(Trap::Timer, Event::Timer)?;
        }
        Ok(())
    }

    /// Lets `ticks` pass on all cores, and their timers fire.
    fn pass(&mut self, ticks: u64) -> Result<(), Failure> {
        let here = self.k.core_id();
        let end = self.now().saturating_add(ticks);
        for _ in 0..MOST_TIMERS {
            let (core, next) = self.next_timer(here);
            let until = next.min(end);
            self.k.machine.advance(until.saturating_sub(self.now()));
            if self.now() >= end {
                break;
            }
            if core != self.k.core_id() {
                self.go_to(core);
                // The timer fires behind that, if it still is to.
                self.arrive()?;
            }
            if self.k.core().armed() <= self.now() {
                self.enter(0);
                self.trap(Trap::Timer, Event::Timer)?;
            }
        }
        if here != self.k.core_id() {
            self.go_to(here);
        }
        Ok(())
    }

    /// The machine enters the kernel from the current thread, which continues `length` bytes behind
    /// the instruction that it was at.
    fn enter(&mut self, length: u64) {
        let Some(thread) = self.k.core().thread() else {
            return;
        };
        let context = thread.at(&self.k).context();
        let at = context.get(Register::NextIp);
        let next = at.wrapping_add(length);
        context.set(Register::FaultIp, at);
        context.set(Register::NextIp, next);
        if let Some(state) = self.user_of_model() {
            state.user[abi::RIP] = at;
            state.next_ip = next;
        }
    }

    fn user_of_model(&mut self) -> Option<&mut sandglass_model::state::Registers> {
        let model = self.model.as_mut()?;
        let thread = model.core().thread?;
        Some(&mut model.threads.get_mut(&thread)?.registers)
    }

    /// The current thread writes a register.
    fn set(&mut self, register: Register, index: usize, value: u64) {
        let Some(thread) = self.k.core().thread() else {
            return;
        };
        thread.at(&self.k).context().set(register, value);
        if let Some(registers) = self.user_of_model() {
            registers.user[index] = value;
        }
    }

    /// The current thread writes a word of its IPC buffer.
    fn store(&mut self, word: usize, value: u64) {
        let Some(thread) = self.k.core().thread() else {
            return;
        };
        if let Some(buffer) = kernel_message::buffer(&self.k, thread, false) {
            buffer.write(&self.k, word, value);
        }
        if let Some(model) = &mut self.model {
            let thread = ThreadId(thread.address().get());
            if let Some(buffer) = message::buffer(model, thread, message::Access::Read) {
                message::store(model, buffer, word, value);
            }
        }
    }

    fn call(&mut self, call: &Call, looks: Option<u64>) -> Result<(), Failure> {
        let Some(Late { caller, label }) = self.issue(call) else {
            self.handle(event::Event::Syscall, KERNEL_PATH)?;
            return self.specify(Event::Syscall, None, None);
        };
        self.configures = label == SCHED_CONTROL_CONFIGURE_FLAGS;
        let begins = self.has_budget();
        self.k.machine.set_interrupt_after(looks);
        // What may be repeated is one event, with one path.
        let path = if looks.is_none() { KERNEL_PATH } else { 0 };
        let handled = self.handle(event::Event::Syscall, path);
        self.k.machine.set_interrupt_after(None);
        handled?;
        // Who copies registers to itself goes on where they say, maybe at the call: it is done.
        let lasts = looks.is_some() && label != TCB_COPY_REGISTERS;
        let compares = matches!(self.checks, Checks::All | Checks::None);
        let repeated = begins && lasts && compares && self.repeat(caller)?;
        self.specify(Event::Syscall, Some(caller), repeated.then_some(call))
    }

    /// The current thread, if there is one, executes the system-call instruction for `call`.
    fn issue(&mut self, call: &Call) -> Option<Late> {
        let caller = self.k.core().thread()?;
        self.set(Register::Rdx, abi::RDX, call.number as u64);
        self.set(Register::Rdi, abi::RDI, call.cap);
        self.set(Register::Rsi, abi::RSI, call.info);
        self.set(Register::R12, abi::R12, call.reply);
        self.set(Register::R13, abi::R13, call.destination);
        for (i, &word) in call.words.iter().enumerate() {
            match MessageRegister::new(i) {
                Some(_) => {
                    let (register, index) = MESSAGE[i];
                    self.set(register, index, word);
                }
                None => self.store(ipc_buffer::MESSAGE + i, word),
            }
        }
        for (i, &cptr) in call.caps.iter().enumerate() {
            self.store(ipc_buffer::CAPS_OR_BADGES + i, cptr);
        }
        self.enter(abi::SYSCALL_INSTRUCTION_BYTES);
        Some(Late {
            caller,
            label: MessageInfo::from_raw(call.info).label(),
        })
    }

    /// Whether the current context can pay for a system call now, so that it is begun at all.
    fn has_budget(&self) -> bool {
        let least = self.k.constants.min_budget();
        self.now().saturating_add(least) <= self.k.core().budget_end()
    }

    /// `caller` repeats its system call until it is done, or somebody else runs. Returns whether it
    /// had to.
    fn repeat(&mut self, caller: Ref<Tcb>) -> Result<bool, Failure> {
        for repetitions in 0..MOST_REPETITIONS {
            let context = caller.at(&self.k).context();
            let at = context.get(Register::FaultIp);
            if self.k.core().thread() != Some(caller) || context.get(Register::NextIp) != at {
                return Ok(repetitions > 0);
            }
            context.set(
                Register::NextIp,
                at.wrapping_add(abi::SYSCALL_INSTRUCTION_BYTES),
            );
            self.handle(event::Event::Syscall, 0)?;
        }
        Ok(true)
    }

    /// The kernel handles `event`, and whom it wants to runs, after `path` more ticks.
    fn handle(&mut self, event: event::Event, path: u64) -> Result<(), Failure> {
        let is_call = event == event::Event::Syscall;
        if let Some(witness) = &mut self.witness {
            witness.enters(&self.k, is_call)?;
        }
        let next = event::handle(&mut self.k, event);
        if let Some(witness) = &mut self.witness {
            witness.leaves(&self.k, next, self.k.machine.clock() + path)?;
        }
        Ok(())
    }

    fn trap(&mut self, trap: Trap, event: Event) -> Result<(), Failure> {
        self.configures = false;
        self.handle(event::Event::Trap(trap), KERNEL_PATH)?;
        self.specify(event, None, None)
    }

    /// The kernel has handled `event`, a system call of `caller` that was `repeated` or another: the
    /// specification does, and they are compared.
    fn specify(
        &mut self,
        event: Event,
        caller: Option<Ref<Tcb>>,
        repeated: Option<&Call>,
    ) -> Result<(), Failure> {
        self.events += 1;
        let core = self.k.core_id();
        self.stalls[core.index()] = self.k.machine.stalls_of(core);
        let checked = self.check(event, caller, repeated);
        self.k.machine.advance(KERNEL_PATH);
        checked
    }

    fn check(
        &mut self,
        event: Event,
        caller: Option<Ref<Tcb>>,
        repeated: Option<&Call>,
    ) -> Result<(), Failure> {
        let now = self.now();
        if self.checks == Checks::None {
            return Ok(());
        }
        let census = Census::of(&self.k, self.anchor);
        if let Some(witness) = &mut self.witness {
            let threads = census.threads.iter().copied();
            witness.surveys(&self.k, contexts(&census), threads)?;
        }
        if self.checks == Checks::Time {
            return Ok(());
        }
        invariants::sweep_census(&census).map_err(Failure::Invariant)?;
        self.budgets
            .follow(&census, std::mem::take(&mut self.configures))
            .map_err(|what| {
                Failure::Invariant(Violation {
                    invariant: "budgets_are_kept",
                    what,
                })
            })?;
        let Some(model) = &mut self.model else {
            return Ok(());
        };
        if caller.is_some_and(|caller| stopped_midway(&census, caller)) {
            self.model = None;
            return Ok(());
        }
        let Ok(mut kernel) = abstraction::of_census(&census) else {
            self.model = None;
            return Ok(());
        };
        drop(census);
        let names = |model: &State| {
            let caller = ThreadId(caller?.address().get());
            Some(what_it_names(model, caller, repeated?))
        };
        let before = names(model);
        let core = abstraction::core_id(self.k.core_id());
        let homes: Vec<_> = model.threads.values().map(|thread| thread.core).collect();
        sandglass_model::event::handle(model, core, event, now);
        self.traffic.moves += moves(&homes, model);
        if names(model) != before {
            // The operation took away what its repetition would have named (01, section 8).
            self.model = None;
            return Ok(());
        }
        difference::normalise(&mut kernel);
        difference::normalise(model);
        let windows = abstraction::windows(&kernel);
        if difference::agree(&kernel, model, &windows) {
            return Ok(());
        }
        // The specification may know what nobody can reach.
        let reached = reach::reachable(model, self.anchor);
        if difference::agree(&kernel, &reached, &windows) {
            return Ok(());
        }
        Err(Failure::Difference(difference::describe(
            &kernel, model, &windows,
        )))
    }
}

fn contexts<'a>(census: &'a Census) -> impl Iterator<Item = Ref<SchedContext>> + Clone + 'a {
    census.contexts.iter().map(|&(context, _)| context)
}

/// What the addresses in `call`, made by `caller`, lead to: for each a slot, and whether it holds
/// anything.
fn what_it_names(s: &State, caller: ThreadId, call: &Call) -> Vec<Option<(SlotId, bool)>> {
    if !s.threads.contains_key(&caller) {
        return Vec::new();
    }
    let holds = |slot| (slot, s.caps.slots.contains_key(&slot));
    let of_syscall = |&cptr: &u64| lookup::of_syscall(s, caller, cptr).ok();
    let slots: Vec<_> = iter::once(&call.cap)
        .chain(&call.caps)
        .map(of_syscall)
        .collect();
    // The slot that a CNode operation is about may be emptied by it.
    let root = slots[0].and_then(|slot| s.caps.slots.get(&slot));
    let target = match (root, &call.words[..]) {
        (Some(root), &[index, depth, ..]) => {
            lookup::of_operation(s, Some(root.cap), index, depth, false).ok()
        }
        _ => None,
    };
    let named = slots.into_iter().map(|slot| slot.map(holds));
    named.chain([target.map(|slot| (slot, true))]).collect()
}

/// Whether the system call of `caller` was stopped because it had taken away what the caller runs
/// on: the thread is to repeat it, but cannot.
fn stopped_midway(census: &Census, caller: Ref<Tcb>) -> bool {
    use sandglass_kernel::object::tcb::State as Kernel;
    let k = census.k;
    if !census.has(sandglass_kernel::mem::Kind::Tcb, caller.address().get()) {
        return false;
    }
    let tcb = caller.at(k);
    let context = tcb.sched_context();
    let can_run = context.is_some_and(|context| context.at(k).is_active());
    tcb.state() == Kernel::Restart && !can_run
}

/// The message registers, with their indices in the user context.
const MESSAGE: [(Register, usize); REGISTER_MRS] = [
    (Register::R10, abi::R10),
    (Register::R8, abi::R8),
    (Register::R9, abi::R9),
    (Register::R15, abi::R15),
];
