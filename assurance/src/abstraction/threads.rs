//! Threads, and where they wait.

use std::collections::BTreeMap;

use sandglass_kernel::arch::{Register, Transfer};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::endpoint::EndpointState;
use sandglass_kernel::object::fault;
use sandglass_kernel::object::queue::Queue;
use sandglass_kernel::object::reply;
use sandglass_kernel::object::tcb::{State, Tcb};
use sandglass_kernel::Kernel;
use sandglass_model::state::{
    Above, ContextId, Endpoint, EndpointId, Fault, LookupFailure, Notification, NotificationId,
    Registers, Reply, ReplyId, Signals, Thread, ThreadId, ThreadState,
};

use super::time::id as core_id;
use crate::census::Census;

/// The name of a thread.
pub fn id(thread: Ref<Tcb>) -> ThreadId {
    ThreadId(thread.address().get())
}

/// All threads.
pub fn threads(census: &Census) -> BTreeMap<ThreadId, Thread> {
    let k = census.k;
    let threads = census.threads.iter();
    threads.map(|&thread| (id(thread), of(k, thread))).collect()
}

fn of(k: &Kernel, thread: Ref<Tcb>) -> Thread {
    let tcb = thread.at(k);
    let context = tcb.context();
    let order = Transfer::UserContext;
    Thread {
        state: state(tcb.state()),
        registers: Registers {
            user: std::array::from_fn(|i| context.transfer_get(order, i).unwrap_or(0)),
            next_ip: context.get(Register::NextIp),
        },
        priority: tcb.priority(),
        mcp: tcb.max_controlled_priority(),
        domain: tcb.domain(),
        core: core_id(tcb.core()),
        fpu_disabled: tcb.fpu_disabled(),
        buffer_address: tcb.buffer_address(),
        // Who is inactive waits for no handler, though the kernel keeps the fault until it resumes.
        fault: tcb
            .fault()
            .filter(|_| tcb.state() != State::Inactive)
            .map(fault_of),
        context: tcb.sched_context().map(|c| ContextId(c.address().get())),
        notification: tcb
            .notification()
            .map(|n| NotificationId(n.address().get())),
        yield_to: tcb.yield_to().map(|c| ContextId(c.address().get())),
    }
}

fn state(state: State) -> ThreadState {
    match state {
        State::Inactive => ThreadState::Inactive,
        State::Running => ThreadState::Running,
        State::Restart => ThreadState::Restart,
        State::BlockedOnReceive { endpoint, reply } => ThreadState::BlockedOnReceive {
            endpoint: EndpointId(endpoint.address().get()),
            reply: reply.map(|reply| ReplyId(reply.address().get())),
        },
        State::BlockedOnSend { endpoint, sender } => ThreadState::BlockedOnSend {
            endpoint: EndpointId(endpoint.address().get()),
            badge: sender.badge,
            grant: sender.rights.grant(),
            grant_reply: sender.rights.grant_reply(),
            is_call: sender.is_call,
            calls_only: sender.rights.calls_only(),
        },
        State::BlockedOnReply { reply } => ThreadState::BlockedOnReply {
            reply: ReplyId(reply.address().get()),
        },
        State::BlockedOnNotification { notification } => ThreadState::BlockedOnNotification {
            notification: NotificationId(notification.address().get()),
        },
    }
}

fn fault_of(fault: fault::Fault) -> Fault {
    match fault {
        fault::Fault::Cap {
            cptr,
            in_receive_phase,
            failure,
        } => Fault::Cap {
            cptr,
            in_receive_phase,
            failure: lookup_failure(failure),
        },
        fault::Fault::UnknownSyscall { number } => Fault::UnknownSyscall { number },
        fault::Fault::UserException { number, code } => Fault::UserException { number, code },
        fault::Fault::Timeout { badge } => Fault::Timeout { badge },
        fault::Fault::Vm {
            address,
            instruction,
            status,
        } => Fault::Vm {
            address,
            instruction,
            status,
        },
        // Where there is no hardware-debug API, there is no such fault.
        #[allow(unreachable_patterns)]
        fault::Fault::Debug(event) => panic!("not specified: {event:?}"),
    }
}

fn lookup_failure(failure: fault::LookupFailure) -> LookupFailure {
    match failure {
        fault::LookupFailure::InvalidRoot => LookupFailure::InvalidRoot,
        fault::LookupFailure::MissingCapability { bits_left } => LookupFailure::MissingCapability {
            bits_left: bits_left.into(),
        },
        fault::LookupFailure::DepthMismatch {
            bits_left,
            bits_found,
        } => LookupFailure::DepthMismatch {
            bits_left: bits_left.into(),
            bits_found: bits_found.into(),
        },
        fault::LookupFailure::GuardMismatch {
            bits_left,
            guard,
            bits_found,
        } => LookupFailure::GuardMismatch {
            bits_left: bits_left.into(),
            guard_found: guard,
            bits_found: bits_found.into(),
        },
    }
}

/// The threads of an ordered queue, the first first. However corrupt, no more than there are.
pub fn queued(census: &Census, queue: &Queue) -> Vec<Ref<Tcb>> {
    let k = census.k;
    let mut threads = Vec::new();
    let mut next = queue.first();
    while let Some(thread) = next {
        threads.push(thread);
        if threads.len() > census.threads.len() {
            break;
        }
        next = thread.at(k).links().next();
    }
    threads
}

fn names(census: &Census, queue: &Queue) -> Vec<ThreadId> {
    queued(census, queue).into_iter().map(id).collect()
}

/// All endpoints.
pub fn endpoints(census: &Census) -> BTreeMap<EndpointId, Endpoint> {
    let of = |endpoint: &Ref<_>| {
        let object: &sandglass_kernel::object::endpoint::Endpoint = endpoint.at(census.k);
        let state = match object.state() {
            EndpointState::Idle => Endpoint::Idle,
            EndpointState::Senders => Endpoint::Senders(names(census, object.queue())),
            EndpointState::Receivers => Endpoint::Receivers(names(census, object.queue())),
        };
        (EndpointId(endpoint.address().get()), state)
    };
    census.endpoints.iter().map(of).collect()
}

/// All notifications.
pub fn notifications(census: &Census) -> BTreeMap<NotificationId, Notification> {
    let notifications = census.notifications.iter();
    notifications
        .map(|notification| {
            let object = notification.at(census.k);
            let state = if object.is_active() {
                Signals::Active(object.pending())
            } else if object.queue().is_empty() {
                Signals::Idle
            } else {
                Signals::Waiting(names(census, object.queue()))
            };
            let notification_state = Notification {
                state,
                thread: object.thread().map(id),
                context: object
                    .sched_context()
                    .map(|context| ContextId(context.address().get())),
            };
            (
                NotificationId(notification.address().get()),
                notification_state,
            )
        })
        .collect()
}

/// All reply objects.
pub fn replies(census: &Census) -> BTreeMap<ReplyId, Reply> {
    let replies = census.replies.iter();
    replies
        .map(|reply| {
            let object = reply.at(census.k);
            let above = match object.above() {
                reply::Above::Nothing => Above::Nothing,
                reply::Above::Reply(above) => Above::Reply(ReplyId(above.address().get())),
                reply::Above::Context(context) => {
                    Above::Context(ContextId(context.address().get()))
                }
            };
            let state = Reply {
                thread: object.thread().map(id),
                above,
                below: object.below().map(|below| ReplyId(below.address().get())),
            };
            (ReplyId(reply.address().get()), state)
        })
        .collect()
}
