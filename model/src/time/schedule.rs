//! Who runs next (04, section 8; docs, deliberate difference 5).

use crate::state::{ContextId, State, ThreadId};

/// Whether `thread` could run (04, section 2.4).
pub fn is_schedulable(s: &State, thread: ThreadId) -> bool {
    let _ = (s, thread);
    todo!("model-time")
}

/// Puts `thread` at the head of its ready queue, wherever it was (04, section 8.1).
pub fn enqueue(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-time")
}

/// Puts `thread` at the tail of its ready queue.
pub fn append(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-time")
}

/// Takes `thread` out of the ready and release queues.
pub fn dequeue(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-time")
}

/// The thread of `context` waits for its head refill (04, section 8.4).
pub fn postpone(s: &mut State, context: ContextId) {
    let _ = (s, context);
    todo!("model-time")
}

/// A new decision is needed (04, section 8.2).
pub fn force_reschedule(s: &mut State) {
    let _ = (s,);
    todo!("model-time")
}

/// `thread` may run next (04, section 8.2).
pub fn candidate(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-time")
}

/// `thread` has entered a state in which it cannot run (04, section 8.2).
pub fn stopped(s: &mut State, thread: ThreadId) {
    let _ = (s, thread);
    todo!("model-time")
}

/// Changes the priority of `thread`, whatever its state (04, section 8.3).
pub fn set_priority(s: &mut State, thread: ThreadId, priority: u8) {
    let _ = (s, thread, priority);
    todo!("model-time")
}

/// Decides who runs, who pays, and when the timer fires (04, section 8.5), and makes the thread continue (01, section 8).
pub fn schedule(s: &mut State) {
    let _ = (s,);
    todo!("model-time")
}
