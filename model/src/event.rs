//! The one entry: an event happens on a core at a time, and changes the state.

use crate::cap::deletion;
use crate::invoke::irq;
use crate::ipc::fault;
use crate::isa::{self, IrqNumber};
use crate::state::{CoreId, State, ThreadState, Ticks};
use crate::syscall::{self, Then};
use crate::time::readings::{self, Readings};
use crate::time::{account, schedule};

/// Why the kernel was entered; the registers of the current thread are in the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The system-call instruction.
    Syscall,
    /// `int vector` of x86_64, which stands for an unknown system call (05, section 2.2). The restart address
    /// is that of the instruction.
    SoftwareInterrupt { vector: u8 },
    /// A processor exception of the current thread; on aarch64 its number is ESR.
    Exception { number: u32, code: u32 },
    /// A page fault of the current thread; on aarch64 its code is ESR.
    PageFault { address: u64, code: u32 },
    /// A device interrupt.
    Interrupt { irq: IrqNumber },
    /// The timer.
    Timer,
    /// Another core asks this one to look at its queues (04, section 15).
    Look,
}

/// What `event`, on `core` at the time `now`, does to the state, with no time inside it. There is one
/// clock: no event is earlier than the one before, on whichever core that was.
pub fn handle(state: &mut State, core: CoreId, event: Event, now: Ticks) {
    let _ = handle_with(state, core, event, Readings::at(now));
}

/// What `event`, on `core`, does to the state, during which the clock showed `readings`. Returns whether it
/// ended before it was done, because the caller had no budget any more.
#[must_use]
pub fn handle_with(state: &mut State, core: CoreId, event: Event, readings: Readings) -> bool {
    state.executing = core;
    account::wait(state, readings.waited);
    account::update_time(state, readings.entry);
    let caller = state.core().thread;
    state.readings = readings;
    let then = match event {
        Event::Interrupt { irq } => interrupt(state, irq),
        Event::Timer => timer(state),
        Event::Look => look(state),
        _ => by_thread(state, event),
    };
    let ended = readings::conclude(state, caller);
    state.readings = Readings::default();
    if then == Then::Schedule {
        schedule::schedule(state);
    }
    deletion::forget_unnamed(state);
    ended
}

/// A device interrupt, which is handled whether or not the budget lasts (04, section 6.1).
fn interrupt(s: &mut State, irq: IrqNumber) -> Then {
    let _ = account::settle(s);
    irq::arrive(s, irq);
    Then::Schedule
}

/// The timer fired: it is to be programmed anew (04, section 14).
fn timer(s: &mut State) -> Then {
    s.core_mut().reprogram = true;
    let _ = account::settle(s);
    Then::Schedule
}

/// The core looks at its queues, as it was asked to; being asked is an interrupt like others.
fn look(s: &mut State) -> Then {
    s.core_mut().look = false;
    let _ = account::settle(s);
    Then::Schedule
}

/// What the current thread did, if it has budget left to have it done; otherwise it does it again
/// when it has (01, section 5; 04, section 6.1). If there is none, because it was taken away while
/// the core waited for its turn, the core looks at its queues (04, section 15).
fn by_thread(s: &mut State, event: Event) -> Then {
    let Some(thread) = s.core().thread else {
        return Then::Schedule;
    };
    if !account::settle(s) {
        if s.threads[&thread].state.is_runnable() {
            s.thread_mut(thread).state = ThreadState::Restart;
        }
        return Then::Schedule;
    }
    match isa::fault_of(s, thread, event) {
        None => {
            readings::advance(s, s.readings.effect);
            syscall::perform(s, thread)
        }
        Some(fault) => {
            fault::raise(s, thread, fault);
            Then::Schedule
        }
    }
}
