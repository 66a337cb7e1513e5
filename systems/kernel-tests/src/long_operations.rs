//! Long operations are preemptible: a periodic thread of high priority keeps its releases while
//! a low one makes and destroys big objects (ABI 01, section 8).

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use sandglass::abi::message::ipc_buffer;
use sandglass::cap::{
    Attributes, CNode, Frame, FrameSize, GuardData, ObjectType, PageDirectory, PageTable, Pdpt,
    Rights, SchedParams, Slot, Untyped,
};
use sandglass::context::UserContext;
use sandglass::testing::{shared, Suite, TestResult};
use sandglass::thread::ThreadParams;
use sandglass::{boot, ensure, sys, time, SetupError};

use crate::arch::{receive, send_long};
use crate::fixture::{Fixture, FULL, KERNEL_PATH_US};

/// The periodic thread.
const HIGH: u8 = 200;
const PERIOD_US: u64 = 50;
const BUDGET_US: u64 = 25;
/// The root task, while it works.
const LOW: u8 = 50;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "long_operations",
        &[
            ("zeroing_of_memory_does_not_delay", zeroing),
            ("making_many_objects_does_not_delay", many_objects),
            ("revoking_many_objects_does_not_delay", revoke_many),
            ("deleting_a_full_cnode_does_not_delay", full_cnode),
            ("deleting_full_page_tables_does_not_delay", page_tables),
            ("deleting_an_endpoint_with_a_queue_does_not_delay", |f| {
                long_queue(f, Emptying::Delete)
            }),
            ("cancelling_many_badged_sends_does_not_delay", |f| {
                long_queue(f, Emptying::Cancel)
            }),
            (
                "long_messages_through_deep_cspaces_do_not_delay",
                deep_messages,
            ),
        ],
    );
}

/// What the periodic thread sees.
#[derive(Default)]
struct Releases {
    count: AtomicU64,
    last: AtomicU64,
    /// Longest time from one turn to the next, ticks.
    longest: AtomicU64,
}

impl Releases {
    fn note(&self) {
        let now = time::ticks();
        let last = self.last.swap(now, Relaxed);
        if last != 0 {
            self.longest.fetch_max(now - last, Relaxed);
        }
        self.count.fetch_add(1, Relaxed);
    }
}

/// Does `work` at a low priority beside the periodic thread. `least` is how often that must have
/// run meanwhile for the test to mean anything.
fn beside_periodic(
    fixture: &mut Fixture,
    least: u64,
    work: impl FnOnce(&mut Fixture) -> Result<(), SetupError>,
) -> TestResult {
    beside_periodic_within(fixture, least, KERNEL_PATH_US, work)
}

/// As [`beside_periodic`], where releases may be `path_us` µs late.
fn beside_periodic_within(
    fixture: &mut Fixture,
    least: u64,
    path_us: u64,
    work: impl FnOnce(&mut Fixture) -> Result<(), SetupError>,
) -> TestResult {
    let releases: &Releases = shared();
    let context = fixture.context(SchedParams::new(BUDGET_US, PERIOD_US))?;
    let periodic = fixture.spawn(ThreadParams::new(HIGH, context), move || loop {
        releases.note();
        sys::yield_now();
    })?;
    fixture.settle();
    let before = releases.count.load(Relaxed);
    boot::TCB.set_priority(boot::TCB, LOW)?;
    let worked = work(fixture);
    boot::TCB.set_priority(boot::TCB, 255)?;
    worked?;
    let count = releases.count.load(Relaxed) - before;
    periodic.suspend()?;
    ensure!(
        count >= least,
        "only {count} releases fell into the operation"
    );
    let longest = releases.longest.load(Relaxed);
    let allowed = fixture.ticks(PERIOD_US + path_us);
    ensure!(
        longest <= allowed,
        "{longest} ticks from one release to the next, of which {allowed} are allowed"
    );
    Ok(())
}

fn zeroing(fixture: &mut Fixture) -> TestResult {
    let memory = fixture.process.resources.untyped(22)?;
    let first = fixture.process.resources.allocate_slots(2)?;
    // The second reset zeroes what the first round used.
    memory.retype(ObjectType::LargePage, first, 2)?;
    fixture.process.resources.slot_of(memory).revoke()?;
    beside_periodic(fixture, 20, |_| {
        Ok(memory.retype(ObjectType::LargePage, first, 2)?)
    })
}

const MANY: u64 = 256;

fn objects(fixture: &mut Fixture) -> Result<(Untyped, Slot), SetupError> {
    let resources = &mut fixture.process.resources;
    Ok((resources.untyped(19)?, resources.allocate_slots(MANY)?))
}

fn many_objects(fixture: &mut Fixture) -> TestResult {
    let (memory, first) = objects(fixture)?;
    memory.retype(ObjectType::Tcb, first, MANY)?;
    fixture.process.resources.slot_of(memory).revoke()?;
    beside_periodic(fixture, 4, |_| {
        Ok(memory.retype(ObjectType::Tcb, first, MANY)?)
    })
}

fn revoke_many(fixture: &mut Fixture) -> TestResult {
    let (memory, first) = objects(fixture)?;
    memory.retype(ObjectType::Tcb, first, MANY)?;
    let slot = fixture.process.resources.slot_of(memory);
    beside_periodic(fixture, 2, |_| Ok(slot.revoke()?))
}

fn full_cnode(fixture: &mut Fixture) -> TestResult {
    const RADIX: u32 = 10;
    let resources = &mut fixture.process.resources;
    let cnode = resources.cnode(RADIX)?;
    let endpoint = resources.endpoint()?;
    let original = resources.slot_of(endpoint);
    for index in 0..1 << RADIX {
        cnode
            .slot_at(index, RADIX as u8)
            .copy_from(original, Rights::ALL)?;
    }
    let slot = resources.slot_of(cnode);
    beside_periodic(fixture, 2, |_| Ok(slot.delete()?))
}

/// Full page tables are deleted, then all the capabilities whose mappings were in them.
fn page_tables(fixture: &mut Fixture) -> TestResult {
    const TABLES: u64 = 8;
    const RADIX: u32 = 12;
    const FIRST: u64 = 0x5000_0000_0000;
    const { assert!(TABLES * 512 == 1 << RADIX) };
    let resources = &mut fixture.process.resources;
    let memory = resources.untyped(16)?;
    let tables = resources.allocate_slots(TABLES + 2)?;
    let slot = |i: u64| tables.root().slot(tables.index() + i);
    memory.retype(ObjectType::Pdpt, slot(0), 1)?;
    memory.retype(ObjectType::PageDirectory, slot(1), 1)?;
    memory.retype(ObjectType::PageTable, slot(2), TABLES)?;
    let wb = Attributes::WriteBack;
    slot(0).capability::<Pdpt>().map(boot::VSPACE, FIRST, wb)?;
    slot(1)
        .capability::<PageDirectory>()
        .map(boot::VSPACE, FIRST, wb)?;
    for i in 0..TABLES {
        let table: PageTable = slot(2 + i).capability();
        table.map(boot::VSPACE, FIRST + (i << 21), wb)?;
    }
    // A capability has one mapping: each page takes a copy, kept in a CNode.
    let frame = resources.frame(FrameSize::Small)?;
    let kept = resources.cnode(RADIX)?;
    let original = resources.slot_of(frame);
    let copy = resources.allocate_slot()?;
    for page in 0..1 << RADIX {
        copy.copy_from(original, Rights::READ)?;
        let frame: Frame = copy.capability();
        frame.map(boot::VSPACE, FIRST + (page << 12), Rights::READ, wb)?;
        kept.slot_at(page, RADIX as u8).move_from(copy)?;
    }
    let memory = resources.slot_of(memory);
    beside_periodic(fixture, 1, |_| {
        memory.revoke()?;
        Ok(original.revoke()?)
    })
}

/// How a queue is emptied.
#[derive(Clone, Copy)]
enum Emptying {
    Delete,
    Cancel,
}

/// Many threads wait to send; they need no stack and no IPC buffer.
fn long_queue(fixture: &mut Fixture, how: Emptying) -> TestResult {
    const SENDERS: u64 = 600;
    let resources = &mut fixture.process.resources;
    let endpoint = resources.endpoint()?;
    let badged = resources.mint(endpoint, Rights::ALL, 3)?;
    for _ in 0..SENDERS {
        fixture.prepare_sender(LOW - 1, badged)?.resume()?;
    }
    fixture.settle();
    let resources = &mut fixture.process.resources;
    let (original, badged) = (resources.slot_of(endpoint), resources.slot_of(badged));
    beside_periodic(fixture, 1, move |_| {
        match how {
            Emptying::Delete => {
                badged.delete()?;
                original.delete()?;
            }
            Emptying::Cancel => badged.cancel_badged_sends()?,
        }
        Ok(())
    })
}

/// Levels of one bit above the last CNode of a deep CSpace.
const DEEP_LEVELS: u32 = 60;
const LAST_RADIX: u32 = 4;

/// A CSpace in which every capability is 64 bits deep, 60 of them one by one; returns its root and
/// its last CNode. Slot 0 of each level leads on: small numbers are slots of the last.
fn deep_cspace(fixture: &mut Fixture) -> Result<(CNode, CNode), SetupError> {
    const { assert!(DEEP_LEVELS + LAST_RADIX == 64) };
    let resources = &mut fixture.process.resources;
    let last = resources.cnode(LAST_RADIX)?;
    let mut root = last;
    for _ in 0..DEEP_LEVELS {
        let level = resources.cnode(1)?;
        let below = resources.slot_of(root);
        level.slot_at(0, 1).copy_from(below, Rights::ALL)?;
        root = level;
    }
    Ok((root, last))
}

/// Whether the kernel has the debug calls: a thread that makes one goes on.
fn is_debug_kernel(fixture: &mut Fixture) -> Result<bool, SetupError> {
    static WENT_ON: AtomicBool = AtomicBool::new(false);
    fixture.spawn_full(HIGH, || {
        sys::debug_cap_identify(boot::TCB.address());
        WENT_ON.store(true, Relaxed);
    })?;
    fixture.settle();
    Ok(WENT_ON.load(Relaxed))
}

/// The longest message there is, with three capabilities of a deep CSpace, into a receive slot of
/// a deep CSpace, over and over.
fn deep_messages(fixture: &mut Fixture) -> TestResult {
    const ENDPOINT: u64 = 1;
    const GIFT: u64 = 2;
    /// Not preemptible, and so the longest of all paths: under virtual time, µs stand for thousands
    /// of instructions. The reference takes 24,416 (without the delivery of an interrupt).
    const PATH_US: u64 = 24;
    /// The same in a debug kernel, which checks its arithmetic, and of which nothing is promised: what was seen was up to
    /// 36, depending on where in a message the release falls, which every change of the program moves.
    const CHECKED_PATH_US: u64 = 48;
    /// The CNode in which the receiver looks for its receive slot: the root of its CSpace.
    const ROOT: u64 = 4;
    const RECEIVE: u64 = 5;
    let endpoint = fixture.process.resources.endpoint()?;
    let mut threads = [boot::TCB; 2];
    let start = [send_long(), receive()];
    for (thread, start) in threads.iter_mut().zip(start) {
        let (root, last) = deep_cspace(fixture)?;
        let context = fixture.context(FULL)?;
        let process = &mut fixture.process;
        let resources = &mut process.resources;
        let slot = |index| last.slot_at(index, LAST_RADIX as u8);
        slot(ENDPOINT).copy_from(resources.slot_of(endpoint), Rights::ALL)?;
        // The endpoint's own badge is passed twice, the last capability itself.
        slot(GIFT).mint_from(resources.slot_of(endpoint), Rights::ALL, 9)?;
        slot(ROOT).copy_from(resources.slot_of(root), Rights::ALL)?;
        let buffer = process.space.map_new(resources, 4096)?;
        let frame = buffer.frames().next().ok_or("no frame")?;
        let word = |index: usize, value: u64| {
            // SAFETY: the buffer was just mapped, and its thread does not run yet.
            unsafe { buffer.as_mut_ptr().cast::<u64>().add(index).write(value) };
        };
        for (i, cap) in [GIFT, GIFT, ROOT].into_iter().enumerate() {
            word(ipc_buffer::CAPS_OR_BADGES + i, cap);
        }
        word(ipc_buffer::RECEIVE_CNODE, ROOT);
        word(ipc_buffer::RECEIVE_INDEX, RECEIVE);
        word(ipc_buffer::RECEIVE_DEPTH, 64);
        let tcb = resources.tcb()?;
        let vspace = process.space.vspace().root();
        tcb.configure(root, GuardData(0), vspace, Some((buffer.address(), frame)))?;
        context.bind(tcb)?;
        tcb.set_priority(boot::TCB, LOW - 1)?;
        tcb.write_registers(&UserContext::start(start, 0, ENDPOINT, 0), false)?;
        *thread = tcb;
    }
    let (end, done) = (fixture.ticks(5_000), fixture.done);
    let path_us = match is_debug_kernel(fixture)? {
        true => CHECKED_PATH_US,
        false => PATH_US,
    };
    let result = beside_periodic_within(fixture, 50, path_us, |fixture| {
        for tcb in threads {
            tcb.resume()?;
        }
        // The two take all the time there is, but for the turns of this one.
        let end = time::ticks() + end;
        fixture.spawn_full(LOW - 1, move || {
            while time::ticks() < end {
                sys::yield_now();
            }
            done.signal();
        })?;
        done.wait();
        Ok(())
    });
    for tcb in threads {
        tcb.suspend()?;
    }
    result
}
