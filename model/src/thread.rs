//! Threads stop, resume, and leave what they wait for (04, section 10).

use crate::ipc::queue;
use crate::isa::PC;
use crate::reply;
use crate::state::{State, ThreadId, ThreadState};
use crate::time::{context, schedule};

/// Suspends `thread` (04, section 10).
pub fn suspend(s: &mut State, thread: ThreadId) {
    cancel_ipc(s, thread);
    let t = s.thread_mut(thread);
    if t.state == ThreadState::Running {
        t.registers.user[PC] = t.registers.next_ip;
    }
    t.state = ThreadState::Inactive;
    schedule::dequeue(s, thread);
    schedule::stopped(s, thread);
    context::cancel_yield(s, thread);
}

/// Resumes `thread`, if it is inactive or blocked (04, section 10).
pub fn resume(s: &mut State, thread: ThreadId) {
    if s.threads[&thread].state.is_runnable() {
        return;
    }
    cancel_ipc(s, thread);
    s.thread_mut(thread).state = ThreadState::Restart;
    context::sporadic_unblock(s, thread);
    if let Some(context) = s.threads[&thread].context {
        context::resume(s, context);
    }
    if schedule::is_schedulable(s, thread) {
        schedule::candidate(s, thread);
    }
}

/// `thread` has lost its context: if it waits to be heard through a capability with the right to call, it
/// will call anew when it has one again (decision *calls only*).
pub fn call_anew(s: &mut State, thread: ThreadId) {
    if let ThreadState::BlockedOnSend {
        calls_only: true, ..
    } = s.threads[&thread].state
    {
        queue::leave(s, thread);
        s.thread_mut(thread).state = ThreadState::Restart;
    }
}

/// `thread` leaves whatever it waits for, and is inactive; its fault is cleared (04, sections 7.5
/// and 10). One that waits for nothing stays as it is.
pub fn cancel_ipc(s: &mut State, thread: ThreadId) {
    s.thread_mut(thread).fault = None;
    match s.threads[&thread].state {
        ThreadState::BlockedOnSend { .. } | ThreadState::BlockedOnNotification { .. } => {
            queue::leave(s, thread);
        }
        ThreadState::BlockedOnReceive { reply, .. } => {
            queue::leave(s, thread);
            if let Some(reply) = reply {
                s.reply_mut(reply).thread = None;
            }
        }
        ThreadState::BlockedOnReply { reply } => reply::remove(s, reply),
        ThreadState::Inactive | ThreadState::Running | ThreadState::Restart => return,
    }
    s.thread_mut(thread).state = ThreadState::Inactive;
}
