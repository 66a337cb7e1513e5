//! A kernel with an object of every kind in every state that some check asks for. Since failed
//! decodes change nothing, all cases can have the same.

use sandglass_abi::boot::slot;
use sandglass_abi::error::LookupFailureType;
use sandglass_abi::invocation as label;
use sandglass_abi::invocation::x86_64 as arch_label;
use sandglass_abi::object as types;
use sandglass_abi::object::x86_64 as arch_types;
use sandglass_abi::syscall::Syscall;

use crate::case::{lookup, missing, range, Call, Case, Refusal};
use sandglass_testkit::world::{Thread, World};

pub const WRITE: u64 = 1;
pub const READ: u64 = 2;
pub const ALL: u64 = 0b1111;
const READ_WRITE: u64 = READ | WRITE;

/// A guard of three bits, 101.
pub const GUARD: u64 = 5 << 6 | 3;
pub const RADIX: u64 = 4;

/// Slots of the root CNode.
pub struct Scene {
    pub w: World,
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
    /// Above the maximum controlled priority of the root task.
    pub high: Thread,
    /// Not configured, bound to nothing; of 2^8 bytes.
    pub context: u64,
    /// Bound to `funded_notification`.
    pub spending: u64,
    pub irq_handler: u64,
    pub ports: u64,
    pub frame: u64,
    pub device_frame: u64,
    /// In `space`: a page at 0x1000, below a full path of tables. There are a page of 2 MiB at
    /// 0x20_0000 and one of 1 GiB at 0x4000_0000 too.
    pub page: u64,
    /// Not mapped.
    pub free_page: u64,
    pub free_large_page: u64,
    pub free_huge_page: u64,
    /// Each with a copy, so that none is the last capability.
    pub pdpt: u64,
    pub directory: u64,
    pub table: u64,
    pub free_pdpt: u64,
    pub free_directory: u64,
    pub free_table: u64,
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

impl Scene {
    pub fn new() -> Self {
        let mut world = World::with_memory(6 << 20);
        // Time passes where a case says so.
        world.path = 0;
        let w = &mut world;
        let invoke = |w: &mut World, cap, label, words: &[u64], caps: &[u64]| {
            w.invoke(cap, label, words, caps)
                .unwrap_or_else(|refused| panic!("label {label} of slot {cap}: {refused:?}"))
        };
        let device_memory = (slot::FIRST_DYNAMIC..)
            .find(|&i| {
                w.cap(i)
                    .untyped()
                    .is_some_and(|u| u.is_device() && u.bits() >= 32)
            })
            .expect("device memory");
        let of_device = |w: &mut World, object, size| {
            let slot = w.fresh_slot();
            w.retype(device_memory, object, size, slot, 1)
                .expect("device memory");
            slot
        };

        let endpoint = w.make(types::ENDPOINT, 0);
        let badged_endpoint = w.mint(endpoint, ALL, 7).expect("a copy");
        let receive_endpoint = w.copy(endpoint, READ).expect("a copy");
        let write_endpoint = w.copy(endpoint, READ_WRITE).expect("a copy");
        let notification = w.make(types::NOTIFICATION, 0);
        let signals = w.make(types::NOTIFICATION, 0);
        let badged_notification = w.mint(notification, ALL, 7).expect("a copy");
        let write_notification = w.copy(notification, WRITE).expect("a copy");
        let read_notification = w.copy(notification, READ).expect("a copy");
        let node = w.make(types::CNODE, RADIX);
        let words = [1, RADIX, endpoint, 64, ALL];
        invoke(w, node, label::CNODE_COPY, &words, &[slot::CNODE]);
        let guarded_node = w.mint(node, ALL, GUARD).expect("a copy");

        let parent = w.make(types::UNTYPED, 12);
        let child = w.fresh_slot();
        w.retype(parent, types::NOTIFICATION, 0, child, 1)
            .expect("a child");
        let memory = w.make(types::UNTYPED, 8);
        let page_memory = w.make(types::UNTYPED, 12);
        let device_page_memory = of_device(w, types::UNTYPED, 12);

        // Threads that have to run come first: they run while the root task sleeps.
        let wakes = w.make(types::NOTIFICATION, 0);
        let waited_notification = w.make(types::NOTIFICATION, 0);
        let blocks = |w: &mut World, call: Syscall, on: u64| {
            let thread = w.start_thread(150, 5_000, 10_000);
            w.wait(wakes);
            assert_eq!(w.running(), Some(thread.handle));
            w.syscall(call, on, 0, Default::default(), &[]);
            w.wake(wakes);
            thread
        };
        blocks(w, Syscall::Wait, waited_notification);
        let queue = w.make(types::ENDPOINT, 0);
        let blocked = blocks(w, Syscall::Wait, queue);
        invoke(w, blocked.context, label::SCHED_CONTEXT_UNBIND, &[], &[]);

        let thread = w.make_thread(5, 8);
        invoke(
            w,
            thread.tcb,
            label::TCB_SET_MC_PRIORITY,
            &[7],
            &[slot::TCB],
        );
        let served = w.make_thread(5, 8);
        w.bind(served);
        let bound_notification = w.make(types::NOTIFICATION, 0);
        let bind = label::TCB_BIND_NOTIFICATION;
        invoke(w, served.tcb, bind, &[], &[bound_notification]);
        let high = w.make_thread(200, 8);
        w.bind(high);
        let sole_owner = w.make(types::TCB, 0);
        let sole = w.make(types::CNODE, RADIX);
        let caps = [sole, slot::VSPACE, endpoint];
        invoke(w, sole_owner, label::TCB_CONFIGURE, &[0; 3], &caps);
        w.delete(sole).expect("one capability less");

        let context = w.make(types::SCHED_CONTEXT, 8);
        let spending = w.make(types::SCHED_CONTEXT, 8);
        let funded_notification = w.make(types::NOTIFICATION, 0);
        let bind = label::SCHED_CONTEXT_BIND;
        invoke(w, spending, bind, &[], &[funded_notification]);
        let irq_handler = w.fresh_slot();
        let words = [irq_handler, 64, 0, 3, 0, 0, 3];
        let get = arch_label::IRQ_CONTROL_GET_IOAPIC;
        invoke(w, slot::IRQ_CONTROL, get, &words, &[slot::CNODE]);
        let ports = w.fresh_slot();
        let words = [0x100, 0x107, ports, 64];
        let issue = arch_label::IO_PORT_CONTROL_ISSUE;
        invoke(w, slot::IO_PORT_CONTROL, issue, &words, &[slot::CNODE]);

        let assign = |w: &mut World, pool, space| {
            invoke(w, pool, arch_label::ASID_POOL_ASSIGN, &[], &[space]);
        };
        let space_of = |w: &mut World, pool| {
            let space = w.make(arch_types::PML4, 0);
            assign(w, pool, space);
            space
        };
        let space = space_of(w, slot::ASID_POOL);
        let other_space = space_of(w, slot::ASID_POOL);
        let unassigned_space = w.make(arch_types::PML4, 0);
        let map = |w: &mut World, cap, label, vaddr| {
            let words = [vaddr, READ_WRITE, 0];
            invoke(w, cap, label, &words, &[space]);
        };
        let pdpt = w.make(arch_types::PDPT, 0);
        map(w, pdpt, arch_label::PDPT_MAP, 0);
        let directory = w.make(arch_types::PAGE_DIRECTORY, 0);
        map(w, directory, arch_label::PAGE_DIRECTORY_MAP, 0);
        let table = w.make(arch_types::PAGE_TABLE, 0);
        map(w, table, arch_label::PAGE_TABLE_MAP, 0);
        for mapped in [pdpt, directory, table] {
            w.copy(mapped, ALL).expect("not the last capability");
        }
        let page = w.make(arch_types::PAGE, 0);
        map(w, page, arch_label::PAGE_MAP, 0x1000);
        let large_page = of_device(w, arch_types::LARGE_PAGE, 0);
        map(w, large_page, arch_label::PAGE_MAP, 0x20_0000);
        let huge_page = of_device(w, arch_types::HUGE_PAGE, 0);
        map(w, huge_page, arch_label::PAGE_MAP, 0x4000_0000);

        // Three pools: the first one's number goes to the third, the second one's to nobody.
        let pool = |w: &mut World| {
            let memory = w.make(types::UNTYPED, 12);
            let pool = w.fresh_slot();
            let make = arch_label::ASID_CONTROL_MAKE_POOL;
            invoke(
                w,
                slot::ASID_CONTROL,
                make,
                &[pool, 64],
                &[memory, slot::CNODE],
            );
            pool
        };
        let first = pool(w);
        let second = pool(w);
        let replaced_space = space_of(w, first);
        let gone_space = space_of(w, second);
        let frame_of_gone = w.make(arch_types::PAGE, 0);
        for (object, label) in [
            (arch_types::PDPT, arch_label::PDPT_MAP),
            (arch_types::PAGE_DIRECTORY, arch_label::PAGE_DIRECTORY_MAP),
            (arch_types::PAGE_TABLE, arch_label::PAGE_TABLE_MAP),
        ] {
            let table = w.make(object, 0);
            invoke(w, table, label, &[0, 0], &[gone_space]);
        }
        let words = [0x1000, READ_WRITE, 0];
        invoke(
            w,
            frame_of_gone,
            arch_label::PAGE_MAP,
            &words,
            &[gone_space],
        );
        w.delete(first).expect("no pool");
        w.delete(second).expect("no pool");
        let third = pool(w);
        space_of(w, third);

        let frame = w.make(arch_types::PAGE, 0);
        let free_page = w.make(arch_types::PAGE, 0);
        let device_frame = of_device(w, arch_types::PAGE, 0);
        let free_large_page = of_device(w, arch_types::LARGE_PAGE, 0);
        let free_huge_page = of_device(w, arch_types::HUGE_PAGE, 0);
        let free_pdpt = w.make(arch_types::PDPT, 0);
        let free_directory = w.make(arch_types::PAGE_DIRECTORY, 0);
        let free_table = w.make(arch_types::PAGE_TABLE, 0);
        let empty = w.fresh_slot();
        // From now on `high` is out of its reach.
        invoke(
            w,
            slot::TCB,
            label::TCB_SET_MC_PRIORITY,
            &[100],
            &[slot::TCB],
        );
        Scene {
            w: world,
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
            ports,
            frame,
            device_frame,
            page,
            free_page,
            free_large_page,
            free_huge_page,
            pdpt,
            directory,
            table,
            free_pdpt,
            free_directory,
            free_table,
            space,
            other_space,
            unassigned_space,
            gone_space,
            replaced_space,
            frame_of_gone,
        }
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
