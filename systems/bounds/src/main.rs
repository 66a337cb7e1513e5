//! Kernel operations against hostile arrangements, for `sandglass bounds`.
//!
//! A crowd of threads, capabilities and mappings, made of untyped memory and budgets of low
//! priority alone, is arranged as unfavourably as known; then one operation is done. Marks in the
//! program ([`program`]) tell a plugin of the emulator when it begins and ends, and the plugin
//! counts what the kernel executes. For each measurement a line `bounds KIND NAME SIZE COST` is
//! printed, in the order of the marks: `many` measurements grow with the number of attackers, SIZE;
//! the others have a size of their own meaning. COST says which of the plugin's figures is the cost
//! of the operation ([`lab::Cost`]).

#![no_std]
#![no_main]

extern crate alloc;

mod crowd;
mod deletion;
mod invocations;
mod isa;
mod known;
mod lab;
mod lines;
mod messages;
mod program;
mod queues;
mod refills;
mod releases;
mod replies;
mod retype;
mod space;
mod worst;

use lab::Lab;
use sandglass::{BootInfo, SetupError};

sandglass::entry!(main, stack = 0x2_0000, heap = 0x80_0000);

fn main(boot: &'static BootInfo) -> Result<(), SetupError> {
    let mut lab = Lab::new(boot)?;
    if lab.only_worst {
        return worst::measure(&mut lab);
    }
    messages::measure(&mut lab)?;
    invocations::measure(&mut lab)?;
    retype::measure(&mut lab)?;
    refills::measure(&mut lab)?;
    queues::measure(&mut lab)?;
    releases::measure(&mut lab)?;
    replies::measure(&mut lab)?;
    known::measure(&mut lab)?;
    deletion::measure(&mut lab)
}
