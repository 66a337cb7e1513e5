//! A thread on each core that runs for good, in user code but for the timer: so that what the
//! processor's registers hold while user code runs can be looked at from outside (`sandglass machine`).

#![no_std]
#![no_main]

use sandglass::cap::SchedParams;
use sandglass::testing::spin;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{println, BootInfo, Process, SetupError};

sandglass::entry!(main);

const PRIORITY: u8 = 100;
/// Round robin.
const FULL: SchedParams = SchedParams::new(5_000, 5_000);

fn main(boot: &'static BootInfo) -> Result<(), SetupError> {
    let mut process = Process::root_task(boot);
    process.use_serial_console()?;
    process.use_exit_port()?;
    for core in 1..boot.cores() {
        let context = process.resources.sched_context(FULL.size_bits())?;
        let control = boot.sched_control(core).expect("the core runs");
        control.configure(context, FULL)?;
        Thread::spawn(&mut process, ThreadParams::new(PRIORITY, context), || {
            spin()
        })?;
    }
    println!("spinning on {} cores", boot.cores());
    spin()
}
