//! Which line an event is to take, for tests.

use sandglass_abi::syscall::Syscall;

use super::traps::{Expires, Faults, Interrupt};
use super::{
    is_ordinary, is_over, AnswerFault, Call, Due, Line, NBSendRecv, Recv, ReplyRecv, Request, Send,
    Wait, Yield,
};
use crate::event::{Event, Trap};
use crate::mem::Ref;
use crate::object::Tcb;
use crate::View;

/// The events that there is a line for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    Call,
    ReplyRecv,
    Send,
    Recv,
    Wait,
    Yield,
    NBSendRecv,
    AnswerFault,
    Fault,
    Interrupt,
    Timeout,
}

/// All of them.
pub const LINES: [Name; 11] = [
    Name::Call,
    Name::ReplyRecv,
    Name::Send,
    Name::Recv,
    Name::Wait,
    Name::Yield,
    Name::NBSendRecv,
    Name::AnswerFault,
    Name::Fault,
    Name::Interrupt,
    Name::Timeout,
];

/// The line that `event` takes, if any can: a function of the state alone. The clock was read.
pub fn line(k: &View, event: Event) -> Option<Name> {
    let thread = k.core().thread()?;
    match event {
        Event::Syscall => call(k, thread),
        Event::Trap(trap) => of_trap(k, thread, trap),
    }
}

/// That of a system call.
fn call(k: &View, caller: Ref<Tcb>) -> Option<Name> {
    let context = caller.at(k).context();
    let request = Request {
        cptr: context.cap_register(),
        info: context.info(),
    };
    let call = Syscall::from_raw(context.syscall_number())?;
    let due = match call {
        Syscall::Call => Call::DUE,
        Syscall::ReplyRecv => ReplyRecv::DUE,
        Syscall::Send => Send::DUE,
        Syscall::Recv => Recv::DUE,
        Syscall::Wait => Wait::DUE,
        Syscall::NBSendRecv => NBSendRecv::DUE,
        _ => Yield::DUE,
    };
    let core = k.core();
    if !is_ordinary(k, core, caller, due) {
        return None;
    }
    let (name, takes) = match call {
        Syscall::Call => (Name::Call, Call::plan(k, core, caller, request).is_some()),
        Syscall::ReplyRecv => match ReplyRecv::plan(k, core, caller, request)? {
            ReplyRecv::Answers(_) => (Name::ReplyRecv, true),
            ReplyRecv::AnswersFault => (
                Name::AnswerFault,
                AnswerFault::plan(k, core, caller, request).is_some(),
            ),
        },
        Syscall::Send => (Name::Send, Send::plan(k, core, caller, request).is_some()),
        Syscall::Recv => (Name::Recv, Recv::plan(k, core, caller, request).is_some()),
        Syscall::Wait => (Name::Wait, Wait::plan(k, core, caller, request).is_some()),
        Syscall::NBSendRecv => (
            Name::NBSendRecv,
            NBSendRecv::plan(k, core, caller, request).is_some(),
        ),
        Syscall::Yield => (Name::Yield, Yield::plan(k, core, caller, request).is_some()),
        _ => return None,
    };
    takes.then_some(name)
}

/// That of another event.
fn of_trap(k: &View, thread: Ref<Tcb>, trap: Trap) -> Option<Name> {
    let core = k.core();
    let ordinary = is_ordinary(k, core, thread, Due::NobodyAbove);
    let (name, takes) = match trap {
        Trap::Exception(exception) => {
            let fault = exception.fault(thread.at(k).context());
            let plan = Faults::plan(k, core, thread, fault);
            (Name::Fault, ordinary && plan.is_some())
        }
        Trap::Interrupt { irq } => {
            let plan = Interrupt::plan(k, thread, irq);
            (Name::Interrupt, ordinary && plan.is_some())
        }
        Trap::Timer => {
            let plan = Expires::plan(k, core, thread);
            (Name::Timeout, is_over(k, core) && plan.is_some())
        }
        Trap::Look => return None,
    };
    takes.then_some(name)
}
