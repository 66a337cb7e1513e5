//! Shows results as they come, and the verdict at the end.

use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::cost::{Cost, Stopwatch};

/// What costs less than this is not listed.
const LISTED: Duration = Duration::from_secs(5);

/// What has happened so far.
#[derive(Debug, Default)]
pub struct Report {
    passed: usize,
    /// Names and reasons.
    failed: Vec<(String, String)>,
    /// What took how long.
    costs: Vec<(String, Cost)>,
}

impl Report {
    /// Something that takes long has begun.
    pub fn started(&self, name: &str) {
        eprintln!("running {name}");
    }

    /// Says in the end what `what` cost, if that is worth a line.
    pub fn took(&mut self, what: impl Into<String>, since: Stopwatch) {
        let cost = since.cost();
        if cost.processor.max(Some(cost.time)) >= Some(LISTED) {
            self.costs.push((what.into(), cost));
        }
    }

    /// As [`Self::took`], of what ran beside other things, so that its processor time is not known.
    pub fn took_beside_others(&mut self, what: &str, time: Duration) {
        if time >= LISTED {
            let cost = Cost {
                time,
                processor: None,
            };
            self.costs.push((what.to_owned(), cost));
        }
    }

    pub fn passed(&mut self, name: &str) {
        println!("test {name} ... ok");
        self.passed += 1;
    }

    /// Neither passed nor failed: the machine lacks a tool, or the test is marked as ignored.
    pub fn skipped(&self, name: &str, reason: &str) {
        println!("test {name} ... skipped: {reason}");
    }

    pub fn failed(&mut self, name: &str, reason: &str) {
        println!("test {name} ... FAILED");
        self.failed.push((name.to_owned(), reason.to_owned()));
    }

    /// Gives the reason of a failure that has been reported without.
    pub fn explain(&mut self, name: &str, reason: &str) {
        for (_, known) in self.failed.iter_mut().filter(|(failed, _)| failed == name) {
            reason.clone_into(known);
        }
    }

    /// Prints what took long, the failures again, with their reasons, and the closing line. Nothing passed is a
    /// failure too: a pattern that matches no test is a mistake.
    pub fn close(self) -> ExitCode {
        if !self.costs.is_empty() {
            println!("\nLongest steps:");
        }
        for (what, cost) in &self.costs {
            println!("{cost}  {what}");
        }
        for (name, reason) in &self.failed {
            println!("\n---- {name}\n{}", reason.trim_end());
        }
        if self.passed == 0 && self.failed.is_empty() {
            eprintln!("error: no test has a name that contains the pattern");
        }
        println!("\n{} passed, {} failed", self.passed, self.failed.len());
        if self.failed.is_empty() && self.passed > 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

/// A report that several write to.
pub struct Shared<'r>(Mutex<&'r mut Report>);

impl<'r> Shared<'r> {
    pub fn new(report: &'r mut Report) -> Self {
        Self(Mutex::new(report))
    }

    pub fn lock(&self) -> MutexGuard<'_, &'r mut Report> {
        self.0.lock().expect("no worker panics")
    }
}
