//! Tests of the kernel on the machine that the conformance suite cannot say, since they are about this kernel
//! and not about the ABI: that long operations can be preempted, that budgets hold to the longest path of
//! the kernel, that interrupts at any moment and hostile instructions do no harm, what only this kernel offers. Under
//! virtual time they repeat to the instruction.
//!
//! What a program can observe of the ABI is tested by `systems/conformance`: a test of it belongs there.

#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod budgets;
mod calls_only;
mod decode;
mod fixture;
mod long_operations;
mod patient;
mod preemption;
mod revocation;
mod roots;
mod timing;
mod watchdog;

use fixture::Fixture;
use sandglass::testing::Suite;
use sandglass::{BootInfo, SetupError};

sandglass::entry!(main, stack = 0x1_0000, heap = 0x80_0000);

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut fixture = Fixture::new(boot)?;
    let mut suite = Suite::new();
    for run in [
        budgets::run,
        preemption::run,
        calls_only::run,
        revocation::run,
        roots::run,
        decode::run,
        arch::privilege::run,
        arch::devices::run,
        arch::stray::run,
        timing::run,
        long_operations::run,
    ] {
        run(&mut suite, &mut fixture);
    }
    Ok(suite.finish())
}
