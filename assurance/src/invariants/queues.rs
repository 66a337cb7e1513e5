//! The queues of threads.

use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::core::Core;
use sandglass_kernel::object::queue::{Key, Queue};
use sandglass_kernel::object::release::inspect::{TOP, TOURNAMENT};
use sandglass_kernel::object::tcb::{Place, Tcb};
use sandglass_kernel::time::refills::Refills;

use sandglass_kernel::CoreId;

use super::{require, Finding};
use crate::census::{cores, Census};

/// Every ready queue is linked both ways from its head to its tail, holds threads of its priority in
/// the order of their times, and is marked exactly if it has any; `highest` is the highest mark. All
/// of them belong to the core whose queue it is.
pub fn ready_queues_are_linked(census: &Census) -> Finding {
    cores(census.k).try_for_each(|(id, core)| are_linked(census, id, core))
}

fn are_linked(census: &Census, id: CoreId, core: &Core) -> Finding {
    let k = census.k;
    let mut highest = None;
    for priority in 0..=u8::MAX {
        let queue = core.ready.inspect(priority);
        require!(
            queue.marked == queue.head.is_some() && queue.marked == queue.tail.is_some(),
            "priority {priority}: head {:?}, tail {:?}, marked {}",
            queue.head,
            queue.tail,
            queue.marked
        );
        highest = queue.head.map(|_| priority).or(highest);
        let (mut before, mut since) = (None, 0);
        let mut next = queue.head;
        for _ in 0..=census.threads.len() {
            let Some(thread) = next else { break };
            let tcb = thread.at(k);
            let links = tcb.ready_links().inspect();
            require!(
                links.prev == before,
                "priority {priority}: {thread:?} comes behind {:?}, not {before:?}",
                links.prev
            );
            require!(
                tcb.priority() == priority && tcb.place() == Place::Ready && tcb.core() == id,
                "{thread:?} of priority {} and {:?} is at {:?}, but in queue {priority} of {id:?}",
                tcb.priority(),
                tcb.core(),
                tcb.place()
            );
            require!(
                links.since >= since && links.since <= k.core().now(),
                "priority {priority}: {thread:?} came at {}, behind one of {since}",
                links.since
            );
            (before, since, next) = (next, links.since, links.next);
        }
        require!(
            next.is_none() && before == queue.tail,
            "priority {priority}: ends with {before:?}, not {:?}",
            queue.tail
        );
    }
    require!(
        core.ready.highest() == highest,
        "the highest ready priority is {highest:?}, not {:?}",
        core.ready.highest()
    );
    Ok(())
}

/// Every ordered queue is a balanced search tree: parents and children name each other, heights are
/// right and differ by one at most, keys are in order, and the first is the first. In the queue of an
/// object, threads are in the order of their priorities.
pub fn ordered_queues_are_trees(census: &Census) -> Finding {
    let k = census.k;
    let by_priority = |thread: Ref<Tcb>| Some(u64::from(u8::MAX - thread.at(k).priority()));
    for endpoint in &census.endpoints {
        check(census, endpoint.at(k).queue(), by_priority)
            .map_err(|what| format!("the endpoint {endpoint:?}: {what}"))?;
    }
    for notification in &census.notifications {
        check(census, notification.at(k).queue(), by_priority)
            .map_err(|what| format!("the notification {notification:?}: {what}"))?;
    }
    for (id, core) in cores(k) {
        for priority in 0..=u8::MAX {
            let queue = core.release.of(priority);
            if !queue.is_empty() || queue.inspect().root.is_some() {
                check(census, queue, |_| None)
                    .map_err(|what| format!("release queue {priority} of {id:?}: {what}"))?;
            }
        }
    }
    Ok(())
}

/// What has been seen of a tree: the last key, and how many nodes.
struct Walk<'a, R> {
    census: &'a Census<'a>,
    rank: R,
    last: Option<Key>,
    first: Option<Ref<Tcb>>,
    nodes: usize,
}

fn check(census: &Census, queue: &Queue, rank: impl Fn(Ref<Tcb>) -> Option<u64>) -> Finding {
    let view = queue.inspect();
    let mut walk = Walk {
        census,
        rank,
        last: None,
        first: None,
        nodes: 0,
    };
    walk.subtree(view.root, None)?;
    require!(
        walk.first == view.first,
        "the first is {:?}, not {:?}",
        walk.first,
        view.first
    );
    Ok(())
}

impl<R: Fn(Ref<Tcb>) -> Option<u64>> Walk<'_, R> {
    /// Checks the subtree of `node` below `parent`; returns how many black nodes each way down has.
    fn subtree(
        &mut self,
        node: Option<Ref<Tcb>>,
        parent: Option<Ref<Tcb>>,
    ) -> Result<usize, String> {
        let Some(node) = node else { return Ok(0) };
        self.nodes += 1;
        require!(
            self.nodes <= self.census.threads.len(),
            "there are more nodes than threads: a cycle"
        );
        let links = node.at(self.census.k).links().inspect();
        require!(
            links.parent == parent,
            "{node:?} is below {parent:?}, but names {:?}",
            links.parent
        );
        let left = self.subtree(links.left, Some(node))?;
        require!(
            self.last < Some(links.key),
            "{node:?} has {:?}, behind {:?}",
            links.key,
            self.last
        );
        let rank = (self.rank)(node).unwrap_or(links.key.rank);
        require!(
            rank == links.key.rank,
            "{node:?} is queued as {}, but is {rank}",
            links.key.rank
        );
        self.last = Some(links.key);
        self.first = self.first.or(Some(node));
        let right = self.subtree(links.right, Some(node))?;
        require!(
            left == right,
            "{node:?} has {left} black nodes on the left, and {right} on the right"
        );
        let is_red =
            |node: Ref<Tcb>| links.is_red && node.at(self.census.k).links().inspect().is_red;
        require!(
            !(parent.is_none() && links.is_red || parent.is_some_and(is_red)),
            "{node:?} is red, below {parent:?}"
        );
        Ok(left + usize::from(!links.is_red))
    }
}

/// Threads that wait for a refill wait in the queue of their core and priority, until their head
/// refill.
pub fn release_times_are_those_of_the_refills(census: &Census) -> Finding {
    cores(census.k).try_for_each(|(id, core)| times_are_those_of_the_refills(census, id, core))
}

fn times_are_those_of_the_refills(census: &Census, id: CoreId, core: &Core) -> Finding {
    let k = census.k;
    for priority in 0..=u8::MAX {
        let queue = core.release.of(priority);
        if queue.is_empty() {
            continue;
        }
        for thread in crate::abstraction::queued(census, queue) {
            let tcb = thread.at(k);
            require!(
                tcb.priority() == priority && tcb.place() == Place::Release && tcb.core() == id,
                "{thread:?} of priority {} and {:?} is at {:?}, but in release queue {priority} of \
                 {id:?}",
                tcb.priority(),
                tcb.core(),
                tcb.place()
            );
            let Some(context) = tcb.sched_context() else {
                return Err(format!("{thread:?} waits for a refill of no context"));
            };
            let (waits, head) = (tcb.links().key().rank, Refills::of(k, context).head());
            require!(
                waits == head.time,
                "{thread:?} waits until {waits}, but its refill comes at {}",
                head.time
            );
        }
    }
    Ok(())
}

/// Each leaf of the tournament above the release queues has the time of the first thread of its
/// priority, and every other node the lesser of its two; `highest` is the highest priority with a thread.
pub fn the_tournament_knows_the_earliest(census: &Census) -> Finding {
    cores(census.k).try_for_each(|(_, core)| knows_the_earliest(census, core))
}

fn knows_the_earliest(census: &Census, core: &Core) -> Finding {
    let k = census.k;
    let release = &core.release;
    let leaves = TOURNAMENT / 2;
    for priority in 0..=u8::MAX {
        let first = release.of(priority).first();
        let time = first.map_or(u64::MAX, |first| first.at(k).links().key().rank);
        let leaf = release.inspect(leaves + usize::from(priority));
        require!(leaf == time, "leaf {priority} says {leaf}, not {time}");
    }
    for node in TOP..leaves {
        let least = release.inspect(2 * node).min(release.inspect(2 * node + 1));
        let said = release.inspect(node);
        require!(said == least, "node {node} says {said}, not {least}");
    }
    let highest = (0..=u8::MAX).rfind(|&priority| !release.of(priority).is_empty());
    require!(
        release.highest() == highest,
        "the highest priority that waits is {highest:?}, not {:?}",
        release.highest()
    );
    Ok(())
}
