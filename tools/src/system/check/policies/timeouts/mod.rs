//! `[[timeout-policy]]`: what happens when a client's time runs out in a server.
//!
//! - [`parties`]: the server and the handler;
//! - [`clients`]: the policy of each client.

mod clients;
mod parties;

use std::collections::{BTreeMap, HashMap, HashSet};

use sandglass_description::policy::timeouts::{Client, Last, Policy, Timeouts};
use sandglass_description::policy::Table;
use sandglass_description::{Object, Time};

use super::super::super::document::{self, Document, LastPolicy, Text};
use super::super::super::findings::{Finding, Span};
use super::super::names::ThreadIndex;
use super::super::{text, Checker};

impl From<LastPolicy> for Last {
    fn from(policy: LastPolicy) -> Self {
        match policy {
            LastPolicy::Rollback => Self::Rollback,
            LastPolicy::Reset => Self::Reset,
            LastPolicy::Kill => Self::Kill,
        }
    }
}

/// A policy, and where it stands.
type Placed = (Policy, Text);

impl<'a> Checker<'a> {
    pub(super) fn timeout_policies(&mut self) {
        let document = self.document;
        let mut seen: HashMap<ThreadIndex, Span> = HashMap::new();
        for described in &document.timeout_policies {
            let Some(server) = self.find_thread(&described.server) else {
                continue;
            };
            if let Some(first) = seen.insert(server, described.server.span()) {
                self.found(
                    Finding::new(
                        described.server.span(),
                        format!("two timeout policies for `{}`", text(&described.server)),
                    )
                    .label("the second")
                    .related(first, "the first")
                    .help("merge them"),
                );
                continue;
            }
            self.timeout_policy(described, server);
        }
    }

    fn timeout_policy(&mut self, described: &document::TimeoutPolicy, server: ThreadIndex) {
        let before = self.findings.len();
        if let Some(resource) = self.proxied_resource(server.component) {
            self.policed_behind_proxy(described, resource, server.component);
            return;
        }
        self.policed_server(described, server);
        let endpoint = self.policed_endpoint(described, server.component);
        let handler = self.policing_handler(described, server);
        let (Some(endpoint), Some(handler)) = (endpoint, handler) else {
            return;
        };
        let users = Users::of(self.document, &self.names_of_components(), endpoint);
        let policies = self.client_policies(described, &users);
        let clients: Vec<ThreadIndex> = self.payers(&users, &policies);
        self.handler_priority(described, handler, server, &clients);
        if self.findings.len() > before {
            return;
        }
        self.timeout_badges(&clients, described);
        let default = Last::from(described.default);
        let emergency_badge = self.badge_of_time(server);
        let mut table = Timeouts {
            endpoint: endpoint.to_owned(),
            restart_us: self.time_of(server).budget_us,
            core: self.time_of(server).core,
            emergency_badge,
            calls_servers: self.calls_servers(server.component, None),
            default,
            clients: Vec::new(),
        };
        let home = self.new_notification();
        let name = format!("{}.home", self.path(server));
        let component = handler.component;
        self.give_once(
            component,
            &name,
            Object::Notification(home),
            &described.server,
        );
        for client in clients {
            let placed = policies.get(&client);
            let policy = placed.map_or(Policy::Last(default), |(policy, _)| *policy);
            let place = placed.map_or(&described.server, |(_, place)| place);
            self.equip_for(component, client, server, policy, place);
            let time = self.time_of(client);
            table.clients.push(Client {
                name: self.path(client),
                badge: time.badge,
                caller: self.caller(endpoint, client),
                core: time.core,
                budget_us: time.budget_us,
                period_us: time.period_us,
                extra_refills: time.extra_refills,
                sporadic: time.sporadic,
                policy,
            });
        }
        self.hears_of_faults(server);
        let name = format!("{}.{}", self.path(server), Timeouts::NAME);
        self.give_table(component, &name, &table, &described.server.span());
    }

    /// Lets a server's faults arrive where its timeouts do, unless they have a handler of their own.
    fn hears_of_faults(&mut self, server: ThreadIndex) {
        let thread = &mut self.threads[server.component][server.thread];
        thread.fault_handler = thread.fault_handler.or(thread.timeout_handler);
    }

    /// Gives the handler what its policy for a client takes, and nothing more.
    fn equip_for(
        &mut self,
        handler: usize,
        client: ThreadIndex,
        server: ThreadIndex,
        policy: Policy,
        place: &Text,
    ) {
        let (path, id) = (self.path(client), self.id(client));
        // To free the server from it: for an emergency, and when its owner has gone.
        self.give_once(
            handler,
            &format!("{path}.context"),
            Object::SchedContext(id),
            place,
        );
        if policy.last() == Last::Kill {
            self.give_once(handler, &format!("{path}.tcb"), Object::Tcb(id), place);
        }
        let core = match policy {
            Policy::Last(_) => return,
            Policy::Extend { .. } => self.time_of(client).core,
            Policy::Emergency { .. } => self.time_of(server).core,
        };
        let name = format!("sched-control.{core}");
        self.give_once(handler, &name, Object::SchedControl(core), place);
    }

    /// The badge under which a server knows the calls of a client.
    fn caller(&self, endpoint: &str, client: ThreadIndex) -> Option<u64> {
        let name = text(&self.document.components[client.component].name);
        let mut endpoints = self.document.endpoints.iter();
        let endpoint = endpoints.find(|described| text(&described.name) == endpoint)?;
        let mut capabilities = endpoint
            .clients
            .iter()
            .filter(|client| text(&client.component) == name);
        match (capabilities.next(), capabilities.next()) {
            (Some(only), None) => {
                let badge = only.badge.as_ref().map_or(0, |badge| *badge.get_ref());
                Some(badge as u64)
            }
            _ => None,
        }
    }

    fn time_of(&self, thread: ThreadIndex) -> Time {
        self.threads[thread.component][thread.thread].time
    }

    /// The threads whose time can run out in the server: those of its clients, and those that
    /// have a policy of their own.
    fn payers(&self, users: &Users, policies: &BTreeMap<ThreadIndex, Placed>) -> Vec<ThreadIndex> {
        let mut payers = Vec::new();
        for (component, threads) in self.threads.iter().enumerate() {
            for (thread, made) in threads.iter().enumerate() {
                let index = ThreadIndex { component, thread };
                let runs_out = !made.passive && made.time.budget_us != made.time.period_us;
                let calls = users.direct.contains(&component) && runs_out;
                if calls || policies.contains_key(&index) {
                    payers.push(index);
                }
            }
        }
        payers
    }

    /// Makes the badges of the clients' time differ; those without one get one.
    fn timeout_badges(&mut self, clients: &[ThreadIndex], described: &document::TimeoutPolicy) {
        let mut holders: HashMap<u64, ThreadIndex> = HashMap::new();
        for &client in clients {
            let badge = self.badge_of_time(client);
            if let Some(first) = holders.insert(badge, client) {
                let (first, second) = (self.path(first), self.path(client));
                self.found(
                    Finding::new(
                        described.server.span(),
                        format!("the reservations of `{first}` and `{second}` both have the badge {badge}"),
                    )
                    .label("its handler cannot tell them apart")
                    .help("remove `timeout-badge`: each then gets one of its own"),
                );
            }
        }
    }

    /// The badge of a thread's time, which gets one if it has none.
    pub(in super::super) fn badge_of_time(&mut self, thread: ThreadIndex) -> u64 {
        let unused = self.unused_badge();
        let badge = &mut self.threads[thread.component][thread.thread].time.badge;
        if *badge == 0 {
            *badge = unused;
        }
        *badge
    }

    /// The least badge, from 1, that no thread's time has.
    fn unused_badge(&self) -> u64 {
        let used: HashSet<u64> = self
            .threads
            .iter()
            .flatten()
            .map(|thread| thread.time.badge)
            .collect();
        (1..).find(|badge| !used.contains(badge)).unwrap_or(1)
    }

    fn names_of_components(&self) -> HashMap<&'a str, usize> {
        let components = self.document.components.iter();
        components
            .enumerate()
            .map(|(index, component)| (text(&component.name), index))
            .collect()
    }
}

/// Who calls a server, by components: directly, or by a server that calls it.
struct Users {
    direct: HashSet<usize>,
    others: HashSet<usize>,
}

impl Users {
    fn of(document: &Document, index: &HashMap<&str, usize>, endpoint: &str) -> Self {
        let clients = |endpoint: &document::Endpoint| -> HashSet<usize> {
            let names = endpoint
                .clients
                .iter()
                .map(|client| text(&client.component));
            names.filter_map(|name| index.get(name).copied()).collect()
        };
        let mut direct = HashSet::new();
        for described in &document.endpoints {
            if text(&described.name) == endpoint {
                direct.extend(clients(described));
            }
        }
        let mut all = direct.clone();
        loop {
            let before = all.len();
            for described in &document.endpoints {
                let server = described.server.as_ref();
                let server = server.and_then(|server| index.get(text(server)));
                if server.is_some_and(|server| all.contains(server)) {
                    all.extend(clients(described));
                }
            }
            if all.len() == before {
                break;
            }
        }
        let others = all.difference(&direct).copied().collect();
        Self { direct, others }
    }
}
