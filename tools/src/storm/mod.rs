//! `sandglass storm`: hostile threads beside a canary for each core, on both kernels side by side.
//!
//! The system in `systems/storm` does the work and judges itself; this hands out seeds, watches
//! for a machine that stops or says nothing, and adds up the counts.

mod results;

use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{anyhow, bail, Context, Result};

use crate::cli::StormArgs;
use crate::cores::Cores;
use crate::kernel::{self, KernelOptions, Variant};
use crate::program;
use crate::qemu::{self, Boot, End, Machine, Outcome};
use results::Results;

/// Folder of the system.
const SYSTEM: &str = "systems/storm";
/// Between the first seeds of two machines: more than any run has arenas.
const SEED_STRIDE: u64 = 1_000_000_000;
/// The system tells its progress every few seconds; a machine that says nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(300);
/// Lines of the console that a failure shows.
const SHOWN_LINES: usize = 20;
/// What a line of progress begins with.
const PROGRESS: &str = "storm: ";

/// What one machine is to do.
struct Part {
    variant: Variant,
    cores: Cores,
    seed: u64,
    calls: u64,
    boot: Boot,
}

impl Part {
    /// What runs on this kernel and these cores again.
    fn command(&self) -> String {
        let mut command = format!("./sandglass storm --kernel {}", self.variant.name());
        if let Cores::Smp(number) = self.cores {
            command += &format!(" --cores {number}");
        }
        command
    }
}

/// `sandglass storm`: status 0 if nothing of any canary was touched and all calls were made.
pub fn run(args: &StormArgs) -> Result<ExitCode> {
    let metadata = program::workspace_metadata()?;
    let package = program::package_in(&metadata, SYSTEM)?;
    let root_task = program::build(&package.name)?;
    let variants = match args.kernel {
        Some(variant) => vec![variant],
        None => vec![Variant::Debug, Variant::Release],
    };
    let cores = args.cores.cores();
    let share = args.calls.div_ceil(variants.len() as u64);
    let mut parts = Vec::new();
    for (variant, index) in variants.into_iter().zip(0..) {
        let kernel = kernel::build(&KernelOptions::on(variant, cores))?;
        let seed = args.seed.wrapping_add(index * SEED_STRIDE);
        parts.push(Part {
            variant,
            cores,
            seed,
            calls: share,
            boot: Boot {
                machine: machine(cores, args.memory),
                ..boot(&kernel, &root_task, share, seed)
            },
        });
    }
    let ended: Vec<Result<Results>> = thread::scope(|scope| {
        let running: Vec<_> = parts
            .iter()
            .map(|part| scope.spawn(|| run_part(part)))
            .collect();
        let join = |handle: thread::ScopedJoinHandle<'_, Result<Results>>| {
            handle
                .join()
                .unwrap_or_else(|_| Err(anyhow!("a thread of the tool panicked")))
        };
        running.into_iter().map(join).collect()
    });
    let mut sum = Results::default();
    let mut failed = false;
    for (part, result) in parts.iter().zip(ended) {
        match result {
            Ok(results) => sum.add(&results),
            Err(error) => {
                failed = true;
                eprintln!("the {} kernel: {error:#}", part.variant.name());
            }
        }
    }
    print!("{}", sum.table());
    println!(
        "storm: {} calls in {} arenas, {}",
        sum.calls,
        sum.arenas,
        if failed { "FAILED" } else { "ok" }
    );
    Ok(ExitCode::from(u8::from(failed)))
}

/// A machine under virtual time: the same seed does the same.
fn machine(cores: Cores, memory_mib: u32) -> Machine {
    Machine {
        cores: cores.number(),
        memory_mib,
        icount: Some(0),
        ..Machine::default()
    }
}

/// A boot for `calls` system calls, with the first seed `seed`.
fn boot(kernel: &Path, root_task: &Path, calls: u64, seed: u64) -> Boot {
    let option = |name: &str, value: u64| {
        [
            "-fw_cfg".into(),
            format!("name=opt/sandglass/{name},string={value}").into(),
        ]
    };
    Boot {
        silence: Some(SILENCE),
        extra_args: option("calls", calls)
            .into_iter()
            .chain(option("seed", seed))
            .collect(),
        ..Boot::new(kernel, root_task)
    }
}

/// Runs one machine and tells its progress.
///
/// # Errors
/// It did not end well; the message has the seed and the end of the console.
fn run_part(part: &Part) -> Result<Results> {
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
    let seed = last
        .as_deref()
        .and_then(|line| line.rsplit_once("seed "))
        .and_then(|(_, seed)| seed.trim().parse().ok())
        .unwrap_or(part.seed);
    outcome
        .and_then(|outcome| judge(&outcome, part.cores))
        .with_context(|| {
            let command = part.command();
            format!(
                "in a run of {} calls, in an arena from seed {seed} on; to repeat: {command} \
                 --seed {seed} --calls 100000, or if that shows nothing: --seed {} --calls {}",
                part.calls, part.seed, part.calls
            )
        })
}

/// The results of a machine that ended well.
fn judge(outcome: &Outcome, cores: Cores) -> Result<Results> {
    let tail = || {
        let lines: Vec<&str> = outcome.console.lines().collect();
        lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
    };
    match outcome.end {
        End::Guest(0) => Results::read(&outcome.console, cores.number()),
        End::Guest(1) => bail!("the run failed:\n{}", tail()),
        End::Guest(status) => bail!("the kernel stopped with status {status}:\n{}", tail()),
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
