//! `sandglass trace`: a described system on a kernel that records what it does; its trace as a file
//! for Perfetto, as a page, and checked.
//!
//! ```text
//! machine's memory --memory--> words --record, history--> records --timeline--> what to draw
//!                                                             \--check--> violations
//! ```

pub mod check;
#[cfg(test)]
mod example;
pub mod gates;
pub mod history;
mod html;
mod jobs;
mod memory;
mod perfetto;
pub mod record;
pub mod tamper;
pub mod timeline;
mod waits;
pub mod windows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{bail, Context, Result};
use sandglass_abi::trace::RECORD_WORDS;
use sandglass_description::Trace;

use self::check::{Promises, Verdict};
use self::history::History;
use self::memory::{Log, Memory};
use self::timeline::Timeline;
use crate::arch::Arch;
use crate::cli::TraceArgs;
use crate::cores::Cores;
use crate::kernel::{self, Variant};
use crate::qemu::{self, Boot, End, Ending, Input};
use crate::system::{self, Built, Description, RunImage, Source};
use crate::workspace;

/// MiB of a frame of a log.
const FRAME_MIB: u32 = 2;
/// How often the logs are looked at for their end.
const LOOK: Duration = Duration::from_millis(100);
/// Violations that are shown.
const SHOWN: usize = 20;

/// How a system is traced.
#[derive(Debug, Clone)]
pub struct Options {
    pub kernel: Variant,
    /// log2 ns of an instruction.
    pub icount: u8,
    /// MiB of memory for the records of each core.
    pub log_mib: u32,
    /// End after so much of the system's time, µs.
    pub end_us: Option<u64>,
    /// End after so much of the host's time.
    pub timeout: Option<Duration>,
    /// Copy the console to standard output.
    pub echo: bool,
    /// Do not run what the description's checks warn of.
    pub deny_warnings: bool,
    /// Copy the console to this file, too.
    pub log: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            kernel: Variant::Release,
            icount: 0,
            log_mib: 64,
            end_us: None,
            timeout: None,
            echo: false,
            deny_warnings: false,
            log: None,
        }
    }
}

/// A run that was traced.
#[derive(Debug)]
pub struct Traced {
    pub history: History,
    /// What the description lets one expect.
    pub expected: Promises,
    pub end: End,
    pub console: String,
}

/// `sandglass trace`: ends with the system's status; with 1 if the trace violates what is checked.
pub fn run(args: &TraceArgs) -> Result<ExitCode> {
    let (html, log) = (args.html.as_deref(), args.log.as_deref());
    workspace::ensure_outputs(&args.system, &[Some(&args.output), html, log])?;
    let options = Options {
        kernel: args.kernel,
        icount: args.icount,
        log_mib: args.buffer,
        end_us: args.duration.map(micros),
        timeout: args.timeout,
        echo: true,
        deny_warnings: args.warnings.deny_warnings,
        log: args.log.clone(),
    };
    let name = args.system.display().to_string();
    let traced = trace(&args.system, args.arch, &options)?;
    let history = &traced.history;
    let timeline = Timeline::of(history);
    write(&args.output, &perfetto::encode(history, &timeline))?;
    if let Some(path) = &args.html {
        write(path, html::page(&name, history, &timeline).as_bytes())?;
    }
    eprintln!(
        "trace: {} records over {:.3} ms; open {} at https://ui.perfetto.dev",
        history.records.len(),
        history.us(history.end() - history.begin()) / 1000.0,
        args.output.display()
    );
    if let Some(path) = &args.html {
        eprintln!("trace: the page is {}", path.display());
    }
    if history.lost > 0 {
        eprintln!(
            "trace: the memory for records was full and {} were lost; use a larger `--buffer`, or a \
             shorter `--for`, to keep all",
            history.lost
        );
    }
    let status = match traced.end {
        End::Guest(status) => status,
        End::Until => 0,
        End::TimedOut => qemu::TIMEOUT_STATUS,
    };
    if args.check && !report(&check::check_with(history, &traced.expected)) {
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::from(status))
}

/// A time in µs, however long.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Prints what the checks found; whether that is nothing.
fn report(verdict: &Verdict) -> bool {
    for violation in verdict.violations.iter().take(SHOWN) {
        println!("{violation}");
    }
    let count = verdict.violations.len();
    if count > SHOWN {
        println!("and {} more", count - SHOWN);
    }
    if verdict.several_cores {
        println!(
            "trace check: the emulator executes several cores in turns, so lateness on one core is \
             ignored up to the time that other cores were busy meanwhile"
        );
    }
    let looked = verdict.looked;
    println!(
        "trace check: {count} violations; checked {} budget windows, {} decisions, {} jobs ({} \
         expected, {} releases skipped), {} donations, {} windows of partitions, {} turns, {} requests at gates",
        looked.windows,
        looked.decisions,
        looked.jobs,
        looked.expected,
        looked.skipped,
        looked.donations,
        looked.partition_windows,
        looked.turns,
        looked.requests
    );
    count == 0
}

/// Builds the system of the description at `path`, for what it says or for `arch`, runs it and collects its trace.
///
/// # Errors
/// The description is wrong, something does not build or run, or nothing was recorded.
pub fn trace(path: &Path, arch: Option<Arch>, options: &Options) -> Result<Traced> {
    let description = system::check(&Source::read(path)?.for_arch(arch))?;
    system::warn(&description, options.deny_warnings)?;
    trace_checked(description, options)
}

/// The same of a checked description, of which nothing is said.
///
/// # Errors
/// Something does not build or run, or nothing was recorded.
pub fn trace_checked(mut description: Description, options: &Options) -> Result<Traced> {
    let cores = description.cores;
    let frames_per_core = options.log_mib.div_ceil(FRAME_MIB).max(1);
    description.system.trace = Some(Trace { frames_per_core });
    // In untyped memory of twice the size there is one piece of the size; of four times, if the loader leaves something in
    // its middle.
    let times = match description.arch {
        Arch::X86_64 => 2,
        Arch::Aarch64 => 4,
    };
    description.memory_mib += (frames_per_core * FRAME_MIB).next_power_of_two() * times * cores;
    let image = RunImage::new()?;
    let built = system::build(&description, Some(image.path()))?;
    let kernel = built.kernel(options.kernel, Cores::of_machine(cores));
    let kernel = kernel::build(&kernel.traced())?;
    run_traced(&description, &image, &built, &kernel, options)
}

/// Runs a built system that is to be traced on `kernel`.
fn run_traced(
    description: &Description,
    image: &RunImage,
    built: &Built,
    kernel: &Path,
    options: &Options,
) -> Result<Traced> {
    let memory = Memory::make(description.arch, image.beside("memory"), built.memory_mib)?;
    let mut boot = Boot {
        timeout: options.timeout,
        input: Input::None,
        echo: options.echo,
        log: options.log.clone(),
        ..built.boot(kernel)
    };
    boot.machine.keep_virtual_time(options.icount);
    let lent = memory.lend(&mut boot.machine)?;
    boot.extra_args.extend(lent.map(Into::into));
    let memory = Arc::new(memory);
    let watcher = Watcher {
        memory: memory.clone(),
        logs: OnceLock::new(),
        end_us: options.end_us,
    };
    boot.ending = Some(Ending::new(LOOK, move || watcher.is_over()));
    let outcome = qemu::run(&boot)?;
    let Some(logs) = memory.logs()? else {
        bail!(
            "the system never said where its trace is: its launcher did not come so far; the \
             console says:\n{}",
            outcome.console
        );
    };
    let words = logs.iter().map(|log| memory.records(log));
    let mut history = History::of(words.collect::<Result<_>>()?)?;
    if let Some(us) = options.end_us {
        history.cut(us);
    }
    Ok(Traced {
        history,
        expected: description.expected.clone(),
        end: outcome.end,
        console: outcome.console,
    })
}

/// Looks at the memory of a system that runs, until its trace is long enough or full.
struct Watcher {
    memory: Arc<Memory>,
    /// Once they are known.
    logs: OnceLock<Vec<Log>>,
    end_us: Option<u64>,
}

impl Watcher {
    /// Whether the run is to end. What cannot be read does not end it.
    fn is_over(&self) -> bool {
        self.look().unwrap_or(false)
    }

    fn look(&self) -> Result<bool> {
        if self.logs.get().is_none() {
            let Some(found) = self.memory.logs()? else {
                return Ok(false);
            };
            // Nobody else sets it.
            let _ = self.logs.set(found);
        }
        for log in self.logs.get().into_iter().flatten() {
            let first = self.memory.record(log, 0)?;
            let newest = self.newest(log)?;
            let is_full = newest + 1 == log.places();
            let passed = self.memory.record(log, newest)?[1].saturating_sub(first[1]);
            let per_us = first[RECORD_WORDS - 2].max(1);
            let is_enough = self.end_us.is_some_and(|us| passed / per_us > us);
            if is_full || is_enough {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The last place of `log` that has a record: places are filled from the first on, but for one
    /// that is being written.
    fn newest(&self, log: &Log) -> Result<u64> {
        let (mut filled, mut empty) = (0, log.places());
        while empty - filled > 1 {
            let middle = filled + (empty - filled) / 2;
            match memory::is_written(&self.memory.record(log, middle)?) {
                true => filled = middle,
                false => empty = middle,
            }
        }
        Ok(filled)
    }
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}
