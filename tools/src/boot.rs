//! `sandglass boot`: one root task on the kernel, its console on standard output.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, Result};

use crate::cli::{BootArgs, MachineArgs};
use crate::kernel::{self, KernelOptions};
use crate::qemu::{self, Boot, End, Input, Machine};

/// `sandglass boot`: ends with the guest's status, 0 at the awaited text, 124 at the time-out.
pub fn run(args: &BootArgs) -> Result<ExitCode> {
    let machine = &args.machine;
    if !args.root_task.is_file() {
        bail!("the root task `{}` is not a file", args.root_task.display());
    }
    let kernel = kernel::build(&KernelOptions::new(machine.kernel))?;
    let boot = Boot {
        machine: machine_of(machine),
        until: machine.until.clone(),
        timeout: machine.timeout.map(Duration::from_secs),
        input: Input::Inherit,
        echo: true,
        ..Boot::new(kernel, &args.root_task)
    };
    let outcome = qemu::run(&boot)?;
    if outcome.end == End::TimedOut {
        eprintln!(
            "sandglass: ended at the time-out of {} s",
            machine.timeout.unwrap_or(0)
        );
    }
    Ok(ExitCode::from(outcome.status()))
}

/// The machine that a command line describes.
pub fn machine_of(args: &MachineArgs) -> Machine {
    Machine {
        cpu: args.cpu.clone(),
        cores: args.cores,
        memory_mib: args.memory,
        icount: args.icount,
        ..Machine::default()
    }
}
