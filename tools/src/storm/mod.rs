//! `sandglass storm`: hostile threads beside a canary for each core, on both kernels side by side.
//!
//! The system in `systems/storm` does the work and judges itself; this hands out seeds, watches
//! for a machine that stops or says nothing, and adds up the counts.

mod oracle;
pub mod policies;
mod results;
mod scripts;

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{anyhow, bail, ensure, Context, Result};
use sandglass_abi::profile::{Profile, BASE};

use crate::arch::Arch;
use crate::cli::StormArgs;
use crate::cores::Cores;
use crate::kernel::{self, Variant};
use crate::mutants::named;
use crate::profile;
use crate::program;
use crate::qemu::{self, Boot, End, Machine, Outcome};
use oracle::{Oracle, Seen};
use results::Results;

/// The system's package.
pub const PACKAGE: &str = "storm";
/// The first seed if none is asked for.
pub const FIRST_SEED: u64 = 1;
/// Between the first seeds of two machines: more than any run has arenas.
const SEED_STRIDE: u64 = 1_000_000_000;
/// The system tells its progress every few seconds; a machine that says nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(300);
/// Lines of the console that a failure shows.
const SHOWN_LINES: usize = 20;
/// Seeds that an arena is away from the last one that was reported, at most.
const SEEDS_PER_REPORT: u64 = 1_000;
/// Machines that may be cut short by the emulator, for one that is asked for.
const MOST_CUT_SHORT: u32 = 200;
/// What the line begins with by which the system says its end on aarch64.
pub const END: &str = "storm-end ";
/// Status of a machine on aarch64 whose threads have reached the kernel's level.
const REACHED: u8 = 5;
/// What a line of progress begins with.
const PROGRESS: &str = "storm: ";

/// What one machine is to do.
struct Part {
    arch: Arch,
    variant: Variant,
    /// The mutant that is on in the kernel.
    wrong: Option<String>,
    profile: &'static Profile,
    cores: Cores,
    seed: u64,
    extent: Extent,
    boot: Boot,
    /// Asks who executes on whose time.
    oracle: Option<Oracle>,
}

/// How much of a storm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    pub calls: u64,
    pub instructions: u64,
}

impl Extent {
    /// System calls if nothing else is asked for.
    const DEFAULT_CALLS: u64 = 10_000_000;
    /// What a run is repeated with that failed.
    const SHORT: u64 = 100_000;

    /// QEMU's options that ask the system for it, with this first seed.
    pub fn options(self, seed: u64) -> Vec<OsString> {
        let option = |name: &str, value: u64| {
            [
                "-fw_cfg".into(),
                format!("name=opt/sandglass/{name},string={value}").into(),
            ]
        };
        let options = [
            option("calls", self.calls),
            option("instructions", self.instructions),
            option("seed", seed),
        ];
        options.into_iter().flatten().collect()
    }

    /// What the command asks for.
    fn asked_for(args: &StormArgs) -> Self {
        let calls = match args.instructions {
            None => Self::DEFAULT_CALLS,
            Some(_) => 0,
        };
        Self {
            calls: args.calls.unwrap_or(calls),
            instructions: args.instructions.unwrap_or(0),
        }
    }

    /// The share of one of `machines`.
    fn share(self, machines: usize) -> Self {
        let share = |number: u64| number.div_ceil(machines as u64);
        Self {
            calls: share(self.calls),
            instructions: share(self.instructions),
        }
    }

    /// What is left to do of it after this progress. Calls come first.
    fn after(self, progress: Progress) -> Self {
        let left = |asked: u64| asked.saturating_sub(progress.made);
        if progress.of_calls {
            Self {
                calls: left(self.calls),
                ..self
            }
        } else {
            Self {
                calls: 0,
                instructions: left(self.instructions),
            }
        }
    }

    /// No more than is enough to repeat what an arena of the same kind did.
    fn short(self) -> Self {
        let short = |number: u64| number.min(Self::SHORT);
        match self.calls {
            0 => Self {
                instructions: short(self.instructions),
                ..self
            },
            calls => Self {
                calls: short(calls),
                ..self
            },
        }
    }
}

/// How far a machine has come, as it says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Progress {
    made: u64,
    of_calls: bool,
    seed: u64,
}

impl Progress {
    /// Reads `MADE of WANTED calls, seed SEED`, or the same of instructions.
    fn read(line: &str) -> Option<Self> {
        let (made, rest) = line.split_once(" of ")?;
        let (what, seed) = rest.split_once(", seed ")?;
        Some(Self {
            made: made.parse().ok()?,
            of_calls: what.ends_with(" calls"),
            seed: seed.trim().parse().ok()?,
        })
    }
}

/// As on the command line.
impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            calls,
            instructions,
        } = self;
        write!(f, "--calls {calls} --instructions {instructions}")
    }
}

impl Part {
    /// What runs on this kernel and these cores again.
    fn command(&self) -> String {
        let mut command = match &self.wrong {
            Some(mutant) => format!("./sandglass storm --wrong {mutant}"),
            None => format!("./sandglass storm --kernel {}", self.variant.name()),
        };
        if self.arch != Arch::default() {
            command += &format!(" --arch {}", self.arch.name());
        }
        if *self.profile != BASE {
            command += &format!(" --profile {}", self.profile.name);
        }
        if let Cores::Smp(number) = self.cores {
            command += &format!(" --cores {number}");
        }
        if self.oracle.is_some() {
            command += " --oracle";
        }
        command
    }
}

/// `sandglass storm`: status 0 if nothing of any canary was touched and all calls were made.
pub fn run(args: &StormArgs) -> Result<ExitCode> {
    if args.policies {
        return policies::run(args);
    }
    let profile = args.profile.profile;
    let root_task = program::build_of_profile(args.arch, PACKAGE, profile)?;
    let variants = match (args.kernel, &args.wrong) {
        (Some(variant), _) => vec![variant],
        (None, Some(_)) => vec![Variant::Release],
        (None, None) => Variant::ALL
            .into_iter()
            .filter(|&variant| profile::allows(profile, variant))
            .collect(),
    };
    let cores = args.cores.cores();
    let extent = Extent::asked_for(args).share(variants.len());
    let mut parts = Vec::new();
    ensure!(
        !args.oracle || cores == Cores::Single,
        "with `--oracle`, the storm runs on one core: under virtual time the clock counts what all cores execute, so \
         that of several none has a time of its own"
    );
    ensure!(
        args.wrong.is_none() || cores == Cores::Single,
        "wrong kernels are for one core: leave out `--cores`"
    );
    for (variant, index) in variants.into_iter().zip(0..) {
        let kernel = match &args.wrong {
            Some(mutant) => named::kernel(args.arch, mutant)?,
            None => {
                let options = profile::kernel(profile, args.arch, Some(variant), variant, cores)?;
                // Its threads set the timer, too.
                kernel::build(&options.with_user_timer())?
            }
        };
        let seed = args.seed.wrapping_add(index * SEED_STRIDE);
        parts.push(Part {
            arch: args.arch,
            variant,
            wrong: args.wrong.clone(),
            profile,
            cores,
            seed,
            extent,
            oracle: match args.oracle {
                true => Some(Oracle::new(args.arch, &kernel, args.memory)?),
                false => None,
            },
            boot: Boot {
                machine: machine(args.arch, profile, cores, args.memory),
                ..boot(args.arch, &kernel, &root_task, extent, seed)
            },
        });
    }
    let ended: Vec<Result<(Results, Seen)>> = thread::scope(|scope| {
        let running: Vec<_> = parts
            .iter()
            .map(|part| scope.spawn(|| run_whole(part)))
            .collect();
        let join = |handle: thread::ScopedJoinHandle<'_, Result<(Results, Seen)>>| {
            handle
                .join()
                .unwrap_or_else(|_| Err(anyhow!("a thread of the tool panicked")))
        };
        running.into_iter().map(join).collect()
    });
    let mut sum = Results::default();
    let mut seen = Seen::default();
    let mut failed = false;
    for (part, result) in parts.iter().zip(ended) {
        match result {
            Ok((results, of_time)) => {
                sum.add(&results);
                seen.add(&of_time);
            }
            Err(error) => {
                failed = true;
                eprintln!("the {} kernel: {error:#}", part.variant.name());
            }
        }
    }
    print!("{}", sum.table(args.arch));
    if sum.cut_short > 0 {
        println!(
            "storm: QEMU left long mode {} times; other machines continued with other seeds. The calls and instructions \
             before that are counted, but are not in the table",
            sum.cut_short
        );
    }
    if args.oracle && !failed {
        println!("{seen}");
    }
    println!(
        "storm: {} calls and {} instructions in {} arenas, {}",
        sum.calls,
        sum.instructions,
        sum.arenas,
        if failed { "FAILED" } else { "ok" }
    );
    Ok(ExitCode::from(u8::from(failed)))
}

/// A machine under virtual time: the same seed does the same.
fn machine(arch: Arch, profile: &Profile, cores: Cores, memory_mib: u32) -> Machine {
    let mut machine = Machine {
        cores: cores.number(),
        memory_mib,
        ..Machine::of(arch)
    };
    if let Some(cpu) = profile::cpu(profile) {
        machine.cpu = cpu.to_owned();
    }
    machine.keep_virtual_time(0);
    machine
}

/// A boot for so much of a storm, with the first seed `seed`.
fn boot(arch: Arch, kernel: &Path, root_task: &Path, extent: Extent, seed: u64) -> Boot {
    Boot {
        silence: Some(SILENCE),
        // Only the other has such a mode.
        watches_mode: arch == Arch::X86_64,
        // The storm could reach the host by what ends a machine there.
        says_end: (arch == Arch::Aarch64).then_some(END),
        extra_args: extent.options(seed),
        ..Boot::new(kernel, root_task)
    }
}

/// Runs one machine, and another one for what is left whenever the emulator cuts one short.
///
/// # Errors
/// As [`run_part`], and if it does so all the time.
fn run_whole(part: &Part) -> Result<(Results, Seen)> {
    let mut sum = Results::default();
    let mut seen = Seen::default();
    let (mut extent, mut seed) = (part.extent, part.seed);
    for _ in 0..MOST_CUT_SHORT {
        let mut extra_args = extent.options(seed);
        extra_args.extend(part.oracle.iter().flat_map(Oracle::options));
        let boot = Boot {
            extra_args,
            ..part.boot.clone()
        };
        let rest = Part {
            seed,
            extent,
            boot,
            oracle: part.oracle.clone(),
            wrong: part.wrong.clone(),
            ..*part
        };
        let (ran, of_time) = run_part(&rest)?;
        seen.add(&of_time);
        match ran {
            Ran::ToItsEnd(results) => {
                sum.add(&results);
                return Ok((sum, seen));
            }
            Ran::Until(progress) => {
                let left = extent.after(progress);
                sum.cut_short += 1;
                sum.calls += extent.calls - left.calls;
                sum.instructions += extent.instructions - left.instructions;
                extent = left;
                seed = progress.seed.wrapping_add(SEEDS_PER_REPORT);
            }
        }
    }
    bail!("QEMU left long mode {MOST_CUT_SHORT} times: the storm does that too often to show anything")
}

/// How a machine ended.
enum Ran {
    ToItsEnd(Results),
    /// The emulator left the mode in which the kernel runs.
    Until(Progress),
}

/// Runs one machine and tells its progress.
///
/// # Errors
/// It did not end well; the message has the seed and the end of the console.
fn run_part(part: &Part) -> Result<(Ran, Seen)> {
    let (sender, lines) = mpsc::channel::<String>();
    let boot = Boot {
        lines: Some(sender),
        ..part.boot.clone()
    };
    let name = part.variant.name();
    let (outcome, last) = thread::scope(|scope| {
        let progress = scope.spawn(move || {
            let mut last = None;
            for line in lines {
                if let Some(progress) = line.strip_prefix(PROGRESS) {
                    eprintln!("{name}: {progress}");
                    last = Some(progress.to_owned());
                }
            }
            last
        });
        let outcome = qemu::run(&boot);
        // The sender goes with it, and the thread ends.
        drop(boot);
        (outcome, progress.join().ok().flatten())
    });
    let progress = last.as_deref().and_then(Progress::read);
    let seed = progress.map_or(part.seed, |progress| progress.seed);
    outcome
        .and_then(|outcome| match (&outcome.end, progress) {
            (End::Guest(qemu::LEFT_LONG_MODE), Some(progress)) => Ok(Ran::Until(progress)),
            _ => judge(&outcome, part.cores).map(Ran::ToItsEnd),
        })
        .map_or_else(
            |error| Err(also(error, part.oracle.as_ref())),
            |ran| {
                let seen = part.oracle.as_ref().map(Oracle::answer).transpose()?;
                Ok((ran, seen.unwrap_or_default()))
            },
        )
        .with_context(|| {
            let command = part.command();
            let (extent, first) = (part.extent, part.seed);
            let short = extent.short();
            format!(
                "in a run with {extent}, in an arena from seed {seed} on; to repeat: {command} \
                 --seed {seed} {short}, or if that shows nothing: --seed {first} {extent}"
            )
        })
}

/// `error`, with what the oracle has found.
fn also(error: anyhow::Error, oracle: Option<&Oracle>) -> anyhow::Error {
    match oracle.map(Oracle::answer) {
        Some(Err(found)) => anyhow!("{error:#}\n{found:#}"),
        _ => error,
    }
}

/// The results of a machine that ended well.
fn judge(outcome: &Outcome, cores: Cores) -> Result<Results> {
    let tail = || {
        let lines: Vec<&str> = outcome.console.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    };
    match outcome.end {
        End::Guest(0) => Results::read(&outcome.console, cores.number()),
        End::Guest(REACHED) => bail!("a thread has reached the kernel's level:\n{}", tail()),
        End::Guest(1) => bail!("the run failed:\n{}", tail()),
        End::Guest(status) => bail!(
            "the run ended with status {status} (101 is a panic of its root task, 3 of the kernel):\n{}",
            tail()
        ),
        End::TimedOut | End::Until => bail!(
            "nothing on the console for {} s: it hangs:\n{}",
            SILENCE.as_secs(),
            tail()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_run_is_repeated_with_the_same_kind_of_storm() {
        let extent = |calls, instructions| Extent {
            calls,
            instructions,
        };
        assert_eq!(extent(0, 10_000_000).short(), extent(0, Extent::SHORT));
        assert_eq!(extent(10_000_000, 0).short(), extent(Extent::SHORT, 0));
        assert_eq!(extent(0, 5).short(), extent(0, 5));
        assert_eq!(extent(3, 10).share(2), extent(2, 5));
    }

    #[test]
    fn a_machine_that_the_emulator_cuts_short_leaves_the_rest_to_another() {
        let extent = |calls, instructions| Extent {
            calls,
            instructions,
        };
        let progress = Progress::read("300 of 500 instructions, seed 7").unwrap();
        assert_eq!(progress.seed, 7);
        assert_eq!(extent(40, 500).after(progress), extent(0, 200));
        let progress = Progress::read("30 of 40 calls, seed 1").unwrap();
        assert_eq!(extent(40, 500).after(progress), extent(10, 500));
        assert_eq!(Progress::read("nothing"), None);
    }

    #[test]
    fn ends_that_are_not_the_systems_own_are_failures() {
        let end = |end| {
            let console = "storm: 0 of 5 calls, seed 1\n".to_owned();
            let outcome = Outcome { end, console };
            judge(&outcome, Cores::Single).map(|_| ()).unwrap_err()
        };
        assert!(end(End::Guest(0)).to_string().contains("storm-run"));
        assert!(end(End::Guest(3)).to_string().contains("status 3"));
        assert!(end(End::TimedOut).to_string().contains("hangs"));
    }
}
