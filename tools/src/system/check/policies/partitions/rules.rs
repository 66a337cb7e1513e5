//! What partitions, their threads and their frames must say.

use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_description::policy::partitions::{
    granule, MOST_GRANULES, MOST_PARTITIONS, MOST_THREADS,
};

use super::super::super::super::document::{
    self, Frame, Partition, PartitionOrder, PartitionThread, Partitioning, Text, ThreadKind,
};
use super::super::super::super::findings::{Finding, Span};
use super::super::super::super::quantity::Micros;
use super::super::super::super::spanned::Spanned;
use super::super::super::names::help_with;
use super::super::super::{text, Checker};
use super::{micros, threads_of, LONGEST_US};

/// Shortest window, budget and slice, µs: several times what a switch takes.
const SHORTEST_US: u64 = MIN_BUDGET_US;

impl<'a> Checker<'a> {
    pub(super) fn partition_rules(&mut self, partitioning: &'a Partitioning) {
        let document = self.document;
        let partitions = &document.partitions;
        if partitions.is_empty() {
            self.found(
                Finding::new(partitioning.name.span(), "there are no partitions")
                    .help("add a `[[partition]]` with `name` and `threads`"),
            );
        }
        if let Some(more) = partitions.get(MOST_PARTITIONS) {
            self.found(
                Finding::new(more.name.span(), format!("{} partitions", partitions.len()))
                    .label(format!("a system can have {MOST_PARTITIONS}")),
            );
        }
        let names = || partitions.iter().map(|partition| &partition.name);
        self.partition_names("partition", &names().collect::<Vec<_>>());
        let frames: Vec<&Text> = document.frames.iter().map(|frame| &frame.name).collect();
        self.partition_names("frame", &frames);
        self.partition_time("slice", partitioning.slice.as_ref());
        self.partition_time("`finish`", partitioning.finish.as_ref());
        let order = *partitioning.order.get_ref();
        for partition in partitions {
            self.partition_keys(partitioning, partition);
            self.partition_threads(partitioning, partition);
        }
        self.partition_granule(
            "partitions",
            partitions
                .iter()
                .flat_map(|of| [of.period.as_ref(), of.deadline.as_ref(), of.offset.as_ref()]),
        );
        match (order, document.frames.first()) {
            (PartitionOrder::Frames, None) => self.found(
                Finding::new(partitioning.order.span(), "there is no frame")
                    .label("windows are in frames")
                    .help("add a `[[frame]]` with `name`, `length` and `windows`"),
            ),
            (PartitionOrder::Deadlines | PartitionOrder::Priorities, Some(frame)) => self.found(
                Finding::new(frame.name.span(), "no window is taken from this frame")
                    .label("has no effect")
                    .related(
                        partitioning.order.span(),
                        "windows are made from periods and budgets",
                    )
                    .help("remove it, or let frames decide: `order = \"frames\"`"),
            ),
            _ => {}
        }
        if let [first, second, ..] = document.frames.as_slice() {
            self.found(
                Finding::new(second.name.span(), "there is a frame already")
                    .label("would never take effect")
                    .related(first.name.span(), "the first")
                    .help("remove one of them"),
            );
        }
        for frame in &document.frames {
            self.partition_frame(frame);
        }
        self.supply_rules(partitioning);
    }

    fn partition_names(&mut self, what: &str, names: &[&Text]) {
        for (index, name) in names.iter().enumerate() {
            let first = names[..index]
                .iter()
                .find(|first| text(first) == text(name));
            if let Some(first) = first {
                self.found(
                    Finding::new(
                        name.span(),
                        format!("there are two {what}s `{}`", text(name)),
                    )
                    .label("the second")
                    .related(first.span(), "the first")
                    .help("give one of them another name"),
                );
            }
        }
    }

    /// A time that is long enough to be worth a switch.
    fn partition_time(&mut self, what: &str, time: Option<&Spanned<Micros>>) {
        let Some(time) = time else { return };
        let us = time.get_ref().0;
        if !(SHORTEST_US..=LONGEST_US).contains(&us) {
            self.found(
                Finding::new(time.span(), format!("a {what} of {us} µs"))
                    .label(format!("must be from {SHORTEST_US} to {LONGEST_US} µs")),
            );
        }
    }

    /// Period, deadline, offset, budget and priority of a partition.
    fn partition_keys(&mut self, partitioning: &Partitioning, partition: &Partition) {
        let name = text(&partition.name);
        let order = *partitioning.order.get_ref();
        if order == PartitionOrder::Frames {
            let times = [
                &partition.period,
                &partition.deadline,
                &partition.offset,
                &partition.budget,
            ];
            if let Some(given) = times.into_iter().flatten().next() {
                self.found(
                    Finding::new(given.span(), format!("the windows of `{name}` are in frames"))
                        .label("must not be here")
                        .related(partitioning.order.span(), "`order` says so")
                        .help("remove it; or make windows from periods and budgets: `order = \"deadlines\"`"),
                );
            }
        } else {
            self.partition_times(partition);
        }
        match (order, &partition.priority) {
            (PartitionOrder::Priorities, None) => self.found(
                Finding::new(partition.name.span(), format!("`{name}` has no priority"))
                    .help("give it a `priority` among the partitions, from 0 to 255, the highest"),
            ),
            (PartitionOrder::Priorities, priority) => {
                self.in_range("priority", priority.as_ref(), 0..=255, 0);
            }
            (_, Some(priority)) => self.found(
                Finding::new(
                    priority.span(),
                    format!("the priority of `{name}` has no effect"),
                )
                .label("must not be here")
                .related(partitioning.order.span(), "`order` says who comes first")
                .help("remove it, or let priorities decide: `order = \"priorities\"`"),
            ),
            _ => {}
        }
    }

    fn partition_times(&mut self, partition: &Partition) {
        let name = text(&partition.name);
        let (Some(period), Some(budget)) = (&partition.period, &partition.budget) else {
            let missing = if partition.period.is_none() {
                "period"
            } else {
                "budget"
            };
            self.found(
                Finding::new(partition.name.span(), format!("`{name}` has no {missing}"))
                    .label("never gets a window")
                    .help("give it `period` and `budget`, or its windows a table: `order = \"frames\"`"),
            );
            return;
        };
        self.partition_time("period", Some(period));
        self.partition_time("budget", Some(budget));
        let period_us = period.get_ref().0;
        let deadline = partition.deadline.as_ref().unwrap_or(period);
        let deadline_us = deadline.get_ref().0;
        if deadline_us == 0 || deadline_us > period_us {
            self.found(
                Finding::new(deadline.span(), format!("a deadline of {deadline_us} µs"))
                    .label(format!("must be from 1 µs to the period, {period_us} µs"))
                    .related(period.span(), "the period"),
            );
        } else if budget.get_ref().0 > deadline_us {
            self.found(
                Finding::new(
                    budget.span(),
                    format!(
                        "a budget of {} µs within {deadline_us} µs",
                        budget.get_ref().0
                    ),
                )
                .label(format!("must be at most the deadline, {deadline_us} µs"))
                .related(deadline.span(), "the deadline"),
            );
        }
        let offset = micros(partition.offset.as_ref());
        if let Some(given) = partition.offset.as_ref().filter(|_| offset > period_us) {
            self.found(
                Finding::new(given.span(), format!("an offset of {offset} µs"))
                    .label(format!("must be at most the period, {period_us} µs")),
            );
        }
    }

    /// Whether times are multiples of something that is not much shorter.
    fn partition_granule<'t>(
        &mut self,
        whose: &str,
        times: impl Iterator<Item = Option<&'t Spanned<Micros>>>,
    ) {
        let times: Vec<&Spanned<Micros>> = times.flatten().collect();
        let granule = granule(times.iter().map(|time| time.get_ref().0));
        let longest = times.iter().max_by_key(|time| time.get_ref().0);
        let Some(longest) = longest.filter(|time| time.get_ref().0 / granule > MOST_GRANULES)
        else {
            return;
        };
        self.found(
            Finding::new(
                longest.span(),
                format!("all times of {whose} have in common only that they are multiples of {granule} µs"),
            )
            .label(format!("must be at most {MOST_GRANULES} times as long"))
            .help("choose periods, deadlines and offsets that are multiples of a longer time"),
        );
    }

    fn partition_threads(&mut self, partitioning: &Partitioning, partition: &Partition) {
        let threads = partition.threads.get_ref();
        if threads.is_empty() {
            self.found(
                Finding::new(
                    partition.threads.span(),
                    format!("`{}` has no threads", text(&partition.name)),
                )
                .help("name them: `threads = [{ component = \"...\", kind = \"best-effort\" }]`"),
            );
        }
        if let Some(more) = threads.get(MOST_THREADS) {
            self.found(
                Finding::new(more.component.span(), format!("{} threads", threads.len()))
                    .label(format!("a partition can have {MOST_THREADS}")),
            );
        }
        for thread in threads {
            self.partition_thread(thread);
            self.partition_component(partitioning, thread);
        }
        let whose = format!("the threads of `{}`", text(&partition.name));
        let times = threads
            .iter()
            .flat_map(|of| [of.period.as_ref(), of.offset.as_ref(), of.interval.as_ref()]);
        self.partition_granule(&whose, times);
    }

    /// The keys of a thread, which depend on its kind.
    fn partition_thread(&mut self, thread: &PartitionThread) {
        let kind = *thread.kind.get_ref();
        let named = |what| (what, thread.kind.span());
        let spans = [
            ("priority", thread.priority.as_ref().map(Spanned::span)),
            ("period", thread.period.as_ref().map(Spanned::span)),
            ("offset", thread.offset.as_ref().map(Spanned::span)),
            ("interval", thread.interval.as_ref().map(Spanned::span)),
            ("arrivals", thread.arrivals.first().map(Spanned::span)),
        ];
        let (called, needed, allowed): (_, &[&str], &[&str]) = match kind {
            ThreadKind::Periodic => ("periodic", &["priority", "period"], &["offset"]),
            ThreadKind::Sporadic => ("sporadic", &["priority", "interval"], &["arrivals"]),
            ThreadKind::BestEffort => ("of best effort", &[], &["arrivals"]),
        };
        for (key, given) in spans {
            match given {
                None if needed.contains(&key) => self.thread_key_missing(thread, key, called),
                Some(span) if !needed.contains(&key) && !allowed.contains(&key) => {
                    self.thread_key_unused(span, named(key), called);
                }
                _ => {}
            }
        }
        self.in_range("priority", thread.priority.as_ref(), 0..=255, 0);
        self.partition_time("period", thread.period.as_ref());
        self.partition_time("interval", thread.interval.as_ref());
    }

    fn thread_key_missing(&mut self, thread: &PartitionThread, key: &str, called: &str) {
        let name = text(&thread.component);
        self.found(
            Finding::new(thread.component.span(), format!("`{name}` has no `{key}`"))
                .label(format!("a thread that is {called} has one"))
                .related(thread.kind.span(), "its kind"),
        );
    }

    fn thread_key_unused(&mut self, given: Span, (key, kind): (&str, Span), called: &str) {
        self.found(
            Finding::new(given, format!("a thread that is {called} has no `{key}`"))
                .label("must not be here")
                .related(kind, "its kind"),
        );
    }

    /// What a thread's component must be.
    fn partition_component(&mut self, partitioning: &Partitioning, thread: &PartitionThread) {
        let name = text(&thread.component);
        let Some(index) = self.names.component(name) else {
            return;
        };
        let component = &self.document.components[index];
        let (own, highest) = (
            *component.priority.get_ref(),
            *partitioning.priority.get_ref(),
        );
        if own >= highest {
            self.found(
                Finding::new(
                    component.priority.span(),
                    format!("`{name}` would delay its scheduler"),
                )
                .label(format!("must be below {highest}"))
                .related(partitioning.priority.span(), "the scheduler's priority"),
            );
        }
        let mut tasks = self.document.edf.iter().flat_map(|edf| edf.tasks.get_ref());
        if let Some(task) = tasks.find(|task| text(&task.component) == name) {
            self.found(
                Finding::new(
                    thread.component.span(),
                    format!("`{name}` is a task of an `[[edf]]`, too"),
                )
                .label("must not be both")
                .related(task.component.span(), "the task")
                .help("one scheduler decides when a thread runs: remove it from the other"),
            );
        }
        if let Some(other) = component.threads.first() {
            self.found(
                Finding::new(other.name.span(), format!("`{name}` is a thread of a partition, and has others"))
                    .label("would run outside its windows")
                    .related(thread.component.span(), "a thread of a partition")
                    .help("make the other thread a component of its own, and name it among the partition's threads"),
            );
        }
        // Where time is supplied, a thread calls none at all, which is checked there.
        let may_finish = partitioning.finish.is_some() || partitioning.time.is_some();
        if self.calls_other_servers(partitioning, name) && !may_finish {
            self.found(
                Finding::new(
                    thread.component.span(),
                    format!("a request of `{name}` may be in service when its window ends"),
                )
                .label("calls a server")
                .related(partitioning.name.span(), "its scheduler")
                .help("say in `[partitions]` how long it may still take: `finish = \"100us\"`"),
            );
        }
    }

    fn partition_frame(&mut self, frame: &Frame) {
        self.partition_time("frame", Some(&frame.length));
        let length = frame.length.get_ref().0;
        let windows = frame.windows.get_ref();
        if windows.is_empty() {
            self.found(
                Finding::new(frame.windows.span(), format!("`{}` has no windows", text(&frame.name)))
                    .help("name them: `windows = [{ partition = \"...\", at = \"0ms\", length = \"5ms\" }]`"),
            );
        }
        let mut end = 0;
        for window in windows {
            self.frame_window(window, end, length);
            end = window
                .at
                .get_ref()
                .0
                .saturating_add(window.length.get_ref().0);
        }
    }

    fn frame_window(&mut self, window: &document::FrameWindow, earliest: u64, latest: u64) {
        let known = || self.document.partitions.iter().map(|of| text(&of.name));
        let name = text(&window.partition);
        if !known().any(|known| known == name) {
            let help = help_with("partition", name, known());
            self.found(
                Finding::new(
                    window.partition.span(),
                    format!("no partition is called `{name}`"),
                )
                .label("unknown partition")
                .help(help),
            );
        }
        self.partition_time("window", Some(&window.length));
        let (at, length) = (window.at.get_ref().0, window.length.get_ref().0);
        if at < earliest {
            self.found(
                Finding::new(window.at.span(), format!("the window begins at {at} µs"))
                    .label(format!(
                        "must be {earliest} µs or later, when the window before it ends"
                    ))
                    .help("windows are listed in order of time, and do not overlap"),
            );
        } else if at.saturating_add(length) > latest {
            self.found(
                Finding::new(
                    window.length.span(),
                    format!("the window ends at {} µs", at.saturating_add(length)),
                )
                .label(format!("must end by {latest} µs, the length of the frame")),
            );
        }
    }

    /// The servers that partitions' threads call are above all of these and their watcher, and below the scheduler.
    pub(super) fn partition_servers(&mut self, partitioning: &Partitioning) {
        let document = self.document;
        let threads = threads_of(&document.partitions);
        let threads = threads.filter_map(|thread| self.names.component(text(&thread.component)));
        let callers: std::collections::BTreeSet<usize> = threads.collect();
        let highest = *partitioning.priority.get_ref();
        let priorities = callers
            .iter()
            .map(|&of| *document.components[of].priority.get_ref());
        // One that is not below the scheduler has been found to be wrong.
        let lowest = priorities.filter(|own| *own < highest).max().unwrap_or(0) + 1;
        for server in self.passive_servers_of(&callers) {
            let server = &document.components[server];
            let own = *server.priority.get_ref();
            if text(&server.name) != super::SERVICE && !(lowest + 1..highest).contains(&own) {
                self.found(
                    Finding::new(
                        server.priority.span(),
                        format!("`{}` serves threads of partitions", text(&server.name)),
                    )
                    .label(format!("must be above {lowest}, and below {highest}"))
                    .related(partitioning.priority.span(), "the scheduler's priority")
                    .help("a thread of the scheduler runs between the partitions' threads and their servers"),
                );
            }
        }
    }
}
