//! Who may be served where, and on whose time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::super::super::document::{Client, Resource, SharingProtocol, Text};
use super::super::super::findings::Span;
use super::super::calls::Call;
use super::super::names::ThreadIndex;
use super::super::policies::mc_ipc::has_gate;
use super::super::policies::sharing::{is_proxy, proxied};
use super::super::{text, Checker};

/// An endpoint or resource that clients call.
pub(super) struct Service<'a> {
    pub name: &'a Text,
    /// A component.
    pub server: usize,
    /// `None` of an endpoint.
    pub protocol: Option<SharingProtocol>,
    /// The threads that may be served, in the file's order.
    pub payers: Vec<Payer>,
    /// It serves as many requests at a time as there are threads that call it.
    pub has_room: bool,
}

/// A thread that may be served, directly or through other servers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Payer {
    pub thread: ThreadIndex,
    /// µs that its request takes at most, as described; `None` if that is not said.
    pub longest: Option<u64>,
}

impl<'a> Checker<'a> {
    /// All endpoints and resources, without those whose server keeps its callers waiting on purpose.
    pub(super) fn services(&self) -> Vec<Service<'a>> {
        let document = self.document;
        let resources: HashMap<&str, &Resource> = document
            .resources
            .iter()
            .map(|r| (text(&r.name), r))
            .collect();
        let mut through: HashMap<usize, Vec<Call<'a>>> = HashMap::new();
        for call in self.calls() {
            through.entry(call.server).or_default().push(call);
        }
        let mut services = Vec::new();
        for endpoint in &document.endpoints {
            let Some(server) = endpoint.server.as_ref() else {
                continue;
            };
            let index = self.names.component(text(server));
            let Some(index) = index.filter(|_| !self.keeps_callers(text(server))) else {
                continue;
            };
            let resource = resources.get(text(&endpoint.name)).copied();
            let protocol = resource.map(|resource| *resource.protocol.get_ref());
            let behind_proxy = protocol.and_then(proxied).is_some();
            let clients = match resource {
                Some(resource) if behind_proxy => &resource.clients,
                _ => &endpoint.clients,
            };
            let payers = self.payers_at(index, clients, &through);
            services.push(Service {
                name: &endpoint.name,
                server: index,
                protocol,
                has_room: self.has_room(index, protocol, payers.len()),
                payers,
            });
        }
        services
    }

    /// Whether a server keeps its callers waiting on purpose: a proxy or a gate until their resource is free, a scheduler
    /// until their next release.
    fn keeps_callers(&self, server: &str) -> bool {
        let mut schedulers = self.document.edf.iter();
        let partitioning = self.document.partitioning.as_ref();
        is_proxy(self.document, server)
            || has_gate(self.document, server)
            || schedulers.any(|edf| text(&edf.name) == server)
            || partitioning.is_some_and(|of| text(&of.name) == server)
    }

    /// The threads that `clients` are, or work for.
    fn payers_at(
        &self,
        server: usize,
        clients: &'a [Client],
        through: &HashMap<usize, Vec<Call<'a>>>,
    ) -> Vec<Payer> {
        let mut payers: BTreeMap<ThreadIndex, Option<u64>> = BTreeMap::new();
        let mut seen = BTreeSet::from([server]);
        let direct = clients.iter().filter(|client| client.rights.is_call());
        let mut open: Vec<(usize, &Client)> = direct
            .filter_map(|client| Some((self.names.component(text(&client.component))?, client)))
            .collect();
        while let Some((client, described)) = open.pop() {
            let longest = described.longest.as_ref().map(|us| us.get_ref().0);
            for thread in self.calling_threads(client) {
                let job = self.cooperative_job(thread).map(|(job, _)| job);
                let longest = longest.or(job);
                let known = payers.entry(thread).or_insert(Some(0));
                *known = known.zip(longest).map(|(one, other)| one.max(other));
            }
            if self.threads[client][0].passive && seen.insert(client) {
                let behind = through.get(&client).into_iter().flatten();
                open.extend(behind.map(|call| (call.client, call.described)));
            }
        }
        let payers = payers.into_iter();
        payers
            .map(|(thread, longest)| Payer { thread, longest })
            .collect()
    }

    /// Whether each of `payers` threads can be served at once.
    fn has_room(&self, server: usize, protocol: Option<SharingProtocol>, payers: usize) -> bool {
        let at_a_time = match protocol {
            Some(SharingProtocol::Workers) => self.threads[server].len(),
            Some(SharingProtocol::StackSpawning) => {
                let spawning = self.equipment[server].spawning;
                1 + spawning.map_or(0, |made| made.threads as usize)
            }
            _ => 1,
        };
        at_a_time >= payers
    }

    /// Where the timeout policy of a service stands, if it has one.
    pub(super) fn policy_of(&self, service: &Service<'_>) -> Option<Span> {
        let server = text(&self.document.components[service.server].name);
        let mut policies = self.document.timeout_policies.iter();
        let policy = policies.find(|policy| {
            let endpoint = policy.endpoint.as_ref().map(text);
            text(&policy.server) == server && endpoint.is_none_or(|name| name == text(service.name))
        });
        policy.map(|policy| policy.server.span())
    }

    /// The priority at which a service is served.
    pub(super) fn level_at(&self, service: &Service<'_>) -> u8 {
        let main = self.threads[service.server][0].priority;
        main.max(self.level_of(service.server))
    }
}
