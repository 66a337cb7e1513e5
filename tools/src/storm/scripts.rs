//! The part of `sandglass storm --policies` that runs on the host: hostile scripts for the state machines of policies.
//!
//! A policy takes part by its file in `user/policies/hostile/src/scripts`. Half of the scripts are random, the others
//! are made from inputs that the fuzzing engine has found to reach more (`fuzz/corpus/NAME`).

use std::fs;

use anyhow::{Context, Result};
use sandglass_hostile::storm::{self, Finding, Outcome};
use sandglass_hostile::{Script, SCRIPTS};

use crate::fuzz;
use crate::side_by_side;

/// Those that are wanted, by name.
pub fn named(is_wanted: impl Fn(&str) -> bool) -> Vec<&'static Script> {
    let scripts = SCRIPTS.iter();
    scripts.filter(|script| is_wanted(script.name)).collect()
}

/// The names of all.
pub fn names() -> String {
    let names: Vec<&str> = SCRIPTS.iter().map(|script| script.name).collect();
    names.join(", ")
}

/// Plays scripts of each from `seed` on, for `steps` steps, and prints what came of it; whether something was found.
///
/// # Errors
/// A corpus cannot be read, or what was found not be written.
pub fn storm(scripts: &[&'static Script], seed: u64, steps: u64) -> Result<bool> {
    if steps == 0 {
        return Ok(false);
    }
    let play = |script: &&'static Script| {
        let corpus = fuzz::inputs(script.name)?;
        Ok(storm::run(script, &corpus, seed, steps))
    };
    let outcomes = side_by_side::run(scripts, play, |_, _| {})?;
    let mut failed = false;
    for (script, outcome) in scripts.iter().zip(&outcomes) {
        for finding in &outcome.findings {
            println!("{}", report(script, finding)?);
        }
        println!("{}", summary(script, outcome));
        failed |= !outcome.findings.is_empty();
    }
    Ok(failed)
}

/// Keeps a script that broke a promise; returns what is said about it.
fn report(script: &Script, finding: &Finding) -> Result<String> {
    let folder = fuzz::failures(script.name);
    fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let path = folder.join(format!("seed-{}", finding.seed));
    fs::write(&path, &finding.bytes).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(format!(
        "{}, on the host, seed {}, after {} steps: {}\n    to see it: ./sandglass fuzz --target {} --input {}",
        script.name,
        finding.seed,
        finding.after,
        finding.message,
        script.name,
        path.display()
    ))
}

/// How much was done, and which situations came about how often.
fn summary(script: &Script, outcome: &Outcome) -> String {
    let seen = script.situations.iter().map(|situation| {
        let times = outcome.seen.get(situation).copied().unwrap_or(0);
        format!("\n{times:>12} {situation}")
    });
    format!(
        "{}, on the host: {} steps in {} scripts, {} findings; {} of {} situations occurred{}",
        script.name,
        outcome.steps,
        outcome.scripts,
        outcome.findings.len(),
        script.situations.len() - outcome.unseen(script).len(),
        script.situations.len(),
        seen.collect::<String>()
    )
}
