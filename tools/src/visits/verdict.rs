//! What was seen of visits of the kernel, beside what was computed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};
use sandglass_binary::limits::{Limit, Limits};
use sandglass_binary::model::{INSTRUCTIONS, KNOWN};

use super::{RUN, SEEN};
use crate::arch::Arch;
use crate::workspace;

/// Limits of ways, and recorded bounds.
pub const LIMITS: &str = "assurance/wcet/limits.toml";
/// The record of bounds in instructions.
const fn bounds_file(arch: Arch) -> &'static str {
    match arch {
        Arch::X86_64 => "assurance/wcet/bounds.toml",
        Arch::Aarch64 => "assurance/wcet/aarch64.toml",
    }
}

/// Whose bounds apply: every path, with capability spaces of any depth.
const APPLIES: [&str; 2] = ["open", "64"];

/// A file of the repository.
///
/// # Errors
/// It cannot be read.
pub fn read(path: &str) -> Result<String> {
    let path = workspace::root().join(path);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// From where to where the kernel ran without a check for interrupts: the kind of the entry, and how the stretch began
/// and ended.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    kind: String,
    from: String,
    to: String,
}

/// What cycles were counted of: a processor, an open or a closed system, a stretch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cycles {
    model: String,
    system: String,
    stretch: Stretch,
}

/// The most of something, and the machine on which it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Most {
    number: u64,
    run: String,
}

/// The most that was seen, of all machines.
#[derive(Debug, Default)]
pub struct Seen {
    machines: usize,
    stretches: BTreeMap<Stretch, Most>,
    /// In cycles.
    cycles: BTreeMap<Cycles, Most>,
    /// Of each limit, where the stretch began at a check for interrupts and where not.
    calls: BTreeMap<(usize, bool), Most>,
}

/// How a stretch begins that begins at a check for interrupts.
const POINT: &str = "point";

impl Seen {
    /// What the files in a folder say of machines of an architecture.
    ///
    /// # Errors
    /// They cannot be read, or are not of this version's plugin.
    pub fn gather(folder: &Path, arch: Arch) -> Result<Self> {
        let mut seen = Self::default();
        let files =
            fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut paths = files
            .map(|file| Ok(file?.path()))
            .collect::<Result<Vec<_>>>()?;
        paths.sort();
        for path in paths
            .iter()
            .filter(|path| path.extension().is_some_and(|it| it == SEEN))
        {
            let text = |path: &Path| {
                fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
            };
            let run = text(&path.with_extension(RUN))?;
            let (of, run) = run.split_once('\n').unwrap_or_default();
            if of == arch.name() {
                seen.add(run, &text(path)?)
                    .with_context(|| path.display().to_string())?;
            }
        }
        Ok(seen)
    }

    /// Adds what was seen of the machine `run`. Of what has been written again, the last holds; the very last line may be
    /// half of one, since a machine may end at any time.
    fn add(&mut self, run: &str, text: &str) -> Result<()> {
        self.machines += usize::from(!text.is_empty());
        for line in text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
        {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["stretch", kind, from, to, number] => {
                    let [kind, from, to] = [kind, from, to].map(str::to_owned);
                    raise(
                        &mut self.stretches,
                        Stretch { kind, from, to },
                        number.parse()?,
                        run,
                    );
                }
                ["cycles", model, system, kind, from, to, number] => {
                    let [kind, from, to] = [kind, from, to].map(str::to_owned);
                    raise(
                        &mut self.cycles,
                        Cycles {
                            model: model.to_owned(),
                            system: system.to_owned(),
                            stretch: Stretch { kind, from, to },
                        },
                        number.parse()?,
                        run,
                    );
                }
                // For the analyser.
                ["executed", ..] => {}
                ["calls", from, limit, number] => {
                    let stretches = (limit.parse()?, from == POINT);
                    raise(&mut self.calls, stretches, number.parse()?, run)
                }
                _ => bail!(
                    "the line `{}` is none of a plugin of this version",
                    line.trim_end()
                ),
            }
        }
        Ok(())
    }

    /// How many machines the kernel was seen on.
    pub const fn machines(&self) -> usize {
        self.machines
    }

    /// The maxima, a line each.
    pub fn maxima(&self, expected: &Expected) -> String {
        let mut text = String::new();
        for (Stretch { kind, from, to }, Most { number, run }) in &self.stretches {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{number:>7}  {kind}, from {from} to {to} (on {run})");
        }
        for (cycles, Most { number, run }) in &self.cycles {
            let Cycles {
                model,
                system,
                stretch: Stretch { kind, from, to },
            } = cycles;
            let ratio = expected.cycles_of(cycles).map_or(String::new(), |bound| {
                format!(", {:.2} times that computed", bound as f64 / *number as f64)
            });
            let _ = writeln!(
                text,
                "{number:>7}  cycles on {model}, {system}: {kind}, from {from} to {to}{ratio} (on {run})"
            );
        }
        for (&(limit, after_check), Most { number, run }) in &self.calls {
            let calls = expected.limits.get(limit).map(Limit::name);
            let calls = calls.unwrap_or_default();
            let from = if after_check { "a check" } else { "an entry" };
            let _ = writeln!(
                text,
                "{number:>7}  calls of {calls}, from {from} on (on {run})"
            );
        }
        text
    }

    /// What exceeds what was computed, each as a message.
    pub fn findings(&self, expected: &Expected) -> Vec<String> {
        let mut findings = Vec::new();
        let file = bounds_file(expected.arch);
        for (Stretch { kind, from, to }, Most { number, run }) in &self.stretches {
            match expected.bounds.get(kind) {
                Some(bound) if number <= bound => {}
                Some(bound) => findings.push(format!(
                    "{kind}, from {from} to {to}: {number} instructions, and computed are at most {bound} ({file}); in the run \
                     of {run}. The analysis leaves out a way that the kernel goes: a bound of a loop, or a limit of \
                     {LIMITS}, is too small; or the bounds are not those of this kernel"
                )),
                None => findings.push(format!(
                    "{kind}: {file} has no bound of this entry, under [{}]",
                    APPLIES.join(".")
                )),
            }
        }
        for (cycles, Most { number, run }) in &self.cycles {
            if let Some(bound) = expected.cycles_of(cycles).filter(|bound| number > bound) {
                findings.push(exceeded_on(expected.arch, cycles, *number, bound, run));
            }
        }
        for (&(number, after_check), Most { number: count, run }) in &self.calls {
            let Some(limit) = expected.limits.get(number) else {
                findings.push(format!(
                    "{LIMITS} has no limit {number}: it was changed while tests ran"
                ));
                continue;
            };
            let most = match limit.after_check {
                Some(most) if after_check => most,
                _ => limit.at_most,
            };
            if *count > most {
                findings.push(exceeded(limit, *count, most, run));
            }
        }
        findings
    }
}

/// The message about a processor.
fn exceeded_on(arch: Arch, cycles: &Cycles, number: u64, bound: u64, run: &str) -> String {
    let Cycles {
        model,
        system,
        stretch: Stretch { kind, from, to },
    } = cycles;
    format!(
        "{kind}, from {from} to {to}: {number} cycles on {model}, and computed are at most {bound} ({}); in the run of {run}, of \
         {system} systems. The analysis of caches is wrong, or the bounds are not those of this kernel",
        cycles_file(arch, model)
    )
}

/// The message about a limit.
fn exceeded(limit: &Limit, count: u64, most: u64, run: &str) -> String {
    format!(
        "{}: {count} of these between two checks for interrupts, and there are at most {most} ({LIMITS}); in the run of {run}. The \
         limit's reason does not hold: {}",
        limit.name(),
        limit.why
    )
}

fn raise<K: Ord>(all: &mut BTreeMap<K, Most>, key: K, number: u64, run: &str) {
    let most = Most {
        number,
        run: run.to_owned(),
    };
    let known = all.entry(key).or_insert_with(|| most.clone());
    if number > known.number {
        *known = most;
    }
}

/// What was computed.
#[derive(Debug)]
pub struct Expected {
    arch: Arch,
    /// Of each entry, in instructions.
    bounds: BTreeMap<String, u64>,
    limits: Vec<Limit>,
    /// Of each processor that has a name: system, levels, entry, in cycles.
    cycles: BTreeMap<String, Recorded>,
}

/// System, levels, entry: a bound.
type Recorded = BTreeMap<String, BTreeMap<String, BTreeMap<String, u64>>>;

/// What is counted, and the file that records the bounds of the kernel for `arch`: of instructions, and on each processor
/// that has a name.
pub fn recorded(arch: Arch) -> Vec<(&'static str, String)> {
    let processors = KNOWN
        .iter()
        .map(|&(model, _)| (model, cycles_file(arch, model)));
    [(INSTRUCTIONS, bounds_file(arch).to_owned())]
        .into_iter()
        .chain(processors)
        .collect()
}

/// Computed bounds on a processor.
fn cycles_file(arch: Arch, model: &str) -> String {
    match arch {
        Arch::X86_64 => format!("assurance/wcet/{model}.toml"),
        Arch::Aarch64 => format!("assurance/wcet/aarch64-{model}.toml"),
    }
}

impl Expected {
    /// What the repository says of the kernel for an architecture.
    ///
    /// # Errors
    /// Its files cannot be read, or have no bounds.
    pub fn recorded(arch: Arch) -> Result<Self> {
        let file = bounds_file(arch);
        Ok(Self {
            arch,
            bounds: bounds(&read(file)?).context(file)?,
            limits: Limits::parse(&read(LIMITS)?)?.limit,
            cycles: KNOWN
                .iter()
                .map(|&(model, _)| {
                    let file = cycles_file(arch, model);
                    let recorded = toml::from_str(&read(&file)?).context(file)?;
                    Ok((model.to_owned(), recorded))
                })
                .collect::<Result<_>>()?,
        })
    }

    /// What was computed of a stretch, through the deepest spaces.
    fn cycles_of(&self, of: &Cycles) -> Option<u64> {
        let levels = self
            .cycles
            .get(&of.model)?
            .get(&of.system)?
            .get(APPLIES[1])?;
        levels.get(&of.stretch.kind).copied()
    }
}

/// The bounds that apply.
fn bounds(text: &str) -> Result<BTreeMap<String, u64>> {
    let mut value = toml::Value::Table(text.parse()?);
    for key in APPLIES {
        let table = value.as_table_mut().and_then(|table| table.remove(key));
        value = table.with_context(|| format!("there is no [{}]", APPLIES.join(".")))?;
    }
    let table = value.as_table().context("not a table")?;
    let numbers = table.iter().filter_map(|(entry, bound)| {
        let bound = bound.as_integer()?.try_into().ok()?;
        Some((entry.clone(), bound))
    });
    Ok(numbers.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEEN: &str = "stretch system_call entry exit 70\nstretch system_call entry exit 90\ncalls entry 0 1\nstretch vector entry idle 40\ncalls entry 0 2\ncalls point 0 3\n";

    fn expected(system_call: u64, at_most: u64) -> Expected {
        let text = format!(
            "[[limit]]\nat_most = {at_most}\nafter_check = 3\ncalls = [\"a -> b\"]\nwhy = \"It is forbidden.\"\n"
        );
        Expected {
            arch: Arch::X86_64,
            bounds: BTreeMap::from([("system_call".into(), system_call), ("vector".into(), 40)]),
            limits: Limits::parse(&text).unwrap().limit,
            cycles: BTreeMap::from([(
                "m".into(),
                toml::from_str("[open.64]\nvector = 50\n[closed.64]\nvector = 40\n").unwrap(),
            )]),
        }
    }

    fn findings(expected: &Expected) -> Vec<String> {
        let mut seen = Seen::default();
        seen.add(
            "one",
            "stretch system_call entry exit 20\ncalls entry 0 1\n",
        )
        .unwrap();
        seen.add("two", SEEN).unwrap();
        assert_eq!(seen.machines(), 2);
        seen.findings(expected)
    }

    #[test]
    fn what_is_within_its_bounds_is_no_finding() {
        assert!(findings(&expected(90, 2)).is_empty());
    }

    #[test]
    fn a_bound_that_is_too_small_is_found_with_entry_count_and_run() {
        let found = findings(&expected(89, 2));
        assert_eq!(found.len(), 1, "{found:?}");
        for part in [
            "system_call, from entry to exit",
            "90 instructions",
            "at most 89",
            "in the run of two",
        ] {
            assert!(found[0].contains(part), "{}", found[0]);
        }
    }

    #[test]
    fn behind_a_check_for_interrupts_a_limit_may_be_another() {
        let mut expected = expected(90, 2);
        expected.limits[0].after_check = Some(2);
        let found = findings(&expected);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].contains("a -> b: 3 of these") && found[0].contains("at most 2"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn a_limit_that_is_too_small_is_found_with_its_reason_and_run() {
        let found = findings(&expected(90, 1));
        assert_eq!(found.len(), 1, "{found:?}");
        for part in [
            "a -> b: 2 of these",
            "at most 1",
            "in the run of two",
            "It is forbidden.",
        ] {
            assert!(found[0].contains(part), "{}", found[0]);
        }
    }

    #[test]
    fn cycles_are_compared_with_those_of_the_processor_and_of_the_kind_of_system() {
        let findings = |text: &str| {
            let mut seen = Seen::default();
            seen.add("one", text).unwrap();
            seen.findings(&expected(90, 2))
        };
        let within = "cycles m open vector entry exit 50\ncycles m closed vector entry exit 40\n\
                      cycles other open vector entry exit 1000\n";
        assert!(findings(within).is_empty());
        let found =
            findings("cycles m open vector entry exit 41\ncycles m closed vector entry exit 41\n");
        assert_eq!(found.len(), 1, "{found:?}");
        for part in [
            "41 cycles on m",
            "at most 40",
            "assurance/wcet/m.toml",
            "of one, of closed systems",
        ] {
            assert!(found[0].contains(part), "{}", found[0]);
        }
    }

    #[test]
    fn an_entry_without_a_bound_is_found() {
        let mut expected = expected(90, 2);
        expected.bounds.remove("vector");
        let found = findings(&expected);
        assert!(
            found[0].contains("vector") && found[0].contains("[open.64]"),
            "{found:?}"
        );
    }

    #[test]
    fn a_machine_that_ends_in_the_middle_of_a_line_has_said_what_it_wrote_before() {
        let mut seen = Seen::default();
        seen.add(
            "one",
            "stretch vector entry exit 30\nstretch vector entry exit 4",
        )
        .unwrap();
        let text = seen.maxima(&expected(90, 2));
        assert!(text.contains(" 30  vector"), "{text}");
        assert!(seen.add("one", "stretch vector\n").is_err());
    }

    #[test]
    fn the_bounds_of_the_deepest_spaces_apply() {
        let text = "[open.8]\nsystem_call = 1\n[open.64]\nsystem_call = 2\nvector = 3\n";
        let bounds = bounds(text).unwrap();
        assert_eq!(
            bounds,
            BTreeMap::from([("system_call".into(), 2), ("vector".into(), 3)])
        );
        let error = super::bounds("[open.8]\n").unwrap_err();
        assert!(error.to_string().contains("no [open.64]"), "{error}");
    }
}
