//! The kernel as a function of its state and an event, for hosts. On a machine, entry code does the same (`arch/calls.rs` and
//! the handlers of each architecture): it finds the line, and has each ending in a function apart.

use sandglass_abi::syscall::Syscall;

use super::{conclude, hand_over_arming, hand_over_to, in_general, straight, straight_trap, trap};
use super::{Ending, Next, Trap};
use crate::fast::{self, Outcome, Request};
use crate::mem::Ref;
use crate::object::{Core, Tcb};
use crate::time::{account, context, Turn};
use crate::{syscall, Kernel};

/// Why the kernel was entered. The registers of the current thread are in its TCB.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The system-call instruction.
    Syscall,
    Trap(Trap),
}

/// Handles an event. Interrupts are off meanwhile.
pub fn handle(k: &mut Kernel, event: Event) -> Next {
    read_clock(k, event);
    let core = k.core();
    let taken = match event {
        Event::Syscall => system_call(k, core),
        Event::Trap(trap) => straight_trap(k, core, trap),
    };
    match conclude(k, core, taken) {
        Ending::Leaves(next) => next,
        Ending::Arms(next) => hand_over_arming(k, core, next),
        Ending::HandsOver(next, own) => hand_over_to(k, core, next, own),
        Ending::Starts(next, own) => {
            context::wake_refills(k, next);
            hand_over_to(k, core, next, own)
        }
        Ending::IsInGeneral => general(k, event),
    }
}

/// As [`handle`], without lines: what they are to do.
pub fn handle_in_general(k: &mut Kernel, event: Event) -> Next {
    read_clock(k, event);
    general(k, event)
}

/// Handles an event that no line took. The clock was read.
fn general(k: &mut Kernel, event: Event) -> Next {
    let turn = &Turn::new();
    match event {
        Event::Syscall => in_general(k, turn),
        Event::Trap(event) => trap(k, turn, event),
    }
}

/// Reads the clock on entry, unless it is by a debug call, which takes no time.
fn read_clock(k: &Kernel, event: Event) {
    let caller = k.core().thread().filter(|_| event == Event::Syscall);
    let number = caller.map(|caller| caller.at(k).context().syscall_number());
    if number.and_then(syscall::debug_call).is_none() {
        account::update_time(k, k.core());
    }
}

/// Has the line for the system call of the current thread of `core` take it, if it can.
fn system_call(k: &Kernel, core: &Core) -> Option<(Ref<Tcb>, Outcome)> {
    let context = core.thread()?.at(k).context();
    let request = Request {
        cptr: context.cap_register(),
        info: context.info(),
    };
    let taken = match Syscall::from_raw(context.syscall_number())? {
        Syscall::Call => straight::<fast::Call>(k, core, request),
        Syscall::ReplyRecv => straight::<fast::ReplyRecv>(k, core, request),
        Syscall::Send => straight::<fast::Send>(k, core, request),
        Syscall::Recv => straight::<fast::Recv>(k, core, request),
        Syscall::Wait => straight::<fast::Wait>(k, core, request),
        Syscall::Yield => straight::<fast::Yield>(k, core, request),
        Syscall::NBSendRecv => straight::<fast::NBSendRecv>(k, core, request),
        _ => None,
    };
    match taken {
        Some((_, Outcome::Detours)) => straight::<fast::AnswerFault>(k, core, request),
        taken => taken,
    }
}
