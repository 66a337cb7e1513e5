//! Where the servers stand that tasks of an `[[edf]]` call: above the tasks, so that no other task runs
//! while one has the server, and below the scheduler, so that releases are not late. A server that others
//! above the scheduler call too is at their ceiling.

use std::collections::BTreeSet;

use super::super::super::super::document::{self, Component};
use super::super::super::super::findings::Finding;
use super::super::super::{text, Checker};

impl<'a> Checker<'a> {
    /// Checks the priorities of the passive servers that the tasks call, and of those that these call.
    pub(super) fn edf_servers(&mut self, edf: &'a document::Edf) {
        let document = self.document;
        let tasks = edf.tasks.get_ref().iter();
        let tasks = tasks.filter_map(|task| self.names.component(text(&task.component)));
        let tasks: BTreeSet<usize> = tasks.collect();
        let Some(&task) = tasks.first() else { return };
        // They have one priority: that is checked.
        let task = &document.components[task];
        let servers = self.passive_servers_of(&tasks);
        for server in servers.difference(&tasks) {
            self.edf_server(edf, task, &document.components[*server]);
        }
    }

    fn edf_server(&mut self, edf: &document::Edf, task: &Component, server: &Component) {
        let (name, scheduler) = (text(&server.name), text(&edf.name));
        let priority = &server.priority;
        let (tasks, highest) = (task.priority.get_ref(), edf.priority.get_ref());
        let (message, place, whose) = if priority.get_ref() <= tasks {
            let message =
                format!("tasks of `{scheduler}` could run while another one waits for `{name}`");
            (message, &task.priority, "the tasks' priority")
        } else if priority.get_ref() >= highest && !self.called_from(server, *highest) {
            let message = format!("`{name}` would delay the scheduler `{scheduler}`");
            (message, &edf.priority, "the scheduler's priority")
        } else {
            return;
        };
        self.found(
            Finding::new(priority.span(), message)
                .label(format!("must be above {tasks}, and below {highest}"))
                .related(place.span(), whose)
                .help(
                    "a server that tasks call must have a priority above all of them, and below their scheduler's",
                ),
        );
    }

    /// Whether a server has a client of at least this priority.
    fn called_from(&self, server: &Component, priority: i64) -> bool {
        let name = text(&server.name);
        let endpoints = self.document.endpoints.iter();
        let mine = endpoints.filter(|endpoint| endpoint.server.as_ref().map(text) == Some(name));
        let mut clients = mine.flat_map(|endpoint| &endpoint.clients);
        clients.any(|client| {
            let client = self.names.component(text(&client.component));
            client.is_some_and(|client| {
                *self.document.components[client].priority.get_ref() >= priority
            })
        })
    }

    /// The passive servers that these components call, and those that such servers call.
    pub(in super::super) fn passive_servers_of(
        &self,
        callers: &BTreeSet<usize>,
    ) -> BTreeSet<usize> {
        let find = |name| self.names.component(text(name));
        let mut calling = callers.clone();
        let mut servers = BTreeSet::new();
        loop {
            let before = calling.len();
            for endpoint in &self.document.endpoints {
                let mut clients = endpoint.clients.iter();
                let called = clients.any(|client| {
                    find(&client.component).is_some_and(|client| calling.contains(&client))
                });
                let server = endpoint.server.as_ref().and_then(find);
                let is_passive = |server: &usize| {
                    let passive = self.document.components[*server].passive.as_ref();
                    passive.is_some_and(|passive| *passive.get_ref())
                };
                if let Some(server) = server.filter(|server| called && is_passive(server)) {
                    servers.insert(server);
                    calling.insert(server);
                }
            }
            if calling.len() == before {
                return servers;
            }
        }
    }
}
