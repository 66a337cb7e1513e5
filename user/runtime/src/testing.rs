//! Tests that are root tasks: they print what Rust's test harness prints, and end with a status.
//!
//! A test is a function that returns a [`Failure`] or nothing; [`ensure!`](crate::ensure) makes
//! failures. A panic ends the whole run.

use alloc::format;
use alloc::string::String;
use core::fmt::Display;

use crate::println;

/// Why a test failed. Any error can become one, so `?` works on all of them.
#[derive(Clone, Debug)]
pub struct Failure(String);

impl<E: Display> From<E> for Failure {
    fn from(reason: E) -> Self {
        Self(format!("{reason}"))
    }
}

/// What a test returns.
pub type TestResult = Result<(), Failure>;

/// Runs tests and counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Suite {
    passed: usize,
    failed: usize,
}

impl Suite {
    pub const fn new() -> Self {
        Self {
            passed: 0,
            failed: 0,
        }
    }

    /// Runs a test and prints its verdict.
    pub fn run(&mut self, name: &str, test: impl FnOnce() -> TestResult) {
        match test() {
            Ok(()) => {
                self.passed += 1;
                println!("test {name} ... ok");
            }
            Err(Failure(reason)) => {
                self.failed += 1;
                println!("test {name} ... FAILED: {reason}");
            }
        }
    }

    /// Prints the closing line and returns the status to exit with.
    pub fn finish(self) -> u8 {
        println!("{} passed, {} failed", self.passed, self.failed);
        u8::from(self.failed > 0)
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
        let reason = test(3).unwrap_err().0;
        assert!(reason.ends_with("n + 1 is 4, not 3"), "{reason}");
        assert!(reason.contains("testing.rs:"), "{reason}");
    }
}
