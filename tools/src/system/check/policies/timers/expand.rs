//! What a description with `[[timer]]` tables means in terms of components, endpoints and devices.

use crate::system::spanned::Spanned;
use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_description::policy::timers::{
    names, Sender, EXTRA_REFILLS, REQUEST_US, SERVICE, TIMER_BYTES,
};

use super::super::super::super::document::{
    Client, Component, Document, Endpoint, Map, MapRights, Memory, Notification, Signaller, Text,
    Thread, Timer,
};
use super::super::super::super::findings::{Finding, Span};
use super::super::super::super::quantity::{Bytes, Micros};
use super::super::super::names::help_with;
use super::super::super::text;
use super::super::machine_timer;
use super::timers_of;

/// Package of the service.
const EXECUTABLE: &str = "timer-service";
/// The highest priority of a user: the service is above, and its handler above that.
const HIGHEST_USER: i64 = 252;
/// What the service starts on.
const START_US: u64 = 5_000;
const PAGE: u64 = sandglass_description::archive::PAGE as u64;

/// Adds to a description what its `[[timer]]` tables stand for. Returns what is wrong with that.
pub fn expand(document: &mut Document) -> Vec<Finding> {
    let mut findings = remove_unknown(document);
    let Some(first) = document.timers.first() else {
        return findings;
    };
    let span = first.name.span();
    let service = Spanned::new(span.clone(), SERVICE.to_owned());
    let priority = above_users(document, &mut findings);
    let names = machine_timer::Names {
        registers: names::REGISTERS,
        interrupt: names::INTERRUPT,
        pit: names::PIT,
    };
    findings.extend(machine_timer::give(document, &service, &names));
    let timers = std::mem::take(&mut document.timers);
    for (group, timer) in timers.iter().enumerate() {
        findings.extend(signal(document, group, timer, &service));
    }
    document.endpoints.push(endpoint(&timers, &service));
    document.memory.push(state(&timers, &service));
    document.components.push(component(&service, priority));
    document.timers = timers;
    findings
}

/// Takes out the timers of components that do not exist, so that nothing more is said of them.
fn remove_unknown(document: &mut Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    let components = &document.components;
    document.timers.retain(|timer| {
        let name = text(&timer.component);
        let mut known = components.iter().map(|component| text(&component.name));
        let is_known = known.clone().any(|known| known == name);
        if !is_known {
            findings.push(
                Finding::new(
                    timer.component.span(),
                    format!("no component is called `{name}`"),
                )
                .label("unknown component")
                .help(help_with("component", name, known.by_ref())),
            );
        }
        is_known
    });
    findings
}

/// The priority of the service.
fn above_users(document: &Document, findings: &mut Vec<Finding>) -> i64 {
    let mut highest = 0;
    for timer in &document.timers {
        let user = text(&timer.component);
        let mut components = document.components.iter();
        let Some(user) = components.find(|component| text(&component.name) == user) else {
            continue;
        };
        let others = user.threads.iter().map(|thread| &thread.priority);
        for priority in others.chain([&user.priority]) {
            if *priority.get_ref() > HIGHEST_USER && *priority.get_ref() < 255 {
                findings.push(
                    Finding::new(
                        priority.span(),
                        format!("there is no room for the timer service above `{}`", text(&user.name)),
                    )
                    .label(format!("must be at most {HIGHEST_USER}"))
                    .related(timer.name.span(), "it uses this timer")
                    .help("the service and its handler have the two priorities above all users of timers"),
                );
            }
            highest = highest.max(*priority.get_ref());
        }
    }
    highest.clamp(0, HIGHEST_USER) + 1
}

/// Lets the service signal the expiries of a group.
fn signal(document: &mut Document, group: usize, timer: &Timer, service: &Text) -> Option<Finding> {
    let span = timer.name.span();
    let place = |text: String| Spanned::new(span.clone(), text);
    let badge = timer.badge.clone().unwrap_or(Spanned::new(span.clone(), 1));
    let signaller = Signaller {
        component: Spanned::new(span.clone(), text(service).to_owned()),
        badge: Some(badge),
        alias: Some(place(names::signal(group))),
        at: None,
    };
    let Some(name) = &timer.notification else {
        document.notifications.push(Notification {
            name: place(format!("{SERVICE}.{group}")),
            waiter: timer.component.clone(),
            signallers: vec![signaller],
            alias: Some(place(format!("{}.signal", text(&timer.name)))),
        });
        return None;
    };
    let mut notifications = document.notifications.iter_mut();
    if let Some(found) = notifications.find(|found| text(&found.name) == text(name)) {
        found.signallers.push(signaller);
        return None;
    }
    let known = document.notifications.iter().map(|known| text(&known.name));
    Some(
        Finding::new(
            name.span(),
            format!("no notification is called `{}`", text(name)),
        )
        .label("unknown notification")
        .help(help_with("notification", text(name), known)),
    )
}

/// Where users call.
fn endpoint(timers: &[Timer], service: &Text) -> Endpoint {
    let clients = timers.iter().enumerate().map(|(group, timer)| {
        let span = timer.component.span();
        Client {
            badge: Some(Spanned::new(
                span.clone(),
                Sender::User(group).badge() as i64,
            )),
            alias: Some(timer.name.clone()),
            longest: Some(Spanned::new(span, Micros(REQUEST_US))),
            ..Client::added(timer.component.clone())
        }
    });
    Endpoint {
        name: service.clone(),
        server: Some(service.clone()),
        clients: clients.collect(),
    }
}

/// The service's memory for the timers.
fn state(timers: &[Timer], service: &Text) -> Memory {
    let count: u64 = timers.iter().map(timers_of).sum();
    let bytes = (count * TIMER_BYTES).next_multiple_of(PAGE);
    Memory {
        name: Spanned::new(service.span(), names::STATE.to_owned()),
        size: Spanned::new(service.span(), Bytes(bytes)),
        physical: None,
        maps: vec![Map {
            component: service.clone(),
            rights: MapRights::ReadWrite,
            address: None,
        }],
    }
}

fn component(service: &Text, priority: i64) -> Component {
    let span = service.span();
    let slice = || Some(Spanned::new(span.clone(), Micros(START_US)));
    let own_priority = Spanned::new(span.clone(), priority);
    Component {
        passive: Some(Spanned::new(span.clone(), true)),
        budget: slice(),
        period: slice(),
        extra_refills: Some(Spanned::new(span.clone(), EXTRA_REFILLS as i64)),
        timeout_handler: Some(service.clone()),
        scheduling_control: vec![Spanned::new(span.clone(), 0)],
        cspace_bits: Some(Spanned::new(span.clone(), 10)),
        threads: vec![handler(&span, priority + 1)],
        ..Component::added(service.clone(), EXECUTABLE, own_priority)
    }
}

/// The thread that lets requests end whose callers have no time left. What it runs on is decided when these are known.
fn handler(span: &Span, priority: i64) -> Thread {
    let slice = || Some(Spanned::new(span.clone(), Micros(MIN_BUDGET_US)));
    let name = Spanned::new(span.clone(), names::HANDLER.to_owned());
    Thread {
        ready: true,
        budget: slice(),
        period: slice(),
        ..Thread::added(name, Spanned::new(span.clone(), priority))
    }
}
