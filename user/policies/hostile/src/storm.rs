//! Scripts by a seed, as many as are wanted.
//!
//! Half of them are random; the others are changed from inputs of a corpus, which the fuzzing engine has found to
//! reach what others do not.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};

use fastrand::Rng;

use crate::{Held, Journal, Script};

/// Longest random script, in bytes.
const LONGEST: usize = 2048;
/// Most changes to a script of the corpus.
const MOST_CHANGES: usize = 6;
/// Scripts with broken promises that are kept: more say nothing more.
const MOST_FINDINGS: usize = 5;

/// What came out of a storm.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub scripts: u64,
    /// Events that the state machine was given.
    pub steps: u64,
    /// How often each situation came about.
    pub seen: BTreeMap<&'static str, u64>,
    pub findings: Vec<Finding>,
}

/// A script that broke a promise.
#[derive(Clone, Debug)]
pub struct Finding {
    pub seed: u64,
    pub bytes: Vec<u8>,
    pub message: String,
    /// Steps that the storm had made before this script.
    pub after: u64,
}

/// Plays scripts from `seed` on, one seed each, until there were `steps` steps or too much was found.
pub fn run(script: &Script, corpus: &[Vec<u8>], seed: u64, steps: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let mut seed = seed;
    while outcome.steps < steps && outcome.findings.len() < MOST_FINDINGS {
        let bytes = bytes(corpus, seed);
        let mut journal = Journal::default();
        if let Err(message) = play(script, &bytes, &mut journal) {
            outcome.findings.push(Finding {
                seed,
                bytes,
                message,
                after: outcome.steps,
            });
        }
        outcome.scripts += 1;
        // One that has no step is some work, too.
        outcome.steps += journal.steps().max(1);
        for (situation, times) in journal.seen() {
            *outcome.seen.entry(situation).or_default() += times;
        }
        seed = seed.wrapping_add(1);
    }
    outcome
}

impl Outcome {
    /// Situations of a script that never came about.
    pub fn unseen(&self, script: &Script) -> Vec<&'static str> {
        let unseen = |situation: &&&str| !self.seen.contains_key(**situation);
        script.situations.iter().filter(unseen).copied().collect()
    }
}

/// Plays one; a panic of the state machine is a broken promise, too.
fn play(script: &Script, bytes: &[u8], journal: &mut Journal) -> Result<(), String> {
    let held = panic::catch_unwind(AssertUnwindSafe(|| -> Held { script.play(bytes, journal) }));
    match held {
        Ok(held) => held.map_err(|broken| broken.to_string()),
        Err(panicked) => Err(format!("it panics: {}", said(panicked.as_ref()))),
    }
}

fn said(panicked: &(dyn std::any::Any + Send)) -> &str {
    let text = panicked.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panicked.downcast_ref::<&str>().copied());
    text.unwrap_or("(no text)")
}

/// The script of a seed.
fn bytes(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut rng = Rng::with_seed(seed);
    if corpus.is_empty() || rng.bool() {
        let len = rng.usize(1..=LONGEST);
        return std::iter::repeat_with(|| rng.u8(..)).take(len).collect();
    }
    let mut bytes = corpus[rng.usize(..corpus.len())].clone();
    for _ in 0..rng.usize(1..=MOST_CHANGES) {
        change(&mut bytes, corpus, &mut rng);
    }
    bytes
}

/// Makes a script a little different.
fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], rng: &mut Rng) {
    let at = rng.usize(..=bytes.len());
    match rng.u8(..5) {
        0 => bytes.insert(at, rng.u8(..)),
        1 => bytes.truncate(at),
        // Goes on as another does.
        2 => {
            let other = &corpus[rng.usize(..corpus.len())];
            let from = rng.usize(..=other.len());
            bytes.truncate(at);
            bytes.extend(&other[from..]);
        }
        3 => bytes.extend(std::iter::repeat_with(|| rng.u8(..)).take(32)),
        _ => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = rng.u8(..);
            }
        }
    }
}
