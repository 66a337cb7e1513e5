//! What became of the mutants, part by part.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::judge::Verdict;
use super::mutant::Mutant;
use super::tree::{part_of, Kernel, Source, Viability};

/// A mutant as the score knows it.
struct Entry {
    name: String,
    /// In its file.
    line: usize,
    /// The part of the kernel that its file belongs to.
    part: &'static str,
}

/// Verdicts so far.
pub struct Score {
    entries: BTreeMap<u32, Entry>,
    unviable: BTreeSet<u32>,
    verdicts: BTreeMap<u32, Verdict>,
    /// Names of mutants that need not be caught, with the arguments.
    argued: BTreeMap<String, String>,
}

/// A line of the table.
#[derive(Default, Clone, Copy)]
struct Counts {
    generated: usize,
    unviable: usize,
    caught: usize,
    hung: usize,
    survived: usize,
    argued: usize,
}

impl Score {
    pub(super) fn new(
        kernel: &Kernel,
        argued: BTreeMap<String, String>,
        viability: &Viability,
    ) -> Self {
        let entry = |(source, id, mutant): (&Source, u32, &Mutant)| {
            let entry = Entry {
                name: mutant.name.clone(),
                line: mutant.line,
                part: part_of(&source.path).unwrap_or_default(),
            };
            (id, entry)
        };
        Self {
            entries: kernel.mutants().map(entry).collect(),
            unviable: viability.unviable.clone(),
            verdicts: BTreeMap::new(),
            argued,
        }
    }

    pub(super) fn add(&mut self, id: u32, verdict: Verdict) {
        self.verdicts.insert(id, verdict);
    }

    pub(super) fn add_unviable(&mut self, id: u32) {
        self.unviable.insert(id);
    }

    /// Whether there is an argument why no test need catch the mutant.
    pub(super) fn is_argued(&self, id: u32) -> bool {
        self.entries
            .get(&id)
            .is_some_and(|entry| self.argued.contains_key(&entry.name))
    }

    /// What must be mended about a mutant of this verdict.
    pub(super) fn finding(&self, id: u32, verdict: &Verdict) -> Option<String> {
        let Entry { name, line, .. } = self.entries.get(&id)?;
        let argued = self.argued.contains_key(name);
        match verdict {
            Verdict::Caught(by) | Verdict::Hung(by) if argued => {
                Some(format!("argued, but caught by {by}: {name}"))
            }
            Verdict::Survived if !argued => Some(format!("survived (line {line}): {name}")),
            Verdict::Unreached if !argued => Some(format!("unreached (line {line}): {name}")),
            _ => None,
        }
    }

    /// What must be mended: survivors without an argument, and arguments about nothing.
    pub fn findings(&self) -> Vec<String> {
        let judged = self.verdicts.iter();
        let mut findings: Vec<String> = judged
            .filter_map(|(&id, verdict)| self.finding(id, verdict))
            .collect();
        let entries = self.entries.iter();
        let viable: BTreeSet<&str> = entries
            .filter(|(id, _)| !self.unviable.contains(id))
            .map(|(_, entry)| entry.name.as_str())
            .collect();
        let gone = self
            .argued
            .keys()
            .filter(|name| !viable.contains(name.as_str()));
        findings.extend(gone.map(|name| format!("argued, but no such mutant compiles: {name}")));
        findings
    }

    fn counts(&self) -> BTreeMap<&'static str, Counts> {
        let mut table = BTreeMap::new();
        for (id, entry) in &self.entries {
            let counts: &mut Counts = table.entry(entry.part).or_default();
            counts.generated += 1;
            counts.unviable += usize::from(self.unviable.contains(id));
            match self.verdicts.get(id) {
                Some(Verdict::Caught(_)) => counts.caught += 1,
                Some(Verdict::Hung(_)) => counts.hung += 1,
                Some(Verdict::Survived | Verdict::Unreached) => {
                    counts.survived += 1;
                    counts.argued += usize::from(self.argued.contains_key(&entry.name));
                }
                None => {}
            }
        }
        table
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<15}  generated  unviable  judged  caught  (hung)  survived  (argued)  score",
            "part"
        )?;
        let mut sum = Counts::default();
        for (part, counts) in self.counts() {
            counts.write(part, f)?;
            sum.add(counts);
        }
        sum.write("all", f)
    }
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.generated += other.generated;
        self.unviable += other.unviable;
        self.caught += other.caught;
        self.hung += other.hung;
        self.survived += other.survived;
        self.argued += other.argued;
    }

    fn write(self, part: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let caught = self.caught + self.hung;
        let judged = caught + self.survived;
        let score = 100.0 * caught as f64 / judged.max(1) as f64;
        writeln!(
            f,
            "{part:<15}  {:>9}  {:>8}  {judged:>6}  {caught:>6}  {:>6}  {:>8}  {:>8}  {score:>4.1}%",
            self.generated, self.unviable, self.hung, self.survived, self.argued
        )
    }
}
