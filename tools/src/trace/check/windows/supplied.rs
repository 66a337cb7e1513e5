//! A frame that is laid over the turns of a time manager.
//!
//! All is in what the kernel records of the scheduler's context, which is its main thread's at first. In each turn the time
//! manager gives it the frame's budget; then the scheduler gives it the length of each window, in the order of the frame,
//! and at last what the main thread needs to end the turn. So
//!
//! - the budgets are these, in this order, and no turn ends before they have all been given;
//! - in a window, threads of its partition and the filler run on the context, and nobody else; and threads of partitions
//!   run on no other;
//! - what is consumed in a window is its length: no more than a kernel path more, and no less by more than what the kernel
//!   does not give to anybody, the least budget.

use std::collections::BTreeMap;

use sandglass_description::policy::partitions::{names, Form, Frame, SUPPLY_US};

use super::Plan;
use crate::trace::check::Findings;
use crate::trace::record::{Event, Object, Record};
use crate::trace::timeline::{threads_of_contexts, Timeline};

/// A window, from its budget to the next. Ticks.
#[derive(Clone, Copy)]
struct Window {
    index: usize,
    from: u64,
    to: u64,
    consumed: u64,
    /// The record that began it.
    sequence: u32,
}

/// What a context's new budget means.
enum Step {
    /// The time manager begins a turn.
    Turn,
    Window(usize),
    /// The scheduler ends its turn.
    End,
    /// Something else: the turn is over.
    Other,
}

struct Follower<'a> {
    plan: &'a Plan,
    frame: &'a Frame,
    context: Object,
    /// Whose each thread is; the filler is nobody's.
    threads: BTreeMap<Object, Option<usize>>,
    /// How many windows of the turn have begun, from its begin to its end.
    begun: Option<usize>,
    current: Option<Window>,
    windows: Vec<Window>,
}

pub fn check(findings: &mut Findings<'_>, plan: &Plan) {
    let Form::Frames(frames) = &plan.partitions.form else {
        return;
    };
    let contexts = threads_of_contexts(findings.history);
    let mut own = contexts
        .into_iter()
        .filter(|&(_, thread)| findings.name(thread) == plan.scheduler);
    let (Some(frame), Some((context, _))) = (frames.first(), own.next()) else {
        return;
    };
    let timeline = Timeline::of(findings.history);
    let mut follower = Follower {
        plan,
        frame,
        context,
        threads: threads(findings, plan, &timeline),
        begun: None,
        current: None,
        windows: Vec::new(),
    };
    for record in &findings.history.records {
        follower.follow(findings, record);
    }
    let last = findings.history.end();
    follower.windows.extend(
        follower
            .current
            .take()
            .map(|window| Window { to: last, ..window }),
    );
    findings.looked().partition_windows += follower.windows.len() as u64;
    follower.runs(findings, &timeline);
}

/// Threads of partitions, and the filler.
fn threads(
    findings: &Findings<'_>,
    plan: &Plan,
    timeline: &Timeline,
) -> BTreeMap<Object, Option<usize>> {
    let filler = format!("{}/{}", plan.scheduler, names::FILLER);
    let partition_of = |thread: Object| {
        let name = findings.name(thread);
        if name == filler {
            return Some(None);
        }
        let mut partitions = plan.partitions.partitions.iter();
        let partition = partitions.position(|of| of.threads.iter().any(|of| of.name == name));
        partition.map(Some)
    };
    let threads = timeline.threads().into_iter();
    threads
        .filter_map(|thread| Some((thread, partition_of(thread)?)))
        .collect()
}

impl Follower<'_> {
    fn follow(&mut self, findings: &mut Findings<'_>, record: &Record) {
        match record.event {
            Event::Configure {
                context, budget, ..
            } if context == self.context => self.configured(findings, record, budget),
            Event::Charge {
                context, consumed, ..
            } if context == self.context => {
                if let Some(window) = &mut self.current {
                    window.consumed += consumed;
                }
            }
            _ => {}
        }
    }

    fn configured(&mut self, findings: &mut Findings<'_>, record: &Record, budget: u64) {
        let step = self.step(budget / findings.history.per_us);
        if let Some(window) = self.current.take() {
            let window = Window {
                to: record.time,
                ..window
            };
            self.ended(findings, window);
            self.windows.push(window);
        }
        match step {
            Step::Turn => {
                self.lost(findings, record);
                self.begun = Some(0);
            }
            Step::Window(index) => {
                self.begun = Some(index + 1);
                self.current = Some(Window {
                    index,
                    from: record.time,
                    to: record.time,
                    consumed: 0,
                    sequence: record.sequence,
                });
            }
            Step::End => self.begun = None,
            Step::Other => {
                self.lost(findings, record);
                self.begun = None;
            }
        }
    }

    fn step(&self, budget_us: u64) -> Step {
        if let Some(begun) = self.begun {
            match self.frame.windows.get(begun) {
                Some(window) if window.length_us == budget_us => return Step::Window(begun),
                None if budget_us == SUPPLY_US / 2 => return Step::End,
                _ => {}
            }
        }
        if budget_us == self.frame.supply_us() {
            Step::Turn
        } else {
            Step::Other
        }
    }

    /// A turn is over before all of its windows have begun and ended.
    fn lost(&self, findings: &mut Findings<'_>, record: &Record) {
        let Some(begun) = self.begun else { return };
        let missing = self.frame.windows.len() - begun;
        let what = format!(
            "a turn of `{}` is over: its frame has {missing} more windows",
            self.plan.scheduler
        );
        findings.found(record.sequence, record.time, what);
    }

    fn name(&self, window: &Window) -> &str {
        let partition = self.frame.windows[window.index].partition as usize;
        &self.plan.partitions.partitions[partition].name
    }

    /// A window has had its length.
    fn ended(&self, findings: &mut Findings<'_>, window: Window) {
        let history = findings.history;
        let length = self.frame.windows[window.index].length_us * history.per_us;
        let core = self.plan.partitions.core as u8;
        let still = findings.standstill.within(core, window.from, window.to);
        let most = length + findings.longest_path() + still;
        let least = length.saturating_sub(history.least_budget);
        if (least..=most).contains(&window.consumed) {
            return;
        }
        let what = format!(
            "a window of `{}` has had {:.3} µs of its {:.3} µs",
            self.name(&window),
            history.us(window.consumed),
            history.us(length)
        );
        findings.found(window.sequence, window.to, what);
    }

    /// Who ran on the context in windows, and on what threads of partitions ran.
    fn runs(&self, findings: &mut Findings<'_>, timeline: &Timeline) {
        let Some(first) = self.windows.first() else {
            return;
        };
        let runs = timeline.executions.iter();
        for run in runs.filter(|run| run.from >= first.from) {
            let owner = self.threads.get(&run.thread);
            if run.context != self.context {
                if let Some(Some(_)) = owner {
                    let what = format!(
                        "`{}` runs on the time of `{}`, and not on that of its partition",
                        findings.name(run.thread),
                        findings.name(run.context)
                    );
                    findings.found_in(run, run.from, what);
                }
                continue;
            }
            let next = self.windows.partition_point(|window| window.to <= run.from);
            let inside = self
                .windows
                .get(next)
                .filter(|window| window.from <= run.from);
            let partition =
                inside.map(|window| self.frame.windows[window.index].partition as usize);
            let what = match (owner, partition) {
                // The main thread, between windows.
                (None, None) | (Some(None), Some(_)) => continue,
                (Some(Some(owner)), Some(partition)) if *owner == partition => continue,
                (_, Some(_)) => format!(
                    "`{}` runs in a window of `{}`",
                    findings.name(run.thread),
                    inside.map_or("", |window| self.name(window))
                ),
                (Some(_), None) => format!(
                    "`{}` runs on the time of `{}`, which is in no window",
                    findings.name(run.thread),
                    self.plan.scheduler
                ),
            };
            findings.found_in(run, run.from, what);
        }
    }
}
