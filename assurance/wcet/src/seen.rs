//! Visits of the kernel that the emulator's plugin has seen, beside what is computed of the same paths: what a model of a
//! processor adds, apart from paths that nobody has driven.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;

use anyhow::{bail, Context, Result};

use crate::kernel::{Case, Entry, Kernel, System};

/// The dearest visit of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Visit {
    pub cycles: u64,
    /// How often each instruction was executed.
    pub executed: Rc<BTreeMap<u64, u64>>,
}

/// Kind of system, kind of entry, beginning and end: the dearest visit.
pub type Seen = BTreeMap<[String; 4], Visit>;

/// What a file of the plugin says of a processor: `cycles` lines, each with an `executed` line behind it.
///
/// # Errors
/// It is no such file.
pub fn read(text: &str, model: &str) -> Result<Seen> {
    let mut seen = Seen::new();
    let mut cycles: Option<([String; 4], u64)> = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["cycles", name, system, kind, from, to, number] if name == model => {
                let key = [system, kind, from, to].map(str::to_owned);
                cycles = Some((key, number.parse().context("cycles")?));
            }
            ["executed", ..] => {
                let Some((key, cycles)) = cycles.take() else {
                    continue;
                };
                let executed = Rc::new(counts(&words[1..])?);
                let known = seen.get(&key).map_or(0, |visit| visit.cycles);
                if cycles > known {
                    seen.insert(key, Visit { cycles, executed });
                }
            }
            _ => {}
        }
    }
    if seen.is_empty() {
        bail!("no visit has cycles of {model}: set SANDGLASS_VISITS_MODELS for the run");
    }
    Ok(seen)
}

/// `ADDRESS:COUNT`, in hexadecimal.
fn counts(words: &[&str]) -> Result<BTreeMap<u64, u64>> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let pair = |word: &&str| {
        let (address, count) = word.split_once(':')?;
        Some((number(address)?, number(count)?))
    };
    let counts = words
        .iter()
        .map(|word| pair(word).with_context(|| format!("`{word}`")));
    counts.collect()
}

/// A line for each visit: what was seen, what is computed of paths that execute no more than it, and their ratio.
///
/// # Errors
/// Code that cannot be analysed, or a visit that goes a way which the analysis leaves out.
pub fn table(kernel: &Kernel, seen: &Seen, levels: u64) -> Result<String> {
    let mut text = String::new();
    for (key, visit) in seen {
        let [system, kind, from, to] = key;
        let entry = match kind.as_str() {
            "system_call" => Entry::SystemCall,
            _ => Entry::Vector,
        };
        let case = Case {
            system: match system.as_str() {
                "closed" => System::Closed,
                _ => System::Open,
            },
            levels,
        };
        let computed = kernel.longest_of(entry, case, &[], Some(visit.executed.clone()))?;
        let computed = computed
            .with_context(|| format!("{}: no path", key.join(" ")))?
            .cost;
        let ratio = computed as f64 / visit.cycles as f64;
        let _ = writeln!(
            text,
            "{system} {kind}, from {from} to {to}: {} seen, {computed} computed of that path: {ratio:.2}",
            visit.cycles
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "stretch vectors entry exit 2\n\
        cycles a open vectors entry exit 30\nexecuted 10:1 1a:2\n\
        cycles b open vectors entry exit 90\nexecuted 10:9\n\
        cycles a open vectors entry exit 40\nexecuted 10:3\n\
        cycles a open vectors entry exit 50\n";

    #[test]
    fn the_dearest_visit_on_the_processor_counts_if_it_says_what_it_executed() {
        let seen = read(TEXT, "a").expect("it is such a file");
        let key = ["open", "vectors", "entry", "exit"].map(str::to_owned);
        let visit = Visit {
            cycles: 40,
            executed: Rc::new(BTreeMap::from([(0x10, 3)])),
        };
        assert_eq!(seen, Seen::from([(key, visit)]));
    }

    #[test]
    fn a_file_without_the_processor_is_refused() {
        assert!(read(TEXT, "c").is_err());
        assert!(read("cycles a open vectors entry exit 1\nexecuted 10-3\n", "a").is_err());
    }
}
