//! What servers get that serve several requests at a time.

use sandglass_description::policy::sharing::REQUESTS;
use sandglass_description::{Object, ThreadId};

use super::super::super::super::document::{Component, Resource};
use super::super::super::super::findings::Finding;
use super::super::super::{text, Checker};

/// The highest badge with which interrupts arrive.
const INTERRUPT: i64 = 1;

impl<'a> Checker<'a> {
    /// A blocking server gets power over itself, to bind what its interrupts run on, and a reply
    /// object for each thread that can wait for it, beside the one of its endpoint.
    pub(super) fn equip_blocking(&mut self, resource: &'a Resource, server: usize) {
        for client in &resource.clients {
            let badge = client.badge.as_ref();
            if badge.map_or(0, |badge| *badge.get_ref()) <= INTERRUPT {
                let span = badge.map_or(client.component.span(), |badge| badge.span());
                self.found(
                    Finding::new(span, "the badges 0 and 1 are those of interrupts")
                        .label("the server could not distinguish this client from its device")
                        .help("give the client a badge from 2 on: `badge = N`"),
                );
            }
        }
        let name = text(&resource.name);
        let mut threads = 0;
        for client in &resource.clients {
            let Some(component) = self.names.component(text(&client.component)) else {
                continue;
            };
            let own = threads_of(&self.document.components[component]);
            threads += own;
            let badge = client.badge.as_ref().map_or(0, |badge| *badge.get_ref());
            let (limit, span) = (format!("{name}.{REQUESTS}.{badge}"), resource.name.span());
            let equipment = &mut self.equipment[server];
            equipment.add_parameter(&limit, own as u64, &span, &mut self.findings);
        }
        for number in 1..=threads {
            let reply = Object::Reply(self.new_endpoint());
            self.give_server(resource, server, &format!("{name}.reply.{number}"), reply);
        }
        let own = ThreadId {
            component: self.position[server],
            thread: 0,
        };
        self.give_server(resource, server, "self.tcb", Object::Tcb(own));
        self.give_server(resource, server, "self.context", Object::SchedContext(own));
    }

    /// Each worker beside the main thread gets a reply object of its own.
    pub(super) fn equip_workers(&mut self, resource: &'a Resource, server: usize) {
        let component = &self.document.components[server];
        self.check_workers(resource, component);
        let name = text(&resource.name);
        for thread in &component.threads {
            let reply = Object::Reply(self.new_endpoint());
            let name = format!("{name}.reply.{}", text(&thread.name));
            self.give_server(resource, server, &name, reply);
        }
    }

    fn check_workers(&mut self, resource: &Resource, server: &Component) {
        for thread in &server.threads {
            let is_passive = thread
                .passive
                .as_ref()
                .is_some_and(|passive| *passive.get_ref());
            if !is_passive {
                self.found(
                    Finding::new(
                        thread.name.span(),
                        format!("the worker `{}` has time of its own", text(&thread.name)),
                    )
                    .label("workers run on their clients' budgets")
                    .related(resource.protocol.span(), "the protocol")
                    .help("make it `passive = true`"),
                );
            }
        }
    }

    pub(super) fn give_server(
        &mut self,
        resource: &Resource,
        server: usize,
        name: &str,
        object: Object,
    ) {
        let span = resource.name.span();
        self.equipment[server].add_capability(name, object, &span, &mut self.findings);
    }
}

/// Threads that can ask for something at a time.
fn threads_of(component: &Component) -> usize {
    let spawns = component.spawns.as_ref();
    let spawned = spawns.map_or(0, |spawns| *spawns.get_ref().threads.get_ref());
    1 + component.threads.len() + usize::try_from(spawned).unwrap_or(0)
}
