//! Tests that are root tasks: they print what Rust's test harness prints, and end with a status.
//!
//! A test is a function that returns a [`Failure`] or nothing; [`ensure!`](crate::ensure) makes
//! failures. A panic ends the whole run, unless the suite runs its tests apart from itself.

pub mod run_log;
mod trace;

pub use run_log::RunLog;
pub use trace::Trace;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use core::fmt::Display;

use crate::println;

/// Why a test did not pass. Any error can become one, so `?` works on all of them.
#[derive(Clone, Debug)]
pub struct Failure {
    reason: String,
    skipped: bool,
}

impl Failure {
    /// The test cannot be run here, which is not its failure: it is reported as skipped.
    pub fn skip(reason: impl Display) -> Self {
        Self {
            skipped: true,
            ..Self::from(reason)
        }
    }
}

impl<E: Display> From<E> for Failure {
    fn from(reason: E) -> Self {
        Self {
            reason: format!("{reason}"),
            skipped: false,
        }
    }
}

/// What a test returns.
pub type TestResult = Result<(), Failure>;

/// Runs tests and counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Suite {
    /// Begins the closing line, if not empty.
    title: &'static str,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Suite {
    pub const fn new() -> Self {
        Self::titled("")
    }

    /// A suite whose closing line begins with `title`.
    pub const fn titled(title: &'static str) -> Self {
        Self {
            title,
            passed: 0,
            failed: 0,
            skipped: 0,
        }
    }

    /// Runs a test and prints its verdict.
    pub fn run(&mut self, name: &str, test: impl FnOnce() -> TestResult) {
        self.record(name, test());
    }

    /// Prints the verdict of a test.
    pub fn record(&mut self, name: &str, result: TestResult) {
        match result {
            Ok(()) => {
                self.passed += 1;
                println!("test {name} ... ok");
            }
            Err(Failure {
                reason,
                skipped: true,
            }) => {
                self.skipped += 1;
                println!("test {name} ... skipped: {reason}");
            }
            Err(Failure { reason, .. }) => {
                self.failed += 1;
                println!("test {name} ... FAILED: {reason}");
            }
        }
    }

    /// Prints the closing line, after one that counts the skipped tests if there are any, and
    /// returns the status to exit with.
    pub fn finish(self) -> u8 {
        let separator = if self.title.is_empty() { "" } else { ": " };
        let title = format!("{}{separator}", self.title);
        if self.skipped > 0 {
            println!("{title}{} skipped", self.skipped);
        }
        println!("{title}{} passed, {} failed", self.passed, self.failed);
        u8::from(self.failed > 0)
    }
}

/// State that lives as long as the run, for threads to share.
pub fn shared<T: Default>() -> &'static T {
    Box::leak(Box::default())
}

/// Runs for good. Without PAUSE, which is slow to emulate.
pub fn spin() -> ! {
    loop {
        crate::time::pass();
    }
}

/// Returns a [`Failure`](crate::testing::Failure) from a test unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($reason:tt)+) => {
        if !$condition {
            return Err($crate::testing::Failure::from(core::format_args!($($reason)+)));
        }
    };
    ($condition:expr) => {
        $crate::ensure!($condition, "{}:{}: {}", file!(), line!(), stringify!($condition))
    };
}

/// Returns a [`Failure`](crate::testing::Failure) from a test unless both are equal.
#[macro_export]
macro_rules! ensure_eq {
    ($left:expr, $right:expr) => {{
        let (left, right) = (&$left, &$right);
        $crate::ensure!(
            left == right,
            "{}:{}: {} is {left:?}, not {right:?}",
            file!(),
            line!(),
            stringify!($left)
        );
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_say_where_and_what() {
        fn test(n: u64) -> TestResult {
            crate::ensure_eq!(n + 1, 3);
            Ok(())
        }
        assert!(test(2).is_ok());
        let reason = test(3).unwrap_err().reason;
        assert!(reason.ends_with("n + 1 is 4, not 3"), "{reason}");
        assert!(reason.contains("testing/mod.rs:"), "{reason}");
    }
}
