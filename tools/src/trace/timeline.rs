//! What the records amount to: who executed when and on whose time, jobs, budgets, and what was lent.

use std::collections::BTreeMap;

use sandglass_abi::trace::Gift;

use super::gates::{self, Stage};
use super::history::History;
use super::jobs::{self, Job};
use super::record::{Event, Object};
use super::waits::{self, Wait};
use super::windows::{self, Window};

/// A stretch of time in which a core executed one thread on one context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    pub core: u8,
    pub thread: Object,
    /// Who paid.
    pub context: Object,
    /// Ticks.
    pub from: u64,
    pub to: u64,
}

/// A context that went from one thread to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passing {
    pub time: u64,
    pub context: Object,
    pub from: Object,
    pub to: Object,
    pub back: bool,
}

/// What a context has left of the refill that it uses, ticks, from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    pub time: u64,
    pub context: Object,
    pub amount: u64,
    /// For how long it was used until then, ticks; 0 where it is refilled.
    pub used: u64,
}

/// Everything that can be drawn.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    pub executions: Vec<Execution>,
    pub passings: Vec<Passing>,
    pub budgets: Vec<Left>,
    pub jobs: Vec<Job>,
    pub waits: Vec<Wait>,
    /// Of partitions.
    pub windows: Vec<Window>,
    /// Of gates.
    pub stages: Vec<Stage>,
}

impl Timeline {
    pub fn of(history: &History) -> Self {
        Self {
            executions: executions(history),
            passings: passings(history),
            budgets: budgets(history),
            jobs: jobs::of(history),
            waits: waits::of(history),
            windows: windows::of(history),
            stages: gates::of(history),
        }
    }

    /// Every thread that executed, in the order of first execution.
    pub fn threads(&self) -> Vec<Object> {
        let mut threads = Vec::new();
        for execution in &self.executions {
            if !threads.contains(&execution.thread) {
                threads.push(execution.thread);
            }
        }
        threads
    }
}

fn executions(history: &History) -> Vec<Execution> {
    let mut executions = Vec::new();
    let mut running: BTreeMap<u8, Execution> = BTreeMap::new();
    let mut end = |running: &mut BTreeMap<u8, Execution>, core: u8, time: u64| {
        let ended = running.remove(&core).map(|execution| Execution {
            to: time,
            ..execution
        });
        executions.extend(ended.filter(|execution| execution.to > execution.from));
        ended
    };
    for record in &history.records {
        let (core, from) = (record.core, record.time);
        match record.event {
            Event::Switch {
                thread, context, ..
            } => {
                end(&mut running, core, from);
                if thread != 0 {
                    running.insert(
                        core,
                        Execution {
                            core,
                            thread,
                            context,
                            from,
                            to: from,
                        },
                    );
                }
            }
            // The thread continues on another context.
            Event::Pays { context, .. } if context != 0 => {
                let differs = running.get(&core).is_some_and(|now| now.context != context);
                if differs {
                    if let Some(before) = end(&mut running, core, from) {
                        running.insert(
                            core,
                            Execution {
                                context,
                                from,
                                ..before
                            },
                        );
                    }
                }
            }
            _ => {}
        }
    }
    let last = history.end();
    for core in history.cores() {
        end(&mut running, core, last);
    }
    executions.sort_by_key(|execution| execution.from);
    executions
}

fn passings(history: &History) -> Vec<Passing> {
    let passing = |time, context, from, to, back| {
        (from != 0 && to != 0).then_some(Passing {
            time,
            context,
            from,
            to,
            back,
        })
    };
    let records = history.records.iter();
    records
        .filter_map(|record| match record.event {
            Event::Donate {
                context,
                from,
                to,
                gift,
            } if gift != Gift::Bind => passing(record.time, context, from, to, false),
            Event::Return { context, from, to } => passing(record.time, context, from, to, true),
            _ => None,
        })
        .collect()
}

fn budgets(history: &History) -> Vec<Left> {
    let mut left: BTreeMap<Object, u64> = BTreeMap::new();
    let mut budgets = Vec::new();
    for record in &history.records {
        let (context, amount, used) = match record.event {
            Event::Pays { context, amount } if context != 0 => (context, amount, 0),
            Event::Charge {
                context,
                consumed,
                charged,
            } => {
                let before = left.get(&context).copied().unwrap_or(0);
                let after = before.saturating_sub(consumed.max(charged));
                (context, after, consumed)
            }
            _ => continue,
        };
        left.insert(context, amount);
        budgets.push(Left {
            time: record.time,
            context,
            amount,
            used,
        });
    }
    budgets
}

/// The thread that each context was bound to first.
pub fn threads_of_contexts(history: &History) -> BTreeMap<Object, Object> {
    let mut threads = BTreeMap::new();
    for record in &history.records {
        if let Event::Donate {
            context,
            to,
            gift: Gift::Bind,
            ..
        } = record.event
        {
            threads.entry(context).or_insert(to);
        }
    }
    threads
}
