//! Objects, and what they say of each other.

use sandglass_abi::object as sizes;
use sandglass_kernel::mem::{Kind, Ref};
use sandglass_kernel::object::reply::Above;
use sandglass_kernel::object::tcb::State;

use super::{require, Finding};
use crate::abstraction::queued;
use crate::census::{cores, level, scheduled, Census, Site};

/// Every reference that an object or the core keeps is to an object that some capability names: a
/// reference to memory that was reclaimed would not be.
pub fn references_are_to_live_objects(census: &Census) -> Finding {
    let k = census.k;
    let live = |kind: Kind, address: Option<u64>, who: &str, of: u64| match address {
        Some(address) if !census.has(kind, address) => Err(format!(
            "the {who} of {of:#x} is a {kind:?} at {address:#x}, which no capability names"
        )),
        _ => Ok(()),
    };
    for &thread in &census.threads {
        let (tcb, of) = (thread.at(k), at(thread));
        live(
            Kind::SchedContext,
            tcb.sched_context().map(at),
            "context",
            of,
        )?;
        live(
            Kind::Notification,
            tcb.notification().map(at),
            "bound notification",
            of,
        )?;
        live(
            Kind::SchedContext,
            tcb.yield_to().map(at),
            "target of the yield",
            of,
        )?;
        match tcb.state() {
            State::BlockedOnReceive { endpoint, reply } => {
                live(
                    Kind::Endpoint,
                    Some(at(endpoint)),
                    "endpoint to receive at",
                    of,
                )?;
                live(Kind::Reply, reply.map(at), "offered reply object", of)?;
            }
            State::BlockedOnSend { endpoint, .. } => {
                live(
                    Kind::Endpoint,
                    Some(at(endpoint)),
                    "endpoint to send to",
                    of,
                )?;
            }
            State::BlockedOnReply { reply } => {
                live(Kind::Reply, Some(at(reply)), "awaited reply object", of)?;
            }
            State::BlockedOnNotification { notification } => {
                live(
                    Kind::Notification,
                    Some(at(notification)),
                    "awaited notification",
                    of,
                )?;
            }
            State::Inactive | State::Running | State::Restart => {}
        }
    }
    for &(context, _) in &census.contexts {
        let (object, of) = (context.at(k), at(context));
        live(Kind::Tcb, object.thread().map(at), "thread", of)?;
        live(
            Kind::Notification,
            object.notification().map(at),
            "notification",
            of,
        )?;
        live(
            Kind::Reply,
            object.reply().map(at),
            "topmost reply object",
            of,
        )?;
        live(
            Kind::Tcb,
            object.yield_from().map(at),
            "yielding thread",
            of,
        )?;
    }
    for &notification in &census.notifications {
        let (object, of) = (notification.at(k), at(notification));
        live(Kind::Tcb, object.thread().map(at), "bound thread", of)?;
        live(
            Kind::SchedContext,
            object.sched_context().map(at),
            "context",
            of,
        )?;
        for waiter in queued(census, object.queue()) {
            live(Kind::Tcb, Some(at(waiter)), "waiter", of)?;
        }
    }
    for &endpoint in &census.endpoints {
        for waiter in queued(census, endpoint.at(k).queue()) {
            live(Kind::Tcb, Some(at(waiter)), "queue", at(endpoint))?;
        }
    }
    for &reply in &census.replies {
        let (object, of) = (reply.at(k), at(reply));
        live(Kind::Tcb, object.thread().map(at), "waiting thread", of)?;
        live(Kind::Reply, object.below().map(at), "lower neighbour", of)?;
        match object.above() {
            Above::Nothing => {}
            Above::Reply(above) => live(Kind::Reply, Some(at(above)), "upper neighbour", of)?,
            Above::Context(context) => {
                live(Kind::SchedContext, Some(at(context)), "lent context", of)?;
            }
        }
    }
    for thread in scheduled(k) {
        live(Kind::Tcb, Some(at(thread)), "scheduler", 0)?;
    }
    for (_, core) in cores(k) {
        let context = core.context().map(at);
        live(Kind::SchedContext, context, "current context", 0)?;
    }
    Ok(())
}

fn at<T>(object: Ref<T>) -> u64 {
    object.address().get()
}

/// What a capability names: (start, log2 of bytes); `None` for untyped memory, which contains
/// others, for device memory, and for what is no memory.
pub(super) fn extent(site: &Site) -> Option<(u64, u32)> {
    let cap = site.view.cap;
    let word = cap.word();
    let shape = word.shape() as u32 & 0x3f;
    let bits = match cap.kind() {
        Kind::Frame if !cap.frame()?.is_device() => shape,
        Kind::SchedContext => shape,
        Kind::CNode => shape + sizes::SLOT_BITS,
        // A zombie of a thread says so in the upmost bit of its shape.
        Kind::Zombie if word.shape() & 0x40 == 0 => shape + sizes::SLOT_BITS,
        Kind::Zombie | Kind::Tcb => sizes::TCB_BITS,
        Kind::Endpoint => sizes::ENDPOINT_BITS,
        Kind::Notification => sizes::NOTIFICATION_BITS,
        Kind::Reply => sizes::REPLY_BITS,
        kind if level(kind).is_some() => sizes::PAGING_STRUCTURE_BITS,
        Kind::AsidPool => sizes::ASID_POOL_BITS,
        _ => return None,
    };
    Some((word.address().get(), bits))
}

/// Each piece of memory is one object, or none.
pub fn objects_do_not_overlap(census: &Census) -> Finding {
    let mut extents: Vec<_> = census.sites.iter().filter_map(extent).collect();
    extents.sort_unstable();
    extents.dedup();
    for pair in extents.windows(2) {
        let [(start, bits), (next, _)] = pair else {
            continue;
        };
        require!(
            start + (1 << bits) <= *next,
            "the object of 2^{bits} bytes at {start:#x} reaches into that at {next:#x}"
        );
    }
    Ok(())
}

/// Threads, contexts and notifications that are bound to each other say so on both sides.
pub fn bindings_are_mutual(census: &Census) -> Finding {
    let k = census.k;
    for &thread in &census.threads {
        let tcb = thread.at(k);
        if let Some(context) = tcb.sched_context() {
            let back = context.at(k).thread();
            require!(
                back == Some(thread),
                "{thread:?} runs on {context:?}, which has {back:?}"
            );
        }
        if let Some(notification) = tcb.notification() {
            let back = notification.at(k).thread();
            require!(
                back == Some(thread),
                "{thread:?} has {notification:?}, which has {back:?}"
            );
        }
        if let Some(context) = tcb.yield_to() {
            let back = context.at(k).yield_from();
            require!(
                back == Some(thread),
                "{thread:?} yielded to {context:?}: {back:?}"
            );
        }
    }
    for &(context, _) in &census.contexts {
        let object = context.at(k);
        if let Some(thread) = object.thread() {
            let back = thread.at(k).sched_context();
            require!(
                back == Some(context),
                "{context:?} is of {thread:?}, which has {back:?}"
            );
        }
        if let Some(notification) = object.notification() {
            let back = notification.at(k).sched_context();
            require!(
                back == Some(context),
                "{context:?} has {notification:?}: {back:?}"
            );
        }
        if let Some(thread) = object.yield_from() {
            let back = thread.at(k).yield_to();
            require!(
                back == Some(context),
                "{thread:?} yielded to {context:?}: {back:?}"
            );
        }
    }
    for &notification in &census.notifications {
        let object = notification.at(k);
        if let Some(thread) = object.thread() {
            let back = thread.at(k).notification();
            require!(
                back == Some(notification),
                "{notification:?} is of {thread:?}: {back:?}"
            );
        }
        if let Some(context) = object.sched_context() {
            let back = context.at(k).notification();
            require!(
                back == Some(notification),
                "{notification:?} has {context:?}: {back:?}"
            );
        }
    }
    Ok(())
}
