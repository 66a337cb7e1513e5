//! `[[timeout-policy]]`: what happens when a client's time runs out in a server.

use std::collections::{BTreeMap, HashMap, HashSet};

use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_description::policy::timeouts::{Client, Last, Policy, Timeouts};
use sandglass_description::policy::Table;
use sandglass_description::{Object, Time};
use toml::Spanned;

use super::super::super::document::{
    self, ClientPolicy, Document, Integer, LastPolicy, PolicyName, Text,
};
use super::super::super::findings::{Finding, Span};
use super::super::super::quantity::Micros;
use super::super::names::{help_with, ThreadIndex};
use super::super::{text, Checker};

/// Most extensions or emergencies of a client.
const MAX_LIMIT: i64 = 1_000_000;

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
                    .help("put all clients into one"),
                );
                continue;
            }
            self.timeout_policy(described, server);
        }
    }

    fn timeout_policy(&mut self, described: &document::TimeoutPolicy, server: ThreadIndex) {
        let before = self.findings.len();
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
        let name = format!("{}.{}", self.path(server), Timeouts::NAME);
        self.give_table(component, &name, &table, &described.server.span());
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

    /// Whether the server can be sent back at all.
    fn policed_server(&mut self, described: &document::TimeoutPolicy, server: ThreadIndex) {
        let thread = &self.threads[server.component][server.thread];
        let (passive, time) = (thread.passive, thread.time);
        let name = text(&described.server).to_owned();
        let span = described.server.span();
        if !passive || server.thread != 0 {
            self.found(
                Finding::new(span, format!("`{name}` has time of its own"))
                    .label("must be a passive server")
                    .help("clients' time runs out in a server that runs on it: `passive = true`"),
            );
        } else if time.budget_us != time.period_us {
            self.found(
                Finding::new(
                    span,
                    format!("`{name}` starts on a budget that can run out"),
                )
                .label("it restarts on that after a timeout")
                .help("leave its `budget` and `period` out, or make them equal"),
            );
        }
    }

    /// The endpoint whose requests are at stake.
    fn policed_endpoint(
        &mut self,
        described: &document::TimeoutPolicy,
        server: usize,
    ) -> Option<&'a str> {
        let served: Vec<&'a str> = self.served[server].iter().map(|(_, name)| *name).collect();
        let name = text(&described.server);
        match (&described.endpoint, served.as_slice()) {
            (None, [only]) => Some(only),
            (None, []) => {
                self.found(
                    Finding::new(
                        described.server.span(),
                        format!("`{name}` serves no endpoint"),
                    )
                    .label("nobody's time can run out in it")
                    .help("add an `[[endpoint]]` with this `server`"),
                );
                None
            }
            (None, several) => {
                self.found(
                    Finding::new(
                        described.server.span(),
                        format!("`{name}` serves several endpoints"),
                    )
                    .label("at which does it wait?")
                    .help(format!("say `endpoint`: one of {}", several.join(", "))),
                );
                None
            }
            (Some(endpoint), served) => {
                let found = served.iter().find(|name| **name == text(endpoint)).copied();
                if found.is_none() {
                    let help = help_with("endpoint", text(endpoint), served.iter().copied());
                    self.found(
                        Finding::new(
                            endpoint.span(),
                            format!("`{name}` does not serve `{}`", text(endpoint)),
                        )
                        .label("not one of its endpoints")
                        .help(help),
                    );
                }
                found
            }
        }
    }

    /// The thread that handles, which must be where the server's timeouts go.
    fn policing_handler(
        &mut self,
        described: &document::TimeoutPolicy,
        server: ThreadIndex,
    ) -> Option<ThreadIndex> {
        let handler = self.find_thread(&described.handler)?;
        let goes_to = &self.document.components[server.component].timeout_handler;
        let owner = text(&self.document.components[handler.component].name);
        let span = described.handler.span();
        if goes_to.as_ref().map(text) != Some(owner) {
            let server = text(&described.server);
            let finding = Finding::new(
                span,
                format!(
                    "timeouts in `{server}` do not go to `{}`",
                    text(&described.handler)
                ),
            )
            .help(format!(
                "let them: `timeout-handler = \"{owner}\"` of `{server}`"
            ));
            self.found(match goes_to {
                Some(other) => finding.related(other.span(), "they go here"),
                None => finding.label("they go nowhere: its server just waits for time"),
            });
            return None;
        }
        if self.threads[handler.component][handler.thread].passive {
            self.found(
                Finding::new(
                    span,
                    format!("`{}` has no time of its own", text(&described.handler)),
                )
                .label("a timeout lends none")
                .help("give it a `budget` and a `period`, or name an active thread"),
            );
            return None;
        }
        Some(handler)
    }

    /// The policies that clients have of their own.
    fn client_policies(
        &mut self,
        described: &document::TimeoutPolicy,
        users: &Users,
    ) -> BTreeMap<ThreadIndex, Placed> {
        let mut policies: BTreeMap<ThreadIndex, Placed> = BTreeMap::new();
        for client in &described.clients {
            let Some(thread) = self.find_thread(&client.component) else {
                continue;
            };
            let name = text(&client.component);
            let span = client.component.span();
            if let Some((_, first)) = policies.get(&thread) {
                let first = first.span();
                self.found(
                    Finding::new(span, format!("two policies for `{name}`"))
                        .label("the second")
                        .related(first, "the first"),
                );
                continue;
            }
            if !users.direct.contains(&thread.component)
                && !users.others.contains(&thread.component)
            {
                let server = text(&described.server);
                self.found(
                    Finding::new(span, format!("`{name}` is no client of `{server}`"))
                        .label("its time cannot run out there")
                        .help("make it a client of the server's endpoint, or of one that calls it"),
                );
                continue;
            }
            let time = self.time_of(thread);
            if self.threads[thread.component][thread.thread].passive
                || time.budget_us == time.period_us
            {
                self.found(
                    Finding::new(span, format!("the time of `{name}` never runs out"))
                        .label("so it needs no policy")
                        .help("only a budget below the period does"),
                );
                continue;
            }
            if let Some(policy) = self.policy(client, &time) {
                policies.insert(thread, (policy, client.component.clone()));
            }
        }
        policies
    }

    /// The policy for a client that has `time`.
    fn policy(&mut self, client: &ClientPolicy, time: &Time) -> Option<Policy> {
        let before = self.findings.len();
        let then = client
            .then
            .as_ref()
            .map_or(Last::Rollback, |then| (*then.get_ref()).into());
        let name = *client.policy.get_ref();
        let policy = match name {
            PolicyName::Rollback | PolicyName::Reset | PolicyName::Kill => {
                self.superfluous(client, client.then.as_ref().map(Spanned::span), "then");
                self.superfluous(client, client.limit.as_ref().map(Integer::span), "limit");
                self.superfluous(client, client.by.as_ref().map(Spanned::span), "by");
                self.superfluous(client, client.budget.as_ref().map(Spanned::span), "budget");
                Policy::Last(match name {
                    PolicyName::Reset => Last::Reset,
                    PolicyName::Kill => Last::Kill,
                    _ => Last::Rollback,
                })
            }
            PolicyName::Extend => {
                self.superfluous(client, client.budget.as_ref().map(Spanned::span), "budget");
                let by_us = self.required(client, client.by.as_ref(), "by");
                let limit = self.limit(client, None);
                self.longest_extension(client, by_us, limit, time);
                Policy::Extend { by_us, limit, then }
            }
            PolicyName::Emergency => {
                self.superfluous(client, client.by.as_ref().map(Spanned::span), "by");
                let budget_us = self.required(client, client.budget.as_ref(), "budget");
                let limit = self.limit(client, Some(u32::MAX));
                self.emergency_budget(client, budget_us, time);
                Policy::Emergency {
                    budget_us,
                    limit,
                    then,
                }
            }
        };
        (self.findings.len() == before).then_some(policy)
    }

    fn superfluous(&mut self, client: &ClientPolicy, given: Option<Span>, key: &str) {
        if let Some(span) = given {
            self.found(
                Finding::new(span, format!("this policy has no `{key}`"))
                    .label("means nothing here")
                    .related(client.policy.span(), "the policy")
                    .help(
                        "`extend` has `by`, `limit`, `then`; `emergency` has `budget`, `limit`, \
                         `then`",
                    ),
            );
        }
    }

    fn required(
        &mut self,
        client: &ClientPolicy,
        given: Option<&Spanned<Micros>>,
        key: &str,
    ) -> u64 {
        let Some(given) = given else {
            self.found(
                Finding::new(client.policy.span(), format!("this policy needs `{key}`"))
                    .label("by how much is the client helped?")
                    .help(format!("for example, `{key} = \"1ms\"`")),
            );
            return 0;
        };
        given.get_ref().0
    }

    fn limit(&mut self, client: &ClientPolicy, default: Option<u32>) -> u32 {
        if let (None, None) = (&client.limit, default) {
            self.found(
                Finding::new(client.policy.span(), "this policy needs `limit`")
                    .label("how often is the client helped?")
                    .help("for example, `limit = 3`"),
            );
        }
        match (&client.limit, default) {
            (None, Some(default)) => default,
            (limit, _) => self.in_range("limit", limit.as_ref(), 1..=MAX_LIMIT, 1) as u32,
        }
    }

    fn longest_extension(&mut self, client: &ClientPolicy, by_us: u64, limit: u32, time: &Time) {
        let Some(by) = &client.by else { return };
        let longest = time
            .budget_us
            .saturating_add(by_us.saturating_mul(u64::from(limit)));
        if by_us == 0 {
            self.found(Finding::new(by.span(), "an extension by nothing").label("must be above 0"));
        } else if longest >= time.period_us {
            self.found(
                Finding::new(
                    by.span(),
                    format!(
                        "after {limit} extensions, the budget is {longest} µs of {} µs",
                        time.period_us
                    ),
                )
                .label("must stay below the period")
                .help("a budget equal to the period never runs out; extend by less, or less often"),
            );
        }
    }

    fn emergency_budget(&mut self, client: &ClientPolicy, budget_us: u64, time: &Time) {
        let Some(budget) = &client.budget else { return };
        if !(MIN_BUDGET_US..time.period_us).contains(&budget_us) {
            self.found(
                Finding::new(
                    budget.span(),
                    format!("an emergency budget of {budget_us} µs"),
                )
                .label(format!(
                    "must be from {MIN_BUDGET_US} µs to below the client's period, {} µs",
                    time.period_us
                )),
            );
        }
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

    /// A handler that its clients can hinder is none.
    fn handler_priority(
        &mut self,
        described: &document::TimeoutPolicy,
        handler: ThreadIndex,
        server: ThreadIndex,
        clients: &[ThreadIndex],
    ) {
        let priority = |thread: ThreadIndex| self.threads[thread.component][thread.thread].priority;
        let mine = priority(handler);
        let above = clients
            .iter()
            .copied()
            .find(|client| priority(*client) >= mine);
        let name = text(&described.handler);
        let finding = if priority(server) > mine {
            Some(format!("the server, priority {}", priority(server)))
        } else {
            above.map(|client| format!("`{}`, priority {}", self.path(client), priority(client)))
        };
        if let Some(other) = finding {
            self.found(
                Finding::new(
                    described.handler.span(),
                    format!("the priority of `{name}`, {mine}, is too low"),
                )
                .label(format!("it can be kept waiting by {other}"))
                .help("a handler's priority is at least the server's, and above all clients'"),
            );
        }
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
                        format!("the time of `{first}` and of `{second}` has the badge {badge}"),
                    )
                    .label("its handler cannot tell them apart")
                    .help("leave `timeout-badge` out: each then gets one of its own"),
                );
            }
        }
    }

    /// The badge of a thread's time, which gets one if it has none.
    fn badge_of_time(&mut self, thread: ThreadIndex) -> u64 {
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
