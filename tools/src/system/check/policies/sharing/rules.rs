//! What a protocol wants of a resource's clients and of its server.

use super::super::super::super::document::{
    self, Client, ClientRights, Component, Resource, SharingProtocol, Text,
};
use super::super::super::super::findings::Finding;
use super::super::super::{text, Checker};
use super::super::mc_ipc::{gated, is_gated};
use super::expand::{highest_priority, HIGHEST};
use super::proxied;

impl<'a> Checker<'a> {
    /// Finds what is wrong with a resource, beyond what is wrong with its endpoint, and gives its
    /// server what it needs for its protocol.
    pub(super) fn check_resource(&mut self, resource: &'a Resource) {
        let protocol = *resource.protocol.get_ref();
        let Some(server) = resource.server.as_ref() else {
            return;
        };
        let Some(index) = self.names.component(text(server)) else {
            return;
        };
        if is_gated(resource) {
            return;
        }
        let component = &self.document.components[index];
        self.check_time_of_server(resource, component);
        match protocol {
            SharingProtocol::None
            | SharingProtocol::McIpc
            | SharingProtocol::Fifo
            | SharingProtocol::Priority => {}
            SharingProtocol::Ceiling | SharingProtocol::BestEffort => {
                self.check_ceiling(resource, component);
            }
            SharingProtocol::Workers => {
                self.check_ceiling(resource, component);
                self.equip_workers(resource, index);
            }
            SharingProtocol::StackSpawning => {
                self.check_ceiling(resource, component);
                self.equip_spawning(resource, index);
            }
            SharingProtocol::Blocking => {
                self.check_ceiling(resource, component);
                self.equip_blocking(resource, index);
            }
            SharingProtocol::Inheritance
            | SharingProtocol::OriginalCeiling
            | SharingProtocol::BandwidthInheritance => {
                self.check_behind_proxy(resource, component);
            }
        }
    }

    /// Each thread of a server waits at one endpoint.
    pub(super) fn check_alone(&mut self, number: usize, resource: &'a Resource) {
        let document = self.document;
        let Some(server) = resource.server.as_ref() else {
            return;
        };
        let Some(index) = self.names.component(text(server)) else {
            return;
        };
        let threads = self.serving_threads(index, *resource.protocol.get_ref());
        if self.served[index].len() <= threads {
            return;
        }
        let resources = &document.resources;
        let is_plain = |name: &str| !resources.iter().any(|other| text(&other.name) == name);
        let earlier = resources[..number].iter();
        let earlier = earlier.map(|other| (&other.name, &other.server));
        let plain = document.endpoints.iter();
        let plain = plain.filter(|endpoint| is_plain(text(&endpoint.name)));
        let plain = plain.map(|endpoint| (&endpoint.name, &endpoint.server));
        let same = |served: Option<&Text>| served.is_some_and(|name| text(name) == text(server));
        let Some((name, Some(first))) = earlier.chain(plain).find(|(_, by)| same(by.as_ref()))
        else {
            return;
        };
        self.found(
            Finding::new(
                server.span(),
                format!(
                    "`{}` serves both `{}` and `{}`",
                    text(server),
                    text(name),
                    text(&resource.name)
                ),
            )
            .label("the clients of one of them would never be answered")
            .related(first.span(), "the other")
            .help(if threads > 1 {
                "each thread serves one resource: add a thread, or split it into two components"
            } else {
                "its main thread serves one resource: split it into two components"
            }),
        );
    }

    /// The threads of a server that wait for requests of an endpoint of their own: all but those that
    /// handle timeouts. Behind a proxy or a gate, and among spawned ones, it is the main thread alone.
    fn serving_threads(&self, server: usize, protocol: SharingProtocol) -> usize {
        let is_alone = proxied(protocol).is_some() || gated(protocol).is_some();
        if is_alone || protocol == SharingProtocol::StackSpawning {
            return 1;
        }
        let component = &self.document.components[server];
        let handles = |thread: &&document::Thread| {
            let path = format!("{}/{}", text(&component.name), text(&thread.name));
            let mut policies = self.document.timeout_policies.iter();
            policies.any(|policy| text(&policy.handler) == path)
        };
        1 + component
            .threads
            .iter()
            .filter(|thread| !handles(thread))
            .count()
    }

    /// A shared server runs on its clients' time, except under best effort.
    fn check_time_of_server(&mut self, resource: &Resource, server: &Component) {
        let passive = server.passive.as_ref();
        let is_passive = passive.is_some_and(|passive| *passive.get_ref());
        let best_effort = *resource.protocol.get_ref() == SharingProtocol::BestEffort;
        let name = text(&server.name);
        if best_effort && is_passive {
            self.found(
                Finding::new(
                    server.name.span(),
                    format!("`{name}` has no time of its own"),
                )
                .label("`best-effort` servers run on their own budget")
                .related(resource.protocol.span(), "the protocol")
                .help("give it `budget` and `period`, or choose `ceiling` to run on its clients' time"),
            );
        } else if !best_effort && !is_passive {
            self.found(
                Finding::new(server.name.span(), format!("`{name}` has time of its own"))
                    .label("servers of this protocol run on their clients' budgets")
                    .related(resource.protocol.span(), "the protocol")
                    .help(
                        "make it `passive = true`; or choose `best-effort` to run on its own time",
                    ),
            );
        }
    }

    /// Thesis 6.2.1: the server has at least the priority of its highest client.
    fn check_ceiling(&mut self, resource: &Resource, server: &Component) {
        for client in &resource.clients {
            let Some(index) = self.names.component(text(&client.component)) else {
                continue;
            };
            let priority = &self.document.components[index].priority;
            if priority.get_ref() <= server.priority.get_ref() {
                continue;
            }
            self.found(
                Finding::new(
                    server.priority.span(),
                    format!(
                        "the ceiling of `{}` is below the priority of its client `{}`",
                        text(&resource.name),
                        text(&client.component)
                    ),
                )
                .label(format!("must be at least {}", priority.get_ref()))
                .related(priority.span(), "the client's")
                .help("a server's priority is the ceiling: that of its highest client, or above"),
            );
        }
    }

    fn check_behind_proxy(&mut self, resource: &'a Resource, server: &Component) {
        let highest = highest_priority(self.document, &[resource]);
        if highest >= HIGHEST {
            self.found(
                Finding::new(
                    resource.protocol.span(),
                    "the proxy of this protocol needs a higher priority than all clients and servers",
                )
                .label(format!(
                    "but one of them has {highest}, and {HIGHEST} is the highest"
                ))
                .help("lower the priorities of clients and servers"),
            );
        }
        if *resource.protocol.get_ref() == SharingProtocol::BandwidthInheritance {
            if let Some(handler) = &server.timeout_handler {
                self.found(
                    Finding::new(
                        handler.span(),
                        format!("`{}` has two timeout handlers", text(&server.name)),
                    )
                    .label("this, and the proxy")
                    .related(
                        resource.protocol.span(),
                        "the protocol, whose proxy handles timeouts",
                    )
                    .help("remove it, or choose `ceiling`, which works with any timeout handler"),
                );
            }
        }
        for client in &resource.clients {
            self.check_client_of_proxy(resource, server, client);
        }
    }

    fn check_client_of_proxy(&mut self, resource: &Resource, server: &Component, client: &Client) {
        let name = text(&client.component);
        let Some(index) = self.names.component(name) else {
            return;
        };
        if !matches!(client.rights, ClientRights::Call) {
            self.found(
                Finding::new(
                    client.component.span(),
                    format!("`{name}` may do more than call"),
                )
                .label("only calls without capabilities pass through a proxy")
                .help("remove `rights`, or choose `ceiling`, which needs no proxy"),
            );
        }
        let component = &self.document.components[index];
        let core =
            |component: &Component| component.core.as_ref().map_or(0, |core| *core.get_ref());
        if core(component) != 0 || core(server) != 0 {
            self.found(
                Finding::new(
                    client.component.span(),
                    "these protocols are for one core, core 0",
                )
                .label(format!("`{name}` or its server is on another"))
                .help("`ceiling` works across cores"),
            );
        }
        let passive = component.passive.as_ref();
        let is_passive = passive.is_some_and(|passive| *passive.get_ref());
        if is_passive && !self.serves_by(index, *resource.protocol.get_ref()) {
            self.found(
                Finding::new(
                    client.component.span(),
                    format!("`{name}` has no time to lend"),
                )
                .label("a passive client must serve a resource of the same protocol")
                .help(
                    "all resources of nested requests have one protocol, so that one proxy sees \
                     who waits for whom",
                ),
            );
        }
    }

    /// Whether a component serves a resource of this protocol.
    fn serves_by(&self, component: usize, protocol: SharingProtocol) -> bool {
        let resources = self.document.resources.iter();
        let same: Vec<&Resource> = resources
            .filter(|resource| *resource.protocol.get_ref() == protocol)
            .collect();
        debug_assert!(proxied(protocol).is_some());
        self.serves(component, &same).is_some()
    }
}
