//! What the writer of the log is told.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

/// Whose lines are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// Components, by their names; the launcher, [`LAUNCHER`](crate::LAUNCHER), first. The writer finds the lines of `C`
    /// in the memory `log.C`.
    pub sources: Vec<String>,
}

impl super::Table for Log {
    const NAME: &'static str = "log.sources";
}

/// Names in the environment of the writer, beside those of memory.
pub mod names {
    /// What it waits for: signalled by whoever has written a line, with the badge [`WRITTEN`](super::badge::WRITTEN); and
    /// by the launcher.
    pub const WAKE: &str = "log.wake";
    /// What it signals when it has done what the launcher asked for.
    pub const DONE: &str = "log.done";
}

/// Bits of the badges that wake the writer.
pub mod badge {
    pub const WRITTEN: u64 = 1;
    /// All that is there is to be written: the system is about to end.
    pub const END: u64 = 2;
}
