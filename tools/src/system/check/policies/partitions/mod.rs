//! `[partitions]`, `[[partition]]` and `[[frame]]`: threads that run in their partition's windows
//! (`user/policies/partitions`).
//!
//! The tables stand for a component, the scheduler, with an endpoint that threads call and a timer of the service
//! ([`expand`]); [`rules`] are what they must say, [`admission`] whether every partition gets its budget.

mod admission;
mod expand;
mod rules;
mod supply;

use sandglass_description::policy::partitions::{
    names, Form, Frame, Kind, Partition, Partitions, Thread, Window,
};
use sandglass_description::policy::timers::SERVICE;
use sandglass_description::policy::Table;
use sandglass_description::Object;

use super::super::super::document::{self, PartitionOrder, PartitionThread, ThreadKind};
use super::super::super::quantity::Micros;
use super::super::super::spanned::Spanned;
use super::super::names::ThreadIndex;
use super::super::{text, Checker};
use crate::trace::check::Plan;

pub use expand::expand;

/// Longest period, µs: an hour.
const LONGEST_US: u64 = 3_600_000_000;
/// How long a thread of best effort runs if another one waits, µs, unless it is said.
const SLICE_US: u64 = 1_000;

/// All threads, partition by partition.
fn threads_of(partitions: &[document::Partition]) -> impl Iterator<Item = &PartitionThread> {
    partitions
        .iter()
        .flat_map(|partition| partition.threads.get_ref())
}

/// µs; 0 if it is not given.
fn micros(given: Option<&Spanned<Micros>>) -> u64 {
    given.map_or(0, |given| given.get_ref().0)
}

/// A number that [`rules`] checked; 0 if it is not given.
fn byte(given: Option<&document::Integer>) -> u8 {
    let given = given.map(|given| u8::try_from(*given.get_ref()));
    given.and_then(Result::ok).unwrap_or(0)
}

impl Checker<'_> {
    /// Checks the partitions, and gives their scheduler its table.
    pub(super) fn partitions(&mut self) {
        let document = self.document;
        let Some(partitioning) = &document.partitioning else {
            return;
        };
        let before = self.findings.len();
        self.partition_rules(partitioning);
        self.partition_servers(partitioning);
        let Some(scheduler) = self.names.component(text(&partitioning.name)) else {
            return;
        };
        if self.findings.len() > before {
            return;
        }
        let span = partitioning.name.span();
        let threads = threads_of(&document.partitions).count();
        let replies = threads + if partitioning.time.is_some() { 3 } else { 1 };
        for index in 0..replies {
            // A reply object comes with an endpoint; this one's endpoint stays unused.
            let reply = Object::Reply(self.new_endpoint());
            let name = names::reply(index);
            self.equipment[scheduler].add_capability(&name, reply, &span, &mut self.findings);
        }
        let table = self.partition_table(partitioning, scheduler);
        if partitioning.time.is_some() {
            self.end_windows(partitioning, scheduler);
            self.supply_admission(partitioning, &table);
        } else {
            self.partition_admission(partitioning, &table);
        }
        self.give_table(scheduler, Partitions::NAME, &table, &span);
        self.windows = Some(Plan {
            scheduler: text(&partitioning.name).to_owned(),
            partitions: table,
        });
    }

    /// Whether the thread of a component calls a server that is neither its scheduler nor the timer service, which is above
    /// that.
    fn calls_other_servers(&self, partitioning: &document::Partitioning, component: &str) -> bool {
        let own = [text(&partitioning.name), SERVICE];
        self.servers_of(component)
            .any(|server| !own.contains(&server))
    }

    fn servers_of<'s>(&'s self, component: &'s str) -> impl Iterator<Item = &'s str> {
        let called = self.document.endpoints.iter().filter(move |endpoint| {
            let mut clients = endpoint.clients.iter();
            clients.any(|client| text(&client.component) == component)
        });
        called.filter_map(|endpoint| endpoint.server.as_ref().map(text))
    }

    fn partition_table(
        &mut self,
        partitioning: &document::Partitioning,
        scheduler: usize,
    ) -> Partitions {
        let document = self.document;
        let partitions = document.partitions.iter();
        let partitions = partitions.map(|partition| self.lower_partition(partitioning, partition));
        let partitions = partitions.collect();
        let form = match partitioning.order.get_ref() {
            PartitionOrder::Deadlines => Form::Deadlines,
            PartitionOrder::Priorities => Form::Priorities,
            PartitionOrder::Frames => Form::Frames(
                document
                    .frames
                    .iter()
                    .map(|frame| self.lower_frame(frame))
                    .collect(),
            ),
        };
        Partitions {
            core: self.threads[scheduler][0].time.core,
            form,
            partitions,
            slice_us: partitioning
                .slice
                .as_ref()
                .map_or(SLICE_US, |slice| slice.get_ref().0),
            bound_us: partitioning
                .finish
                .as_ref()
                .map(|finish| finish.get_ref().0),
            manager: partitioning.time.as_ref().map(|time| text(time).to_owned()),
        }
    }

    fn lower_partition(
        &mut self,
        partitioning: &document::Partitioning,
        partition: &document::Partition,
    ) -> Partition {
        let threads = partition.threads.get_ref();
        let first = threads
            .first()
            .and_then(|first| self.names.component(text(&first.component)));
        let badge = first.map_or(0, |component| {
            self.badge_of_time(ThreadIndex {
                component,
                thread: 0,
            })
        });
        let calls = |thread: &PartitionThread| {
            self.calls_other_servers(partitioning, text(&thread.component))
        };
        Partition {
            name: text(&partition.name).to_owned(),
            period_us: micros(partition.period.as_ref()),
            deadline_us: micros(partition.deadline.as_ref().or(partition.period.as_ref())),
            offset_us: micros(partition.offset.as_ref()),
            budget_us: micros(partition.budget.as_ref()),
            priority: byte(partition.priority.as_ref()),
            calls_servers: threads.iter().any(calls),
            threads: threads.iter().map(lower_thread).collect(),
            badge,
        }
    }

    fn lower_frame(&self, frame: &document::Frame) -> Frame {
        let windows = frame.windows.get_ref().iter().filter_map(|window| {
            let mut partitions = self.document.partitions.iter();
            // One that does not exist has been found to be missing.
            let partition = partitions.position(|of| text(&of.name) == text(&window.partition))?;
            Some(Window {
                partition: partition as u32,
                at_us: window.at.get_ref().0,
                length_us: window.length.get_ref().0,
            })
        });
        Frame {
            length_us: frame.length.get_ref().0,
            windows: windows.collect(),
        }
    }
}

fn lower_thread(thread: &PartitionThread) -> Thread {
    let priority = byte(thread.priority.as_ref());
    let kind = match thread.kind.get_ref() {
        ThreadKind::Periodic => Kind::Periodic {
            priority,
            period_us: micros(thread.period.as_ref()),
            offset_us: micros(thread.offset.as_ref()),
        },
        ThreadKind::Sporadic => Kind::Sporadic {
            priority,
            interval_us: micros(thread.interval.as_ref()),
        },
        ThreadKind::BestEffort => Kind::BestEffort,
    };
    Thread {
        name: text(&thread.component).to_owned(),
        kind,
    }
}
