//! `sandglass bounds --cores N`: how long cores wait for their turns in the kernel, while all but
//! one of them do long operations over and over.
//!
//! The system in `systems/waiting` runs on the SMP kernel, a window for each attack; the plugin
//! counts, for every wait, what the other cores execute in the kernel meanwhile.

use std::fmt;
use std::fs;
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};

use super::names::Symbols;
use super::table::{thousands, MOST_STRETCH};
use super::{failure, plugin, run_to_the_end, PREEMPTION_POINT, SILENCE};
use crate::arch::Arch;
use crate::cores::Cores;
use crate::kernel::{self, KernelOptions, Variant};
use crate::program;
use crate::qemu::{Boot, End, Machine};
use crate::workspace;

/// Folder of the system.
const SYSTEM: &str = "systems/waiting";
const BEGIN_MARK: &str = "waiting_begin";
const END_MARK: &str = "waiting_end";
/// What a line of the console about a window begins with, and what is in one about what the system found
/// wrong itself.
const WINDOW: &str = "waiting ";
const FAILED: &str = " ... FAILED: ";

/// The kernel's function in which a core waits for its turn.
const WAIT: &str = "sandglass_kernel::arch::requests::wait";
/// What it may call meanwhile, unless that is part of it: to do what the core inside asks for.
const MEANWHILE: [&str; 4] = [
    "sandglass_kernel::arch::requests::answer",
    "sandglass_kernel::arch::x86_64::machine::core_data::save_fpu",
    "sandglass_kernel::arch::aarch64::machine::core_data::save_fpu",
    "sandglass_kernel::arch::x86_64::machine::cpu::flush_users",
];

const MEMORY_MIB: u32 = 256;
/// Jobs of the task in each window.
const QUICK_JOBS: u64 = 2;
const FULL_JOBS: u64 = 20;

/// What was measured in the window of an attack, in instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Window {
    attack: String,
    /// How often a core has waited.
    waits: u64,
    longest: u64,
    /// The longest turn, as far as others have waited.
    turn: u64,
    /// The longest stretch without a look for interrupts and waiting cores.
    stretch: u64,
}

/// All windows on a machine.
struct Waits {
    cores: u32,
    windows: Vec<Window>,
    /// What the system found wrong: jobs that ended too late, and payments.
    failures: Vec<String>,
}

/// Fails if a core waits for longer than the bound, or if the system finds that a task beside the
/// attacks misses a deadline or pays for them.
///
/// # Errors
/// Something does not build, or the machine does not end as it should.
pub fn run(arch: Arch, cores: u32, is_quick: bool) -> Result<ExitCode> {
    let jobs = if is_quick { QUICK_JOBS } else { FULL_JOBS };
    let waits = measure(arch, cores, jobs)?;
    print!("{waits}");
    let exceeded = waits.exceeded();
    for finding in &exceeded {
        println!("EXCEEDED: {finding}");
    }
    Ok(if exceeded.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn measure(arch: Arch, cores: u32, jobs: u64) -> Result<Waits> {
    let metadata = program::workspace_metadata()?;
    let package = program::package_in(&metadata, SYSTEM)?;
    let root_task = program::build_for(arch, &package.name)?;
    let kernel = KernelOptions::smp(Variant::Release).for_arch(arch);
    // The program reads the counter.
    let kernel = kernel::build(&kernel.with_user_timer())?;
    let plugin = plugin::build()?;
    let name = format!("waiting-{}-{cores}.txt", std::process::id());
    let out = workspace::target_dir().join(name);
    let options = format!(
        "{},out={}{}",
        plugin.display(),
        out.display(),
        addresses(&Symbols::read(&kernel)?, &Symbols::read(&root_task)?)?
    );
    let jobs = format!("name=opt/sandglass/jobs,string={jobs}");
    let boot = Boot {
        machine: Machine {
            cores: Cores::Smp(cores).number(),
            memory_mib: MEMORY_MIB,
            icount: Some(0),
            ..Machine::of(arch)
        },
        user_semihosting: true,
        silence: Some(SILENCE),
        extra_args: ["-fw_cfg", &jobs, "-plugin", &options]
            .map(Into::into)
            .into(),
        ..Boot::new(&kernel, &root_task)
    };
    let outcome = run_to_the_end(boot)?;
    // With status 1, it has found something wrong.
    if !matches!(outcome.end, End::Guest(0 | 1)) {
        bail!("{}", failure(&outcome));
    }
    let text =
        fs::read_to_string(&out).with_context(|| format!("cannot read {}", out.display()))?;
    // Only we have read it; a file that stays behind is no failure.
    let _ = fs::remove_file(&out);
    Waits::read(cores, &outcome.console, &text)
}

/// Arguments of the plugin: where things are in the kernel and in the program.
fn addresses(kernel: &Symbols, program: &Symbols) -> Result<String> {
    let of = |symbols: &Symbols, name: &str| {
        let address = symbols.address(name);
        address.with_context(|| format!("there is no function `{name}`"))
    };
    let mut arguments = format!(
        ",point={:x},wait={:x},begin={:x},end={:x}",
        of(kernel, PREEMPTION_POINT)?,
        of(kernel, WAIT)?,
        of(program, BEGIN_MARK)?,
        of(program, END_MARK)?
    );
    let code = [WAIT].into_iter().chain(MEANWHILE);
    for code in code.filter_map(|name| kernel.code(name)) {
        arguments += &format!(",code={:x},code_end={:x}", code.start, code.end);
    }
    Ok(arguments)
}

/// What the console names, with what the plugin wrote of it.
fn windows(console: &str, text: &str) -> Result<Vec<Window>> {
    let attacks: Vec<&str> = console
        .lines()
        .filter_map(|line| line.trim().strip_prefix(WINDOW))
        .collect();
    let lines: Vec<&str> = text.lines().collect();
    ensure!(
        !attacks.is_empty() && attacks.len() == lines.len(),
        "the system names {} windows, and the plugin measured {}",
        attacks.len(),
        lines.len()
    );
    let windows = attacks.into_iter().zip(lines);
    windows
        .map(|(attack, line)| {
            Window::parse(attack, line).with_context(|| format!("the plugin wrote `{line}`"))
        })
        .collect()
}

impl Window {
    /// Reads `waits NUMBER LONGEST TURN STRETCH`.
    fn parse(attack: &str, line: &str) -> Option<Self> {
        let mut numbers = line.strip_prefix("waits ")?.split(' ');
        let mut number = || numbers.next()?.parse::<u64>().ok();
        Some(Self {
            attack: attack.to_owned(),
            waits: number()?,
            longest: number()?,
            turn: number()?,
            stretch: number()?,
        })
    }
}

impl Waits {
    /// What the console says, and what the plugin wrote.
    fn read(cores: u32, console: &str, text: &str) -> Result<Self> {
        let failures = console.lines().filter(|line| line.contains(FAILED));
        Ok(Self {
            cores,
            windows: windows(console, text)?,
            failures: failures.map(|line| line.trim().to_owned()).collect(),
        })
    }

    /// Turns of others that a core waits for at most.
    fn turns(&self) -> u64 {
        u64::from(self.cores) - 1
    }

    /// How long a core may wait.
    fn bound(&self) -> u64 {
        self.turns() * MOST_STRETCH
    }

    /// What does not hold, a sentence each.
    fn exceeded(&self) -> Vec<String> {
        let mut findings = self.failures.clone();
        for window in &self.windows {
            let (attack, longest) = (&window.attack, thousands(window.longest));
            if window.longest > self.bound() {
                findings.push(format!(
                    "beside attackers that {attack}, a core waits for {longest} instructions of others, at most \
                     {} are allowed",
                    thousands(self.bound())
                ));
            }
        }
        if self.windows.iter().all(|window| window.waits == 0) {
            findings.push("no core waited: nothing was measured".to_owned());
        }
        findings
    }
}

impl fmt::Display for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = ["waits", "longest", "turns", "turn", "stretch"];
        writeln!(
            f,
            "waiting for the kernel on {} cores, in instructions that other cores execute in it meanwhile\n",
            self.cores
        )?;
        write!(f, "{:<24}", "attackers that")?;
        for column in columns {
            write!(f, "{column:>11}")?;
        }
        writeln!(f)?;
        for window in &self.windows {
            // How often the longest turn that was seen fits into the longest wait.
            let turns = window.longest as f64 / window.turn.max(1) as f64;
            writeln!(
                f,
                "{:<24}{:>11}{:>11}{turns:>11.2}{:>11}{:>11}",
                window.attack,
                thousands(window.waits),
                thousands(window.longest),
                thousands(window.turn),
                thousands(window.stretch)
            )?;
        }
        let longest = |of: fn(&Window) -> u64| self.windows.iter().map(of).max().unwrap_or(0);
        writeln!(
            f,
            "\nlongest wait: {}, at most {} x {} = {}\nlongest turn while others waited: {}, longest \
             stretch: {}",
            thousands(longest(|window| window.longest)),
            self.turns(),
            thousands(MOST_STRETCH),
            thousands(self.bound()),
            thousands(longest(|window| window.turn)),
            thousands(longest(|window| window.stretch))
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(longest: u64, verdict: &str) -> Waits {
        let console = format!(
            "bounds: noise\r\nwaiting zero_memory\r\ntest x ... {verdict}\r\nwaiting: 1 passed\r\n"
        );
        Waits::read(3, &console, &format!("waits 3 {longest} 10 10\n")).unwrap()
    }

    #[test]
    fn a_wait_beyond_the_bound_is_found() {
        assert!(waits(20_000, "ok").exceeded().is_empty());
        assert_eq!(waits(20_001, "ok").exceeded().len(), 1);
    }

    #[test]
    fn what_the_system_finds_is_found() {
        assert_eq!(waits(1, "FAILED: too late").exceeded().len(), 1);
    }

    #[test]
    fn windows_without_measurements_are_refused() {
        assert!(windows("waiting zero\n", "").is_err());
        assert!(windows("waiting zero\n", "waits 1 2\n").is_err());
    }
}
