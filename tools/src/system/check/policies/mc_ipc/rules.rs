//! What servers and clients of gates must be.

use sandglass_description::policy::mc_ipc::MOST_CLIENTS;

use super::super::super::super::document::{
    Client, ClientKind, ClientRights, Component, Document, Resource, Text, Thread,
};
use super::super::super::super::findings::{Finding, Span};
use super::super::super::super::spanned::Spanned;
use super::super::super::{text, Checker};
use super::super::sharing::is_proxy;
use super::{has_gate, is_gated, kind, requests, Member};

impl<'a> Checker<'a> {
    /// Keys that only gates know.
    pub(super) fn gate_keys_elsewhere(&mut self) {
        let document = self.document;
        let plain = document.resources.iter().filter(|of| !is_gated(of));
        for resource in plain.clone() {
            let given = [
                ("length", resource.length.as_ref().map(Spanned::span)),
                ("clusters", resource.clusters.as_ref().map(Spanned::span)),
                ("cycle", resource.cycle.as_ref().map(Spanned::span)),
            ];
            self.without_effect(&given, &resource.protocol.span());
        }
        let of_resources = plain.flat_map(|resource| {
            let protocol = resource.protocol.span();
            resource
                .clients
                .iter()
                .map(move |client| (client, protocol.clone()))
        });
        let of_endpoints = endpoints_without_resource(document);
        for (client, place) in of_resources.chain(of_endpoints) {
            let given = [
                ("requests", client.requests.as_ref().map(Spanned::span)),
                ("kind", client.kind.as_ref().map(Spanned::span)),
                ("slots", client.slots.as_ref().map(Spanned::span)),
                (
                    "on-behalf-of",
                    client.on_behalf_of.as_ref().map(Spanned::span),
                ),
            ];
            self.without_effect(&given, &place);
        }
    }

    fn without_effect(&mut self, given: &[(&str, Option<Span>)], place: &Span) {
        for (key, span) in given {
            let Some(span) = span else { continue };
            self.found(
                Finding::new(span.clone(), format!("`{key}` has no effect here"))
                    .label("is for resources behind a gate")
                    .related(place.clone(), "this has none")
                    .help("remove it, or choose the protocol `mc-ipc`, `fifo` or `priority`"),
            );
        }
    }

    /// What a gate wants of its server and of its clients.
    pub(super) fn gate_rules(&mut self, gate: &'a Resource, members: &[Member<'a>]) {
        if let Some(server) = gate.server.as_ref() {
            if let Some(index) = self.names.component(text(server)) {
                self.gate_server(gate, &self.document.components[index], members);
            }
        }
        if gate.clients.is_empty() {
            self.found(
                Finding::new(
                    gate.name.span(),
                    format!("`{}` has no clients", text(&gate.name)),
                )
                .help("name them: `clients = [{ component = \"...\" }]`"),
            );
        }
        if let Some(more) = gate.clients.get(MOST_CLIENTS) {
            self.found(
                Finding::new(
                    more.component.span(),
                    format!("{} clients", gate.clients.len()),
                )
                .label(format!("a gate can have {MOST_CLIENTS}")),
            );
        }
        for member in members {
            self.gate_client_keys(member.described);
            self.gate_client(gate, member);
            self.gate_kind(gate, member, members);
        }
    }

    fn gate_server(&mut self, gate: &Resource, server: &'a Component, members: &[Member<'_>]) {
        let name = text(&server.name);
        // Those that the builder added stand where the protocol does.
        let protocols = self.document.resources.iter();
        let protocols: Vec<Span> = protocols.map(|of| of.protocol.span()).collect();
        let is_added = |thread: &&Thread| protocols.contains(&thread.name.span());
        if let Some(thread) = server.threads.iter().find(|thread| !is_added(thread)) {
            self.found(
                Finding::new(thread.name.span(), format!("`{name}` has a gate, and a thread of its own"))
                    .label("must not be here")
                    .related(gate.protocol.span(), "the protocol")
                    .help("the builder adds the threads that a gate needs: make this one a component of its own"),
            );
        }
        let document = self.document;
        let gates = document.resources.iter().filter(|of| is_gated(of));
        let mut clients = gates.flat_map(|of| &of.clients);
        if let Some(client) = clients.find(|client| text(&client.component) == name) {
            self.found(
                Finding::new(
                    client.component.span(),
                    format!("`{name}` has a gate, and is a client of one"),
                )
                .label("must not be both")
                .related(gate.name.span(), "its gate")
                .help("a gate never waits for another one: within an operation, call plain servers, or none"),
            );
        }
        self.gate_server_calls(gate, server);
        let highest = members.iter().filter(|member| member.name() != name);
        let highest = highest.max_by_key(|member| member.priority);
        let own = *server.priority.get_ref();
        let above = highest.filter(|member| i64::from(member.priority) + 1 >= own);
        if let Some(member) = above {
            self.found(
                Finding::new(
                    server.priority.span(),
                    format!("the client `{}` would delay the gate of `{}`", member.name(), text(&gate.name)),
                )
                .label(format!("must be above {}", member.priority.saturating_add(1)))
                .related(member.component.priority.span(), "the client's priority")
                .help("a gate is above all its clients, on any core; the operation has the priority above that of the client that pays"),
            );
        }
    }

    /// Whose time an operation runs on may change at any moment, which a passive server that works on it does not hear of.
    fn gate_server_calls(&mut self, gate: &Resource, server: &Component) {
        let name = text(&server.name);
        let Some(index) = self.names.component(name) else {
            return;
        };
        let Some(&called) = self.servers_on_time_of(index).iter().next() else {
            return;
        };
        let called = &self.document.components[called];
        let passive = called.passive.as_ref();
        self.found(
            Finding::new(
                server.name.span(),
                format!(
                    "`{name}` calls `{}` on the time of its clients",
                    text(&called.name)
                ),
            )
            .label("who pays for an operation may change at any time")
            .related(
                passive.map_or(called.name.span(), Spanned::span),
                "has no time of its own",
            )
            .help(format!(
                "let the server have time of its own, or call none within an operation of `{}`",
                text(&gate.name)
            )),
        );
    }

    /// What is not for clients of gates.
    fn gate_client_keys(&mut self, client: &Client) {
        let name = text(&client.component);
        if let Some(badge) = &client.badge {
            self.found(
                Finding::new(badge.span(), format!("the gate gives `{name}` its badge"))
                    .label("must not be here")
                    .help(
                        "remove it: the server knows clients by their place in the list, from 0 on",
                    ),
            );
        }
        if let Some(longest) = &client.longest {
            self.found(
                Finding::new(longest.span(), "`longest` has no effect behind a gate")
                    .label("must not be here")
                    .help("remove it: `length` of the resource says how long an operation takes, for whomever it is"),
            );
        }
        if !matches!(client.rights, ClientRights::Call) {
            self.found(
                Finding::new(
                    client.component.span(),
                    format!("`{name}` may do more than call"),
                )
                .label("only calls without capabilities pass a gate")
                .help("remove `rights`"),
            );
        }
        if let Some(requests) = &client.requests {
            self.in_range("number of requests", Some(requests), 0..=1_000_000, 0);
        }
    }

    /// What a client's component must be: one thread, whose time is the gate's to move and nobody else's.
    fn gate_client(&mut self, gate: &'a Resource, member: &Member<'a>) {
        let component = member.component;
        let name = member.name();
        // It has a gate itself: that is said already.
        if has_gate(self.document, name) {
            return;
        }
        let place = member.described.component.span();
        let passive = component.passive.as_ref();
        if let Some(passive) = passive.filter(|passive| *passive.get_ref()) {
            self.found(
                Finding::new(place.clone(), format!("`{name}` has no time to pay with"))
                    .label("is passive")
                    .related(passive.span(), "it runs on its clients' time")
                    .help("let its clients call the gate, or give it `budget` and `period` of its own"),
            );
        }
        let thread = component.threads.first().map(|thread| thread.name.span());
        let spawns = component.spawns.as_ref().map(Spanned::span);
        if let Some(other) = thread.or(spawns) {
            self.found(
                Finding::new(other, format!("`{name}` is a client of a gate, and has other threads"))
                    .label("would run while its request waits")
                    .related(place.clone(), "a client of a gate")
                    .help("make the other thread a component of its own, and a client if it makes requests"),
            );
        }
        if let Some((span, why)) = scheduled_by(self.document, name) {
            self.found(
                Finding::new(place, format!("the time of `{name}` is moved by two"))
                    .label(format!("by the gate of `{}`", text(&gate.name)))
                    .related(span, why)
                    .help(format!(
                        "let a component with time of its own ask for it: `{{ component = \"...\", on-behalf-of = [\"{name}\"] }}`; \
                         or remove one of the two"
                    )),
            );
        }
    }

    /// At the priority above a client's, the server works for it: nobody else may have that on its core, nor a passive server,
    /// which may be on any.
    fn priority_above_is_free(&mut self, gate: &'a Resource, member: &Member<'a>) {
        let taken = i64::from(member.priority) + 1;
        let server = gate.server.as_ref().map(text);
        let document = self.document;
        for component in &document.components {
            let core = component.core.as_ref().map_or(0, |core| *core.get_ref());
            let passive = component.passive.as_ref();
            let is_passive = passive.is_some_and(|passive| *passive.get_ref());
            let is_near = is_passive || core == i64::from(member.core);
            let name = text(&component.name);
            if !is_near || Some(name) == server || *component.priority.get_ref() != taken {
                continue;
            }
            self.found(
                Finding::new(
                    component.priority.span(),
                    format!("`{name}` would be in the way of a request of `{}`", member.name()),
                )
                .label(format!("must not be {taken}"))
                .related(member.component.priority.span(), "the client's priority")
                .help("the server works for a client at the priority above that one's, so that others of the same priority do not keep it from \
                       running: leave that one free on the client's core"),
            );
        }
    }

    fn gate_kind(&mut self, gate: &'a Resource, member: &Member<'a>, members: &[Member<'a>]) {
        self.priority_above_is_free(gate, member);
        let passive = member.component.passive.as_ref();
        let is_passive = passive.is_some_and(|passive| *passive.get_ref());
        if is_passive || has_gate(self.document, member.name()) {
            // Neither can be a client.
            return;
        }
        match kind(member.described) {
            ClientKind::Sporadic => self.gate_sporadic(member),
            ClientKind::BestEffort => self.gate_best_effort(member, members),
            ClientKind::TableDriven => self.gate_table_driven(gate, member, members),
        }
    }

    fn gate_sporadic(&mut self, member: &Member<'a>) {
        let (Some(budget), Some(period)) = (&member.component.budget, &member.component.period)
        else {
            return;
        };
        if budget.get_ref() == period.get_ref() {
            self.found(
                Finding::new(budget.span(), format!("the budget of `{}` never runs out", member.name()))
                    .label("must be below the period")
                    .related(member.described.component.span(), "a client of a gate, of kind `sporadic`")
                    .help("give it less than its period; or name what it is: `kind = \"best-effort\"`, or `\"table-driven\"` with `slots`"),
            );
        }
    }

    fn gate_best_effort(&mut self, member: &Member<'a>, members: &[Member<'a>]) {
        let name = member.name();
        let kind = member.described.kind.as_ref().map(Spanned::span);
        let kind = kind.unwrap_or_else(|| member.described.component.span());
        if let (Some(budget), Some(period)) = (&member.component.budget, &member.component.period) {
            if budget.get_ref() != period.get_ref() {
                self.found(
                    Finding::new(
                        budget.span(),
                        format!("`{name}` has a budget, and is of best effort"),
                    )
                    .label(format!(
                        "must be equal to the period, {} µs: round robin",
                        period.get_ref().0
                    ))
                    .related(kind.clone(), "its kind")
                    .help("or remove `kind`, for a client with a budget in each period"),
                );
            }
        }
        if let Some(requests) = &member.described.requests {
            self.found(
                Finding::new(requests.span(), format!("nothing is promised to `{name}`"))
                    .label("must not be here")
                    .related(kind.clone(), "its kind")
                    .help("remove it: there is no budget that its requests could be too many for"),
            );
        }
        // Nothing is promised to who makes no requests.
        let promised = members.iter().filter(|other| {
            other.core == member.core && other.is_real_time() && requests(other.described) > 0
        });
        let lowest = promised.min_by_key(|other| other.priority);
        if let Some(other) = lowest.filter(|other| other.priority <= member.priority) {
            self.found(
                Finding::new(
                    member.component.priority.span(),
                    format!(
                        "`{name}`, of best effort, would keep `{}` from its budget",
                        other.name()
                    ),
                )
                .label(format!("must be below {}", other.priority))
                .related(
                    other.component.priority.span(),
                    "of a client with a budget, on the same core",
                ),
            );
        }
    }

    fn gate_table_driven(
        &mut self,
        gate: &'a Resource,
        member: &Member<'a>,
        members: &[Member<'a>],
    ) {
        let name = member.name();
        let others = members
            .iter()
            .filter(|other| kind(other.described) != ClientKind::TableDriven);
        let here = others.filter(|other| other.core == member.core);
        let highest = here.max_by_key(|other| other.priority);
        if let Some(other) = highest.filter(|other| other.priority >= member.priority) {
            self.found(
                Finding::new(
                    member.component.priority.span(),
                    format!("`{name}` would not have its slots for itself"),
                )
                .label(format!("must be above {}", other.priority))
                .related(
                    other.component.priority.span(),
                    "of a client without slots, on the same core",
                ),
            );
        }
        if let Some(&server) = self.servers_on_time_of(member.index).iter().next() {
            let server = &self.document.components[server].name;
            self.found(
                Finding::new(
                    member.described.component.span(),
                    format!(
                        "a slot of `{name}` may end while `{}` works on its time",
                        text(server)
                    ),
                )
                .label("calls a passive server")
                .related(server.span(), "the server")
                .help("a client with slots calls gates, and servers with time of their own"),
            );
        }
        let document = self.document;
        let gates = document.resources.iter().filter(|of| is_gated(of));
        let elsewhere = gates.filter(|of| text(&of.name) != text(&gate.name));
        let mut elsewhere = elsewhere.flat_map(|of| &of.clients);
        let other = elsewhere.find(|client| text(&client.component) == name);
        if let Some(other) = other {
            self.found(
                Finding::new(
                    member.described.component.span(),
                    format!("`{name}` has slots, and two gates"),
                )
                .label("the time of its slots would be in two hands")
                .related(other.component.span(), "the other")
                .help("give it a budget and a period in place of `slots`, or one gate"),
            );
        }
    }
}

/// Clients of what is written as endpoints, and a place to say so.
fn endpoints_without_resource(document: &Document) -> impl Iterator<Item = (&Client, Span)> {
    let is_resource = |name: &str| document.resources.iter().any(|of| text(&of.name) == name);
    let written = document.endpoints.iter().filter(move |endpoint| {
        let name = text(&endpoint.name);
        !is_resource(name) && !is_proxy(document, name)
    });
    written.flat_map(|endpoint| {
        let name = endpoint.name.span();
        let clients = endpoint.clients.iter();
        clients.map(move |client| (client, name.clone()))
    })
}

/// Who else moves the time of a component.
fn scheduled_by<'d>(document: &'d Document, name: &str) -> Option<(Span, &'static str)> {
    let is_it = |of: &&'d Text| text(of) == name;
    let tasks = document.edf.iter().flat_map(|edf| edf.tasks.get_ref());
    let task = tasks.map(|task| &task.component).find(is_it);
    let threads = document.partitions.iter();
    let threads = threads.flat_map(|of| of.threads.get_ref());
    let thread = threads.map(|thread| &thread.component).find(is_it);
    let clients = document.time_manager.iter();
    let clients = clients.flat_map(|manager| manager.clients.get_ref());
    let client = clients.map(|client| &client.component).find(is_it);
    let found = task.map(|of| (of, "it is a task of an `[[edf]]`"));
    let found = found.or(thread.map(|of| (of, "it is a thread of a `[[partition]]`")));
    let found = found.or(client.map(|of| (of, "it is a client of the `[time-manager]`")));
    found.map(|(of, why)| (of.span(), why))
}
