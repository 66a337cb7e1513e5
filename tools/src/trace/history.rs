//! A trace: the records of a run in their order, and what they say about threads and contexts.

use std::collections::BTreeMap;

use anyhow::{bail, Context, Result};
use sandglass_abi::trace::{Kind, Parameter, Tag};

use super::memory::Words;
use super::record::{Event, Mark, Object, Record};

/// What happened in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct History {
    /// In the order in which it happened.
    pub records: Vec<Record>,
    /// Records that were lost behind these: the logs were full.
    pub lost: u64,
    /// Ticks in a µs.
    pub per_us: u64,
    /// The least budget in ticks: twice the longest kernel path.
    pub least_budget: u64,
    names: BTreeMap<Object, String>,
    facts: BTreeMap<Object, Facts>,
}

/// What is described of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    pub deadline_us: Option<u64>,
    pub criticality: Option<u64>,
    pub passive: bool,
}

impl History {
    /// Puts the records of all logs, one of each core, into their order. What comes after the first record that was lost
    /// is left out and counted: its meaning is not known.
    ///
    /// # Errors
    /// There is none; or the kernel wrote what this tool does not know.
    pub fn of(logs: Vec<Vec<Words>>) -> Result<Self> {
        let sequence = |(words, _): &(Words, u8)| Tag::from_word(words[0]).sequence;
        let mut words: Vec<(Words, u8)> = logs
            .into_iter()
            .zip(0..)
            .flat_map(|(log, by)| since_start(log).into_iter().map(move |words| (words, by)))
            .collect();
        words.sort_unstable_by_key(sequence);
        let (Some(first), Some(last)) = (words.first().map(sequence), words.last().map(sequence))
        else {
            bail!("the trace is empty: the kernel recorded nothing");
        };
        let in_order = words
            .iter()
            .zip(first..)
            .take_while(|(words, expected)| sequence(words) == *expected)
            .count();
        let lost = u64::from(last - first) + 1 - in_order as u64;
        let records = words[..in_order]
            .iter()
            .map(|&(words, by)| Record::decode(words, by))
            .collect::<Result<Vec<_>>>()?;
        Self::of_records(records, lost)
    }

    /// A trace of these records.
    ///
    /// # Errors
    /// It does not begin with a start.
    pub fn of_records(records: Vec<Record>, lost: u64) -> Result<Self> {
        let start = records.iter().find_map(|record| match record.event {
            Event::Start {
                per_us,
                least_budget,
            } => Some((per_us, least_budget)),
            _ => None,
        });
        let (per_us, least_budget) = start
            .filter(|&(per_us, _)| per_us > 0)
            .context("the trace has no start: its first records are lost")?;
        let mut history = Self {
            records,
            lost,
            per_us,
            least_budget,
            names: BTreeMap::new(),
            facts: BTreeMap::new(),
        };
        history.learn();
        Ok(history)
    }

    /// Collects names and facts from the marks.
    fn learn(&mut self) {
        let mut names: BTreeMap<Object, Vec<u8>> = BTreeMap::new();
        for record in &self.records {
            let Event::Mark { subject, mark } = record.event else {
                continue;
            };
            match mark {
                Mark::Name { part, bytes } => {
                    let name = names.entry(subject).or_default();
                    name.truncate(usize::from(part) * bytes.len());
                    name.extend(bytes.iter().take_while(|&&byte| byte != 0));
                }
                Mark::Parameter { parameter, value } => {
                    let facts = self.facts.entry(subject).or_default();
                    match parameter {
                        Parameter::Deadline => facts.deadline_us = Some(value),
                        Parameter::Criticality => facts.criticality = Some(value),
                        Parameter::Passive => facts.passive = value != 0,
                    }
                }
                _ => {}
            }
        }
        let text = |name: Vec<u8>| String::from_utf8_lossy(&name).into_owned();
        self.names = names.into_iter().map(|(o, name)| (o, text(name))).collect();
    }

    /// The name of a thread or context, or its address; `idle` for none.
    pub fn name(&self, object: Object) -> String {
        match self.names.get(&object) {
            _ if object == 0 => "idle".to_owned(),
            Some(name) => name.clone(),
            None => format!("{object:#x}"),
        }
    }

    /// What is described of a thread.
    pub fn facts(&self, thread: Object) -> Facts {
        self.facts.get(&thread).copied().unwrap_or_default()
    }

    /// When the trace begins, ticks.
    pub fn begin(&self) -> u64 {
        self.records.first().map_or(0, |record| record.time)
    }

    /// The last time in the trace, ticks.
    pub fn end(&self) -> u64 {
        self.records
            .iter()
            .map(|record| record.time)
            .max()
            .unwrap_or(0)
    }

    /// `time`, in ticks, as ns since the trace began; of an earlier one 0.
    pub fn ns(&self, time: u64) -> u64 {
        self.duration_ns(time.saturating_sub(self.begin()))
    }

    /// `ticks` in ns.
    pub fn duration_ns(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1000 / u128::from(self.per_us)) as u64
    }

    /// `ticks` in µs, for people.
    pub fn us(&self, ticks: u64) -> f64 {
        ticks as f64 / self.per_us as f64
    }

    /// Leaves out what happened more than `us` µs after the beginning.
    pub fn cut(&mut self, us: u64) {
        let end = self.begin() + us.saturating_mul(self.per_us);
        self.records.retain(|record| record.time <= end);
    }

    /// The cores that anything is about, ascending.
    pub fn cores(&self) -> Vec<u8> {
        let mut cores: Vec<u8> = self.records.iter().map(|record| record.core).collect();
        cores.sort_unstable();
        cores.dedup();
        cores
    }
}

/// What a log has since its core began to record for the last time.
fn since_start(mut words: Vec<Words>) -> Vec<Words> {
    let is_start = |tag: Tag| tag.kind == Kind::Start as u8;
    let tags = words.iter().map(|words| Tag::from_word(words[0]));
    let start = tags
        .filter(|&tag| is_start(tag))
        .map(|tag| tag.sequence)
        .max();
    if let Some(start) = start {
        words.retain(|words| Tag::from_word(words[0]).sequence >= start);
    }
    words
}
