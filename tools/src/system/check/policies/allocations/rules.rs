//! What a time manager wants of its clients.

use sandglass_allocations::Task;
use sandglass_description::policy::allocations::{MOST_CAPABILITIES, MOST_CLIENTS, MOST_RECORDS};

use super::super::super::super::document::{Integer, TimeClient, TimeManager, TimeTask};
use super::super::super::super::findings::Finding;
use super::super::super::names::help_with;
use super::super::super::{text, Checker};
use super::{share, shortest_us, task_of, BELOW_ADMISSION, CAPABILITIES, RECORDS};

/// Most allocations, reservations or capabilities of a client.
const MOST: i64 = MOST_RECORDS as i64;
/// Periods of reservations, µs: what the timer service can be asked for, to an hour.
const PERIODS_US: std::ops::RangeInclusive<u64> = 100..=3_600_000_000;

impl<'a> Checker<'a> {
    /// All keys.
    pub(super) fn allocation_keys(&mut self, manager: &'a TimeManager) {
        self.in_range(
            "priority of a time manager",
            Some(&manager.priority),
            BELOW_ADMISSION..=252,
            150,
        );
        if let Some(shortest) = &manager.shortest_period {
            let us = shortest.get_ref().0;
            if !PERIODS_US.contains(&us) {
                self.found(
                    Finding::new(shortest.span(), format!("a shortest period of {us} µs")).label(
                        format!(
                            "must be from {} to {} µs",
                            PERIODS_US.start(),
                            PERIODS_US.end()
                        ),
                    ),
                );
            }
        }
        let clients = manager.clients.get_ref();
        if clients.is_empty() || clients.len() > MOST_CLIENTS {
            self.found(
                Finding::new(
                    manager.clients.span(),
                    format!("a time manager with {} clients", clients.len()),
                )
                .label(format!("must be 1 to {MOST_CLIENTS}"))
                .help("name them: `clients = [{ component = \"...\", share = \"1/3\" }]`"),
            );
        }
        for (index, client) in clients.iter().enumerate() {
            self.allocation_client(manager, client);
            let name = text(&client.component);
            let first = clients[..index]
                .iter()
                .find(|other| text(&other.component) == name);
            if let Some(first) = first {
                self.found(
                    Finding::new(
                        client.component.span(),
                        format!("`{name}` is listed twice as a client"),
                    )
                    .label("the second")
                    .related(first.component.span(), "the first")
                    .help("one entry says all that it may allocate"),
                );
            }
        }
        self.suppliers(clients);
        self.servers_of_turns(manager);
        self.quotas(manager);
    }

    /// All quotas together: they are reserved.
    fn quotas(&mut self, manager: &'a TimeManager) {
        let clients = manager.clients.get_ref();
        let sum = |of: fn(&TimeClient) -> Option<&Integer>, default: i64| -> i64 {
            let given = clients
                .iter()
                .map(|client| of(client).map_or(default, |given| *given.get_ref()));
            given.sum()
        };
        let records = sum(|client| client.records.as_ref(), RECORDS);
        let capabilities = sum(|client| client.capabilities.as_ref(), CAPABILITIES);
        let all = [
            ("records", records, MOST_RECORDS),
            ("capabilities", capabilities, MOST_CAPABILITIES),
        ];
        for (what, count, most) in all {
            if count > i64::from(most) {
                self.found(
                    Finding::new(
                        manager.clients.span(),
                        format!("the clients may have {count} {what}, all together"),
                    )
                    .label(format!("must be at most {most}"))
                    .help(format!(
                        "they are reserved for each: give some of them fewer `{what}`"
                    )),
                );
            }
        }
    }

    /// Servers that work for a client in its turn: below turns, others would delay them, and the admission would take
    /// the turn for lost.
    fn servers_of_turns(&mut self, manager: &'a TimeManager) {
        let turns = *manager.priority.get_ref() - 1;
        for endpoint in &self.document.endpoints {
            let is_client = |name: &str| {
                let mut clients = manager.clients.get_ref().iter();
                clients.any(|client| text(&client.component) == name)
            };
            let mut clients = endpoint.clients.iter();
            let Some(client) = clients.find(|client| is_client(text(&client.component))) else {
                continue;
            };
            let server = endpoint
                .server
                .as_ref()
                .and_then(|server| self.names.component(text(server)));
            let Some(server) = server.map(|server| &self.document.components[server]) else {
                continue;
            };
            let is_passive = server
                .passive
                .as_ref()
                .is_some_and(|passive| *passive.get_ref());
            if is_passive && *server.priority.get_ref() < turns {
                self.found(
                    Finding::new(server.priority.span(), format!("`{}` works below turns", text(&server.name)))
                        .label(format!("must be at least {turns}"))
                        .related(client.component.span(), "it works for this client of the time manager")
                        .help("a server that a client calls in its turn works in that turn: give it the priority of turns, or more"),
                );
            }
        }
    }

    fn allocation_client(&mut self, manager: &'a TimeManager, client: &'a TimeClient) {
        self.in_range("`records`", client.records.as_ref(), 0..=MOST, RECORDS);
        self.in_range(
            "`capabilities`",
            client.capabilities.as_ref(),
            0..=MOST,
            CAPABILITIES,
        );
        self.given(client);
        for task in client.tasks.iter().flat_map(|tasks| tasks.get_ref()) {
            self.allocation_task(manager, task);
        }
        let name = text(&client.component);
        let Some(component) = self.names.component(name) else {
            return;
        };
        let described = &self.document.components[component];
        let most = *manager.priority.get_ref() - BELOW_ADMISSION;
        if *described.priority.get_ref() > most {
            self.found(
                Finding::new(
                    described.priority.span(),
                    format!("`{name}` would delay turns of others while it has none"),
                )
                .label(format!("must be at most {most}"))
                .related(manager.priority.span(), "the time manager's priority")
                .help("the three priorities from the manager's down are those of its scheduler, of turns, and of its admission"),
            );
        }
        if described
            .passive
            .as_ref()
            .is_some_and(|passive| *passive.get_ref())
        {
            self.found(
                Finding::new(client.component.span(), format!("`{name}` is passive"))
                    .label("a client has time of its own")
                    .help("servers run on the time of those who call them: give these time"),
            );
        }
        if self.threads[component][0].time.core != 0 {
            self.found(
                Finding::new(
                    client.component.span(),
                    format!("`{name}` is not on the time manager's core"),
                )
                .label("its `core` must be 0"),
            );
        }
    }

    /// What it may allocate at first.
    fn given(&mut self, client: &'a TimeClient) {
        if let (Some(share), Some(tasks)) = (&client.share, &client.tasks) {
            self.found(
                Finding::new(share.span(), "both a share and tasks")
                    .label("must be one of them")
                    .related(tasks.span(), "the other")
                    .help("a share is for deadlines that are periods; tasks say what is needed in short intervals"),
            );
        }
        if let Some(written) = client
            .share
            .as_ref()
            .filter(|written| share(text(written)).is_none())
        {
            self.found(
                Finding::new(
                    written.span(),
                    format!("`{}` is no part of a core", text(written)),
                )
                .label("must be a fraction of at most 1, like \"1/3\", or like \"30%\""),
            );
        }
        if let Some(tasks) = client
            .tasks
            .as_ref()
            .filter(|tasks| tasks.get_ref().is_empty())
        {
            self.found(
                Finding::new(tasks.span(), "no tasks")
                    .label("must be at least one")
                    .help("a client that is given nothing has no `tasks`"),
            );
        }
    }

    fn allocation_task(&mut self, manager: &'a TimeManager, task: &'a TimeTask) {
        let us = task_of(task);
        if let Err(error) = Task::new(us.budget_us, us.period_us, us.deadline_us) {
            let span = task
                .deadline
                .as_ref()
                .map_or(task.budget.span(), |deadline| deadline.span());
            self.found(
                Finding::new(span, "what this task needs is impossible")
                    .label(error.to_string().replace("ticks", "µs"))
                    .related(task.period.span(), "its period"),
            );
        } else if us.period_us < shortest_us(manager) {
            self.found(
                Finding::new(
                    task.period.span(),
                    format!("a period of {} µs", us.period_us),
                )
                .label(format!("must be at least {} µs", shortest_us(manager)))
                .help("shorter periods cost more: allow them with `shortest-period`"),
            );
        }
    }

    /// Suppliers are clients, and in no circle.
    fn suppliers(&mut self, clients: &'a [TimeClient]) {
        let find = |name: &str| {
            clients
                .iter()
                .find(|client| text(&client.component) == name)
        };
        for client in clients {
            let Some(supplier) = &client.supplier else {
                continue;
            };
            if find(text(supplier)).is_none() {
                let known = clients.iter().map(|client| text(&client.component));
                self.found(
                    Finding::new(
                        supplier.span(),
                        format!("no client is called `{}`", text(supplier)),
                    )
                    .label("unknown client")
                    .help(help_with("client", text(supplier), known)),
                );
            }
            let above = |client: &&'a TimeClient| find(text(client.supplier.as_ref()?));
            let mut chain = std::iter::successors(Some(client), above)
                .skip(1)
                .take(clients.len());
            let name = text(&client.component);
            if chain.any(|other| text(&other.component) == name) {
                self.found(
                    Finding::new(supplier.span(), format!("`{name}` supplies itself"))
                        .label("must be another, who has a capability or a supplier")
                        .help("suppliers must not be in a circle"),
                );
            }
        }
    }
}
