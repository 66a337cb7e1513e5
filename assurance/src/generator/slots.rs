//! Slots, and the arguments of the operations that name some.

use sandglass_abi::cnode::GuardData;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::rights::Rights;
use sandglass_model::state::{Cap, Endpoint, SlotId};

use super::invoke::Arguments;
use super::view::Node;
use super::{Generator, View};
use crate::{isa, world};

/// A slot as CNode operations name it: CNode, index, depth.
type Place = (u64, u64, u64);

/// Radix of the root task's CNode, most slots of which are never used.
const ROOT_RADIX: u8 = 13;

impl Generator {
    /// A CNode, mostly that of the root task.
    fn node(&mut self, view: &View) -> Option<Node> {
        let roots: Vec<Node> = view
            .nodes
            .iter()
            .copied()
            .filter(|node| node.radix == ROOT_RADIX)
            .collect();
        if self.chance(75) {
            if let Some(node) = self.choose(&roots) {
                return Some(node);
            }
        }
        self.choose(&view.nodes)
    }

    /// A slot, mostly an empty one.
    pub(crate) fn empty_slot(&mut self, view: &View) -> Option<Place> {
        let node = self.node(view)?;
        let mut i = self.index(node);
        for _ in 0..6 {
            if view.is_empty(node, i) {
                break;
            }
            i = self.index(node);
        }
        let (index, depth) = node.address(i);
        Some((node.cptr, index, depth))
    }

    fn index(&mut self, node: Node) -> u64 {
        if node.radix == ROOT_RADIX {
            self.rng.u64(world::FREE)
        } else {
            self.rng.u64(0..1 << node.radix)
        }
    }

    /// A slot with a capability that is `wanted`.
    fn full_slot(&mut self, view: &View, wanted: impl Fn(&SlotId, &Cap) -> bool) -> Option<Place> {
        let place = |slot: &SlotId| {
            let SlotId::CNode(object, i) = *slot else {
                return None;
            };
            let node = view.nodes.iter().find(|node| node.object == object)?;
            let (index, depth) = node.address(i);
            Some((node.cptr, index, depth))
        };
        // Slots of CNodes that the thread can invoke, whether or not it can name what is in them.
        let slots = view.state.caps.slots.iter();
        let suiting: Vec<SlotId> = slots
            .filter(|(slot, held)| wanted(slot, &held.cap) && place(slot).is_some())
            .map(|(&slot, _)| slot)
            .collect();
        let slot = self.choose(&suiting)?;
        place(&slot)
    }

    /// A slot whose capability can go without ending everything.
    fn expendable(&mut self, view: &View) -> Option<Place> {
        let first = match self.rng.u32(0..100) {
            0..78 => world::FREE.start,
            78..98 => world::FIRST,
            _ => 0,
        };
        self.full_slot(view, |slot, _| match slot {
            SlotId::CNode(_, i) => *i >= first || *i < 16 && first == 0 || *i < 8,
            _ => false,
        })
    }

    pub(super) fn retype(&mut self, view: &View, cptr: u64) -> Option<Arguments> {
        let memory = view.entries.iter().find(|entry| entry.cptr == cptr)?;
        let Cap::Untyped { bits, device, .. } = memory.cap else {
            return None;
        };
        let kinds = [
            (types::UNTYPED, 4..14),
            (types::TCB, 0..1),
            (types::ENDPOINT, 0..1),
            (types::NOTIFICATION, 0..1),
            (types::CNODE, 1..5),
            (types::SCHED_CONTEXT, 7..11),
            (types::REPLY, 0..1),
        ]
        .into_iter()
        .chain(isa::ARCH_TYPES.map(|kind| (kind, 0..1)))
        .collect::<Vec<_>>();
        // Large memory is what the world is in, and all of it would have to be zeroed.
        if bits > 14 && !device && self.chance(90) {
            return None;
        }
        let range = if device { 9..10 } else { 0..12 };
        let range = if self.chance(8) {
            0..kinds.len()
        } else {
            range
        };
        let (object, sizes) = kinds[self.rng.usize(range)].clone();
        let size = self.rng.u64(sizes);
        let node = self.node(view)?;
        let first = self.index(node);
        let room = (0..16)
            .take_while(|i| view.is_empty(node, first + i))
            .count() as u64;
        let count = if self.chance(60) {
            1
        } else {
            self.rng.u64(1..=room.max(1))
        };
        let (words, root) = if self.chance(70) {
            (vec![object, size, 0, 0, first, count], node.cptr)
        } else {
            // The CNode named by a slot of the root.
            let slot = self.full_slot(
                view,
                |_, cap| matches!(cap, Cap::CNode { object, .. } if *object == node.object),
            );
            let (root, index, depth) = slot?;
            (vec![object, size, index, depth, first, count], root)
        };
        Some((words, vec![root]))
    }

    pub(super) fn cnode_arguments(
        &mut self,
        view: &View,
        label: u64,
        cptr: u64,
    ) -> Option<Arguments> {
        let here = |place: Place| (place.0 == cptr).then_some(place);
        let all = Rights::ALL.raw();
        let rights = if self.chance(50) {
            all
        } else {
            self.rng.u64(0..16)
        };
        match label {
            label::CNODE_REVOKE | label::CNODE_DELETE => {
                // One try may hit a slot of another CNode.
                let place = (0..4).find_map(|_| self.expendable(view).and_then(here));
                let (_, index, depth) = place?;
                Some((vec![index, depth], vec![]))
            }
            label::CNODE_CANCEL_BADGED_SENDS => {
                let queued = |_: &SlotId, cap: &Cap| match cap {
                    Cap::Endpoint { object, badge, .. } => {
                        *badge != 0
                            && matches!(
                                view.state.endpoints.get(object),
                                Some(Endpoint::Senders(_))
                            )
                    }
                    _ => false,
                };
                let badged = |_: &SlotId, cap: &Cap| matches!(cap, Cap::Endpoint { .. });
                let place = self.full_slot(view, queued).and_then(here);
                let place = place.or_else(|| self.full_slot(view, badged).and_then(here));
                let (_, index, depth) = place?;
                Some((vec![index, depth], vec![]))
            }
            label::CNODE_ROTATE => self.rotate(view, cptr),
            _ => {
                let target = (0..4).find_map(|_| self.empty_slot(view).and_then(here));
                let (_, index, depth) = target?;
                let source = match label {
                    label::CNODE_MOVE | label::CNODE_MUTATE => self.expendable(view),
                    // Mapped tables are few, and their copies rare otherwise.
                    _ if self.chance(15) => self.full_slot(view, |_, cap| {
                        matches!(
                            cap,
                            Cap::Paging {
                                mapping: Some(_),
                                ..
                            }
                        )
                    }),
                    _ => self.full_slot(view, |_, _| true),
                };
                let (root, source, source_depth) = source?;
                let data = self.data();
                let words = match label {
                    label::CNODE_COPY => vec![index, depth, source, source_depth, rights],
                    label::CNODE_MINT | label::extension::CNODE_MINT_CALL => {
                        vec![index, depth, source, source_depth, rights, data]
                    }
                    label::CNODE_MUTATE => vec![index, depth, source, source_depth, data],
                    _ => vec![index, depth, source, source_depth],
                };
                Some((words, vec![root]))
            }
        }
    }

    /// A badge or a guard.
    pub(super) fn data(&mut self) -> u64 {
        match self.rng.u32(0..4) {
            0 => 0,
            1 => self.rng.u64(1..64),
            2 => GuardData::new(self.rng.u64(0..8), self.rng.u32(0..64)).raw(),
            _ => self.edge(),
        }
    }

    fn rotate(&mut self, view: &View, cptr: u64) -> Option<Arguments> {
        let (pivot_root, pivot, pivot_depth) = self.expendable(view)?;
        let (source_root, source, source_depth) = self.expendable(view)?;
        let (index, depth) = if self.chance(25) && source_root == cptr {
            (source, source_depth)
        } else {
            let target = self.empty_slot(view)?;
            (target.1, target.2)
        };
        let data = [self.data(), self.data()];
        let data = if self.chance(60) { [0, 0] } else { data };
        Some((
            vec![
                index,
                depth,
                data[0],
                pivot,
                pivot_depth,
                data[1],
                source,
                source_depth,
            ],
            vec![pivot_root, source_root],
        ))
    }
}
