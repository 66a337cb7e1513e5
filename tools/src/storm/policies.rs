//! `sandglass storm --policies`: a component that does whatever comes to its mind, by a seed, beside honest ones that
//! have to be done in time.
//!
//! Each file in `systems/rogues/policies` is a system with a policy, in which the component `rogue` is the attacker
//! and `judge` ends the system: with status 0 if everybody honest was done. Whatever else is said of an honest
//! component (it ended, it was stopped) is a finding, and so is what the oracle for time finds.

use std::fs;
use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use super::oracle::{Oracle, Seen};
use super::scripts;
use crate::arch::Arch;
use crate::cli::StormArgs;
use crate::kernel::{self, KernelOptions, Variant};
use crate::qemu::{self, End};
use crate::side_by_side;
use crate::system::{self, Built, Source};
use crate::workspace;

/// Where the systems are.
const FOLDER: &str = "systems/rogues/policies";
/// What the rogue is told to do in a file, and what it does here.
const AS_DESCRIBED: &str = "attack = 0, seed = 0";
const STORM: u64 = 9;
/// The component that may come to grief.
const ROGUE: &str = "`rogue";
/// Memory of the machine, in all of the files.
const MEMORY_MIB: u32 = 64;
/// Systems that are built at a time.
const BATCH: u64 = 32;
/// Limit of a run, of the host's time.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What all machines have in common.
#[derive(Debug)]
pub struct Lab {
    arch: Arch,
    kernel: PathBuf,
    oracle: Oracle,
}

impl Lab {
    /// # Errors
    /// The kernel, or the oracle's plugin, does not build.
    pub fn new(arch: Arch) -> Result<Self> {
        let options = KernelOptions::new(Variant::Release).for_arch(arch);
        // The systems have the timer.
        let kernel = kernel::build(&options.with_user_timer())?;
        let oracle = Oracle::new(arch, &kernel, MEMORY_MIB)?;
        Ok(Self {
            arch,
            kernel,
            oracle,
        })
    }
}

/// A policy, and the system with it.
#[derive(Debug, Clone)]
pub struct Policy {
    pub name: String,
    source: Source,
}

impl Policy {
    /// All of them, by name.
    ///
    /// # Errors
    /// The files cannot be read, or one has no rogue.
    pub fn all() -> Result<Vec<Self>> {
        let folder = workspace::root().join(FOLDER);
        let reading = || format!("cannot read {}", folder.display());
        let mut policies = Vec::new();
        for entry in fs::read_dir(&folder).with_context(reading)? {
            let path = entry.with_context(reading)?.path();
            let source = Source::read(&path)?;
            ensure!(
                source.text.contains(AS_DESCRIBED),
                "{}: the component `rogue` must have the parameters `{AS_DESCRIBED}`",
                path.display()
            );
            let name = path.file_stem().unwrap_or_default();
            policies.push(Self {
                name: name.to_string_lossy().into_owned(),
                source,
            });
        }
        policies.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(policies)
    }

    /// The system with the rogue of this seed.
    fn with(&self, arch: Arch, seed: u64) -> Source {
        let storm = format!("attack = {STORM}, seed = {seed}");
        Source {
            arch: Some(arch),
            text: self.source.text.replace(AS_DESCRIBED, &storm),
            ..self.source.clone()
        }
    }

    /// Tries `seeds`, as many at a time as the host has cores; returns what was found, and how much the oracle
    /// saw. `done` is told of each.
    ///
    /// # Errors
    /// A system is wrong, does not build, or cannot be run.
    pub fn storm(
        &self,
        lab: &Lab,
        seeds: Range<u64>,
        done: impl Fn() + Sync,
    ) -> Result<(Vec<String>, Seen)> {
        let mut findings = Vec::new();
        let mut sum = Seen::default();
        let mut first = seeds.start;
        while first < seeds.end {
            let batch: Vec<u64> = (first..seeds.end.min(first + BATCH)).collect();
            first += BATCH;
            let systems = batch
                .iter()
                .map(|&seed| self.checked(lab.arch, seed))
                .collect::<Result<Vec<_>>>()?;
            let built = system::build_all(&systems)?;
            let runs: Vec<(u64, Built)> = batch.into_iter().zip(built).collect();
            let work = |(seed, built): &(u64, Built)| self.run(*seed, built, lab);
            let ends = side_by_side::run(&runs, work, |_, _| done())?;
            for (finding, seen) in ends {
                findings.extend(finding);
                sum.add(&seen);
            }
            for (_, image) in systems {
                // Only we know of it; a file that stays behind is no failure.
                let _ = fs::remove_file(image);
            }
        }
        Ok((findings, sum))
    }

    fn checked(&self, arch: Arch, seed: u64) -> Result<(system::Description, PathBuf)> {
        let description = match system::check(&self.with(arch, seed)) {
            Ok(description) => description,
            Err(report) => bail!("{report}"),
        };
        let folder = workspace::target_dir().join("rogues");
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let name = format!("{}-{seed}-{}.elf", self.name, std::process::id());
        Ok((description, folder.join(name)))
    }

    /// What is wrong about one run, if anything.
    fn run(&self, seed: u64, built: &Built, lab: &Lab) -> Result<(Option<String>, Seen)> {
        let mut boot = built.boot(&lab.kernel);
        boot.machine.keep_virtual_time(0);
        boot.machine.memory_mib = MEMORY_MIB;
        boot.timeout = Some(TIMEOUT);
        let oracle = lab.oracle.another();
        boot.extra_args.extend(oracle.options());
        let outcome = qemu::run(&boot)?;
        let seen = oracle.answer();
        let mut wrong: Vec<String> = outcome.console.lines().filter_map(complaint).collect();
        match outcome.end {
            End::Guest(0) => {}
            End::Guest(status) => wrong.push(format!("it ended with status {status}")),
            End::TimedOut | End::Until => wrong.push("it did not end".to_owned()),
        }
        if let Err(error) = &seen {
            wrong.push(format!("{error:#}"));
        }
        let finding = (!wrong.is_empty()).then(|| {
            format!(
                "{}, seed {seed}: {}\n    to repeat: ./sandglass storm --policies --arch {} --policy {} --seed {seed} --seeds 1",
                self.name,
                wrong.join("; "),
                lab.arch.name(),
                self.name
            )
        });
        Ok((finding, seen.unwrap_or_default()))
    }
}

/// A line of the console that says that an honest component failed. The rogue has no console: it could
/// write what the judge says, and would write into the lines of others.
fn complaint(line: &str) -> Option<String> {
    let is_bad = ["panicked", " ended with ", " is stopped", " was stopped"]
        .iter()
        .any(|bad| line.contains(bad));
    (is_bad && !line.contains(ROGUE)).then(|| line.trim().to_owned())
}

/// `sandglass storm --policies`: status 0 if no honest component was harmed, on the host and in the emulator.
pub fn run(args: &StormArgs) -> Result<ExitCode> {
    let is_wanted = |name: &str| args.policy.as_deref().is_none_or(|wanted| wanted == name);
    let mut policies = Policy::all()?;
    policies.retain(|policy| is_wanted(&policy.name));
    let scripts = scripts::named(is_wanted);
    if let Some(name) = &args.policy {
        ensure!(
            !policies.is_empty() || !scripts.is_empty(),
            "there is no policy `{name}`: neither a file {FOLDER}/{name}.toml, nor a script of this name; there are {}",
            scripts::names()
        );
    }
    let mut failed = scripts::storm(&scripts, args.seed, args.hosted_steps)?;
    if args.seeds > 0 && !policies.is_empty() {
        failed |= storm(&policies, args)?;
    }
    println!("storm: {}", if failed { "FAILED" } else { "ok" });
    Ok(ExitCode::from(u8::from(failed)))
}

/// Tries all seeds of these policies in the emulator; whether something was found.
fn storm(policies: &[Policy], args: &StormArgs) -> Result<bool> {
    let lab = Lab::new(args.arch)?;
    let style = ProgressStyle::with_template("{msg:20} {bar:40} {pos} of {len} seeds")?;
    let mut failed = false;
    for policy in policies {
        let progress = ProgressBar::new(args.seeds).with_style(style.clone());
        progress.set_message(policy.name.clone());
        let seeds = args.seed..args.seed.saturating_add(args.seeds);
        let (findings, seen) = policy.storm(&lab, seeds, || progress.inc(1))?;
        progress.finish_and_clear();
        for finding in &findings {
            println!("{finding}");
        }
        println!(
            "{}: {} seeds, {} findings; {seen}",
            policy.name,
            args.seeds,
            findings.len()
        );
        failed |= !findings.is_empty();
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn only_the_rogue_may_come_to_grief() {
        for fine in [
            "judge: all honest components are done",
            "launcher: component `rogue` ended with status 101 (a panic)",
            "edf: `rogue` is stopped: Timeout",
            "launcher: `rogue/second` was stopped by a fault: x",
        ] {
            assert_eq!(complaint(fine), None);
        }
        for bad in [
            "launcher: component `server` ended with status 101 (a panic)",
            "launcher: `server/handler` was stopped by a fault: x",
            "panicked at user/policies/sharing/src/blocking/mod.rs:130:29:",
            "panicked at systems/rogues/src/main.rs:3:4:",
            "panicked at systems/components/rogue/src/lib.rs:3:4:",
            "edf: `fast` is stopped: Memory",
        ] {
            assert_eq!(complaint(bad).as_deref(), Some(bad));
        }
    }
}
