//! What a description with an `[[edf]]` means in terms of components, endpoints and devices.

use crate::system::spanned::Spanned;
use sandglass_description::policy::edf::{names, Sender};

use super::super::super::super::document::{
    self, Component, Document, EdfMode, EdfTask, Endpoint, Text, Timer,
};
use super::super::super::super::findings::Finding;
use super::super::super::super::quantity::Micros;
use super::super::super::text;
use super::super::machine_timer;
use super::{HPET, LONGEST_US, SERVICE};

/// Package of the scheduler.
const EXECUTABLE: &str = "edf-scheduler";
/// Under which a task finds its scheduler: `sandglass_edf::Task::SCHEDULER`.
const AT_TASKS: &str = "edf";
/// How often a scheduler's timer rings for a job: when it is released, and when its deadline is missed.
const RINGS_PER_JOB: u128 = 2;
/// What the scheduler itself runs on: all of the processor.
const SCHEDULER_SLICE_US: u64 = 10_000;

/// Adds to a description what its `[[edf]]` tables stand for. Returns what is wrong with that.
pub fn expand(document: &mut Document) -> Vec<Finding> {
    let mut tables = std::mem::take(&mut document.edf);
    let mut findings = remove_doubles(&mut tables);
    let is_shared = tables.len() > 1 || !document.timers.is_empty();
    for (number, edf) in tables.iter().enumerate() {
        for task in edf.tasks.get_ref() {
            findings.extend(join(document, edf, task));
        }
        let tasks = known_tasks(document, edf);
        let first = tasks.first().map(text);
        let mut components = document.components.iter();
        let first = first.and_then(|name| components.find(|c| text(&c.name) == name));
        let below = first.and_then(|first| below(edf, first, &mut findings));
        document.components.push(scheduler(edf, tasks, below));
        document.endpoints.push(endpoint(edf));
        document.notifications.push(wake(edf, number));
        findings.extend(timer(document, edf, is_shared));
    }
    document.edf = tables;
    findings
}

/// Takes tasks out of all tables but the first that names them, so that nothing more is said of them.
fn remove_doubles(tables: &mut [document::Edf]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for number in 1..tables.len() {
        let (before, rest) = tables.split_at_mut(number);
        rest[0].tasks.get_mut().retain(|task| {
            let mut others = before.iter().flat_map(|edf| edf.tasks.get_ref());
            let name = text(&task.component);
            let Some(other) = others.find(|other| text(&other.component) == name) else {
                return true;
            };
            findings.push(
                Finding::new(
                    task.component.span(),
                    format!("`{name}` is a task of two `[[edf]]` tables"),
                )
                .label("the second")
                .related(other.component.span(), "the first")
                .help("one scheduler decides when a task runs: remove it from the other"),
            );
            false
        });
    }
    findings
}

/// Lets a component be a task.
fn join(document: &mut Document, edf: &document::Edf, task: &EdfTask) -> Vec<Finding> {
    let name = text(&task.component);
    let mut components = document.components.iter_mut();
    let Some(component) = components.find(|component| text(&component.name) == name) else {
        return Vec::new();
    };
    let mut findings = take_handlers(component, task);
    findings.extend(give_time(component, edf, task));
    findings
}

/// The tasks that exist.
fn known_tasks(document: &Document, edf: &document::Edf) -> Vec<Text> {
    let known = |task: &&EdfTask| {
        let name = text(&task.component);
        document.components.iter().any(|c| text(&c.name) == name)
    };
    let tasks = edf.tasks.get_ref().iter().filter(known);
    tasks.map(|task| task.component.clone()).collect()
}

/// Gives a scheduler the HPET, or a timer of the service that shares it.
fn timer(document: &mut Document, edf: &document::Edf, is_shared: bool) -> Option<Finding> {
    let wanted = edf.timer.as_ref();
    let names = machine_timer::Names {
        registers: names::REGISTERS,
        interrupt: names::TIMER,
        pit: names::PIT,
    };
    match wanted.map(text) {
        Some(HPET) if is_shared => Some(owns_alone(edf, wanted?)),
        Some(SERVICE) => {
            document.timers.push(served(edf));
            None
        }
        _ if is_shared => {
            document.timers.push(served(edf));
            None
        }
        _ => machine_timer::give(document, &edf.name, &names),
    }
}

fn owns_alone(edf: &document::Edf, wanted: &Text) -> Finding {
    Finding::new(
        wanted.span(),
        format!(
            "`{}` cannot have the HPET for itself: others use timers, too",
            text(&edf.name)
        ),
    )
    .label("must be left out, or \"service\"")
    .help("a system with a `[[timer]]`, or with several `[[edf]]` tables, shares the HPET through the timer service")
}

/// The timer of a scheduler: it rings at releases, and when a deadline is missed.
fn served(edf: &document::Edf) -> Timer {
    let span = edf.name.span();
    let tasks = edf.tasks.get_ref();
    let periods = tasks.iter().map(|task| task.period.get_ref().0.max(1));
    // Rings in 10^12 µs.
    let rings: u128 = periods
        .map(|period| (RINGS_PER_JOB * 1_000_000_000_000).div_ceil(u128::from(period)))
        .sum();
    let every = (1_000_000_000_000 / rings.max(1)) as u64;
    let burst = RINGS_PER_JOB as i64 * tasks.len().max(1) as i64;
    Timer {
        name: Spanned::new(span.clone(), names::TIMER.to_owned()),
        component: edf.name.clone(),
        every: Spanned::new(span.clone(), Micros(every.clamp(1, LONGEST_US))),
        burst: Some(Spanned::new(span.clone(), burst)),
        count: None,
        notification: None,
        badge: None,
    }
}

/// Takes from a task the handlers that it cannot have beside its scheduler.
fn take_handlers(component: &mut Component, task: &EdfTask) -> Vec<Finding> {
    let name = text(&component.name).to_owned();
    let handlers = [
        component.fault_handler.take(),
        component.timeout_handler.take(),
    ];
    let handlers = handlers.into_iter().flatten();
    let findings = handlers.map(|handler| {
        Finding::new(
            handler.span(),
            format!("faults and timeouts of `{name}` go to its scheduler"),
        )
        .label("must not be here")
        .related(task.component.span(), "scheduled here")
        .help("remove it: the scheduler must be told when a task cannot continue")
    });
    findings.collect()
}

/// Lets a task run on the time that `[[edf]]` says.
fn give_time(component: &mut Component, edf: &document::Edf, task: &EdfTask) -> Option<Finding> {
    let given = component.budget.as_ref().or(component.period.as_ref());
    let given = given.map(|given| given.span());
    let whole = || Spanned::new(task.period.span(), Micros(LONGEST_US));
    let (budget, period) = match edf.mode.get_ref() {
        EdfMode::Cooperative => (whole(), whole()),
        EdfMode::Preemptive => {
            let budget = task.budget.as_ref().unwrap_or(&task.period);
            (budget.clone(), task.period.clone())
        }
    };
    component.budget = Some(budget);
    component.period = Some(period);
    let name = text(&component.name);
    given.map(|given| {
        Finding::new(
            given,
            format!(
                "the reservation of `{name}` is set by the scheduler `{}`",
                text(&edf.name)
            ),
        )
        .label("must not be here")
        .related(task.component.span(), "its reservation is here")
        .help("a task of an `[[edf]]` has `period` there and, in preemptive mode, `budget`")
    })
}

/// The thread that runs when no task can: below the `first` of them, and so below all.
fn below(
    edf: &document::Edf,
    first: &Component,
    findings: &mut Vec<Finding>,
) -> Option<document::Thread> {
    let span = edf.name.span();
    let Some(priority) = first
        .priority
        .get_ref()
        .checked_sub(1)
        .filter(|&below| below >= 0)
    else {
        findings.push(
            Finding::new(
                first.priority.span(),
                "there is no priority below that of the tasks",
            )
            .label("must be at least 1")
            .related(edf.name.span(), "their scheduler")
            .help(
                "a thread of the scheduler runs below its tasks, to detect that none of them can run",
            ),
        );
        return None;
    };
    let slice = || Some(Spanned::new(span.clone(), Micros(SCHEDULER_SLICE_US)));
    let name = Spanned::new(span.clone(), names::BELOW.to_owned());
    Some(document::Thread {
        core: edf.core.clone(),
        budget: slice(),
        period: slice(),
        ..document::Thread::added(name, Spanned::new(span.clone(), priority))
    })
}

/// What wakes that thread.
fn wake(edf: &document::Edf, number: usize) -> document::Notification {
    let place = |text: &str| Spanned::new(edf.name.span(), text.to_owned());
    document::Notification {
        name: place(&format!("edf.{number}.wake")),
        waiter: edf.name.clone(),
        signallers: vec![document::Signaller {
            component: edf.name.clone(),
            badge: None,
            alias: Some(place(names::WAKES)),
            at: None,
        }],
        alias: Some(place(names::WAKE)),
    }
}

/// The scheduler as a component that controls `tasks`.
fn scheduler(edf: &document::Edf, tasks: Vec<Text>, below: Option<document::Thread>) -> Component {
    let span = edf.name.span();
    let slice = || Some(Spanned::new(span.clone(), Micros(SCHEDULER_SLICE_US)));
    let core = edf.core.clone();
    let own_core = core.clone().unwrap_or(Spanned::new(span.clone(), 0));
    let mut controls = tasks;
    controls.push(edf.name.clone());
    Component {
        core,
        // It yields to its tasks.
        mcp: Some(edf.priority.clone()),
        ready: true,
        budget: slice(),
        period: slice(),
        console: true,
        controls,
        scheduling_control: vec![own_core],
        threads: below.into_iter().collect(),
        ..Component::added(edf.name.clone(), EXECUTABLE, edf.priority.clone())
    }
}

/// Where the tasks call.
fn endpoint(edf: &document::Edf) -> Endpoint {
    let clients = edf.tasks.get_ref().iter().enumerate();
    let clients = clients.map(|(index, task)| {
        let span = task.component.span();
        document::Client {
            badge: Some(Spanned::new(
                span.clone(),
                Sender::Call(index).badge() as i64,
            )),
            alias: Some(Spanned::new(span, AT_TASKS.to_owned())),
            ..document::Client::added(task.component.clone())
        }
    });
    let below = document::Client {
        badge: Some(Spanned::new(edf.name.span(), Sender::Idle.badge() as i64)),
        rights: document::ClientRights::Send,
        alias: Some(Spanned::new(edf.name.span(), names::IDLE.to_owned())),
        ..document::Client::added(edf.name.clone())
    };
    Endpoint {
        name: edf.name.clone(),
        server: Some(edf.name.clone()),
        clients: clients.chain([below]).collect(),
    }
}
