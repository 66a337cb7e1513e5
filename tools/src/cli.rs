//! The command line: what can be asked of `sandglass`, and who answers.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use sandglass_abi::profile::Profile;

use crate::arch::Arch;
use crate::cores::Cores;
use crate::kernel::{KernelOptions, Variant};
use crate::profile::{self, ProfileArgs};
use crate::speculation::SpeculationArgs;
use crate::{
    assure, bench, beside, boot, bounds, c_program, check, conformance, cores, coverage, debug,
    demo, experiment, fuzz, image, kernel, machine, mutants, new, sdk, storm, system, test, times,
    trace, wcet, workspace,
};

/// Which commands are for whom: what `--help` ends with.
const GROUPS: &str = "\
To build and study systems: new, demo, validate, build, run, boot, kernel, profiles, sdk, trace, debug,
image, c-flags, bench, experiment.
To develop the kernel, the library and the tools: test, check, conformance, assure, coverage,
mutants, fuzz, storm, beside, bounds, wcet, machine.";

/// Build, run, trace, test and check systems on Sandglass, a capability microkernel that owns time
#[derive(Parser)]
#[command(name = "sandglass", version, max_term_width = 100, after_help = GROUPS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the demonstration: a shared server under a sweep of its clients' budgets, measured and checked
    Demo(DemoArgs),
    /// Make a project of your own, outside of this repository: description, components, tests, CI
    New(new::NewArgs),
    /// Check a description without building anything: errors, warnings, load of each core, longest waits
    Validate(system::ValidateArgs),
    /// Build a described system; the last line of the output is the path of its root task's image
    Build(BuildArgs),
    /// Build a described system and boot it: its console on standard output, its exit status as this command's
    Run(RunArgs),
    /// Boot a root task: its console on standard output, its exit status as this command's
    Boot(BootArgs),
    /// List the profiles of the ABI, each with its options beside those of the base profile
    Profiles(profile::ProfilesArgs),
    /// Write what other people's tools want of a kernel: a board for Microkit's SDK, and a prefix for rust-sel4
    Sdk(sdk::SdkArgs),
    /// Build the kernel; the last line of the output is the path of its ELF file
    Kernel(KernelArgs),
    /// Run a described system and record what happens: a trace for Perfetto, a page, and checks of it
    Trace(TraceArgs),
    /// Run a described system under gdb, which knows the kernel, its objects, and every component
    Debug(DebugArgs),
    /// Make a disk image that boots a described system, or a root task, through BIOS and UEFI, or U-Boot on aarch64
    Image(ImageArgs),
    /// Build the library for C, and print the C compiler's arguments for components in C
    CFlags(CFlagsArgs),
    /// Measure kernel operations in instructions, and show the reference
    Bench(BenchArgs),
    /// Repeat an experiment of the papers: a table, and a report that compares it with the paper's figures
    Experiment(ExperimentArgs),
    /// Run the tests, on the host and in QEMU; ends with the line `N passed, N failed`
    Test(TestArgs),
    /// Check formatting, lints, the rules of the release kernel, and where `unsafe` is used
    Check(check::CheckArgs),
    /// Run the conformance suite; ends with the line `conformance: N passed, N failed`
    Conformance(ConformanceArgs),
    /// Run the kernel in lock step with its executable specification, and report
    Assure(AssureArgs),
    /// Measure which lines of the kernel the host's tests execute; ends with `coverage: ...`
    Coverage,
    /// Change the kernel in small ways, one at a time, and check that the host's tests notice
    Mutants(MutantsArgs),
    /// Look for inputs that break a promise, guided by coverage, and keep those that reach new code
    Fuzz(FuzzArgs),
    /// Let hostile threads make random system calls, or execute random instructions, beside a canary that must not be affected
    Storm(StormArgs),
    /// Compare the figures of demo, experiments and examples without and with an untrusted client
    Beside(BesideArgs),
    /// Measure kernel operations against hostile arrangements of up to 100,000 threads
    Bounds(BoundsArgs),
    /// Compute the kernel's worst-case execution time from its binary
    Wcet(WcetArgs),
    /// Read the processor's state while user code runs, and compare it with the required state
    Machine(MachineStateArgs),
}

/// Arguments of `sandglass demo`.
#[derive(Args)]
pub struct DemoArgs {
    /// On which architecture
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    /// File that the clients have encrypted [default: a bundled text]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
    /// Directory for the report: the page, its data as CSV, and the ciphertext
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// Fewer points of the sweep
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub beside: RogueArgs,
}

/// Who else is there, for several commands.
#[derive(Args)]
pub struct RogueArgs {
    /// Add an untrusted client that acts at random, by this seed
    #[arg(long = "rogue", value_name = "SEED",
          value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub rogue: Option<u64>,
}

/// Arguments of `sandglass test`.
#[derive(Args)]
pub struct TestArgs {
    /// Run only the tests whose name contains PATTERN
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<String>,
    /// Also run the long ones: what others show as well, for the other architecture or beside another system
    #[arg(long, conflicts_with = "only")]
    pub all: bool,
}

/// Arguments of `sandglass kernel`.
#[derive(Args)]
pub struct KernelArgs {
    /// Architecture to build for
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    #[command(flatten)]
    pub profile: ProfileArgs,
    /// Which kernel: `debug` has the debug system calls and checks its invariants [default: the profile's, or release]
    #[arg(long, value_enum)]
    pub kernel: Option<Variant>,
    /// The SMP kernel, for several cores
    #[arg(long)]
    pub smp: bool,
    /// The kernel that records execution traces
    #[arg(long)]
    pub trace: bool,
    #[command(flatten)]
    pub speculation: SpeculationArgs,
    /// Compute the bounds of its execution time from its binary, refuse it if it needs longer on the platform that this file
    /// declares than it assumes of itself, and record them in it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["smp", "trace"])]
    pub platform: Option<PathBuf>,
}

/// Arguments of `sandglass boot`.
#[derive(Args)]
pub struct BootArgs {
    /// ELF file of the root task; or the name of one of this repository, which is built
    #[arg(value_name = "ELF")]
    pub root_task: PathBuf,
    /// Architecture to build such a root task for; that of a file is its own
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    #[command(flatten)]
    pub profile: ProfileArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub conditions: RunConditions,
    /// Add a device, as QEMU's `-device` names it, such as virtio-net-pci,netdev=net; may be given several times
    #[arg(long, value_name = "DEVICE")]
    pub device: Vec<String>,
    /// Give QEMU an argument, such as -netdev, and the next one its value; may be given several times
    #[arg(long, value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub qemu: Vec<String>,
    /// Type what is in FILE at the console [default: standard input]
    #[arg(long, value_name = "FILE")]
    pub input: Option<PathBuf>,
}

impl BootArgs {
    /// What is asked of QEMU besides: what devices refer to comes first.
    pub fn for_qemu(&self) -> Vec<OsString> {
        let devices = self.device.iter().flat_map(|device| ["-device", device]);
        let others = self.qemu.iter().map(String::as_str);
        others.chain(devices).map(OsString::from).collect()
    }
}

/// The number of cores, for several commands.
#[derive(Args)]
pub struct CoresArgs {
    /// The SMP kernel on N cores, 1 to 4 [default: the single-core kernel]
    #[arg(long = "cores", value_name = "N", value_parser = cores::parse)]
    number: Option<u32>,
}

impl CoresArgs {
    /// What is asked for.
    pub fn cores(&self) -> Cores {
        Cores::asked_for(self.number)
    }
}

/// The same where there is a choice of profiles.
#[derive(Args)]
pub struct ProfileCoresArgs {
    /// The SMP kernel on N cores, 1 to 4, in profiles for more 1 to 16 [default: the single-core kernel]
    #[arg(long = "cores", value_name = "N", value_parser = cores::parse_for_any)]
    number: Option<u32>,
}

impl ProfileCoresArgs {
    /// What is asked for.
    pub fn cores(&self) -> Cores {
        Cores::asked_for(self.number)
    }
}

/// The machine that a root task runs on; a described system's is in its description.
#[derive(Args)]
pub struct MachineArgs {
    #[command(flatten)]
    pub cores: ProfileCoresArgs,
    /// Memory in MiB
    #[arg(long, value_name = "MiB", default_value_t = crate::qemu::DEFAULT_MEMORY_MIB,
          value_parser = clap::value_parser!(u32).range(16..))]
    pub memory: u32,
}

/// How a system runs, and when its run ends; shared by `boot` and `run`.
#[derive(Args)]
pub struct RunConditions {
    /// Which kernel; only `debug` has the debug console, which simple root tasks print on [default: the profile's, or debug]
    #[arg(long, value_enum)]
    kernel: Option<Variant>,
    #[command(flatten)]
    pub speculation: SpeculationArgs,
    /// Virtual time: every instruction takes 2^SHIFT ns, and idle time is skipped
    #[arg(long, value_name = "SHIFT", value_parser = clap::value_parser!(u8).range(0..=10))]
    pub icount: Option<u8>,
    /// Machine, as QEMU's `-machine` names it, such as virt,gic-version=3 [default: the one of the ABI's reference]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Processor model, as QEMU's `-cpu` names it [default: the one of the ABI's reference]
    #[arg(long, value_name = "MODEL")]
    pub cpu: Option<String>,
    /// End with status 0 as soon as TEXT appears on the console
    #[arg(long, value_name = "TEXT")]
    pub until: Option<String>,
    /// End with status 124 after this much real time: seconds, or with a unit, such as `500ms`
    #[arg(long, value_name = "SECONDS", value_parser = times::seconds)]
    pub timeout: Option<Duration>,
    /// Also write what is shown of the console to FILE
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Count what the release kernel for one core executes on each visit, and fail if that is more than was computed
    #[arg(long)]
    pub visits: bool,
}

impl RunConditions {
    /// Which kernel of `profile`, on these cores.
    ///
    /// # Errors
    /// As [`profile::kernel`].
    pub fn kernel_of(
        &self,
        profile: &'static Profile,
        arch: Arch,
        cores: Cores,
    ) -> Result<KernelOptions> {
        let kernel = profile::kernel(profile, arch, self.kernel, Variant::Debug, cores)?;
        self.speculation.of(kernel)
    }

    /// Which kernel of the base profile.
    pub fn variant(&self) -> Variant {
        self.kernel.unwrap_or(Variant::Debug)
    }
}

/// Arguments of `sandglass build`.
#[derive(Args)]
pub struct BuildArgs {
    /// The description
    #[arg(value_name = "SYSTEM.toml")]
    pub system: PathBuf,
    /// What to build it for [default: as described]
    #[arg(long, value_enum)]
    pub arch: Option<Arch>,
    /// Where to write the image [default: a file in the target directory]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub warnings: system::WarningArgs,
}

/// Arguments of `sandglass run`.
#[derive(Args)]
pub struct RunArgs {
    /// The description
    #[arg(value_name = "SYSTEM.toml")]
    pub system: PathBuf,
    /// What to build it for [default: as described]
    #[arg(long, value_enum)]
    pub arch: Option<Arch>,
    /// Where to write the system's output: what its components write to the described `[[output]]`
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The SMP kernel on N cores, 1 to 4 [default: as described; for one core, the single-core
    /// kernel]
    #[arg(long, value_name = "N", value_parser = cores::parse)]
    pub cores: Option<u32>,
    /// What components log: LEVEL (error, warn, info, debug, trace), or COMPONENT=LEVEL; may be repeated
    #[arg(long, value_name = "[COMPONENT=]LEVEL")]
    pub log_level: Vec<system::LevelOf>,
    #[command(flatten)]
    pub beside: RogueArgs,
    #[command(flatten)]
    pub conditions: RunConditions,
    #[command(flatten)]
    pub warnings: system::WarningArgs,
}

/// Arguments of `sandglass trace`.
#[derive(Args)]
pub struct TraceArgs {
    /// The description
    #[arg(value_name = "SYSTEM.toml")]
    pub system: PathBuf,
    /// What to build it for [default: as described]
    #[arg(long, value_enum)]
    pub arch: Option<Arch>,
    /// Where to write the trace, in Perfetto's format
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Also write a page that shows the trace
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Check budgets, priorities, deadlines and donations; end with status 1 if any is violated
    #[arg(long)]
    pub check: bool,
    /// End the run after this much of the system's time: ms, or with a unit, such as `2s`
    #[arg(long = "for", value_name = "MS", value_parser = times::milliseconds)]
    pub duration: Option<Duration>,
    /// End the run after this much real time: seconds, or with a unit, such as `500ms`
    #[arg(long, value_name = "SECONDS", value_parser = times::seconds)]
    pub timeout: Option<Duration>,
    /// Also write what is shown of the console to FILE
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Memory for the records of each core, in MiB; when it is full, the run ends
    #[arg(long, value_name = "MiB", default_value_t = 64,
          value_parser = clap::value_parser!(u32).range(2..=512))]
    pub buffer: u32,
    /// Virtual time: every instruction takes 2^SHIFT ns
    #[arg(long, value_name = "SHIFT", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=10))]
    pub icount: u8,
    /// Which kernel
    #[arg(long, value_enum, default_value_t = Variant::Release)]
    pub kernel: Variant,
    #[command(flatten)]
    pub warnings: system::WarningArgs,
}

/// Arguments of `sandglass c-flags`: without any, all are printed.
#[derive(Args)]
pub struct CFlagsArgs {
    /// For which architecture
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    /// Only those for compiling
    #[arg(long)]
    pub compile: bool,
    /// Only those for linking; they stand behind the objects
    #[arg(long)]
    pub link: bool,
}

/// Arguments of `sandglass debug`.
#[derive(Args)]
pub struct DebugArgs {
    /// On which architecture, in place of what the description says
    #[arg(long, value_enum)]
    pub arch: Option<Arch>,
    /// The description
    #[arg(value_name = "SYSTEM.toml")]
    pub system: PathBuf,
    /// Stop when COMPONENT comes to LOCATION, a function, FILE:LINE or *ADDRESS; may be given several
    /// times
    #[arg(long = "break", value_name = "COMPONENT:LOCATION")]
    pub breakpoints: Vec<String>,
    /// Compile components without optimisation, so that every line and every variable is there. They take
    /// more time than they will: budgets may not suffice
    #[arg(long)]
    pub unoptimised: bool,
    /// Commands for gdb, instead of the terminal's; gdb ends with them
    #[arg(long, value_name = "FILE", conflicts_with = "wait")]
    pub script: Option<PathBuf>,
    /// Start no gdb: wait until a debugger connects
    #[arg(long)]
    pub wait: bool,
    /// Where to wait, on this machine
    #[arg(long, value_name = "PORT", default_value_t = debug::DEFAULT_PORT, requires = "wait")]
    pub port: u16,
    /// The SMP kernel on N cores, 1 to 4 [default: as described; for one core, the single-core
    /// kernel]
    #[arg(long, value_name = "N", value_parser = cores::parse)]
    pub cores: Option<u32>,
    #[command(flatten)]
    pub conditions: RunConditions,
}

/// Arguments of `sandglass image`.
#[derive(Args)]
pub struct ImageArgs {
    /// On which architecture, in place of what the description says
    #[arg(long, value_enum)]
    pub arch: Option<Arch>,
    /// The description, or the ELF file of a root task
    #[arg(value_name = "SYSTEM.toml")]
    pub system: PathBuf,
    /// Where to write the image
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Which kernel; only `debug` says on the screen why it does not start [default: the profile's, or debug]
    #[arg(long, value_enum)]
    pub kernel: Option<Variant>,
    #[command(flatten)]
    pub profile: ProfileArgs,
    /// The SMP kernel, which runs on up to four of the machine's cores; it is selected
    /// automatically for a description with several cores
    #[arg(long)]
    pub smp: bool,
    #[command(flatten)]
    pub speculation: SpeculationArgs,
    #[command(flatten)]
    pub warnings: system::WarningArgs,
}

/// Arguments of `sandglass machine`.
#[derive(Args)]
pub struct MachineStateArgs {
    #[command(subcommand)]
    pub action: Option<MachineAction>,
    /// Only starts, or machines of the matrix, whose name contains this
    #[arg(long, value_name = "PATTERN", global = true, default_value = "")]
    pub only: String,
    /// Of which architecture machines are looked at
    #[arg(long, value_enum, default_value_t, global = true)]
    pub arch: Arch,
}

/// What else can be done with the machine's state.
#[derive(Clone, Copy, Subcommand)]
pub enum MachineAction {
    /// Write the table of the state, and that of machines and processors, into the book
    Table,
    /// Have a kernel set pieces of the state wrong, one at a time, and report whether each is noticed
    Spoiled,
    /// Boot on many machines and processors of the emulator: each boots, or is refused in words (x86_64)
    Matrix,
    /// Fetch a second, newer emulator into the target directory, for machines that the installed one does not have
    Emulator,
    /// Boot on a host that is kept busy: the clock is within 0.1 % of the emulator's, or refused (x86_64)
    Busy {
        /// How often
        #[arg(long, value_name = "N", default_value_t = 100)]
        boots: u32,
    },
}

/// Arguments of `sandglass conformance`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct ConformanceArgs {
    #[command(subcommand)]
    pub action: Option<ConformanceAction>,
    /// Which kernel to run on [default: the profile's, or debug]
    #[arg(long, value_enum)]
    pub kernel: Option<Variant>,
    #[command(flatten)]
    pub profile: ProfileArgs,
    #[command(flatten)]
    pub cores: ProfileCoresArgs,
    #[command(flatten)]
    pub speculation: SpeculationArgs,
    /// Architecture to build for
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    /// Machine, as QEMU's `-machine` names it, such as virt,gic-version=3 [default: the one of the ABI's reference]
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// On the release kernel for one core as it is for the platform that this file declares
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "number"])]
    pub platform: Option<PathBuf>,
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Write the suite to FILE, a root task for any kernel of the ABI, instead of booting it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernel", "number", "platform"])]
    pub root_task: Option<PathBuf>,
}

/// Which checks of the conformance suite are left out.
#[derive(Args, Clone, Debug, Default)]
pub struct SelectionArgs {
    /// Leave out the checks whose names match PATTERN, in which `*` stands for any text
    #[arg(long, value_name = "PATTERN")]
    pub skip: Vec<String>,
    /// Run only the checks whose names match PATTERN
    #[arg(long, value_name = "PATTERN")]
    pub only: Vec<String>,
    /// Leave out the checks that make debug calls with wrong arguments, at which a kernel may halt
    #[arg(long)]
    pub skip_wrong_debug_calls: bool,
}

/// What else can be done with the conformance suite.
#[derive(Clone, Copy, Subcommand)]
pub enum ConformanceAction {
    /// Run the suite on both kernels and write the table of sections and checks into the book
    Table,
    /// Run the suite on kernels that each break one rule on purpose, and report which checks notice
    Wrong {
        /// Kernels for which architecture
        #[arg(long, value_enum, default_value_t)]
        arch: Arch,
    },
}

/// Arguments of `sandglass bench`.
#[derive(Args)]
pub struct BenchArgs {
    /// On which architecture
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    /// Compare the SMP kernel on one core with the single-core kernel, instead of the reference
    #[arg(long)]
    pub smp: bool,
    /// Compare the kernel that records traces, while it records, with the one that ships
    #[arg(long, conflicts_with = "smp")]
    pub trace: bool,
    /// Compare the kernel without page-table isolation with the one that ships
    #[arg(long, conflicts_with_all = ["smp", "trace"])]
    pub no_isolation: bool,
    /// Show what operations with a straight line touch: memory, lines of caches, branches, and instructions that the processor
    /// waits for
    #[arg(long, conflicts_with_all = ["smp", "trace", "no_isolation"])]
    pub touches: bool,
    /// Compare a kernel that acts against speculation in all ways with the one that ships
    #[arg(long, group = "has_more", conflicts_with_all = ["smp", "trace", "no_isolation", "touches"])]
    pub speculation: bool,
    /// Measure instead the boot, from the kernel's first instruction to the root task's, by the size of the root task
    #[arg(long, group = "has_more", conflicts_with_all = ["smp", "trace", "no_isolation", "touches", "speculation"])]
    pub boot: bool,
    /// With `--boot`, also an image of 100 MiB, which takes a minute; with `--speculation`, each way by itself, too, for
    /// which seven kernels are built
    #[arg(long, requires = "has_more")]
    pub all: bool,
    /// Write what is measured into the book: what capabilities cost that can be called only, with `--touches` what operations
    /// touch, with `--speculation` what is done against it, or with `--boot` the table of boots; the last two measure as with `--all`
    #[arg(long, conflicts_with_all = ["smp", "trace", "no_isolation"])]
    pub page: bool,
    /// Also write the figures to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// Arguments of `sandglass bounds`.
#[derive(Args)]
pub struct BoundsArgs {
    /// On which architecture
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    #[command(flatten)]
    pub profile: ProfileArgs,
    /// Measure instead how long cores wait for their turns in the kernel, on a machine with N cores,
    /// 2 to 4, of which all except one attack
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=4))]
    pub cores: Option<u32>,
    /// At most 1,000 threads; with `--cores`, fewer jobs
    #[arg(long)]
    pub quick: bool,
    /// Measure instead the worst cases that were constructed, beside what is computed of the same paths
    #[arg(long, conflicts_with_all = ["quick", "cores", "search"])]
    pub worst: bool,
    /// Write their table into the page of the book that shows it
    #[arg(long, requires = "worst")]
    pub page: bool,
    /// Search instead for worse arrangements, in the hosted kernel; they are measured from then on
    #[arg(long, conflicts_with_all = ["quick", "cores"])]
    pub search: bool,
    /// How long to search, in minutes
    #[arg(long, value_name = "N", default_value_t = 10, requires = "search")]
    pub minutes: u64,
    /// Seed of the search's random numbers
    #[arg(long, value_name = "N", default_value_t = 1, requires = "search")]
    pub seed: u64,
}

/// Arguments of `sandglass wcet`.
#[derive(Args)]
pub struct WcetArgs {
    /// Of the kernel for this architecture
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    /// Of the kernel for several cores
    #[arg(long)]
    pub smp: bool,
    /// Arguments of the analyser: `--help` behind `--` lists them
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGUMENTS"
    )]
    pub arguments: Vec<String>,
}

/// Arguments of `sandglass experiment`.
#[derive(Args)]
pub struct ExperimentArgs {
    /// The experiment, or `all`; without a name, the experiments are listed
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// On which architecture; what runs on the host is the same
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    /// List the experiments, each with the tables and figures that it reproduces
    #[arg(long)]
    pub list: bool,
    /// Less work
    #[arg(long)]
    pub quick: bool,
    /// Directory for the report: the page, with plots and the comparison with the paper, and the
    /// data as CSV; with `all`, a directory in it for each experiment
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub beside: RogueArgs,
    /// For `edf`: the number of task sets, each in both modes [default: 1200]. For `partitions`: the number of systems with a
    /// hostile partition [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub sets: Option<u32>,
    /// For `multicore`: take the points of the hosted kernel's parallel virtual time from FILE, as
    /// CSV with the header scenario,spin,cores,work,time [default: simulate them]
    #[arg(long, value_name = "FILE")]
    pub hosted: Option<PathBuf>,
    /// For `temporal-capabilities` and `policies`: write the figures of their pages in the book anew
    #[arg(long)]
    pub page: bool,
}

/// Arguments of `sandglass beside`.
#[derive(Args)]
pub struct BesideArgs {
    /// On which architecture; on aarch64 without the experiments
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    /// `demo`, an experiment, or an example by its folder, `examples/NAME` [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Seed of what the client does
    #[arg(long, value_name = "SEED", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub seed: u64,
    /// Less work
    #[arg(long)]
    pub quick: bool,
    /// Also show the figures that do not differ
    #[arg(long)]
    pub all: bool,
}

/// Arguments of `sandglass storm`.
#[derive(Args)]
pub struct StormArgs {
    /// On which architecture
    #[arg(long, value_enum, default_value_t)]
    pub arch: Arch,
    /// System calls to make, in total [default: 10000000, or none with `--instructions`]
    #[arg(long, value_name = "N")]
    pub calls: Option<u64>,
    /// Instructions to execute, in total, after the system calls [default: none]
    #[arg(long, value_name = "N")]
    pub instructions: Option<u64>,
    /// Seed of the first arena; each arena has the next one
    #[arg(long, value_name = "SEED", default_value_t = storm::FIRST_SEED)]
    pub seed: u64,
    #[command(flatten)]
    pub profile: ProfileArgs,
    /// Run on this kernel only [default: on each that the profile has, side by side, with different seeds]
    #[arg(long, value_enum)]
    pub kernel: Option<Variant>,
    #[command(flatten)]
    pub cores: ProfileCoresArgs,
    /// Attack the policies and servers at user level instead: their state machines on the host, then a machine for each
    /// policy and seed, always with the oracle
    #[arg(long, conflicts_with_all = ["calls", "instructions", "kernel", "ProfileArgs", "ProfileCoresArgs", "wrong", "memory"])]
    pub policies: bool,
    /// With `--policies`: seeds to try of each policy
    #[arg(long, value_name = "N", default_value_t = 100, requires = "policies")]
    pub seeds: u64,
    /// With `--policies`: steps of each policy's state machine under hostile scripts, on the host
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3_000_000,
        requires = "policies"
    )]
    pub hosted_steps: u64,
    /// With `--policies`: only the policy of this name (`systems/rogues/policies/NAME.toml`, or
    /// `user/policies/hostile/src/scripts/NAME.rs`)
    #[arg(long, value_name = "NAME", requires = "policies")]
    pub policy: Option<String>,
    /// Check every stretch of execution by the oracle for time, on one core; `--policies` always does
    #[arg(long)]
    pub oracle: bool,
    /// Run on a release kernel that is wrong in this way (`assurance/mutants/rules.toml`), to see it noticed
    #[arg(long, value_name = "MUTANT", conflicts_with_all = ["kernel", "ProfileArgs"])]
    pub wrong: Option<String>,
    /// Memory in MiB
    #[arg(long, value_name = "MiB", default_value_t = 256,
          value_parser = clap::value_parser!(u32).range(32..))]
    pub memory: u32,
}

/// Arguments of `sandglass assure`.
#[derive(Args)]
pub struct AssureArgs {
    /// Events after which the kernel's whole state is compared with the specification's
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub events: u64,
    /// The first seed; a seed has about two hundred events
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
    /// Seeds at the same time [default: as many as there are processors]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    #[command(flatten)]
    pub profile: ProfileArgs,
    #[command(flatten)]
    pub cores: ProfileCoresArgs,
    /// Only lock step, without coverage and mutants; as in any profile but base, whose they are
    #[arg(long)]
    pub only_lock_step: bool,
    /// Judge every mutant of the kernel [default: a sample]
    #[arg(long)]
    pub all_mutants: bool,
    /// Only lock step, with a kernel that is wrong in this way (`assurance/mutants/rules.toml`), to see it noticed
    #[arg(long, value_name = "MUTANT", conflicts_with_all = ["all_mutants", "ProfileArgs"])]
    pub wrong: Option<String>,
    /// With `--wrong`: ask only the oracle for time
    #[arg(long, requires = "wrong")]
    pub only_time: bool,
}

/// Arguments of `sandglass fuzz`.
#[derive(Args)]
pub struct FuzzArgs {
    /// How long, in minutes, divided among the targets
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub minutes: u64,
    /// Fuzz this target only; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    pub target: Vec<String>,
    /// Processes at the same time
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Show and run this input of the target, instead of fuzzing
    #[arg(long, value_name = "FILE", requires = "target", conflicts_with_all = ["minutes", "jobs"])]
    pub input: Option<PathBuf>,
}

/// Arguments of `sandglass mutants`.
#[derive(Args)]
pub struct MutantsArgs {
    /// Judge every mutant [default: those of the files that are changed]
    #[arg(long)]
    pub all: bool,
    /// Judge so many, drawn from all
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub sample: Option<usize>,
    /// Judge the named ones that break a rule (`assurance/mutants/rules.toml`)
    #[arg(long, conflicts_with_all = ["all", "sample"])]
    pub named: bool,
    /// Seed that draws the sample
    #[arg(long, value_name = "SEED", default_value_t = mutants::SEED)]
    pub seed: u64,
    /// Judge only mutants whose name contains PATTERN
    #[arg(
        long,
        value_name = "PATTERN",
        default_value = "",
        hide_default_value = true
    )]
    pub only: String,
    /// List the mutants, and judge none
    #[arg(long)]
    pub list: bool,
}

/// Parses the command line and runs what it asks for. An error ends with status 1 and its causes
/// on standard error.
pub fn main() -> ExitCode {
    let command = Cli::parse().command;
    let result = workspace::check().and_then(|()| run(command));
    result.unwrap_or_else(|error| {
        match error.downcast_ref::<system::Report>() {
            Some(report) => eprintln!("{report}"),
            None => eprintln!("error: {error:#}"),
        }
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> Result<ExitCode> {
    match command {
        Command::New(args) => new::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Profiles(args) => profile::run(&args),
        Command::Sdk(args) => sdk::run(&args),
        Command::Kernel(args) => kernel::run(&args),
        Command::Boot(args) => boot::run(&args),
        Command::Validate(args) => system::run_validate(&args),
        Command::Build(args) => system::run_build(&args),
        Command::Run(args) => system::run_system(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Debug(args) => debug::run(&args),
        Command::Image(args) => image::run(&args),
        Command::Check(args) => check::run(&args),
        Command::CFlags(args) => c_program::run_flags(&args),
        Command::Conformance(args) => conformance::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Assure(args) => assure::run(&args),
        Command::Coverage => coverage::run(),
        Command::Bounds(args) => bounds::run(&args),
        Command::Wcet(args) => wcet::run(&args),
        Command::Experiment(args) => experiment::run(&args),
        Command::Beside(args) => beside::run(&args),
        Command::Storm(args) => storm::run(&args),
        Command::Machine(args) => machine::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Mutants(args) => mutants::run(&args),
    }
}
