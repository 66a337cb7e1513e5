//! `sandglass bounds`: kernel operations against hostile arrangements of many threads, capabilities
//! and mappings, beside the reference.
//!
//! The system in `systems/bounds` makes the arrangements and marks each operation; a plugin of the
//! emulator (`tools/plugin`) counts what the kernel executes between the marks, and knows the
//! longest stretch in which it does not look for interrupts. Both go on in the same order.
//!
//! With `--search`, arrangements are searched that are worse than those known ([`search`]).

mod floors;
mod intervals;
pub(crate) mod names;
pub(crate) mod plugin;
mod reference;
mod search;
mod table;
mod waiting;
mod worst;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use sandglass_abi::profile::BASE;

use crate::arch::Arch;
use crate::cli::BoundsArgs;
use crate::cores::Cores;
use crate::kernel::{self, Variant};
use crate::profile;
use crate::program;
use crate::qemu::{self, Boot, End, Machine, Outcome};
use crate::workspace;
use intervals::Interval;
use names::Symbols;
use table::Table;

/// Folder of the system.
const SYSTEM: &str = "systems/bounds";

/// The processor on which the reference was measured; on aarch64, where it was not, the one that the ABI was observed on.
const fn processor(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "Haswell,-pcid,+pdpe1gb",
        Arch::Aarch64 => arch.cpu(),
    }
}

/// The kernel's function that looks for interrupts in a long operation.
const PREEMPTION_POINT: &str = "sandglass_kernel::time::account::preemption_point";

/// What the names of the program's marks begin with.
const BEGIN_MARKS: &str = "bounds_begin";
const END_MARKS: &str = "bounds_end";

/// Lines of the console that say what is measured next.
const PROGRESS: &str = "bounds: ";
/// Lines of the console that a failure shows.
const SHOWN_LINES: usize = 20;

/// The system tells its progress; a machine that says nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(300);

/// How much is measured.
struct Extent {
    /// Most attackers.
    attackers: u64,
    /// Memory of the machine; a huge page needs three times its size, since half of the first and
    /// the last gigabyte are not free as a whole.
    memory_mib: u32,
}

const QUICK: Extent = Extent {
    attackers: 1_000,
    memory_mib: 256,
};
const FULL: Extent = Extent {
    attackers: 100_000,
    memory_mib: 3072,
};

/// `sandglass bounds`: fails if a limit is exceeded, or something costs less than it is known to.
pub fn run(args: &BoundsArgs) -> Result<ExitCode> {
    let profile = args.profile.profile;
    ensure!(
        *profile == BASE || !args.search && !args.worst && args.cores.is_none(),
        "`--cores`, `--worst` and `--search` are for the profile `{}`",
        BASE.name
    );
    if args.search {
        ensure!(
            args.arch == Arch::X86_64,
            "`--search` runs in the hosted kernel, whose structures are those of both architectures: search without `--arch`, \
             and what it finds is measured on {}, too",
            args.arch.name()
        );
        search::run(args.minutes, args.seed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(cores) = args.cores {
        return waiting::run(args.arch, cores, args.quick);
    }
    if args.worst {
        return worst::run(args.arch, args.page);
    }
    let metadata = program::workspace_metadata()?;
    let package = program::package_in(&metadata, SYSTEM)?;
    let arch = args.arch;
    let root_task = program::build_of_profile(arch, &package.name, profile)?;
    let release = Variant::Release;
    let kernel = profile::kernel(profile, arch, Some(release), release, Cores::Single)?;
    // The program reads the counter.
    let kernel = kernel::build(&kernel.with_user_timer())?;
    let plugin = plugin::build()?;
    let extent = if args.quick { QUICK } else { FULL };
    let table = measure(arch, &kernel, &root_task, &plugin, &extent)?;
    print!("{table}");
    let exceeded = table.exceeded();
    for finding in &exceeded {
        println!("EXCEEDED: {finding}");
    }
    let forgotten = table.forgotten(floors::of(arch));
    for finding in &forgotten {
        println!("FORGOTTEN: {finding}");
    }
    Ok(if exceeded.is_empty() && forgotten.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn measure(
    arch: Arch,
    kernel: &Path,
    root_task: &Path,
    plugin: &Path,
    extent: &Extent,
) -> Result<Table> {
    let most = format!(
        "name=opt/sandglass/most,string={attackers}",
        attackers = extent.attackers
    );
    let measuring = Measuring {
        arch,
        kernel,
        root_task,
        plugin,
        memory_mib: extent.memory_mib,
        told: &most,
        watched: "",
    };
    let (console, intervals) = measuring.run()?;
    Table::new(arch, &console, intervals, &Symbols::read(kernel)?)
}

/// A run of the system with the plugin that counts.
struct Measuring<'m> {
    arch: Arch,
    kernel: &'m Path,
    root_task: &'m Path,
    plugin: &'m Path,
    memory_mib: u32,
    /// What the system is told, as an argument of QEMU.
    told: &'m str,
    /// More arguments of the plugin, each with a comma before it.
    watched: &'m str,
}

impl Measuring<'_> {
    /// Returns what the console said, and what the plugin measured.
    fn run(&self) -> Result<(String, Vec<Interval>)> {
        let marks = Symbols::read(self.root_task)?;
        let out = workspace::target_dir().join(format!("bounds-{}.txt", std::process::id()));
        let point = Symbols::read(self.kernel)?
            .address(PREEMPTION_POINT)
            .with_context(|| format!("the kernel has no function `{PREEMPTION_POINT}`"))?;
        let mut options = format!(
            "{},point={point:x},out={}{}",
            self.plugin.display(),
            out.display(),
            self.watched
        );
        for (kind, prefix) in [("begin", BEGIN_MARKS), ("end", END_MARKS)] {
            for address in marks.with_prefix(prefix) {
                options += &format!(",{kind}={address:x}");
            }
        }
        let boot = Boot {
            machine: Machine {
                cpu: processor(self.arch).to_owned(),
                memory_mib: self.memory_mib,
                icount: Some(0),
                ..Machine::of(self.arch)
            },
            user_semihosting: true,
            silence: Some(SILENCE),
            extra_args: ["-fw_cfg", self.told, "-plugin", &options]
                .map(Into::into)
                .into(),
            ..Boot::new(self.kernel, self.root_task)
        };
        let console = run_machine(boot)?;
        let text =
            fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))?;
        // Only we have read it; a file that stays behind is no failure.
        let _ = fs::remove_file(&out);
        Ok((console, Interval::read_all(&text)?))
    }
}

/// Boots the machine and tells its progress; returns what the console said.
fn run_machine(boot: Boot) -> Result<String> {
    let outcome = run_to_the_end(boot)?;
    if outcome.end != End::Guest(0) {
        bail!("{}", failure(&outcome));
    }
    Ok(outcome.console)
}

/// Boots the machine and tells its progress.
fn run_to_the_end(mut boot: Boot) -> Result<Outcome> {
    let (sender, lines) = mpsc::channel::<String>();
    boot.lines = Some(sender);
    thread::scope(|scope| {
        scope.spawn(move || {
            for line in lines {
                if let Some(progress) = line.strip_prefix(PROGRESS) {
                    eprintln!("measuring {progress}");
                }
            }
        });
        let outcome = qemu::run(&boot);
        // The sender goes with it, and the thread ends.
        drop(boot);
        outcome
    })
}

/// How a machine ended that should have ended otherwise.
fn failure(outcome: &Outcome) -> String {
    let lines: Vec<&str> = outcome.console.lines().collect();
    format!(
        "the system ended with {:?}; the end of its console:\n{}",
        outcome.end,
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    )
}
