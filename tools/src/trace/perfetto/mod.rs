//! The trace in Perfetto's format, which `ui.perfetto.dev` opens.
//!
//! A track for each core, on which the threads are slices; one for each thread, on which its
//! executions are, named after who pays, and what happens to it; one for its jobs, if there are any;
//! and one for what each context has left of its budget; for each partition, one with its windows and overruns; for each gate, one
//! with whom it serves, and one for each of its clients, with what that one waits for. What is lent, and given back, is a flow: an
//! arrow.

mod proto;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use prost::Message;
use sandglass_abi::trace::{Blocked, Source};

use self::proto::{
    ChildOrdering, CounterDescriptor, DebugAnnotation, Trace, TracePacket, TrackDescriptor,
    TrackEvent, Type, SEQUENCE_CLEARED,
};
use super::history::History;
use super::record::{Event, Mark, Object, Record};
use super::timeline::{threads_of_contexts, Timeline};

/// The one writer of packets.
const SEQUENCE: u32 = 1;

/// What a track is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    Cores,
    Core(u8),
    Threads,
    Thread(Object),
    Jobs(Object),
    Budgets,
    Budget(Object),
    Partitions,
    Partition(Object),
    Gates,
    Gate(Object),
    /// A client at a gate.
    AtGate(Object, Object),
}

/// The trace as bytes of a file.
pub fn encode(history: &History, timeline: &Timeline) -> Vec<u8> {
    trace(history, timeline).encode_to_vec()
}

fn trace(history: &History, timeline: &Timeline) -> Trace {
    let mut writer = Writer {
        history,
        bound: threads_of_contexts(history),
        uuids: BTreeMap::new(),
        descriptors: Vec::new(),
        events: Vec::new(),
    };
    writer.track(Track::Cores);
    if !timeline.windows.is_empty() {
        writer.track(Track::Partitions);
    }
    if !timeline.stages.is_empty() {
        writer.track(Track::Gates);
    }
    writer.track(Track::Threads);
    writer.track(Track::Budgets);
    writer.windows(timeline);
    writer.stages(timeline);
    writer.executions(timeline);
    writer.jobs(timeline);
    writer.budgets(timeline);
    writer.passings(timeline);
    for record in &history.records {
        writer.instant(record);
    }
    writer.finish()
}

struct Writer<'h> {
    history: &'h History,
    /// The thread that each context was bound to first.
    bound: BTreeMap<Object, Object>,
    uuids: BTreeMap<Track, u64>,
    descriptors: Vec<TracePacket>,
    /// With the time in ns; at one time, what ends comes before what begins.
    events: Vec<(u64, Order, TrackEvent)>,
}

/// Order of events of one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Order {
    Ends,
    Begins,
    Other,
}

impl Writer<'_> {
    /// The track's number; it is described when it is first asked for.
    fn track(&mut self, track: Track) -> u64 {
        if let Some(&uuid) = self.uuids.get(&track) {
            return uuid;
        }
        let (name, parent) = match track {
            Track::Cores => ("cores".to_owned(), None),
            Track::Core(core) => (format!("core {core}"), Some(Track::Cores)),
            Track::Threads => ("threads".to_owned(), None),
            Track::Thread(thread) => (self.history.name(thread), Some(Track::Threads)),
            Track::Jobs(thread) => (
                format!("jobs of {}", self.history.name(thread)),
                Some(Track::Threads),
            ),
            Track::Budgets => ("budgets".to_owned(), None),
            Track::Budget(context) => (
                format!("budget of {}", self.history.name(context)),
                Some(Track::Budgets),
            ),
            Track::Partitions => ("partitions".to_owned(), None),
            Track::Partition(context) => (self.history.name(context), Some(Track::Partitions)),
            Track::Gates => ("gates".to_owned(), None),
            Track::Gate(gate) => (self.history.name(gate), Some(Track::Gates)),
            Track::AtGate(gate, client) => (
                format!(
                    "{} at {}",
                    self.history.name(client),
                    self.history.name(gate)
                ),
                Some(Track::Gates),
            ),
        };
        let parent_uuid = parent.map(|parent| self.track(parent));
        let uuid = self.uuids.len() as u64 + 1;
        self.uuids.insert(track, uuid);
        let is_budget = matches!(track, Track::Budget(_));
        self.descriptors.push(TracePacket {
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_descriptor: Some(TrackDescriptor {
                uuid: Some(uuid),
                name: Some(name),
                parent_uuid,
                counter: is_budget.then(|| CounterDescriptor {
                    unit_name: Some("µs".to_owned()),
                }),
                child_ordering: parent_uuid
                    .is_none()
                    .then_some(ChildOrdering::Explicit as i32),
                sibling_order_rank: Some(uuid as i32),
            }),
            ..TracePacket::default()
        });
        uuid
    }

    /// Adds an event at `time`, in ticks.
    fn add(&mut self, time: u64, order: Order, track: Track, kind: Type, event: TrackEvent) {
        let track_uuid = Some(self.track(track));
        let event = TrackEvent {
            r#type: Some(kind as i32),
            track_uuid,
            ..event
        };
        self.events.push((self.history.ns(time), order, event));
    }

    /// Adds a slice from one time to another, in ticks.
    fn slice(&mut self, track: Track, from: u64, to: u64, event: TrackEvent) {
        self.add(from, Order::Begins, track, Type::SliceBegin, event);
        let end = TrackEvent::default();
        self.add(to, Order::Ends, track, Type::SliceEnd, end);
    }

    /// Windows, and behind each of them its overrun.
    fn windows(&mut self, timeline: &Timeline) {
        for window in &timeline.windows {
            let track = Track::Partition(window.context);
            let end = window.planned_end();
            let left = self.history.duration_ns(window.until - end);
            let charged = self.history.duration_ns(window.overrun);
            if end > window.from {
                let notes = vec![
                    number("number, modulo 256", window.number.into()),
                    number("left, ns", left),
                ];
                let title = format!("window {}", window.number);
                let event = named(&title, "window", notes);
                self.slice(track, window.from, end, event);
            }
            if window.to > end {
                let notes = vec![number("charged, ns", charged)];
                let event = named("overrun", "window", notes);
                self.slice(track, end, window.to, event);
            }
        }
    }

    /// Whom gates serve, who pays for that, and who waits.
    fn stages(&mut self, timeline: &Timeline) {
        for stage in &timeline.stages {
            let name = |object: Object| match object {
                0 => "nobody".to_owned(),
                _ => self.history.name(object),
            };
            let (served, payer) = (name(stage.served), name(stage.payer));
            let notes = vec![
                text("is served", &served),
                text("pays", &payer),
                number("wait", stage.waiting.len() as u64),
            ];
            let slice = |title: &str| named(title, "gate", notes.clone());
            let mut slices = Vec::new();
            if stage.served != 0 {
                let title = format!("serves {served}, {payer} pays");
                slices.push((Track::Gate(stage.gate), slice(&title)));
                let title = format!("is served, {payer} pays");
                slices.push((Track::AtGate(stage.gate, stage.served), slice(&title)));
            }
            for waiting in &stage.waiting {
                let without = if waiting.has_budget {
                    ""
                } else {
                    " without budget"
                };
                let title = format!("waits{without}, {served} is served");
                slices.push((Track::AtGate(stage.gate, waiting.client), slice(&title)));
            }
            for (track, event) in slices {
                self.slice(track, stage.from, stage.to, event);
            }
        }
    }

    fn executions(&mut self, timeline: &Timeline) {
        for run in &timeline.executions {
            let (thread, payer) = (
                self.history.name(run.thread),
                self.history.name(run.context),
            );
            let notes = vec![
                text("thread", &thread),
                text("paid by", &payer),
                number("core", run.core.into()),
            ];
            let title = if payer == thread {
                "runs".to_owned()
            } else {
                format!("runs on the time of {payer}")
            };
            let on_core = named(&thread, "execution", notes.clone());
            self.slice(Track::Core(run.core), run.from, run.to, on_core);
            let of_thread = named(&title, "execution", notes);
            self.slice(Track::Thread(run.thread), run.from, run.to, of_thread);
        }
    }

    fn jobs(&mut self, timeline: &Timeline) {
        for job in &timeline.jobs {
            let track = Track::Jobs(job.thread);
            let title = format!("job {}", job.number);
            for (time, what) in [
                (job.released, "released"),
                (job.deadline, "deadline"),
                (job.ended, "ended"),
            ] {
                let Some(time) = time else { continue };
                let event = named(&format!("{title}: {what}"), "job", Vec::new());
                self.add(time, Order::Other, track, Type::Instant, event);
            }
        }
    }

    fn budgets(&mut self, timeline: &Timeline) {
        for left in &timeline.budgets {
            let event = TrackEvent {
                double_counter_value: Some(self.history.us(left.amount)),
                ..TrackEvent::default()
            };
            let track = Track::Budget(left.context);
            self.add(left.time, Order::Other, track, Type::Counter, event);
        }
    }

    fn passings(&mut self, timeline: &Timeline) {
        for (passing, id) in timeline.passings.iter().zip(1..) {
            let context = self.history.name(passing.context);
            let (gives, gets) = if passing.back {
                ("gives back", "gets back")
            } else {
                ("lends", "is lent")
            };
            let notes = vec![text("context", &context)];
            let begin = TrackEvent {
                flow_ids: vec![id],
                ..named(
                    &format!("{gives} the time of {context}"),
                    "donation",
                    notes.clone(),
                )
            };
            let end = TrackEvent {
                terminating_flow_ids: vec![id],
                ..named(&format!("{gets} the time of {context}"), "donation", notes)
            };
            let (from, to) = (Track::Thread(passing.from), Track::Thread(passing.to));
            self.add(passing.time, Order::Other, from, Type::Instant, begin);
            self.add(passing.time, Order::Other, to, Type::Instant, end);
        }
    }

    /// Adds what happens to a thread, or on a core, at one instant.
    fn instant(&mut self, record: &Record) {
        let core = Track::Core(record.core);
        let (track, title, category, notes) = match record.event {
            Event::Wake { thread, .. } => (Track::Thread(thread), "wakes", "wake", vec![]),
            Event::Block { thread, why } => (Track::Thread(thread), waits(why), "block", vec![]),
            Event::Wait { thread, until, .. } => {
                let notes = vec![number("until, ns", self.history.ns(until))];
                (
                    Track::Thread(thread),
                    "waits for its budget",
                    "budget",
                    notes,
                )
            }
            Event::Release { thread, .. } => {
                (Track::Thread(thread), "budget released", "budget", vec![])
            }
            Event::Timeout { thread, badge, .. } => {
                let notes = vec![number("badge", badge)];
                (Track::Thread(thread), "timeout fault", "fault", notes)
            }
            Event::Fault {
                thread,
                label,
                value,
            } => {
                let notes = vec![number("label", label.into()), number("value", value)];
                (Track::Thread(thread), "fault", "fault", notes)
            }
            Event::Priority { thread, priority } => {
                let notes = vec![number("priority", priority.into())];
                (Track::Thread(thread), "priority changes", "priority", notes)
            }
            Event::Interrupt { source, number: n } => match source {
                Source::Device => {
                    let notes = vec![number("irq", n)];
                    (core, "device interrupt", "interrupt", notes)
                }
                Source::Timer => (core, "timer", "interrupt", vec![]),
                Source::Core => (core, "reschedule IPI", "interrupt", vec![]),
            },
            Event::Domain { thread: 0, domain } => (
                core,
                "domain",
                "domain",
                vec![number("domain", domain.into())],
            ),
            Event::Mark {
                mark: Mark::Mode { from, to },
                ..
            } => {
                let notes = vec![number("from", from), number("to", to)];
                (core, "mode changes", "mode", notes)
            }
            Event::Mark {
                subject,
                mark:
                    Mark::Reservation {
                        budget_us,
                        period_us,
                        deadline_us,
                        hard,
                    },
            } => {
                let notes = vec![
                    number("budget, µs", budget_us.into()),
                    number("period, µs", period_us.into()),
                    number("deadline, µs", deadline_us),
                    number("hard", hard.into()),
                ];
                let thread = self.bound.get(&subject).copied();
                let track = Track::Thread(thread.unwrap_or(subject));
                (track, "reservation", "reservation", notes)
            }
            Event::Mark {
                subject,
                mark: Mark::Note { what, value },
            } => {
                let notes = vec![number("what", what), number("value", value)];
                (Track::Thread(subject), "note", "note", notes)
            }
            _ => return,
        };
        let event = named(title, category, notes);
        self.add(record.time, Order::Other, track, Type::Instant, event);
    }

    /// All packets: the tracks, then the events in the order of time.
    fn finish(mut self) -> Trace {
        self.events.sort_by_key(|&(time, order, _)| (time, order));
        let mut packet = self.descriptors;
        if let Some(first) = packet.first_mut() {
            first.sequence_flags = Some(SEQUENCE_CLEARED);
        }
        packet.extend(self.events.into_iter().map(|(time, _, event)| TracePacket {
            timestamp: Some(time),
            trusted_packet_sequence_id: Some(SEQUENCE),
            track_event: Some(event),
            ..TracePacket::default()
        }));
        Trace { packet }
    }
}

fn waits(why: Blocked) -> &'static str {
    match why {
        Blocked::Inactive => "stops",
        Blocked::Send => "waits for a receiver",
        Blocked::Receive => "waits for a message",
        Blocked::Reply => "waits for an answer",
        Blocked::Notification => "waits for a signal",
    }
}

fn named(name: &str, category: &str, debug_annotations: Vec<DebugAnnotation>) -> TrackEvent {
    TrackEvent {
        name: Some(name.to_owned()),
        categories: vec![category.to_owned()],
        debug_annotations,
        ..TrackEvent::default()
    }
}

fn text(name: &str, value: &str) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        string_value: Some(value.to_owned()),
        ..DebugAnnotation::default()
    }
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    }
}
