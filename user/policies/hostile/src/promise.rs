//! What is promised, and what is said when it does not hold.

use std::fmt;

/// A promise that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether all promises held.
pub type Held = Result<(), Broken>;

/// What the condition says must hold; else the message, as of `format!`, says what did not.
macro_rules! promise {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Broken(format!($($message)+)));
        }
    };
}

pub(crate) use promise;
