//! Tests of the kernel on the machine: each states a promise of the ABI or of the design, and
//! fails when the kernel breaks it. Under virtual time they repeat to the instruction.

#![no_std]
#![no_main]

extern crate alloc;

mod budgets;
mod context;
mod decode;
mod devices;
mod donation;
mod faults;
mod fixture;
mod long_operations;
mod notifications;
mod order;
mod paging;
mod privilege;
mod revocation;
mod scheduling;
mod stray;
mod timeouts;
mod transfer;
mod watchdog;

use fixture::Fixture;
use sandglass::testing::Suite;
use sandglass::{BootInfo, SetupError};

sandglass::entry!(main, stack = 0x1_0000, heap = 0x20_0000);

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut fixture = Fixture::new(boot)?;
    let mut suite = Suite::new();
    for run in [
        budgets::run,
        timeouts::run,
        scheduling::run,
        order::run,
        donation::run,
        notifications::run,
        faults::run,
        context::run,
        transfer::run,
        revocation::run,
        decode::run,
        paging::run,
        privilege::run,
        devices::run,
        stray::run,
        long_operations::run,
    ] {
        run(&mut suite, &mut fixture);
    }
    Ok(suite.finish())
}
