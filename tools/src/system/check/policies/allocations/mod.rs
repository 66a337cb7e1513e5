//! `[time-manager]`: who gives out processor time by temporal capabilities (`user/policies/time-manager`).
//!
//! [`expand`] says which component the table stands for; here is what it must say, and what its clients are given: the
//! builder admits that as the manager does when it starts.

mod expand;
mod rules;

use sandglass_allocations::Rate;
use sandglass_description::policy::allocations::{self as lowered, names, Allocations};
use sandglass_description::policy::edf::Sender;
use sandglass_description::policy::Table;
use sandglass_description::{Handler, Object};
use sandglass_time_manager::admission::{shortest_deadline_us, Admission};

use super::super::super::document::{TimeClient, TimeManager, TimeTask};
use super::super::super::findings::Finding;
use super::super::{text, Checker};

pub use expand::expand;

/// So far below the manager's priority are clients without a turn, or lower: the manager, turns, the admission.
const BELOW_ADMISSION: i64 = 3;
/// Shortest period of a reservation, unless the description says another, µs.
const SHORTEST_US: u64 = 1_000;
/// What a client may make, unless the description says otherwise.
const RECORDS: i64 = 16;
const CAPABILITIES: i64 = 8;

/// Shortest period of a reservation, µs.
pub(super) fn shortest_us(manager: &TimeManager) -> u64 {
    manager
        .shortest_period
        .as_ref()
        .map_or(SHORTEST_US, |shortest| shortest.get_ref().0)
}

/// The priority of clients in their turns.
pub(super) fn turn_priority(manager: &TimeManager) -> i64 {
    *manager.priority.get_ref() - 1
}

/// The highest priority of a client without a turn.
pub(super) fn best_effort_priority(manager: &TimeManager) -> i64 {
    (*manager.priority.get_ref()).saturating_sub(BELOW_ADMISSION)
}

/// A part of a core: `1/3` or `30%`.
pub(super) fn share(written: &str) -> Option<Rate> {
    if let Some(per_cent) = written.strip_suffix('%') {
        return Rate::at_most(per_cent.trim_end().parse().ok()?, 100);
    }
    let (numerator, denominator) = written.split_once('/')?;
    Rate::at_most(
        numerator.trim().parse().ok()?,
        denominator.trim().parse().ok()?,
    )
}

fn task_of(task: &TimeTask) -> lowered::Task {
    let deadline = task.deadline.as_ref().unwrap_or(&task.period);
    lowered::Task {
        budget_us: task.budget.get_ref().0,
        period_us: task.period.get_ref().0,
        deadline_us: deadline.get_ref().0,
    }
}

impl<'a> Checker<'a> {
    /// Checks the time manager and what its clients are given, and equips it.
    pub(super) fn allocations(&mut self) {
        let document = self.document;
        let Some(manager) = &document.time_manager else {
            return;
        };
        let before = self.findings.len();
        self.allocation_keys(manager);
        let Some(own) = self.names.component(text(&manager.name)) else {
            return;
        };
        if self.findings.len() > before {
            return;
        }
        for (index, client) in manager.clients.get_ref().iter().enumerate() {
            if let Some(component) = self.names.component(text(&client.component)) {
                self.handle_turns(manager, own, component, index);
            }
        }
        for index in 0..=manager.clients.get_ref().len() {
            // A reply object comes with an endpoint; this one's endpoint stays unused.
            let reply = Object::Reply(self.new_endpoint());
            self.equipment[own].add_capability(
                &names::reply(index),
                reply,
                &manager.name.span(),
                &mut self.findings,
            );
        }
        let table = self.allocation_table(manager);
        self.deadlines_are_counted(manager, &table);
        self.admit(manager, &table);
        self.give_table(own, Allocations::NAME, &table, &manager.name.span());
    }

    /// Lets the manager know when a client's budget runs out.
    fn handle_turns(&mut self, manager: &TimeManager, own: usize, component: usize, index: usize) {
        let mut served = self.served[own].iter();
        let Some(&(endpoint, _)) = served.find(|(_, name)| *name == text(&manager.name)) else {
            return;
        };
        self.threads[component][0].timeout_handler = Some(Handler {
            endpoint,
            badge: Sender::Fault(index).badge(),
        });
    }

    fn allocation_table(&self, manager: &TimeManager) -> Allocations {
        let clients = manager.clients.get_ref();
        let number_of = |name: &str| {
            clients
                .iter()
                .position(|client| text(&client.component) == name)
        };
        let lower = |client: &TimeClient| {
            let component = self.names.component(text(&client.component))?;
            let number = |given: &Option<super::super::super::document::Integer>, default: i64| {
                given.as_ref().map_or(default, |given| *given.get_ref()) as u32
            };
            Some(lowered::Client {
                name: text(&client.component).to_owned(),
                best_effort_priority: *self.document.components[component].priority.get_ref() as u8,
                timeout_badge: self.threads[component][0].time.badge,
                share: client
                    .share
                    .as_ref()
                    .and_then(|written| share(text(written)))
                    .map(Rate::parts),
                tasks: client
                    .tasks
                    .iter()
                    .flat_map(|tasks| tasks.get_ref())
                    .map(task_of)
                    .collect(),
                supplier: client
                    .supplier
                    .as_ref()
                    .and_then(|name| Some(number_of(text(name))? as u32)),
                records: number(&client.records, RECORDS),
                capabilities: number(&client.capabilities, CAPABILITIES),
                lends: self.lends(text(&client.component)),
            })
        };
        Allocations {
            core: 0,
            turn_priority: turn_priority(manager) as u8,
            shortest_us: shortest_us(manager),
            ahead: self.ahead_of_turns(manager),
            clients: clients.iter().filter_map(lower).collect(),
        }
    }

    /// Whether a client is a scheduler of others.
    fn lends(&self, client: &str) -> bool {
        let schedulers = self.document.partitioning.as_ref();
        schedulers.is_some_and(|of| of.time.is_some() && text(&of.name) == client)
    }

    /// Whether all that is given is there, by the manager's own test.
    fn admit(&mut self, manager: &TimeManager, table: &Allocations) {
        let Err((number, refusal)) = Admission::new(table) else {
            return;
        };
        // The library counts in µs here.
        let refusal = refusal.to_string().replace("ticks", "µs");
        let Some(number) = number else {
            self.found(
                Finding::new(
                    manager.priority.span(),
                    "clients of gates above turns have more than the core",
                )
                .label(refusal)
                .help("their budgets come before all turns: make them smaller, or a longer `shortest-period`, or give them another core"),
            );
            return;
        };
        let Some(client) = manager.clients.get_ref().get(number) else {
            return;
        };
        let place = client.share.as_ref().map(|share| share.span());
        let place = place.or(client.tasks.as_ref().map(|tasks| tasks.span()));
        let name = text(&client.component);
        self.found(
            Finding::new(
                place.unwrap_or(client.component.span()),
                format!("`{name}` is given more than the clients before it leave of the core"),
            )
            .label(refusal)
            .help(match table.ahead.as_slice() {
                [] => {
                    "what all clients are given must be possible together, whenever they use it"
                }
                _ => {
                    "what all clients are given must be possible together, whenever they use it, and beside the clients of gates \
                     that are above turns, at any time"
                }
            }),
        );
    }

    /// What is above turns is counted for intervals of the shortest deadline and longer.
    fn deadlines_are_counted(&mut self, manager: &TimeManager, table: &Allocations) {
        let shortest = shortest_deadline_us(table);
        let tasks = manager.clients.get_ref().iter();
        let tasks = tasks.flat_map(|client| &client.tasks);
        for task in tasks.flat_map(|tasks| tasks.get_ref()) {
            let deadline_us = task_of(task).deadline_us;
            let Some(deadline) = task.deadline.as_ref().filter(|_| deadline_us < shortest) else {
                continue;
            };
            self.found(
                Finding::new(deadline.span(), format!("a deadline of {deadline_us} µs"))
                    .label(format!(
                        "must be at least {shortest} µs, the shortest period of a reservation"
                    ))
                    .related(manager.name.span(), "clients of gates are above its turns")
                    .help("what these take is counted in intervals of that length: say a shorter `shortest-period`, if they leave enough"),
            );
        }
    }
}
