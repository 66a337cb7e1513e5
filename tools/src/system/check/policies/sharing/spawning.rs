//! Servers that make threads while they serve: the key `spawns` of a component, and the protocol
//! `stack-spawning`, which go together.

use sandglass_abi::sched::MIN_BUDGET_US;
use sandglass_description::{Object, Spawning, ThreadId};

use super::super::super::super::document::{
    ClientRights, Component, Resource, SharingProtocol, Spawns,
};
use super::super::super::super::findings::Finding;
use super::super::super::{text, Checker};
use super::expand::HIGHEST;

/// What a new thread takes to get ready, µs, and what the kernel wants to be left meanwhile; generous.
const READY_US: u64 = 30;
/// Most threads that one component makes.
const MOST_THREADS: i64 = 64;

impl<'a> Checker<'a> {
    /// A spawner gets what threads are made of, where it hands requests on, what new threads get ready
    /// on, and a reply object for each thread, beside the one of its endpoint.
    pub(super) fn equip_spawning(&mut self, resource: &'a Resource, server: usize) {
        let component = &self.document.components[server];
        self.check_spawner(resource, component);
        let Some(spawns) = &component.spawns else {
            return;
        };
        if self.equipment[server].spawning.is_some() {
            // It serves two, as has been found.
            return;
        }
        let spawning = self.spawning(component, spawns.get_ref());
        let main = &mut self.threads[server][0];
        main.mcp = main.mcp.max(spawning.priority);
        self.equipment[server].add_spawning(spawning, &spawns.span(), &mut self.findings);
        let name = text(&resource.name);
        for number in 1..=spawning.threads {
            let reply = Object::Reply(self.new_endpoint());
            self.give_server(resource, server, &format!("{name}.reply.{number}"), reply);
        }
        let handover = Object::Endpoint(self.new_endpoint());
        self.give_server(resource, server, &format!("{name}.handover"), handover);
        let own = Object::SchedContext(ThreadId {
            component: self.position[server],
            thread: 0,
        });
        self.give_server(resource, server, "self.context", own);
    }

    /// What is written as `spawns`.
    fn spawning(&mut self, component: &Component, spawns: &Spawns) -> Spawning {
        let threads = &spawns.threads;
        let threads = self.in_range("number of threads", Some(threads), 1..=MOST_THREADS, 1);
        let spawner = *component.priority.get_ref();
        let above = (spawner + 1).clamp(0, HIGHEST);
        let priority = spawns.priority.as_ref();
        let priority = self.in_range("priority", priority, 0..=HIGHEST, above);
        if priority <= spawner {
            let place = spawns.priority.as_ref().unwrap_or(&component.priority);
            self.found(
                Finding::new(
                    place.span(),
                    format!(
                        "the threads that `{}` makes must have a higher priority than it",
                        text(&component.name)
                    ),
                )
                .label(if above > spawner {
                    format!("must be at least {above}")
                } else {
                    format!("must be below {HIGHEST}, the highest")
                })
                .related(component.priority.span(), "its own priority")
                .help("the main thread gets a request only when none of the others waits for one"),
            );
        }
        Spawning {
            threads: threads as u32,
            stack_bytes: self.stack(spawns.stack.as_ref()),
            priority: priority as u8,
        }
    }

    fn check_spawner(&mut self, resource: &Resource, server: &Component) {
        let name = text(&server.name);
        if server.spawns.is_none() {
            self.found(
                Finding::new(
                    server.name.span(),
                    format!("`{name}` is not allowed to make threads"),
                )
                .label("servers of this protocol make them when all are busy")
                .related(resource.protocol.span(), "the protocol")
                .help("state how many: `spawns = { threads = N }`; or choose `workers`"),
            );
        }
        self.check_start(server);
        if let Some(handler) = &server.timeout_handler {
            self.found(
                Finding::new(
                    handler.span(),
                    format!("`{name}` has a timeout handler, which knows its main thread only"),
                )
                .label("a request is served by any of its threads")
                .related(resource.protocol.span(), "the protocol")
                .help("remove it: a thread whose client has no budget left waits with it"),
            );
        }
        for client in &resource.clients {
            if matches!(client.rights, ClientRights::Grant) {
                self.found(
                    Finding::new(
                        client.component.span(),
                        format!("`{}` may send capabilities", text(&client.component)),
                    )
                    .label("they would not reach a thread that is made for the request")
                    .help("leave `rights` out; or choose `workers`"),
                );
            }
        }
    }

    /// What the server starts on is what its new threads get ready on, each once.
    fn check_start(&mut self, server: &Component) {
        let (Some(budget), Some(spawns)) = (&server.budget, &server.spawns) else {
            return;
        };
        let threads = *spawns.get_ref().threads.get_ref();
        let threads = u64::try_from(threads).unwrap_or(0);
        let least = MIN_BUDGET_US + threads.saturating_mul(READY_US);
        if budget.get_ref().0 < least {
            self.found(
                Finding::new(
                    budget.span(),
                    format!(
                        "the budget that `{}` starts on is too small for {threads} threads",
                        text(&server.name)
                    ),
                )
                .label(format!("must be at least {least} µs"))
                .related(spawns.span(), "they start on it")
                .help("with less, a client would wait for a replenishment while one is made"),
            );
        }
    }

    /// Whoever may make threads has a protocol that does.
    pub(super) fn check_who_spawns(&mut self) {
        let document = self.document;
        for (index, component) in document.components.iter().enumerate() {
            let Some(spawns) = &component.spawns else {
                continue;
            };
            let serves = document.resources.iter().any(|resource| {
                let server = resource.server.as_ref();
                *resource.protocol.get_ref() == SharingProtocol::StackSpawning
                    && server.and_then(|name| self.names.component(text(name))) == Some(index)
            });
            if !serves {
                self.found(
                    Finding::new(
                        spawns.span(),
                        format!(
                            "`{}` has no use for threads that it makes",
                            text(&component.name)
                        ),
                    )
                    .label("it serves no resource with `stack-spawning`")
                    .help("let it serve a `[[resource]]` with `protocol = \"stack-spawning\"`"),
                );
            }
        }
    }
}
