//! Threads and their states.

use rustc_hash::FxHashMap;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::endpoint::EndpointState;
use sandglass_kernel::object::tcb::{Place, State, Tcb};
use sandglass_kernel::CoreId;

use super::{require, Finding};
use crate::abstraction::queued;
use crate::census::{cores, queues, Census};

/// Where a thread was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Current(CoreId),
    Ready(CoreId),
    Release(CoreId),
    /// In the queue of an endpoint, as a sender or a receiver.
    Endpoint {
        at: u64,
        sends: bool,
    },
    Notification(u64),
}

fn places(census: &Census) -> FxHashMap<u64, Vec<Found>> {
    let k = census.k;
    let mut places: FxHashMap<u64, Vec<Found>> = FxHashMap::default();
    let mut put = |thread: Ref<Tcb>, place| {
        places
            .entry(thread.address().get())
            .or_default()
            .push(place);
    };
    for (id, core) in cores(k) {
        if let Some(thread) = core.thread() {
            put(thread, Found::Current(id));
        }
    }
    for (id, _, queues) in queues(k) {
        for priority in 0..=u8::MAX {
            let mut next = queues.ready.first_of(priority);
            for _ in 0..=census.threads.len() {
                let Some(thread) = next else { break };
                put(thread, Found::Ready(id));
                next = thread.at(k).ready_links().next();
            }
            let queue = queues.release.of(priority);
            if !queue.is_empty() {
                for thread in queued(census, queue) {
                    put(thread, Found::Release(id));
                }
            }
        }
    }
    for endpoint in &census.endpoints {
        let sends = endpoint.at(k).state() == EndpointState::Senders;
        let at = endpoint.address().get();
        for thread in queued(census, endpoint.at(k).queue()) {
            put(thread, Found::Endpoint { at, sends });
        }
    }
    for notification in &census.notifications {
        for thread in queued(census, notification.at(k).queue()) {
            put(thread, Found::Notification(notification.address().get()));
        }
    }
    places
}

/// Each thread is in exactly the place that its state says: one that could run runs, on its own core
/// only, or is in a queue of the scheduler there, so that a context that may run is never lost; one that is blocked is in the queue
/// of its object; others are nowhere.
pub fn each_thread_is_in_one_place(census: &Census) -> Finding {
    let k = census.k;
    let places = places(census);
    for &thread in &census.threads {
        let tcb = thread.at(k);
        let found = places.get(&thread.address().get());
        let found = found.map_or(&[][..], Vec::as_slice);
        let said = match tcb.place() {
            Place::None => None,
            Place::Ready => Some(Found::Ready(tcb.core())),
            Place::Release => Some(Found::Release(tcb.core())),
        };
        require!(
            said.is_none() || found == said.as_slice(),
            "{thread:?} says that it is at {:?}, and is at {found:?}",
            tcb.place()
        );
        let active = tcb
            .sched_context()
            .is_some_and(|context| context.at(k).is_active());
        let right = match tcb.state() {
            State::Running | State::Restart if active => {
                let own = tcb.core();
                [Found::Current(own), Found::Ready(own), Found::Release(own)]
                    .iter()
                    .any(|place| found == [*place])
            }
            State::Running | State::Restart | State::Inactive | State::BlockedOnReply { .. } => {
                found.is_empty()
            }
            State::BlockedOnSend { endpoint, .. } => {
                let at = endpoint.address().get();
                found == [Found::Endpoint { at, sends: true }]
            }
            State::BlockedOnReceive { endpoint, .. } => {
                let at = endpoint.address().get();
                found == [Found::Endpoint { at, sends: false }]
            }
            State::BlockedOnNotification { notification } => {
                found == [Found::Notification(notification.address().get())]
            }
        };
        require!(
            right,
            "{thread:?} is {:?}, with an active context: {active}, and is at {found:?}",
            tcb.state()
        );
    }
    Ok(())
}

/// A thread is on the core for which its context is configured (ABI 04, section 15).
pub fn threads_are_where_their_contexts_are(census: &Census) -> Finding {
    let k = census.k;
    for thread in &census.threads {
        let core = thread.at(k).core();
        if let Some(context) = thread.at(k).sched_context() {
            let configured = context.at(k).core();
            require!(
                core == configured,
                "{thread:?} is on {core:?}, its context {context:?} for {configured:?}"
            );
        }
    }
    Ok(())
}

/// A thread has a fault pending only while it waits to tell it or for the answer.
pub fn a_fault_waits_for_its_handler(census: &Census) -> Finding {
    for thread in &census.threads {
        let tcb = thread.at(census.k);
        let waits = matches!(
            tcb.state(),
            State::BlockedOnSend { .. } | State::BlockedOnReply { .. }
        );
        require!(
            tcb.fault().is_none() || waits || tcb.state() == State::Inactive,
            "{thread:?} is {:?} with {:?} pending",
            tcb.state(),
            tcb.fault()
        );
    }
    Ok(())
}
