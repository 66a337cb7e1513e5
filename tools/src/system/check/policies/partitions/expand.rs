//! What a description with `[partitions]` means in terms of components, endpoints and timers.

use crate::system::spanned::Spanned;
use sandglass_description::policy::allocations;
use sandglass_description::policy::partitions::{names, Sender};
use sandglass_description::policy::timers::EXPIRY_US;

use super::super::super::super::document::{
    self, Client, ClientRights, Component, Document, Endpoint, Partition, PartitionThread,
    Partitioning, Text, Timer,
};
use super::super::super::super::findings::Finding;
use super::super::super::super::quantity::Micros;
use super::super::super::names::help_with;
use super::super::super::text;
use super::super::allocations::{best_effort_priority, turn_priority};
use super::{threads_of, LONGEST_US};

/// Package of the scheduler.
const EXECUTABLE: &str = "partition-scheduler";
/// What the scheduler itself runs on: all of the processor.
const SCHEDULER_SLICE_US: u64 = 10_000;
/// How often the scheduler's timer rings for a release: then, and when its budget or its slice is used up, whole or in two
/// pieces.
const RINGS_PER_RELEASE: u128 = 3;
/// A second, in 10^-6 µs.
const MANY_US: u128 = 1_000_000_000_000;

/// Adds to a description what its `[partitions]` stands for. Returns what is wrong with that.
pub fn expand(document: &mut Document) -> Vec<Finding> {
    let Some(partitioning) = document.partitioning.take() else {
        return without_scheduler(document);
    };
    let mut partitions = std::mem::take(&mut document.partitions);
    let mut findings = remove_unknown(document, &mut partitions);
    findings.extend(remove_doubles(&mut partitions));
    for thread in threads_of(&partitions) {
        findings.extend(join(document, thread));
    }
    let watcher = watcher(document, &partitioning, &partitions);
    if watcher.is_some() {
        document.notifications.push(wake(&partitioning));
    }
    let supply = Supply::of(document, &partitioning);
    if let Some(supply) = &supply {
        document.notifications.push(supply.wakes(&partitioning));
    }
    let mut timer = timer(&partitioning, &partitions, &document.frames);
    let mut endpoint = endpoint(&partitioning, &partitions);
    if supply.is_some() {
        timer.notification = Some(wakes_name(&partitioning));
        endpoint
            .clients
            .extend(own_threads(&partitioning, &partitions));
    }
    document.timers.push(timer);
    document.endpoints.push(endpoint);
    document
        .components
        .push(scheduler(&partitioning, &partitions, watcher));
    if let (Some(supply), Some(scheduler)) = (supply, document.components.last_mut()) {
        supply.apply(&partitioning, scheduler);
    }
    document.partitions = partitions;
    document.partitioning = Some(partitioning);
    findings
}

/// Partitions and frames of which nobody takes care.
fn without_scheduler(document: &Document) -> Vec<Finding> {
    let partitions = document.partitions.iter().map(|partition| &partition.name);
    let frames = document.frames.iter().map(|frame| &frame.name);
    let first = partitions.chain(frames).next();
    let finding = first.map(|name| {
        Finding::new(name.span(), "there is no `[partitions]`")
            .label("nobody schedules it")
            .help(
                "add `[partitions]` with `name`, `order` and `priority`, which makes the scheduler",
            )
    });
    finding.into_iter().collect()
}

/// Takes out threads that do not exist, so that nothing more is said of them.
fn remove_unknown(document: &Document, partitions: &mut [Partition]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let known = || {
        document
            .components
            .iter()
            .map(|component| text(&component.name))
    };
    let mut check = |component: &Text| {
        let name = text(component);
        let is_known = known().any(|known| known == name);
        if !is_known {
            findings.push(
                Finding::new(component.span(), format!("no component is called `{name}`"))
                    .label("unknown component")
                    .help(help_with("component", name, known())),
            );
        }
        is_known
    };
    for partition in partitions {
        partition.threads.get_mut().retain_mut(|thread| {
            thread.arrivals.retain(&mut check);
            check(&thread.component)
        });
    }
    findings
}

/// Takes threads out of all places but the first that names them.
fn remove_doubles(partitions: &mut [Partition]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen: Vec<Text> = Vec::new();
    for partition in partitions {
        partition.threads.get_mut().retain(|thread| {
            let name = text(&thread.component);
            let Some(first) = seen.iter().find(|seen| text(seen) == name) else {
                seen.push(thread.component.clone());
                return true;
            };
            findings.push(
                Finding::new(
                    thread.component.span(),
                    format!("`{name}` is a thread of partitions twice"),
                )
                .label("the second")
                .related(first.span(), "the first")
                .help("a component runs in the windows of one partition, as one thread: remove it here"),
            );
            false
        });
    }
    findings
}

/// Lets a component be a thread of a partition: it starts on time of its own, which the scheduler then takes.
fn join(document: &mut Document, thread: &PartitionThread) -> Vec<Finding> {
    let name = text(&thread.component);
    let mut components = document.components.iter_mut();
    let Some(component) = components.find(|component| text(&component.name) == name) else {
        return Vec::new();
    };
    let passive = component.passive.take().map(|passive| passive.span());
    let budget = component.budget.take().map(|budget| budget.span());
    let period = component.period.take().map(|period| period.span());
    let whole = || Some(Spanned::new(thread.component.span(), Micros(LONGEST_US)));
    (component.budget, component.period) = (whole(), whole());
    let given = passive.or(budget).or(period).map(|given| {
        Finding::new(given, format!("`{name}` runs on the time of its partition"))
            .label("must not be here")
            .related(thread.component.span(), "a thread of a partition")
            .help("remove it: `budget` and `period` are those of the `[[partition]]`, or of its windows")
    });
    given.into_iter().collect()
}

/// The highest priority of a thread of a partition.
fn highest(document: &Document, partitions: &[Partition]) -> Option<i64> {
    let is_thread = |component: &&Component| {
        threads_of(partitions).any(|thread| text(&thread.component) == text(&component.name))
    };
    let threads = document.components.iter().filter(is_thread);
    threads.map(|component| *component.priority.get_ref()).max()
}

/// The thread that runs when no server works for a partition.
fn watcher(
    document: &Document,
    partitioning: &Partitioning,
    partitions: &[Partition],
) -> Option<document::Thread> {
    partitioning.finish.as_ref()?;
    let span = partitioning.name.span();
    let slice = || Some(Spanned::new(span.clone(), Micros(SCHEDULER_SLICE_US)));
    let priority = highest(document, partitions)?.saturating_add(1);
    let name = Spanned::new(span.clone(), names::WATCHER.to_owned());
    Some(document::Thread {
        core: partitioning.core.clone(),
        budget: slice(),
        period: slice(),
        ..document::Thread::added(name, Spanned::new(span.clone(), priority))
    })
}

/// What wakes that thread.
fn wake(partitioning: &Partitioning) -> document::Notification {
    let place = |text: &str| Spanned::new(partitioning.name.span(), text.to_owned());
    document::Notification {
        name: place("partitions.wake"),
        waiter: partitioning.name.clone(),
        signallers: vec![document::Signaller {
            component: partitioning.name.clone(),
            badge: None,
            alias: Some(place(names::WAKES)),
            at: None,
        }],
        alias: Some(place(names::WAKE)),
    }
}

/// The timer of the scheduler.
fn timer(
    partitioning: &Partitioning,
    partitions: &[Partition],
    frames: &[document::Frame],
) -> Timer {
    let span = partitioning.name.span();
    let of_partitions = partitions.iter().filter_map(|of| of.period.as_ref());
    let of_threads =
        threads_of(partitions).filter_map(|of| of.period.as_ref().or(of.interval.as_ref()));
    let slice = partitioning
        .slice
        .as_ref()
        .map_or(super::SLICE_US, |slice| slice.get_ref().0);
    let times = of_partitions.chain(of_threads).map(|time| time.get_ref().0);
    let releases: u128 = times.chain([slice]).map(rate).sum();
    let of_frames = frames.iter().map(|frame| {
        let windows = 1 + frame.windows.get_ref().len() as u128;
        windows * rate(frame.length.get_ref().0)
    });
    let rings = (releases + of_frames.max().unwrap_or(0)) * RINGS_PER_RELEASE;
    let every = (MANY_US / rings.max(1)) as u64;
    let count = partitions.len() + threads_of(partitions).count() + 2;
    Timer {
        name: Spanned::new(span.clone(), names::TIMER.to_owned()),
        component: partitioning.name.clone(),
        every: Spanned::new(span.clone(), Micros(every.clamp(EXPIRY_US, LONGEST_US))),
        burst: Some(Spanned::new(span.clone(), 2 * count as i64)),
        count: None,
        notification: None,
        badge: None,
    }
}

/// How often something happens in a long time that happens every so many µs.
fn rate(every_us: u64) -> u128 {
    MANY_US.div_ceil(u128::from(every_us.max(1)))
}

/// Somebody who calls the scheduler.
fn client(component: &Text, sender: Sender, rights: ClientRights, alias: String) -> Client {
    let span = component.span();
    Client {
        badge: Some(Spanned::new(span.clone(), sender.badge() as i64)),
        rights,
        alias: Some(Spanned::new(span, alias)),
        ..Client::added(component.clone())
    }
}

/// The threads beside the scheduler's own, if its time is supplied.
fn own_threads<'a>(
    partitioning: &'a Partitioning,
    partitions: &[Partition],
) -> impl Iterator<Item = Client> + 'a {
    let filler = threads_of(partitions).count();
    let numbers = [(filler, names::FILLS), (filler + 1, names::TURNS)];
    numbers.into_iter().map(|(number, alias)| {
        let done = Sender::Done(number);
        client(
            &partitioning.name,
            done,
            ClientRights::Call,
            alias.to_owned(),
        )
    })
}

/// Where threads call, and those who report arrivals.
fn endpoint(partitioning: &Partitioning, partitions: &[Partition]) -> Endpoint {
    let mut clients = Vec::new();
    for (index, thread) in threads_of(partitions).enumerate() {
        let alias = names::AT_THREADS.to_owned();
        let done = Sender::Done(index);
        clients.push(client(&thread.component, done, ClientRights::Call, alias));
        for reporter in &thread.arrivals {
            let alias = names::arrivals(text(&thread.component));
            let arrival = Sender::Arrival(index);
            clients.push(client(reporter, arrival, ClientRights::Call, alias));
        }
    }
    if partitioning.finish.is_some() {
        let alias = names::IDLE.to_owned();
        clients.push(client(
            &partitioning.name,
            Sender::Idle,
            ClientRights::Send,
            alias,
        ));
    }
    Endpoint {
        name: partitioning.name.clone(),
        server: Some(partitioning.name.clone()),
        clients,
    }
}

/// The scheduler as a component that controls the threads.
fn scheduler(
    partitioning: &Partitioning,
    partitions: &[Partition],
    watcher: Option<document::Thread>,
) -> Component {
    let span = partitioning.name.span();
    let slice = || Some(Spanned::new(span.clone(), Micros(SCHEDULER_SLICE_US)));
    let core = partitioning.core.clone();
    let threads = threads_of(partitions).map(|thread| thread.component.clone());
    Component {
        scheduling_control: vec![core.clone().unwrap_or(Spanned::new(span.clone(), 0))],
        core,
        ready: true,
        budget: slice(),
        period: slice(),
        controls: threads.chain([partitioning.name.clone()]).collect(),
        cspace_bits: Some(Spanned::new(span.clone(), 12)),
        threads: watcher.into_iter().collect(),
        ..Component::added(
            partitioning.name.clone(),
            EXECUTABLE,
            partitioning.priority.clone(),
        )
    }
}

/// What wakes the scheduler if its time is supplied.
fn wakes_name(partitioning: &Partitioning) -> Text {
    let name = names::wakes(text(&partitioning.name));
    Spanned::new(partitioning.name.span(), name)
}

/// What a time manager's client has beside that.
struct Supply {
    /// Of the manager, and of the client among its clients.
    manager: Text,
    index: usize,
    turn_priority: i64,
    best_effort_priority: i64,
}

impl Supply {
    /// `None`: its time is not supplied, or it is no client, which is found later; and so is another name.
    fn of(document: &Document, partitioning: &Partitioning) -> Option<Self> {
        partitioning.time.as_ref()?;
        let manager = document.time_manager.as_ref()?;
        let mut clients = manager.clients.get_ref().iter();
        let name = text(&partitioning.name);
        let index = clients.position(|client| text(&client.component) == name)?;
        Some(Self {
            manager: manager.name.clone(),
            index,
            turn_priority: turn_priority(manager),
            best_effort_priority: best_effort_priority(manager),
        })
    }

    /// What the timer and the manager signal.
    fn wakes(&self, partitioning: &Partitioning) -> document::Notification {
        let span = partitioning.name.span();
        let alias = allocations::names::hint(self.index);
        document::Notification {
            name: wakes_name(partitioning),
            waiter: partitioning.name.clone(),
            signallers: vec![document::Signaller {
                component: self.manager.clone(),
                badge: Some(Spanned::new(span.clone(), Sender::Idle.badge() as i64)),
                alias: Some(Spanned::new(span, alias)),
                at: None,
            }],
            alias: None,
        }
    }

    /// The main thread is the manager's client; the scheduler and the filler are threads beside it.
    fn apply(&self, partitioning: &Partitioning, scheduler: &mut Component) {
        let span = partitioning.name.span();
        let time = |us| Some(Spanned::new(span.clone(), Micros(us)));
        let thread = |name: &str, priority: i64, us| document::Thread {
            core: partitioning.core.clone(),
            budget: time(us),
            period: time(us),
            ..document::Thread::added(
                Spanned::new(span.clone(), name.to_owned()),
                Spanned::new(span.clone(), priority),
            )
        };
        let own = *partitioning.priority.get_ref();
        scheduler.threads = vec![
            thread(names::SCHEDULER, own, SCHEDULER_SLICE_US),
            thread(names::FILLER, self.turn_priority, LONGEST_US),
        ];
        for name in [names::SCHEDULER, names::FILLER] {
            let name = format!("{}/{name}", text(&partitioning.name));
            scheduler.controls.push(Spanned::new(span.clone(), name));
        }
        scheduler.priority = Spanned::new(span.clone(), self.best_effort_priority);
        (scheduler.budget, scheduler.period) = (None, None);
    }
}
