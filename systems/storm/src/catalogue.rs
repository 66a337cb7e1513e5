//! What the storm believes about its slots: random system calls reach deep only if most of their
//! arguments make sense. Beliefs come from answers, so they may be wrong, like those of any
//! program that shares a CSpace.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// What a slot is believed to hold.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Null,
    /// Something.
    Unknown,
    Untyped,
    /// An untyped of 4 KiB.
    PageUntyped,
    Tcb,
    Endpoint,
    Notification,
    Reply,
    /// A capability of [`Node::Main`], without a guard.
    MainNode,
    /// A capability of [`Node::Small`], without a guard.
    SmallNode,
    /// Any other CNode.
    OtherNode,
    SchedContext,
    SchedControl,
    Frame,
    LargeFrame,
    Pdpt,
    PageDirectory,
    PageTable,
    /// A root of an address space without an identifier.
    Pml4,
    /// One with an identifier.
    VSpace,
    AsidControl,
    AsidPool,
    Domain,
    /// On the shelf, out of the catalogue.
    IrqControl,
    IrqHandler,
    IoPort,
}

impl Kind {
    const ALL: [Self; 26] = [
        Self::Null,
        Self::Unknown,
        Self::Untyped,
        Self::PageUntyped,
        Self::Tcb,
        Self::Endpoint,
        Self::Notification,
        Self::Reply,
        Self::MainNode,
        Self::SmallNode,
        Self::OtherNode,
        Self::SchedContext,
        Self::SchedControl,
        Self::Frame,
        Self::LargeFrame,
        Self::Pdpt,
        Self::PageDirectory,
        Self::PageTable,
        Self::Pml4,
        Self::VSpace,
        Self::AsidControl,
        Self::AsidPool,
        Self::Domain,
        Self::IrqControl,
        Self::IrqHandler,
        Self::IoPort,
    ];

    fn from_raw(raw: u8) -> Self {
        Self::ALL
            .get(usize::from(raw))
            .copied()
            .unwrap_or(Self::Unknown)
    }
}

/// The CNodes that the storm's CSpaces consist of.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    Main,
    Small,
}

impl Node {
    /// Log2 slots.
    pub const fn radix(self) -> u32 {
        match self {
            Self::Main => 8,
            Self::Small => 6,
        }
    }

    pub const fn slots(self) -> usize {
        1 << self.radix()
    }
}

/// A slot of one of these CNodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Position {
    pub node: Node,
    pub slot: usize,
}

/// The beliefs, shared by all threads.
#[repr(C)]
pub struct Catalogue {
    main: [AtomicU8; Node::Main.slots()],
    small: [AtomicU8; Node::Small.slots()],
}

impl Catalogue {
    fn slots(&self, node: Node) -> &[AtomicU8] {
        match node {
            Node::Main => &self.main,
            Node::Small => &self.small,
        }
    }

    pub fn get(&self, at: Position) -> Kind {
        let slot = self.slots(at.node).get(at.slot);
        slot.map_or(Kind::Null, |slot| Kind::from_raw(slot.load(Relaxed)))
    }

    pub fn set(&self, at: Position, kind: Kind) {
        if let Some(slot) = self.slots(at.node).get(at.slot) {
            slot.store(kind as u8, Relaxed);
        }
    }

    /// The first slot of `node` from `start` on, cyclically, that `wanted` accepts.
    pub fn find(&self, node: Node, start: usize, wanted: impl Fn(Kind) -> bool) -> Option<usize> {
        let count = node.slots();
        (start..start + count)
            .map(|slot| slot % count)
            .find(|&slot| wanted(self.get(Position { node, slot })))
    }

    /// Forgets everything.
    pub fn clear(&self) {
        for slot in self.main.iter().chain(&self.small) {
            slot.store(Kind::Null as u8, Relaxed);
        }
    }
}
