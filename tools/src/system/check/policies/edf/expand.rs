//! What a description with an `[[edf]]` means in terms of components, endpoints and devices.

use crate::system::spanned::Spanned;
use sandglass_description::policy::edf::{names, Sender};

use super::super::super::super::document::{
    self, Component, Document, EdfMode, EdfTask, Endpoint, Interrupt, Memory, Ports, Text,
};
use super::super::super::super::findings::Finding;
use super::super::super::super::quantity::{Bytes, Micros};
use super::super::super::text;
use super::LONGEST_US;

/// Package of the scheduler.
const EXECUTABLE: &str = "edf-scheduler";
/// Under which a task finds its scheduler: `sandglass_edf::Task::SCHEDULER`.
const AT_TASKS: &str = "edf";
const HPET_PHYSICAL: i64 = 0xfed0_0000;
/// Input of the I/O APIC that HPET and PIT share, and the PIT's ports.
const PIN: i64 = 2;
const PIT_PORTS: (i64, i64) = (0x40, 0x43);
/// What the scheduler itself runs on: all of the processor.
const SCHEDULER_SLICE_US: u64 = 10_000;

/// Adds to a description what its `[[edf]]` stands for. Returns what is wrong with that.
///
/// There is one timer, thus one scheduler: more are found wrong and taken out, so that nothing more is
/// said of them.
pub fn expand(document: &mut Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    for number in 0..document.edf.len() {
        let (before, edf) = (&document.edf[..number], &document.edf[number]);
        if let Some(first) = before.first() {
            findings.push(second(first, edf));
        }
        for task in edf.tasks.get_ref() {
            let name = text(&task.component);
            let components = &mut document.components;
            let component = components.iter_mut().find(|c| text(&c.name) == name);
            let has_time = before.iter().flat_map(|edf| edf.tasks.get_ref());
            let has_time = has_time
                .map(|task| text(&task.component))
                .any(|n| n == name);
            if let Some(component) = component.filter(|_| !has_time) {
                findings.extend(take_handlers(component, task));
                findings.extend(give_time(component, edf, task));
            }
        }
    }
    document.edf.truncate(1);
    for edf in &document.edf {
        let known = |task: &&EdfTask| {
            let name = text(&task.component);
            document.components.iter().any(|c| text(&c.name) == name)
        };
        let tasks = edf.tasks.get_ref().iter().filter(known);
        let tasks: Vec<Text> = tasks.map(|task| task.component.clone()).collect();
        let first = tasks.first().map(text);
        let first =
            first.and_then(|name| document.components.iter().find(|c| text(&c.name) == name));
        let below = first.and_then(|first| below(edf, first, &mut findings));
        document.components.push(scheduler(edf, tasks, below));
        document.endpoints.push(endpoint(edf));
        document.notifications.push(wake(edf));
        let place = |text: &str| Spanned::new(edf.name.span(), text.to_owned());
        document.memory.push(Memory {
            name: place(names::REGISTERS),
            size: Spanned::new(edf.name.span(), Bytes(4096)),
            physical: Some(Spanned::new(edf.name.span(), HPET_PHYSICAL)),
            maps: vec![document::Map {
                component: edf.name.clone(),
                rights: document::MapRights::ReadWrite,
                address: None,
            }],
        });
        document.interrupts.push(Interrupt {
            name: place(names::TIMER),
            component: edf.name.clone(),
            pin: Spanned::new(edf.name.span(), PIN),
            trigger: document::Trigger::Edge,
            polarity: document::Polarity::High,
        });
        document.ports.push(Ports {
            name: place(names::PIT),
            component: edf.name.clone(),
            first: Spanned::new(edf.name.span(), PIT_PORTS.0),
            last: Spanned::new(edf.name.span(), PIT_PORTS.1),
        });
    }
    findings
}

fn second(first: &document::Edf, second: &document::Edf) -> Finding {
    Finding::new(second.name.span(), "the system has two `[[edf]]` tables")
        .label("the second")
        .related(first.name.span(), "this one owns the timer")
        .help(
            "there is one timer (HPET), so one scheduler: put all tasks into its `tasks`, or give \
             these a budget and a period of their own",
        )
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
    Some(document::Thread {
        name: Spanned::new(span.clone(), names::BELOW.to_owned()),
        core: edf.core.clone(),
        priority: Spanned::new(span.clone(), priority),
        mcp: None,
        passive: None,
        ready: false,
        budget: slice(),
        period: slice(),
        deadline: None,
        interval: None,
        sporadic: false,
        extra_refills: None,
        timeout_badge: None,
        fault_handler: None,
        timeout_handler: None,
        stack: None,
    })
}

/// What wakes that thread.
fn wake(edf: &document::Edf) -> document::Notification {
    let place = |text: &str| Spanned::new(edf.name.span(), text.to_owned());
    document::Notification {
        name: place(names::WAKE),
        waiter: edf.name.clone(),
        signallers: vec![document::Signaller {
            component: edf.name.clone(),
            badge: None,
            alias: Some(place(names::WAKES)),
            at: None,
        }],
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
        name: edf.name.clone(),
        executable: Spanned::new(span.clone(), EXECUTABLE.to_owned()),
        criticality: None,
        core,
        priority: edf.priority.clone(),
        // It yields to its tasks.
        mcp: Some(edf.priority.clone()),
        passive: None,
        ready: true,
        budget: slice(),
        period: slice(),
        deadline: None,
        interval: None,
        sporadic: false,
        extra_refills: None,
        timeout_badge: None,
        fault_handler: None,
        timeout_handler: None,
        console: true,
        exit: false,
        parameters: Default::default(),
        controls,
        scheduling_control: vec![own_core],
        cspace_bits: None,
        spawns: None,
        threads: below.into_iter().collect(),
    }
}

/// Where the tasks call.
fn endpoint(edf: &document::Edf) -> Endpoint {
    let clients = edf.tasks.get_ref().iter().enumerate();
    let clients = clients.map(|(index, task)| {
        let span = task.component.span();
        document::Client {
            component: task.component.clone(),
            badge: Some(Spanned::new(
                span.clone(),
                Sender::Call(index).badge() as i64,
            )),
            rights: document::ClientRights::Call,
            alias: Some(Spanned::new(span, AT_TASKS.to_owned())),
            longest: None,
        }
    });
    let below = document::Client {
        component: edf.name.clone(),
        badge: Some(Spanned::new(edf.name.span(), Sender::Idle.badge() as i64)),
        rights: document::ClientRights::Send,
        alias: Some(Spanned::new(edf.name.span(), names::IDLE.to_owned())),
        longest: None,
    };
    Endpoint {
        name: edf.name.clone(),
        server: Some(edf.name.clone()),
        clients: clients.chain([below]).collect(),
    }
}
