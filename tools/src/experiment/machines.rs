//! Runs described systems in virtual time, each on a machine of its own, as many at a time as the
//! host has cores. Virtual time makes each machine's figures independent of the others and of the
//! host.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use crate::arch::Arch;
use crate::kernel::{self, Variant};
use crate::qemu::{self, End};
use crate::side_by_side;
use crate::system::rogue::Rogue;
use crate::system::{self, Built, Source};
use crate::workspace;

/// Longest that a machine may take, of the host's time: many times what a slow host needs.
const TIMEOUT: Duration = Duration::from_secs(1200);
/// Lines of the console that a failure shows.
const SHOWN_LINES: usize = 20;

/// What a machine that ended with status 0 left.
#[derive(Debug, Clone)]
pub struct Ended {
    pub console: String,
    /// What the system's `[[output]]` got; empty if it has none.
    pub output: Vec<u8>,
}

/// A system that is built, and where its output goes.
struct Machine {
    name: String,
    built: Built,
    /// For as many cores as it has.
    kernel: PathBuf,
    output: PathBuf,
}

/// Builds the systems for `arch` and runs each to its end on the release kernel, with
/// 2^`shift` ns for an instruction; a bar shows how far `what` is. The results come in the order of
/// the systems. With a `rogue`, that is beside the clients of each.
///
/// # Errors
/// A description is wrong; something does not build; a machine does not end with status 0.
pub fn run_all(
    arch: Arch,
    what: &str,
    systems: &[Source],
    shift: u8,
    rogue: Option<Rogue>,
) -> Result<Vec<Ended>> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = workspace::target_dir()
        .join("experiments")
        .join(format!("{}-{run}", std::process::id()));
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    let ended = match rogue {
        None => run_in(arch, &folder, what, systems, shift),
        Some(rogue) => {
            let beside = systems.iter().map(|source| rogue.beside(source));
            let beside: Result<Vec<Source>> = beside.collect();
            beside.and_then(|systems| run_in(arch, &folder, what, &systems, shift))
        }
    };
    // Only we have read it; a folder that stays behind is no failure.
    let _ = fs::remove_dir_all(&folder);
    ended
}

fn run_in(
    arch: Arch,
    folder: &Path,
    what: &str,
    systems: &[Source],
    shift: u8,
) -> Result<Vec<Ended>> {
    let systems: Vec<Source> = systems
        .iter()
        .map(|source| source.clone().for_arch(Some(arch)))
        .collect();
    // By number: a source that was read from a file has that one's path for a name.
    let file = |number: usize, what: &str| folder.join(format!("{number}.{what}"));
    let checked = systems
        .iter()
        .enumerate()
        .map(|(number, source)| Ok((system::check(source)?, file(number, "image"))))
        .collect::<Result<Vec<_>>>()?;
    let mut machines = Vec::new();
    let all = system::build_all(&checked)?.into_iter().zip(&systems);
    for (number, (built, source)) in all.enumerate() {
        let options = built.kernel(Variant::Release, built.cores_with(None)?);
        machines.push(Machine {
            name: source.name.clone(),
            built,
            kernel: kernel::build(&options)?,
            output: file(number, "output"),
        });
    }
    let bar = bar(what, machines.len());
    let ended = side_by_side::run(
        &machines,
        |machine| {
            machine
                .run(shift)
                .with_context(|| format!("the system `{}`", machine.name))
        },
        |_, _| bar.inc(1),
    );
    bar.finish_and_clear();
    ended
}

impl Machine {
    fn run(&self, shift: u8) -> Result<Ended> {
        let mut boot = self.built.boot(&self.kernel);
        boot.machine.keep_virtual_time(shift);
        boot.timeout = Some(TIMEOUT);
        let has_output = self.built.output.is_some();
        if has_output {
            self.built.output_to(&mut boot, &self.output)?;
        }
        let outcome = qemu::run(&boot)?;
        match outcome.end {
            End::Guest(0) => {}
            End::TimedOut => bail!(
                "did not end within {} s{}",
                TIMEOUT.as_secs(),
                last_lines(&outcome.console)
            ),
            _ => bail!(
                "ended with status {}{}",
                outcome.status(),
                last_lines(&outcome.console)
            ),
        }
        let output = if has_output {
            fs::read(&self.output).context("it left no output")?
        } else {
            Vec::new()
        };
        Ok(Ended {
            console: outcome.console,
            output,
        })
    }
}

/// The end of a console, for an error.
fn last_lines(console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    let shown = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
    format!("; the end of its console:\n{}", shown.join("\n"))
}

/// A bar that shows how many of `length` are done, on standard error.
pub fn bar(what: &str, length: usize) -> ProgressBar {
    let bar = ProgressBar::new(length as u64).with_message(what.to_owned());
    let style = "{msg} {wide_bar} {pos}/{len} (still {eta})";
    bar.with_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    )
}
