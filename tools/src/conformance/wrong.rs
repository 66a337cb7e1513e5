//! Kernels that break a rule each, on purpose: the conformance suite must notice every one, or, if the
//! rule says so, the storm of instructions.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Mutex};
use std::thread;
use std::time::Duration;

use anyhow::{bail, Context, Result};

use super::PACKAGE;
use crate::cores::Cores;
use crate::kernel::{self, KernelOptions};
use crate::program;
use crate::qemu::{self, Boot, End, Outcome};
use crate::storm;
use crate::test::lines::{self, Verdict};
use crate::test::suite::Config;
use crate::workspace;

/// Where the kernel names the rules, in the repository.
const RULES: &str = "kernel/src/wrong.rs";
/// QEMU runs at the same time.
const PARALLEL_RUNS: usize = 2;
/// Limit of a run, in seconds of the host's time. A check that hangs is ended by the suite itself,
/// in virtual time; only a kernel that stops altogether gets here.
const TIMEOUT: Duration = Duration::from_secs(120);
/// What the description of a rule begins with that the storm must notice.
const STORMS_RULE: &str = "storm:";
/// Instructions of the storm in which it must have noticed: no more than a short run has.
const STORM: storm::Extent = storm::Extent {
    calls: 0,
    instructions: 20_000,
};
/// Ends a run at the first check that fails.
const FAILURE: &str = " ... FAILED";

/// A rule that a kernel can break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// As the kernel names it, in the words of a test's name: `next_ip_kept`.
    pub name: String,
    /// What the wrong kernel does, after the section of the rule.
    pub about: String,
    /// Its number among the rules, from 1 on; 0 stands for a kernel that breaks none.
    pub position: usize,
}

impl Rule {
    /// The kernel that could break a rule, but does not: it shows that what the suite notices is
    /// the broken rule.
    fn none() -> Self {
        Self {
            name: "none".to_owned(),
            about: "no rule is broken".to_owned(),
            position: 0,
        }
    }

    /// Whether the storm of instructions must notice, not the conformance suite.
    fn is_storms(&self) -> bool {
        self.about.starts_with(STORMS_RULE)
    }
}

/// A root task that must notice something.
struct Judge {
    root_task: PathBuf,
    config: Config,
    extra_args: Vec<OsString>,
}

impl Judge {
    fn of_package(name: &str, extra_args: Vec<OsString>) -> Result<Self> {
        Ok(Self {
            root_task: program::build(name)?,
            config: Config::of_package(name)?,
            extra_args,
        })
    }

    /// Boots a kernel for it; without `all`, until the first check fails.
    fn boot(&self, kernel: &Path, all: bool) -> Result<Outcome> {
        qemu::run(&Boot {
            until: (!all).then(|| FAILURE.to_owned()),
            timeout: Some(TIMEOUT),
            extra_args: self.extra_args.clone(),
            ..self.config.boot(kernel, Cores::Single, &self.root_task)
        })
    }
}

/// What the suite said of a wrong kernel.
#[derive(Debug)]
pub struct Finding {
    pub rule: Rule,
    /// The checks that failed, or why there is no telling. A run that ends at the first has one.
    pub caught_by: Result<Vec<String>>,
}

impl Finding {
    /// Whether it is as it should be: a wrong kernel is caught, the other is not.
    pub fn verdict(&self) -> Result<String, String> {
        match &self.caught_by {
            Err(error) => Err(format!("{error:#}")),
            Ok(checks) => match (self.rule.position, checks.as_slice()) {
                (0, []) => Ok("every check passes".to_owned()),
                (0, failed) => Err(format!(
                    "the kernel that breaks no rule fails {}",
                    failed.join(", ")
                )),
                (_, []) => Err(format!("no check notices it: {}", self.rule.about)),
                (_, failed) => Ok(format!("caught by {}", failed.join(", "))),
            },
        }
    }
}

/// The rules that the kernel names, with one that is none at the head.
///
/// # Errors
/// The kernel's source is not as expected.
pub fn rules() -> Result<Vec<Rule>> {
    let path = workspace::root().join(RULES);
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let rules = parse(&text).with_context(|| format!("in {}", path.display()))?;
    Ok([Rule::none()].into_iter().chain(rules).collect())
}

/// The variants of `enum Rule`, with their documentation.
fn parse(text: &str) -> Result<Vec<Rule>> {
    let file = syn::parse_file(text)?;
    let item = file.items.iter().find_map(|item| match item {
        syn::Item::Enum(item) if item.ident == "Rule" => Some(item),
        _ => None,
    });
    let variants = &item.context("there is no `enum Rule`")?.variants;
    Ok(variants
        .iter()
        .zip(1..)
        .map(|(variant, position)| Rule {
            name: snake_case(&variant.ident.to_string()),
            about: documentation(&variant.attrs),
            position,
        })
        .collect())
}

/// `NextIpKept` as `next_ip_kept`.
fn snake_case(name: &str) -> String {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.extend(c.to_lowercase());
    }
    words
}

/// The text of documentation comments.
fn documentation(attributes: &[syn::Attribute]) -> String {
    let lines: Vec<String> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(syn::MetaNameValue {
                value:
                    syn::Expr::Lit(syn::ExprLit {
                        lit: syn::Lit::Str(text),
                        ..
                    }),
                ..
            }) => Some(text.value().trim().to_owned()),
            _ => None,
        })
        .collect();
    lines.join(" ")
}

/// Builds a kernel for each of `rules` and runs the suite that must notice on it, and shows each finding to `see`
/// when it is there. With `all`, runs go on after the first check that fails.
///
/// # Errors
/// A suite does not build.
pub fn run(rules: Vec<Rule>, all: bool, mut see: impl FnMut(Finding)) -> Result<()> {
    let conformance = Judge::of_package(PACKAGE, Vec::new())?;
    let storm = Judge::of_package(storm::PACKAGE, STORM.options(storm::FIRST_SEED))?;
    let (kernels, built) = mpsc::channel::<(Rule, Result<PathBuf>)>();
    let built = Mutex::new(built);
    let (findings, found) = mpsc::channel::<Finding>();
    thread::scope(|scope| {
        // Kernels are built one after the other, while the last ones run.
        scope.spawn(move || {
            for rule in rules {
                let kernel = kernel::build(&KernelOptions::wrong(rule.position));
                if kernels.send((rule, kernel)).is_err() {
                    break;
                }
            }
        });
        for _ in 0..PARALLEL_RUNS {
            let (built, findings) = (&built, findings.clone());
            let (conformance, storm) = (&conformance, &storm);
            scope.spawn(move || loop {
                let next = built.lock().expect("no worker panics").recv();
                let Ok((rule, kernel)) = next else { break };
                let judge = if rule.is_storms() { storm } else { conformance };
                let caught_by = kernel.and_then(|kernel| failures(judge.boot(&kernel, all)?));
                if findings.send(Finding { rule, caught_by }).is_err() {
                    break;
                }
            });
        }
        drop(findings);
        for finding in found {
            see(finding);
        }
    });
    Ok(())
}

/// The checks that failed.
///
/// # Errors
/// None failed, and yet the run did not end well.
fn failures(outcome: Outcome) -> Result<Vec<String>> {
    let mut failed: Vec<String> = Vec::new();
    for line in outcome.console.lines() {
        if let Some((name, Verdict::Failed(_))) = lines::result(line) {
            failed.push(name.to_owned());
        }
    }
    let ended_well = match outcome.end {
        End::Guest(0) => outcome.console.lines().any(|l| lines::closing(l).is_some()),
        // The last line may lack its end.
        End::Until => {
            let cut = outcome.console.rsplit_once(FAILURE);
            if let (true, Some((before, _))) = (failed.is_empty(), cut) {
                let line = before.lines().last().unwrap_or_default();
                failed.push(line.trim_start_matches("test ").to_owned());
            }
            true
        }
        _ => false,
    };
    if failed.is_empty() && !ended_well {
        let last = outcome.console.lines().last().unwrap_or("nothing");
        bail!("no check fails, but the run does not end correctly, after: {last}");
    }
    Ok(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_are_the_variants_in_their_order() {
        let text = "/// List.\npub enum Rule {\n/// 01/1: one\n/// line.\nNextIpKept = 1,\nB }";
        let rules = parse(text).unwrap();
        assert_eq!(rules[0].name, "next_ip_kept");
        assert_eq!(rules[0].about, "01/1: one line.");
        assert_eq!((rules[1].name.as_str(), rules[1].position), ("b", 2));
    }

    #[test]
    fn the_first_failure_is_found_even_if_its_line_is_cut() {
        let outcome = |console: &str, end| Outcome {
            end,
            console: console.to_owned(),
        };
        let cut = outcome("test a ... ok\ntest 01/1/b ... FAILED", End::Until);
        assert_eq!(failures(cut).unwrap(), ["01/1/b"]);
        let cut = outcome("test 01/1/b ... FAILED: 1 i", End::Until);
        assert_eq!(failures(cut).unwrap(), ["01/1/b"]);
        let good = outcome("test a ... ok\n1 passed, 0 failed\n", End::Guest(0));
        assert!(failures(good).unwrap().is_empty());
        assert!(failures(outcome("test a ... ok\n", End::TimedOut)).is_err());
    }

    #[test]
    fn a_wrong_kernel_must_be_caught_and_a_right_one_not() {
        let finding = |position, caught: &[&str]| Finding {
            rule: Rule {
                position,
                ..Rule::none()
            },
            caught_by: Ok(caught.iter().map(|&name| name.to_owned()).collect()),
        };
        assert!(finding(0, &[]).verdict().is_ok());
        assert!(finding(0, &["a"]).verdict().is_err());
        assert!(finding(1, &[]).verdict().is_err());
        assert_eq!(finding(1, &["a"]).verdict().unwrap(), "caught by a");
    }
}
