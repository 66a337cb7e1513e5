//! What the oracle finds.

use std::fmt;

use crate::Ticks;

/// A promise that was broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finding {
    /// More than the budget in a window.
    Window {
        context: u64,
        /// The window is the period that ends here.
        end: Ticks,
        period: Ticks,
        executed: Ticks,
        budget: Ticks,
        /// What it may have executed beyond its budget.
        allowance: Ticks,
    },
    /// Charged for what was not executed.
    Payment {
        context: u64,
        at: Ticks,
        charged: Ticks,
        executed: Ticks,
        allowance: Ticks,
    },
    /// Refused, although there is budget.
    Supply {
        context: u64,
        at: Ticks,
        /// Since when it was used, having had its whole budget.
        since: Ticks,
        executed: Ticks,
        /// What it was to have at least.
        promised: Ticks,
    },
    /// Another core was kept waiting for too long.
    Turn {
        core: usize,
        /// Since when another core waited, and until when.
        since: Ticks,
        until: Ticks,
        longest: Ticks,
    },
    /// A context was used on two cores at once, or time went back.
    Overlap {
        context: u64,
        start: Ticks,
        /// The end of what it executed before.
        busy_until: Ticks,
    },
}

impl Finding {
    /// The name of the promise.
    pub fn kind(&self) -> &'static str {
        match self {
            Finding::Window { .. } => "windows",
            Finding::Payment { .. } => "payment",
            Finding::Supply { .. } => "supply",
            Finding::Turn { .. } => "turns",
            Finding::Overlap { .. } => "overlap",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Finding::Window {
                context,
                end,
                period,
                executed,
                budget,
                allowance,
            } => write!(
                f,
                "the context at {context:#x} executed for {executed} ticks in the period of {period} that \
                 ends at {end}; its budget is {budget}, and {allowance} more are allowed"
            ),
            Finding::Payment {
                context,
                at,
                charged,
                executed,
                allowance,
            } => write!(
                f,
                "the context at {context:#x} was charged {charged} ticks until {at}, and has executed for \
                 {executed}; {allowance} more are allowed"
            ),
            Finding::Supply {
                context,
                at,
                since,
                executed,
                promised,
            } => write!(
                f,
                "the context at {context:#x} was refused at {at}, having executed for {executed} ticks \
                 since {since}, when it had all of its budget; it was to have {promised}"
            ),
            Finding::Turn {
                core,
                since,
                until,
                longest,
            } => write!(
                f,
                "core {core} kept another one waiting from {since} to {until}; the longest turn is {longest}"
            ),
            Finding::Overlap {
                context,
                start,
                busy_until,
            } => write!(
                f,
                "the context at {context:#x} is used from {start} on, and was in use until {busy_until}"
            ),
        }
    }
}

impl std::error::Error for Finding {}
