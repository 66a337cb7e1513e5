//! Boots the system on 1 to 4 cores, with the plugin that counts what each core executes.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

use super::points::{Point, Source};
use super::window::{self, Counts};
use crate::arch::Arch;
use crate::bounds::names::Symbols;
use crate::bounds::plugin;
use crate::cores::{Cores, MOST_CORES};
use crate::demo::reference::Reference;
use crate::kernel::{self, KernelOptions, Variant};
use crate::program;
use crate::qemu::{self, Boot, End, Machine};
use crate::workspace;

/// Folder of the system.
const SYSTEM: &str = "systems/multicore";
/// Names of the program's marks, and what the plugin calls them.
const MARKS: [(&str, &str); 4] = [
    ("multicore_begin", "begin"),
    ("multicore_end", "end"),
    ("multicore_busy_", "busy"),
    ("multicore_free_", "free"),
];
/// What a line of the console with a client's digest begins with.
const DIGEST: &str = "multicore-digest ";
/// Longer than any run takes.
const TIMEOUT: Duration = Duration::from_secs(1200);
const MEMORY_MIB: u32 = 256;
/// Lines of the console that a failure shows.
const SHOWN_LINES: usize = 20;

/// How much is done.
#[derive(Clone, Copy)]
pub struct Work {
    /// Bytes that each client has encrypted.
    bytes: u64,
    /// Calls of each pair.
    calls: u64,
}

impl Work {
    pub const QUICK: Self = Self {
        bytes: 64 << 10,
        calls: 200,
    };
    /// 1 MiB, as in the thesis.
    pub const FULL: Self = Self {
        bytes: 1 << 20,
        calls: 2_000,
    };
}

/// Everything that is needed to run.
pub struct Bench {
    arch: Arch,
    kernel: PathBuf,
    root_task: PathBuf,
    plugin: PathBuf,
    /// Arguments of the plugin for the marks.
    marks: String,
    work: Work,
}

impl Bench {
    /// Builds everything.
    ///
    /// # Errors
    /// Something does not build, or the program lacks its marks.
    pub fn prepare(arch: Arch, work: Work) -> Result<Self> {
        let metadata = program::workspace_metadata()?;
        let package = program::package_in(&metadata, SYSTEM)?;
        let root_task = program::build_for(arch, &package.name)?;
        let symbols = Symbols::read(&root_task)?;
        let mut marks = String::new();
        for (name, argument) in MARKS {
            // By address, which is the order in which the program has them.
            let addresses: Vec<u64> = symbols.with_prefix(name).collect();
            ensure!(!addresses.is_empty(), "the program has no mark `{name}`");
            for address in addresses {
                marks += &format!(",{argument}={address:x}");
            }
        }
        Ok(Self {
            arch,
            kernel: kernel::build(
                &KernelOptions::smp(Variant::Release)
                    .for_arch(arch)
                    .with_user_timer(),
            )?,
            root_task,
            plugin: plugin::build()?,
            marks,
            work,
        })
    }

    /// Runs all windows on 1 core to [`MOST_CORES`].
    ///
    /// # Errors
    /// A run does not end well, or a ciphertext is wrong.
    pub fn run_all(&self) -> Result<Vec<Point>> {
        let mut points = Vec::new();
        for cores in 1..=MOST_CORES {
            eprintln!("measuring on {cores} of {MOST_CORES} cores");
            let measured = self.run(cores);
            points.extend(measured.with_context(|| format!("on {cores} cores"))?);
        }
        Ok(points)
    }

    fn run(&self, cores: u32) -> Result<Vec<Point>> {
        let name = format!("multicore-{}-{cores}.txt", std::process::id());
        let out = workspace::target_dir().join(name);
        let plugin = format!(
            "{},cores=on,out={}{}",
            self.plugin.display(),
            out.display(),
            self.marks
        );
        let option = |name: &str, value: u64| format!("name=opt/sandglass/{name},string={value}");
        let bytes = option("bytes", self.work.bytes);
        let calls = option("calls", self.work.calls);
        let arguments = ["-fw_cfg", &bytes, "-fw_cfg", &calls, "-plugin", &plugin];
        let mut machine = Machine {
            cores: Cores::Smp(cores).number(),
            memory_mib: MEMORY_MIB,
            ..Machine::of(self.arch)
        };
        machine.keep_virtual_time(0);
        let boot = Boot {
            machine,
            user_semihosting: true,
            timeout: Some(TIMEOUT),
            extra_args: arguments.map(Into::into).into(),
            ..Boot::new(&self.kernel, &self.root_task)
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
        self.check_digests(&outcome.console, cores)?;
        let text =
            fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))?;
        // Only we have read it; a file that stays behind is no failure.
        let _ = fs::remove_file(&out);
        points(&outcome.console, &Counts::read_all(&text)?, cores)
    }

    /// Fails unless every client's ciphertext is what another implementation of AES makes, in
    /// both windows.
    fn check_digests(&self, console: &str, cores: u32) -> Result<()> {
        let text = vec![0; self.work.bytes as usize];
        let reference = Reference::new(&text, self.work.bytes);
        let mut checked = 0;
        for line in console.lines() {
            let Some((badge, digest)) = line
                .trim_end()
                .strip_prefix(DIGEST)
                .and_then(|rest| rest.split_once(' '))
            else {
                continue;
            };
            let badge: u64 = badge.parse().context("a client's number is none")?;
            let expected = format!("{:016x}", reference.digest(badge, self.work.bytes));
            ensure!(
                digest == expected,
                "the ciphertext of client {badge} has the digest {digest}, not {expected}"
            );
            checked += 1;
        }
        ensure!(
            checked == 2 * cores,
            "{checked} ciphertexts of two for each of {cores} clients"
        );
        Ok(())
    }
}

/// What the console says of windows, with what the plugin counted in them.
fn points(console: &str, counts: &[Counts], cores: u32) -> Result<Vec<Point>> {
    let work = window::read_work(console);
    ensure!(
        work.len() == counts.len(),
        "the system tells of {} windows, the plugin of {}",
        work.len(),
        counts.len()
    );
    let mut points = Vec::new();
    for (work, counts) in work.into_iter().zip(counts) {
        ensure!(
            work.cores == cores,
            "only {} of {cores} cores run",
            work.cores
        );
        let (time, limit) = counts.time();
        ensure!(time > 0, "nothing was executed in a window");
        points.push(Point {
            source: Source::Qemu,
            scenario: work.scenario,
            cores,
            work: work.amount,
            time,
            limit: Some(limit),
            counts: Some(counts.clone()),
        });
    }
    Ok(points)
}
