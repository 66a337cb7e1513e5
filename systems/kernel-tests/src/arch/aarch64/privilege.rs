//! No instruction of a user takes it to another exception level but SVC, on no core; nor does it reach what is the kernel's.

use core::arch::asm;

use sandglass::ensure;
use sandglass::fault::Fault;
use sandglass::testing::{Suite, TestResult};

use crate::fixture::{Fixture, FULL};
use crate::patient::Patient;

/// ESR of an unknown instruction, and its class of a register that is kept from a level.
const UNKNOWN: u64 = 0x0200_0000;
const REGISTER_CLASS: u64 = 0x18;

pub fn run(suite: &mut Suite, fixture: &mut Fixture) {
    fixture.run(
        suite,
        "privilege",
        &[
            ("other_levels_are_not_called", calls),
            ("the_kernels_registers_are_not_reached", registers),
            ("kernel_memory_cannot_be_touched", kernel_memory),
        ],
    );
}

/// Runs `body` on each core in turn, and expects that it is an exception. Behind it is a breakpoint.
fn faults(fixture: &mut Fixture, body: impl FnOnce() + Copy + Send + 'static) -> TestResult {
    for core in 0..fixture.boot.cores() {
        let control = fixture.boot.sched_control(core).ok_or("no such core")?;
        let patient = Patient::on(fixture, control, FULL, move || {
            body();
            // SAFETY: never continues here.
            unsafe { asm!("brk #0") }
        })?;
        let fault = patient.next()?;
        ensure!(
            matches!(fault, Fault::Exception { number, .. }
                if number == UNKNOWN || number >> 26 == REGISTER_CLASS),
            "core {core}: {fault:?}"
        );
    }
    Ok(())
}

/// What faults, one after the other.
macro_rules! fault {
    ($fixture:ident, $($instruction:literal),* $(,)?) => {
        $(
            faults($fixture, || {
                // SAFETY: faults, or the test fails behind it.
                unsafe { asm!($instruction, out("x0") _) }
            })?;
        )*
    };
}

fn calls(fixture: &mut Fixture) -> TestResult {
    fault!(fixture, "hvc #0", "smc #0", "hlt #1", "eret", "dcps1", "drps");
    Ok(())
}

fn registers(fixture: &mut Fixture) -> TestResult {
    fault!(
        fixture,
        "mrs x0, sctlr_el1",
        "msr sctlr_el1, x0",
        "msr vbar_el1, x0",
        "msr ttbr0_el1, x0",
        "msr spsel, #1",
        "msr daifclr, #15",
        "msr tpidr_el1, x0",
        "msr cntkctl_el1, x0",
        "msr elr_el1, x0",
        "tlbi vmalle1is",
        "ic ialluis",
    );
    Ok(())
}

/// The kernel's image, its alias of physical memory, and the last word there is: also where they are mapped.
fn kernel_memory(fixture: &mut Fixture) -> TestResult {
    for address in [0xffff_ffff_c000_0000, 0xffff_ff80_4000_0000, !7] {
        let patient = Patient::on(fixture, fixture.control, FULL, move || {
            // SAFETY: faults for good.
            unsafe {
                asm!("ldr {0}, [{0}]", inout(reg) address => _);
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
