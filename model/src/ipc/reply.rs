//! Answers: a message through a reply object to the thread that waits for it (04, section 7.4).

use super::transfer::{self, Channel};
use super::{fault, message};
use crate::reply;
use crate::state::{Fault, ReplyId, State, ThreadId, ThreadState};
use crate::time::{account, context, schedule};

/// `sender` answers through `reply`, with capabilities if `grant` (04, section 7.4).
pub fn transfer(s: &mut State, sender: ThreadId, reply: ReplyId, grant: bool) {
    // Step 1.
    if !has_caller(s, reply) {
        return;
    }
    // Step 2.
    let caller = reply::pop(s, reply).expect("a caller waits for the answer");
    // Step 3.
    context::sporadic_unblock(s, caller);
    // Step 4.
    let fault = s.thread_mut(caller).fault.take();
    match fault {
        None => {
            let channel = Channel {
                endpoint: None,
                badge: 0,
                grant,
            };
            transfer::message(s, sender, caller, channel);
            s.thread_mut(caller).state = ThreadState::Running;
        }
        Some(fault) => {
            let label = message::info(s, sender).label();
            let words = message::words(s, sender);
            s.thread_mut(caller).state = fault::answer(s, caller, fault, label, &words);
        }
    }
    // Step 5.
    proceed(s, caller, matches!(fault, Some(Fault::Timeout { .. })));
}

/// Whether somebody waits for an answer through `reply`.
fn has_caller(s: &State, reply: ReplyId) -> bool {
    s.replies[&reply].thread.is_some_and(|thread| {
        matches!(s.threads[&thread].state, ThreadState::BlockedOnReply { .. })
    })
}

/// `thread`, which was answered, may run next, if it has time (04, section 7.4 step 5). Whoever
/// has just been told that its time was out is not told again.
fn proceed(s: &mut State, thread: ThreadId, was_timeout: bool) {
    let Some(context) = s.threads[&thread].context else {
        return;
    };
    if !s.threads[&thread].state.is_runnable() {
        return;
    }
    if account::can_run(s, context) {
        schedule::candidate(s, thread);
    } else if account::has_timeout_handler(s, thread) && !was_timeout {
        fault::raise_timeout(s, thread);
    } else {
        schedule::postpone(s, context);
    }
}
