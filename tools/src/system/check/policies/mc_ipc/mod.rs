//! `[[resource]]`s behind a gate, which orders the requests of clients on several cores (`user/policies/mc-ipc`).
//!
//! - [`expand`] is what such a resource means in terms of components and endpoints;
//! - [`rules`] are what server and clients must be, [`levels`] what is said for each criticality, [`slots`] what is said of
//!   tables;
//! - [`budgets`] compares budgets with what requests may take of them;
//! - [`ahead`] is what they take of a core on which a time manager gives out turns;
//! - [`couriers`] are clients that ask for others;
//! - [`grants`] gives the server what its gate works with.

mod ahead;
mod budgets;
mod couriers;
mod expand;
mod grants;
mod levels;
mod rules;
mod slots;

use sandglass_description::policy::mc_ipc::Protocol;

use super::super::super::document::{
    Client, ClientKind, Component, Document, Resource, SharingProtocol,
};
use super::super::super::spanned::Spanned;
use super::super::{text, Checker};

pub use budgets::{Asked, Requests};
pub(super) use expand::endpoint;
pub use expand::expand;

/// Whose requests are ordered by a gate, and how.
pub(in super::super) const fn gated(protocol: SharingProtocol) -> Option<Protocol> {
    match protocol {
        SharingProtocol::McIpc => Some(Protocol::McIpc),
        SharingProtocol::Fifo => Some(Protocol::Fifo),
        SharingProtocol::Priority => Some(Protocol::Priority),
        SharingProtocol::None
        | SharingProtocol::Ceiling
        | SharingProtocol::BestEffort
        | SharingProtocol::Workers
        | SharingProtocol::StackSpawning
        | SharingProtocol::Blocking
        | SharingProtocol::Inheritance
        | SharingProtocol::OriginalCeiling
        | SharingProtocol::BandwidthInheritance => None,
    }
}

/// Whether a resource has a gate.
pub(in super::super) fn is_gated(resource: &Resource) -> bool {
    gated(*resource.protocol.get_ref()).is_some()
}

/// Whether the component called `name` has a gate.
pub(in super::super) fn has_gate(document: &Document, name: &str) -> bool {
    let mut gates = document
        .resources
        .iter()
        .filter(|resource| is_gated(resource));
    gates.any(|gate| gate.server.as_ref().is_some_and(|of| text(of) == name))
}

/// When a client has budget.
fn kind(client: &Client) -> ClientKind {
    client
        .kind
        .as_ref()
        .map_or(ClientKind::default(), |kind| *kind.get_ref())
}

/// Requests of a job that a client's budget is for.
fn requests(client: &Client) -> u64 {
    let by_default = match kind(client) {
        ClientKind::BestEffort => 0,
        ClientKind::Sporadic | ClientKind::TableDriven => 1,
    };
    let given = client.requests.as_ref();
    given.map_or(by_default, |given| {
        u64::try_from(*given.get_ref()).unwrap_or(0)
    })
}

/// What a client's slots add up to in a cycle, and the cycle, µs; `None` of one that is not table-driven.
fn slots_of<'d>(document: &'d Document, component: &str) -> Option<(&'d Resource, &'d Client)> {
    let gates = document
        .resources
        .iter()
        .filter(|resource| is_gated(resource));
    let mut clients = gates.flat_map(|gate| gate.clients.iter().map(move |client| (gate, client)));
    clients.find(|(_, client)| {
        kind(client) == ClientKind::TableDriven && text(&client.component) == component
    })
}

/// A client of a gate that exists.
#[derive(Clone, Copy)]
struct Member<'a> {
    described: &'a Client,
    /// Its component, and that one's number.
    component: &'a Component,
    index: usize,
    core: u32,
    priority: u8,
}

impl Member<'_> {
    fn name(&self) -> &str {
        text(&self.component.name)
    }

    fn is_real_time(&self) -> bool {
        kind(self.described) != ClientKind::BestEffort
    }
}

impl<'a> Checker<'a> {
    /// Checks all gates.
    pub(super) fn gates(&mut self) {
        let document = self.document;
        self.gate_keys_elsewhere();
        let before = self.findings.len();
        let gates = document
            .resources
            .iter()
            .filter(|resource| is_gated(resource));
        for gate in gates.clone() {
            let members = self.members_of(gate);
            self.gate_rules(gate, &members);
            self.gate_couriers(gate, &members);
            self.gate_levels(gate, &members);
            self.gate_slots(gate, &members);
        }
        if self.findings.len() == before {
            self.gate_budgets();
            for gate in gates {
                let members = self.members_of(gate);
                self.equip_gate(gate, &members);
                self.equip_couriers(gate, &members);
            }
        }
    }

    /// The clients of a gate; one that does not exist has been found to be missing.
    fn members_of(&self, gate: &'a Resource) -> Vec<Member<'a>> {
        let clients = gate.clients.iter().filter_map(|described| {
            let index = self.names.component(text(&described.component))?;
            let thread = &self.threads[index][0];
            Some(Member {
                described,
                component: &self.document.components[index],
                index,
                core: thread.time.core,
                priority: thread.priority,
            })
        });
        clients.collect()
    }

    /// Of a table-driven client: what its slots take of its core, and in which time, µs.
    pub(in super::super) fn slots_in_cycle(&self, component: &str) -> Option<(u64, u64)> {
        let (gate, client) = slots_of(self.document, component)?;
        let slots = client.slots.as_ref()?.get_ref().iter();
        let length = slots.map(|slot| slot.length.get_ref().0).sum();
        Some((length, gate.cycle.as_ref().map(Spanned::get_ref)?.0))
    }
}
