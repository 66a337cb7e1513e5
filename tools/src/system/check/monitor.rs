//! `[monitor]`: who looks at the threads of the system, and what it is told of them.

use sandglass_description::monitor::{status, Consumption, Known, Monitor, Watched};
use sandglass_description::policy::Table;
use sandglass_description::{Map, Memory, MemorySource, Object, Status};

use super::super::document;
use super::super::findings::{Finding, Span};
use super::names::ThreadIndex;
use super::{text, Checker};

/// In whole pages.
const PAGE: u64 = sandglass_description::archive::PAGE as u64;

impl Checker<'_> {
    /// All capabilities have been given by now.
    pub(super) fn monitor(&mut self) {
        let Some(described) = &self.document.monitor else {
            return;
        };
        let before = self.findings.len();
        let Some(monitor) = self.find_component(&described.component) else {
            return;
        };
        self.can_tell(&described.component, monitor);
        let threads = self.watched_threads(described, monitor);
        if self.findings.len() > before {
            return;
        }
        let span = described.component.span();
        let total = self.threads.iter().map(Vec::len).sum();
        let objects = self.waited_for();
        self.give_status(monitor, total, &objects, &span);
        let threads = threads
            .into_iter()
            .map(|thread| self.watched(thread, monitor, &described.component))
            .collect();
        let table = Monitor { threads, objects };
        self.give_table(monitor, Monitor::NAME, &table, &span);
    }

    /// Whether the monitor has a console and runs again and again.
    fn can_tell(&mut self, place: &document::Text, monitor: usize) {
        let component = &self.document.components[monitor];
        let name = text(place);
        let mut findings = Vec::new();
        if !component.console {
            findings.push(
                Finding::new(place.span(), format!("`{name}` cannot print"))
                    .label("give it `console = true`"),
            );
        }
        let time = &self.threads[monitor][0];
        if time.passive || time.time.budget_us == time.time.period_us {
            findings.push(
                Finding::new(
                    place.span(),
                    format!("`{name}` looks once in each of its periods, so it needs one"),
                )
                .label("give it a `budget` below its `period`"),
            );
        }
        findings.into_iter().for_each(|finding| self.found(finding));
    }

    /// The threads that are listed, or all.
    fn watched_threads(
        &mut self,
        described: &document::Monitor,
        monitor: usize,
    ) -> Vec<ThreadIndex> {
        let listed = described.threads.iter().flatten();
        let listed: Vec<_> = listed.filter_map(|path| self.find_thread(path)).collect();
        if described.threads.is_some() {
            return listed;
        }
        let mut all: Vec<ThreadIndex> = Vec::new();
        for (component, threads) in self.threads.iter().enumerate() {
            all.extend((0..threads.len()).map(|thread| ThreadIndex { component, thread }));
        }
        // With its own capabilities it could stop itself in a server.
        all.retain(|thread| thread.component != monitor);
        all.sort_by_key(|thread| (self.position[thread.component], thread.thread));
        all
    }

    /// What the monitor is told of a thread, and what it gets of it.
    fn watched(&mut self, thread: ThreadIndex, monitor: usize, place: &document::Text) -> Watched {
        let (name, id) = (self.path(thread), self.id(thread));
        let consumption = self.consumption(thread, monitor);
        let made = &self.threads[thread.component][thread.thread];
        let (priority, time, passive) = (made.priority, made.time, made.passive);
        self.give_once(monitor, &format!("{name}.tcb"), Object::Tcb(id), place);
        if consumption == Consumption::Monitor {
            let context = Object::SchedContext(id);
            self.give_once(monitor, &format!("{name}.context"), context, place);
        }
        Watched {
            name,
            component: id.component,
            priority,
            core: time.core,
            budget_us: if passive { 0 } else { time.budget_us },
            period_us: if passive { 0 } else { time.period_us },
            extra_refills: time.extra_refills,
            sporadic: time.sporadic,
            badge: time.badge,
            number: self.number(thread),
            consumption,
        }
    }

    /// A timeout fault reports what was consumed since the last report, and whoever else has the context may ask for
    /// it; but a manager of modes only changes budgets.
    fn consumption(&self, thread: ThreadIndex, monitor: usize) -> Consumption {
        let made = &self.threads[thread.component][thread.thread];
        let context = Object::SchedContext(self.id(thread));
        let modes = self.document.modes.as_ref();
        let manager = modes.map(|modes| text(&modes.manager));
        let components = self.document.components.iter().zip(&self.equipment);
        let mut others = components.enumerate().filter(|(index, (component, _))| {
            *index != monitor && Some(text(&component.name)) != manager
        });
        let is_shared = others.any(|(_, (_, equipment))| {
            let mut grants = equipment.grants.iter();
            grants.any(|grant| grant.object == context)
        });
        match () {
            () if made.passive => Consumption::Passive,
            () if made.timeout_handler.is_some() || is_shared => Consumption::Other,
            () => Consumption::Monitor,
        }
    }

    /// The thread's number among all, in the order of the start.
    fn number(&self, thread: ThreadIndex) -> u32 {
        let position = self.position[thread.component];
        let earlier = self.threads.iter().zip(&self.position);
        let before: usize = earlier
            .filter(|(_, &other)| other < position)
            .map(|(threads, _)| threads.len())
            .sum();
        (before + thread.thread) as u32
    }

    /// The endpoints and notifications of all components.
    fn waited_for(&self) -> Vec<Known> {
        let mut known = Vec::new();
        for (component, equipment) in self.equipment.iter().enumerate() {
            let mut name = "";
            for (grant, given) in (0..).zip(&equipment.grants) {
                if given.is_named() {
                    name = &given.name;
                }
                let server = match given.object {
                    Object::Endpoint(index) => self.server_of(index),
                    Object::Notification(_) => None,
                    _ => continue,
                };
                known.push(Known {
                    component: self.position[component],
                    grant,
                    name: name.to_owned(),
                    server,
                });
            }
        }
        known
    }

    fn server_of(&self, endpoint: u32) -> Option<String> {
        let serves = |served: &Vec<(u32, &str)>| served.iter().any(|&(index, _)| index == endpoint);
        let component = self.served.iter().position(serves)?;
        Some(text(&self.document.components[component].name).to_owned())
    }

    /// Makes the memory that the launcher writes and the monitor reads.
    fn give_status(&mut self, monitor: usize, threads: usize, objects: &[Known], span: &Span) {
        let bytes = status::bytes(threads, objects.len()).next_multiple_of(PAGE);
        let memory = self.memory.len() as u32;
        self.memory.push(Memory {
            name: status::NAME.to_owned(),
            source: MemorySource::New { bytes },
        });
        let map = Map {
            memory,
            writable: false,
            address: None,
        };
        self.equipment[monitor].add_map(status::NAME, map, span, &mut self.findings);
        let total = threads as u64;
        self.equipment[monitor].add_parameter("monitor.threads", total, span, &mut self.findings);
        self.status = Some(Status {
            memory,
            known: objects.iter().map(|o| (o.component, o.grant)).collect(),
        });
    }
}
