//! What is run without and with a rogue client: the demonstration, the experiments, the example systems.

use std::fs;
use std::time::Duration;

use anyhow::{ensure, Context, Result};

use super::figures::{self, Figure};
use crate::arch::Arch;
use crate::demo;
use crate::experiment::{Experiment, Extent, Size, CATALOGUE};
use crate::kernel::{self, Variant};
use crate::qemu::{self, End};
use crate::system::rogue::{self, Rogue};
use crate::system::{self, Source};
use crate::workspace;

/// Where the example systems are, from the root of the repository.
const EXAMPLES: &str = "systems/examples";
/// What stands for the demonstration.
const DEMO: &str = "demo";
/// Longest that an example may take, of the host's time: many times what a slow host needs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Something with figures.
#[derive(Clone, Debug)]
pub enum Subject {
    Demo,
    Experiment(&'static Experiment),
    /// The name of a folder of [`EXAMPLES`].
    Example(String),
}

impl Subject {
    /// All of them.
    ///
    /// # Errors
    /// The examples cannot be listed.
    pub fn all() -> Result<Vec<Self>> {
        let folder = workspace::root().join(EXAMPLES);
        let reading = || format!("cannot read {}", folder.display());
        let mut examples = Vec::new();
        for entry in fs::read_dir(&folder).with_context(reading)? {
            let name = entry.with_context(reading)?.file_name();
            examples.push(name.to_string_lossy().into_owned());
        }
        examples.sort();
        let experiments = CATALOGUE.iter().filter(|one| one.is_described);
        let mut all = vec![Self::Demo];
        all.extend(experiments.map(Self::Experiment));
        all.extend(examples.into_iter().map(Self::Example));
        Ok(all)
    }

    /// What it is called; examples by their folder, as there are experiments of the same name.
    pub fn name(&self) -> String {
        match self {
            Self::Demo => DEMO.to_owned(),
            Self::Experiment(experiment) => experiment.name.to_owned(),
            Self::Example(name) => format!("examples/{name}"),
        }
    }

    /// Its figures on an architecture, with the rogue client if there is one.
    ///
    /// # Errors
    /// It does not build, does not run to its end, or one of its own claims does not hold.
    pub fn figures(&self, arch: Arch, size: Size, rogue: Option<Rogue>) -> Result<Vec<Figure>> {
        let beside = if rogue.is_some() { "with" } else { "without" };
        let found = match self {
            Self::Demo => demo::figures(arch, size != Size::Full, rogue),
            Self::Experiment(experiment) => of_experiment(experiment, arch, size, rogue),
            Self::Example(name) => of_example(arch, name, rogue),
        };
        found.with_context(|| format!("{}, {beside} a rogue client", self.name()))
    }
}

fn of_experiment(
    experiment: &Experiment,
    arch: Arch,
    size: Size,
    rogue: Option<Rogue>,
) -> Result<Vec<Figure>> {
    let extent = Extent {
        arch,
        rogue,
        ..Extent::of_size(size)
    };
    let report = experiment.run(&extent)?;
    let failures = report.failures;
    ensure!(failures.is_empty(), "{}", failures.join("; "));
    Ok(report.figures)
}

fn of_example(arch: Arch, name: &str, rogue: Option<Rogue>) -> Result<Vec<Figure>> {
    let path = workspace::root().join(EXAMPLES).join(name);
    let source = Source::read(&path.join("SYSTEM.toml"))?.for_arch(Some(arch));
    let kind = match rogue {
        None => "without".to_owned(),
        Some(rogue) => format!("{:?}", rogue.seed),
    };
    let source = match rogue {
        None => source,
        Some(rogue) => rogue.beside(&source)?,
    };
    let file = format!("{name}-{}-{kind}-{}.elf", arch.name(), std::process::id());
    let image = workspace::target_dir().join("beside").join(file);
    let built = system::build(&system::check(&source)?, Some(&image))?;
    let kernel = built.kernel(Variant::Release, built.cores_with(None)?);
    let mut boot = built.boot(kernel::build(&kernel)?);
    boot.machine.icount = Some(0);
    boot.timeout = Some(TIMEOUT);
    let outcome = qemu::run(&boot);
    // Only we know of it; a file that stays behind is no failure.
    let _ = fs::remove_file(&image);
    let outcome = outcome?;
    ensure!(
        outcome.end == End::Guest(0),
        "it ended with {:?} instead of status 0; its console:\n{}",
        outcome.end,
        outcome.console
    );
    Ok(figures::of_console(&outcome.console, rogue::NAME))
}
