//! Records the decisions of a run.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use edf_record::{self as record, Outcome};
use sandglass_edf::driver::Observer;
use sandglass_edf::{Decision, Event};

use crate::jobs;

/// Memory is allocated when it is made; nothing is while tasks run.
pub struct Recorder {
    start: u64,
    decisions: Vec<record::Decision>,
    wanted: usize,
}

impl Recorder {
    pub fn new(wanted: usize) -> Self {
        Self {
            start: 0,
            decisions: Vec::with_capacity(wanted),
            wanted,
        }
    }

    pub fn outcome(self, set: u32) -> Outcome {
        Outcome {
            set,
            start: self.start,
            decisions: self.decisions,
        }
    }
}

impl Observer for Recorder {
    fn started(&mut self, start: u64) {
        self.start = start;
    }

    fn decided(&mut self, now: u64, event: Event, decision: &Decision) -> ControlFlow<()> {
        let noticed = jobs::decided();
        if let Some(before) = self.decisions.last_mut() {
            before.noticed = noticed.map(|noticed| record::Noticed {
                at: noticed.at.saturating_sub(self.start),
                ..noticed
            });
        }
        self.decisions.push(record::Decision {
            at: now - self.start,
            event: match event {
                Event::Timer => record::Event::Timer,
                Event::Completed(task) => record::Event::Completed(task.0 as u32),
                Event::Overran(task) => record::Event::Overran(task.0 as u32),
                Event::Removed(task) => record::Event::Removed(task.0 as u32),
                Event::Blocked(task) => record::Event::Blocked(task.0 as u32),
            },
            run: decision.run.map(|job| job.task.0 as u32),
            wake_at: decision.wake_at.map(|at| at.saturating_sub(self.start)),
            last: jobs::last_look().saturating_sub(self.start),
            noticed: None,
        });
        if self.decisions.len() == self.wanted {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
