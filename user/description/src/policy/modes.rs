//! Criticality modes (thesis 6.1.8, 8.4.1).

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::Table;

/// What a mode manager is told. Levels are counted from 0, the lowest; the mode is one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modes {
    /// The manager's name: it has `NAME.tcb`.
    pub manager: String,
    /// Names of the levels.
    pub levels: Vec<String>,
    pub tasks: Vec<Task>,
}

/// A thread whose share of the processor depends on the mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its path: the manager has `NAME.tcb` if it changes its priority or must see where its timeouts
    /// are, and `NAME.context` if its budget depends on the mode.
    pub name: String,
    /// Its level.
    pub criticality: u32,
    /// Under which its timeouts arrive; 0: they do not.
    pub fault_badge: u64,
    /// As long as the mode is not above its level.
    pub priority: u8,
    /// When the mode is above its level.
    pub below: Below,
    /// By mode, up to its level; at least one, each at least the one before. µs.
    pub budgets_us: Vec<u64>,
    pub period_us: u64,
    pub core: u32,
    pub extra_refills: u64,
    pub sporadic: bool,
    /// Of its scheduling context.
    pub badge: u64,
    /// It calls servers, who may answer when its budget has run out.
    pub calls_servers: bool,
}

/// What happens to a task when the mode is above its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Below {
    /// It stays as it is.
    Keep,
    /// It runs at this lower priority.
    Demote(u8),
    /// It does not run, unless in a server.
    Suspend,
}

/// Badges of signals to the manager. What else arrives there is a fault, under [`Task::fault_badge`].
pub mod badge {
    /// Of the idle thread: no other thread is ready.
    pub const IDLE: u64 = 1 << 62;
    /// Of the launcher: tasks have ended, or are stopped by a fault. Which, the other bits say.
    pub const END: u64 = 1 << 63;
    /// Tasks with a bit of their own; further ones share the last.
    pub const BITS: usize = 62;

    /// The bit of a task.
    pub const fn bit(task: usize) -> u64 {
        let last = BITS - 1;
        1 << if task < last { task } else { last }
    }
}

/// Priority of a suspended task: below the idle thread's, and so below everybody's.
pub const SUSPENDED: u8 = 0;

impl Table for Modes {
    const NAME: &'static str = "modes";
}
