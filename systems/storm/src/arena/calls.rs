//! Arenas of the storm of calls: threads with capabilities of every kind.

use alloc::vec::Vec;

use sandglass::abi::sched::domain::DOMAINS;
use sandglass::cap::{CNode, GuardData, ObjectType, Pml4, Rights, SchedContext, SchedParams};
use sandglass::{boot, SetupError};

use super::builder::{home, own_slot, Builder};
use super::Member;
use crate::actor::compose::{PLAYGROUNDS, PRIORITIES};
use crate::arch;
use crate::arch::operations::TABLES;
use crate::area::{AREAS, THREADS};
use crate::catalogue::{Kind, Node};
use crate::ground::{SHELF_RADIX, SPACES};
use sandglass::cap::Attributes;

/// Of a CSpace: capability pointers have a bit pair that chooses among the main CNode, the shelf
/// and the deep path, then 16 bits.
const ROOT_RADIX: u32 = 2;
const BRANCH_BITS: u32 = 16;
const ROOT_GUARD: GuardData = GuardData::new(0, 64 - ROOT_RADIX - BRANCH_BITS);
/// Radix of the CNode between root and main CNode on the deep path.
const DEEP_RADIX: u32 = 4;

impl Builder<'_> {
    /// Threads that make system calls, with capabilities of every kind.
    pub(super) fn for_calls(&mut self) -> Result<Vec<Member>, SetupError> {
        let mut spaces = Vec::new();
        for space in 0..SPACES {
            spaces.push(self.space(space)?);
        }
        let root = self.root()?;
        for node in [Node::Main, Node::Small] {
            self.fill(node)?;
        }
        for &vspace in &spaces {
            self.lend(Node::Main, Kind::VSpace, vspace)?;
            self.lend(Node::Small, Kind::VSpace, vspace)?;
            self.playground(vspace)?;
        }
        for buffer in &self.ground.buffers {
            self.lend(Node::Main, Kind::Frame, *buffer)?;
        }
        let members = self.members(root, &spaces)?;
        self.volatile()?;
        for index in 0..AREAS {
            self.area(index);
        }
        Ok(members)
    }

    /// Gives the storm paging structures that are mapped where it maps its pages.
    fn playground(&mut self, vspace: Pml4) -> Result<(), SetupError> {
        let [address, _] = PLAYGROUNDS;
        let attributes = Attributes::WriteBack;
        let pdpt = self.resources.pdpt()?;
        pdpt.map(vspace, address, attributes)?;
        self.hand_over(TABLES[0], pdpt)?;
        let directory = self.resources.page_directory()?;
        directory.map(vspace, address, attributes)?;
        self.hand_over(TABLES[1], directory)?;
        let table = self.resources.page_table()?;
        table.map(vspace, address, attributes)?;
        self.hand_over(TABLES[2], table)
    }

    /// The root of the CSpaces that have the shelf and the deep path.
    fn root(&mut self) -> Result<CNode, SetupError> {
        let root = self.resources.cnode(ROOT_RADIX)?;
        let deep = self.resources.cnode(DEEP_RADIX)?;
        let main_radix = Node::Main.radix();
        let branches = [
            (self.main, BRANCH_BITS - main_radix),
            (self.ground.shelf, BRANCH_BITS - u32::from(SHELF_RADIX)),
            (deep, BRANCH_BITS - main_radix - DEEP_RADIX),
        ];
        for (index, (node, guard_size)) in (0..).zip(branches) {
            let slot = root.slot_at(index, ROOT_RADIX as u8);
            let guard = GuardData::new(0, guard_size);
            slot.mint_from(own_slot(node), Rights::ALL, guard.raw())?;
        }
        deep.slot_at(0, DEEP_RADIX as u8)
            .copy_from(own_slot(self.main), Rights::ALL)?;
        Ok(root)
    }

    /// Fills a CNode with capabilities of every kind.
    fn fill(&mut self, node: Node) -> Result<(), SetupError> {
        let many = match node {
            Node::Main => 4,
            Node::Small => 1,
        };
        let objects = [
            (Kind::Untyped, ObjectType::Untyped(15), many),
            (Kind::PageUntyped, ObjectType::Untyped(12), many),
            (Kind::Endpoint, ObjectType::Endpoint, many),
            (Kind::Notification, ObjectType::Notification, many),
            (Kind::Reply, ObjectType::Reply, 2 * many),
            (Kind::OtherNode, ObjectType::CNode(2), 1),
            (Kind::OtherNode, ObjectType::CNode(4), 1),
            (Kind::SchedContext, ObjectType::SchedContext(8), many),
            (Kind::Tcb, ObjectType::Tcb, many / 2),
            (Kind::Frame, ObjectType::Page, many),
            (TABLES[0], ObjectType::Pdpt, many / 2),
            (TABLES[1], ObjectType::PageDirectory, many / 2),
            (TABLES[2], ObjectType::PageTable, many),
            (Kind::Pml4, ObjectType::Pml4, many / 2),
        ];
        for (kind, object, count) in objects {
            self.make(node, kind, object, count)?;
        }
        let (main, small) = (self.main, self.small);
        let (first, others) = self.ground.controls.split_at(1);
        for &control in others {
            self.lend(node, Kind::SchedControl, control)?;
        }
        for _ in 0..many.div_ceil(2) {
            self.lend(node, Kind::MainNode, main)?;
            self.lend(node, Kind::SmallNode, small)?;
            self.lend(node, Kind::SchedControl, first[0])?;
            self.lend(node, Kind::AsidControl, boot::ASID_CONTROL)?;
            self.lend(node, Kind::AsidPool, boot::ASID_POOL)?;
            // Where there are several, it would stop the canaries by right.
            if DOMAINS == 1 {
                self.lend(node, Kind::Domain, boot::DOMAIN)?;
            }
        }
        if node == Node::Main {
            arch::lend(self)?;
            self.lend(node, Kind::LargeFrame, self.ground.large)?;
        }
        Ok(())
    }

    fn members(&mut self, root: CNode, spaces: &[Pml4]) -> Result<Vec<Member>, SetupError> {
        let storm_handler = self.resources.endpoint()?;
        self.lend(Node::Main, Kind::Endpoint, storm_handler)?;
        self.lend(Node::Small, Kind::Endpoint, storm_handler)?;
        let mut members = Vec::new();
        for index in 0..THREADS {
            let tcb = self.resources.tcb()?;
            self.lend(Node::Main, Kind::Tcb, tcb)?;
            let context = self.context(index)?;
            if let Some((context, _)) = context {
                self.lend(Node::Main, Kind::SchedContext, context)?;
            }
            let cspace = match home(index) {
                (Node::Small, _) => (self.small, GuardData::new(0, 64 - Node::Small.radix())),
                (Node::Main, true) => (root, ROOT_GUARD),
                (Node::Main, false) => (self.main, GuardData::new(0, 64 - Node::Main.radix())),
            };
            let fault_handler = match self.dice().below(8) {
                0 => None,
                1 | 2 => Some(storm_handler),
                _ => Some(self.ground.fault_handlers[index]),
            };
            let timeout_handler = match self.dice().below(4) {
                0 => Some(storm_handler),
                1 => Some(self.ground.timeout_handlers[index]),
                _ => None,
            };
            let space = index % 5 % SPACES;
            members.push(Member {
                tcb,
                context,
                core: index % self.ground.controls.len(),
                priority: self.dice().choose(PRIORITIES),
                cspace,
                space,
                vspace: spaces[space],
                fault_handler,
                timeout_handler,
            });
        }
        Ok(members)
    }

    /// The context of thread `index`: one of each kind, and none for the last thread.
    fn context(&mut self, index: usize) -> Result<Option<(SchedContext, SchedParams)>, SetupError> {
        let period = 500 + self.dice().below(1_500);
        let budget = 50 + self.dice().below(400);
        let badge = self.dice().below(8);
        let params = match index {
            0..3 => SchedParams::new(period, period),
            3 | 4 => SchedParams::new(budget, period),
            5 => SchedParams::new(budget, period).extra_refills(6).sporadic(),
            6 => SchedParams::new(budget, period).sporadic(),
            _ => return Ok(None),
        };
        let params = params.badge(badge);
        let context = self.resources.sched_context(params.size_bits())?;
        Ok(Some((context, params)))
    }

    /// Objects whose untyped the storm holds, so that it can revoke them all.
    fn volatile(&mut self) -> Result<(), SetupError> {
        let untyped = self.resources.untyped(14)?;
        let objects = [
            (Kind::Tcb, ObjectType::Tcb),
            (Kind::Endpoint, ObjectType::Endpoint),
            (Kind::Notification, ObjectType::Notification),
            (Kind::Reply, ObjectType::Reply),
            (Kind::SchedContext, ObjectType::SchedContext(7)),
        ];
        for (kind, object) in objects {
            let slot = self.slot(Node::Main, kind)?;
            untyped.retype(object, slot, 1)?;
        }
        self.hand_over(Kind::Untyped, untyped)
    }
}
