//! 05, section 2.5: virtual-memory faults.

use conformance_kit::arch::code;
use conformance_kit::arch::order::{RAX, RDI, RIP};
use sandglass::abi::fault::vm_fault;

use super::super::page06;
use crate::prelude::*;

pub const CHECKS: &[Check] = &[
    check("05/2.5/a-read-of-an-unmapped-page", unmapped_read),
    check("05/2.5/a-write-of-an-unmapped-page", unmapped_write),
    check("05/2.5/a-write-of-a-read-only-page", read_only_write),
    check("05/2.5/an-access-to-a-kernel-only-page", kernel_only),
    check(
        "05/2.5/an-instruction-fetch-from-an-unmapped-page",
        unmapped_fetch,
    ),
    check(
        "05/2.5/an-instruction-fetch-that-is-not-allowed",
        forbidden_fetch,
    ),
    check("05/2.5/an-access-to-a-kernel-address", kernel_address),
    check("05/2.5/the-address-is-that-of-the-byte", exact_address),
    check(
        "05/2.5/an-access-across-pages-names-the-missing-one",
        across_pages,
    ),
    check(
        "05/7/an-access-to-nothing-does-not-stop-the-machine",
        nothing,
    ),
    check(
        "05/2.5/without-an-address-space-the-first-fetch-faults",
        no_vspace,
    ),
];

const NOP: u32 = 0xd503_201f;
/// `nop; ldr x9, [x0]`, `nop; str x9, [x0]`, and `nop; br x0`.
const READ: [u32; 2] = [NOP, 0xf940_0009];
const WRITE: [u32; 2] = [NOP, 0xf900_0009];
const JUMP: [u32; 2] = [NOP, 0xd61f_0000];

/// ESR: the class of an access to data or of a fetch, with a whole instruction; whether it was a write; and why it failed.
const DATA: u64 = 0x24 << 26 | 1 << 25;
const FETCH: u64 = 0x20 << 26 | 1 << 25;
const WRITTEN: u64 = 1 << 6;
const TRANSLATION: u64 = 0x04;
const PERMISSION: u64 = 0x0c;
const EXTERNAL: u64 = 0x10;
/// The bits that say so, with the level in the lowest two.
const WHY: u64 = 0x3f;
const LEVEL: u64 = 3;

/// An address whose first entry, of the root, is absent.
const UNMAPPED: u64 = 0x1234_5678_9abc;

/// Lets a thread access `address` by the second of these instructions.
fn access(f: &mut Fixture, what: &[u32], address: u64) -> Result<(RawThread, Stopped), Failure> {
    let thread = f.raw(&code(what), &registers(&[(RDI, address)]))?;
    let stopped = thread.run(f)?;
    Ok((thread, stopped))
}

/// Fails unless an access is a data fault of this address with this status, at the instruction, which has changed no register.
fn expect_fault(f: &mut Fixture, what: &[u32], address: u64, status: u64) -> TestResult {
    let (thread, stopped) = access(f, what, address)?;
    let expected = [thread.code + 4, address, 0, status];
    ensure!(
        stopped.label == fault::VM_FAULT && stopped.words == expected,
        "expected a fault {expected:x?}, saw fault {} {:x?}",
        stopped.label,
        stopped.words
    );
    ensure_eq!(stopped.registers.get(RIP), thread.code + 4);
    ensure_eq!(stopped.registers.get(RAX), distinct().get(RAX));
    Ok(())
}

fn unmapped_read(f: &mut Fixture) -> TestResult {
    expect_fault(f, &READ, UNMAPPED, DATA | TRANSLATION)
}

fn unmapped_write(f: &mut Fixture) -> TestResult {
    expect_fault(f, &WRITE, UNMAPPED, DATA | WRITTEN | TRANSLATION)
}

/// A page that is mapped with these rights and attributes.
fn page(f: &mut Fixture, rights: Rights, attributes: u64) -> Result<(Frame, u64), Failure> {
    let frame = f.frame(FrameSize::Small)?;
    let process = &mut f.process;
    let resources = &mut process.resources;
    let size = FrameSize::Small;
    let default = Attributes::WriteBack;
    let address = process
        .space
        .map_frame(resources, frame, size, rights, default)?;
    let words = [address, rights.raw(), attributes];
    let map = Invocation::new(frame, arch_label::PAGE_MAP, &words, &[boot::VSPACE.cptr()]);
    map.expect_ok(&[])?;
    Ok((frame, address))
}

fn read_only_write(f: &mut Fixture) -> TestResult {
    let address = page(f, Rights::READ, 3)?.1 + 8;
    expect_fault(f, &WRITE, address, DATA | WRITTEN | PERMISSION | LEVEL)
}

fn kernel_only(f: &mut Fixture) -> TestResult {
    for rights in [Rights::NONE, Rights::WRITE] {
        let address = page(f, rights, 3)?.1 + 16;
        expect_fault(f, &READ, address, DATA | PERMISSION | LEVEL)?;
        expect_fault(f, &WRITE, address, DATA | WRITTEN | PERMISSION | LEVEL)?;
    }
    Ok(())
}

/// The address is that of the instruction, and where the thread stands.
fn unmapped_fetch(f: &mut Fixture) -> TestResult {
    let address = UNMAPPED & !3;
    let (_, stopped) = access(f, &JUMP, address)?;
    ensure_eq!(stopped.label, fault::VM_FAULT);
    ensure_eq!(stopped.words, [address, address, 1, FETCH | TRANSLATION]);
    ensure_eq!(stopped.registers.get(RIP), address);
    Ok(())
}

fn forbidden_fetch(f: &mut Fixture) -> TestResult {
    let (_, address) = page(f, Rights::ALL, 7)?;
    let (_, stopped) = access(f, &JUMP, address + 12)?;
    ensure_eq!(stopped.label, fault::VM_FAULT);
    let status = FETCH | PERMISSION | LEVEL;
    ensure_eq!(stopped.words, [address + 12, address + 12, 1, status]);
    Ok(())
}

/// Whether the kernel is mapped there at all is its own business; and so are addresses that are nobody's.
fn kernel_address(f: &mut Fixture) -> TestResult {
    for address in [
        0xffff_ff80_0000_0000,
        0xffff_ffff_c000_0000,
        0xffff_ffff_ffff_fff0,
        0x0001_0000_0000_0000,
        0x8000_0000_0000_0000,
    ] {
        for (what, written) in [(READ, 0), (WRITE, WRITTEN)] {
            let (thread, stopped) = access(f, &what, address)?;
            ensure_eq!(stopped.label, fault::VM_FAULT);
            ensure_eq!(stopped.words[..3], [thread.code + 4, address, 0]);
            let status = stopped.words[vm_fault::STATUS];
            ensure_eq!(status & !WHY, DATA | written);
            ensure!(matches!(status & WHY & !3, TRANSLATION | PERMISSION));
        }
    }
    Ok(())
}

fn exact_address(f: &mut Fixture) -> TestResult {
    for offset in [0, 1, 0x7ff, 0xff8] {
        let address = (UNMAPPED & !0xfff) + offset;
        expect_fault(f, &READ, address, DATA | TRANSLATION)?;
    }
    Ok(())
}

fn across_pages(f: &mut Fixture) -> TestResult {
    // The page behind it is not mapped (see `OwnSpace`).
    let end = page(f, Rights::READ_WRITE, 3)?.1 + 0x1000;
    let (thread, stopped) = access(f, &READ, end - 4)?;
    ensure_eq!(stopped.label, fault::VM_FAULT);
    let status = stopped.words[vm_fault::STATUS];
    ensure_eq!(stopped.words[..3], [thread.code + 4, end, 0]);
    ensure_eq!(status & !3, DATA | TRANSLATION);
    Ok(())
}

/// The translation leads to an address of the machine where nothing is, which processors report at the instruction if they
/// can: it is the thread's fault, and the machine goes on.
fn nothing(f: &mut Fixture) -> TestResult {
    const NOTHING: u64 = 1 << 38;
    if page06::tree(f)?.has("xlnx,zynqmp") {
        return Err(Failure::skip("QEMU answers such accesses on this board"));
    }
    let frame = f.device_page(NOTHING)?;
    let process = &mut f.process;
    let (resources, size) = (&mut process.resources, FrameSize::Small);
    let (rights, attributes) = (Rights::ALL, Attributes::Uncached);
    let address = process
        .space
        .map_frame(resources, frame, size, rights, attributes)?;
    for (what, written) in [(READ, 0), (WRITE, WRITTEN)] {
        let (thread, stopped) = access(f, &what, address)?;
        ensure_eq!(stopped.label, fault::VM_FAULT);
        ensure_eq!(stopped.words[0], thread.code + 4);
        let status = stopped.words[vm_fault::STATUS];
        ensure_eq!(status & !(WHY | 1 << 9 | 1 << 10), DATA | written);
        ensure_eq!(status & WHY, EXTERNAL);
    }
    Ok(())
}

fn no_vspace(f: &mut Fixture) -> TestResult {
    let space = f.vspace()?;
    let thread = f.raw(&code(&READ), &distinct())?;
    let handler = Some(thread.handler);
    thread
        .tcb
        .set_space(handler, boot::CNODE, GuardData(0), space.root())?;
    for deleted in [false, true] {
        if deleted {
            // The thread's own capability goes too.
            f.slot_of(space.root()).revoke()?;
        }
        thread.tcb.resume()?;
        let stopped = thread.stopped(f)?;
        ensure_eq!(stopped.label, fault::VM_FAULT);
        ensure_eq!(stopped.words[..3], [thread.code, thread.code, 1]);
        ensure_eq!(stopped.words[3] & !WHY, FETCH);
    }
    Ok(())
}
