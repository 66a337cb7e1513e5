//! Reply objects and the stacks of calls over which a context was lent (04, section 7).

use crate::state::{ContextId, ReplyId, State, ThreadId};

/// `caller` waits for an answer through `reply`; its context is lent to `callee` if it may be
/// (04, section 7.2).
pub fn push(s: &mut State, caller: ThreadId, callee: ThreadId, reply: ReplyId, can_donate: bool) {
    let _ = (s, caller, callee, reply, can_donate);
    todo!("model-time")
}

/// `reply` leaves its caller, which becomes inactive, and its stack; a context lent through it
/// returns to the caller (04, section 7.4 step 2; section 7.5, deletion). Returns the caller.
pub fn pop(s: &mut State, reply: ReplyId) -> Option<ThreadId> {
    let _ = (s, reply);
    todo!("model-time")
}

/// `reply` leaves its caller and its stack; a context lent through it does not return (04,
/// section 7.5).
pub fn remove(s: &mut State, reply: ReplyId) {
    let _ = (s, reply);
    todo!("model-time")
}

/// The stack of `context` becomes empty (04, sections 5.5 and 7.5).
pub fn detach_stack(s: &mut State, context: ContextId) {
    let _ = (s, context);
    todo!("model-time")
}
