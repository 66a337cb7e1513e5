//! One target, fuzzed for a time by some processes that share their corpus.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::corpus::{self, Corpus};
use super::engine::Engine;

/// Longest input, in bytes.
const MAX_LEN: u32 = 8 << 10;
/// Between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(15);

/// What is to be done.
pub(super) struct Campaign<'e> {
    pub(super) engine: &'e Engine,
    pub(super) target: &'e str,
    pub(super) jobs: u32,
    pub(super) time: Duration,
}

/// What came out.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) executions: u64,
    /// Edges of the program that were reached.
    pub(super) edges: u64,
    /// Inputs that failed.
    pub(super) failures: Vec<PathBuf>,
}

/// What libFuzzer reports in a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Status {
    executions: u64,
    edges: u64,
}

impl Status {
    /// Reads `#1234 NEW cov: 56 ft: ...`.
    fn parse(line: &str) -> Option<Self> {
        let (executions, rest) = line.strip_prefix('#')?.split_once(char::is_whitespace)?;
        let (_, edges) = rest.split_once("cov: ")?;
        Some(Status {
            executions: executions.parse().ok()?,
            edges: edges.split_whitespace().next()?.parse().ok()?,
        })
    }
}

impl Campaign<'_> {
    /// Runs it, with progress on standard error.
    ///
    /// # Errors
    /// The engine cannot be run.
    pub(super) fn run(&self, corpus: &Corpus) -> Result<Outcome> {
        let artifacts = corpus::folder_of("artifacts", self.target);
        corpus::empty(&artifacts)?;
        fs::create_dir_all(&corpus.working)?;
        let (sender, statuses) = mpsc::channel();
        let mut children = Vec::new();
        for job in 0..self.jobs as usize {
            let mut child = self.start(corpus)?;
            follow(&mut child, job, sender.clone())?;
            children.push(child);
        }
        drop(sender);

        let start = Instant::now();
        let mut shown = start;
        let mut last = vec![Status::default(); children.len()];
        // Ends when all processes have closed their outputs.
        for (job, status) in statuses {
            last[job] = status;
            if shown.elapsed() >= PROGRESS {
                shown = Instant::now();
                let Outcome {
                    executions, edges, ..
                } = sum(&last);
                let seconds = start.elapsed().as_secs();
                eprintln!(
                    "{}: {seconds} of {} s, {executions} executions ({} a second), {edges} edges",
                    self.target,
                    self.time.as_secs(),
                    executions / seconds.max(1)
                );
            }
        }
        for mut child in children {
            child.wait().context("cannot wait for the fuzzing engine")?;
        }
        Ok(Outcome {
            failures: corpus::list(&artifacts)?,
            ..sum(&last)
        })
    }

    fn start(&self, corpus: &Corpus) -> Result<Child> {
        self.engine
            .command(self.target)
            .arg(format!("-max_len={MAX_LEN}"))
            .arg(format!("-max_total_time={}", self.time.as_secs().max(1)))
            .arg(corpus::artifact_prefix(self.target))
            .args([&corpus.working, &corpus.kept])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run the fuzzing engine")
    }
}

/// Sends what the process reports, until it ends.
fn follow(child: &mut Child, job: usize, sender: Sender<(usize, Status)>) -> Result<()> {
    let stderr = child.stderr.take().context("the engine has no output")?;
    thread::spawn(move || {
        for line in BufReader::new(stderr).split(b'\n').map_while(Result::ok) {
            if let Some(status) = Status::parse(&String::from_utf8_lossy(&line)) {
                // Nobody listens any more when the campaign has failed.
                let _ = sender.send((job, status));
            }
        }
    });
    Ok(())
}

/// All processes together. They share the corpus, hence, with a delay, the edges.
fn sum(statuses: &[Status]) -> Outcome {
    Outcome {
        executions: statuses.iter().map(|status| status.executions).sum(),
        edges: statuses
            .iter()
            .map(|status| status.edges)
            .max()
            .unwrap_or(0),
        failures: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_status_are_read() {
        let line = "#26734\tNEW    cov: 2266 ft: 5333 corp: 822/38Kb lim: 76 exec/s: 954";
        let status = Status {
            executions: 26734,
            edges: 2266,
        };
        assert_eq!(Status::parse(line), Some(status));
        assert_eq!(Status::parse("#0\tREAD units: 12"), None);
        assert_eq!(Status::parse("INFO: seed corpus: files: 29"), None);
    }
}
