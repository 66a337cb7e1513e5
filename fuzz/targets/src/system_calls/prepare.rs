//! The prepared world: several threads, and one object at least of every kind, where [`slots`]
//! says. The root task makes it by invocations, all of which succeed.

use sandglass_abi::boot::slot;
use sandglass_abi::cnode::GuardData;
use sandglass_abi::invocation::{self as label, x86_64 as x86};
use sandglass_abi::object as types;
use sandglass_abi::sched::flags;
use sandglass_testkit::world::World;

use super::slots;

/// log2 of the bytes of the untyped memory that all objects are made of.
const MEMORY_BITS: u8 = 17;
/// log2 of the bytes of the device memory.
const DEVICE_BITS: u8 = 30;
const READ: u64 = 1 << 1;
const WRITE: u64 = 1 << 0;
const ALL_RIGHTS: u64 = 15;
/// Bits of an address in the root task's first capability space.
const DEPTH: u64 = 64;
/// Priority of most threads, and of those that wait at first.
const PRIORITY: u64 = 10;
const SERVER_PRIORITY: u64 = 20;

/// Prepares `world`, which has just booted.
pub fn prepare(world: &mut World) {
    let builder = &mut Builder { world };
    builder.enter_shared_space();
    builder.make_objects();
    builder.make_spaces();
    builder.make_copies();
    builder.map();
    builder.issue_devices();
    builder.make_threads();
    builder.let_servers_wait();
}

/// The root task at work.
struct Builder<'w> {
    world: &'w mut World,
}

impl Builder<'_> {
    /// An invocation by the root task.
    fn invoke(&mut self, cap: u64, label: u64, words: &[u64], caps: &[u64]) {
        if let Err(refused) = self.world.invoke(cap, label, words, caps) {
            panic!("invocation {label} of {cap} with {words:x?} and {caps:x?}: {refused:?}");
        }
    }

    /// Makes `count` objects in the slots from `slot` on.
    fn make(&mut self, object: u64, size: u64, slot: u64, count: u64) {
        let words = [object, size, 0, 0, slot, count];
        self.invoke(
            slots::MEMORY,
            label::UNTYPED_RETYPE,
            &words,
            &[slots::SPACE],
        );
    }

    /// Copies the capability in `source` to slot `index` of the CNode in `target`, of 2^`depth`
    /// slots.
    fn copy(&mut self, source: u64, target: u64, index: u64, depth: u64) {
        let words = [index, depth, source, slots::RADIX, ALL_RIGHTS];
        self.invoke(target, label::CNODE_COPY, &words, &[slots::SPACE]);
    }

    /// Makes the shared CNode, which becomes the root task's capability space, and moves into it
    /// what the root task got from the kernel.
    ///
    /// The memory of all objects stays named by a capability in the first CNode, out of the
    /// threads' reach: a sweep finds from there what threads have made unreachable for themselves.
    fn enter_shared_space(&mut self) {
        let memory = self.find_untyped(false, MEMORY_BITS);
        let device = self.find_untyped(true, DEVICE_BITS);
        let copy = self.world.fresh_slot();
        let space = self.world.fresh_slot();

        let words = [copy, DEPTH, memory, DEPTH, ALL_RIGHTS];
        self.invoke(slot::CNODE, label::CNODE_COPY, &words, &[slot::CNODE]);
        let words = [types::CNODE, slots::RADIX, 0, 0, space, 1];
        self.invoke(copy, label::UNTYPED_RETYPE, &words, &[slot::CNODE]);
        for (from, to) in [(slot::CNODE, slots::ROOT_CNODE), (space, slots::SPACE)] {
            let words = [to, slots::RADIX, from, DEPTH, ALL_RIGHTS];
            self.invoke(space, label::CNODE_COPY, &words, &[slot::CNODE]);
        }
        let words = [GuardData::new(0, 64 - slots::RADIX as u32).raw(), 0];
        let caps = [slot::NULL, space, slot::VSPACE];
        self.invoke(slot::TCB, label::TCB_SET_SPACE, &words, &caps);
        for (from, to) in [
            (slot::TCB, slots::THREADS[0]),
            (slot::SCHED_CONTEXT, slots::CONTEXTS[0]),
            (slot::VSPACE, slots::VSPACE),
            (slot::ASID_POOL, slots::ASID_POOL),
            (slot::ASID_CONTROL, slots::ASID_CONTROL),
            (slot::IRQ_CONTROL, slots::IRQ_CONTROL),
            (slot::IO_PORT_CONTROL, slots::IO_PORT_CONTROL),
            (slot::DOMAIN, slots::DOMAIN),
            (slot::FIRST_DYNAMIC, slots::SCHED_CONTROL),
            (device, slots::DEVICE),
            (copy, slots::MEMORY),
        ] {
            let words = [to, slots::RADIX, from, DEPTH];
            self.invoke(
                slots::SPACE,
                label::CNODE_MOVE,
                &words,
                &[slots::ROOT_CNODE],
            );
        }
        let words = [slots::ROOT_CNODE, slots::RADIX];
        self.invoke(slots::SPACE, label::CNODE_DELETE, &words, &[]);
    }

    /// The slot of initial untyped memory of 2^`bits` bytes.
    fn find_untyped(&self, is_device: bool, bits: u8) -> u64 {
        let slots = self.world.root_cnode();
        let mut untyped = slots.untyped(&self.world.k, is_device);
        let found = untyped.find(|(_, memory)| memory.bits() == bits);
        found.expect("untyped memory of this size").0
    }

    fn make_objects(&mut self) {
        use types::x86_64 as x86;
        self.make(types::TCB, 0, slots::THREADS[1], 4);
        for (context, bits) in slots::CONTEXTS[1..].iter().zip([7, 8, 10, 9]) {
            self.make(types::SCHED_CONTEXT, bits, *context, 1);
        }
        self.make(types::CNODE, slots::UPPER_RADIX, slots::UPPER, 1);
        self.make(types::CNODE, slots::UPPERMOST_RADIX, slots::UPPERMOST, 1);
        self.make(types::CNODE, 2, slots::EMPTY_CNODE, 1);
        self.make(x86::PML4, 0, slots::OTHER_VSPACE, 2);
        self.make(x86::PDPT, 0, slots::PDPT, 1);
        self.make(x86::PAGE_DIRECTORY, 0, slots::PAGE_DIRECTORY, 1);
        self.make(x86::PAGE_TABLE, 0, slots::PAGE_TABLE, 1);
        self.make(x86::PAGE, 0, slots::BUFFERS, slots::THREADS.len() as u64);
        self.make(x86::PAGE, 0, slots::FRAME, 1);
        self.make(types::ENDPOINT, 0, slots::ENDPOINTS[0], 2);
        self.make(types::NOTIFICATION, 0, slots::NOTIFICATIONS[0], 4);
        self.make(types::REPLY, 0, slots::REPLIES, slots::REPLY_COUNT);
        self.make(types::UNTYPED, 12, slots::UNTYPEDS[0], 2);
        self.make(types::UNTYPED, 14, slots::UNTYPEDS[2], 1);
        for (object, slot) in [
            (x86::LARGE_PAGE, slots::LARGE_FRAME),
            (x86::PAGE, slots::DEVICE_FRAME),
        ] {
            let words = [object, 0, 0, 0, slot, 1];
            self.invoke(
                slots::DEVICE,
                label::UNTYPED_RETYPE,
                &words,
                &[slots::SPACE],
            );
        }
    }

    /// The CNodes above the shared one, each leading to the next by its first slot.
    fn make_spaces(&mut self) {
        self.copy(slots::SPACE, slots::UPPER, 0, slots::UPPER_RADIX);
        let guard = GuardData::new(0, 1).raw();
        let words = [
            0,
            slots::UPPERMOST_RADIX,
            slots::UPPER,
            slots::RADIX,
            ALL_RIGHTS,
            guard,
        ];
        self.invoke(slots::UPPERMOST, label::CNODE_MINT, &words, &[slots::SPACE]);
    }

    /// Copies of endpoints and notifications, with badges, and with fewer rights.
    fn make_copies(&mut self) {
        let sources = [
            slots::ENDPOINTS[0],
            slots::ENDPOINTS[1],
            slots::NOTIFICATIONS[0],
            slots::NOTIFICATIONS[1],
        ];
        let rights = [ALL_RIGHTS, WRITE, READ];
        for i in 0..slots::BADGED_COUNT {
            let source = sources[i as usize % sources.len()];
            let rights = rights[i as usize % rights.len()];
            let words = [
                slots::BADGED + i,
                slots::RADIX,
                source,
                slots::RADIX,
                rights,
                i + 1,
            ];
            self.invoke(slots::SPACE, label::CNODE_MINT, &words, &[slots::SPACE]);
        }
    }

    fn map(&mut self) {
        let read_write = READ | WRITE;
        for i in 0..slots::THREADS.len() as u64 {
            let words = [slots::BUFFER_ADDRESS + (i << 12), read_write, 0];
            self.invoke(slots::BUFFERS + i, x86::PAGE_MAP, &words, &[slots::VSPACE]);
        }
        self.invoke(
            slots::ASID_POOL,
            x86::ASID_POOL_ASSIGN,
            &[],
            &[slots::OTHER_VSPACE],
        );
        self.invoke(slots::PDPT, x86::PDPT_MAP, &[0, 0], &[slots::OTHER_VSPACE]);
        self.invoke(
            slots::PAGE_DIRECTORY,
            x86::PAGE_DIRECTORY_MAP,
            &[0, 0],
            &[slots::OTHER_VSPACE],
        );
    }

    /// Handlers of interrupts 17 to 19, of which the first two are pins, and a range of I/O ports.
    fn issue_devices(&mut self) {
        let [edge, level, message] = slots::IRQ_HANDLERS;
        for (handler, pin, is_level, vector) in [(edge, 1, 0, 1), (level, 2, 1, 2)] {
            let words = [handler, slots::RADIX, 0, pin, is_level, 0, vector];
            self.invoke(
                slots::IRQ_CONTROL,
                x86::IRQ_CONTROL_GET_IOAPIC,
                &words,
                &[slots::SPACE],
            );
        }
        let words = [message, slots::RADIX, 0, 0, 0, 0, 3];
        self.invoke(
            slots::IRQ_CONTROL,
            x86::IRQ_CONTROL_GET_MSI,
            &words,
            &[slots::SPACE],
        );
        let signalled = [slots::NOTIFICATIONS[2]];
        self.invoke(edge, label::IRQ_HANDLER_SET_NOTIFICATION, &[], &signalled);
        self.invoke(
            message,
            label::IRQ_HANDLER_SET_NOTIFICATION,
            &[],
            &signalled,
        );
        let words = [0x3f8, 0x3ff, slots::IO_PORTS, slots::RADIX];
        self.invoke(
            slots::IO_PORT_CONTROL,
            x86::IO_PORT_CONTROL_ISSUE,
            &words,
            &[slots::SPACE],
        );
    }

    fn make_threads(&mut self) {
        let one_level = (slots::SPACE, 64 - slots::RADIX);
        let two_levels = (slots::UPPER, 64 - slots::RADIX - slots::UPPER_RADIX);
        // One bit is the guard of the second level.
        let bits = slots::RADIX + slots::UPPER_RADIX + slots::UPPERMOST_RADIX + 1;
        let three_levels = (slots::UPPERMOST, 64 - bits);
        // Budget and period in µs, extra refills, flags.
        let times = [
            (1_000, 1_000, 0, 0),
            (2_000, 10_000, 8, flags::SPORADIC),
            (500, 5_000, 50, 0),
            (3_000, 20_000, 0, flags::SPORADIC),
        ];
        let spaces = [one_level, two_levels, three_levels, one_level];
        let priorities = [PRIORITY, PRIORITY, SERVER_PRIORITY, SERVER_PRIORITY];
        for i in 0..4 {
            let (thread, context) = (slots::THREADS[i + 1], slots::CONTEXTS[i + 1]);
            let (budget, period, extra, flags) = times[i];
            let words = [budget, period, extra, i as u64 + 1, flags];
            self.invoke(
                slots::SCHED_CONTROL,
                label::SCHED_CONTROL_CONFIGURE_FLAGS,
                &words,
                &[context],
            );
            let (space, guard) = spaces[i];
            let buffer = i as u64 + 1;
            let words = [
                GuardData::new(0, guard as u32).raw(),
                0,
                slots::BUFFER_ADDRESS + (buffer << 12),
            ];
            let caps = [space, slots::VSPACE, slots::BUFFERS + buffer];
            self.invoke(thread, label::TCB_CONFIGURE, &words, &caps);
            let words = [priorities[i], priorities[i]];
            let caps = [slots::THREADS[0], context, slots::BADGED];
            self.invoke(thread, label::TCB_SET_SCHED_PARAMS, &words, &caps);
        }
        self.invoke(
            slots::THREADS[2],
            label::TCB_SET_TIMEOUT_ENDPOINT,
            &[],
            &[slots::ENDPOINTS[1]],
        );
        self.invoke(
            slots::THREADS[4],
            label::TCB_BIND_NOTIFICATION,
            &[],
            &[slots::NOTIFICATIONS[0]],
        );
        for thread in slots::THREADS[1..].iter() {
            self.invoke(*thread, label::TCB_RESUME, &[], &[]);
        }
    }

    /// The threads of higher priority wait: one, which is passive, for callers of the first
    /// endpoint, the other for its bound notification, which has a scheduling context in turn.
    fn let_servers_wait(&mut self) {
        let words = [PRIORITY];
        self.invoke(
            slots::THREADS[0],
            label::TCB_SET_PRIORITY,
            &words,
            &[slots::THREADS[0]],
        );
        self.world.wait(slots::NOTIFICATIONS[0]);
        self.world.recv(slots::ENDPOINTS[0], slots::REPLIES);
        let root = self.world.running();
        for (context, next) in [
            (slots::CONTEXTS[3], None),
            (slots::CONTEXTS[4], Some(slots::NOTIFICATIONS[3])),
        ] {
            self.invoke(context, label::SCHED_CONTEXT_UNBIND, &[], &[]);
            if let Some(notification) = next {
                self.invoke(context, label::SCHED_CONTEXT_BIND, &[], &[notification]);
            }
        }
        assert_eq!(self.world.running(), root);
    }
}
