//! Events of the kernel, with the time that passes in them.

use sandglass_abi::invocation::{SCHED_CONTROL_CONFIGURE_FLAGS, TCB_COPY_REGISTERS};
use sandglass_abi::message::MessageInfo;
use sandglass_kernel::arch::hosted::Seen;
use sandglass_kernel::arch::Register;
use sandglass_kernel::event::{self, Trap};
use sandglass_kernel::fast::inspect;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::{State, Tcb};
use sandglass_kernel::time::account;
use sandglass_kernel::CoreId;
use sandglass_model::event::Event;
use sandglass_model::time::readings::{Readings, Stall};

use sandglass_testkit::isa::SYSCALL_INSTRUCTION_BYTES;

use super::{Checks, Failure, Pair, KERNEL_PATH};
use crate::abstraction;
use crate::script::Call;

/// Most times that a preempted system call is repeated.
const MOST_REPETITIONS: usize = 1 << 16;

/// What the machine saw of an event of the specification, which may be several of the kernel.
#[derive(Clone, Default, Debug)]
pub(super) struct Course {
    waited: u64,
    /// Readings of the clock, in the order of time.
    pub(super) readings: Vec<u64>,
    stalls: Vec<Stall>,
    /// Whether the kernel came to a preemption point.
    looks: bool,
    /// Whether the caller's turn ended before the operation was done, and it had the next one too.
    pub(super) turn_ended: bool,
}

impl Course {
    /// What the specification is told, if an operation has its effects at the reading `effect`.
    pub(super) fn readings(&self, effect: u64) -> Readings {
        let first = self.readings.first().copied().unwrap_or_default();
        let mut readings = Readings::at(first);
        readings.waited = self.waited;
        readings.stalls = self.stalls.clone();
        readings.effect = effect;
        readings.last = self.readings.last().copied().unwrap_or(first);
        readings
    }

    /// Whether one stall can have ended it early, and no other could.
    pub(super) fn has_one_stall(&self) -> bool {
        self.stalls.len() == 1 && self.readings.len() == 2 && !self.looks
    }

    fn see(&mut self, seen: &[Seen], left: impl Fn(CoreId, u64) -> u64) {
        for &what in seen {
            match what {
                Seen::Reading(at) => {
                    self.readings.push(at);
                    if let Some(stall) = self.stalls.last_mut().filter(|stall| stall.then == 0) {
                        stall.then = at;
                    }
                }
                Seen::Look(_) => self.looks = true,
                Seen::Stall(core, at) => self.stalls.push(Stall {
                    core: abstraction::core_id(core),
                    left: left(core, at),
                    then: 0,
                }),
            }
        }
    }
}

impl Pair {
    pub(super) fn call(&mut self, call: &Call, looks: Option<u64>) -> Result<(), Failure> {
        let Some(caller) = self.issue(call) else {
            self.handle(event::Event::Syscall, KERNEL_PATH)?;
            return self.specify(Event::Syscall, None, None);
        };
        self.k.machine.set_interrupt_after(looks);
        let handled = self.until_done(caller, call);
        self.k.machine.set_interrupt_after(None);
        let repeated = handled?;
        self.specify(Event::Syscall, Some(caller), repeated.then_some(call))
    }

    /// The system call `call` of `caller` is handled, and if it is preempted the thread repeats it until it is
    /// done, or somebody else runs; but not if others are to run in between. Returns whether it was
    /// repeated.
    pub(super) fn until_done(&mut self, caller: Ref<Tcb>, call: &Call) -> Result<bool, Failure> {
        let label = MessageInfo::from_raw(call.info).label();
        self.configures = label == SCHED_CONTROL_CONFIGURE_FLAGS;
        // What may be repeated is one event, the path of which comes behind it.
        self.handle(event::Event::Syscall, 0)?;
        // Who copies registers to itself goes on where they say, maybe at the call: it is done.
        let compares = matches!(self.checks, Checks::All | Checks::None);
        if !compares || label == TCB_COPY_REGISTERS {
            return Ok(false);
        }
        for repetitions in 0..MOST_REPETITIONS {
            let context = caller.at(&self.k).context();
            let at = context.get(Register::FaultIp);
            let is_current = self.k.core().thread() == Some(caller);
            let has_begun = self.course.readings.len() > repetitions + 1;
            if !is_current || context.get(Register::NextIp) != at || !has_begun {
                return Ok(repetitions > 0);
            }
            // It has paid, so that was more than a preemption.
            self.course.turn_ended |= self.k.core().consumed() == 0;
            context.set(
                &*self.k,
                Register::NextIp,
                at.wrapping_add(SYSCALL_INSTRUCTION_BYTES),
            );
            self.handle(event::Event::Syscall, 0)?;
        }
        Ok(true)
    }

    /// The current thread, if there is one, executes the system-call instruction for `call`.
    pub(super) fn issue(&mut self, call: &Call) -> Option<Ref<Tcb>> {
        let caller = self.k.core().thread()?;
        for (register, value) in call.registers() {
            self.set(register, value);
        }
        for (word, value) in call.buffer() {
            self.store(word, value);
        }
        self.enter(SYSCALL_INSTRUCTION_BYTES);
        Some(caller)
    }

    /// The kernel handles `event`, and whom it wants to runs, after `path` more ticks.
    pub(super) fn handle(&mut self, event: event::Event, path: u64) -> Result<(), Failure> {
        let is_call = event == event::Event::Syscall;
        let _ = self.k.machine.take_seen();
        let here = self.k.core_id();
        let arrived = self.arrival(here).unwrap_or(u64::MAX).min(self.now());
        self.late[here.index()] = None;
        self.expect_others();
        if arrived < self.now() {
            account::waited(&self.k, arrived);
            self.course.waited += self.now() - arrived;
            let _ = self.k.machine.take_seen();
        }
        if let Some(witness) = &mut self.witness {
            witness.enters(&self.k, arrived, is_call)?;
        }
        let line = self.line(event);
        let next = if self.in_general {
            event::handle_in_general(&mut self.k, event)
        } else {
            self.lines.add(line);
            event::handle(&mut self.k, event)
        };
        let seen = self.k.machine.take_seen();
        let machine = &self.k.machine;
        let left = |core, at: u64| {
            machine
                .arrival_of(core)
                .map_or(at, |arrived| at.min(arrived))
        };
        self.course.see(&seen, left);
        let exit = self.now() + path;
        self.exits[here.index()] = exit;
        if let Some(witness) = &mut self.witness {
            witness.leaves(&self.k, &seen, next, exit)?;
        }
        Ok(())
    }

    /// The line that `event` takes, if it can take one.
    fn line(&self, event: event::Event) -> Option<inspect::Name> {
        account::update_time(&self.k, self.k.core());
        let _ = self.k.machine.take_seen();
        inspect::line(&self.k, event)
    }

    pub(super) fn trap(&mut self, trap: Trap, event: Event) -> Result<(), Failure> {
        self.configures = false;
        self.handle(event::Event::Trap(trap), KERNEL_PATH)?;
        self.specify(event, None, None)
    }

    /// Whether the system call of `caller` has ended because there was no budget any more, or for another
    /// thread, and before it was done.
    pub(super) fn is_unfinished(&self, caller: Ref<Tcb>, course: &Course) -> bool {
        let tcb = caller.at(&self.k);
        let has_faulted = tcb.fault().is_some_and(|fault| fault.is_timeout());
        let is_over = tcb.state() == State::Restart || has_faulted;
        course.readings.len() > 1 && is_over
    }

    /// When `core`, which runs a thread, comes to the kernel by itself: it waits for its turn, or its timer
    /// fires.
    fn arrival(&self, core: CoreId) -> Option<u64> {
        let _ = self.k.core_of(core).thread()?;
        let timer = self.k.machine.deadline_of(core);
        let timer = timer.max(self.exits[core.index()]);
        let late = self.late[core.index()].as_ref().map(|late| late.since);
        Some(late.unwrap_or(timer).min(timer))
    }

    /// The machine is told when other cores come to the kernel.
    fn expect_others(&self) {
        let here = self.k.core_id();
        for core in CoreId::all() {
            let arrival = self.arrival(core).filter(|_| core != here);
            self.k.machine.set_arrival(core, arrival);
        }
    }
}
