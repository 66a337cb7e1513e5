//! Reply objects and the stacks that they form (ABI 04, section 7).

use sandglass_kernel::object::reply::Above;
use sandglass_kernel::object::tcb::State;

use super::{require, Finding};
use crate::census::Census;

/// A reply object names the thread that waits for the reply, or to receive with it, exactly if the
/// thread names the reply object.
pub fn who_waits_for_a_reply_is_named_by_it(census: &Census) -> Finding {
    let k = census.k;
    for &thread in &census.threads {
        let reply = match thread.at(k).state() {
            State::BlockedOnReply { reply } => Some(reply),
            State::BlockedOnReceive { reply, .. } => reply,
            _ => None,
        };
        if let Some(reply) = reply {
            let named = reply.at(k).thread();
            require!(
                named == Some(thread),
                "{thread:?} waits with {reply:?}, which names {named:?}"
            );
        }
    }
    for &reply in &census.replies {
        let Some(thread) = reply.at(k).thread() else {
            continue;
        };
        let state = thread.at(k).state();
        let waits = match state {
            State::BlockedOnReply { reply: other } => other == reply,
            State::BlockedOnReceive { reply: other, .. } => other == Some(reply),
            _ => false,
        };
        require!(waits, "{reply:?} names {thread:?}, which is {state:?}");
    }
    Ok(())
}

/// Neighbours in a reply stack name each other, the topmost and its context too; a reply object in a
/// stack has somebody waiting for its reply; no stack turns back on itself.
pub fn stacks_are_linked(census: &Census) -> Finding {
    let k = census.k;
    for &reply in &census.replies {
        let object = reply.at(k);
        if let Some(below) = object.below() {
            let back = below.at(k).above();
            require!(
                back == Above::Reply(reply),
                "{below:?} is below {reply:?}, but names {back:?}"
            );
        }
        match object.above() {
            Above::Nothing => {}
            Above::Reply(above) => {
                let back = above.at(k).below();
                require!(
                    back == Some(reply),
                    "{above:?} is above {reply:?}, but names {back:?}"
                );
            }
            Above::Context(context) => {
                let back = context.at(k).reply();
                require!(
                    back == Some(reply),
                    "{context:?} is above {reply:?}, but names {back:?}"
                );
            }
        }
        if object.below().is_some() || object.above() != Above::Nothing {
            let state = object.thread().map(|thread| thread.at(k).state());
            require!(
                matches!(state, Some(State::BlockedOnReply { .. })),
                "{reply:?} is in a stack, but its thread is {state:?}"
            );
        }
        let stack = std::iter::successors(Some(reply), |reply| reply.at(k).below());
        let height = stack.take(census.replies.len() + 1).count();
        require!(
            height <= census.replies.len(),
            "the stack below {reply:?} has no end"
        );
    }
    for &(context, _) in &census.contexts {
        if let Some(top) = context.at(k).reply() {
            let back = top.at(k).above();
            require!(
                back == Above::Context(context),
                "{top:?} is the topmost of {context:?}, but names {back:?}"
            );
        }
    }
    Ok(())
}
