//! 05, section 2.5: virtual-memory faults.

use conformance_kit::arch::order::{RAX, RDI, RIP};

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
    check("05/2.5/an-access-to-a-kernel-address", kernel_address),
    check("05/2.5/the-address-is-that-of-the-byte", exact_address),
    check(
        "05/2.5/an-access-across-pages-names-the-missing-one",
        across_pages,
    ),
    check(
        "05/2.5/without-an-address-space-the-first-fetch-faults",
        no_vspace,
    ),
];

/// `nop; mov rax, [rdi]` and `nop; mov [rdi], rax`.
const READ_AT_RDI: [u8; 4] = [0x90, 0x48, 0x8b, 0x07];
const WRITE_AT_RDI: [u8; 4] = [0x90, 0x48, 0x89, 0x07];

/// Bits of the status.
const PRESENT: u64 = 1 << 0;
const WRITE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const FETCH: u64 = 1 << 4;

const UNMAPPED: u64 = 0x1234_5678_9abc;

/// Lets a thread access `address` by the second instruction of `code`.
fn access(f: &mut Fixture, code: &[u8], address: u64) -> Result<(RawThread, Stopped), Failure> {
    let thread = f.raw(code, &registers(&[(RDI, address)]))?;
    let stopped = thread.run(f)?;
    Ok((thread, stopped))
}

/// Fails unless an access is a data fault of this address with this status, at the instruction,
/// which has changed no register.
fn expect_fault(f: &mut Fixture, code: &[u8], address: u64, status: u64) -> TestResult {
    let (thread, stopped) = access(f, code, address)?;
    let expected = [thread.code + 1, address, 0, status];
    ensure!(
        stopped.label == fault::VM_FAULT && stopped.words == expected,
        "expected a fault {expected:x?}, saw fault {} {:x?}",
        stopped.label,
        stopped.words
    );
    ensure_eq!(stopped.registers.get(RIP), thread.code + 1);
    ensure_eq!(stopped.registers.get(RAX), distinct().get(RAX));
    Ok(())
}

fn unmapped_read(f: &mut Fixture) -> TestResult {
    expect_fault(f, &READ_AT_RDI, UNMAPPED, USER)?;
    expect_fault(f, &READ_AT_RDI, 0, USER)
}

fn unmapped_write(f: &mut Fixture) -> TestResult {
    expect_fault(f, &WRITE_AT_RDI, UNMAPPED, USER | WRITE)
}

/// A page that is mapped with these rights.
fn page(f: &mut Fixture, rights: Rights) -> Result<u64, Failure> {
    let frame = f.frame(FrameSize::Small)?;
    let process = &mut f.process;
    let resources = &mut process.resources;
    let (size, attributes) = (FrameSize::Small, Attributes::WriteBack);
    Ok(process
        .space
        .map_frame(resources, frame, size, rights, attributes)?)
}

fn read_only_write(f: &mut Fixture) -> TestResult {
    let address = page(f, Rights::READ)? + 8;
    expect_fault(f, &WRITE_AT_RDI, address, PRESENT | USER | WRITE)
}

fn kernel_only(f: &mut Fixture) -> TestResult {
    for rights in [Rights::NONE, Rights::WRITE] {
        let address = page(f, rights)? + 16;
        expect_fault(f, &READ_AT_RDI, address, PRESENT | USER)?;
        expect_fault(f, &WRITE_AT_RDI, address, PRESENT | USER | WRITE)?;
    }
    Ok(())
}

fn unmapped_fetch(f: &mut Fixture) -> TestResult {
    // jmp rdi
    let (_, stopped) = access(f, &[0xff, 0xe7], UNMAPPED)?;
    ensure_eq!(stopped.label, fault::VM_FAULT);
    // Processors with SMEP report a fetch, others an access to data.
    let fetch = stopped.words[fault::vm_fault::PREFETCH];
    ensure!(fetch <= 1, "the instruction flag is {fetch:#x}");
    ensure_eq!(
        stopped.words,
        [UNMAPPED, UNMAPPED, fetch, USER | (fetch * FETCH)]
    );
    Ok(())
}

fn kernel_address(f: &mut Fixture) -> TestResult {
    for address in [
        0xffff_8000_0000_0000,
        0xffff_ffff_8010_0000,
        0xffff_ffff_ffff_fff0,
    ] {
        for (code, write) in [(READ_AT_RDI, 0), (WRITE_AT_RDI, WRITE)] {
            let (thread, stopped) = access(f, &code, address)?;
            ensure_eq!(stopped.label, fault::VM_FAULT);
            ensure_eq!(stopped.words[..3], [thread.code + 1, address, 0]);
            // Whether the kernel is mapped there at all is its own business.
            let status = stopped.words[fault::vm_fault::STATUS] & !PRESENT;
            ensure_eq!(status, USER | write);
        }
    }
    Ok(())
}

fn exact_address(f: &mut Fixture) -> TestResult {
    for offset in [0, 1, 0x7ff, 0xff8] {
        let address = (UNMAPPED & !0xfff) + offset;
        expect_fault(f, &READ_AT_RDI, address, USER)?;
    }
    Ok(())
}

fn across_pages(f: &mut Fixture) -> TestResult {
    // The page behind it is not mapped (see `OwnSpace`).
    let end = page(f, Rights::READ_WRITE)? + 0x1000;
    let (thread, stopped) = access(f, &READ_AT_RDI, end - 4)?;
    ensure_eq!(stopped.label, fault::VM_FAULT);
    ensure_eq!(stopped.words, [thread.code + 1, end, 0, USER]);
    Ok(())
}

fn no_vspace(f: &mut Fixture) -> TestResult {
    let space = f.vspace()?;
    let thread = f.raw(&READ_AT_RDI, &distinct())?;
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
        ensure_eq!(stopped.words[..2], [thread.code, thread.code]);
        ensure_eq!(stopped.words[3] & !FETCH, USER);
    }
    Ok(())
}
