//! `sandglass experiment`: experiments of the papers, repeated.
//!
//! - [`CATALOGUE`] names them all; each has a module, whose `run` returns a [`Report`];
//! - [`report`] is what an experiment found: a summary, a page with plots and the comparison with
//!   the paper, data as CSV, and what fails;
//! - [`machines`] runs described systems in virtual time; [`chart`] and [`scatter`] draw.

pub mod chart;
mod criticality;
pub mod edf;
mod isolation;
pub mod machines;
mod mc_ipc;
mod mode_switch;
pub mod multicore;
mod page;
mod partitions;
mod policies;
pub mod report;
mod scatter;
mod sharing;
pub mod simulation;
mod temporal_capabilities;
mod timeouts;
mod timers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{bail, ensure, Context, Result};

use crate::arch::Arch;
use crate::cli::ExperimentArgs;
use crate::system::rogue::Rogue;
use page::Page;
use report::Report;

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Size {
    /// As little as shows that the experiment works and that its claims hold: for tests, some
    /// seconds.
    Smoke,
    /// A minute or two.
    Quick,
    /// As much as the paper's, or more.
    Full,
}

/// What is asked of an experiment.
#[derive(Clone, Debug)]
pub struct Extent {
    pub size: Size,
    /// On which architecture.
    pub arch: Arch,
    /// `--hosted` of `multicore`.
    pub hosted: Option<PathBuf>,
    /// `--sets` of `edf`.
    pub sets: Option<u32>,
    /// `--rogue`: an untrusted client beside the others.
    pub rogue: Option<Rogue>,
    /// `--page` of `temporal-capabilities` and `policies`: the figures of their pages in the book are written anew.
    pub page: bool,
}

impl Extent {
    /// The rogue client that is asked for, where an instruction takes 2^`shift` ns.
    fn rogue(&self, shift: u8) -> Option<Rogue> {
        self.rogue.map(|rogue| Rogue { shift, ..rogue })
    }

    /// What is wrong with the figures of `page`, if it shows others than these; or writes them, if that is asked for. The
    /// book shows those of x86_64, so that on aarch64 there is nothing to compare.
    ///
    /// # Errors
    /// The page cannot be read or written, has no place for figures, or is asked to show those of aarch64.
    fn hold(&self, page: Page, figures: &str) -> Result<Option<String>> {
        match self.arch {
            Arch::X86_64 => page.hold(figures, self.page),
            Arch::Aarch64 => {
                ensure!(
                    !self.page,
                    "`--page`: {} shows figures of x86_64: leave out `--arch aarch64`",
                    page.path
                );
                Ok(None)
            }
        }
    }

    /// Nothing but a size.
    pub const fn of_size(size: Size) -> Self {
        Self {
            size,
            arch: Arch::X86_64,
            hosted: None,
            sets: None,
            rogue: None,
            page: false,
        }
    }
}

/// What an experiment reproduces whose figures are of this system only.
pub const NO_PAPER: &str = "no paper: figures of its own";

/// An experiment that can be run.
#[derive(Debug)]
pub struct Experiment {
    pub name: &'static str,
    /// The tables and figures that it reproduces, and of which paper; or [`NO_PAPER`].
    pub reproduces: &'static str,
    /// What it shows, in a line.
    pub about: &'static str,
    /// An instruction takes 2^shift ns of virtual time; `None`: it runs on the host, and counts something else.
    pub shift: Option<u8>,
    /// Whether its systems are described: to others no client can be added.
    pub is_described: bool,
    /// Whether it boots machines: one that does not is the same for every architecture.
    pub boots: bool,
    /// Runs it, with its progress on standard error.
    run: fn(&Extent) -> Result<Report>,
}

/// All experiments.
pub const CATALOGUE: &[Experiment] = &[
    Experiment {
        name: "edf",
        reproduces: "thesis, Figure 8.8",
        about:
            "scheduling by deadlines at user level: latency, and every decision compared with a simulation",
        shift: Some(edf::SHIFT),
        is_described: true,
        boots: true,
        run: edf::run,
    },
    Experiment {
        name: "timeouts",
        reproduces: "thesis, Table 8.14",
        about: "the cost of each way to handle a timeout, for the handler",
        shift: Some(0),
        is_described: true,
        boots: true,
        run: timeouts::run,
    },
    Experiment {
        name: "isolation",
        reproduces: "thesis, Figure 8.6",
        about: "throughput of two clients of a server against their budgets",
        shift: Some(0),
        is_described: true,
        boots: true,
        run: isolation::run,
    },
    Experiment {
        name: "mode-switch",
        reproduces: "thesis, Figure 8.7 and Table 8.15",
        about: "the cost of a change of the criticality mode, against the number of threads",
        shift: Some(0),
        is_described: true,
        boots: true,
        run: mode_switch::run,
    },
    Experiment {
        name: "criticality",
        reproduces: "thesis, Table 8.16",
        about: "three real workloads in three stages: only less critical tasks miss deadlines",
        shift: Some(0),
        is_described: true,
        boots: true,
        run: criticality::run,
    },
    Experiment {
        name: "multicore",
        reproduces: "thesis, Figures 8.9 and 8.10",
        about: "a cipher server for clients on all cores, and pairs that call and reply",
        shift: Some(0),
        is_described: false,
        boots: true,
        run: multicore::run,
    },
    Experiment {
        name: "sharing",
        reproduces: "thesis, Figures 2.4 and 6.6",
        about: "one workload under every resource-sharing protocol, with the Mars Pathfinder's inversion",
        shift: Some(0),
        is_described: true,
        boots: true,
        run: sharing::run,
    },
    Experiment {
        name: "partitions",
        reproduces: "Åsberg and Nolte, Figures 8 and 10",
        about: "the partition scheduler's cost against the number of partitions and threads, and what ran when",
        shift: Some(0),
        is_described: false,
        boots: true,
        run: partitions::run,
    },
    Experiment {
        name: "timers",
        reproduces: NO_PAPER,
        about: "the timer service's cost against the number of timers, and releases without drift",
        shift: Some(0),
        is_described: true,
        boots: true,
        run: timers::run,
    },
    Experiment {
        name: "policies",
        reproduces: NO_PAPER,
        about: "one task set under each policy: its cost, and what a hostile task changes for the others",
        shift: Some(0),
        // Its systems have a hostile task of their own, and a judge of best effort that would share its time with another.
        is_described: false,
        boots: true,
        run: policies::run,
    },
    Experiment {
        name: "temporal-capabilities",
        reproduces: "FlaRe, Figures 3 to 5",
        about: "processor time that is derived, granted and revoked: admission against exact tests, its cost and its memory",
        shift: None,
        is_described: false,
        boots: false,
        run: temporal_capabilities::run,
    },
    Experiment {
        name: "mc-ipc",
        reproduces: "Brandenburg (MC-IPC), Figure 2",
        about: "a key server in eight phases of failures: a critical client's delays against their bounds, by three orders",
        shift: None,
        is_described: false,
        boots: true,
        run: mc_ipc::run,
    },
];

/// What stands for every experiment on the command line.
const ALL: &str = "all";

impl Experiment {
    /// Runs it. The outcome is in the report; see [`Report::failures`].
    ///
    /// # Errors
    /// Something does not build, or a machine does not run to its end.
    pub fn run(&self, extent: &Extent) -> Result<Report> {
        (self.run)(extent).with_context(|| format!("the experiment `{}`", self.name))
    }

    /// What its figures are in.
    pub fn time(&self) -> String {
        match self.shift {
            Some(shift) => format!(
                "an instruction takes {} ns: `-icount shift={shift}`",
                1u32 << shift
            ),
            None => "on the host, in steps that are counted".to_owned(),
        }
    }
}

/// `sandglass experiment`: ends with status 1 if a claim of an experiment does not hold.
pub fn run(args: &ExperimentArgs) -> Result<ExitCode> {
    let Some(name) = args.name.as_deref().filter(|_| !args.list) else {
        print!("{}", list());
        return Ok(ExitCode::SUCCESS);
    };
    let extent = Extent {
        size: if args.quick { Size::Quick } else { Size::Full },
        arch: args.arch,
        hosted: args.hosted.clone(),
        sets: args.sets,
        rogue: args.beside.rogue.map(Rogue::of_seed),
        page: args.page,
    };
    let chosen: Vec<_> = CATALOGUE
        .iter()
        .filter(|experiment| name == ALL || experiment.name == name)
        .collect();
    if chosen.is_empty() {
        bail!("there is no experiment `{name}`; they are:\n{}", list());
    }
    let folder = |experiment: &Experiment| {
        let folder = args.report.as_ref()?;
        Some(if name == ALL {
            folder.join(experiment.name)
        } else {
            folder.clone()
        })
    };
    let mut failed = 0;
    for experiment in &chosen {
        let report = run_one(experiment, &extent, folder(experiment).as_deref())?;
        failed += usize::from(!report.failures.is_empty());
    }
    if let Some(folder) = args.report.as_ref().filter(|_| name == ALL) {
        report::write_index(folder, &chosen)
            .with_context(|| format!("cannot write the index to `{}`", folder.display()))?;
    }
    if chosen.len() > 1 {
        println!("{} experiments, {failed} failed", chosen.len());
    }
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Runs one, shows what it found, and writes its report into `folder`.
fn run_one(experiment: &Experiment, extent: &Extent, folder: Option<&Path>) -> Result<Report> {
    if let Some(folder) = folder {
        // Before the work: a report that cannot be written should not cost minutes.
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder `{}`", folder.display()))?;
    }
    println!(
        "{}: {} ({}; {})\n",
        experiment.name,
        experiment.about,
        experiment.reproduces,
        experiment.time()
    );
    let report = experiment.run(extent)?;
    print!("{}", report.text());
    if let Some(folder) = folder {
        report
            .write(folder, experiment)
            .with_context(|| format!("cannot write the report to `{}`", folder.display()))?;
        println!("\nThe report is in {}", folder.join("index.html").display());
    }
    for failure in &report.failures {
        println!("FAILED: {failure}");
    }
    println!();
    Ok(report)
}

/// The catalogue, a line each.
fn list() -> String {
    let width = |text: fn(&Experiment) -> &str| {
        let lengths = CATALOGUE.iter().map(|experiment| text(experiment).len());
        lengths.max().unwrap_or(0)
    };
    let (name, reproduces) = (width(|e| e.name), width(|e| e.reproduces));
    CATALOGUE
        .iter()
        .map(|experiment| {
            format!(
                "{:<name$}  {:<reproduces$}  {}\n",
                experiment.name, experiment.reproduces, experiment.about
            )
        })
        .collect()
}
