//! Tests of the runtime, each of which uses the kernel as an ordinary program would.

#![no_std]
#![no_main]

mod components;
mod devices;
mod memory;
mod threads;

use sandglass::cap::{SchedContext, SchedParams};
use sandglass::testing::Suite;
use sandglass::{BootInfo, Process, SetupError};

sandglass::entry!(main);

/// Round robin: always has budget.
const FULL: SchedParams = SchedParams::new(5_000, 5_000);

/// What tests share.
struct Bench {
    process: Process,
    boot: &'static BootInfo,
}

impl Bench {
    /// A configured scheduling context.
    fn context(&mut self, params: SchedParams) -> Result<SchedContext, SetupError> {
        let context = self.process.resources.sched_context(params.size_bits())?;
        let control = self.boot.sched_control(0).expect("there is a first core");
        control.configure(context, params)?;
        Ok(context)
    }
}

fn main(boot: &'static BootInfo) -> Result<u8, SetupError> {
    let mut process = Process::root_task(boot);
    process.use_serial_console()?;
    process.use_exit_port()?;
    let mut bench = Bench { process, boot };
    let mut suite = Suite::new();
    memory::run(&mut suite, &mut bench);
    threads::run(&mut suite, &mut bench);
    components::run(&mut suite, &mut bench);
    devices::run(&mut suite, &mut bench);
    Ok(suite.finish())
}
