//! The monitor: what it is told of a system, and what the launcher tells it while the system runs.
//!
//! The [table](Monitor) is the description's: the builder makes it. The [status](status) is memory that the launcher
//! writes and the monitor only reads.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::policy::Table;

/// What a monitor is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// In the description's order, the monitor's own among them.
    pub threads: Vec<Watched>,
    /// What threads can wait for, by what they call it.
    pub objects: Vec<Known>,
}

/// A thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Its path. The monitor has `NAME.tcb` and, if it may ask for its consumption, `NAME.context`.
    pub name: String,
    /// Its component, in the order of the start.
    pub component: u32,
    /// As it is described; mode managers and others change it.
    pub priority: u8,
    pub core: u32,
    /// As they are described, µs; of a passive thread, 0.
    pub budget_us: u64,
    pub period_us: u64,
    pub extra_refills: u64,
    pub sporadic: bool,
    /// Of its scheduling context.
    pub badge: u64,
    /// Place of its state in the status.
    pub number: u32,
    pub consumption: Consumption,
}

/// Who asks the kernel for the consumption of a thread's context, which begins anew with each answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Consumption {
    /// The monitor alone.
    Monitor,
    /// Another component, which would be told too little.
    Other,
    /// Nobody: the thread has no time of its own.
    Passive,
}

/// An endpoint or notification as one component knows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// In the order of the start.
    pub component: u32,
    /// Which of the component's grants it is.
    pub grant: u32,
    pub name: String,
    /// The component that serves it; of a notification, none.
    pub server: Option<String>,
}

impl Table for Monitor {
    const NAME: &'static str = "monitor.table";
}

/// The memory that the launcher writes: words of 64 bits, each written and read as a whole.
pub mod status {
    /// Name of the memory.
    pub const NAME: &str = "monitor.status";

    /// Words of a thread's state: what it is, and three numbers.
    pub const THREAD_WORDS: usize = 4;
    /// Words for each [`Known`](super::Known): where the component finds the capability.
    pub const KNOWN_WORDS: usize = 1;

    /// What a thread is, as far as the launcher knows.
    pub const NOT_STARTED: u64 = 0;
    pub const STARTED: u64 = 1;
    /// With the status.
    pub const ENDED: u64 = 2;
    /// With the label of the fault, the instruction, and the address or number.
    pub const FAULTED: u64 = 3;

    /// First word of the state of the thread `number`.
    pub const fn thread(number: usize) -> usize {
        number * THREAD_WORDS
    }

    /// Word of the object `index` of the table, behind those of `threads` threads.
    pub const fn known(threads: usize, index: usize) -> usize {
        thread(threads) + index * KNOWN_WORDS
    }

    /// Bytes for all.
    pub const fn bytes(threads: usize, known: usize) -> u64 {
        (thread(threads) + known * KNOWN_WORDS) as u64 * 8
    }
}
