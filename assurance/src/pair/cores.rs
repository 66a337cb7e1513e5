//! Several cores in lock step: whose turn it is, and what waits for its turn.

use sandglass_kernel::event;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::{CoreId, CORES};
use sandglass_model::event::Event;
use sandglass_model::state as model;
use sandglass_model::State;

use super::{Failure, Pair};
use crate::abstraction;
use crate::script::Call;

/// What cores had to do with each other.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Traffic {
    /// Looks that another core had asked for.
    pub looks: u64,
    /// Threads that were stopped because of what happened on another core.
    pub stalls: u64,
    /// Threads that went to another core, as far as the specification was followed.
    pub moves: u64,
    /// System calls whose thread was taken away while they waited for their turn.
    pub lost: u64,
}

impl Traffic {
    /// Adds `other`.
    pub fn add(&mut self, other: Traffic) {
        self.looks += other.looks;
        self.stalls += other.stalls;
        self.moves += other.moves;
        self.lost += other.lost;
    }
}

/// A system call that was made, and has not been handled.
#[derive(Clone)]
pub(super) struct Late {
    pub(super) caller: Ref<Tcb>,
    pub(super) call: Call,
    /// When it was made.
    pub(super) since: u64,
}

impl Pair {
    /// What the cores had to do with each other so far.
    pub fn traffic(&self) -> Traffic {
        let stalls = CoreId::all().map(|core| self.k.machine.stalls_of(core));
        Traffic {
            stalls: stalls.sum(),
            ..self.traffic
        }
    }

    /// What happens next happens on `core`: whoever runs on the one before goes on in user code, where
    /// it can be interrupted, unless it waits for its turn in the kernel. There is one clock for all.
    pub(super) fn go_to(&mut self, core: CoreId) {
        if self.late[self.k.core_id().index()].is_none() {
            self.enter(0);
        }
        let now = self.now();
        self.k.machine.set_clock_of(core, now);
        self.k.execute_on(core);
        if let Some(model) = &mut self.model {
            model.executing = abstraction::core_id(core);
        }
    }

    /// The system call with which this core waits for its turn, if it does, has it. If its thread was
    /// taken away meanwhile, it is nobody's.
    pub(super) fn arrive(&mut self) -> Result<(), Failure> {
        // Until it has its turn it is a core that waits.
        let Some(late) = self.late[self.k.core_id().index()].clone() else {
            return Ok(());
        };
        let caller = Some(late.caller).filter(|_| self.k.core().thread() == Some(late.caller));
        self.traffic.lost += u64::from(caller.is_none());
        let repeated = match caller {
            Some(caller) => self.until_done(caller, &late.call)?,
            None => {
                self.configures = false;
                self.handle(event::Event::Syscall, 0)?;
                false
            }
        };
        self.specify(Event::Syscall, caller, repeated.then_some(&late.call))
    }

    /// Whether the thread of this core was taken away and the core has not entered the kernel since:
    /// whatever it wants there, it is about to.
    pub(super) fn was_stalled(&self) -> bool {
        let core = self.k.core_id();
        self.k.machine.stalls_of(core) > self.stalls[core.index()]
    }

    /// The core whose timer fires next, of several the one that is `preferred`, and when.
    pub(super) fn next_timer(&self, preferred: CoreId) -> (CoreId, u64) {
        let timers = CoreId::all().map(|core| (core, self.k.core_of(core).armed()));
        let next = timers.min_by_key(|&(core, armed)| (armed, core != preferred));
        next.expect("there is a core")
    }
}

/// Number of threads of `model` that are not on the core where they were, by `homes`; an event that
/// makes or deletes threads counts for none.
pub(super) fn moves(homes: &[model::CoreId], model: &State) -> u64 {
    if homes.len() != model.threads.len() {
        return 0;
    }
    let now = model.threads.values().map(|thread| thread.core);
    homes.iter().zip(now).filter(|(was, is)| *was != is).count() as u64
}

/// The core that scripts call `number`; kernels for fewer cores do with those that they have.
pub(super) fn named(number: u8) -> CoreId {
    CoreId::new(u64::from(number) % CORES as u64).expect("there are so many cores")
}
