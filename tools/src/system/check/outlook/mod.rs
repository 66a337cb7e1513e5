//! What is to be expected of a system in which nothing is wrong: how much of each core's time is promised, how long
//! requests wait for those of others, and what will probably hurt.
//!
//! - [`load`]: the demand on each core;
//! - [`services`]: who may be served where, on whose time;
//! - [`blocking`]: how long each client waits at most;
//! - [`circles`]: servers that call each other;
//! - [`accepted`]: the warnings that the description accepts.

mod accepted;
mod blocking;
mod circles;
mod load;
mod services;

pub use accepted::Accepted;
pub use blocking::{Assumption, Blocking, Bound};
pub use load::CoreLoad;

use self::services::Service;
use super::super::document::Component;
use super::super::findings::{Finding, Span};
use super::super::warning::Warning;
use super::names::ThreadIndex;
pub use super::policies::mc_ipc::{Asked, Requests};
use super::{text, Checker};

/// What is to be expected of a system.
#[derive(Debug, Clone, Default)]
pub struct Outlook {
    /// By number.
    pub cores: Vec<CoreLoad>,
    /// In the order of the file: by endpoint, then by client.
    pub blocking: Vec<Blocking>,
    /// Whether there are more than [`blocking::MOST_ROWS`] of these, which are left out.
    pub cut: bool,
    /// What requests at gates take of budgets.
    pub requests: Vec<Requests>,
    pub warnings: Vec<Finding>,
    pub accepted: Vec<Accepted>,
}

impl Checker<'_> {
    /// The outlook of a system in which nothing is wrong.
    pub(super) fn outlook(&self) -> Outlook {
        let services = self.services();
        let cores = self.loads();
        let mut warnings = self.overloads(&cores);
        warnings.extend(self.least_budgets());
        warnings.extend(self.nobody_ends());
        for service in &services {
            warnings.extend(self.endless_clients(service));
            warnings.extend(self.server_below(service));
        }
        warnings.extend(self.circles());
        warnings.extend(
            self.own_clients()
                .filter(|finding| finding.warning.is_some()),
        );
        let (blocking, cut) = self.blocking(&services);
        let (mut warnings, accepted) = self.without_accepted(warnings);
        warnings.sort_by_key(|finding| finding.span.start);
        Outlook {
            cores,
            blocking,
            cut,
            requests: self.requests(),
            warnings,
            accepted,
        }
    }

    /// A system that nothing ends.
    fn nobody_ends(&self) -> Option<Finding> {
        let components = &self.document.components;
        if components.iter().any(|component| component.exit) {
            return None;
        }
        Some(
            Finding::new(self.document.name.span(), "no component ends the system")
                .warning(Warning::NoExit)
                .label("it runs for ever, also when all its components have ended")
                .help(
                    "add `exit = true` to the component whose end is the system's; if the system is meant to run for \
                     ever, accept this: `[[accept]]` with `warning = \"no-exit\"` and a `reason`",
                ),
        )
    }

    /// Clients whose requests nothing ends, because their time never runs out.
    fn endless_clients<'s>(
        &'s self,
        service: &'s Service<'_>,
    ) -> impl Iterator<Item = Finding> + 's {
        let runs_on_clients = self.threads[service.server][0].passive;
        let payers = service.payers.iter().filter(move |_| runs_on_clients);
        payers.filter_map(move |payer| {
            if !self.is_round_robin(payer.thread) {
                return None;
            }
            match self.policy_of(service) {
                // The end of its window ends its budget.
                Some(_) if self.is_finished(payer.thread) => None,
                Some(policy) => Some(self.policy_never_acts(service, payer.thread, policy)),
                None if payer.longest.is_some() || service.has_room => None,
                None => self.delayed_by(service, payer.thread),
            }
        })
    }

    /// Whether a thread runs in windows, after which its requests have a bound.
    fn is_finished(&self, thread: ThreadIndex) -> bool {
        let partitioning = self.document.partitioning.as_ref();
        let has_bound = partitioning.is_some_and(|of| of.finish.is_some());
        let name = text(&self.document.components[thread.component].name);
        let partitions = self.document.partitions.iter();
        let mut members = partitions.flat_map(|partition| partition.threads.get_ref());
        has_bound && thread.thread == 0 && members.any(|member| text(&member.component) == name)
    }

    fn policy_never_acts(
        &self,
        service: &Service<'_>,
        thread: ThreadIndex,
        policy: Span,
    ) -> Finding {
        let name = self.path(thread);
        let server = text(&self.document.components[service.server].name);
        Finding::new(
            self.place_of_time(thread),
            format!(
                "the budget of `{name}` never runs out, so the timeout policy of `{server}` never ends its requests"
            ),
        )
        .warning(Warning::PolicyNeverActs)
        .about(name)
        .label("equal to its period: round robin, without a limit")
        .related(policy, "the policy, which acts when a client's budget has run out")
        .help("give it a budget below its period; until then, all other clients may wait for its requests without limit")
    }

    /// A client whose requests may delay others without limit, if there is one who is delayed.
    fn delayed_by(&self, service: &Service<'_>, thread: ThreadIndex) -> Option<Finding> {
        let mine = self.made(thread);
        let delayed = service.payers.iter().find(|other| {
            let theirs = self.made(other.thread);
            other.thread != thread
                && (theirs.priority >= mine.priority || theirs.time.core != mine.time.core)
        })?;
        let (name, delayed) = (self.path(thread), self.path(delayed.thread));
        let server = text(&self.document.components[service.server].name);
        let finding = Finding::new(
            self.place_of_time(thread),
            format!("a request of `{name}` to `{server}` may keep `{delayed}` waiting for ever"),
        );
        Some(
            finding
                .warning(Warning::RoundRobinClient)
                .about(name)
                .label("equal to its period: round robin, and never used up in the server")
                .help(
                    "give it a budget below its period and the server a `[[timeout-policy]]`; or, if its requests are \
                     trusted to be short, state how long they take: `longest` of the client",
                ),
        )
    }

    /// An endpoint whose server is below a client. Resources have rules of their own.
    fn server_below(&self, service: &Service<'_>) -> Option<Finding> {
        if service.protocol.is_some() {
            return None;
        }
        let level = self.level_at(service);
        let payers = service.payers.iter().map(|payer| payer.thread);
        let above = payers.filter(|thread| !self.is_beside_client(*thread));
        let highest = above.max_by_key(|thread| self.made(*thread).priority)?;
        let theirs = self.made(highest).priority;
        if theirs <= level {
            return None;
        }
        let server = &self.document.components[service.server];
        let client = self.path(highest);
        Some(
            Finding::new(
                server.priority.span(),
                format!("`{}` has a lower priority than its client `{client}`", text(&server.name)),
            )
            .warning(Warning::ServerBelowClient)
            .about(text(&server.name))
            .label(format!("{level}; the client has {theirs}"))
            .help(format!(
                "threads of a priority between the two delay the client while it waits; use {theirs} or more, or a \
                 `[[resource]]` with a protocol"
            )),
        )
    }

    /// Whether a thread is one of those of a scheduler of partitions that do not call its time manager: the main thread does.
    fn is_beside_client(&self, thread: ThreadIndex) -> bool {
        let name = text(&self.document.components[thread.component].name);
        let scheduler = self.document.partitioning.as_ref();
        let is_supplied = scheduler.is_some_and(|of| of.time.is_some() && text(&of.name) == name);
        is_supplied && thread.thread > 0
    }

    /// Components that call themselves: an error where it can never work.
    pub(super) fn own_clients(&self) -> impl Iterator<Item = Finding> + '_ {
        self.document.endpoints.iter().flat_map(move |endpoint| {
            let server = endpoint.server.as_ref().map(text);
            let calls = endpoint
                .clients
                .iter()
                .filter(|client| client.rights.is_call());
            // A scheduler calls nobody: these are called by their other threads.
            let own = calls.filter(move |client| {
                Some(text(&client.component)) == server && !self.is_scheduler(server)
            });
            own.filter_map(move |client| {
                let index = self.names.component(text(&client.component))?;
                let component = &self.document.components[index];
                Some(own_client(component, client.component.span()))
            })
        })
    }

    /// Whether a component that serves is a time manager, or a scheduler of partitions with threads of its own.
    fn is_scheduler(&self, server: Option<&str>) -> bool {
        let manager = self.document.time_manager.as_ref();
        let supplied = self.document.partitioning.as_ref();
        let supplied = supplied.filter(|of| of.time.is_some());
        let names = [manager.map(|of| &of.name), supplied.map(|of| &of.name)];
        let mut names = names.into_iter().flatten();
        names.any(|name| Some(text(name)) == server)
    }

    pub(super) fn is_round_robin(&self, thread: ThreadIndex) -> bool {
        let time = self.made(thread).time;
        time.budget_us == time.period_us
    }

    fn made(&self, thread: ThreadIndex) -> &sandglass_description::Thread {
        &self.threads[thread.component][thread.thread]
    }

    /// Where the budget of a thread stands, or else its name.
    fn place_of_time(&self, thread: ThreadIndex) -> Span {
        let component = &self.document.components[thread.component];
        let (budget, name) = match thread.thread.checked_sub(1) {
            None => (&component.budget, &component.name),
            Some(index) => {
                let thread = &component.threads[index];
                (&thread.budget, &thread.name)
            }
        };
        budget.as_ref().map_or(name.span(), |budget| budget.span())
    }
}

fn own_client(component: &Component, place: Span) -> Finding {
    let name = text(&component.name);
    let finding = Finding::new(place, format!("`{name}` is its own client"));
    if component.threads.is_empty() && component.spawns.is_none() {
        return finding
            .label("its only thread would wait for itself, for ever")
            .help("remove it from the clients; within a component, call the function directly");
    }
    finding
        .warning(Warning::OwnClient)
        .about(name)
        .label("the thread that serves must never be the one that calls")
        .help("remove it from the clients, or split it into two components")
}
