//! A read-only view of what the kernel's types keep to themselves, for the sweeps and the
//! abstraction of the `assurance` package. It exists on the host only: the kernel that ships does
//! not contain it.
//!
//! Most of the state can be read through the public interface of its objects. What cannot is
//! returned here as plain values, by a method `inspect` of the type. Each file of this folder is a
//! module of the type that it looks into, so that fields stay private.

use crate::arch::abi::Line;
use crate::cap::Capability;
use crate::mem::{Ref, Slot, Span};
use crate::object::domain::{Entry, LENGTH};
use crate::object::{Key, Tcb};

pub use crate::cap::derivation::inspect::{is_parent, same_object};

/// A capability slot, with its place in its derivation list and the flags of its capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlotView {
    pub cap: Capability,
    pub prev: Option<Ref<Slot>>,
    pub next: Option<Ref<Slot>>,
    pub revocable: bool,
    pub first_badged: bool,
}

/// A thread's links in the ordered queue that it is in; what was left behind if it is in none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinksView {
    pub prev: Option<Ref<Tcb>>,
    pub next: Option<Ref<Tcb>>,
    pub key: Key,
    /// Of the last of equals: the first; and of the first: the last.
    pub first_equal: Option<Ref<Tcb>>,
    pub last_equal: Option<Ref<Tcb>>,
    /// What is above its leaf, if that is in the tree.
    pub leaf: Option<AboveView>,
    /// Its node, if that is in the tree.
    pub node: Option<NodeView>,
}

/// An inner node of an ordered queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NodeView {
    pub bit: u32,
    /// What the keys below the left branch agree in.
    pub left: Key,
    pub above: AboveView,
    /// To keys without the bit, and with it.
    pub branches: [BranchView; 2],
}

/// The thread whose node is above a leaf or a node; `None` above the root.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AboveView {
    pub parent: Option<Ref<Tcb>>,
    pub is_right: bool,
}

/// Where a branch leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BranchView {
    Nowhere,
    Leaf(Ref<Tcb>),
    Node(Ref<Tcb>),
}

/// The ends of an ordered queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueView {
    pub root: BranchView,
    pub first: Option<Ref<Tcb>>,
}

/// The ready queue of a priority.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadyView {
    pub head: Option<Ref<Tcb>>,
    pub tail: Option<Ref<Tcb>>,
    /// Whether the bitmap says that there is a thread.
    pub marked: bool,
}

/// A thread's links in the ready queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadyLinksView {
    pub prev: Option<Ref<Tcb>>,
    pub next: Option<Ref<Tcb>>,
    /// Ticks; see [`ReadyLinks::since`](crate::object::ready::ReadyLinks::since).
    pub since: u64,
}

/// What a scheduling context does not tell in public.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContextView {
    /// Ticks consumed since the last report.
    pub consumed: u64,
}

/// The domain schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DomainView {
    pub entries: [Entry; LENGTH],
    pub index: u64,
}

/// An interrupt: where it comes from, if it is issued, and the slot of its notification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IrqView {
    pub line: Option<Line>,
    pub slot: Option<Ref<Slot>>,
}

/// The slots of the notifications of all interrupts.
pub type IrqSlots = Option<Span>;
