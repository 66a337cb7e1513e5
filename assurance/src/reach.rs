//! What of a state can be reached at all.
//!
//! A CNode that only its own slots name exists, to the specification, as long as they do; but no
//! thread can ever use them, and no walk through the kernel's memory finds them.

use std::collections::BTreeSet;

use sandglass_model::cap::deletion::forget_unnamed;
use sandglass_model::state::{CNodeId, Cap, SlotId, State, ThreadId, ThreadSlot};

use crate::census::Anchor;

/// `state` without the capabilities that cannot be reached, and without the objects that only these
/// name. What can be reached is what the census of a kernel finds.
pub fn reachable(state: &State, anchor: Anchor) -> State {
    let reached = slots(state, anchor);
    let mut state = state.clone();
    state.caps.slots.retain(|slot, _| reached.contains(slot));
    state.caps.lists.retain(|list| reached.contains(&list[0]));
    forget_unnamed(&mut state);
    state
}

/// The slots that can be reached from the scheduler's threads, from the interrupts and from the CNode
/// that the root task began with: through capabilities, and along derivation lists.
fn slots(state: &State, anchor: Anchor) -> BTreeSet<SlotId> {
    let mut new: Vec<SlotId> = of_cnode(state, anchor.id()).collect();
    new.extend(
        state
            .caps
            .slots
            .range(SlotId::Irq(0)..)
            .map(|(slot, _)| *slot),
    );
    new.extend(scheduled(state).flat_map(|thread| of_thread(state, thread)));
    let mut reached = BTreeSet::new();
    while let Some(slot) = new.pop() {
        if !reached.insert(slot) {
            continue;
        }
        match state.caps.slots[&slot].cap {
            Cap::CNode { object, .. } => new.extend(of_cnode(state, object)),
            Cap::Thread(object) => new.extend(of_thread(state, object)),
            _ => {}
        }
        let list = state.caps.lists.iter().find(|list| list.contains(&slot));
        new.extend(
            list.into_iter()
                .flatten()
                .filter(|slot| !reached.contains(slot)),
        );
    }
    reached
}

/// The slots of a CNode that are not empty.
fn of_cnode(state: &State, cnode: CNodeId) -> impl Iterator<Item = SlotId> + '_ {
    let range = SlotId::CNode(cnode, 0)..=SlotId::CNode(cnode, u64::MAX);
    state.caps.slots.range(range).map(|(slot, _)| *slot)
}

/// The slots of a thread that are not empty.
fn of_thread(state: &State, thread: ThreadId) -> impl Iterator<Item = SlotId> + '_ {
    let slot = |slot| SlotId::Thread(thread, slot);
    let range = slot(ThreadSlot::CSpace)..=slot(ThreadSlot::TimeoutHandler);
    state.caps.slots.range(range).map(|(slot, _)| *slot)
}

/// The threads that the scheduler names.
fn scheduled(state: &State) -> impl Iterator<Item = ThreadId> + '_ {
    state.cores.iter().flat_map(|core| {
        let queued = core.queues.iter().flat_map(|queues| {
            let ready = queues.ready.values().flatten().map(|ready| ready.thread);
            let waiting = queues.release.iter().map(|(_, thread)| *thread);
            ready.chain(waiting)
        });
        core.thread.into_iter().chain(queued)
    })
}
