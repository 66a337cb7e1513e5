//! Windows in the trace: whose it is, and who is charged for an overrun. Marks are claims, which the checker compares with what
//! the kernel recorded.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use sandglass::cap::SchedContext;
use sandglass::trace::{self, Mark};
use sandglass_description::policy::partitions::Partitions;

use crate::decision::Window;
use crate::driver::Observer;
use crate::hierarchy::{Decision, Event};

/// Marks what changes. In a system that is not traced it looks whether it is, and does nothing.
#[derive(Debug)]
pub struct Marks {
    /// Of each partition.
    contexts: Vec<SchedContext>,
    /// What was marked last.
    marked: Option<Window>,
}

impl Marks {
    /// Names the partitions' contexts, and says from when on the plan counts.
    pub fn begin(table: &Partitions, contexts: Vec<SchedContext>, start: u64) -> Self {
        for (partition, &context) in table.partitions.iter().zip(&contexts) {
            trace::name(context, &partition.name);
        }
        trace::mark(Mark::Origin { at: start });
        Self {
            contexts,
            marked: None,
        }
    }

    #[cold]
    fn change(&mut self, at: u64, decision: &Decision) {
        if let Some(overrun) = decision.overrun {
            let ticks = overrun.ticks;
            trace::mark_of(
                self.contexts[overrun.partition.0],
                Mark::Overrun { at, ticks },
            );
        }
        let before = core::mem::replace(&mut self.marked, decision.window);
        match (before, decision.window) {
            (before, after) if before == after => {}
            (_, Some(window)) => {
                let Window { number, until, .. } = window;
                trace::mark_of(
                    self.contexts[window.partition.0],
                    Mark::Window { number, at, until },
                );
            }
            (Some(before), None) => {
                trace::mark_of(self.contexts[before.partition.0], Mark::WindowEnd { at });
            }
            (None, None) => {}
        }
    }
}

impl Observer for Marks {
    #[inline]
    fn decided(&mut self, now: u64, _event: Event, decision: &Decision) -> ControlFlow<()> {
        if trace::is_traced() {
            self.change(now, decision);
        }
        ControlFlow::Continue(())
    }
}
