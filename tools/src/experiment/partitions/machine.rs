//! Boots the system.

use std::time::Duration;

use anyhow::{bail, Result};

use crate::arch::Arch;
use crate::kernel::{self, KernelOptions, Variant};
use crate::program;
use crate::qemu::{self, Boot, End, Machine};

/// Folder of the program.
const SYSTEM: &str = "systems/experiments/partitions/program";
/// Longer than any run takes.
const TIMEOUT: Duration = Duration::from_secs(1200);
const MEMORY_MIB: u32 = 256;
/// The HPET interrupts by messages, which the emulator's does if it is told to: there is nothing to acknowledge.
const MESSAGES: [&str; 2] = ["-global", "hpet.msi=on"];
/// Lines of the console that a failure shows.
const SHOWN_LINES: usize = 20;

/// How much is done.
#[derive(Clone, Copy)]
pub struct Work {
    /// For how many units partitions are measured; more partitions than the paper's for as many times more as their
    /// periods are longer.
    units: u64,
    /// For how long nothing may drift, s.
    seconds: u64,
    /// Not all numbers of partitions and threads.
    is_short: bool,
}

impl Work {
    pub const SMOKE: Self = Self {
        units: 100,
        seconds: 10,
        is_short: true,
    };
    pub const QUICK: Self = Self {
        units: 500,
        seconds: 100,
        is_short: false,
    };
    /// 5,000 units, as in the paper.
    pub const FULL: Self = Self {
        units: 5_000,
        seconds: 1_000,
        is_short: false,
    };
}

/// Runs it, and returns its console.
///
/// # Errors
/// It does not build, or does not end well.
pub fn run(arch: Arch, work: Work) -> Result<String> {
    let metadata = program::workspace_metadata()?;
    let package = program::package_in(&metadata, SYSTEM)?;
    let root_task = program::build_for(arch, &package.name)?;
    let kernel = kernel::build(
        &KernelOptions::new(Variant::Release)
            .for_arch(arch)
            .with_user_timer(),
    )?;
    let option = |name: &str, value: u64| format!("name=opt/sandglass/{name},string={value}");
    let options = [
        option("units", work.units),
        option("seconds", work.seconds),
        option("short", work.is_short.into()),
    ];
    let arguments = options.iter().flat_map(|option| ["-fw_cfg", option]);
    let messages = MESSAGES.iter().copied().filter(|_| arch == Arch::X86_64);
    let mut machine = Machine {
        memory_mib: MEMORY_MIB,
        ..Machine::of(arch)
    };
    machine.keep_virtual_time(0);
    let boot = Boot {
        machine,
        timeout: Some(TIMEOUT),
        user_semihosting: true,
        extra_args: arguments.chain(messages).map(Into::into).collect(),
        ..Boot::new(&kernel, &root_task)
    };
    let outcome = qemu::run(&boot)?;
    if outcome.end != End::Guest(0) {
        let lines: Vec<&str> = outcome.console.lines().collect();
        bail!(
            "the system ended with {:?}; the end of its console:\n{}",
            outcome.end,
            lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
        );
    }
    Ok(outcome.console)
}
