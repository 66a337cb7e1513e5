//! What a description with a `[time-manager]` means in terms of components, endpoints and timers.

use crate::system::spanned::Spanned;
use sandglass_description::policy::allocations::{names, Asker, MOST_CLIENTS};
use sandglass_description::policy::edf::Sender;

use super::super::super::super::document::{
    self, At, Client, ClientRights, Component, Document, Endpoint, Notification, Signaller, Text,
    Thread, TimeManager, Timer,
};
use super::super::super::super::findings::Finding;
use super::super::super::super::quantity::Micros;
use super::super::super::text;
use super::{shortest_us, BELOW_ADMISSION};

/// Package of the manager.
const EXECUTABLE: &str = "time-manager";
/// What its threads run on, and clients without a turn: a slice.
const SLICE_US: u64 = 10_000;
/// How often the timer rings for a turn: when it may begin, and once more if it overruns.
const RINGS: u64 = 2;

/// Adds to a description what its `[time-manager]` stands for. Returns what is wrong with that.
pub fn expand(document: &mut Document) -> Vec<Finding> {
    let Some(manager) = document.time_manager.take() else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for client in manager.clients.get_ref() {
        findings.extend(give_time(document, &manager, &client.component));
    }
    let clients: Vec<Text> = manager
        .clients
        .get_ref()
        .iter()
        .map(|client| client.component.clone())
        .filter(|name| {
            document
                .components
                .iter()
                .any(|c| text(&c.name) == text(name))
        })
        .collect();
    document.components.push(component(&manager, &clients));
    document.endpoints.push(turns(&manager));
    document.endpoints.push(requests(&manager));
    document.notifications.push(wake(&manager, &clients));
    document.timers.push(timer(&manager));
    document.time_manager = Some(manager);
    findings
}

/// Lets a component run as best effort, until it has a turn.
fn give_time(document: &mut Document, manager: &TimeManager, client: &Text) -> Option<Finding> {
    let mut components = document.components.iter_mut();
    let component = components.find(|component| text(&component.name) == text(client))?;
    let given = component.budget.as_ref().or(component.period.as_ref());
    let handler = component.timeout_handler.take();
    let given = given
        .map(|given| given.span())
        .or(handler.map(|handler| handler.span()));
    let slice = || Some(Spanned::new(client.span(), Micros(SLICE_US)));
    (component.budget, component.period) = (slice(), slice());
    given.map(|given| {
        let (name, manager) = (text(client), text(&manager.name));
        Finding::new(given, format!("the time of `{name}` is given by `{manager}`"))
            .label("must not be here")
            .related(client.span(), "its client")
            .help("remove it: without a turn it runs in slices, beside others of its priority; turns end by its budget")
    })
}

fn place(manager: &TimeManager, text: &str) -> Text {
    Spanned::new(manager.name.span(), text.to_owned())
}

/// The manager, which controls its clients.
fn component(manager: &TimeManager, clients: &[Text]) -> Component {
    let span = manager.name.span();
    let slice = || Some(Spanned::new(span.clone(), Micros(SLICE_US)));
    let admission = format!("{}/{}", text(&manager.name), names::ADMISSION);
    let own = [manager.name.clone(), place(manager, &admission)];
    let below = (*manager.priority.get_ref())
        .saturating_sub(BELOW_ADMISSION - 1)
        .max(0);
    let thread = Thread {
        budget: slice(),
        period: slice(),
        ..Thread::added(
            place(manager, names::ADMISSION),
            Spanned::new(span.clone(), below),
        )
    };
    Component {
        mcp: Some(manager.priority.clone()),
        ready: true,
        budget: slice(),
        period: slice(),
        controls: clients.iter().cloned().chain(own).collect(),
        scheduling_control: vec![Spanned::new(span.clone(), 0)],
        cspace_bits: Some(Spanned::new(span.clone(), 10)),
        threads: vec![thread],
        ..Component::added(manager.name.clone(), EXECUTABLE, manager.priority.clone())
    }
}

/// Where clients wait for their turns, and where the admission tells the scheduler what to do.
fn turns(manager: &TimeManager) -> Endpoint {
    let alias = names::turns(text(&manager.name));
    let clients = manager
        .clients
        .get_ref()
        .iter()
        .enumerate()
        .map(|(index, client)| call(&client.component, Sender::Call(index).badge(), &alias));
    // The admission, as one client more.
    let own = Sender::Call(manager.clients.get_ref().len());
    let commands = call(&manager.name, own.badge(), names::COMMANDS);
    let idle = Client {
        rights: ClientRights::Send,
        ..call(&manager.name, Sender::Idle.badge(), names::IDLE)
    };
    Endpoint {
        name: manager.name.clone(),
        server: Some(manager.name.clone()),
        clients: clients.chain([commands, idle]).collect(),
    }
}

/// Where clients ask for time.
fn requests(manager: &TimeManager) -> Endpoint {
    let clients = manager.clients.get_ref().iter().enumerate();
    let clients = clients
        .map(|(index, client)| call(&client.component, Asker::badge(index), text(&manager.name)));
    Endpoint {
        name: place(manager, &names::requests(text(&manager.name))),
        server: Some(manager.name.clone()),
        clients: clients.collect(),
    }
}

fn call(component: &Text, badge: u64, alias: &str) -> Client {
    Client {
        badge: Some(Spanned::new(component.span(), badge as i64)),
        alias: Some(Spanned::new(component.span(), alias.to_owned())),
        ..Client::added(component.clone())
    }
}

/// What wakes the admission: the scheduler, and the end of a client.
fn wake(manager: &TimeManager, clients: &[Text]) -> Notification {
    let signaller = |component: &Text, badge: u64| Signaller {
        component: component.clone(),
        badge: Some(Spanned::new(component.span(), badge as i64)),
        alias: None,
        at: None,
    };
    let ends = clients
        .iter()
        .take(MOST_CLIENTS)
        .enumerate()
        .map(|(index, client)| Signaller {
            at: Some(Spanned::new(client.span(), At::End)),
            ..signaller(client, Asker::ended(index))
        });
    let scheduler = Signaller {
        alias: Some(place(manager, names::WAKES)),
        ..signaller(&manager.name, Asker::NO_TURN)
    };
    document::Notification {
        name: place(manager, &format!("{}.wake", text(&manager.name))),
        waiter: manager.name.clone(),
        signallers: ends.chain([scheduler]).collect(),
        alias: Some(place(manager, names::WAKE)),
    }
}

/// The scheduler's timer: it rings when a turn may begin, and turns are a period apart.
fn timer(manager: &TimeManager) -> Timer {
    let span = manager.name.span();
    let rings = RINGS * manager.clients.get_ref().len().max(1) as u64;
    Timer {
        name: place(manager, names::TIMER),
        component: manager.name.clone(),
        every: Spanned::new(span.clone(), Micros((shortest_us(manager) / rings).max(10))),
        burst: Some(Spanned::new(span, rings as i64)),
        count: None,
        notification: None,
        badge: None,
    }
}
