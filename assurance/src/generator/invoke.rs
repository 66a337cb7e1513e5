//! Arguments of operations, such as they might well be.

use sandglass_abi::cnode::GuardData;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::x86_64 as arch;
use sandglass_abi::object as types;
use sandglass_abi::object::x86_64 as arch_types;
use sandglass_abi::rights::Rights;
use sandglass_model::state::{Cap, Endpoint, SlotId};

use super::view::Node;
use super::{Generator, View};
use crate::operations::{Kind, Operation};
use crate::world;

/// Message words and extra capabilities.
type Arguments = (Vec<u64>, Vec<u64>);
/// A slot as CNode operations name it: CNode, index, depth.
type Place = (u64, u64, u64);

/// Radix of the root task's CNode, most slots of which are never used.
const ROOT_RADIX: u8 = 13;
/// User addresses at which scripts map things: in each of several tables.
const ADDRESSES: [u64; 8] = [
    0x0100_0000_0000,
    0x0100_0000_1000,
    0x0100_0020_0000,
    0x0100_4000_0000,
    0x0180_0000_0000,
    0x7000_0000,
    0x40_1000,
    0x7fff_ffff_f000,
];

impl Generator {
    /// Arguments for `operation` of the capability at `cptr`; `None` if there is nothing to use it
    /// on.
    pub(super) fn arguments(
        &mut self,
        view: &View,
        operation: &Operation,
        cptr: u64,
    ) -> Option<Arguments> {
        match operation.kind {
            Kind::Untyped => self.retype(view, cptr),
            Kind::Thread => self.thread_arguments(view, operation.label, cptr),
            Kind::CNode => self.cnode_arguments(view, operation.label, cptr),
            Kind::IrqControl => self.irq_control(view, operation.label),
            Kind::IrqHandler => {
                let notification =
                    self.pick(view, |cap| matches!(cap, Cap::Notification { .. }))?;
                Some((vec![], vec![notification]))
            }
            Kind::Domain => self.domain(view, operation.label),
            Kind::SchedControl => self.configure(view),
            Kind::SchedContext => self.context_arguments(view, operation.label, cptr),
            Kind::Pdpt | Kind::PageDirectory | Kind::PageTable | Kind::Pml4 => {
                let space = self.address_space(view)?;
                let address = self.choose(&ADDRESSES)?;
                Some((vec![address, self.rng.u64(0..8)], vec![space]))
            }
            Kind::Frame => self.page_arguments(view, cptr),
            Kind::AsidControl => {
                let page = |cap: &Cap| matches!(cap, Cap::Untyped { bits, .. } if u32::from(*bits) == types::ASID_POOL_BITS);
                let memory = self.pick(view, page)?;
                let (node, index, depth) = self.empty_slot(view)?;
                Some((vec![index, depth], vec![memory, node]))
            }
            Kind::AsidPool => {
                let root = self.pick(view, |cap| matches!(cap, Cap::Pml4 { .. }))?;
                Some((vec![], vec![root]))
            }
            Kind::IoPortControl => {
                let (node, index, depth) = self.empty_slot(view)?;
                let first = self.rng.u64(0..0x400);
                let last = first + self.rng.u64(0..16);
                Some((vec![first, last, index, depth], vec![node]))
            }
            Kind::IoPort => {
                let ports = view.entries.iter().find(|entry| entry.cptr == cptr)?;
                let Cap::IoPort { first, last } = ports.cap else {
                    return None;
                };
                let port = self.rng.u64(u64::from(first)..=u64::from(last) + 1);
                Some((vec![port, self.rng.u64(..)], vec![]))
            }
        }
    }

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
    pub(super) fn empty_slot(&mut self, view: &View) -> Option<Place> {
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

    fn retype(&mut self, view: &View, cptr: u64) -> Option<Arguments> {
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
            (arch_types::PDPT, 0..1),
            (arch_types::PML4, 0..1),
            (arch_types::PAGE, 0..1),
            (arch_types::PAGE_TABLE, 0..1),
            (arch_types::PAGE_DIRECTORY, 0..1),
            (arch_types::LARGE_PAGE, 0..1),
            (arch_types::HUGE_PAGE, 0..1),
        ];
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

    fn cnode_arguments(&mut self, view: &View, label: u64, cptr: u64) -> Option<Arguments> {
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
                    label::CNODE_MINT => vec![index, depth, source, source_depth, rights, data],
                    label::CNODE_MUTATE => vec![index, depth, source, source_depth, data],
                    _ => vec![index, depth, source, source_depth],
                };
                Some((words, vec![root]))
            }
        }
    }

    /// A badge or a guard.
    fn data(&mut self) -> u64 {
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

    /// An endpoint that can be a handler, or none.
    fn handler(&mut self, view: &View) -> u64 {
        let handler = |cap: &Cap| match cap {
            Cap::Endpoint { rights, .. } => rights.write && (rights.grant || rights.grant_reply),
            _ => false,
        };
        if self.chance(25) {
            0
        } else {
            self.pick(view, handler).unwrap_or(0)
        }
    }

    fn address_space(&mut self, view: &View) -> Option<u64> {
        let assigned = |cap: &Cap| matches!(cap, Cap::Pml4 { asid: Some(_), .. });
        self.pick(view, assigned)
    }

    fn thread_arguments(&mut self, view: &View, label: u64, cptr: u64) -> Option<Arguments> {
        let thread = |cap: &Cap| matches!(cap, Cap::Thread(_));
        let page = |cap: &Cap| matches!(cap, Cap::Frame { device: false, .. });
        let cnode = |cap: &Cap| matches!(cap, Cap::CNode { .. });
        let buffer = 0x7000_0000 + self.rng.u64(0..4) * 1024;
        let roots = |generator: &mut Self| {
            let root = if generator.chance(70) {
                Some(sandglass_abi::boot::slot::CNODE)
            } else {
                generator.pick(view, cnode)
            };
            let data = if generator.chance(85) {
                0
            } else {
                generator.data()
            };
            Some((root?, generator.address_space(view)?, data))
        };
        Some(match label {
            label::TCB_READ_REGISTERS => {
                (vec![self.rng.u64(0..8) / 7, self.rng.u64(1..21)], vec![])
            }
            label::TCB_WRITE_REGISTERS => {
                let count = self.rng.u64(0..21);
                let mut words = vec![self.rng.u64(0..4), count];
                words.extend((0..count).map(|_| self.edge()));
                (words, vec![])
            }
            label::TCB_COPY_REGISTERS => {
                (vec![self.rng.u64(0..16)], vec![self.pick(view, thread)?])
            }
            label::TCB_CONFIGURE => {
                let (cspace, vspace, data) = roots(self)?;
                let frame = self.pick(view, page)?;
                (vec![data, 0, buffer], vec![cspace, vspace, frame])
            }
            label::TCB_SET_PRIORITY | label::TCB_SET_MC_PRIORITY => {
                let priority = self.choose(&[20, 99, 100, 119, 120, 140, 150, 160, 200, 255])?;
                (vec![priority], vec![self.pick(view, thread)?])
            }
            label::TCB_SET_SCHED_PARAMS => {
                let priority = self.choose(&[20, 100, 120, 140, 150, 160, 200])?;
                let context = if self.chance(30) {
                    0
                } else {
                    self.pick(view, |cap| matches!(cap, Cap::SchedContext { .. }))?
                };
                let authority = self.pick(view, thread)?;
                let handler = self.handler(view);
                (vec![255, priority], vec![authority, context, handler])
            }
            label::TCB_SET_TIMEOUT_ENDPOINT => (vec![], vec![self.handler(view)]),
            label::TCB_SET_IPC_BUFFER => {
                let address = if self.chance(10) { 0 } else { buffer };
                (vec![address], vec![self.pick(view, page)?])
            }
            label::TCB_SET_SPACE => {
                let (cspace, vspace, data) = roots(self)?;
                (vec![data, 0], vec![self.handler(view), cspace, vspace])
            }
            label::TCB_RESUME => {
                // One that is stopped, if the choice can be made.
                let chosen = view.entries.iter().find(|entry| entry.cptr == cptr)?;
                if !Self::is_stopped(view, chosen.cap) && self.chance(50) {
                    return None;
                }
                (vec![], vec![])
            }
            label::TCB_BIND_NOTIFICATION => {
                let any = |cap: &Cap| matches!(cap, Cap::Notification { .. });
                let free = |cap: &Cap| match cap {
                    Cap::Notification { object, rights, .. } => {
                        let bound = view.state.notifications.get(object);
                        rights.read && bound.is_some_and(|other| other.thread.is_none())
                    }
                    _ => false,
                };
                let found = self.pick(view, free).or_else(|| self.pick(view, any));
                (vec![], vec![found?])
            }
            label::TCB_SET_TLS_BASE => (vec![self.edge()], vec![]),
            label::TCB_SET_FLAGS => (vec![self.rng.u64(0..4), self.rng.u64(0..4)], vec![]),
            _ => (vec![], vec![]),
        })
    }

    fn irq_control(&mut self, view: &View, label: u64) -> Option<Arguments> {
        let (node, index, depth) = self.empty_slot(view)?;
        let vector = self.rng.u64(0..108);
        let words = match label {
            label::IRQ_CONTROL_GET => vec![vector, index, depth],
            arch::IRQ_CONTROL_GET_IOAPIC => {
                let (pin, level) = (self.rng.u64(0..24), self.rng.u64(0..2));
                vec![index, depth, 0, pin, level, self.rng.u64(0..2), vector]
            }
            _ => {
                let bus = [
                    self.rng.u64(0..256),
                    self.rng.u64(0..32),
                    self.rng.u64(0..8),
                ];
                vec![index, depth, bus[0], bus[1], bus[2], 0, vector]
            }
        };
        Some((words, vec![node]))
    }

    fn domain(&mut self, view: &View, label: u64) -> Option<Arguments> {
        Some(match label {
            label::DOMAIN_SET => {
                let thread = self.pick(view, |cap| matches!(cap, Cap::Thread(_)))?;
                (vec![self.rng.u64(0..4) / 3], vec![thread])
            }
            label::DOMAIN_SCHEDULE_CONFIGURE => {
                let duration = self.choose(&[0, 1, 1000, (1 << 56) - 1, 1 << 56])?;
                (vec![self.rng.u64(0..3) / 2, 0, duration], vec![])
            }
            _ => (vec![self.rng.u64(0..3) / 2], vec![]),
        })
    }

    fn configure(&mut self, view: &View) -> Option<Arguments> {
        let context = self.pick(view, |cap| matches!(cap, Cap::SchedContext { .. }))?;
        let entry = view.entries.iter().find(|entry| entry.cptr == context)?;
        let bits = match entry.cap {
            Cap::SchedContext { bits, .. } => u32::from(bits),
            _ => return None,
        };
        let period = self.choose(&[100, 200, 500, 1_000, 5_000, 10_000, 1_000_000])?;
        let budget = match self.rng.u32(0..32) {
            // Such a context suffices for no entry to the kernel, and its thread would repeat its
            // first system call for ever: few of them are enough.
            0 => 20,
            1..12 => period,
            _ => self.rng.u64(60..=period),
        };
        let period = if self.chance(2) { budget + 1 } else { period };
        let most = sandglass_abi::sched::max_extra_refills(bits);
        let extra = self.rng.u64(0..=most.min(12));
        let (badge, flags) = (self.edge(), self.rng.u64(0..2));
        Some((vec![budget, period, extra, badge, flags], vec![context]))
    }

    fn context_arguments(&mut self, view: &View, label: u64, cptr: u64) -> Option<Arguments> {
        let entry = view.entries.iter().find(|entry| entry.cptr == cptr)?;
        let Cap::SchedContext { object, .. } = entry.cap else {
            return None;
        };
        let context = view.state.contexts.get(&object)?;
        let thread = |cap: &Cap| matches!(cap, Cap::Thread(_));
        let notification = |cap: &Cap| matches!(cap, Cap::Notification { .. });
        match label {
            label::SCHED_CONTEXT_BIND => {
                let passive = |cap: &Cap| view.thread_of(*cap).is_some_and(|t| t.context.is_none());
                let bound = if self.chance(25) {
                    self.pick(view, notification)
                } else {
                    self.pick(view, passive).or_else(|| self.pick(view, thread))
                };
                Some((vec![], vec![bound?]))
            }
            label::SCHED_CONTEXT_UNBIND_OBJECT => {
                let own = |cap: &Cap| match cap {
                    Cap::Thread(thread) => context.thread == Some(*thread),
                    Cap::Notification { object, .. } => context.notification == Some(*object),
                    _ => false,
                };
                let bound = self.pick(view, own);
                Some((vec![], vec![bound.or_else(|| self.pick(view, thread))?]))
            }
            _ => Some((vec![], vec![])),
        }
    }

    fn page_arguments(&mut self, view: &View, cptr: u64) -> Option<Arguments> {
        let entry = view.entries.iter().find(|entry| entry.cptr == cptr)?;
        let Cap::Frame { mapping, bits, .. } = entry.cap else {
            return None;
        };
        let space = self.address_space(view)?;
        let address = match mapping {
            Some(mapping) if self.chance(80) => mapping.vaddr,
            _ => {
                let page = self.rng.u64(0..4) << 12;
                let address = self.choose(&ADDRESSES)? + page;
                if self.chance(90) {
                    address & !((1 << bits) - 1)
                } else {
                    address
                }
            }
        };
        let words = vec![address, self.rng.u64(0..16), self.rng.u64(0..8)];
        Some((words, vec![space]))
    }
}
