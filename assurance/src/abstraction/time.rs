//! Scheduling contexts, the queues of the scheduler, and the core.

use std::collections::BTreeMap;

use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::core as kernel_core;
use sandglass_kernel::object::domain::DOMAINS;
use sandglass_kernel::object::sched_context::SchedContext as KernelContext;
use sandglass_kernel::time::refills::Refills;
use sandglass_kernel::{self as kernel, Kernel};
use sandglass_model::state::{
    Action, ContextId, Core, CoreId, Domains, NotificationId, Queues, Ready, Refill, ReplyId,
    SchedContext, Ticks,
};

use super::threads::id as thread_id;
use crate::census::{self, Census};

/// All scheduling contexts.
pub fn contexts(census: &Census) -> BTreeMap<ContextId, SchedContext> {
    let k = census.k;
    let contexts = census.contexts.iter();
    contexts
        .map(|&(handle, bits)| {
            let object = handle.at(k);
            let context = SchedContext {
                bits,
                period: object.period(),
                max_refills: object.max_refills().into(),
                refills: refills(k, handle),
                consumed: object.inspect().consumed,
                badge: object.badge(),
                sporadic: object.is_sporadic(),
                core: id(object.core()),
                thread: object.thread().map(thread_id),
                notification: object
                    .notification()
                    .map(|n| NotificationId(n.address().get())),
                reply: object.reply().map(|r| ReplyId(r.address().get())),
                yield_from: object.yield_from().map(thread_id),
            };
            (ContextId(handle.address().get()), context)
        })
        .collect()
}

/// The refill queue. What a round-robin context has used has no time in the kernel: it gets that of
/// the head.
fn refills(k: &Kernel, handle: Ref<KernelContext>) -> Vec<Refill> {
    let context = handle.at(k);
    if !context.is_active() {
        return Vec::new();
    }
    let queue = Refills::of(k, handle);
    if context.is_round_robin() {
        let head = queue.head();
        return [head.amount, context.slice_used()]
            .map(|amount| Refill {
                amount,
                time: head.time,
            })
            .to_vec();
    }
    queue
        .iter()
        .map(|refill| Refill {
            amount: refill.amount,
            time: refill.time,
        })
        .collect()
}

/// The name of a core.
pub fn id(core: kernel::CoreId) -> CoreId {
    CoreId(core.index())
}

/// The cores.
pub fn cores(k: &Kernel) -> Vec<Core> {
    let cores = census::cores(k);
    cores.map(|(id, part)| core(k, id, part)).collect()
}

fn core(k: &Kernel, id: kernel::CoreId, core: &kernel_core::Core) -> Core {
    // Between events, the kernel knows only what other cores have left to this one.
    let action = if core.undecided() {
        Action::ChooseNew
    } else {
        Action::ResumeCurrent
    };
    Core {
        thread: core.thread().map(thread_id),
        context: core.context().map(|c| ContextId(c.address().get())),
        now: core.now(),
        // Idleness is charged to nobody.
        consumed: if core.context().is_some() {
            core.consumed()
        } else {
            0
        },
        queues: (0..DOMAINS as u8)
            .map(|domain| queues(k, core.of(domain)))
            .collect(),
        deadline: deadline(k, core),
        action,
        reprogram: core.reprogram(),
        look: k.machine.is_interrupted(id),
    }
}

/// For when the timer is programmed. Where nothing is to come, the kernel programs the end of time as
/// it does the end of a budget: less the precision.
fn deadline(k: &Kernel, core: &kernel_core::Core) -> Ticks {
    let armed = core.armed();
    let never = Ticks::MAX - k.constants.timer_precision();
    if armed >= never {
        Ticks::MAX
    } else {
        armed
    }
}

/// The ready and release queues of a domain on a core, as the specification has them. The kernel leaves threads
/// whose time has come in the release queues until they are chosen; by deliberate difference 8 they
/// count as ready, each at the place that its time gives it. There is one clock: the time of the last
/// event counts on every core.
fn queues(k: &Kernel, core: kernel_core::Queues) -> Queues {
    let now = k.core().now();
    let mut ready = BTreeMap::new();
    let mut release = Vec::new();
    for priority in 0..=u8::MAX {
        let mut list = Vec::new();
        let mut next = core.ready.first_of(priority);
        while let Some(thread) = next {
            let links = thread.at(k).ready_links();
            list.push(Ready {
                thread: thread_id(thread),
                since: links.since(),
            });
            next = links.next();
        }
        let appended: Vec<Ticks> = list.iter().map(|ready| ready.since).collect();
        let mut released = 0;
        let queue = core.release.of(priority);
        let mut next = queue.first();
        while let Some(thread) = next {
            let key = thread.at(k).links().key();
            if key.time() <= now {
                // Of one instant, those released come first.
                let place = appended.partition_point(|&since| since < key.time()) + released;
                released += 1;
                list.insert(
                    place,
                    Ready {
                        thread: thread_id(thread),
                        since: key.time(),
                    },
                );
            } else {
                release.push((key.time(), priority, thread_id(thread)));
            }
            next = thread.at(k).links().next();
        }
        if !list.is_empty() {
            ready.insert(priority, list);
        }
    }
    // Stable: first come, first served among equals.
    release.sort_by_key(|&(time, priority, _)| (time, priority));
    let release = release.into_iter();
    Queues {
        ready,
        release: release.map(|(time, _, thread)| (time, thread)).collect(),
    }
}

/// The domain schedule.
pub fn domains(k: &Kernel) -> Domains {
    let view = k.domains.inspect();
    Domains {
        entries: view
            .entries
            .iter()
            .map(|entry| (entry.domain, entry.duration))
            .collect(),
        start: k.domains.start(),
        index: view.index,
        current: k.core().domain(),
        end: k.domains.end(),
    }
}
