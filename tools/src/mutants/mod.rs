//! `sandglass mutants`: do the tests notice when the kernel is changed?
//!
//! Small changes of the kernel's policy, [mutants](mutant), are [found](enumerate) and built into
//! one kernel, each with a [switch](schema), in a [scratch workspace](tree). The kernel's tests are
//! run with one mutant on at a time, and must [fail](judge). A mutant that no test catches needs an
//! [argument](survivors).

mod enumerate;
mod judge;
mod mutant;
mod replacements;
mod schema;
mod score;
mod survivors;
mod tree;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::ExitCode;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::cli::MutantsArgs;
use crate::workspace;

use judge::{Judge, Verdict};
use mutant::Mutant;
pub use score::Score;
use tree::{Kernel, Tree, Viability};

/// Mutants in the sample that `sandglass test` judges, and the seed that draws it.
pub const SAMPLE: usize = 100;
pub const SEED: u64 = 1;
/// Of so many times as many mutants as are to be judged some do not compile, or cannot be switched. The others
/// are not built.
const SPARE: usize = 2;

/// Which mutants are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    All,
    /// `count` of those that can be switched, drawn by `seed`.
    Sample {
        count: usize,
        seed: u64,
    },
}

impl Choice {
    /// What `sandglass test` judges.
    pub const SAMPLE: Self = Self::Sample {
        count: SAMPLE,
        seed: SEED,
    };
}

/// `sandglass mutants`.
pub fn run(args: &MutantsArgs) -> Result<ExitCode> {
    if args.list {
        let kernel = Kernel::read()?;
        let wanted = |mutant: &Mutant| mutant.name.contains(&args.only);
        for (source, _, mutant) in kernel.mutants().filter(|(.., mutant)| wanted(mutant)) {
            println!("{}:{}: {}", source.path, mutant.line, mutant.name);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let choice = if args.all {
        Choice::All
    } else {
        Choice::Sample {
            count: args.sample,
            seed: args.seed,
        }
    };
    let all_well = report(choice, &args.only)?;
    Ok(ExitCode::from(u8::from(!all_well)))
}

/// Judges the mutants of `choice` whose names contain `only`, and prints the score. Returns whether
/// all that survive have an argument.
///
/// # Errors
/// As for [`judge`].
pub fn report(choice: Choice, only: &str) -> Result<bool> {
    let score = judge(choice, only)?;
    print!("{score}");
    let findings = score.findings();
    for finding in &findings {
        println!("{finding}");
    }
    Ok(findings.is_empty())
}

/// Judges the mutants of `choice` whose names contain `only`.
///
/// # Errors
/// Something cannot be built or run, or a test fails without a mutant.
pub fn judge(choice: Choice, only: &str) -> Result<Score> {
    let root = workspace::root();
    let folder = workspace::target_dir().join("mutants");
    fs::create_dir_all(&folder).context("cannot make a folder for mutants")?;
    let lock = File::create(folder.join("lock")).context("cannot lock the folder for mutants")?;
    lock.lock().context("cannot lock the folder for mutants")?;

    let kernel = Kernel::read()?;
    let argued = fs::read_to_string(root.join(survivors::PATH))
        .with_context(|| format!("cannot read {}", survivors::PATH))?;
    let argued = survivors::parse(&argued)?;
    let tree = Tree::copy("switched")?;
    let absent = match choice {
        Choice::All => BTreeSet::new(),
        Choice::Sample { count, seed } => {
            not_drawn(&kernel, only, count.saturating_mul(SPARE), seed)
        }
    };
    let viability = settle(&kernel, &tree, &absent)?;
    eprintln!("building the tests with the mutants");
    let suites = tree.build_tests()?;
    let progress = spinner("running the tests without a mutant");
    let judge = Judge::new(&suites, &folder, &|| progress.inc(1))?;
    progress.finish_and_clear();

    let tried = Viability {
        unviable: viability.unviable.difference(&absent).copied().collect(),
        constants: viability.constants.clone(),
    };
    let mut score = Score::new(&kernel, argued, &tried);
    let mut switched: Vec<u32> = Vec::new();
    let mut alone: Vec<u32> = Vec::new();
    for (source, id, mutant) in kernel.mutants() {
        if viability.unviable.contains(&id) || !mutant.name.contains(only) {
            continue;
        }
        match viability.is_switchable(source, mutant) {
            true => switched.push(id),
            false => alone.push(id),
        }
    }
    if let Choice::Sample { count, seed } = choice {
        switched = draw(&kernel, &switched, count, seed);
        alone.clear();
        // Nothing takes as long as a mutant that no test catches: those that are known to survive
        // are left to the whole run.
        let is_argued = |id: &u32| score.is_argued(*id);
        let (argued, others): (Vec<u32>, Vec<u32>) = switched.into_iter().partition(is_argued);
        for id in argued {
            score.add(id, Verdict::Survived);
        }
        switched = others;
    }
    let total = switched.len() + alone.len();
    let progress = bar(total, "judging mutants");
    let judged = judge.judge(&switched, &|id, verdict| {
        progress.inc(1);
        if let Some(finding) = score.finding(id, verdict) {
            progress.suspend(|| eprintln!("{finding}"));
        }
    })?;
    for (id, verdict) in judged {
        score.add(id, verdict);
    }
    if !alone.is_empty() {
        judge_alone(&kernel, &alone, &judge, &folder, &mut score, &progress)?;
    }
    progress.finish_and_clear();
    Ok(score)
}

/// Judges mutants that cannot be switched, each in a kernel of its own.
fn judge_alone(
    kernel: &Kernel,
    ids: &[u32],
    judge: &Judge,
    folder: &std::path::Path,
    score: &mut Score,
    progress: &ProgressBar,
) -> Result<()> {
    let tree = Tree::copy("alone")?;
    tree.restore(kernel)?;
    for (source, id, mutant) in kernel.mutants() {
        if !ids.contains(&id) {
            continue;
        }
        tree.replace(&source.path, &schema::apply(&source.text, mutant))?;
        match tree.build_tests() {
            Ok(suites) => {
                let judge = judge.for_one(&suites, id, folder)?;
                for (id, verdict) in judge.judge(&[id], &|_, _| ())? {
                    score.add(id, verdict);
                }
            }
            Err(_) => score.add_unviable(id),
        }
        tree.replace(&source.path, &source.text)?;
        progress.inc(1);
    }
    Ok(())
}

/// All mutants, the first of which `seed` draws: by their names, so that a change elsewhere in the kernel
/// changes little of a sample.
fn in_order(kernel: &Kernel, seed: u64) -> Vec<u32> {
    let mut drawn: Vec<(u64, u32)> = kernel
        .mutants()
        .map(|(_, id, mutant)| (hash(&(seed, &mutant.name)), id))
        .collect();
    drawn.sort_unstable();
    drawn.into_iter().map(|(_, id)| id).collect()
}

/// All mutants but the first `count` that `seed` draws of those whose names contain `only`.
fn not_drawn(kernel: &Kernel, only: &str, count: usize, seed: u64) -> BTreeSet<u32> {
    let wanted: BTreeSet<u32> = kernel
        .mutants()
        .filter(|(.., mutant)| mutant.name.contains(only))
        .map(|(_, id, _)| id)
        .collect();
    let order = in_order(kernel, seed).into_iter();
    let drawn: BTreeSet<u32> = order.filter(|id| wanted.contains(id)).take(count).collect();
    let all = kernel.mutants().map(|(_, id, _)| id);
    all.filter(|id| !drawn.contains(id)).collect()
}

/// `count` of the mutants `ids`, drawn by `seed`.
fn draw(kernel: &Kernel, ids: &[u32], count: usize, seed: u64) -> Vec<u32> {
    let candidates: BTreeSet<u32> = ids.iter().copied().collect();
    let drawn = in_order(kernel, seed).into_iter();
    let mut ids: Vec<u32> = drawn
        .filter(|id| candidates.contains(id))
        .take(count)
        .collect();
    ids.sort_unstable();
    ids
}

/// What is known of a kernel's mutants, kept between runs.
#[derive(Serialize, Deserialize)]
struct Known {
    kernel: u64,
    unviable: BTreeSet<u32>,
    constants: BTreeSet<String>,
}

/// Which mutants compile, of those that are not `absent`; found out once for each kernel and choice.
fn settle(kernel: &Kernel, tree: &Tree, absent: &BTreeSet<u32>) -> Result<Viability> {
    let path = workspace::target_dir().join("mutants/viability.json");
    let texts: Vec<&String> = kernel.sources.iter().map(|source| &source.text).collect();
    let fingerprint = hash(&(texts, absent));
    let known = fs::read_to_string(&path).ok();
    let known: Option<Known> = known.and_then(|text| serde_json::from_str(&text).ok());
    if let Some(known) = known.filter(|known| known.kernel == fingerprint) {
        let viability = Viability {
            unviable: known.unviable,
            constants: known.constants,
        };
        tree.mutate(kernel, &viability)?;
        return Ok(viability);
    }
    eprintln!("finding out which mutants compile");
    let mut viability = Viability {
        unviable: absent.clone(),
        ..Viability::default()
    };
    tree.settle(kernel, &mut viability, |round| eprintln!("  {round}"))?;
    let known = Known {
        kernel: fingerprint,
        unviable: viability.unviable.clone(),
        constants: viability.constants.clone(),
    };
    fs::write(&path, serde_json::to_string(&known)?)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(viability)
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn bar(length: usize, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(length as u64).with_message(what);
    let style = "{msg} {wide_bar} {pos}/{len} (still {eta})";
    bar.with_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    )
}

fn spinner(what: &'static str) -> ProgressBar {
    let style = "{spinner} {msg}: {pos}";
    ProgressBar::no_length().with_message(what).with_style(
        ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample of what is asked for by name has as much to choose from as one of all.
    #[test]
    fn a_sample_is_drawn_among_the_wanted() {
        let kernel = Kernel::read().unwrap();
        let of = |only: &str| -> BTreeSet<u32> {
            let named = kernel.mutants().filter(|(.., it)| it.name.contains(only));
            named.map(|(_, id, _)| id).collect()
        };
        let wanted = of("time");
        let absent = not_drawn(&kernel, "time", 20, SEED);
        let present: BTreeSet<u32> = of("").difference(&absent).copied().collect();
        assert_eq!(present.len(), 20.min(wanted.len()));
        assert!(present.is_subset(&wanted));
        assert_eq!(not_drawn(&kernel, "", usize::MAX, SEED), BTreeSet::new());
    }
}
