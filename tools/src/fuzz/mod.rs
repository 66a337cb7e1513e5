//! `sandglass fuzz`: looks for inputs that break a promise, guided by coverage.
//!
//! What is fuzzed stands in `fuzz/targets`, as functions of bytes; libFuzzer, in `fuzz/engine`,
//! finds bytes that reach new code. This builds it, gives each target its share of the time, makes
//! what failed small and shows how to see it again, and adds what reached new code to the corpus
//! that is kept in the repository, which `sandglass test` replays.

mod campaign;
mod corpus;
mod engine;
mod failure;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{bail, Context, Result};

use crate::cli::FuzzArgs;
use campaign::Campaign;
use corpus::Corpus;
use engine::Engine;

/// `sandglass fuzz`: status 0 if nothing failed.
pub fn run(args: &FuzzArgs) -> Result<ExitCode> {
    let targets = targets(args)?;
    if let Some(input) = &args.input {
        let [target] = &targets[..] else {
            bail!(
                "`--input` needs `--target NAME`: one of {}",
                names(&targets)
            );
        };
        return replay(target, input);
    }
    let engine = Engine::build()?;
    let share = Duration::from_secs(args.minutes * 60) / targets.len() as u32;
    let mut failed = false;
    let mut lines = Vec::new();
    for target in &targets {
        eprintln!("fuzzing {target} for {} s", share.as_secs());
        let campaign = Campaign {
            engine: &engine,
            target,
            jobs: args.jobs,
            time: share,
        };
        let corpus = Corpus::of(target);
        let outcome = campaign.run(&corpus)?;
        for artifact in &outcome.failures {
            failed = true;
            failure::report(&engine, target, artifact)?;
        }
        let kept = corpus.merge(&engine)?;
        lines.push(format!(
            "{target:<14} {:>12} executions {:>7} edges {kept:>5} inputs kept {:>3} failures",
            outcome.executions,
            outcome.edges,
            outcome.failures.len()
        ));
    }
    println!("{}", lines.join("\n"));
    println!("fuzz: {}", if failed { "FAILED" } else { "ok" });
    Ok(ExitCode::from(u8::from(failed)))
}

/// The inputs that the repository keeps of a target; none if it has no corpus yet.
///
/// # Errors
/// They cannot be read.
pub fn inputs(target: &str) -> Result<Vec<Vec<u8>>> {
    let kept = Corpus::of(target).kept;
    if !kept.is_dir() {
        return Ok(Vec::new());
    }
    let read =
        |path: &PathBuf| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    corpus::list(&kept)?.iter().map(read).collect()
}

/// Where inputs of a target are kept that failed.
pub fn failures(target: &str) -> PathBuf {
    corpus::folder_of(corpus::FAILURES, target)
}

/// The wanted targets: each has a folder in the corpus.
fn targets(args: &FuzzArgs) -> Result<Vec<String>> {
    let all = corpus::targets()?;
    if args.target.is_empty() {
        return Ok(all);
    }
    if let Some(unknown) = args.target.iter().find(|target| !all.contains(target)) {
        bail!("there is no target `{unknown}`; there are {}", names(&all));
    }
    Ok(args.target.clone())
}

fn names(targets: &[String]) -> String {
    targets.join(", ")
}

/// Shows what is in an input, and runs it.
fn replay(target: &str, input: &Path) -> Result<ExitCode> {
    let status = engine::replayer()?.arg(target).arg(input).status()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}
