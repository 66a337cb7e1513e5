//! An arena: threads of the storm, with everything that they hold.

use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use sandglass::abi::context::x86_64 as register;
use sandglass::abi::invocation::tcb_flags;
use sandglass::cap::{
    Attributes, CNode, Capability, Endpoint, GuardData, ObjectType, Pml4, Rights, SchedArguments,
    SchedContext, SchedParams, Slot, Tcb,
};
use sandglass::context::UserContext;
use sandglass::resources::Resources;
use sandglass::vspace::VSpace;
use sandglass::{boot, SetupError};

use crate::actor::compose::{PLAYGROUNDS, PORTS, PRIORITIES};
use crate::actor::{entry_address, Dice};
use crate::area::{
    area_address, buffer_address, stack_top, Area, Control, AREAS, AREAS_ADDRESS, AREA_BYTES,
    EDGE_ADDRESS, THREADS,
};
use crate::catalogue::{Catalogue, Kind, Node, Position};
use crate::ground::{Ground, SHELF_RADIX, SPACES};

/// Of a CSpace: capability pointers have a bit pair that chooses among the main CNode, the shelf
/// and the deep path, then 16 bits.
const ROOT_RADIX: u32 = 2;
const BRANCH_BITS: u32 = 16;
const ROOT_GUARD: GuardData = GuardData::new(0, 64 - ROOT_RADIX - BRANCH_BITS);
/// Radix of the CNode between root and main CNode on the deep path.
const DEEP_RADIX: u32 = 4;

/// A thread that the supervisor keeps going, and what it is to be.
#[derive(Clone, Copy)]
struct Member {
    tcb: Tcb,
    /// `None`: a passive thread.
    context: Option<(SchedContext, SchedParams)>,
    /// The core where it begins.
    core: usize,
    priority: u8,
    cspace: (CNode, GuardData),
    /// Number of the address space, and its root.
    space: usize,
    vspace: Pml4,
    fault_handler: Option<Endpoint>,
    timeout_handler: Option<Endpoint>,
}

/// Threads of the storm, with everything that they hold.
pub struct Arena<'g> {
    ground: &'g Ground,
    members: Vec<Member>,
}

/// An arena in the making.
struct Builder<'g> {
    ground: &'g Ground,
    resources: Resources,
    catalogue: &'static Catalogue,
    random: Xoshiro256PlusPlus,
    main: CNode,
    small: CNode,
    /// Slots of the two that are not used yet, in random order.
    free: [Vec<usize>; 2],
}

impl<'g> Arena<'g> {
    /// Builds the arena with this seed, in the memory that [`Ground::clear`] has freed, and
    /// starts its threads.
    pub fn build(ground: &'g Ground, seed: u64) -> Result<Self, SetupError> {
        let mut resources = ground.resources();
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let catalogue = ground.catalogue();
        catalogue.clear();
        let main = resources.cnode(Node::Main.radix())?;
        let small = resources.cnode(Node::Small.radix())?;
        let free = [Node::Main, Node::Small].map(|node| shuffled(node.slots(), &mut random));
        let mut builder = Builder {
            ground,
            resources,
            catalogue,
            random,
            main,
            small,
            free,
        };
        let members = builder.build()?;
        let arena = Self { ground, members };
        for index in 0..arena.members.len() {
            arena.restore(index);
        }
        Ok(arena)
    }

    /// Lets a thread start anew, whatever it is doing; its context stays where it is.
    pub fn revive(&self, index: usize) {
        if let Some(member) = self.members.get(index) {
            // A thread that the storm has deleted stays dead.
            let _ = member.tcb.write_registers(&start_registers(index), true);
        }
    }

    /// Makes a thread what it was at first, as far as the storm has left its objects alive, and
    /// lets it start anew.
    pub fn restore(&self, index: usize) {
        let Some(member) = self.members.get(index) else {
            return;
        };
        // Each step is for what the storm may have changed; each may fail for what it deleted.
        let tcb = member.tcb;
        let _ = tcb.suspend();
        if let Some((context, params)) = member.context {
            let _ = context.unbind();
            let _ = self.ground.controls[member.core].configure(context, params);
        }
        let _ = tcb.set_sched_params(
            boot::TCB,
            SchedArguments {
                mcp: member.priority,
                priority: member.priority,
                sched_context: member.context.map(|(context, _)| context),
                fault_handler: member.fault_handler,
            },
        );
        let (root, guard) = member.cspace;
        let _ = tcb.set_space(member.fault_handler, root, guard, member.vspace);
        let _ = tcb.set_timeout_endpoint(member.timeout_handler);
        if let Some(&frame) = self.ground.buffers.get(index) {
            let _ = tcb.set_ipc_buffer(buffer_address(index), frame);
        }
        let _ = tcb.set_flags(tcb_flags::ALL, 0);
        let buffer = self.ground.buffer_copies[member.space].get(index);
        let buffer = buffer.map(|&frame| (buffer_address(index), frame));
        let areas = (AREAS_ADDRESS, self.ground.areas[member.space]);
        for (address, frame) in buffer.into_iter().chain([areas]) {
            let (rights, attributes) = (Rights::READ_WRITE, Attributes::WriteBack);
            let _ = frame.map(member.vspace, address, rights, attributes);
        }
        self.revive(index);
    }

    /// Configures a thread's context anew, for this core: what a timeout handler may do before it
    /// answers.
    pub fn refill(&self, index: usize, core: usize) {
        let context = self.members.get(index).and_then(|member| member.context);
        if let Some((context, params)) = context {
            let _ = self.ground.controls[core].configure(context, params);
        }
    }

    /// Stops all threads.
    pub fn stop(&self) {
        for member in &self.members {
            let _ = member.tcb.suspend();
        }
    }
}

/// Registers with which thread `index` begins.
fn start_registers(index: usize) -> UserContext {
    let mut registers = UserContext::default();
    registers.set(register::RIP, entry_address());
    registers.set(register::RSP, stack_top(index));
    registers.set(register::RDI, area_address(index));
    registers
}

/// The numbers below `count` in random order.
fn shuffled(count: usize, random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    for i in (1..count).rev() {
        numbers.swap(i, Dice(random).index(i + 1));
    }
    numbers
}

impl Builder<'_> {
    fn build(&mut self) -> Result<Vec<Member>, SetupError> {
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

    fn dice(&mut self) -> Dice<'_> {
        Dice(&mut self.random)
    }

    /// An address space with everything that threads need.
    fn space(&mut self, index: usize) -> Result<Pml4, SetupError> {
        let space = VSpace::new(&mut self.resources)?;
        let ground = self.ground;
        let image = &ground.images[index];
        let image = image.iter().map(|&(at, frame)| (at, frame, Rights::READ));
        let copies = ground.buffer_copies[index].iter().enumerate();
        let buffers = copies.map(|(i, &frame)| (buffer_address(i), frame, Rights::READ_WRITE));
        let areas = (AREAS_ADDRESS, ground.areas[index], Rights::READ_WRITE);
        let edge = (EDGE_ADDRESS, ground.edges[index], Rights::READ);
        for (address, frame, rights) in image.chain(buffers).chain([areas, edge]) {
            // It remembers its mapping in the last arena.
            frame.unmap()?;
            space.map(
                &mut self.resources,
                frame,
                address,
                rights,
                Attributes::WriteBack,
            )?;
        }
        Ok(space.root())
    }

    /// Gives the storm paging structures that are mapped where it maps its pages.
    fn playground(&mut self, vspace: Pml4) -> Result<(), SetupError> {
        let [address, _] = PLAYGROUNDS;
        let attributes = Attributes::WriteBack;
        let pdpt = self.resources.pdpt()?;
        pdpt.map(vspace, address, attributes)?;
        self.hand_over(Kind::Pdpt, pdpt)?;
        let directory = self.resources.page_directory()?;
        directory.map(vspace, address, attributes)?;
        self.hand_over(Kind::PageDirectory, directory)?;
        let table = self.resources.page_table()?;
        table.map(vspace, address, attributes)?;
        self.hand_over(Kind::PageTable, table)
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

    /// An unused slot of `node`, which is believed to hold a `kind` from now on.
    fn slot(&mut self, node: Node, kind: Kind) -> Result<Slot, SetupError> {
        let none = SetupError::NoSlots { wanted: 1 };
        let slot = self.free[node as usize].pop().ok_or(none)?;
        self.catalogue.set(Position { node, slot }, kind);
        let cnode = match node {
            Node::Main => self.main,
            Node::Small => self.small,
        };
        Ok(cnode.slot_at(slot as u64, node.radix() as u8))
    }

    /// Gives the storm a copy of a capability.
    fn lend<C: Capability>(&mut self, node: Node, kind: Kind, cap: C) -> Result<(), SetupError> {
        let slot = self.slot(node, kind)?;
        Ok(slot.copy_from(own_slot(cap), Rights::ALL)?)
    }

    /// Gives the storm a capability that the supervisor does not keep.
    fn hand_over<C: Capability>(&mut self, kind: Kind, cap: C) -> Result<(), SetupError> {
        let slot = self.slot(Node::Main, kind)?;
        Ok(slot.move_from(own_slot(cap))?)
    }

    /// Makes `count` objects for the storm alone.
    fn make(
        &mut self,
        node: Node,
        kind: Kind,
        object: ObjectType,
        count: usize,
    ) -> Result<(), SetupError> {
        for _ in 0..count {
            let slot = self.slot(node, kind)?;
            self.resources.retype(object, slot, 1)?;
        }
        Ok(())
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
            (Kind::Pdpt, ObjectType::Pdpt, many / 2),
            (Kind::PageDirectory, ObjectType::PageDirectory, many / 2),
            (Kind::PageTable, ObjectType::PageTable, many),
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
            self.lend(node, Kind::Domain, boot::DOMAIN)?;
        }
        if node == Node::Main {
            for (first, last) in PORTS {
                let slot = self.slot(node, Kind::IoPort)?;
                boot::IO_PORT_CONTROL.issue(first, last, slot)?;
            }
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

    /// Sets an area up.
    fn area(&mut self, index: usize) {
        let first = self.ground.first_area();
        // SAFETY: `AREAS` of them are mapped, and no thread of the storm runs now.
        let area: &mut Area = unsafe { &mut *first.byte_add(index * AREA_BYTES as usize) };
        let (home, has_shelf) = home(index);
        area.control = Control {
            seed: self.dice().word(),
            starts: AtomicU64::new(0),
            calls: AtomicU64::new(0),
            index: index as u64,
            home,
            has_shelf,
            is_alone: self.ground.controls.len() == 1,
        };
        area.tally.clear();
    }
}

/// Which CNode thread `index` finds its capabilities in, and whether its CSpace has the shelf.
fn home(index: usize) -> (Node, bool) {
    match index % 4 {
        1 => (Node::Main, false),
        2 if index > THREADS / 2 => (Node::Small, false),
        _ => (Node::Main, true),
    }
}

/// Where the supervisor holds a capability.
fn own_slot<C: Capability>(cap: C) -> Slot {
    boot::CNODE.slot(cap.cptr().raw())
}
