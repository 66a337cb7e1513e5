//! Partitions have the processor in their windows, by the described plan, and nowhere else; and whoever overran is charged.
//!
//! What the scheduler marks is compared with the plan ([`plan`]), which is followed from when windows really ended, and
//! with what the kernel recorded:
//!
//! - marks count only while the scheduler runs, and the time that a mark names is one at which it ran just before;
//! - a window begins and ends when the plan says so, later by an *edge* at most: the longest kernel path; and `finish` and
//!   an edge more, if the partition before it calls servers. Time of threads above the scheduler is allowed for;
//! - it is of the partition that the plan says, with the number of its release or of its frame, and no longer than what its
//!   partition has;
//! - who had more than its window is charged exactly that;
//! - a partition's context is consumed only in its windows, and its threads run on no other; after the end of a window that
//!   was planned, they run no longer than an edge: only a server may;
//! - in the windows of one number, a partition consumes no more than its budget and what it was charged.
//!
//! Of windows in time that a time manager supplies, [`supplied`] tells.

mod kernel;
mod plan;
mod supplied;

use std::collections::BTreeMap;

use sandglass_description::policy::partitions::Partitions;

use self::plan::{Course, Step};
use super::Findings;
use crate::trace::record::{Event, Mark, Object, Record};
use crate::trace::timeline::Timeline;

/// What is described of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The name of the scheduler.
    pub scheduler: String,
    pub partitions: Partitions,
}

/// A window that the scheduler marked. Times in ticks.
#[derive(Debug, Clone, Copy)]
struct Window {
    partition: usize,
    context: Object,
    /// Modulo 256.
    number: u8,
    from: u64,
    /// When it was to end at the latest.
    until: u64,
    to: u64,
    /// What it was charged.
    overrun: u64,
    /// The record that began it.
    sequence: u32,
}

/// What was marked of one decision.
#[derive(Debug, Clone, Copy)]
struct Claim {
    at: u64,
    /// Context, number and end of the window that begins.
    window: Option<(Object, u8, u64)>,
    /// Who is charged, and how much.
    overrun: Option<(Object, u64)>,
}

pub fn check(findings: &mut Findings<'_>, plan: &Plan) {
    if plan.partitions.manager.is_some() {
        return supplied::check(findings, plan);
    }
    let timeline = Timeline::of(findings.history);
    let mut follower = Follower {
        plan,
        priorities: priorities(findings),
        timeline: &timeline,
        course: None,
        origin: None,
        running: BTreeMap::new(),
        overrun: None,
        windows: Vec::new(),
        current: None,
        contexts: BTreeMap::new(),
    };
    for record in &findings.history.records {
        follower.follow(findings, record);
    }
    follower.finish(findings);
    let Some(origin) = follower.origin else {
        return;
    };
    kernel::check(
        findings,
        plan,
        &timeline,
        origin,
        &follower.contexts,
        &follower.windows,
    );
}

/// The highest priority with which each thread ran.
fn priorities(findings: &Findings<'_>) -> BTreeMap<Object, u8> {
    let mut priorities = BTreeMap::new();
    for record in &findings.history.records {
        if let Event::Switch {
            thread, priority, ..
        } = record.event
        {
            let highest = priorities.entry(thread).or_insert(priority);
            *highest = priority.max(*highest);
        }
    }
    priorities
}

/// Follows the scheduler's marks.
struct Follower<'a> {
    plan: &'a Plan,
    priorities: BTreeMap<Object, u8>,
    timeline: &'a Timeline,
    /// `None` until it is said from when on the plan counts, and after a window that it does not know.
    course: Option<Course>,
    /// When that was said.
    origin: Option<u64>,
    /// The thread of each core.
    running: BTreeMap<u8, Object>,
    /// Marked, and not part of a decision yet: time, context, ticks, record.
    overrun: Option<(u64, Object, u64, u32)>,
    windows: Vec<Window>,
    current: Option<Window>,
    /// Whose each context is.
    contexts: BTreeMap<Object, usize>,
}

impl Follower<'_> {
    fn follow(&mut self, findings: &mut Findings<'_>, record: &Record) {
        match record.event {
            Event::Switch { thread, .. } => {
                self.running.insert(record.core, thread);
            }
            Event::Mark { subject, mark } if self.is_by_scheduler(findings, record) => {
                self.marked(findings, record, subject, mark);
            }
            _ => {}
        }
    }

    /// Anybody can make marks.
    fn is_by_scheduler(&self, findings: &Findings<'_>, record: &Record) -> bool {
        let running = self.running.get(&record.core);
        running.is_some_and(|&thread| findings.name(thread) == self.plan.scheduler)
    }

    fn marked(
        &mut self,
        findings: &mut Findings<'_>,
        record: &Record,
        subject: Object,
        mark: Mark,
    ) {
        let (at, window) = match mark {
            Mark::Origin { at } => return self.begin(findings, record, at),
            Mark::Overrun { at, ticks } => {
                self.drop_overrun(findings);
                self.overrun = Some((at, subject, ticks, record.sequence));
                return;
            }
            Mark::Window { number, at, until } => (at, Some((subject, number, until))),
            Mark::WindowEnd { at } => (at, None),
            _ => return,
        };
        let overrun = self.overrun.take_if(|overrun| overrun.0 == at);
        self.drop_overrun(findings);
        let claim = Claim {
            at,
            window,
            overrun: overrun.map(|(_, context, ticks, _)| (context, ticks)),
        };
        self.decided(findings, record, &claim);
    }

    /// The plan counts from `at`.
    fn begin(&mut self, findings: &mut Findings<'_>, record: &Record, at: u64) {
        if self.origin.is_some() || at < record.time {
            let what = format!(
                "`{}` lets its plan count from {:.3} µs, {}",
                self.plan.scheduler,
                findings.history.ns(at) as f64 / 1000.0,
                match self.origin {
                    Some(_) => "and has counted before",
                    None => "which is past",
                }
            );
            findings.found(record.sequence, record.time, what);
            return;
        }
        self.origin = Some(record.time);
        self.course = Course::of(&self.plan.partitions, at, findings.history.per_us);
    }

    /// An overrun that belongs to no decision.
    fn drop_overrun(&mut self, findings: &mut Findings<'_>) {
        if let Some((at, context, ticks, sequence)) = self.overrun.take() {
            let what = format!(
                "`{}` is charged an overrun of {:.3} µs, and no window ends then",
                findings.name(context),
                findings.history.us(ticks)
            );
            findings.found(sequence, at, what);
        }
    }

    fn decided(&mut self, findings: &mut Findings<'_>, record: &Record, claim: &Claim) {
        let latest = findings.longest_path() + self.excused(findings, claim.at, record.time);
        if claim.at > record.time || record.time - claim.at > latest {
            let what = format!(
                "`{}` says that it decided at {:.3} µs",
                self.plan.scheduler,
                findings.history.ns(claim.at) as f64 / 1000.0
            );
            findings.found(record.sequence, record.time, what);
        }
        let partition = claim.window.and_then(|(context, ..)| {
            let partition = self.partition_of(findings, context);
            if partition.is_none() {
                let what = format!(
                    "a window begins on the context of `{}`, which is no partition",
                    findings.name(context)
                );
                findings.found(record.sequence, record.time, what);
            }
            partition
        });
        self.compare(findings, record, claim, partition);
        self.change(record, claim, partition);
    }

    /// The partition with a context, which has its name.
    fn partition_of(&mut self, findings: &Findings<'_>, context: Object) -> Option<usize> {
        let name = findings.name(context);
        let mut partitions = self.plan.partitions.partitions.iter();
        let partition = partitions.position(|partition| partition.name == name)?;
        self.contexts.insert(context, partition);
        Some(partition)
    }

    /// Compares a decision with the plan. If it names another partition than that, the plan is followed no more.
    fn compare(
        &mut self,
        findings: &mut Findings<'_>,
        record: &Record,
        claim: &Claim,
        partition: Option<usize>,
    ) {
        let Some(mut course) = self.course.take() else {
            return;
        };
        findings.looked().partition_windows += u64::from(claim.window.is_some());
        self.on_time(findings, record.sequence, claim.at, course.changes_at());
        let step = course.go_on(claim.at, partition);
        self.charged(findings, record, claim, &step);
        let is_right = self.is_planned(findings, record, claim, partition, &step);
        self.course = is_right.then_some(course);
    }

    /// The window changes when it is to change.
    fn on_time(&self, findings: &mut Findings<'_>, sequence: u32, at: u64, due: Option<u64>) {
        let Some(due) = due else { return };
        let history = findings.history;
        let before = self.current.map(|window| window.partition);
        if at < due {
            let what = format!(
                "the window {} changes {:.3} µs before its time",
                self.called(before),
                history.us(due - at)
            );
            findings.found(sequence, at, what);
            return;
        }
        let allowed = self.edge(findings, before) + self.excused(findings, due, at);
        if at - due > allowed {
            let what = format!(
                "the window {} changes {:.3} µs after its time; at most {:.3} µs would be right",
                self.called(before),
                history.us(at - due),
                history.us(allowed)
            );
            findings.found(sequence, at, what);
        }
    }

    fn called(&self, partition: Option<usize>) -> String {
        partition.map_or("of nobody".to_owned(), |partition| {
            format!("of `{}`", self.plan.partitions.partitions[partition].name)
        })
    }

    /// How late a change may be, in ticks, at the end of a partition's window.
    fn edge(&self, findings: &Findings<'_>, before: Option<usize>) -> u64 {
        let partitions = &self.plan.partitions;
        let serves = before.is_some_and(|of| partitions.partitions[of].calls_servers);
        let finish = partitions.bound_us.filter(|_| serves);
        let finish = finish.map_or(0, |us| {
            us * findings.history.per_us + findings.longest_path()
        });
        findings.longest_path() + finish
    }

    /// For how long threads above the scheduler ran, and how long the core stood still.
    fn excused(&self, findings: &Findings<'_>, from: u64, to: u64) -> u64 {
        let core = self.plan.partitions.core as u8;
        let scheduler = self.priorities.iter();
        let mut own = scheduler.filter(|(&thread, _)| findings.name(thread) == self.plan.scheduler);
        let own = own.next().map_or(u8::MAX, |(_, &priority)| priority);
        let runs = &self.timeline.executions;
        let first = runs.partition_point(|run| run.from + findings.longest_path() * 100 < from);
        let above = runs[first..].iter().take_while(|run| run.from < to);
        let above = above.filter(|run| {
            let priority = self.priorities.get(&run.thread).copied();
            run.core == core && priority.unwrap_or(0) > own
        });
        let ran = above.map(|run| run.to.min(to).saturating_sub(run.from.max(from)));
        ran.sum::<u64>() + findings.standstill.within(core, from, to)
    }

    /// Who overran is charged, and nobody else.
    fn charged(
        &mut self,
        findings: &mut Findings<'_>,
        record: &Record,
        claim: &Claim,
        step: &Step,
    ) {
        let claimed = claim
            .overrun
            .map(|(context, ticks)| (self.partition_of(findings, context), ticks));
        let history = findings.history;
        let what = match (step.overrun, claimed) {
            (None, None) => return,
            (Some((partition, ticks)), None) => format!(
                "the window {} was {:.3} µs too long, and that is not charged",
                self.called(Some(partition)),
                history.us(ticks)
            ),
            (Some((partition, ticks)), Some((charged, by))) => {
                if charged == Some(partition) && by == ticks {
                    return;
                }
                format!(
                    "the window {} was {:.3} µs too long, but {:.3} µs are charged to that {}",
                    self.called(Some(partition)),
                    history.us(ticks),
                    history.us(by),
                    self.called(charged)
                )
            }
            (None, Some((charged, by))) => format!(
                "{:.3} µs are charged to the window {}, and none was too long",
                history.us(by),
                self.called(charged)
            ),
        };
        findings.found(record.sequence, record.time, what);
    }

    /// It is the planned window; whether it is of the right partition.
    fn is_planned(
        &self,
        findings: &mut Findings<'_>,
        record: &Record,
        claim: &Claim,
        partition: Option<usize>,
        step: &Step,
    ) -> bool {
        let planned = step.turn.map(|turn| turn.partition);
        if planned != partition {
            let what = format!(
                "the window {} begins, but it is to be that {}; what comes after it is not compared",
                self.called(partition),
                self.called(planned)
            );
            findings.found(record.sequence, record.time, what);
            return false;
        }
        let (Some(turn), Some((_, number, until))) = (step.turn, claim.window) else {
            return true;
        };
        if turn.number % 256 != u64::from(number) {
            let what = format!(
                "the window {} has the number {number}, but it is to be {} (modulo 256)",
                self.called(partition),
                turn.number % 256
            );
            findings.found(record.sequence, record.time, what);
        }
        if turn.until != until {
            let history = findings.history;
            let what = format!(
                "the window {} is to last {:.3} µs, but its partition has {:.3} µs",
                self.called(partition),
                history.us(until.saturating_sub(claim.at)),
                history.us(turn.until - claim.at)
            );
            findings.found(record.sequence, record.time, what);
        }
        true
    }

    /// The next window.
    fn change(&mut self, record: &Record, claim: &Claim, partition: Option<usize>) {
        self.end(claim.at, claim.overrun);
        let window = partition.zip(claim.window);
        self.current = window.map(|(partition, (context, number, until))| Window {
            partition,
            context,
            number,
            from: claim.at,
            until,
            to: claim.at,
            overrun: 0,
            sequence: record.sequence,
        });
    }

    fn end(&mut self, at: u64, overrun: Option<(Object, u64)>) {
        let ended = self.current.take().map(|window| Window {
            to: at,
            overrun: overrun
                .filter(|&(context, _)| context == window.context)
                .map_or(0, |(_, ticks)| ticks),
            ..window
        });
        self.windows.extend(ended);
    }

    /// The trace ends.
    fn finish(&mut self, findings: &mut Findings<'_>) {
        self.drop_overrun(findings);
        let end = findings.history.end();
        let last = findings.history.records.last();
        let due = self.course.as_ref().and_then(Course::changes_at);
        if let (Some(due), Some(last)) = (due.filter(|&due| due < end), last) {
            self.on_time(findings, last.sequence, end, Some(due));
        }
        self.end(end, None);
    }
}
