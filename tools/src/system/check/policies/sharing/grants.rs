//! What a proxy and the servers behind it get, and nothing else.

use sandglass_abi::rights::Rights;
use sandglass_description::policy::sharing::{
    badge, Entry, Protocol, Requester, Sharing, MOST_CLIENTS, MOST_RESOURCES,
};
use sandglass_description::policy::Table;
use sandglass_description::{Grant, Handler, Object, Signal, ThreadId};

use super::super::super::super::document::{Client, Resource};
use super::super::super::super::findings::{Finding, Span};
use super::super::super::names::ThreadIndex;
use super::super::super::{text, Checker};
use super::entries_of;

impl Checker<'_> {
    /// Gives a proxy its table and its capabilities, and its servers theirs.
    pub(super) fn equip_proxy(
        &mut self,
        proxy: usize,
        protocol: Protocol,
        resources: &[&Resource],
    ) {
        let span = self.document.components[proxy].name.span();
        let entries = entries_of(resources);
        let Some(clients) = self.clients_of(&entries, resources) else {
            return;
        };
        if resources.len() > MOST_RESOURCES || clients.len() > MOST_CLIENTS {
            self.found(
                Finding::new(
                    span,
                    format!(
                        "{} resources and {} clients share by this protocol",
                        resources.len(),
                        clients.len()
                    ),
                )
                .label(format!(
                    "at most {MOST_RESOURCES} resources and {MOST_CLIENTS} clients can"
                )),
            );
            return;
        }
        let table = self.table(protocol, &clients, &entries, resources);
        self.give_table(proxy, Sharing::NAME, &table, &span);
        let requests = self.endpoint_of(proxy, text(&self.document.components[proxy].name));
        let Some(requests) = requests else { return };
        for (number, &client) in clients.iter().enumerate() {
            self.give_client(proxy, number, client, &span);
        }
        for (number, resource) in resources.iter().enumerate() {
            self.connect_server(proxy, protocol, number, resource, requests);
        }
        for (number, (resource, client)) in entries.iter().enumerate() {
            self.give_request(proxy, number, resources[*resource], client);
        }
        // One for each thread that can wait for the proxy, beside the one that it receives with.
        // Every endpoint has a reply object, and these are for nothing else.
        let threads: usize = clients.iter().map(|&client| self.callers_of(client)).sum();
        for number in 0..threads + resources.len() {
            let object = Object::Reply(self.new_endpoint());
            self.give_proxy(proxy, &format!("reply.{number}"), object, 0, &span);
        }
        let own = self.main_thread(proxy);
        self.give_proxy(proxy, "self.tcb", Object::Tcb(own), 0, &span);
        let ends = self.new_notification();
        self.give_proxy(proxy, "ends", Object::Notification(ends), 0, &span);
        self.tell_of_servers(resources, ends);
        let wake = Object::Notification(self.new_notification());
        self.give_proxy(proxy, "clock.wake", wake, 0, &span);
        let tick = Object::Endpoint(requests);
        self.give_proxy(proxy, "clock.tick", tick, badge::TICK, &span);
        if protocol == Protocol::BandwidthInheritance {
            let probe = Object::Tcb(ThreadId { thread: 2, ..own });
            self.give_proxy(proxy, "probe.tcb", probe, 0, &span);
            let never = Object::Notification(self.new_notification());
            self.give_proxy(proxy, "probe.never", never, 0, &span);
        }
        if protocol == Protocol::OriginalCeiling {
            let doorbell = Object::Notification(self.new_notification());
            self.give_proxy(proxy, "doorbell", doorbell, 0, &span);
            let reminder = Object::Tcb(ThreadId { thread: 2, ..own });
            self.give_proxy(proxy, "reminder.tcb", reminder, 0, &span);
            let turn = Object::Endpoint(requests);
            self.give_proxy(proxy, "turn", turn, badge::TURN, &span);
        }
    }

    /// The components that ask and serve none of the resources, each once; `None` if a name is
    /// unknown, which was found already.
    pub(super) fn clients_of(
        &self,
        entries: &[(usize, &Client)],
        resources: &[&Resource],
    ) -> Option<Vec<usize>> {
        let mut clients = Vec::new();
        for (_, client) in entries {
            let component = self.names.component(text(&client.component))?;
            if self.serves(component, resources).is_none() && !clients.contains(&component) {
                clients.push(component);
            }
        }
        Some(clients)
    }

    fn table(
        &self,
        protocol: Protocol,
        clients: &[usize],
        entries: &[(usize, &Client)],
        resources: &[&Resource],
    ) -> Sharing {
        let requester = |client: &Client| {
            let component = self.names.component(text(&client.component))?;
            match self.serves(component, resources) {
                Some(resource) => Some(Requester::Server(resource as u32)),
                None => {
                    let number = clients.iter().position(|client| *client == component)?;
                    Some(Requester::Client(number as u32))
                }
            }
        };
        Sharing {
            protocol,
            clients: clients
                .iter()
                .map(|&client| self.threads[client][0].priority)
                .collect(),
            resources: resources.len() as u32,
            entries: entries
                .iter()
                .filter_map(|(resource, client)| {
                    Some(Entry {
                        requester: requester(client)?,
                        resource: *resource as u32,
                    })
                })
                .collect(),
        }
    }

    fn give_client(&mut self, proxy: usize, number: usize, client: usize, span: &Span) {
        let thread = self.main_thread(client);
        let tcb = format!("client.{number}.tcb");
        self.give_proxy(proxy, &tcb, Object::Tcb(thread), 0, span);
        let context = format!("client.{number}.context");
        self.give_proxy(proxy, &context, Object::SchedContext(thread), 0, span);
        let time = self.threads[client][0].time;
        let threads = self.callers_of(client) as u64;
        for (what, value) in [
            ("budget", time.budget_us),
            ("period", time.period_us),
            ("threads", threads),
        ] {
            let name = format!("client.{number}.{what}");
            self.equipment[proxy].add_parameter(&name, value, span, &mut self.findings);
        }
    }

    /// How many threads of a component can wait for an answer at a time.
    fn callers_of(&self, component: usize) -> usize {
        let spawning = &self.equipment[component].spawning;
        let spawned = spawning
            .as_ref()
            .map_or(0, |spawning| spawning.threads as usize);
        self.threads[component].len() + spawned
    }

    /// Lets the launcher tell the proxy when a server has ended.
    fn tell_of_servers(&mut self, resources: &[&Resource], ends: u32) {
        for (number, resource) in resources.iter().enumerate() {
            let server = resource.server.as_ref();
            let Some(server) = server.and_then(|name| self.names.component(text(name))) else {
                continue;
            };
            let thread = ThreadIndex {
                component: server,
                thread: 0,
            };
            let signal = Signal {
                notification: ends,
                badge: badge::ENDED | 1 << number,
            };
            self.tell_of_end(thread, signal);
        }
    }

    /// Gives the proxy power over a server, and the server the way back to the proxy.
    fn connect_server(
        &mut self,
        proxy: usize,
        protocol: Protocol,
        number: usize,
        resource: &Resource,
        requests: u32,
    ) {
        let Some(name) = &resource.server else { return };
        let Some(server) = self.names.component(text(name)) else {
            return;
        };
        let span = name.span();
        let thread = self.main_thread(server);
        let tcb = format!("server.{number}.tcb");
        self.give_proxy(proxy, &tcb, Object::Tcb(thread), 0, &span);
        let done = Grant {
            name: format!("{}.done", text(&resource.name)),
            object: Object::Endpoint(requests),
            rights: Rights::WRITE.raw(),
            badge: badge::DONE + number as u64,
            calls_only: false,
        };
        self.equipment[server].add_grant(done, &span, &mut self.findings);
        if protocol == Protocol::BandwidthInheritance {
            self.threads[server][0].timeout_handler = Some(Handler {
                endpoint: requests,
                badge: badge::TIMEOUT + number as u64,
            });
        }
    }

    /// Gives the proxy what it hands a client's requests on with: with the client's badge.
    fn give_request(&mut self, proxy: usize, number: usize, resource: &Resource, client: &Client) {
        let server = resource.server.as_ref();
        let Some(server) = server.and_then(|name| self.names.component(text(name))) else {
            return;
        };
        let Some(endpoint) = self.endpoint_of(server, text(&resource.name)) else {
            return;
        };
        let badge = client.badge.as_ref().map_or(0, |badge| *badge.get_ref());
        let object = Object::Endpoint(endpoint);
        let name = format!("request.{number}");
        self.give_proxy(proxy, &name, object, badge as u64, &client.component.span());
    }

    /// Gives a capability with the rights that the proxy needs: to send to endpoints, all of the
    /// rest.
    fn give_proxy(&mut self, proxy: usize, name: &str, object: Object, badge: u64, span: &Span) {
        let rights = match object {
            Object::Endpoint(_) => Rights::WRITE,
            _ => Rights::ALL,
        };
        let grant = Grant {
            name: name.to_owned(),
            object,
            rights: rights.raw(),
            badge,
            calls_only: false,
        };
        self.equipment[proxy].add_grant(grant, span, &mut self.findings);
    }

    /// The index of the endpoint `name` that a component serves.
    fn endpoint_of(&self, component: usize, name: &str) -> Option<u32> {
        let mut served = self.served[component].iter();
        let found = served.find(|(_, served)| *served == name);
        found.map(|(index, _)| *index)
    }

    fn main_thread(&self, component: usize) -> ThreadId {
        ThreadId {
            component: self.position[component],
            thread: 0,
        }
    }
}
