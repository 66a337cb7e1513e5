//! A thread on each core that runs for good, in user code but for the timer: so that what the
//! processor's registers hold while user code runs can be looked at from outside (`sandglass machine`).

#![no_std]
#![no_main]

use sandglass::cap::SchedParams;
use sandglass::testing::spin;
use sandglass::thread::{Thread, ThreadParams};
use sandglass::{boot, println, BootInfo, Process, SetupError};

sandglass::entry!(main);

const PRIORITY: u8 = 100;
/// Round robin, with so long slices that all cores are in user code nearly always, however many of them an emulator's host has.
const FULL: SchedParams = SchedParams::new(1_000_000, 1_000_000);

fn main(info: &'static BootInfo) -> Result<(), SetupError> {
    let mut process = Process::root_task(info);
    process.use_serial_console()?;
    process.use_exit_port()?;
    let own = info.sched_control(0).expect("there is a first core");
    own.configure(boot::SCHED_CONTEXT, FULL)?;
    for core in 1..info.cores() {
        let context = process.resources.sched_context(FULL.size_bits())?;
        let control = info.sched_control(core).expect("the core runs");
        control.configure(context, FULL)?;
        Thread::spawn(&mut process, ThreadParams::new(PRIORITY, context), || {
            spin()
        })?;
    }
    println!("spinning on {} cores", info.cores());
    spin()
}
