//! Shows results as they come, and the verdict at the end.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeVal;

use super::LONG;

/// What costs less than this is not listed.
const LISTED: Duration = Duration::from_secs(5);

/// What has happened so far.
#[derive(Debug, Default)]
pub struct Report {
    passed: usize,
    /// Names and reasons.
    failed: Vec<(String, String)>,
    /// Entries of [`LONG`] of which there were tests.
    long: BTreeSet<&'static str>,
    /// What took how long.
    took: Vec<(String, Duration)>,
}

impl Report {
    /// Something that takes long has begun.
    pub fn started(&self, name: &str) {
        eprintln!("running {name}");
    }

    /// Says in the end how long `what` took, beside other things, if that is worth a line.
    pub fn took(&mut self, what: impl Into<String>, time: Duration) {
        if time >= LISTED {
            self.took.push((what.into(), time));
        }
    }

    /// Adds what happened according to `other`.
    pub fn absorb(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.long.extend(other.long);
        self.took.extend(other.took);
    }

    pub fn passed(&mut self, name: &str) {
        println!("test {name} ... ok");
        self.passed += 1;
        self.was_long(name);
    }

    /// Neither passed nor failed: the machine lacks a tool, or the test is marked as ignored.
    pub fn skipped(&self, name: &str, reason: &str) {
        println!("test {name} ... skipped: {reason}");
    }

    pub fn failed(&mut self, name: &str, reason: &str) {
        println!("test {name} ... FAILED");
        self.was_long(name);
        self.failed.push((name.to_owned(), reason.to_owned()));
    }

    fn was_long(&mut self, name: &str) {
        self.long
            .extend(LONG.iter().filter(|long| name.starts_with(**long)));
    }

    /// After all tests: an entry of [`LONG`] with which no test's name begins is a failure.
    pub fn demand_long(&mut self) {
        let missing = LONG.iter().filter(|long| !self.long.contains(*long));
        for long in missing.copied().collect::<Vec<_>>() {
            self.failed(
                long,
                "no test has a name that begins so: correct `LONG` in `tools/src/test/mod.rs`",
            );
        }
    }

    /// Gives the reason of a failure that has been reported without.
    pub fn explain(&mut self, name: &str, reason: &str) {
        for (_, known) in self.failed.iter_mut().filter(|(failed, _)| failed == name) {
            reason.clone_into(known);
        }
    }

    /// Prints what took long, the failures again, with their reasons, and the closing line, with the `time` of all. Nothing
    /// passed is a failure too: a pattern that matches no test is a mistake.
    pub fn close(self, time: Duration) -> ExitCode {
        println!("\nLongest steps, some beside each other:");
        for (what, time) in &self.took {
            println!("{:>5} s  {what}", time.as_secs());
        }
        println!(
            "{:>5} s  all, with {} s of processor time",
            time.as_secs(),
            processor_time_of_children().as_secs()
        );
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

/// Processor time, user and system, of all programs that this one ran and that have ended.
fn processor_time_of_children() -> Duration {
    let duration = |time: TimeVal| {
        Duration::from_secs(time.tv_sec().unsigned_abs())
            + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    // It fails for a wrong argument only.
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Duration::ZERO, |usage| {
        duration(usage.user_time()) + duration(usage.system_time())
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_that_absorbs_another_has_the_results_of_both() {
        let mut report = Report::default();
        report.passed("a");
        report.took("a", LISTED);
        let mut other = Report::default();
        other.passed("b");
        other.failed("c", "why");
        other.took("b", LISTED / 2);
        report.absorb(other);
        assert_eq!(report.passed, 2);
        assert_eq!(report.failed, [("c".to_owned(), "why".to_owned())]);
        assert_eq!(report.took.len(), 1, "what is short is not listed");
    }

    #[test]
    fn a_long_test_that_is_not_there_is_missed() {
        let mut report = Report::default();
        let mut other = Report::default();
        for long in &LONG[1..] {
            other.passed(&format!("{long}::x"));
        }
        report.absorb(other);
        report.demand_long();
        let failed = report.failed.iter().map(|(name, _)| name.as_str());
        assert_eq!(failed.collect::<Vec<_>>(), [LONG[0]]);
    }
}
