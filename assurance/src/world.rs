//! The world that scripts start in: made by the root task, with system calls.
//!
//! There are some of every kind of object, in arrangements of every kind: threads of several
//! priorities with budgets, slices, sporadic contexts and none (passive servers), CNodes inside
//! CNodes with guards, untyped memory of several sizes, an address space besides the root task's,
//! handlers of interrupts, devices of the architecture. If the kernel is for several cores, the threads are distributed
//! over them. All of it is the same in every run.

use sandglass_abi::boot::slot;
use sandglass_abi::cnode::GuardData;
use sandglass_abi::invocation as label;
use sandglass_abi::object as types;
use sandglass_abi::rights::Rights;
use sandglass_abi::syscall::Syscall;
use sandglass_kernel::mem::Ref;
use sandglass_kernel::object::tcb::Tcb;
use sandglass_kernel::CORES;
use sandglass_testkit::boot::RootCNode;
use sandglass_testkit::call;

use crate::isa;
use crate::pair::{Checks, Failure, Pair};
use crate::script::{Action, Call};

/// The first slot of the root CNode that the world uses; all those before are the root task's.
pub const FIRST: u64 = 128;
/// Slots of the root CNode that scripts use for what they make.
pub const FREE: std::ops::Range<u64> = 288..320;
/// Where the IPC buffers of the world's threads are, one behind the other.
const BUFFERS: u64 = 0x7000_0000;
const PAGE: u64 = 4096;
const BUFFER: u64 = 1024;
/// Root of the capability spaces: all 64 bits are used up.
const DEPTH: u64 = 64;

/// A thread of the world.
#[derive(Clone, Copy, Debug)]
struct Thread {
    priority: u64,
    mcp: u64,
    time: Time,
    /// Numbers of the endpoints to which faults and timeouts are told.
    fault_handler: Option<usize>,
    timeout_handler: Option<usize>,
}

/// What a thread has of time: budget and period in microseconds.
#[derive(Clone, Copy, Debug)]
enum Time {
    /// Nothing: it waits for others to lend it some.
    Passive,
    Budget {
        budget: u64,
        period: u64,
        extra: u64,
    },
    Sporadic {
        budget: u64,
        period: u64,
        extra: u64,
    },
    Slice(u64),
}

const THREADS: [Thread; 8] = [
    thread(
        200,
        255,
        Time::Budget {
            budget: 1_000,
            period: 10_000,
            extra: 0,
        },
        Some(0),
        None,
    ),
    thread(
        150,
        200,
        Time::Sporadic {
            budget: 500,
            period: 2_000,
            extra: 4,
        },
        None,
        Some(1),
    ),
    thread(
        150,
        150,
        Time::Budget {
            budget: 200,
            period: 1_000,
            extra: 2,
        },
        Some(1),
        Some(1),
    ),
    thread(120, 120, Time::Slice(300), None, None),
    thread(120, 255, Time::Slice(1_000), Some(0), None),
    thread(160, 100, Time::Passive, None, None),
    thread(170, 0, Time::Passive, Some(2), None),
    thread(
        100,
        50,
        Time::Budget {
            budget: 50,
            period: 100,
            extra: 8,
        },
        None,
        None,
    ),
];

const fn thread(
    priority: u64,
    mcp: u64,
    time: Time,
    fault_handler: Option<usize>,
    timeout_handler: Option<usize>,
) -> Thread {
    Thread {
        priority,
        mcp,
        time,
        fault_handler,
        timeout_handler,
    }
}

/// A pair in the world, checked by `checks` from the beginning.
///
/// # Errors
/// Something is wrong on the way.
///
/// # Panics
/// If the kernel refuses one of the root task's invocations.
pub fn create(checks: Checks) -> Result<Pair, Failure> {
    let pair = Pair::boot(checks);
    let root = pair.k.core().thread().expect("the root task runs");
    let mut maker = Maker {
        slots: RootCNode::of(&pair.k, root),
        pair,
        next: FIRST,
        threads: Vec::new(),
    };
    maker.make()?;
    Ok(maker.pair)
}

struct Maker {
    pair: Pair,
    slots: RootCNode,
    next: u64,
    /// Slots of the threads made so far.
    threads: Vec<u64>,
}

impl Maker {
    fn make(&mut self) -> Result<(), Failure> {
        let memory = self.untyped(|bits| bits == 18, false);
        let large = self.untyped(|bits| bits >= isa::types::LARGE_PAGE_BITS, false);
        let device = self.untyped(|bits| bits >= 12, true);
        let one = |maker: &mut Maker, object, size| maker.retype(memory, object, size, 1);
        let endpoints = self.retype(memory, types::ENDPOINT, 0, 3)?;
        let notifications = self.retype(memory, types::NOTIFICATION, 0, 4)?;
        let replies = self.retype(memory, types::REPLY, 0, 5)?;
        for endpoint in endpoints..endpoints + 3 {
            self.mint(endpoint, Rights::ALL.raw(), endpoint)?;
            self.mint(endpoint, Rights::WRITE.raw(), 7)?;
            self.mint(endpoint, Rights::READ.raw(), 0)?;
            self.mint(
                endpoint,
                Rights::WRITE.raw() | Rights::GRANT_REPLY.raw(),
                0x1_0000,
            )?;
        }
        for notification in notifications..notifications + 4 {
            self.mint(notification, Rights::WRITE.raw(), 1 << (notification % 8))?;
            self.mint(notification, Rights::READ.raw(), 0)?;
        }
        self.mint(replies, 0, 0)?;
        for bits in [14, 13, 12, 12, 12, 10, 7] {
            one(self, types::UNTYPED, bits)?;
        }
        let frames = self.retype(memory, isa::types::PAGE, 0, 5)?;
        self.retype(large, isa::types::LARGE_PAGE, 0, 1)?;
        self.retype(device, isa::types::PAGE, 0, 1)?;
        let inner = self.nest(memory, endpoints, notifications)?;
        let spaces = self.address_spaces(memory, frames)?;
        for (i, thread) in (0..).zip(THREADS) {
            let cspace = match i {
                2 => inner,
                _ => slot::CNODE,
            };
            let vspace = if i == 3 { spaces } else { slot::VSPACE };
            let buffer = (frames + i / 4, BUFFERS + i % 4 * BUFFER);
            let core = i % CORES as u64;
            self.start(memory, thread, core, endpoints, [cspace, vspace], buffer)?;
        }
        for i in 2..4 {
            let bound = [notifications + i];
            self.invoke(
                self.threads[i as usize],
                label::TCB_BIND_NOTIFICATION,
                &[],
                &bound,
            )?;
        }
        self.devices(notifications)?;
        // The root task has read what it was told, and becomes one among others.
        let told = slot::BOOT_INFO_FRAME;
        self.invoke(slot::CNODE, label::CNODE_DELETE, &[told, DEPTH], &[])?;
        self.call(slot::TCB, label::TCB_SET_PRIORITY, &[140], &[slot::TCB])
    }

    /// The slot of untyped memory of a size that is `wanted`.
    fn untyped(&self, wanted: impl Fn(u32) -> bool, is_device: bool) -> u64 {
        let mut untyped = self.slots.untyped(&self.pair.k, is_device);
        let found = untyped.find(|(_, memory)| wanted(memory.bits().into()));
        found
            .expect("the root task has untyped memory of this size")
            .0
    }

    fn fresh(&mut self, count: u64) -> u64 {
        self.next += count;
        assert!(
            self.next <= FREE.start,
            "the world fits below the free slots"
        );
        self.next - count
    }

    /// The root task invokes, successfully.
    fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Result<(), Failure> {
        let caller = self.caller();
        self.call(cap, label, words, caps)?;
        assert_eq!(
            self.caller(),
            caller,
            "label {label}: the root task goes on"
        );
        if let Err(refused) = call::answer(&self.pair.k, caller) {
            panic!("label {label} of {cap} with {words:?} and {caps:?}: {refused:?}");
        }
        Ok(())
    }

    fn call(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) -> Result<(), Failure> {
        let call = Call::new(Syscall::Call, cap, label, words, caps);
        self.pair.perform(&Action::Call(call))
    }

    fn caller(&self) -> Ref<Tcb> {
        self.pair.k.core().thread().expect("the root task runs")
    }

    /// Makes `count` objects; returns the slot of the first.
    fn retype(&mut self, memory: u64, object: u64, size: u64, count: u64) -> Result<u64, Failure> {
        let slot = self.fresh(count);
        let words = [object, size, 0, 0, slot, count];
        self.invoke(memory, label::UNTYPED_RETYPE, &words, &[slot::CNODE])?;
        Ok(slot)
    }

    /// A copy with `rights` and a badge or guard, in a slot of its own.
    fn mint(&mut self, source: u64, rights: u64, data: u64) -> Result<u64, Failure> {
        let slot = self.fresh(1);
        self.mint_to(slot::CNODE, slot, DEPTH, source, rights, data)?;
        Ok(slot)
    }

    fn mint_to(
        &mut self,
        node: u64,
        slot: u64,
        depth: u64,
        source: u64,
        rights: u64,
        data: u64,
    ) -> Result<(), Failure> {
        let words = [slot, depth, source, DEPTH, rights, data];
        self.invoke(node, label::CNODE_MINT, &words, &[slot::CNODE])?;
        Ok(())
    }

    /// CNodes inside CNodes, with some capabilities; returns the slot of the outermost, which can be
    /// the root of a capability space.
    fn nest(&mut self, memory: u64, endpoints: u64, notifications: u64) -> Result<u64, Failure> {
        let all = Rights::ALL.raw();
        let outer = self.retype(memory, types::CNODE, 4, 1)?;
        let middle = self.retype(memory, types::CNODE, 3, 1)?;
        let inner = self.retype(memory, types::CNODE, 1, 1)?;
        // All 64 bits: a guard of 54 and 4, then a guard of 2 and 3, then 1.
        let guarded = self.mint(outer, all, GuardData::new(5, 54).raw())?;
        self.mint_to(outer, 1, 4, middle, all, GuardData::new(2, 2).raw())?;
        self.mint_to(middle, 7, 3, inner, all, GuardData::new(0, 0).raw())?;
        for (i, source) in (2..).zip([endpoints, endpoints + 1, notifications, slot::TCB]) {
            self.mint_to(outer, i, 4, source, all, 0)?;
            self.mint_to(middle, i, 3, source, all, 0)?;
        }
        self.mint_to(inner, 1, 1, endpoints + 2, all, 3)?;
        // A capability space of CNodes only as deep as addresses are long.
        self.mint_to(outer, 7, 4, slot::CNODE, all, 0)?;
        Ok(guarded)
    }

    /// Another address space, with tables of every level and a page; returns its root.
    fn address_spaces(&mut self, memory: u64, frames: u64) -> Result<u64, Failure> {
        const AT: u64 = 0x1000_0000_0000 >> 4;
        let root = self.retype(memory, isa::types::ROOT_TABLE, 0, 1)?;
        self.invoke(slot::ASID_POOL, isa::label::ASID_POOL_ASSIGN, &[], &[root])?;
        let tables = isa::types::TABLES.into_iter().zip(isa::label::TABLE_MAP);
        for (object, map) in tables {
            let table = self.retype(memory, object, 0, 1)?;
            self.invoke(table, map, &[AT, 0], &[root])?;
            // A copy, without which it cannot be unmapped, and one that is not mapped.
            self.mint(table, 0, 0)?;
            self.retype(memory, object, 0, 1)?;
        }
        let page = frames + 4;
        self.invoke(
            page,
            isa::label::PAGE_MAP,
            &[AT, Rights::ALL.raw(), 0],
            &[root],
        )?;
        self.mint(page, Rights::READ.raw(), 0)?;
        self.retype(memory, isa::types::ROOT_TABLE, 0, 1)?;
        Ok(root)
    }

    /// Makes and starts a thread, on `core` if it has time of its own.
    fn start(
        &mut self,
        memory: u64,
        thread: Thread,
        core: u64,
        endpoints: u64,
        spaces: [u64; 2],
        (frame, address): (u64, u64),
    ) -> Result<(), Failure> {
        let tcb = self.retype(memory, types::TCB, 0, 1)?;
        self.threads.push(tcb);
        let words = [0, 0, address];
        self.invoke(
            tcb,
            label::TCB_CONFIGURE,
            &words,
            &[spaces[0], spaces[1], frame],
        )?;
        let context = match thread.time {
            Time::Passive => slot::NULL,
            Time::Slice(slice) => self.context(memory, core, [slice, slice, 0, 0])?,
            Time::Budget {
                budget,
                period,
                extra,
            } => self.context(memory, core, [budget, period, extra, 0])?,
            Time::Sporadic {
                budget,
                period,
                extra,
            } => self.context(memory, core, [budget, period, extra, 1])?,
        };
        let handler = |number: Option<usize>| number.map_or(slot::NULL, |i| endpoints + i as u64);
        self.invoke(
            tcb,
            label::TCB_SET_SCHED_PARAMS,
            &[thread.mcp, thread.priority],
            &[slot::TCB, context, handler(thread.fault_handler)],
        )?;
        if thread.timeout_handler.is_some() {
            let handler = handler(thread.timeout_handler);
            self.invoke(tcb, label::TCB_SET_TIMEOUT_ENDPOINT, &[], &[handler])?;
        }
        let flags = 1;
        self.invoke(tcb, label::TCB_WRITE_REGISTERS, &[flags, 1, 0x40_0000], &[])?;
        Ok(())
    }

    /// A context for `core` with (budget, period, extra refills, flags).
    fn context(&mut self, memory: u64, core: u64, parameters: [u64; 4]) -> Result<u64, Failure> {
        let slot = self.retype(memory, types::SCHED_CONTEXT, 8, 1)?;
        let [budget, period, extra, flags] = parameters;
        let words = [budget, period, extra, slot, flags];
        self.invoke(
            isa::SCHED_CONTROL + core,
            label::SCHED_CONTROL_CONFIGURE_FLAGS,
            &words,
            &[slot],
        )?;
        Ok(slot)
    }

    /// Handlers of interrupts, ports, and another pool of identifiers.
    fn devices(&mut self, notifications: u64) -> Result<(), Failure> {
        let control = slot::IRQ_CONTROL;
        for (i, number) in (0..).zip([1, 2, 40]) {
            let handler = self.fresh(1);
            let (get, words) = isa::get_irq(i, number, handler);
            self.invoke(control, get, &words, &[slot::CNODE])?;
            if i < 2 {
                let set = label::IRQ_HANDLER_SET_NOTIFICATION;
                self.invoke(handler, set, &[], &[notifications + i])?;
            }
        }
        for n in 0..2 {
            let slot = self.fresh(1);
            let (control, issue, words) = isa::issue_device(n, slot);
            if let Some(issue) = issue {
                self.invoke(control, issue, &words, &[slot::CNODE])?;
            }
        }
        Ok(())
    }
}

// Four buffers fill a page.
const _: () = assert!(4 * BUFFER == PAGE);
