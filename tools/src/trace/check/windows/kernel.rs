//! What the kernel recorded of who ran, beside the windows.

use std::collections::BTreeMap;

use super::{Plan, Window};
use crate::trace::check::Findings;
use crate::trace::record::Object;
use crate::trace::timeline::{Execution, Timeline};

pub fn check(
    findings: &mut Findings<'_>,
    plan: &Plan,
    timeline: &Timeline,
    origin: u64,
    contexts: &BTreeMap<Object, usize>,
    windows: &[Window],
) {
    let threads = threads(findings, plan, timeline);
    let of_partition = windows_of(plan, windows);
    let mut consumed: BTreeMap<(usize, u32), u64> = BTreeMap::new();
    let runs = timeline.executions.iter();
    for run in runs.filter(|run| run.from >= origin) {
        let thread = threads.get(&run.thread).copied();
        let context = contexts.get(&run.context).copied();
        if thread.is_some() && thread != context {
            let what = format!(
                "`{}` runs on the time of `{}`, and not on that of its partition `{}`",
                findings.name(run.thread),
                findings.name(run.context),
                name(plan, thread)
            );
            findings.found_in(run, run.from, what);
        }
        let Some(partition) = context else { continue };
        within(
            findings,
            plan,
            run,
            &of_partition[partition],
            thread.is_some(),
        );
        for window in overlapping(&of_partition[partition], run.from, run.to) {
            let ran = run.to.min(window.to) - run.from.max(window.from);
            *consumed.entry((partition, window.sequence)).or_default() += ran;
        }
    }
    for (partition, windows) in of_partition.iter().enumerate() {
        budgets(findings, plan, partition, windows, &consumed);
    }
}

fn name(plan: &Plan, partition: Option<usize>) -> &str {
    partition.map_or("", |partition| &plan.partitions.partitions[partition].name)
}

/// Whose each thread is.
fn threads(findings: &Findings<'_>, plan: &Plan, timeline: &Timeline) -> BTreeMap<Object, usize> {
    let partition_of = |thread: Object| {
        let name = findings.name(thread);
        let mut partitions = plan.partitions.partitions.iter();
        partitions.position(|of| of.threads.iter().any(|thread| thread.name == name))
    };
    let threads = timeline.threads().into_iter();
    threads
        .filter_map(|thread| Some((thread, partition_of(thread)?)))
        .collect()
}

/// The windows of each partition, in their order.
fn windows_of(plan: &Plan, windows: &[Window]) -> Vec<Vec<Window>> {
    let mut of_partition = vec![Vec::new(); plan.partitions.partitions.len()];
    for window in windows {
        of_partition[window.partition].push(*window);
    }
    of_partition
}

/// The windows that have something of a stretch of time.
fn overlapping(windows: &[Window], from: u64, to: u64) -> impl Iterator<Item = &Window> {
    let first = windows.partition_point(|window| window.to <= from);
    windows[first..]
        .iter()
        .take_while(move |window| window.from < to)
}

/// A partition's context is consumed within its windows; by its own threads until the end that was planned, and an edge
/// more.
fn within(
    findings: &mut Findings<'_>,
    plan: &Plan,
    run: &Execution,
    windows: &[Window],
    is_own_thread: bool,
) {
    let mut at = run.from;
    for window in overlapping(windows, run.from, run.to) {
        if at < window.from {
            break;
        }
        at = window.to.min(run.to);
        let still = findings
            .standstill
            .within(run.core, window.until, run.to.max(window.until));
        let latest = window.until + findings.longest_path() + still;
        if is_own_thread && at > latest {
            let what = format!(
                "`{}` runs for {:.3} µs after the end of the window of `{}`: only a server may",
                findings.name(run.thread),
                findings.history.us(at - window.until),
                name(plan, Some(window.partition))
            );
            findings.found_in(run, at, what);
        }
    }
    if at < run.to {
        let what = format!(
            "`{}` runs on the time of the partition `{}` for {:.3} µs, and that has no window then",
            findings.name(run.thread),
            findings.name(run.context),
            findings.history.us(run.to - at)
        );
        findings.found_in(run, at, what);
    }
}

/// In the windows of one number, a partition consumes no more than its budget, and what it was charged for them.
fn budgets(
    findings: &mut Findings<'_>,
    plan: &Plan,
    partition: usize,
    windows: &[Window],
    consumed: &BTreeMap<(usize, u32), u64>,
) {
    let budget = plan.budget_us(partition) * findings.history.per_us;
    let same = |a: &Window, b: &Window| a.number == b.number;
    for windows in windows.chunk_by(same) {
        let ran = windows
            .iter()
            .map(|window| consumed.get(&(partition, window.sequence)).unwrap_or(&0));
        let ran: u64 = ran.sum();
        let charged: u64 = windows.iter().map(|window| window.overrun).sum();
        // The last one is not over.
        let slack = findings.longest_path();
        let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
            continue;
        };
        let still = findings
            .standstill
            .within(plan.partitions.core as u8, first.from, last.to);
        if ran > budget + charged + slack + still {
            let history = findings.history;
            let what = format!(
                "`{}` has had {:.3} µs for its budget of {:.3} µs, and is charged {:.3} µs",
                name(plan, Some(partition)),
                history.us(ran),
                history.us(budget),
                history.us(charged)
            );
            findings.found(last.sequence, last.to, what);
        }
    }
}

impl Plan {
    /// What a partition has in a period, or in a frame.
    fn budget_us(&self, partition: usize) -> u64 {
        use sandglass_description::policy::partitions::Form;
        match &self.partitions.form {
            Form::Deadlines | Form::Priorities => self.partitions.partitions[partition].budget_us,
            Form::Frames(frames) => {
                let windows = frames.iter().flat_map(|frame| &frame.windows);
                let own = windows.filter(|window| window.partition as usize == partition);
                own.map(|window| window.length_us).sum()
            }
        }
    }
}
