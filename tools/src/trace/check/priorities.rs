//! Priorities are respected: no thread runs while one of higher priority is ready on its core.
//!
//! Which threads are ready follows from the records: those that woke and did not block since, that
//! have a context with parameters, and whose refill has come. Where the scheduler took a thread, that
//! must be one of the highest priority of the ready ones of that moment, exactly. Elsewhere the
//! running thread may go on for the longest kernel path beside a ready one of higher priority: a
//! refill's timer takes a while to be noticed while the kernel is at work, and a long operation that
//! made a thread ready continues to its next preemption point; and the core may stand still. So may a core that made a thread
//! ready elsewhere, on its way out of the kernel, before it has asked the other core to look: it has left the kernel when
//! any but the two is in it, or when the other core is told to look, and the thread is not late before.

use std::collections::{BTreeMap, BTreeSet};

use super::Findings;
use crate::trace::record::{Event, Object, Record};

#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    priority: u8,
    core: u8,
    domain: u8,
    runnable: bool,
    context: Object,
    /// Until when it waits for its refill, ticks.
    waits: u64,
    /// When it became ready, for the message: its record and its time.
    since: (u32, u64),
    /// Another core made it ready, and may not have left the kernel yet.
    made_ready_by: Option<u8>,
}

#[derive(Default)]
struct State {
    threads: BTreeMap<Object, Thread>,
    /// Those that do not run, and that are neither blocked nor without context, by core.
    candidates: BTreeMap<u8, BTreeSet<Object>>,
    /// Who has each context.
    holders: BTreeMap<Object, Object>,
    /// The contexts that have parameters.
    active: BTreeSet<Object>,
    /// Who runs on each core; 0 for idleness.
    running: BTreeMap<u8, Object>,
    /// Of each core that idles: the priority of who ran last, and since when it does not.
    stopped: BTreeMap<u8, (u8, u64)>,
    /// Candidates with [`Thread::made_ready_by`].
    made_ready: BTreeSet<Object>,
    /// The core that records.
    by: u8,
    domain: u8,
}

pub fn check(findings: &mut Findings<'_>) {
    let mut state = State::default();
    let several_cores = findings.verdict.several_cores;
    let history = findings.history;
    let late = findings.longest_path();
    let mut records = history.records.iter().peekable();
    let mut decided = false;
    let mut clocks: BTreeMap<u8, u64> = BTreeMap::new();
    while let Some(record) = records.next() {
        // What held until now.
        let before = clocks.insert(record.core, record.time);
        if before.is_some_and(|before| before < record.time) {
            state.compare(findings, record, late);
        }
        state.follow(record);
        if let Event::Switch { thread, .. } = record.event {
            // A core whose thread was stopped by another one idles until it looks.
            decided |= thread != 0 || !several_cores;
        }
        let goes_on = records
            .peek()
            .is_some_and(|next| (next.time, next.core) == (record.time, record.core));
        if !goes_on {
            if decided {
                state.compare(findings, record, 0);
            }
            decided = false;
        }
    }
}

impl State {
    fn thread(&mut self, thread: Object) -> &mut Thread {
        self.threads.entry(thread).or_default()
    }

    fn follow(&mut self, record: &Record) {
        let now = (record.sequence, record.time);
        self.by = record.by;
        self.leave(record);
        match record.event {
            Event::Switch {
                thread,
                context,
                priority,
            } => {
                let before = self.running.insert(record.core, thread);
                if thread != 0 {
                    self.stopped.remove(&record.core);
                } else if let Some(before) = before.filter(|before| *before != 0) {
                    let priority = self.thread(before).priority;
                    self.stopped.insert(record.core, (priority, record.time));
                }
                self.update(before.unwrap_or(0), now);
                if thread != 0 {
                    let known = self.threads.contains_key(&thread);
                    let entry = self.thread(thread);
                    (entry.priority, entry.core) = (priority, record.core);
                    if !known {
                        (entry.runnable, entry.context) = (true, context);
                        self.holders.insert(context, thread);
                    }
                    self.update(thread, now);
                }
            }
            Event::Wake {
                thread,
                context,
                priority,
            } => {
                let entry = self.thread(thread);
                entry.priority = priority;
                entry.runnable = true;
                if entry.context == 0 && context != 0 {
                    entry.context = context;
                    self.holders.insert(context, thread);
                }
                self.update(thread, now);
            }
            Event::Block { thread, .. } => {
                self.thread(thread).runnable = false;
                self.update(thread, now);
            }
            Event::Wait {
                thread,
                until,
                priority,
                ..
            } => {
                let entry = self.thread(thread);
                (entry.waits, entry.priority) = (until, priority);
                self.update(thread, now);
            }
            Event::Release { thread, .. } => {
                self.thread(thread).waits = 0;
                self.update(thread, now);
            }
            Event::Donate { context, to, .. } | Event::Return { context, to, .. } => {
                self.give(context, to, now);
            }
            Event::Unbind { context, .. } => self.give(context, 0, now),
            Event::Priority { thread, priority } => {
                self.thread(thread).priority = priority;
                self.update(thread, now);
            }
            Event::Migrate { thread, core } => {
                let old = self.thread(thread).core;
                self.candidates.entry(old).or_default().remove(&thread);
                self.thread(thread).core = core;
                self.update(thread, now);
            }
            Event::Configure { context, .. } => {
                self.active.insert(context);
            }
            Event::Pays { context, .. } if context != 0 => {
                self.active.insert(context);
            }
            Event::Domain { thread: 0, domain } => self.domain = domain,
            Event::Domain { thread, domain } => self.thread(thread).domain = domain,
            _ => {}
        }
    }

    /// A core is in the kernel: so any other has left it.
    fn leave(&mut self, record: &Record) {
        self.made_ready.retain(|thread| {
            let Some(thread) = self.threads.get_mut(thread) else {
                return false;
            };
            // What it records of another core has that one's time.
            let is_same = thread.since.1 == record.time || record.core != record.by;
            if thread.made_ready_by == Some(record.by) && is_same {
                return true;
            }
            thread.made_ready_by = None;
            // It may have come here by itself while the other one stood still: nothing is known then.
            if thread.core != record.by {
                thread.since.1 = record.time;
            }
            false
        });
    }

    /// `context` goes to `to`, or to no thread.
    fn give(&mut self, context: Object, to: Object, now: (u32, u64)) {
        if let Some(holder) = self.holders.insert(context, to) {
            if holder != 0 && holder != to {
                let entry = self.thread(holder);
                if entry.context == context {
                    (entry.context, entry.waits) = (0, 0);
                }
                self.update(holder, now);
            }
        }
        if to != 0 {
            self.thread(to).context = context;
            self.update(to, now);
        }
    }

    /// `thread` has changed: it may be a candidate now, or none any more.
    fn update(&mut self, thread: Object, now: (u32, u64)) {
        let Some(entry) = self.threads.get_mut(&thread) else {
            return;
        };
        let runs = self.running.get(&entry.core) == Some(&thread);
        let candidates = self.candidates.entry(entry.core).or_default();
        if entry.runnable && entry.context != 0 && !runs {
            if candidates.insert(thread) {
                entry.since = now;
                entry.made_ready_by = (self.by != entry.core).then_some(self.by);
                if entry.made_ready_by.is_some() {
                    self.made_ready.insert(thread);
                }
            }
        } else {
            candidates.remove(&thread);
            self.made_ready.remove(&thread);
        }
    }

    /// Compares the thread that runs on the core of `record` with those ready there for longer than `slack` ticks
    /// unless that is 0.
    fn compare(&self, findings: &mut Findings<'_>, record: &Record, slack: u64) {
        let core = record.core;
        let (Some(&running), Some(candidates)) =
            (self.running.get(&core), self.candidates.get(&core))
        else {
            return;
        };
        if slack == 0 {
            findings.looked().decisions += 1;
        }
        let floor = match self.threads.get(&running) {
            Some(thread) if running != 0 => i16::from(thread.priority),
            _ => -1,
        };
        let ready = candidates.iter().filter_map(|&candidate| {
            let thread = self.threads.get(&candidate)?;
            let is_above = i16::from(thread.priority) > floor && thread.domain == self.domain;
            let has_time = self.active.contains(&thread.context) && thread.waits <= record.time;
            // One that another core stops, to look at it, was in the way of those below until then.
            let stopped = self.stopped.get(&core);
            let stopped = stopped.filter(|(priority, _)| thread.priority <= *priority);
            let since = thread.since.1.max(thread.waits);
            let since = since.max(stopped.map_or(0, |(_, since)| *since));
            let waits = record.time.saturating_sub(since);
            let still = || findings.standstill.within(core, since, record.time);
            // Who made it ready may have stood still in the kernel for as long as this core was busy, and says so only now.
            let is_told = thread.made_ready_by.is_none();
            let is_late = slack == 0 || is_told && waits > slack && waits > slack + still();
            (is_above && has_time && is_late).then_some((thread.priority, candidate, since))
        });
        let Some((priority, candidate, since)) = ready.max() else {
            return;
        };
        let what = format!(
            "`{}` of priority {priority} is ready on core {core} since record #{} ({:.3} µs ago), but \
             {} runs",
            findings.name(candidate),
            self.threads[&candidate].since.0,
            findings.history.us(record.time.saturating_sub(since)),
            match running {
                0 => "no thread".to_owned(),
                other => format!("`{}` of priority {floor}", findings.name(other)),
            }
        );
        findings.found(record.sequence, record.time, what);
    }
}
