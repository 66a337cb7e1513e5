//! The one way in and the one way out: an event changes the state, and the next thread runs.

#[cfg(not(target_os = "none"))]
mod host;

use crate::arch::abi::Exception;
pub use crate::arch::Trap;
use crate::arch::{aside, bounds, spaces};
use crate::debug::{self, check};
use crate::fast::{self, Line, Outcome, Request, Switch};
use crate::invoke::irq;
use crate::ipc::{fault, timeout};
use crate::mem::Ref;
use crate::object::{Core, SchedContext, State, Tcb, DOMAINS};
use crate::syscall::{self, Exit};
use crate::thread::yielding;
use crate::time::account::Charge;
use crate::time::{fpu, remote, schedule, Turn};
use crate::{Kernel, CORES};

#[cfg(not(target_os = "none"))]
pub use host::{handle, handle_in_general, Event};

/// Whom the machine is to run now.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    Thread(Ref<Tcb>),
    /// Nobody: wait for an interrupt.
    Idle,
}

/// What is left of an event that a line took, or did not.
#[must_use]
pub enum Ending {
    Leaves(Next),
    /// To this thread, for which the timer may be wrong, on what paid before: [`hand_over_arming`].
    Arms(Ref<Tcb>),
    /// To this thread, which runs on this context, which is another: [`hand_over_to`].
    HandsOver(Ref<Tcb>, Ref<SchedContext>),
    /// The same of one that has woken, on a sporadic context: before, its [refills](crate::time::context::wake_refills).
    Starts(Ref<Tcb>, Ref<SchedContext>),
    /// To handle it: [`in_general`], [`trap`].
    IsInGeneral,
}

/// Handles a system call of the current thread of `core`, which executes the kernel, if the line `L` can take it: it says
/// what `request` says. The clock was read. Returns the caller, and what is to be done; `None` if nothing was done: it is
/// to be handled [in general](in_general).
#[inline(always)]
pub fn straight<L: Line>(k: &Kernel, core: &Core, request: Request) -> Option<(Ref<Tcb>, Outcome)> {
    let caller = core.thread()?;
    let outcome = fast::take::<L>(k, core, caller, request)?;
    Some((caller, outcome))
}

/// What is left of an event at `core`, which executes this, that a line has `taken`, if one has, from a thread.
#[inline(always)]
pub fn conclude(k: &Kernel, core: &Core, taken: Option<(Ref<Tcb>, Outcome)>) -> Ending {
    match taken {
        Some((thread, Outcome::Stays)) => Ending::Leaves(stay(k, thread)),
        Some((_, Outcome::Switches(switch))) => go_to(k, core, switch),
        Some((_, Outcome::Detours)) | None => Ending::IsInGeneral,
    }
}

/// What is left of an event after which another thread runs.
#[inline(always)]
fn go_to(k: &Kernel, core: &Core, switch: Switch) -> Ending {
    match switch {
        Switch::OnLent(next) if schedule::timer_may_be_wrong(core) => Ending::Arms(next),
        Switch::OnLent(next) => Ending::Leaves(hand_over(k, core, next)),
        Switch::OnOwn(next, own) => Ending::HandsOver(next, own),
        Switch::Woken(next, own) if own.at(k).is_sporadic() => Ending::Starts(next, own),
        Switch::Woken(next, own) => Ending::HandsOver(next, own),
    }
}

/// As [`straight`], of an event that is not a system call.
#[inline(always)]
pub fn straight_trap(k: &Kernel, core: &Core, trap: Trap) -> Option<(Ref<Tcb>, Outcome)> {
    let thread = core.thread()?;
    let outcome = fast::take_trap(k, core, thread, trap)?;
    Some((thread, outcome))
}

/// Ends an event after which `caller`, which made it, goes on.
#[inline(always)]
pub fn stay(k: &Kernel, caller: Ref<Tcb>) -> Next {
    check::touched(k, Some(caller));
    Next::Thread(caller)
}

/// Ends an event of `core`, which executes the kernel, after which `next`, in no queue, which was blocked, runs on what paid
/// before; the timer is right for it.
#[inline(always)]
pub fn hand_over(k: &Kernel, core: &Core, next: Ref<Tcb>) -> Next {
    let before = core.thread();
    schedule::hand_over(k, core, next);
    if !spaces::switch_remembered(k, core, next) {
        aside::switch_anew(k, next);
    }
    fpu::switch(k, core, next);
    // Who yielded did not block since.
    debug_assert!(next.at(k).yield_to().is_none());
    check::touched(k, before);
    Next::Thread(next)
}

/// As [`hand_over`], where the timer may be wrong for `next`.
#[inline(always)]
pub fn hand_over_arming(k: &Kernel, core: &Core, next: Ref<Tcb>) -> Next {
    let next = hand_over(k, core, next);
    schedule::arm(k);
    next
}

/// As [`hand_over`], on `own`, another context.
#[inline(always)]
pub fn hand_over_to(k: &Kernel, core: &Core, next: Ref<Tcb>, own: Ref<SchedContext>) -> Next {
    let before = core.thread();
    schedule::hand_over_to(k, core, next, own);
    enter_thread(k, core, next);
    check::touched(k, before);
    Next::Thread(next)
}

/// Handles a system call of the current thread, whichever it is. The clock was read, if time is to pass.
#[inline(always)]
pub fn in_general(k: &mut Kernel, turn: &Turn) -> Next {
    turn.begin(k);
    let before = k.core().thread();
    let exit = match before {
        Some(caller) => call(k, turn, caller),
        None => {
            taken_away(k, turn);
            Exit::ToScheduler
        }
    };
    leave(k, turn, before, exit)
}

/// Handles a system call of `caller`, the current thread.
#[inline(always)]
fn call(k: &mut Kernel, turn: &Turn, caller: Ref<Tcb>) -> Exit {
    let phases = match syscall::phases(k, caller) {
        Ok(phases) => phases,
        Err(number) => return other_call(k, turn, caller, number),
    };
    match settle(k, turn, caller) {
        Charge::Paid => syscall::perform(k, turn, caller, phases),
        Charge::Exhausted => {}
    }
    Exit::ToScheduler
}

/// Handles a system call of `caller` without phases.
#[inline(never)]
#[cold]
fn other_call(k: &Kernel, turn: &Turn, caller: Ref<Tcb>, number: u64) -> Exit {
    if let Some(call) = syscall::debug_call(number) {
        debug::calls::syscall(k, caller, call);
        turn.end(k);
        return Exit::ToCaller;
    }
    match settle(k, turn, caller) {
        Charge::Paid => syscall::perform_other(k, turn, caller, number),
        Charge::Exhausted => Exit::ToScheduler,
    }
}

/// Handles an entry that is not by the system-call instruction, in the turn of the core, in general. The clock was read.
#[inline(always)]
pub fn trap(k: &mut Kernel, turn: &Turn, trap: Trap) -> Next {
    turn.begin(k);
    let before = k.core().thread();
    match trap {
        Trap::Exception(exception) => user_fault(k, turn, before, exception),
        Trap::Interrupt { irq } => {
            interrupted(k, turn);
            trace!(k, device_interrupt(irq));
            irq::interrupt(k, turn, irq);
        }
        Trap::Timer => {
            k.core().set_armed(k, u64::MAX);
            k.core().request_reprogram(k);
            interrupted(k, turn);
            trace!(k, timer_interrupt());
        }
        Trap::Look => {
            interrupted(k, turn);
            trace!(k, look());
        }
    }
    leave(k, turn, before, Exit::ToScheduler)
}

/// The thread that wanted something was taken away while this core waited for its turn (04,
/// section 15): it will want it again.
#[cold]
fn taken_away(k: &Kernel, turn: &Turn) {
    if CORES > 1 {
        interrupted(k, turn);
    }
}

/// Ends an event that found `before` running.
#[inline(always)]
fn leave(k: &mut Kernel, turn: &Turn, before: Option<Ref<Tcb>>, exit: Exit) -> Next {
    match before {
        Some(thread) if exit == Exit::ToCaller || goes_on(k, turn, thread) => {
            remote::tell_cores(k);
            stay(k, thread)
        }
        _ => decide(k, turn, before),
    }
}

/// Whether an event that found `thread` running has changed nothing about who runs, and on what.
#[inline(always)]
fn goes_on(k: &Kernel, turn: &Turn, thread: Ref<Tcb>) -> bool {
    if !turn.keeps_current() {
        return false;
    }
    bounds::mark::<{ bounds::KEEPING }>();
    let core = k.core();
    !core.is_anybody_due() && !core.reprogram() && thread.at(k).state() == State::Running
}

/// Ends an event that found `before` running, where the scheduler decides who runs. Once, for all.
#[inline(never)]
fn decide(k: &Kernel, turn: &Turn, before: Option<Ref<Tcb>>) -> Next {
    let thread = schedule::schedule(k, turn);
    let next = activate(k, before, thread);
    remote::tell_cores(k);
    check::touched(k, before);
    next
}

/// Checks the budget on behalf of `thread`, the current one. The event proceeds if it is paid; otherwise the thread repeats
/// what it did when it has time again.
#[inline(always)]
fn settle(k: &Kernel, turn: &Turn, thread: Ref<Tcb>) -> Charge {
    let charge = timeout::settle(k, turn);
    if charge == Charge::Exhausted && thread.at(k).is_runnable() {
        thread.at(k).set_state(k, State::Restart);
    }
    charge
}

/// Accounts for time at an interrupt, which is handled whether or not the budget lasts.
#[inline(always)]
fn interrupted(k: &Kernel, turn: &Turn) {
    let _ = timeout::settle(k, turn);
}

fn user_fault(k: &Kernel, turn: &Turn, before: Option<Ref<Tcb>>, exception: Exception) {
    let Some(thread) = before else {
        return taken_away(k, turn);
    };
    match settle(k, turn, thread) {
        Charge::Paid => fault::raise(k, turn, thread, exception.fault(thread.at(k).context())),
        Charge::Exhausted => {}
    }
}

/// Makes the state of `thread`, which did not run before, that of `core`, which executes the kernel.
#[inline(always)]
fn enter_thread(k: &Kernel, core: &Core, thread: Ref<Tcb>) {
    spaces::switch(k, core, thread);
    fpu::switch(k, core, thread);
    if thread.at(k).yield_to().is_some() {
        yielding::report_yield(k, thread);
    }
}

/// Makes the chosen thread's state that of the machine (01, section 8).
#[inline(always)]
fn activate(k: &Kernel, before: Option<Ref<Tcb>>, chosen: Option<Ref<Tcb>>) -> Next {
    let Some(thread) = chosen else {
        if CORES > 1 {
            spaces::leave(k);
        }
        return Next::Idle;
    };
    let tcb = thread.at(k);
    if before != Some(thread) {
        enter_thread(k, k.core(), thread);
    } else if DOMAINS > 1 {
        // It has yielded to a thread whose domain does not run.
        yielding::report_yield(k, thread);
    }
    if tcb.state() == State::Restart {
        tcb.context().restart(k);
        tcb.set_state(k, State::Running);
    }
    Next::Thread(thread)
}
