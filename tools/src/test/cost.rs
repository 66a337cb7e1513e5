//! What tests cost: the host's time, and the processor time of the programs that were run.

use std::fmt;
use std::time::{Duration, Instant};

use nix::sys::resource::{getrusage, UsageWho};
use nix::sys::time::TimeVal;

/// Runs from when it is made.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    begin: Instant,
    /// Processor time of the children that had ended.
    processor: Duration,
}

impl Stopwatch {
    pub fn start() -> Self {
        Self {
            begin: Instant::now(),
            processor: of_children(),
        }
    }

    /// What was needed since its start.
    pub fn cost(self) -> Cost {
        Cost {
            time: self.begin.elapsed(),
            processor: Some(of_children().saturating_sub(self.processor)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    pub time: Duration,
    /// Of programs that ended meanwhile, user and system; `None` if others ran beside them.
    pub processor: Option<Duration>,
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>5} s, ", self.time.as_secs())?;
        match self.processor {
            Some(processor) => write!(f, "{:>5} s of processor time", processor.as_secs()),
            None => write!(f, "{:>25}", "beside others"),
        }
    }
}

/// Processor time of all programs that this one ran and that have ended.
fn of_children() -> Duration {
    let duration = |time: TimeVal| {
        Duration::from_secs(time.tv_sec().unsigned_abs())
            + Duration::from_micros(time.tv_usec().unsigned_abs())
    };
    // It fails for a wrong argument only.
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(Duration::ZERO, |usage| {
        duration(usage.user_time()) + duration(usage.system_time())
    })
}
