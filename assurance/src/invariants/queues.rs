//! The queues of threads.

use sandglass_kernel::inspect::{AboveView, BranchView, QueueView};
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::core::Queues;
use sandglass_kernel::object::queue::{Key, Queue};
use sandglass_kernel::object::release::inspect::{leaf as leaf_of, tournament};
use sandglass_kernel::object::tcb::{Place, State, Tcb};
use sandglass_kernel::time::refills::Refills;

use sandglass_kernel::CoreId;

use super::{require, Finding};
use crate::census::{queues, Census};

/// Every ready queue is linked both ways from its head to its tail, holds threads of its priority in
/// the order of their times, and is marked exactly if it has any; `highest` is the highest mark. All
/// of them belong to the core and the domain whose queue it is.
pub fn ready_queues_are_linked(census: &Census) -> Finding {
    queues(census.k).try_for_each(|(id, domain, queues)| are_linked(census, id, domain, queues))
}

fn are_linked(census: &Census, id: CoreId, domain: u8, core: Queues) -> Finding {
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
                tcb.priority() == priority
                    && tcb.place() == Place::Ready
                    && (tcb.core(), tcb.domain()) == (id, domain),
                "{thread:?} of priority {}, {:?} and domain {} is at {:?}, but in queue {priority} of {id:?}, \
                 domain {domain}",
                tcb.priority(),
                tcb.core(),
                tcb.domain(),
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

/// Every ordered queue is a list in the order of keys, and a tree over it: what is below names what is above, each node tells
/// keys apart by a lower bit than the one above it, and its owner's leaf is below it. In the queue of an object, threads are
/// in the order of their priorities, and senders, nobody else, are numbered.
pub fn ordered_queues_are_trees(census: &Census) -> Finding {
    let k = census.k;
    let by_priority = |thread: Ref<Tcb>, key: Key| {
        let rank = u8::MAX - thread.at(k).priority();
        let is_sender = matches!(thread.at(k).state(), State::BlockedOnSend { .. });
        require!(
            key.rank() == rank && (key.position() > 0) == is_sender,
            "{thread:?} is queued as {key:?}, but is {rank}, and sends or not: {is_sender}"
        );
        Ok(())
    };
    for endpoint in &census.endpoints {
        check(census, endpoint.at(k).queue(), by_priority)
            .map_err(|what| format!("the endpoint {endpoint:?}: {what}"))?;
    }
    for notification in &census.notifications {
        check(census, notification.at(k).queue(), by_priority)
            .map_err(|what| format!("the notification {notification:?}: {what}"))?;
    }
    for (id, _, queues) in queues(k) {
        for priority in 0..=u8::MAX {
            let queue = queues.release.of(priority);
            if !queue.is_empty() || queue.inspect().root != BranchView::Nowhere {
                check(census, queue, |_, _| Ok(()))
                    .map_err(|what| format!("release queue {priority} of {id:?}: {what}"))?;
            }
        }
    }
    Ok(())
}

fn check(census: &Census, queue: &Queue, fits: impl Fn(Ref<Tcb>, Key) -> Finding) -> Finding {
    if !queue.admits() {
        return is_being_emptied(census, queue);
    }
    let view = queue.inspect();
    let listed = listed(census, view.first, fits)?;
    let mut walk = Walk {
        census,
        leaves: Vec::new(),
        nodes: Vec::new(),
    };
    let above = AboveView {
        parent: None,
        is_right: false,
    };
    walk.subtree(view.root, above, u64::BITS)?;
    let links = |thread: &Ref<Tcb>| thread.at(census.k).links().inspect();
    let leaves = listed.iter().filter(|thread| links(thread).leaf.is_some());
    require!(
        leaves.eq(&walk.leaves),
        "the leaves are {:?}, not those of {listed:?}",
        walk.leaves
    );
    for thread in listed {
        require!(
            links(&thread).node.is_some() == walk.nodes.contains(&thread),
            "the node of {thread:?} is in the tree, or is not, and does not say so"
        );
    }
    Ok(())
}

/// The queue is linked both ways, and there is no tree over it.
fn is_being_emptied(census: &Census, queue: &Queue) -> Finding {
    let QueueView { root, first } = queue.inspect();
    require!(
        root == BranchView::Nowhere,
        "a queue that is being emptied has a tree: {root:?}"
    );
    let (mut before, mut next) = (None, first);
    for _ in 0..=census.threads.len() {
        let Some(thread) = next else { return Ok(()) };
        let links = thread.at(census.k).links().inspect();
        require!(
            links.prev == before,
            "{thread:?} comes behind {before:?}, but names {:?}",
            links.prev
        );
        (before, next) = (next, links.next);
    }
    Err("there are more in the list than threads: a cycle".to_owned())
}

/// The threads from `first` on, which are linked both ways, in order.
fn listed(
    census: &Census,
    first: Option<Ref<Tcb>>,
    fits: impl Fn(Ref<Tcb>, Key) -> Finding,
) -> Result<Vec<Ref<Tcb>>, String> {
    let k = census.k;
    let mut listed: Vec<Ref<Tcb>> = Vec::new();
    let (mut next, mut first_equal) = (first, first);
    while let Some(thread) = next {
        require!(
            listed.len() < census.threads.len(),
            "there are more in the list than threads: a cycle"
        );
        let links = thread.at(k).links().inspect();
        let before = listed.last().copied();
        require!(
            links.prev == before,
            "{thread:?} comes behind {before:?}, but names {:?}",
            links.prev
        );
        let last = before.map(|before| before.at(k).links().key());
        require!(
            last <= Some(links.key),
            "{thread:?} has {:?}, behind {last:?}",
            links.key
        );
        fits(thread, links.key)?;
        let equal = |next: Ref<Tcb>| next.at(k).links().key() == links.key;
        require!(
            links.leaf.is_some() != links.next.is_some_and(equal),
            "{thread:?} is a leaf before an equal, or is none and no equal follows"
        );
        if last != Some(links.key) {
            first_equal = Some(thread);
        }
        if let (Some(_), Some(first)) = (links.leaf, first_equal) {
            let other = |is: bool, other| is.then_some(other);
            let last_equal = first.at(k).links().inspect().last_equal;
            require!(
                links.first_equal == other(first != thread, first)
                    && last_equal == other(first != thread, thread),
                "{first:?} and {thread:?} are the ends of equals, and name {last_equal:?} and {:?}",
                links.first_equal
            );
        }
        listed.push(thread);
        next = links.next;
    }
    Ok(listed)
}

/// What has been seen of a tree: whose leaves, in order, and whose nodes.
struct Walk<'a> {
    census: &'a Census<'a>,
    leaves: Vec<Ref<Tcb>>,
    nodes: Vec<Ref<Tcb>>,
}

impl Walk<'_> {
    /// Checks what `branch` leads to, which is below `above`, and of which all nodes tell apart less than `bit`.
    fn subtree(&mut self, branch: BranchView, above: AboveView, bit: u32) -> Finding {
        let node = match branch {
            BranchView::Nowhere => return Ok(()),
            BranchView::Leaf(leaf) => {
                let named = leaf.at(self.census.k).links().inspect().leaf;
                require!(
                    named == Some(above),
                    "the leaf of {leaf:?} is below {above:?}, but names {named:?}"
                );
                self.leaves.push(leaf);
                return Ok(());
            }
            BranchView::Node(node) => node,
        };
        let Some(inner) = node.at(self.census.k).links().inspect().node else {
            return Err(format!("the node of {node:?} is in the tree, but unused"));
        };
        require!(
            inner.above == above && inner.bit < bit,
            "the node of {node:?} is below {above:?} and bit {bit}, but is {inner:?}"
        );
        require!(
            !inner.branches.contains(&BranchView::Nowhere),
            "the node of {node:?} leads nowhere: {inner:?}"
        );
        self.nodes.push(node);
        let first = self.leaves.len();
        for (side, branch) in inner.branches.into_iter().enumerate() {
            let above = AboveView {
                parent: Some(node),
                is_right: side == 1,
            };
            let first = self.leaves.len();
            self.subtree(branch, above, inner.bit)?;
            let links = node.at(self.census.k).links();
            for leaf in self.leaves.iter().skip(first) {
                let key = leaf.at(self.census.k).links().key();
                require!(
                    key.agrees(links.key(), inner.bit) && key.has(inner.bit) == (side == 1),
                    "{leaf:?} with {key:?} is on side {side} of {node:?}: {inner:?}"
                );
            }
        }
        require!(
            self.leaves[first..].contains(&node) || !is_leaf(self.census, node),
            "the leaf of {node:?} is not below its node"
        );
        Ok(())
    }
}

fn is_leaf(census: &Census, thread: Ref<Tcb>) -> bool {
    thread.at(census.k).links().inspect().leaf.is_some()
}

/// Threads that wait for a refill wait in the queue of their core, domain and priority, until their head
/// refill.
pub fn release_times_are_those_of_the_refills(census: &Census) -> Finding {
    queues(census.k).try_for_each(|(id, domain, queues)| {
        times_are_those_of_the_refills(census, id, domain, queues)
    })
}

fn times_are_those_of_the_refills(
    census: &Census,
    id: CoreId,
    domain: u8,
    core: Queues,
) -> Finding {
    let k = census.k;
    for priority in 0..=u8::MAX {
        let queue = core.release.of(priority);
        if queue.is_empty() {
            continue;
        }
        for thread in crate::abstraction::queued(census, queue) {
            let tcb = thread.at(k);
            require!(
                tcb.priority() == priority
                    && tcb.place() == Place::Release
                    && (tcb.core(), tcb.domain()) == (id, domain),
                "{thread:?} of priority {}, {:?} and domain {} is at {:?}, but in release queue {priority} of \
                 {id:?}, domain {domain}",
                tcb.priority(),
                tcb.core(),
                tcb.domain(),
                tcb.place()
            );
            let Some(context) = tcb.sched_context() else {
                return Err(format!("{thread:?} waits for a refill of no context"));
            };
            let (waits, head) = (tcb.links().key().time(), Refills::of(k, context).head());
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
/// priority, and every other node the least of its four; `highest` is the highest priority with a thread.
pub fn the_tournament_knows_the_earliest(census: &Census) -> Finding {
    queues(census.k).try_for_each(|(_, _, queues)| knows_the_earliest(census, queues))
}

fn knows_the_earliest(census: &Census, core: Queues) -> Finding {
    let k = census.k;
    let release = &core.release;
    for priority in 0..=u8::MAX {
        let first = release.of(priority).first();
        let time = first.map_or(u64::MAX, |first| first.at(k).links().key().time());
        let leaf = release.inspect(leaf_of(priority));
        require!(leaf == time, "leaf {priority} says {leaf}, not {time}");
    }
    for (node, children) in tournament() {
        let least = children.map(|child| release.inspect(child)).min();
        let (said, least) = (release.inspect(node), least.unwrap_or(u64::MAX));
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
