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
mod turn;

use std::{fmt, iter};

use sandglass_abi::message::ipc_buffer;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::Trap;
use sandglass_kernel::fast::inspect;
use sandglass_kernel::ipc::message as kernel_message;
use sandglass_kernel::mem::{Kind, Ref};
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::{CoreId, Kernel, CORES};
use sandglass_model::cap::lookup;
use sandglass_model::event::Event;
use sandglass_model::ipc::message;
use sandglass_model::isa as model;
use sandglass_model::state::{SlotId, State, ThreadId};
use sandglass_oracle::Finding;
use sandglass_testkit::isa as kit;

use crate::abstraction::{self, NotAbstract};
use crate::census::{Anchor, Census};
use crate::invariants::budgets::Budgets;
use crate::invariants::{self, Violation};
use crate::script::{Action, Call};
use crate::witness::Witness;
use crate::{boot, difference, isa, reach};
pub use cores::Traffic;
use cores::{moves, named, Late};
use turn::Course;

/// Ticks that an entry to the kernel takes.
const KERNEL_PATH: u64 = 700;
/// Most times that the timer fires in one action: enough for what can be of interest.
const MOST_TIMERS: usize = 24;

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

/// How often each line of the kernel was taken ([`inspect::LINES`]).
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lines([u64; inspect::LINES.len()]);

impl Lines {
    fn add(&mut self, line: Option<inspect::Name>) {
        for (count, which) in self.0.iter_mut().zip(inspect::LINES) {
            *count += u64::from(line == Some(which));
        }
    }

    /// Adds what `other` counted.
    pub fn join(&mut self, other: &Lines) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count += more;
        }
    }

    /// Each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (inspect::Name, u64)> + '_ {
        inspect::LINES.into_iter().zip(self.0)
    }
}

impl fmt::Display for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "straight lines:")?;
        self.iter()
            .try_for_each(|(line, count)| write!(f, " {line:?} {count}"))
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
    /// What was seen of the event that is being handled.
    course: Course,
    /// When each core left the kernel last.
    exits: [u64; CORES],
    /// Whether the specification was lost because an operation is half done: it starts anew where the
    /// kernel is settled. And how often it was.
    lost: bool,
    losses: u64,
    /// How often each core had been stalled when it last entered the kernel.
    stalls: [u64; CORES],
    traffic: Traffic,
    lines: Lines,
    /// Whether no event takes a line.
    in_general: bool,
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
            course: Course::default(),
            exits: [0; CORES],
            lost: false,
            losses: 0,
            stalls: [0; CORES],
            traffic: Traffic::default(),
            lines: Lines::default(),
            in_general: false,
            late: Default::default(),
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

    /// The same, in which every event takes the general path.
    #[must_use]
    pub fn in_general(mut self) -> Pair {
        self.in_general = true;
        self
    }

    /// Which lines events took, and how often.
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// How often a half-done operation had the specification start anew.
    pub fn losses(&self) -> u64 {
        self.losses
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

    /// `state`, an earlier one, with whoever runs now on each core.
    #[must_use]
    pub fn with_who_runs(&self, mut state: State) -> State {
        for core in CoreId::all() {
            let thread = self.k.core_of(core).thread();
            let thread = thread.map(|thread| ThreadId(thread.address().get()));
            let thread = thread.filter(|thread| state.threads.contains_key(thread));
            state.cores[core.index()].thread = thread;
        }
        state
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
                self.late[self.k.core_id().index()] = self.issue(call).map(|caller| Late {
                    caller,
                    call: call.clone(),
                    since: self.now(),
                });
                Ok(())
            }
            Action::ReceiveSlot(cnode, index, depth) => {
                self.store(ipc_buffer::RECEIVE_CNODE, *cnode);
                self.store(ipc_buffer::RECEIVE_INDEX, *index);
                self.store(ipc_buffer::RECEIVE_DEPTH, *depth);
                Ok(())
            }
            Action::SoftwareInterrupt(vector) => {
                self.enter(kit::SYSCALL_INSTRUCTION_BYTES);
                let vector = *vector;
                self.trap(
                    Trap::Exception(isa::software_interrupt(vector)),
                    Event::SoftwareInterrupt { vector },
                )
            }
            Action::Exception(number, code) => {
                self.enter(0);
                let (number, code) = (*number, *code);
                self.trap(
                    Trap::Exception(isa::exception(number, code)),
                    Event::Exception { number, code },
                )
            }
            Action::PageFault(address, code) => {
                self.enter(0);
                let (address, code) = (*address, *code);
                self.trap(
                    Trap::Exception(isa::page_fault(address, code)),
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
        context.set(&*self.k, Register::FaultIp, at);
        context.set(&*self.k, Register::NextIp, next);
        if let Some(state) = self.user_of_model() {
            state.user[model::PC] = at;
            state.next_ip = next;
        }
    }

    fn user_of_model(&mut self) -> Option<&mut sandglass_model::state::Registers> {
        let model = self.model.as_mut()?;
        let thread = model.core().thread?;
        Some(&mut model.threads.get_mut(&thread)?.registers)
    }

    /// The current thread writes a register of a system call.
    fn set(&mut self, register: Register, value: u64) {
        let Some(thread) = self.k.core().thread() else {
            return;
        };
        thread.at(&self.k).context().set(&*self.k, register, value);
        let index = REGISTERS.iter().find(|(it, _)| *it == register);
        let &(_, index) = index.expect("a register of a system call");
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
            buffer.write(&*self.k, word, value);
        }
        if let Some(model) = &mut self.model {
            let thread = ThreadId(thread.address().get());
            if let Some(buffer) = message::buffer(model, thread, message::Access::Read) {
                message::store(model, buffer, word, value);
            }
        }
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
        let course = std::mem::take(&mut self.course);
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
        let was_lost = self.model.is_none();
        let lives = |caller: &Ref<Tcb>| census.has(Kind::Tcb, caller.address().get());
        let caller_lives = caller.filter(lives);
        if was_lost && !self.lost {
            return Ok(());
        }
        let is_half_done =
            course.turn_ended || caller_lives.is_some_and(|caller| stopped_midway(&census, caller));
        let is_unfinished = caller_lives.is_some_and(|caller| self.is_unfinished(caller, &course));
        let kernel = abstraction::of_census(&census).ok();
        let Some(mut kernel) = kernel.filter(|_| !is_half_done) else {
            self.lose();
            return Ok(());
        };
        difference::normalise(&mut kernel);
        let Some(model) = self.model.take() else {
            // What is half done is known by its thread's notes.
            let is_settled = !is_unfinished
                && census
                    .threads
                    .iter()
                    .all(|it| it.at(&self.k).progress().is_none());
            self.model = is_settled.then_some(kernel);
            return Ok(());
        };
        drop(census);
        let step = Step {
            event,
            caller,
            repeated,
            course: &course,
            is_unfinished,
        };
        self.compare(&step, kernel, model)
    }

    /// From now on there is no specification, until the kernel's state is settled.
    fn lose(&mut self) {
        self.lost = true;
        self.losses += u64::from(self.model.take().is_some());
    }

    /// The specification does `step`, and comes from `model` to `kernel`. When in the course of a long
    /// operation something happens to others is not specified, but that it is at one of the readings. Nor is
    /// what an unfinished operation has done, unless there was nothing that it could have done.
    fn compare(&mut self, step: &Step, kernel: State, model: State) -> Result<(), Failure> {
        let &Step {
            event,
            caller,
            repeated,
            course,
            is_unfinished,
        } = step;
        let names = |model: &State| {
            let caller = ThreadId(caller?.address().get());
            Some(what_it_names(model, caller, repeated?))
        };
        let core = abstraction::core_id(self.k.core_id());
        let homes: Vec<_> = model.threads.values().map(|thread| thread.core).collect();
        let before = names(&model);
        let windows = abstraction::windows(&kernel);
        let mut model = Some(model);
        let mut differs = None;
        let last = course.readings.len().saturating_sub(1);
        for (i, effect) in course.readings.iter().copied().enumerate() {
            let next = if i == last {
                model.take()
            } else {
                model.clone()
            };
            let Some(mut next) = next else { break };
            let readings = course.readings(effect);
            let ended = sandglass_model::event::handle_with(&mut next, core, event, readings);
            if is_unfinished && !(ended && course.has_one_stall()) {
                self.lose();
                return Ok(());
            }
            if names(&next) != before {
                // The operation took away what its repetition would have named (01, section 8).
                self.lose();
                return Ok(());
            }
            difference::normalise(&mut next);
            // The specification may know what nobody can reach.
            let agrees = difference::agree(&kernel, &next, &windows)
                || difference::agree(&kernel, &reach::reachable(&next, self.anchor), &windows);
            if agrees {
                self.traffic.moves += moves(&homes, &next);
                self.model = Some(next);
                return Ok(());
            }
            differs.get_or_insert(next);
        }
        let differs = differs.expect("the clock is read in every event");
        Err(Failure::Difference(difference::describe(
            &kernel, &differs, &windows,
        )))
    }
}

/// What the kernel has done.
struct Step<'a> {
    event: Event,
    /// The thread that ran before.
    caller: Option<Ref<Tcb>>,
    /// The call that it makes, if it was preempted and made it again.
    repeated: Option<&'a Call>,
    /// What was seen of time.
    course: &'a Course,
    /// Whether the operation has not come to its end.
    is_unfinished: bool,
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

/// The registers of a system call, with their indices in the user context.
const REGISTERS: [(Register, usize); 9] = [
    (kit::NUMBER, model::SYSCALL_NUMBER),
    (kit::CAP, model::CAP_OR_BADGE),
    (kit::INFO, model::MESSAGE_INFO),
    (kit::REPLY, model::REPLY),
    (kit::DESTINATION, model::NB_SEND_RECV_DEST),
    (kit::MESSAGE[0], model::MESSAGE_REGISTERS[0]),
    (kit::MESSAGE[1], model::MESSAGE_REGISTERS[1]),
    (kit::MESSAGE[2], model::MESSAGE_REGISTERS[2]),
    (kit::MESSAGE[3], model::MESSAGE_REGISTERS[3]),
];
