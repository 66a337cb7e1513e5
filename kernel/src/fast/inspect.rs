//! Which line an event is to take, for tests.

use sandglass_abi::syscall::Syscall;

use super::{is_ordinary, Call, Line, Recv, ReplyRecv, Request, Send, Wait, Yield};
use crate::View;

/// The system calls that there is a line for.
pub const LINES: [Syscall; 6] = [
    Syscall::Call,
    Syscall::ReplyRecv,
    Syscall::Send,
    Syscall::Recv,
    Syscall::Wait,
    Syscall::Yield,
];

/// The line that the system call of the current thread takes, if any can: a function of the state alone. The clock was read.
pub fn line(k: &View) -> Option<Syscall> {
    let caller = k.core().thread()?;
    let context = caller.at(k).context();
    let request = Request {
        cptr: context.cap_register(),
        info: context.info(),
    };
    if k.core().undecided() || !is_ordinary(k, k.core(), caller) {
        return None;
    }
    let call = Syscall::from_raw(context.syscall_number())?;
    let takes = match call {
        Syscall::Call => Call::plan(k, caller, request).is_some(),
        Syscall::ReplyRecv => ReplyRecv::plan(k, caller, request).is_some(),
        Syscall::Send => Send::plan(k, caller, request).is_some(),
        Syscall::Recv => Recv::plan(k, caller, request).is_some(),
        Syscall::Wait => Wait::plan(k, caller, request).is_some(),
        Syscall::Yield => Yield::plan(k, caller, request).is_some(),
        _ => false,
    };
    takes.then_some(call)
}
