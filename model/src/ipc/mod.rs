//! Communication: messages, endpoints, notifications, faults (01, sections 2 to 6; page 05).

pub mod endpoint;
pub mod fault;
pub mod message;
pub mod notification;
pub mod queue;
pub mod reply;
pub mod transfer;

use crate::state::{State, ThreadId, ThreadState};
use crate::time::{context, schedule};

/// `thread` enters `state`, in which it cannot run (04, section 8.2). If it is inactive then, it does
/// not wait for a fault to be handled: it never will be, since Resume clears it (04, section 7.5).
fn stop(s: &mut State, thread: ThreadId, state: ThreadState) {
    let t = s.thread_mut(thread);
    t.state = state;
    if state == ThreadState::Inactive {
        t.fault = None;
    }
    schedule::stopped(s, thread);
}

/// `thread`, which was blocked, enters `state`, in which it can run: it may run next (01, sections
/// 5.3 to 5.5; 02, section 7.1; 04, section 5.4).
fn wake(s: &mut State, thread: ThreadId, state: ThreadState) {
    s.thread_mut(thread).state = state;
    context::sporadic_unblock(s, thread);
    schedule::candidate(s, thread);
}

/// `thread`, whose queue is given up, is told so: it repeats its system call, or is inactive if it
/// had faulted (02, sections 7.1 and 7.4; 05, section 3 step 3). It is in no queue any more.
fn abandon(s: &mut State, thread: ThreadId) {
    if s.threads[&thread].fault.is_some() {
        stop(s, thread, ThreadState::Inactive);
    } else {
        wake(s, thread, ThreadState::Restart);
    }
}
