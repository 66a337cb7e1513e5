//! What the current thread can name.

use sandglass_model::state::{CNodeId, Cap, SlotId, State, ThreadId, ThreadSlot};

/// A capability that the current thread can name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its address in system calls.
    pub cptr: u64,
    pub slot: SlotId,
    pub cap: Cap,
}

/// A CNode that the current thread can invoke.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Address of its capability in system calls.
    pub cptr: u64,
    pub object: CNodeId,
    pub radix: u8,
    guard: u64,
    guard_size: u8,
}

impl Node {
    /// The index of slot `i` in CNode operations, and its depth.
    pub fn address(self, i: u64) -> (u64, u64) {
        let index = if self.guard_size == 0 {
            i
        } else {
            self.guard << self.radix | i
        };
        (index, u64::from(self.guard_size + self.radix))
    }
}

/// What a thread can name.
pub struct View<'s> {
    pub state: &'s State,
    pub thread: ThreadId,
    pub entries: Vec<Entry>,
    pub nodes: Vec<Node>,
}

/// CNodes inside CNodes are looked into so deep.
const DEPTH: u32 = 4;
const WORD: u32 = 64;

impl<'s> View<'s> {
    /// What `thread` can name.
    pub fn of(state: &'s State, thread: ThreadId) -> View<'s> {
        let mut view = View {
            state,
            thread,
            entries: Vec::with_capacity(256),
            nodes: Vec::new(),
        };
        let root = SlotId::Thread(thread, ThreadSlot::CSpace);
        if let Some(root) = state.caps.slots.get(&root) {
            view.walk(root.cap, 0, 0, DEPTH);
        }
        for entry in &view.entries {
            if let Cap::CNode {
                object,
                radix,
                guard,
                guard_size,
            } = entry.cap
            {
                view.nodes.push(Node {
                    cptr: entry.cptr,
                    object,
                    radix,
                    guard,
                    guard_size,
                });
            }
        }
        view
    }

    /// Walks through `node`, which is reached by the `used` bits of `prefix`.
    fn walk(&mut self, node: Cap, prefix: u64, used: u32, depth: u32) {
        let Cap::CNode {
            object,
            radix,
            guard,
            guard_size,
        } = node
        else {
            return;
        };
        let bits = used + u32::from(guard_size) + u32::from(radix);
        if bits > WORD || depth == 0 {
            return;
        }
        let shifted = |word: u64, by: u32| word.checked_shl(by).unwrap_or(0);
        let prefix = shifted(prefix, u32::from(guard_size)) | guard;
        let slots = SlotId::CNode(object, 0)..=SlotId::CNode(object, u64::MAX);
        for (&slot, held) in self.state.caps.slots.range(slots) {
            let SlotId::CNode(_, i) = slot else { continue };
            let path = shifted(prefix, u32::from(radix)) | i;
            match held.cap {
                Cap::CNode { .. } if bits < WORD => self.walk(held.cap, path, bits, depth - 1),
                cap => self.entries.push(Entry {
                    cptr: shifted(path, WORD - bits),
                    slot,
                    cap,
                }),
            }
        }
    }

    /// Whether slot `i` of `node` is empty.
    pub fn is_empty(&self, node: Node, i: u64) -> bool {
        let slot = SlotId::CNode(node.object, i);
        !self.state.caps.slots.contains_key(&slot)
    }

    /// The thread of the capability.
    pub fn thread_of(&self, cap: Cap) -> Option<&'s sandglass_model::state::Thread> {
        match cap {
            Cap::Thread(thread) => self.state.threads.get(&thread),
            _ => None,
        }
    }
}
