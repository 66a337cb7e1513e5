//! No instruction of a user takes it to another privilege level but those that enter the kernel: on no
//! core, whatever lies in the memory that the processor would look at.
//!
//! Each program ends in a breakpoint: if nothing else faults, that tells.

use alloc::vec::Vec;
use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use sandglass::abi::context::x86_64::FS_BASE;
use sandglass::cap::{Attributes, Frame, FrameSize, Rights};
use sandglass::fault::Fault;
use sandglass::testing::{shared, Failure, Suite, TestResult};
use sandglass::{ensure, ensure_eq};

use crate::fixture::{Fixture, FULL};
use crate::patient::Patient;

/// Vectors of an undefined instruction and of a general protection fault.
const UNDEFINED: u64 = 6;
const PROTECTION: u64 = 13;

/// Bit of a selector that names the local descriptor table, and of the code of its fault.
const LOCAL: u16 = 4;
const USER_LEVEL: u16 = 3;

/// Bytes of descriptors that a local table of the greatest size has.
const TABLE_BYTES: u64 = 0x1_0000;
const PAGE: u64 = 4096;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "privilege",
        &[
            ("no_segment_of_a_local_table_can_be_loaded", local_segment),
            ("a_call_gate_in_low_memory_leads_nowhere", call_gate),
            ("sysenter_enters_nothing", sysenter),
            ("kernel_memory_cannot_be_touched", kernel_memory),
            ("a_tls_base_is_loaded_canonical", tls_base),
        ],
    );
}

global_asm!(
    // What the call gate leads to: notes the privilege level behind the pointer that was called
    // through, and goes back.
    "kernel_tests_gate_target:",
    "mov [rax + 8], cs",
    "retfq",
);

extern "C" {
    /// Code, not data: only its address is used.
    static kernel_tests_gate_target: u8;
}

/// Runs `body` on each core in turn, and expects a fault with one of these vectors and this code.
fn faults(
    fixture: &mut Fixture,
    vectors: &[u64],
    expected_code: u16,
    body: impl FnOnce() + Copy + Send + 'static,
) -> TestResult {
    for core in 0..fixture.boot.cores() {
        let control = fixture.boot.sched_control(core).ok_or("no such core")?;
        let patient = Patient::on(fixture, control, FULL, move || {
            body();
            // SAFETY: never continues here.
            unsafe { asm!("int3") }
        })?;
        let fault = patient.next()?;
        ensure!(
            matches!(fault, Fault::Exception { number, code, .. }
                if vectors.contains(&number) && code == u64::from(expected_code)),
            "core {core}: {fault:?}"
        );
    }
    Ok(())
}

/// The addresses that a local table at address 0 would have, mapped, and filled with copies of a
/// descriptor of two words.
struct LowMemory(Vec<Frame>);

impl LowMemory {
    fn filled(fixture: &mut Fixture, descriptor: [u64; 2]) -> Result<Self, Failure> {
        let process = &mut fixture.process;
        let vspace = process.space.vspace();
        let mut frames = Vec::new();
        for page in 0..TABLE_BYTES / PAGE {
            let resources = &mut process.resources;
            let frame = resources.frame(FrameSize::Small)?;
            let fill = |page: &mut [u8]| {
                for (i, byte) in page.iter_mut().enumerate() {
                    *byte = descriptor[i / 8 % 2].to_le_bytes()[i % 8];
                }
            };
            process.space.fill_frame(resources, frame, fill)?;
            let (rights, attributes) = (Rights::READ_WRITE, Attributes::WriteBack);
            vspace.map(resources, frame, page * PAGE, rights, attributes)?;
            frames.push(frame);
        }
        Ok(Self(frames))
    }

    fn unmap(self) -> TestResult {
        for frame in self.0 {
            frame.unmap()?;
        }
        Ok(())
    }
}

/// Selectors of the first and the last place, where there are data segments for users.
fn local_segment(fixture: &mut Fixture) -> TestResult {
    const DATA: u64 = 0x00cf_f300_0000_ffff;
    const LAST: u16 = 0xfff8;
    let memory = LowMemory::filled(fixture, [DATA; 2])?;
    for place in [0, LAST] {
        let selector = place | LOCAL | USER_LEVEL;
        faults(fixture, &[PROTECTION], place | LOCAL, move || {
            // SAFETY: nothing uses the segment.
            unsafe { asm!("mov gs, {0:x}", in(reg) selector) }
        })?;
    }
    memory.unmap()
}

fn call_gate(fixture: &mut Fixture) -> TestResult {
    const KERNEL_CODE: u64 = 0x08;
    const PRESENT_USER_CALL_GATE: u64 = 0xec00 << 32;
    let target = &raw const kernel_tests_gate_target as u64;
    let low = target & 0xffff | (target >> 16 & 0xffff) << 48;
    let gate = [
        low | KERNEL_CODE << 16 | PRESENT_USER_CALL_GATE,
        target >> 32,
    ];
    let memory = LowMemory::filled(fixture, gate)?;

    // A far pointer, of which the selector alone counts, and the level that the target notes.
    let pointer: &[AtomicU64; 2] = shared();
    pointer[0].store(u64::from(LOCAL | USER_LEVEL) << 32, Relaxed);
    pointer[1].store(u64::MAX, Relaxed);
    let result = faults(fixture, &[PROTECTION], LOCAL, move || {
        // SAFETY: comes back with all registers, if it comes anywhere.
        unsafe { asm!("call fword ptr [rax]", in("rax") pointer) }
    });
    ensure_eq!(pointer[1].load(Relaxed), u64::MAX);
    result?;
    memory.unmap()
}

/// SYSENTER has no code segment to go to (ABI 07, section 2), and some processors do not have it in
/// code of 64 bits.
fn sysenter(fixture: &mut Fixture) -> TestResult {
    faults(fixture, &[PROTECTION, UNDEFINED], 0, || {
        // SAFETY: changes nothing.
        unsafe { asm!("sysenter") }
    })
}

/// The kernel's image, its alias of physical memory, and the last word there is: also where they are mapped.
fn kernel_memory(fixture: &mut Fixture) -> TestResult {
    for address in [0xffff_ffff_8000_0000, 0xffff_ff80_0000_0000, !7] {
        let patient = Patient::on(fixture, fixture.control, FULL, move || {
            // SAFETY: faults for good.
            unsafe {
                asm!("mov {0}, [{0}]", inout(reg) address => _);
            }
        })?;
        let fault = patient.next()?;
        ensure!(
            matches!(fault, Fault::Memory { address: at, .. } if at == address),
            "{fault:?}"
        );
    }
    Ok(())
}

/// A base that is not canonical can be set for another thread (03, section 4.12). What the processor is told is canonical: the
/// lower 48 bits of it.
fn tls_base(fixture: &mut Fixture) -> TestResult {
    const SECRET: u64 = 0x1e7e;
    let [secret, seen]: &[AtomicU64; 2] = shared();
    for upper in [0, 1 << 63, 0x1234 << 48] {
        secret.store(SECRET, Relaxed);
        seen.store(0, Relaxed);
        let patient = Patient::on(fixture, fixture.control, FULL, move || {
            // SAFETY: only stores where nobody else does, between two faults. What follows never runs.
            unsafe {
                asm!("int3", "mov {0}, fs:[0]", "mov [{1}], {0}", "int3", out(reg) _, in(reg) seen)
            }
        })?;
        let is_breakpoint = |fault| matches!(fault, Fault::Exception { number: 3, .. });
        ensure!(is_breakpoint(patient.next()?));
        let base = core::ptr::from_ref(secret) as u64 | upper;
        patient.tcb.set_tls_base(base)?;
        patient.tcb.resume()?;
        let fault = patient.next()?;
        ensure!(is_breakpoint(fault), "{upper:#x}: {fault:?}");
        ensure_eq!(seen.load(Relaxed), SECRET);
        ensure_eq!(patient.tcb.read_registers(false)?.get(FS_BASE), base);
    }
    Ok(())
}
