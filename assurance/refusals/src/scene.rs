//! An object of every kind in every state that some check asks for. Since failed decodes change nothing, all cases can
//! have the same.

use alloc::format;
use alloc::vec::Vec;

use sandglass_abi::boot::slot;
use sandglass_abi::error::LookupFailureType;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;

use crate::case::{lookup, missing, range, Call, Case, Refusal};
use crate::isa;

pub const WRITE: u64 = 1;
pub const READ: u64 = 2;
pub const ALL: u64 = 0b1111;
const READ_WRITE: u64 = READ | WRITE;

/// A guard of three bits, 101.
pub const GUARD: u64 = 5 << 6 | 3;
pub const RADIX: u64 = 4;

/// A thread and its scheduling context.
#[derive(Clone, Copy, Debug)]
pub struct Thread {
    /// Slots in the root CNode.
    pub tcb: u64,
    pub context: u64,
}

/// A root task that makes the scene. Its CNode is what the kernel gave it, and its maximum controlled priority 255.
pub trait Maker {
    /// An invocation failed, or there is no memory or slot.
    type Failure;

    /// Ticks in the unit of the architecture, [`isa::UNIT_US`].
    fn ticks_per_unit(&self) -> u64 {
        self.ticks_per_us() * isa::UNIT_US
    }

    /// Ticks in a microsecond.
    fn ticks_per_us(&self) -> u64;

    /// Whether the kernel is one for several cores, however many there are.
    fn is_for_several_cores(&self) -> bool;

    /// The slot of scheduling control.
    fn sched_control(&self) -> u64 {
        slot::FIRST_DYNAMIC
    }

    /// The thread that will make the refused invocations, in the root task's spaces.
    fn caller(&self) -> Thread;

    /// Slots of untyped memory: of RAM, with room for the scene, 2 MiB, and of a device, at least 2^32 bytes.
    fn memory(&self) -> u64;
    fn device_memory(&self) -> u64;

    /// An empty slot of the root CNode.
    ///
    /// # Errors
    /// There is none left.
    fn fresh_slot(&mut self) -> Result<u64, Self::Failure>;

    /// The root task invokes.
    ///
    /// # Errors
    /// The invocation is refused.
    fn invoke(
        &mut self,
        cap: u64,
        label: u64,
        words: &[u64],
        caps: &[u64],
    ) -> Result<(), Self::Failure>;

    /// A thread that waits for what is in slot `on`, with a budget of its own.
    ///
    /// # Errors
    /// It cannot be made.
    fn waiting_thread(&mut self, on: u64) -> Result<Thread, Self::Failure>;
}

/// Slots of the root CNode.
pub struct Scene {
    pub ticks_per_us: u64,
    pub ticks_per_unit: u64,
    pub sched_control: u64,
    pub is_for_several_cores: bool,
    /// Who makes the refused invocations: a thread of maximum controlled priority 100.
    pub caller: Thread,
    pub empty: u64,
    /// A notification that no case names.
    pub signals: u64,
    pub endpoint: u64,
    /// To the same endpoint.
    pub badged_endpoint: u64,
    pub receive_endpoint: u64,
    pub write_endpoint: u64,
    /// Idle, and bound to nothing.
    pub notification: u64,
    pub badged_notification: u64,
    pub write_notification: u64,
    pub read_notification: u64,
    pub waited_notification: u64,
    pub bound_notification: u64,
    /// A context is bound to it.
    pub funded_notification: u64,
    /// A CNode of 16 slots, of which slot 1 has an endpoint; and the same behind a guard.
    pub node: u64,
    pub guarded_node: u64,
    /// Memory with children: 64 bytes of 4 KiB are used.
    pub parent: u64,
    /// Memory of 256 bytes without children.
    pub memory: u64,
    /// Memory of 4 KiB without children.
    pub page_memory: u64,
    pub device_memory: u64,
    pub device_page_memory: u64,
    /// Inactive, maximum controlled priority 7.
    pub thread: u64,
    /// Has a bound notification and a context.
    pub served: Thread,
    /// Blocked on an endpoint, without a context.
    pub blocked: u64,
    /// Its capability space is the only capability to a CNode.
    pub sole_owner: u64,
    /// Above the maximum controlled priority of the caller.
    pub high: Thread,
    /// Not configured, bound to nothing; of 2^8 bytes.
    pub context: u64,
    /// Bound to `funded_notification`.
    pub spending: u64,
    pub irq_handler: u64,
    /// Of the architecture: I/O ports, or the signal of an interrupt.
    pub device: u64,
    pub frame: u64,
    pub device_frame: u64,
    /// In `space`: a page at 0x1000, below a full path of tables. There are a page of 2 MiB at
    /// 0x20_0000 and one of 1 GiB at 0x4000_0000 too.
    pub page: u64,
    /// Not mapped.
    pub free_page: u64,
    pub free_large_page: u64,
    pub free_huge_page: u64,
    /// Where there are caches to be maintained: a page at 0x5000 that another has taken the place of, and one at 0x6000 that
    /// can only be read.
    pub covered_page: u64,
    pub readable_page: u64,
    /// From the upper level to the lower, each with a copy, so that none is the last capability.
    pub tables: [u64; 3],
    /// Not mapped.
    pub free_tables: [u64; 3],
    pub space: u64,
    pub other_space: u64,
    pub unassigned_space: u64,
    /// Its identifier names nothing any more.
    pub gone_space: u64,
    /// Its identifier names another.
    pub replaced_space: u64,
    /// A frame that was mapped in `gone_space`.
    pub frame_of_gone: u64,
}

/// What the root task makes, in terms of its invocations.
struct Workshop<'m, M>(&'m mut M);

impl<M: Maker> Workshop<'_, M> {
    fn invoke(
        &mut self,
        cap: u64,
        label: u64,
        words: &[u64],
        caps: &[u64],
    ) -> Result<(), M::Failure> {
        self.0.invoke(cap, label, words, caps)
    }

    fn retype(&mut self, memory: u64, object: u64, size: u64) -> Result<u64, M::Failure> {
        let slot = self.0.fresh_slot()?;
        let words = [object, size, 0, 0, slot, 1];
        self.invoke(memory, label::UNTYPED_RETYPE, &words, &[slot::CNODE])?;
        Ok(slot)
    }

    fn make(&mut self, object: u64, size: u64) -> Result<u64, M::Failure> {
        let memory = self.0.memory();
        self.retype(memory, object, size)
    }

    fn of_device(&mut self, object: u64, size: u64) -> Result<u64, M::Failure> {
        let memory = self.0.device_memory();
        self.retype(memory, object, size)
    }

    fn copy(&mut self, source: u64, rights: u64) -> Result<u64, M::Failure> {
        let slot = self.0.fresh_slot()?;
        let words = [slot, 64, source, 64, rights];
        self.invoke(slot::CNODE, label::CNODE_COPY, &words, &[slot::CNODE])?;
        Ok(slot)
    }

    fn mint(&mut self, source: u64, data: u64) -> Result<u64, M::Failure> {
        let slot = self.0.fresh_slot()?;
        let words = [slot, 64, source, 64, ALL, data];
        self.invoke(slot::CNODE, label::CNODE_MINT, &words, &[slot::CNODE])?;
        Ok(slot)
    }

    fn delete(&mut self, slot: u64) -> Result<(), M::Failure> {
        self.invoke(slot::CNODE, label::CNODE_DELETE, &[slot, 64], &[])
    }

    /// A thread of `priority` in the root task's spaces, inactive, and a context that is not configured.
    fn thread(&mut self, priority: u64) -> Result<Thread, M::Failure> {
        let tcb = self.make(types::TCB, 0)?;
        let context = self.make(types::SCHED_CONTEXT, 8)?;
        let caps = [slot::CNODE, slot::VSPACE, slot::NULL];
        self.invoke(tcb, label::TCB_CONFIGURE, &[0; 3], &caps)?;
        self.invoke(tcb, label::TCB_SET_PRIORITY, &[priority], &[slot::TCB])?;
        Ok(Thread { tcb, context })
    }

    fn bind(&mut self, thread: Thread) -> Result<(), M::Failure> {
        let bind = label::SCHED_CONTEXT_BIND;
        self.invoke(thread.context, bind, &[], &[thread.tcb])
    }

    /// A root table with an identifier of `pool`.
    fn space(&mut self, pool: u64) -> Result<u64, M::Failure> {
        let space = self.make(isa::ROOT_TABLE, 0)?;
        self.invoke(pool, isa::ASID_POOL_ASSIGN, &[], &[space])?;
        Ok(space)
    }

    /// A new object at `vaddr` in `space`.
    fn mapped(&mut self, object: u64, map: u64, vaddr: u64, space: u64) -> Result<u64, M::Failure> {
        let made = self.make(object, 0)?;
        self.map(made, map, vaddr, space)?;
        Ok(made)
    }

    fn map(&mut self, cap: u64, map: u64, vaddr: u64, space: u64) -> Result<(), M::Failure> {
        self.invoke(cap, map, &[vaddr, READ_WRITE, 0], &[space])
    }

    fn pool(&mut self) -> Result<u64, M::Failure> {
        let memory = self.make(types::UNTYPED, 12)?;
        let pool = self.0.fresh_slot()?;
        let make = isa::ASID_CONTROL_MAKE_POOL;
        let caps = [memory, slot::CNODE];
        self.invoke(slot::ASID_CONTROL, make, &[pool, 64], &caps)?;
        Ok(pool)
    }
}

impl Scene {
    /// Has `maker` make it.
    ///
    /// # Errors
    /// What `maker` says.
    pub fn make<M: Maker>(maker: &mut M) -> Result<Self, M::Failure> {
        let ticks_per_us = maker.ticks_per_us();
        let ticks_per_unit = maker.ticks_per_unit();
        let sched_control = maker.sched_control();
        let caller = maker.caller();
        let device_memory = maker.device_memory();
        let w = &mut Workshop(maker);

        let endpoint = w.make(types::ENDPOINT, 0)?;
        let badged_endpoint = w.mint(endpoint, 7)?;
        let receive_endpoint = w.copy(endpoint, READ)?;
        let write_endpoint = w.copy(endpoint, READ_WRITE)?;
        let notification = w.make(types::NOTIFICATION, 0)?;
        let signals = w.make(types::NOTIFICATION, 0)?;
        let badged_notification = w.mint(notification, 7)?;
        let write_notification = w.copy(notification, WRITE)?;
        let read_notification = w.copy(notification, READ)?;
        let node = w.make(types::CNODE, RADIX)?;
        let words = [1, RADIX, endpoint, 64, ALL];
        w.invoke(node, label::CNODE_COPY, &words, &[slot::CNODE])?;
        let guarded_node = w.mint(node, GUARD)?;

        let parent = w.make(types::UNTYPED, 12)?;
        w.retype(parent, types::NOTIFICATION, 0)?;
        let memory = w.make(types::UNTYPED, 8)?;
        let page_memory = w.make(types::UNTYPED, 12)?;
        let device_page_memory = w.of_device(types::UNTYPED, 12)?;

        let waited_notification = w.make(types::NOTIFICATION, 0)?;
        w.0.waiting_thread(waited_notification)?;
        let queue = w.make(types::ENDPOINT, 0)?;
        let blocked = w.0.waiting_thread(queue)?;
        w.invoke(blocked.context, label::SCHED_CONTEXT_UNBIND, &[], &[])?;

        let thread = w.thread(5)?;
        let limit = label::TCB_SET_MC_PRIORITY;
        w.invoke(thread.tcb, limit, &[7], &[slot::TCB])?;
        let served = w.thread(5)?;
        w.bind(served)?;
        let bound_notification = w.make(types::NOTIFICATION, 0)?;
        let bind = label::TCB_BIND_NOTIFICATION;
        w.invoke(served.tcb, bind, &[], &[bound_notification])?;
        let high = w.thread(200)?;
        w.bind(high)?;
        let sole_owner = w.make(types::TCB, 0)?;
        let sole = w.make(types::CNODE, RADIX)?;
        let caps = [sole, slot::VSPACE, endpoint];
        w.invoke(sole_owner, label::TCB_CONFIGURE, &[0; 3], &caps)?;
        w.delete(sole)?;

        let context = w.make(types::SCHED_CONTEXT, 8)?;
        let spending = w.make(types::SCHED_CONTEXT, 8)?;
        let funded_notification = w.make(types::NOTIFICATION, 0)?;
        let bind = label::SCHED_CONTEXT_BIND;
        w.invoke(spending, bind, &[], &[funded_notification])?;
        let irq_handler = w.0.fresh_slot()?;
        let (get, words) = isa::get_irq(irq_handler);
        w.invoke(slot::IRQ_CONTROL, get, &words, &[slot::CNODE])?;
        let device = w.0.fresh_slot()?;
        let is_for_several_cores = w.0.is_for_several_cores();
        let (control, issue, words) = isa::get_device(device, is_for_several_cores);
        w.invoke(control, issue, &words, &[slot::CNODE])?;

        let space = w.space(slot::ASID_POOL)?;
        let other_space = w.space(slot::ASID_POOL)?;
        let unassigned_space = w.make(isa::ROOT_TABLE, 0)?;
        let mut tables = [0; 3];
        for (table, (object, map)) in tables.iter_mut().zip(isa::TABLES) {
            *table = w.mapped(object, map, 0, space)?;
        }
        for mapped in tables {
            // So that it is not the last capability.
            w.copy(mapped, ALL)?;
        }
        let map_page = isa::PAGE_MAP;
        let page = w.mapped(isa::PAGE, map_page, 0x1000, space)?;
        let large_page = w.of_device(isa::LARGE_PAGE, 0)?;
        w.map(large_page, map_page, 0x20_0000, space)?;
        let huge_page = w.of_device(isa::HUGE_PAGE, 0)?;
        w.map(huge_page, map_page, 0x4000_0000, space)?;

        // Three pools: the first one's number goes to the third, the second one's to nobody.
        let first = w.pool()?;
        let second = w.pool()?;
        let replaced_space = w.space(first)?;
        let gone_space = w.space(second)?;
        for (object, map) in isa::TABLES {
            w.mapped(object, map, 0, gone_space)?;
        }
        let frame_of_gone = w.mapped(isa::PAGE, map_page, 0x1000, gone_space)?;
        w.delete(first)?;
        w.delete(second)?;
        let third = w.pool()?;
        w.space(third)?;

        let frame = w.make(isa::PAGE, 0)?;
        let free_page = w.make(isa::PAGE, 0)?;
        let device_frame = w.of_device(isa::PAGE, 0)?;
        let free_large_page = w.of_device(isa::LARGE_PAGE, 0)?;
        let free_huge_page = w.of_device(isa::HUGE_PAGE, 0)?;
        let mut free_tables = [0; 3];
        for (table, (object, _)) in free_tables.iter_mut().zip(isa::TABLES) {
            *table = w.make(object, 0)?;
        }
        let (mut covered_page, mut readable_page) = (page, page);
        if isa::HAS_CACHES {
            covered_page = w.mapped(isa::PAGE, map_page, 0x5000, space)?;
            w.mapped(isa::PAGE, map_page, 0x5000, space)?;
            readable_page = w.make(isa::PAGE, 0)?;
            w.invoke(readable_page, map_page, &[0x6000, READ, 0], &[space])?;
        }
        let empty = w.0.fresh_slot()?;
        // From now on `high` is out of its reach.
        w.invoke(caller.tcb, limit, &[100], &[slot::TCB])?;
        Ok(Scene {
            ticks_per_us,
            ticks_per_unit,
            sched_control,
            is_for_several_cores,
            caller,
            empty,
            signals,
            endpoint,
            badged_endpoint,
            receive_endpoint,
            write_endpoint,
            notification,
            badged_notification,
            write_notification,
            read_notification,
            waited_notification,
            bound_notification,
            funded_notification,
            node,
            guarded_node,
            parent,
            memory,
            page_memory,
            device_memory,
            device_page_memory,
            thread: thread.tcb,
            served,
            blocked: blocked.tcb,
            sole_owner,
            high,
            context,
            spending,
            irq_handler,
            device,
            frame,
            device_frame,
            page,
            free_page,
            free_large_page,
            free_huge_page,
            covered_page,
            readable_page,
            tables,
            free_tables,
            space,
            other_space,
            unassigned_space,
            gone_space,
            replaced_space,
            frame_of_gone,
        })
    }

    /// Every way in which a slot is not found (ABI 02, section 4): `call` makes an invocation that
    /// looks for one below the CNode in a slot, at an index with a depth. Where that slot is the
    /// invoked capability, it is a CNode.
    pub fn lookups(
        &self,
        which: &str,
        source: bool,
        invoked: bool,
        call: impl Fn(u64, u64, u64) -> Call,
    ) -> Vec<Case> {
        use LookupFailureType::{DepthMismatch, GuardMismatch, InvalidRoot};
        let mut cases = Vec::new();
        let mut case = |call: Call, how: &str, refusal: Refusal| {
            cases.push(call.fails(format!("{which}: {how}"), refusal));
        };
        if !invoked {
            for root in [self.endpoint, self.empty] {
                let refusal = lookup(source, InvalidRoot, &[]);
                case(call(root, 1, 4), "the root is no CNode", refusal);
            }
        }
        for depth in [0, 65, u64::MAX] {
            case(call(self.node, 1, depth), "depth", range(1, 64));
        }
        let refusal = lookup(source, GuardMismatch, &[7, 5, 3]);
        case(call(self.guarded_node, 1, 7), "guard", refusal);
        let refusal = lookup(source, GuardMismatch, &[2, 5, 3]);
        case(call(self.guarded_node, 1, 2), "guard", refusal);
        let refusal = lookup(source, DepthMismatch, &[3, 4]);
        case(
            call(self.node, 1, 3),
            "less bits than the CNode has",
            refusal,
        );
        let refusal = lookup(source, DepthMismatch, &[4, 0]);
        case(call(self.node, 0x10, 8), "bits left", refusal);
        cases
    }

    /// A source slot that is empty.
    pub fn empty_source(&self, call: impl Fn(u64, u64, u64) -> Call) -> Case {
        call(self.node, 2, RADIX).fails("source: empty", missing(true, RADIX))
    }
}
