//! The witness of a hosted machine: tells the [oracle](sandglass_oracle) who executes when, and on
//! which context's time.
//!
//! It knows from the machine when a core enters and leaves the kernel, when the kernel reads the clock
//! and which cores it stalls, and from the objects which context a thread has. It looks at the
//! kernel's accounts only to compare them: at what a context was charged, and at who has to wait.
//!
//! Who executes the kernel: whoever caused the event, until the kernel reads the clock for the last
//! time, and from then on whoever runs next (ABI 04, section 3). A core that waits for its turn executes
//! nothing.

use rustc_hash::FxHashMap;
use sandglass_abi::invocation::SCHED_CONTROL_CONFIGURE_FLAGS;
use sandglass_abi::message::{ipc_buffer, MessageInfo};
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::arch::abi::clock::UNIT_US;
use sandglass_kernel::arch::hosted::Seen;
use sandglass_kernel::arch::{MessageRegister, Platform};
use sandglass_kernel::cap::lookup;
use sandglass_kernel::event::Next;
use sandglass_kernel::ipc::message;
use sandglass_kernel::mem::{Kind, Ref};
use sandglass_kernel::object::sched_context::SchedContext;
use sandglass_kernel::object::tcb::{Place as Queue, State, Tcb};
use sandglass_kernel::time::refills::Refills;
use sandglass_kernel::{CoreId, Kernel, CORES};
use sandglass_oracle::{Configuration, Finding, Limits, Oracle, Place, Stretch, Ticks};

/// The longest path of the kernel that does not end in a preemption point: half of the least budget.
const PATH: Ticks = 10_000;

/// Who runs on a core.
#[derive(Clone, Copy, Debug)]
struct Running {
    thread: u64,
    context: u64,
    /// Since when in user code.
    since: Ticks,
}

/// What the current thread asks for that the oracle has to know of.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Nothing,
    Yield,
    Configure {
        context: Ref<SchedContext>,
        configuration: Option<Configuration>,
        budget: Ticks,
        /// Whether its thread is runnable.
        is_in_use: bool,
    },
}

/// What was last seen of a thread.
#[derive(Clone, Copy, Default, Debug)]
struct Seat {
    is_blocked: bool,
    /// Its context, or 0.
    context: u64,
    /// It waits for budget.
    is_waiting: bool,
    /// It waits for budget, or has raised a timeout fault.
    is_refused: bool,
}

/// An event under way.
#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Ticks,
    causer: Option<Running>,
    asked: Asked,
}

/// Watches a machine.
#[derive(Debug)]
pub struct Witness {
    oracle: Oracle,
    cores: [Option<Running>; CORES],
    entry: Option<Entry>,
    seats: FxHashMap<u64, Seat>,
    /// What each context had consumed, as the kernel counts it.
    consumed: FxHashMap<u64, Ticks>,
    /// When the kernel last read the clock.
    read: Ticks,
    /// When it was entered first since threads were last looked at.
    first_entry: Option<Ticks>,
    /// The contexts of those that were stalled since threads were last looked at, and when they left user
    /// code.
    stalled: Vec<(u64, Ticks)>,
}

impl Witness {
    /// Watches `k` from now on, whose contexts are `contexts`. Of what happened before nothing is known.
    pub fn new(
        k: &Kernel,
        contexts: impl IntoIterator<Item = Ref<SchedContext>>,
        threads: impl IntoIterator<Item = Ref<Tcb>>,
    ) -> Witness {
        let limits = Limits {
            least_budget: k.constants.min_budget(),
            path: PATH,
            // From the preemption point at which another core waits.
            turn: 0,
        };
        let mut witness = Witness {
            oracle: Oracle::new(limits),
            cores: [None; CORES],
            entry: None,
            seats: FxHashMap::default(),
            consumed: FxHashMap::default(),
            read: k.machine.clock(),
            first_entry: None,
            stalled: Vec::new(),
        };
        let _ = k.machine.take_seen();
        let now = k.machine.clock();
        for core in CoreId::all() {
            let thread = k.core_of(core).thread();
            witness.cores[core.index()] = thread.and_then(|thread| running(k, thread, now));
        }
        for context in contexts {
            let address = context.address().get();
            witness.oracle.knows(address, configured(k, context), now);
            let consumed = context.at(k).inspect().consumed;
            witness.consumed.insert(address, consumed);
        }
        for thread in threads {
            let seat = seat(k, thread);
            witness.seats.insert(thread.address().get(), seat);
        }
        witness
    }

    /// Stretches of execution that were checked.
    pub fn stretches(&self) -> u64 {
        self.oracle.stretches()
    }

    /// The core that executes has its turn in the kernel, where it arrived at `arrived`; with `is_call`, the
    /// current thread has made a system call.
    ///
    /// # Errors
    /// What the oracle finds.
    pub fn enters(&mut self, k: &Kernel, arrived: Ticks, is_call: bool) -> Result<(), Finding> {
        let core = k.core_id();
        let causer = self.cores[core.index()].take();
        if let Some(running) = causer {
            self.leaves_user_code(core, running, arrived)?;
            if arrived < k.machine.clock() {
                // Whose budget comes later by the time that it waited has it later too.
                self.oracle.gives_up(running.context, k.machine.clock());
            }
        }
        let asked = match k.core().thread() {
            Some(thread) if is_call => asked(k, thread),
            _ => Asked::Nothing,
        };
        self.first_entry.get_or_insert(k.machine.clock());
        self.entry = Some(Entry {
            at: k.machine.clock(),
            causer,
            asked,
        });
        Ok(())
    }

    /// The event is over, in which the machine has `seen` this, and `next` runs from `exit` on, when the
    /// core has left the kernel.
    ///
    /// # Errors
    /// What the oracle finds.
    pub fn leaves(
        &mut self,
        k: &Kernel,
        seen: &[Seen],
        next: Next,
        exit: Ticks,
    ) -> Result<(), Finding> {
        let Some(entry) = self.entry.take() else {
            return Ok(());
        };
        let core = k.core_id();
        self.read = self.in_kernel(core, entry, seen)?;
        let others = CoreId::all().filter(|&other| other != core);
        let arrival = others.filter_map(|other| k.machine.arrival_of(other)).min();
        if let Some((since, until)) = arrival.and_then(|at| kept_waiting(at, seen)) {
            self.oracle.turn(core.index(), since, until)?;
        }
        for &what in seen {
            if let Seen::Stall(other, at) = what {
                if let Some(running) = self.cores[other.index()].take() {
                    let left = k.machine.arrival_of(other).map_or(at, |it| it.min(at));
                    self.leaves_user_code(other, running, left)?;
                    self.stalled.push((running.context, left));
                }
            }
        }
        self.configures(k, entry, self.read);
        if let Next::Thread(thread) = next {
            let next = running(k, thread, exit);
            if let Some(next) = next {
                let path = stretch(core, next, self.read, exit, Place::Kernel, false);
                self.oracle.ran(&path)?;
            }
            self.cores[core.index()] = next;
        }
        Ok(())
    }

    /// Looks at these contexts and threads, of which there are no others, after an event.
    ///
    /// # Errors
    /// What the oracle finds.
    pub fn surveys(
        &mut self,
        k: &Kernel,
        contexts: impl IntoIterator<Item = Ref<SchedContext>> + Clone,
        threads: impl IntoIterator<Item = Ref<Tcb>>,
    ) -> Result<(), Finding> {
        self.meets(k, contexts.clone(), self.read);
        self.pays(k, contexts, self.read)?;
        let entered = self.first_entry.take().unwrap_or(self.read);
        let looked = self.looks_at(k, threads, entered, self.read);
        self.stalled.clear();
        looked
    }

    fn leaves_user_code(
        &mut self,
        core: CoreId,
        running: Running,
        at: Ticks,
    ) -> Result<(), Finding> {
        let user = stretch(core, running, running.since, at, Place::User, true);
        self.oracle.ran(&user)
    }

    /// The causer executes the kernel until the last reading, which is returned.
    fn in_kernel(&mut self, core: CoreId, entry: Entry, seen: &[Seen]) -> Result<Ticks, Finding> {
        let mut from = entry.at;
        let mut last = entry.at;
        let mut is_first = true;
        for &what in seen {
            let (at, checked) = match what {
                Seen::Reading(at) => (at, std::mem::take(&mut is_first)),
                Seen::Look(at) => (at, true),
                Seen::Stall(..) => continue,
            };
            last = last.max(at);
            if checked {
                self.causes(core, entry, from, last, true)?;
                from = last;
            }
        }
        self.causes(core, entry, from, last, false)?;
        Ok(last)
    }

    fn causes(
        &mut self,
        core: CoreId,
        entry: Entry,
        start: Ticks,
        end: Ticks,
        checked: bool,
    ) -> Result<(), Finding> {
        match entry.causer {
            Some(causer) => {
                let path = stretch(core, causer, start, end, Place::Kernel, checked);
                self.oracle.ran(&path)
            }
            None => Ok(()),
        }
    }

    /// A context may have been configured.
    fn configures(&mut self, k: &Kernel, entry: Entry, at: Ticks) {
        match entry.asked {
            Asked::Nothing => {}
            Asked::Yield => {
                if let Some(causer) = entry.causer {
                    self.oracle.gives_up(causer.context, at);
                }
            }
            Asked::Configure {
                context,
                configuration,
                budget,
                is_in_use,
            } => {
                let address = context.address().get();
                let is_done = is_configured(k, context, configuration, budget);
                if !is_done {
                    return;
                }
                let configuration = configuration.map(|it| Configuration {
                    sporadic: context.at(k).is_sporadic(),
                    ..it
                });
                let thread = context.at(k).thread();
                let is_still = thread.is_some_and(|thread| thread.at(k).is_runnable());
                match (is_in_use, is_still) {
                    (false, _) => self.oracle.starts(address, configuration, at),
                    (true, true) => self.oracle.changes(address, configuration, at),
                    // Which of the two came first is not seen.
                    (true, false) => self.oracle.knows(address, configuration, at),
                }
            }
        }
    }

    /// Contexts come and go.
    fn meets(
        &mut self,
        k: &Kernel,
        contexts: impl IntoIterator<Item = Ref<SchedContext>>,
        at: Ticks,
    ) {
        let mut present = FxHashMap::default();
        for context in contexts {
            let address = context.address().get();
            present.insert(address, ());
            if context.at(k).is_active() && !self.oracle.is_known(address) {
                self.oracle.knows(address, configured(k, context), at);
            }
        }
        self.oracle.retain(|context| present.contains_key(&context));
        self.consumed
            .retain(|context, _| present.contains_key(context));
    }

    /// What the kernel charged the contexts is compared with what they executed.
    fn pays(
        &mut self,
        k: &Kernel,
        contexts: impl IntoIterator<Item = Ref<SchedContext>>,
        at: Ticks,
    ) -> Result<(), Finding> {
        for context in contexts {
            let address = context.address().get();
            let consumed = context.at(k).inspect().consumed;
            let before = self.consumed.insert(address, consumed).unwrap_or(0);
            // A report makes the count start anew.
            let charged = consumed.checked_sub(before).unwrap_or(consumed);
            self.oracle.charged(address, charged, at)?;
            let is_current = |core| k.core_of(core).context() == Some(context);
            if !CoreId::all().any(is_current) {
                self.oracle.has_paid(address);
            }
        }
        Ok(())
    }

    /// Threads wake, and are refused, somewhen from `entered` until `at`.
    fn looks_at(
        &mut self,
        k: &Kernel,
        threads: impl IntoIterator<Item = Ref<Tcb>>,
        entered: Ticks,
        at: Ticks,
    ) -> Result<(), Finding> {
        let before = std::mem::take(&mut self.seats);
        for thread in threads {
            let now = seat(k, thread);
            let address = thread.address().get();
            self.seats.insert(address, now);
            let Some(context) = thread.at(k).sched_context() else {
                continue;
            };
            let context = context.address().get();
            let Some(was) = before.get(&address) else {
                continue;
            };
            if now.is_refused && !was.is_refused {
                // Who was stalled is judged by when it left user code.
                let stalled = self.stalled.iter().find(|&&(it, _)| it == context);
                let at = stalled.map_or(at, |&(_, left)| left);
                self.oracle.refused(context, at)?;
            }
            // A context that was lent to it goes on as it was.
            let wakes = was.is_blocked && !now.is_blocked && was.context == context;
            if now.is_waiting {
                self.oracle.is_on_time(context, at);
            } else if wakes {
                // What the kernel did behind that, on another's time, it has waited for.
                self.oracle.is_on_time(context, entered);
            }
        }
        Ok(())
    }
}

/// From the first preemption point at which a core waits, that came at `arrival`, to the last one: where
/// the event should have ended, and when it did not.
fn kept_waiting(arrival: Ticks, seen: &[Seen]) -> Option<(Ticks, Ticks)> {
    let looks = seen.iter().filter_map(|what| match *what {
        Seen::Look(at) if at >= arrival => Some(at),
        _ => None,
    });
    let last = looks.clone().next_back()?;
    Some((looks.min()?, last))
}

fn stretch(
    core: CoreId,
    running: Running,
    start: Ticks,
    end: Ticks,
    place: Place,
    checked: bool,
) -> Stretch {
    Stretch {
        core: core.index(),
        thread: running.thread,
        context: running.context,
        start,
        end,
        place,
        checked,
    }
}

/// `thread`, which runs in user code since `since`.
fn running(k: &Kernel, thread: Ref<Tcb>, since: Ticks) -> Option<Running> {
    let context = thread.at(k).sched_context()?;
    Some(Running {
        thread: thread.address().get(),
        context: context.address().get(),
        since,
    })
}

fn seat(k: &Kernel, thread: Ref<Tcb>) -> Seat {
    let tcb = thread.at(k);
    let waits = tcb.place() == Queue::Release && tcb.links().key().time() > k.core().now();
    let has_faulted = tcb.fault().is_some_and(|fault| fault.is_timeout());
    Seat {
        is_blocked: !matches!(
            tcb.state(),
            State::Inactive | State::Running | State::Restart
        ),
        context: tcb.sched_context().map_or(0, |it| it.address().get()),
        is_waiting: waits,
        is_refused: waits || has_faulted,
    }
}

/// The budget that `context` has been configured with, all of it: refills as they are now add up to it.
fn budget(k: &Kernel, context: Ref<SchedContext>) -> Ticks {
    Refills::of(k, context)
        .iter()
        .map(|refill| refill.amount)
        .sum()
}

/// How `context` is configured; `None` if that means no windows.
fn configured(k: &Kernel, context: Ref<SchedContext>) -> Option<Configuration> {
    let period = context.at(k).period();
    (context.at(k).is_active() && period > 0).then(|| Configuration {
        budget: budget(k, context),
        period,
        sporadic: context.at(k).is_sporadic(),
    })
}

/// Whether `context` has this configuration now.
fn is_configured(
    k: &Kernel,
    context: Ref<SchedContext>,
    configuration: Option<Configuration>,
    total: Ticks,
) -> bool {
    let period = configuration.map_or(0, |it| it.period);
    let object = context.at(k);
    object.is_active() && object.period() == period && (period == 0 || budget(k, context) == total)
}

/// What `thread`, the current one, asks for by the system call that it has made.
fn asked(k: &Kernel, thread: Ref<Tcb>) -> Asked {
    let registers = thread.at(k).context();
    if Syscall::from_raw(registers.syscall_number()) == Some(Syscall::Yield) {
        return Asked::Yield;
    }
    if MessageInfo::from_raw(registers.info()).label() != SCHED_CONTROL_CONFIGURE_FLAGS {
        return Asked::Nothing;
    }
    let named = lookup::slot(k, lookup::cspace(k, thread), registers.cap_register());
    if !named.is_some_and(|slot| slot.at(k).cap().is(Kind::SchedControl)) {
        return Asked::Nothing;
    }
    let Some(buffer) = message::buffer(k, thread, false) else {
        return Asked::Nothing;
    };
    let named = buffer.read(k, ipc_buffer::CAPS_OR_BADGES);
    let slot = lookup::slot(k, lookup::cspace(k, thread), named);
    let Some(context) = slot.and_then(|slot| slot.at(k).cap().word().get::<SchedContext>()) else {
        return Asked::Nothing;
    };
    let ticks = |us: u64| us.saturating_mul(k.machine.ticks_per_unit()) / UNIT_US;
    let (budget, period) = (
        ticks(registers.message(MessageRegister::Mr0)),
        ticks(registers.message(MessageRegister::Mr1)),
    );
    let user = context.at(k).thread();
    Asked::Configure {
        context,
        configuration: (budget != period).then_some(Configuration {
            budget,
            period,
            sporadic: false,
        }),
        budget,
        is_in_use: user.is_some_and(|user| user.at(k).is_runnable()),
    }
}
