//! Clients of gates that ask for others, whose time somebody else schedules (`on-behalf-of`).

use sandglass_description::policy::mc_ipc::{names, Courier, MOST_THREADS};
use sandglass_description::policy::Table;

use super::super::super::super::document::{
    Client, Document, Map, MapRights, Memory, Notification, Resource, Signaller, Text,
};
use super::super::super::super::findings::Finding;
use super::super::super::super::quantity::Bytes;
use super::super::super::super::spanned::Spanned;
use super::super::super::{text, Checker};
use super::{is_gated, Member};

/// What a component and its courier share: a page.
const MAIL_BYTES: u64 = 4096;

/// For whom a client asks.
fn asks_for(client: &Client) -> impl Iterator<Item = &Text> {
    let named = client.on_behalf_of.iter();
    named.flat_map(|named| named.get_ref())
}

/// The clients of a gate that are couriers.
fn couriers(gate: &Resource) -> impl Iterator<Item = &Client> {
    let clients = gate.clients.iter();
    clients.filter(|client| client.on_behalf_of.is_some())
}

/// Adds what couriers and those whom they ask for talk by. Names that are wrong are left out, which is said later.
pub(super) fn expand(document: &mut Document, gates: &[Resource]) {
    let mut served: Vec<&str> = Vec::new();
    for gate in gates.iter().filter(|gate| is_gated(gate)) {
        let mut asked_for: Vec<&str> = Vec::new();
        for courier in couriers(gate) {
            let name = text(&courier.component);
            if !is_known(document, name) || served.contains(&name) {
                continue;
            }
            served.push(name);
            let named = asks_for(courier).take(MOST_THREADS).enumerate();
            let named = named.filter(|(_, of)| {
                let of = text(of);
                let is_new = of != name && is_known(document, of) && !asked_for.contains(&of);
                asked_for.push(of);
                is_new
            });
            let named: Vec<(usize, &Text)> = named.collect();
            let mail = named.iter().map(|(_, of)| mail(gate, courier, of));
            document.memory.extend(mail);
            document.notifications.push(posted(gate, courier, &named));
        }
    }
}

fn is_known(document: &Document, name: &str) -> bool {
    let mut components = document.components.iter();
    components.any(|component| text(&component.name) == name)
}

/// The memory that a component shares with its courier.
fn mail(gate: &Resource, courier: &Client, of: &Text) -> Memory {
    let map = |component: &Text| Map {
        component: component.clone(),
        rights: MapRights::ReadWrite,
        address: None,
    };
    let named = |value| Spanned::new(of.span(), value);
    Memory {
        name: named(names::mail(text(&gate.name), text(of))),
        size: Spanned::new(of.span(), Bytes(MAIL_BYTES)),
        physical: None,
        maps: vec![map(&courier.component), map(of)],
    }
}

/// By which the courier hears that something was posted.
fn posted(gate: &Resource, courier: &Client, named: &[(usize, &Text)]) -> Notification {
    let span = courier.component.span();
    let added = |value: String| Spanned::new(span.clone(), value);
    let signallers = named.iter().map(|(number, of)| Signaller {
        component: (*of).clone(),
        badge: Some(Spanned::new(of.span(), 1 << number)),
        alias: Some(Spanned::new(of.span(), names::post(text(&gate.name)))),
        at: None,
    });
    Notification {
        name: added(format!("{}.{}", text(&courier.component), names::POSTED)),
        waiter: courier.component.clone(),
        signallers: signallers.collect(),
        alias: Some(added(names::POSTED.to_owned())),
    }
}

impl<'a> Checker<'a> {
    /// What couriers of a gate must be.
    pub(super) fn gate_couriers(&mut self, gate: &'a Resource, members: &[Member<'a>]) {
        for member in members {
            let Some(named) = &member.described.on_behalf_of else {
                continue;
            };
            if named.get_ref().is_empty() {
                self.found(
                    Finding::new(named.span(), format!("`{}` asks for nobody", member.name()))
                        .label("must name one component at least")
                        .help("without `on-behalf-of`, it asks for itself"),
                );
            }
            if let Some(more) = named.get_ref().get(MOST_THREADS) {
                self.found(
                    Finding::new(more.span(), format!("{} components", named.get_ref().len()))
                        .label(format!("a courier asks for {MOST_THREADS}"))
                        .help("give the others a courier of their own"),
                );
            }
            self.one_gate(gate, member);
            for of in named.get_ref() {
                self.asked_for(gate, member, of);
            }
            self.courier_priority(gate, member);
        }
        self.asked_for_once(gate);
    }

    /// A courier knows one gate.
    fn one_gate(&mut self, gate: &'a Resource, member: &Member<'a>) {
        let gates = self.document.resources.iter().filter(|of| is_gated(of));
        let before = gates.take_while(|of| text(&of.name) != text(&gate.name));
        let mut couriers = before.flat_map(couriers);
        let first = couriers.find(|client| text(&client.component) == member.name());
        if let Some(first) = first {
            let (place, name) = (member.described.component.span(), member.name());
            self.found(
                Finding::new(place, format!("`{name}` is a courier at two gates"))
                    .label("the second")
                    .related(first.component.span(), "the first")
                    .help("while it waits at one, it asks nothing at the other: make the second a component of its own"),
            );
        }
    }

    /// Somebody for whom a courier asks.
    fn asked_for(&mut self, gate: &'a Resource, courier: &Member<'a>, of: &'a Text) {
        let Some(index) = self.find_component(of) else {
            return;
        };
        let name = text(of);
        let mut clients = gate.clients.iter();
        let direct = clients.find(|client| text(&client.component) == name);
        let server = gate.server.as_ref().filter(|server| text(server) == name);
        let problem = if let Some(direct) = direct {
            Some((
                "asks at this gate itself",
                direct.component.span(),
                "a client",
            ))
        } else if let Some(server) = server {
            Some(("has the gate", server.span(), "the server"))
        } else {
            let component = &self.document.components[index];
            let passive = component.passive.as_ref();
            let passive = passive.filter(|passive| *passive.get_ref());
            passive.map(|passive| ("is passive", passive.span(), "works on its clients' time"))
        };
        if let Some((label, place, why)) = problem {
            self.found(
                Finding::new(of.span(), format!("`{}` cannot ask for `{name}`", courier.name()))
                    .label(label)
                    .related(place, why)
                    .help("a courier asks for threads whose time others schedule: those of partitions, and clients of a time manager"),
            );
        }
    }

    /// Two couriers, or one twice, would answer into the same page.
    fn asked_for_once(&mut self, gate: &'a Resource) {
        let mut seen: Vec<&Text> = Vec::new();
        for of in couriers(gate).flat_map(asks_for) {
            let Some(first) = seen.iter().find(|seen| text(seen) == text(of)) else {
                seen.push(of);
                continue;
            };
            self.found(
                Finding::new(of.span(), format!("two ask for `{}`", text(of)))
                    .label("the second")
                    .related(first.span(), "the first")
                    .help("it has one request at a time: remove it here"),
            );
        }
    }

    /// A courier is promised its budget only if those for whom it asks do not come before it, and neither do turns.
    fn courier_priority(&mut self, gate: &'a Resource, courier: &Member<'a>) {
        if !courier.is_real_time() {
            return;
        }
        let document = self.document;
        // Clients and the server cannot be asked for, as is said elsewhere.
        let clients = gate.clients.iter().map(|client| &client.component);
        let own: Vec<&str> = clients.chain(&gate.server).map(text).collect();
        let named = asks_for(courier.described).filter(|of| !own.contains(&text(of)));
        let here = named.filter_map(|of| {
            let thread = &self.threads[self.names.component(text(of))?][0];
            (thread.time.core == courier.core).then_some((thread.priority, of.span()))
        });
        let highest = here.max_by_key(|(priority, _)| *priority);
        // A time manager is on the first core.
        let manager = document.time_manager.as_ref().filter(|_| courier.core == 0);
        let manager = manager.and_then(|manager| {
            let priority = u8::try_from(*manager.priority.get_ref()).ok()?;
            Some((priority, manager.priority.span()))
        });
        let above = highest.into_iter().chain(manager);
        let Some((least, place)) = above.max_by_key(|(priority, _)| *priority) else {
            return;
        };
        if courier.priority <= least {
            self.found(
                Finding::new(
                    courier.component.priority.span(),
                    format!("`{}` would not have its budget when it is asked", courier.name()),
                )
                .label(format!("must be above {least}"))
                .related(place, "comes before it, on the same core")
                .help("a courier's reservation is its own, beside windows and turns, and is counted where these are admitted; or give it \
                       another core"),
            );
        }
    }

    /// Tells the couriers of a gate in which nothing is wrong for whom they ask.
    pub(super) fn equip_couriers(&mut self, gate: &'a Resource, members: &[Member<'a>]) {
        for member in members {
            let Some(named) = &member.described.on_behalf_of else {
                continue;
            };
            let alias = member.described.alias.as_ref();
            let named_so = alias.unwrap_or(&gate.name);
            let threads = named.get_ref().iter().map(|of| text(of).to_owned());
            let table = Courier {
                gate: text(&gate.name).to_owned(),
                endpoint: text(named_so).to_owned(),
                threads: threads.collect(),
            };
            self.give_table(member.index, Courier::NAME, &table, &named.span());
        }
    }
}
