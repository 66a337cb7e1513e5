//! What a resource behind a gate means in terms of components and endpoints.

use std::collections::BTreeSet;

use sandglass_description::policy::mc_ipc::threads;
use sandglass_mc_ipc::driver::Sender;
use sandglass_mc_ipc::ClientId;

use super::super::super::super::document::{
    Client, ClientKind, Component, Document, Endpoint, Integer, Resource, Thread,
};
use super::super::super::super::findings::Finding;
use super::super::super::super::quantity::{Bytes, Micros};
use super::super::super::super::spanned::Spanned;
use super::super::super::text;
use super::{couriers, is_gated, kind};

/// What a context that never runs out has: an hour, which is the longest period.
const LONGEST_US: u64 = 3_600_000_000;
/// What the gate runs on: all of the processor.
const GATE_SLICE_US: u64 = 10_000;
/// What a table thread begins with; then it waits from edge to edge.
const TABLE_BUDGET_US: u64 = 100;
const TABLE_PERIOD_US: u64 = 10_000;
/// Of the component of a gate with as many clients as there can be.
const CSPACE_BITS: i64 = 11;
/// Stacks of the server's thread, and of the others.
const SERVER_STACK: u64 = 64 << 10;
const SMALL_STACK: u64 = 8 << 10;

/// Prepares servers and clients of gates. Returns what is wrong with that.
pub fn expand(document: &mut Document) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut resources = std::mem::take(&mut document.resources);
    for gate in resources.iter_mut().filter(|resource| is_gated(resource)) {
        findings.extend(remove_itself(gate));
        findings.extend(remove_doubles(gate));
    }
    let mut served: Vec<&str> = Vec::new();
    for gate in resources.iter().filter(|resource| is_gated(resource)) {
        let name = gate.server.as_ref().map(text);
        // A second gate is found to be wrong.
        if let Some(name) = name.filter(|name| !served.contains(name)) {
            served.push(name);
            findings.extend(serve(document, gate, name));
        }
    }
    let mut joined: Vec<&str> = Vec::new();
    for gate in resources.iter().filter(|resource| is_gated(resource)) {
        for client in &gate.clients {
            let name = text(&client.component);
            // One of two gates is found to be wrong.
            if kind(client) == ClientKind::TableDriven && !joined.contains(&name) {
                joined.push(name);
                findings.extend(join(document, gate, client));
            }
        }
    }
    couriers::expand(document, &resources);
    document.resources = resources;
    findings
}

/// Where clients call: they are known by their numbers.
pub fn endpoint(gate: &Resource) -> Endpoint {
    let clients = gate.clients.iter().enumerate();
    let clients = clients.map(|(number, client)| Client {
        badge: Some(Spanned::new(
            client.component.span(),
            Sender::Client(ClientId(number)).badge() as i64,
        )),
        alias: client.alias.clone(),
        ..Client::added(client.component.clone())
    });
    Endpoint {
        name: gate.name.clone(),
        server: gate.server.clone(),
        clients: clients.collect(),
    }
}

/// Takes out the server.
fn remove_itself(gate: &mut Resource) -> Option<Finding> {
    let server = gate.server.as_ref()?;
    let is_itself = |client: &Client| text(&client.component) == text(server);
    let own = gate.clients.iter().position(is_itself)?;
    let client = gate.clients.remove(own);
    gate.clients.retain(|client| !is_itself(client));
    Some(
        Finding::new(
            client.component.span(),
            format!("`{}` is its own client", text(server)),
        )
        .label("would wait for itself")
        .related(server.span(), "the server")
        .help("remove it from the clients; within the operation, call the function directly"),
    )
}

/// Takes out clients that are there already.
fn remove_doubles(gate: &mut Resource) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut kept: Vec<Client> = Vec::new();
    for client in std::mem::take(&mut gate.clients) {
        let name = text(&client.component);
        let first = kept.iter().find(|first| text(&first.component) == name);
        let Some(first) = first else {
            kept.push(client);
            continue;
        };
        findings.push(
            Finding::new(
                client.component.span(),
                format!("`{name}` is a client of `{}` twice", text(&gate.name)),
            )
            .label("the second")
            .related(first.component.span(), "the first")
            .help("it has one request at a time in the gate: remove it here, and say how many a job makes: `requests = N`"),
        );
    }
    gate.clients = kept;
    findings
}

fn component<'d>(document: &'d mut Document, name: &str) -> Option<&'d mut Component> {
    let mut components = document.components.iter_mut();
    components.find(|component| text(&component.name) == name)
}

/// Lets a component have a gate: its main thread, whose time never runs out.
fn serve(document: &mut Document, gate: &Resource, name: &str) -> Option<Finding> {
    let clients = clients(document, gate);
    let server = component(document, name)?;
    let passive = server.passive.take().map(|given| given.span());
    let budget = server.budget.take().map(|given| given.span());
    let period = server.period.take().map(|given| given.span());
    let whole = || Some(Spanned::new(gate.protocol.span(), Micros(GATE_SLICE_US)));
    (server.budget, server.period) = (whole(), whole());
    server.ready = true;
    equip(server, gate, &clients);
    let given = passive.or(budget).or(period)?;
    Some(
        Finding::new(
            given,
            format!(
                "the gate of `{}` runs on time that never ends",
                text(&gate.name)
            ),
        )
        .label("must not be here")
        .related(gate.protocol.span(), "the protocol")
        .help("remove it: the gate takes little, and the operation runs on the budgets of clients"),
    )
}

/// Of each client: its core, priority and kind. One that is not there has some, too, so that the others keep their numbers.
fn clients(document: &Document, gate: &Resource) -> Vec<(Option<Integer>, Integer, ClientKind)> {
    let clients = gate.clients.iter().map(|client| {
        let mut components = document.components.iter();
        let name = text(&client.component);
        match components.find(|component| text(&component.name) == name) {
            Some(found) => (found.core.clone(), found.priority.clone(), kind(client)),
            None => (None, Spanned::new(client.component.span(), 0), kind(client)),
        }
    });
    clients.collect()
}

/// Adds the threads of a gate to its component: the server's, a spinner for each client, and one for each core with slots.
fn equip(
    server: &mut Component,
    gate: &Resource,
    clients: &[(Option<Integer>, Integer, ClientKind)],
) {
    let span = gate.protocol.span();
    let passive = |name: String, core: Option<Integer>, priority: Integer, stack: u64| Thread {
        core,
        passive: Some(Spanned::new(span.clone(), true)),
        stack: Some(Spanned::new(span.clone(), Bytes(stack))),
        ..Thread::added(Spanned::new(span.clone(), name), priority)
    };
    let time = |us| Some(Spanned::new(span.clone(), Micros(us)));
    let own = (server.core.clone(), server.priority.clone());
    let operation = passive(
        threads::SERVER.to_owned(),
        own.0.clone(),
        own.1.clone(),
        SERVER_STACK,
    );
    let spinners = clients.iter().enumerate();
    let spinners = spinners.map(|(number, (core, priority, _))| {
        // Without a core, a thread is on its component's.
        let core = core.clone().unwrap_or(Spanned::new(span.clone(), 0));
        passive(
            threads::spinner(number),
            Some(core),
            priority.clone(),
            SMALL_STACK,
        )
    });
    let driven = clients
        .iter()
        .filter(|(_, _, kind)| *kind == ClientKind::TableDriven);
    let cores: BTreeSet<i64> = driven
        .map(|(core, ..)| core.as_ref().map_or(0, |core| *core.get_ref()))
        .collect();
    let tables = cores.iter().map(|&core| Thread {
        core: Some(Spanned::new(span.clone(), core)),
        budget: time(TABLE_BUDGET_US),
        period: time(TABLE_PERIOD_US),
        stack: Some(Spanned::new(span.clone(), Bytes(SMALL_STACK))),
        ..Thread::added(
            Spanned::new(span.clone(), threads::table(core as u32)),
            own.1.clone(),
        )
    });
    let added: Vec<Thread> = std::iter::once(operation)
        .chain(spinners)
        .chain(tables)
        .collect();
    server.threads.extend(added);
    let controlled = cores.iter().map(|&core| Spanned::new(span.clone(), core));
    for core in controlled {
        let is_there = |given: &Integer| given.get_ref() == core.get_ref();
        if !server.scheduling_control.iter().any(is_there) {
            server.scheduling_control.push(core);
        }
    }
    server
        .cspace_bits
        .get_or_insert(Spanned::new(span, CSPACE_BITS));
}

/// Lets a component be a table-driven client: its time never runs out, but is taken from it between its slots.
fn join(document: &mut Document, gate: &Resource, client: &Client) -> Option<Finding> {
    let cycle = gate.cycle.clone();
    let name = text(&client.component);
    let component = component(document, name)?;
    let passive = component.passive.take().map(|given| given.span());
    let budget = component.budget.take().map(|given| given.span());
    let period = component.period.take().map(|given| given.span());
    let whole = || Some(Spanned::new(client.component.span(), Micros(LONGEST_US)));
    (component.budget, component.period) = (whole(), whole());
    if component.deadline.is_some() && component.interval.is_none() {
        component.interval = cycle;
    }
    let given = passive.or(budget).or(period)?;
    Some(
        Finding::new(given, format!("`{name}` has its time in slots"))
            .label("must not be here")
            .related(client.component.span(), "a table-driven client")
            .help("remove it: it runs in its `slots`, in each `cycle` of the resource"),
    )
}
