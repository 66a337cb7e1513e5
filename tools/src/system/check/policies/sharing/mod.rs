//! `[[resource]]`: endpoints that are shared by a protocol (library `sandglass-sharing`). Those behind a gate are
//! [`super::mc_ipc`]'s.
//!
//! - [`expand`] turns each resource into an endpoint, and adds the proxy of those whose protocol
//!   needs one: the component `sharing-PROTOCOL`, and the endpoint of that name, which the clients
//!   then call;
//! - [`grants`] gives proxy and servers what they need for that;
//! - [`servers`] gives servers what they need that serve several requests at a time, [`spawning`] those
//!   that make threads for it;
//! - [`rules`] are what a protocol wants of clients and server.

mod expand;
mod grants;
mod rules;
mod servers;
mod spawning;

use sandglass_description::policy::sharing::Protocol;

use super::super::super::document::{Client, Document, Resource, SharingProtocol};
use super::super::{text, Checker};

pub use expand::expand;
pub(super) use expand::highest_priority;

/// The protocols that need a proxy, and its name.
const PROXIED: [(Protocol, &str); 3] = [
    (Protocol::Inheritance, "sharing-inheritance"),
    (Protocol::OriginalCeiling, "sharing-original-ceiling"),
    (
        Protocol::BandwidthInheritance,
        "sharing-bandwidth-inheritance",
    ),
];

/// The proxy's further thread under the original ceiling.
const REMINDER: &str = "reminder";
/// Name of a proxy's thread that only waits.
const PROBE: &str = "probe";
/// Name of a proxy's thread that lets time pass.
const CLOCK: &str = "clock";

/// The protocol that a proxy is needed for, if one is.
pub(in super::super) const fn proxied(protocol: SharingProtocol) -> Option<Protocol> {
    match protocol {
        SharingProtocol::None
        | SharingProtocol::Ceiling
        | SharingProtocol::BestEffort
        | SharingProtocol::Workers
        | SharingProtocol::StackSpawning
        | SharingProtocol::Blocking
        | SharingProtocol::McIpc
        | SharingProtocol::Fifo
        | SharingProtocol::Priority => None,
        SharingProtocol::Inheritance => Some(Protocol::Inheritance),
        SharingProtocol::OriginalCeiling => Some(Protocol::OriginalCeiling),
        SharingProtocol::BandwidthInheritance => Some(Protocol::BandwidthInheritance),
    }
}

/// Whether the component called `name` is the proxy of a protocol.
pub(in super::super) fn is_proxy(document: &Document, name: &str) -> bool {
    let mut proxies = PROXIED.iter().filter(|(_, proxy)| *proxy == name);
    proxies.any(|(protocol, _)| !resources_of(document, *protocol).is_empty())
}

/// The resources of a proxy, in order.
fn resources_of(document: &Document, protocol: Protocol) -> Vec<&Resource> {
    let resources = document.resources.iter();
    resources
        .filter(|resource| proxied(*resource.protocol.get_ref()) == Some(protocol))
        .collect()
}

/// The entries of a proxy, in order: by number in [`resources_of`], who may ask.
fn entries_of<'d>(resources: &[&'d Resource]) -> Vec<(usize, &'d Client)> {
    let entries = resources.iter().enumerate().flat_map(|(number, resource)| {
        let clients = resource.clients.iter();
        clients.map(move |client| (number, client))
    });
    entries.collect()
}

impl Checker<'_> {
    /// Checks all resources, and equips their proxies.
    pub(super) fn sharing(&mut self) {
        for (number, resource) in self.document.resources.iter().enumerate() {
            self.check_alone(number, resource);
            self.check_resource(resource);
        }
        self.check_who_spawns();
        for (protocol, proxy) in PROXIED {
            let resources = resources_of(self.document, protocol);
            if let Some(proxy) = self.names.component(proxy) {
                if !resources.is_empty() {
                    self.equip_proxy(proxy, protocol, &resources);
                }
            }
        }
    }

    /// The components that a proxy works for, each once.
    pub(super) fn clients_of_proxy(&self, name: &str) -> Vec<usize> {
        let Some((protocol, _)) = PROXIED.iter().find(|(_, proxy)| *proxy == name) else {
            return Vec::new();
        };
        let resources = resources_of(self.document, *protocol);
        let clients = self.clients_of(&entries_of(&resources), &resources);
        clients.unwrap_or_default()
    }

    /// The number of the resource among these that a component serves.
    fn serves(&self, component: usize, resources: &[&Resource]) -> Option<usize> {
        resources.iter().position(|resource| {
            let server = resource.server.as_ref();
            server.and_then(|server| self.names.component(text(server))) == Some(component)
        })
    }
}
