//! `sandglass boot`: one root task on the kernel, its console on standard output.

use std::process::ExitCode;

use anyhow::{bail, Result};

use crate::cli::{BootArgs, RunConditions};
use crate::kernel::{self, KernelOptions};
use crate::qemu::{self, Boot, End, Input, Machine};

/// `sandglass boot`: ends with the guest's status, 0 at the awaited text, 124 at the time-out.
pub fn run(args: &BootArgs) -> Result<ExitCode> {
    if !args.root_task.is_file() {
        bail!("the root task `{}` is not a file", args.root_task.display());
    }
    let conditions = &args.conditions;
    let cores = args.machine.cores.cores();
    let kernel = kernel::build(&KernelOptions::on(conditions.kernel, cores))?;
    let machine = Machine {
        cores: cores.number(),
        memory_mib: args.machine.memory,
        ..Machine::default()
    };
    run_under(
        conditions,
        Boot {
            machine,
            ..Boot::new(kernel, &args.root_task)
        },
    )
}

/// Boots under the conditions of a command line, with our own console, and ends as it ends.
///
/// # Errors
/// Those of [`qemu::run`].
pub fn run_under(conditions: &RunConditions, boot: Boot) -> Result<ExitCode> {
    let boot = Boot {
        machine: Machine {
            cpu: conditions.cpu.clone(),
            icount: conditions.icount,
            ..boot.machine
        },
        until: conditions.until.clone(),
        timeout: conditions.timeout,
        input: Input::Inherit,
        echo: true,
        log: conditions.log.clone(),
        ..boot
    };
    let outcome = qemu::run(&boot)?;
    if outcome.end == End::TimedOut {
        eprintln!(
            "sandglass: ended by the timeout of {} s",
            conditions.timeout.unwrap_or_default().as_secs_f64()
        );
    }
    Ok(ExitCode::from(outcome.status()))
}
