//! What is unmapped on one core is unmapped for all, when the invocation returns.

use conformance_kit::arch::order::{RAX, RDI, RSI};
use sandglass::abi::fault::vm_fault;
use sandglass::cap::PageTable;
use sandglass::vspace::VSpace;

use super::kit::{runner, Cores, ENDLESS};
use crate::fixture::linger;
use crate::page03::levels::VADDR;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("04/15/unmapping-a-page-is-seen-by-all-cores", |f| {
        unmapped(f, Unmap::Page)
    }),
    check("04/15/deleting-a-frame-is-seen-by-all-cores", |f| {
        unmapped(f, Unmap::Delete)
    }),
    check(
        "04/15/revoking-a-frame's-memory-is-seen-by-all-cores",
        |f| unmapped(f, Unmap::Revoke),
    ),
    check("04/15/unmapping-a-page-table-is-seen-by-all-cores", |f| {
        unmapped(f, Unmap::Table)
    }),
    check("04/15/another-frame-is-seen-by-all-cores", replaced),
    check(
        "04/15/taking-the-right-to-write-is-seen-by-all-cores",
        read_only,
    ),
    check(
        "04/15/memory-that-is-used-again-is-safe-from-all-cores",
        used_again,
    ),
    check("04/15/unmapping-code-is-seen-by-all-cores", |f| {
        code_gone(f, false)
    }),
    check(
        "04/15/revoking-an-address-space-is-seen-by-all-cores",
        |f| code_gone(f, true),
    ),
];

use conformance_kit::arch::{READ_LOOP as READ, WRITE_LOOP as WRITE};

const RW: Rights = Rights::READ_WRITE;

/// Threads on all other cores that run this code in an endless loop, with these registers.
fn visitors(
    f: &mut Fixture,
    cores: &Cores,
    code: &[u8],
    named: &[(usize, u64)],
) -> Result<Vec<RawThread>, Failure> {
    let mut visitors = Vec::new();
    for core in cores.others() {
        let params = f.active_at(core, 100, ENDLESS)?;
        let thread = f.raw_with(params, code, &registers(named))?;
        thread.start()?;
        visitors.push(thread);
    }
    Ok(visitors)
}

/// Each reads the word at `address`, and shows it in a buffer of its own.
fn readers(
    f: &mut Fixture,
    cores: &Cores,
    address: u64,
) -> Result<Vec<(RawThread, Buffer)>, Failure> {
    let mut readers = Vec::new();
    for core in cores.others() {
        let shown = f.buffer()?;
        let params = f.active_at(core, 100, ENDLESS)?;
        let named = [(RDI, address), (RSI, shown.address)];
        let thread = f.raw_with(params, &READ, &registers(&named))?;
        thread.start()?;
        readers.push((thread, shown));
    }
    Ok(readers)
}

/// Waits until all show this word.
fn ensure_shown(f: &Fixture, readers: &[(RawThread, Buffer)], word: u64) -> TestResult {
    for (_, shown) in readers {
        f.eventually("it reads the word", || shown.read(0) == word)?;
    }
    Ok(())
}

/// Fails unless all have stopped by a fault at `address`, and read nothing any more.
fn ensure_stopped(f: &Fixture, readers: &[(RawThread, Buffer)], address: u64) -> TestResult {
    for (_, shown) in readers {
        shown.write(0, 0);
    }
    linger();
    for (thread, shown) in readers {
        ensure_eq!(shown.read(0), 0);
        expect_fault(&thread.stopped(f)?, address)?;
    }
    Ok(())
}

/// Fails unless this is a virtual-memory fault at `address`.
fn expect_fault(stopped: &Stopped, address: u64) -> TestResult {
    ensure_eq!(stopped.label, fault::VM_FAULT);
    ensure_eq!(stopped.words[vm_fault::ADDRESS], address);
    Ok(())
}

#[derive(Clone, Copy, PartialEq)]
enum Unmap {
    Page,
    Delete,
    Revoke,
    Table,
}

/// A frame of memory of its own, mapped at [`VADDR`] of this address space.
struct Mapped {
    memory: Untyped,
    frame: Frame,
    table: PageTable,
}

impl Mapped {
    fn new(f: &mut Fixture) -> Result<Self, Failure> {
        let (memory, slot) = (f.untyped(12)?, f.empty_slot()?);
        memory.retype(ObjectType::Page, slot, 1)?;
        let frame: Frame = slot.capability();
        let table: PageTable = f.make(ObjectType::PageTable)?;
        let (pdpt, directory) = (
            f.process.resources.pdpt()?,
            f.process.resources.page_directory()?,
        );
        let attributes = Attributes::WriteBack;
        pdpt.map(boot::VSPACE, VADDR, attributes)?;
        directory.map(boot::VSPACE, VADDR, attributes)?;
        table.map(boot::VSPACE, VADDR, attributes)?;
        map(frame, RW)?;
        Ok(Self {
            memory,
            frame,
            table,
        })
    }
}

/// Maps it at [`VADDR`].
fn map(frame: Frame, rights: Rights) -> TestResult {
    Ok(frame.map(boot::VSPACE, VADDR, rights, Attributes::WriteBack)?)
}

/// Writes the word at [`VADDR`], where a frame is mapped.
fn put(word: u64) {
    // SAFETY: the check has mapped a frame there, which nothing else of this program uses.
    unsafe { (VADDR as *mut u64).write_volatile(word) }
}

/// Reads the word at [`VADDR`], where a frame is mapped.
fn get() -> u64 {
    // SAFETY: as in `put`.
    unsafe { (VADDR as *const u64).read_volatile() }
}

fn unmapped(f: &mut Fixture, how: Unmap) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let mapped = Mapped::new(f)?;
    put(0x77);
    let readers = readers(f, &cores, VADDR)?;
    ensure_shown(f, &readers, 0x77)?;
    match how {
        Unmap::Page => mapped.frame.unmap()?,
        Unmap::Delete => f.slot_of(mapped.frame).delete()?,
        Unmap::Revoke => f.slot_of(mapped.memory).revoke()?,
        Unmap::Table => mapped.table.unmap()?,
    }
    ensure_stopped(f, &readers, VADDR)
}

/// Unmapped and mapped again: what is there then is read, and nothing else.
fn replaced(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let mapped = Mapped::new(f)?;
    let other = f.frame(FrameSize::Small)?;
    put(1);
    let readers = readers(f, &cores, VADDR)?;
    ensure_shown(f, &readers, 1)?;
    let (mut here, mut away) = (mapped.frame, other);
    for word in 2..12 {
        here.unmap()?;
        ensure_stopped(f, &readers, VADDR)?;
        map(away, RW)?;
        put(word);
        for (thread, _) in &readers {
            thread.reply.send(Message::EMPTY);
        }
        ensure_shown(f, &readers, word)?;
        (here, away) = (away, here);
    }
    Ok(())
}

fn read_only(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let mapped = Mapped::new(f)?;
    let writers = visitors(f, &cores, &WRITE, &[(RDI, VADDR), (RAX, 1)])?;
    f.eventually("they write", || get() > 10)?;
    map(mapped.frame, Rights::READ)?;
    let last = get();
    linger();
    ensure_eq!(get(), last);
    for thread in &writers {
        expect_fault(&thread.stopped(f)?, VADDR)?;
    }
    map(mapped.frame, RW)?;
    for thread in &writers {
        thread.reply.send(Message::EMPTY);
    }
    f.eventually("they write", || get() > last)
}

/// All other cores write to a page whose memory becomes another page.
fn used_again(f: &mut Fixture) -> TestResult {
    let cores = Cores::new(f, 2)?;
    let mapped = Mapped::new(f)?;
    let writers = visitors(f, &cores, &WRITE, &[(RDI, VADDR), (RAX, 1)])?;
    f.eventually("they write", || get() > 10)?;
    f.slot_of(mapped.memory).revoke()?;
    let slot = f.empty_slot()?;
    mapped.memory.retype(ObjectType::Page, slot, 1)?;
    let frame: Frame = slot.capability();
    let process = &mut f.process;
    let address = process.space.map_frame(
        &mut process.resources,
        frame,
        FrameSize::Small,
        RW,
        Attributes::WriteBack,
    )?;
    linger();
    for offset in (0..4096).step_by(8) {
        // SAFETY: the frame is mapped there.
        let word = unsafe { ((address + offset) as *const u64).read_volatile() };
        ensure!(word == 0, "{word:#x} at {offset:#x}");
    }
    for thread in &writers {
        expect_fault(&thread.stopped(f)?, VADDR)?;
    }
    Ok(())
}

/// Threads on all other cores run in an address space of their own, whose code goes, or all of it.
fn code_gone(f: &mut Fixture, with_space: bool) -> TestResult {
    const CODE: u64 = 0x7000_0000_0000;
    let cores = Cores::new(f, 2)?;
    let (memory, slot) = (f.untyped(12)?, f.empty_slot()?);
    memory.retype(ObjectType::Pml4, slot, 1)?;
    let root: sandglass::cap::Pml4 = slot.capability();
    boot::ASID_POOL.assign(root)?;
    let space = VSpace::from_root(root);
    let code = f.code_in(space, CODE, &WRITE)?;
    let shown = f.frame(FrameSize::Small)?;
    let copy = f.copy(shown)?;
    let own = {
        let process = &mut f.process;
        let (resources, attributes) = (&mut process.resources, Attributes::WriteBack);
        space.map(resources, shown, CODE + 0x1000, RW, attributes)?;
        process
            .space
            .map_frame(resources, copy, FrameSize::Small, RW, attributes)?
    };
    let count = || {
        // SAFETY: mapped for the check's time.
        unsafe { (own as *const u64).read_volatile() }
    };
    let mut threads = Vec::new();
    for core in cores.others() {
        let (endpoint, reply) = (f.endpoint()?, f.reply()?);
        let params = f.active_at(core, 100, ENDLESS)?;
        let named = [
            (conformance_kit::arch::order::RIP, CODE),
            (RDI, CODE + 0x1000),
            (RAX, 1),
        ];
        let tcb = f.raw_thread(params, &registers(&named))?;
        tcb.set_space(Some(endpoint), boot::CNODE, GuardData(0), root)?;
        tcb.resume()?;
        threads.push((tcb, endpoint, reply));
    }
    f.eventually("they run there", || count() > 50)?;
    if with_space {
        f.slot_of(memory).revoke()?;
    } else {
        code.unmap()?;
    }
    let last = count();
    linger();
    let left = count() == last;
    ensure!(left || with_space, "they go on in code that is unmapped");
    if with_space {
        // README, "Where Sandglass differs", 7.
        f.choice = Some(Choice::of(
            left,
            "no core goes on in a revoked address space",
            "cores go on in a revoked address space until they switch threads",
        ));
        for core in cores.others() {
            let other = runner(f, core, 150)?;
            other.ensure_runs(f)?;
            other.tcb.suspend()?;
        }
    }
    for (tcb, endpoint, reply) in threads {
        let stopped = f.stopped(tcb, endpoint, reply)?;
        ensure_eq!(stopped.label, fault::VM_FAULT);
    }
    Ok(())
}
