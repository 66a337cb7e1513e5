//! `sandglass mutants`: do the tests notice when the kernel is changed?
//!
//! Small changes of the kernel's policy, [mutants](mutant), are [generated](generator) and built into
//! one kernel, each with a [switch](schema), in a [scratch workspace](tree). The kernel's tests are
//! run with one mutant on at a time, and must [fail](judge). A mutant that no test catches needs an
//! [argument](survivors).
//!
//! Other mutants are [written down](named) and have names: kernels that are wrong on purpose.

mod changed;
mod generator;
mod judge;
mod mutant;
pub mod named;
mod schema;
mod score;
mod survivors;
mod syntax;
mod tree;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use crate::cli::MutantsArgs;
use crate::workspace;

use judge::{Judge, Verdict};
use mutant::Mutant;
use named::{Catalogue, Named, Set};
use score::Score;
use tree::{Builds, Kernel, Source, Tree, Viability};

/// Mutants of changed files that are judged, at most: the test command is to take minutes.
const OF_CHANGED: usize = 40;
/// Size of a sample of all, and the seed that draws it.
pub const SAMPLE: usize = 150;
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
    /// The [named](named) ones that break a rule.
    Named,
    /// [`OF_CHANGED`] at most of those in files that are [`changed`].
    Changed,
}

/// What was found out.
pub struct Report {
    /// To be read.
    pub text: String,
    /// What must be mended.
    pub findings: Vec<String>,
}

impl From<Score> for Report {
    fn from(score: Score) -> Report {
        Report {
            text: score.to_string(),
            findings: score.findings(),
        }
    }
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
    let choice = match args.sample {
        _ if args.all => Choice::All,
        _ if args.named => Choice::Named,
        Some(count) => Choice::Sample {
            count,
            seed: args.seed,
        },
        None => Choice::Changed,
    };
    let all_well = print(choice, &args.only)?;
    Ok(ExitCode::from(u8::from(!all_well)))
}

/// Judges the mutants of `choice` whose names contain `only`, and prints the score. Returns whether
/// all that survive have an argument.
///
/// # Errors
/// As for [`report`].
pub fn print(choice: Choice, only: &str) -> Result<bool> {
    let Report { text, findings } = report(choice, only)?;
    print!("{text}");
    for finding in &findings {
        println!("{finding}");
    }
    Ok(findings.is_empty())
}

/// Judges the mutants of `choice` whose names contain `only`.
///
/// # Errors
/// Something cannot be built or run, or a test fails without a mutant.
pub fn report(choice: Choice, only: &str) -> Result<Report> {
    let folder = workspace::target_dir().join("mutants");
    fs::create_dir_all(&folder).context("cannot make a folder for mutants")?;
    let lock = File::create(folder.join("lock")).context("cannot lock the folder for mutants")?;
    lock.lock().context("cannot lock the folder for mutants")?;
    let named = || judge_named(only, &folder);
    let generated = |wanted: &dyn Fn(&Source) -> bool, sample| {
        judge(&Kernel::read()?, wanted, sample, only, &folder).map(Report::from)
    };
    match choice {
        Choice::All => generated(&|_| true, None),
        Choice::Sample { count, seed } => generated(&|_| true, Some((count, seed))),
        Choice::Named => named(),
        Choice::Changed => {
            let changed = changed::files(tree::KERNEL_SOURCE)?;
            if !changed.iter().any(|file| tree::is_generated_of(file)) {
                return Ok(Report {
                    text: "no file with generated mutants is changed\n".to_owned(),
                    findings: Vec::new(),
                });
            }
            let is_changed = |source: &Source| changed.contains(&source.path);
            generated(&is_changed, Some((OF_CHANGED, SEED)))
        }
    }
}

/// Judges the [named](named) mutants that break a rule by the tests on the host that they name.
fn judge_named(only: &str, folder: &Path) -> Result<Report> {
    let mutants = Catalogue::read(Set::Rules)?.mutants;
    let mutants: Vec<&Named> = mutants.iter().filter(|it| it.name.contains(only)).collect();
    let tree = named::tree(Set::Rules)?;
    eprintln!("building the tests with the named mutants");
    let suites = tree.build_tests(&[tree::CORES])?;
    let by = mutants.iter().filter_map(|mutant| {
        let test = mutant.on_host.as_ref()?;
        Some((mutant.number, format!("{}::{test}", tree::CORES.name)))
    });
    let by: Vec<(u32, String)> = by.collect();
    let by: Vec<(u32, &str)> = by.iter().map(|(id, test)| (*id, &**test)).collect();
    let named = |name: &str| by.iter().any(|(_, test)| judge::is_of(name, test));
    let progress = spinner("running the tests without a mutant");
    let judge = Judge::new(&suites, &named, folder, &|| progress.inc(1))?;
    progress.finish_and_clear();
    let progress = bar(by.len(), "judging mutants");
    let verdicts = judge.judge_by(&by, &|| progress.inc(1))?;
    progress.finish_and_clear();
    let mut report = Report {
        text: String::new(),
        findings: Vec::new(),
    };
    for mutant in mutants {
        let Named {
            name,
            breaks,
            on_host,
            ..
        } = mutant;
        let (Some(verdict), Some(test)) = (verdicts.get(&mutant.number), on_host) else {
            continue;
        };
        match verdict.by() {
            Some(by) => report.text += &format!("{name}: caught by {by}\n"),
            None => report
                .findings
                .push(format!("{name}: `{test}` does not notice it: {breaks}")),
        }
    }
    Ok(report)
}

/// Judges those of `kernel`'s mutants whose names contain `only` and whose files are `wanted`: all, or
/// a sample of so many, drawn by a seed.
fn judge(
    kernel: &Kernel,
    wanted: &dyn Fn(&Source) -> bool,
    sample: Option<(usize, u64)>,
    only: &str,
    folder: &Path,
) -> Result<Score> {
    let root = workspace::root();
    let wanted = |source: &Source, mutant: &Mutant| wanted(source) && mutant.name.contains(only);
    let argued = fs::read_to_string(root.join(survivors::PATH))
        .with_context(|| format!("cannot read {}", survivors::PATH))?;
    let argued = survivors::parse(&argued)?;
    let tree = Tree::copy("switched", Builds::Apart)?;
    let absent = match sample {
        None => BTreeSet::new(),
        Some((count, seed)) => not_drawn(kernel, &wanted, count.saturating_mul(SPARE), seed),
    };
    let viability = settle(kernel, &tree, &absent)?;
    eprintln!("building the tests with the mutants");
    let suites = tree.build_tests(tree::BUILDS)?;
    let progress = spinner("running the tests without a mutant");
    let judge = Judge::new(&suites, &|_| true, folder, &|| progress.inc(1))?;
    progress.finish_and_clear();

    let tried = Viability {
        unviable: viability.unviable.difference(&absent).copied().collect(),
        constants: viability.constants.clone(),
    };
    let mut score = Score::new(kernel, argued, &tried);
    let mut switched: Vec<u32> = Vec::new();
    let mut alone: Vec<u32> = Vec::new();
    for (source, id, mutant) in kernel.mutants() {
        if viability.unviable.contains(&id) || !wanted(source, mutant) {
            continue;
        }
        match viability.is_switchable(source, mutant) {
            true => switched.push(id),
            false => alone.push(id),
        }
    }
    if let Some((count, seed)) = sample {
        switched = draw(kernel, &switched, count, seed);
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
        judge_alone(kernel, &alone, &judge, folder, &mut score, &progress)?;
    }
    progress.finish_and_clear();
    Ok(score)
}

/// Judges mutants that cannot be switched, each in a kernel of its own.
fn judge_alone(
    kernel: &Kernel,
    ids: &[u32],
    judge: &Judge,
    folder: &Path,
    score: &mut Score,
    progress: &ProgressBar,
) -> Result<()> {
    let tree = Tree::copy("alone", Builds::Apart)?;
    tree.restore(kernel)?;
    for (source, id, mutant) in kernel.mutants() {
        if !ids.contains(&id) {
            continue;
        }
        tree.replace(&source.path, &schema::apply(&source.text, mutant))?;
        match tree.build_tests(tree::BUILDS) {
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

/// All mutants but the first `count` that `seed` draws of the `wanted` ones.
fn not_drawn(
    kernel: &Kernel,
    wanted: &dyn Fn(&Source, &Mutant) -> bool,
    count: usize,
    seed: u64,
) -> BTreeSet<u32> {
    let wanted: BTreeSet<u32> = kernel
        .mutants()
        .filter(|(source, _, mutant)| wanted(source, mutant))
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
    use mutant::{Change, Found};

    /// A kernel of two files with ten mutants each, with their lines as numbers.
    fn kernel() -> Kernel {
        let mutant = |path: &str, line: usize| Mutant {
            name: format!("{path}: {line}"),
            line,
            change: Change::Body {
                body: 0..0,
                value: String::new(),
            },
            is_switchable: true,
            const_fn: None,
        };
        let source = |path: &str, first| Source {
            path: path.to_owned(),
            text: String::new(),
            found: Found {
                mutants: (0..10).map(|line| mutant(path, line)).collect(),
                const_fns: Vec::new(),
            },
            first,
        };
        Kernel {
            sources: vec![source("a.rs", 0), source("b.rs", 10)],
        }
    }

    /// A sample of what is asked for has as much to choose from as one of all.
    #[test]
    fn a_sample_is_drawn_among_the_wanted() {
        let kernel = kernel();
        let all: BTreeSet<u32> = kernel.mutants().map(|(_, id, _)| id).collect();
        let of_b = |source: &Source, _: &Mutant| source.path == "b.rs";
        let absent = not_drawn(&kernel, &of_b, 4, SEED);
        let present: Vec<u32> = all.difference(&absent).copied().collect();
        assert_eq!(present.len(), 4);
        assert!(
            present.iter().all(|id| (10..20).contains(id)),
            "{present:?}"
        );
        assert_eq!(
            not_drawn(&kernel, &|_, _| true, usize::MAX, SEED),
            BTreeSet::new()
        );
    }
}
