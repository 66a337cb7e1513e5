//! Who calls which server, and what is known of how long that takes.

use std::collections::BTreeSet;

use crate::system::spanned::Spanned;
use sandglass_description::policy::timers;

use super::super::document::{self, PolicyName, SharingProtocol};
use super::super::quantity::Micros;
use super::names::ThreadIndex;
use super::policies::sharing::{is_proxy, proxied};
use super::{text, Checker};

/// A component may call another.
pub(super) struct Call<'a> {
    /// Components.
    pub client: usize,
    pub server: usize,
    pub described: &'a document::Client,
    /// Why the caller may wait for something else than the processor, if it may.
    pub waits: Option<Waits>,
}

impl Call<'_> {
    /// Whether the server works on the client's time, once it works: behind a proxy, which lends it, too.
    pub fn is_paid_by_client(&self) -> bool {
        self.waits != Some(Waits::Active)
    }
}

/// What keeps a request waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// The server runs on time of its own.
    Active,
    /// A proxy lets one client after the other use the server.
    Proxy,
    /// The server waits for its device.
    Device,
}

/// The longest request of a thread to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// µs, as described.
    Longest(u64),
    /// As long as its time lasts.
    Unknown,
}

impl Request {
    /// µs, if no more than `budget` is there for it.
    pub fn at_most(self, budget: u64) -> u64 {
        match self {
            Self::Longest(us) => us.min(budget),
            Self::Unknown => budget,
        }
    }
}

/// What timeout policies add to a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Help {
    /// How often the budget is extended, which fills it anew.
    pub extensions: u64,
    /// By how much all of them raise it, µs.
    pub raise: u64,
    /// What is there each time that the budget runs out, µs.
    pub emergency: u64,
}

impl Help {
    /// What extensions of a `budget` give at once, all together; µs.
    pub fn once(self, budget: u64) -> u64 {
        self.extensions
            .saturating_mul(budget.saturating_add(self.raise))
    }
}

impl<'a> Checker<'a> {
    /// All calls that are described; behind a proxy, as if the clients called the server.
    pub(super) fn calls(&self) -> Vec<Call<'a>> {
        let mut calls = Vec::new();
        for endpoint in &self.document.endpoints {
            let server = endpoint.server.as_ref().map(text);
            if server.is_some_and(|server| is_proxy(self.document, server)) {
                continue;
            }
            let mut resources = self.document.resources.iter();
            let resource = resources.find(|resource| text(&resource.name) == text(&endpoint.name));
            let blocks = resource
                .is_some_and(|resource| *resource.protocol.get_ref() == SharingProtocol::Blocking);
            let waits = blocks.then_some(Waits::Device);
            self.calls_to(server, &endpoint.clients, waits, &mut calls);
        }
        for resource in &self.document.resources {
            if proxied(*resource.protocol.get_ref()).is_some() {
                let server = resource.server.as_ref().map(text);
                self.calls_to(server, &resource.clients, Some(Waits::Proxy), &mut calls);
            }
        }
        calls
    }

    fn calls_to(
        &self,
        server: Option<&str>,
        clients: &'a [document::Client],
        waits: Option<Waits>,
        calls: &mut Vec<Call<'a>>,
    ) {
        let Some(server) = server.and_then(|server| self.names.component(server)) else {
            return;
        };
        let active = (!self.threads[server][0].passive).then_some(Waits::Active);
        let known = clients.iter().filter_map(|client| {
            Some(Call {
                client: self.names.component(text(&client.component))?,
                server,
                described: client,
                waits: active.or(waits),
            })
        });
        calls.extend(known);
    }

    /// The servers that work on the time of a component when it calls, also through each other.
    pub(super) fn servers_on_time_of(&self, component: usize) -> BTreeSet<usize> {
        let calls = self.calls();
        let mut servers = BTreeSet::new();
        let mut open = vec![component];
        while let Some(client) = open.pop() {
            for call in calls.iter().filter(|call| call.client == client) {
                if call.is_paid_by_client() && servers.insert(call.server) {
                    open.push(call.server);
                }
            }
        }
        servers
    }

    /// The highest priority at which a server works.
    pub(super) fn level_of(&self, server: usize) -> u8 {
        let threads = self.threads[server].iter();
        let passive = threads.filter(|thread| thread.passive);
        let spawned = self.equipment[server].spawning.map(|made| made.priority);
        let priorities = passive.map(|thread| thread.priority).chain(spawned);
        priorities.max().unwrap_or(0)
    }

    /// The longest request of a component to servers that work at `priority` or above; `None` if it calls
    /// none.
    pub(super) fn request_above(&self, component: usize, priority: u8) -> Option<Request> {
        let is_above = |server: &usize| self.level_of(*server) >= priority;
        let calls = self.calls().into_iter();
        let own = calls.filter(|call| call.client == component);
        let above = own.filter(|call| {
            call.is_paid_by_client()
                && (is_above(&call.server)
                    || self.servers_on_time_of(call.server).iter().any(is_above))
        });
        let requests = above.map(|call| call.described.longest.as_ref());
        requests
            .map(|longest| longest.map_or(Request::Unknown, |us| Request::Longest(us.get_ref().0)))
            .reduce(|one, other| match (one, other) {
                (Request::Longest(one), Request::Longest(other)) => {
                    Request::Longest(one.max(other))
                }
                _ => Request::Unknown,
            })
    }

    /// The threads whose time a server may work on, except those that handle timeouts.
    pub(in super::super) fn payers_of(&self, server: usize) -> Vec<ThreadIndex> {
        let components = 0..self.threads.len();
        let callers =
            components.filter(|&component| self.servers_on_time_of(component).contains(&server));
        let threads = callers.flat_map(|component| self.calling_threads(component));
        threads.collect()
    }

    /// The threads of a component that have time of their own.
    pub(super) fn active_threads(
        &self,
        component: usize,
    ) -> impl Iterator<Item = ThreadIndex> + '_ {
        let threads = self.threads[component].iter().enumerate();
        let active = threads.filter(|(_, thread)| !thread.passive);
        active.map(move |(thread, _)| ThreadIndex { component, thread })
    }

    /// Those of them that may call servers: handlers of timeouts do not.
    pub(super) fn calling_threads(
        &self,
        component: usize,
    ) -> impl Iterator<Item = ThreadIndex> + '_ {
        let active = self.active_threads(component);
        active.filter(|thread| !self.handles_timeouts(*thread))
    }

    /// Whether a thread is the handler of a timeout policy.
    pub(super) fn handles_timeouts(&self, thread: ThreadIndex) -> bool {
        let path = self.path(thread);
        let mut policies = self.document.timeout_policies.iter();
        policies.any(|policy| text(&policy.handler) == path)
    }

    /// Whether requests that there is no time left for are ended.
    pub(super) fn ends_requests(&self, server: usize) -> bool {
        let name = text(&self.document.components[server].name);
        let mut policies = self.document.timeout_policies.iter();
        // The timer service ends them by itself.
        name == timers::SERVICE || policies.any(|policy| text(&policy.server) == name)
    }

    /// What the timeout policies of all servers add to the budget of a thread at most.
    pub(super) fn most_help(&self, thread: ThreadIndex) -> Help {
        let path = self.path(thread);
        let policies = self.document.timeout_policies.iter();
        let clients = policies.flat_map(|policy| &policy.clients);
        let own = clients.filter(|client| text(&client.component) == path);
        let mut help = Help::default();
        for client in own {
            let us = |time: &Option<Spanned<Micros>>| time.as_ref().map_or(0, |us| us.get_ref().0);
            let limit = client.limit.as_ref().map_or(0, |limit| *limit.get_ref());
            let limit = u64::try_from(limit).unwrap_or(0);
            match client.policy.get_ref() {
                PolicyName::Extend => {
                    let raise = us(&client.by).saturating_mul(limit);
                    help.raise = help.raise.saturating_add(raise);
                    help.extensions = help.extensions.saturating_add(limit);
                }
                PolicyName::Emergency => {
                    help.emergency = help.emergency.saturating_add(us(&client.budget));
                }
                PolicyName::Rollback | PolicyName::Reset | PolicyName::Kill => {}
            }
        }
        help
    }
}
