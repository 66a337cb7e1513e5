//! Reply objects and the stacks of calls over which a context was lent (04, section 7).
//!
//! Invariants: neighbours in a stack name each other; only the topmost names the context, which
//! names it. A reply object in a stack has a thread, which is blocked on it.

use crate::state::{Above, ContextId, Reply, ReplyId, State, ThreadId, ThreadState};
use crate::time::{context, cores, schedule};

/// `caller` waits for an answer through `reply`; its context is lent to `callee` if it may be
/// (04, section 7.2).
pub fn push(s: &mut State, caller: ThreadId, callee: ThreadId, reply: ReplyId, can_donate: bool) {
    s.reply_mut(reply).thread = Some(caller);
    s.thread_mut(caller).state = ThreadState::BlockedOnReply { reply };
    schedule::stopped(s, caller);
    let lent = s.threads[&caller].context;
    if let Some(context) = lent.filter(|_| can_donate && s.threads[&callee].context.is_none()) {
        let below = s.context_mut(context).reply.replace(reply);
        s.reply_mut(reply).above = Above::Context(context);
        s.reply_mut(reply).below = below;
        if let Some(below) = below {
            s.reply_mut(below).above = Above::Reply(reply);
        }
        context::donate(s, context, callee);
    }
}

/// `reply` leaves its caller, which becomes inactive, and its stack; a context lent through it
/// returns to the caller, also from whoever runs on it on another core (04, section 7.4 step 2;
/// 04, section 7.5, deletion). Returns the caller.
pub fn pop(s: &mut State, reply: ReplyId) -> Option<ThreadId> {
    let caller = s.replies[&reply].thread?;
    if s.threads[&caller].state != (ThreadState::BlockedOnReply { reply }) {
        return None;
    }
    stall_borrower(s, reply);
    let Reply { above, below, .. } = s.replies[&reply];
    remove(s, reply);
    if let Above::Context(context) = above {
        s.context_mut(context).reply = below;
        if let Some(below) = below {
            s.reply_mut(below).above = Above::Context(context);
        }
        if s.threads[&caller].context.is_none() {
            context::donate(s, context, caller);
        }
    }
    Some(caller)
}

/// Whoever runs on another core on the context that was lent through `reply` is stalled.
pub fn stall_borrower(s: &mut State, reply: ReplyId) {
    if let Above::Context(context) = s.replies[&reply].above {
        cores::stall_user(s, context);
    }
}

/// `reply` leaves its caller, which becomes inactive, and its stack, which is cut at both sides; a
/// context lent through it does not return (04, section 7.5).
pub fn remove(s: &mut State, reply: ReplyId) {
    match s.replies[&reply].above {
        Above::Nothing => {}
        Above::Context(context) => s.context_mut(context).reply = None,
        Above::Reply(above) => s.reply_mut(above).below = None,
    }
    if let Some(below) = s.replies[&reply].below {
        s.reply_mut(below).above = Above::Nothing;
    }
    let caller = s.replies[&reply].thread;
    *s.reply_mut(reply) = Reply {
        thread: None,
        above: Above::Nothing,
        below: None,
    };
    if let Some(caller) = caller {
        s.thread_mut(caller).state = ThreadState::Inactive;
    }
}

/// The stack of `context` becomes empty: its top is detached (04, sections 5.5 and 7.5).
pub fn detach_stack(s: &mut State, context: ContextId) {
    if let Some(top) = s.context_mut(context).reply.take() {
        s.reply_mut(top).above = Above::Nothing;
    }
}
