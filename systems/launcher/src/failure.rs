//! What went wrong, and with what.

use alloc::format;
use alloc::string::String;
use core::fmt::{self, Display};

/// A message that is complete.
pub struct Failure(String);

impl Failure {
    /// Of which no error of others is the reason.
    pub fn of(reason: &impl Display) -> Self {
        Self(format!("{reason}"))
    }

    /// Adds what was being done.
    pub fn within(self, what: impl Display) -> Self {
        Self(format!("{what}: {}", self.0))
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "launcher: {}", self.0)
    }
}

/// Adds what was being done to an error.
pub trait Context<T> {
    fn context(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Display> Context<T> for Result<T, E> {
    fn context(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure(format!("{what}: {error}")))
    }
}

impl<T> Context<T> for Option<T> {
    fn context(self, what: impl Display) -> Result<T, Failure> {
        self.ok_or_else(|| Failure(format!("{what}")))
    }
}
