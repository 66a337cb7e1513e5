//! Components that are started anew when they fail, and those that are watched.

use crate::system::spanned::Spanned;
use sandglass_description::{Map, Memory, MemorySource, Restart, Watchdog, MOST_RESTART_SIGNALS};

use super::super::document::{Component, RestartPolicy};
use super::super::findings::{Finding, Span};
use super::policies::mc_ipc::is_gated;
use super::{text, Checker};

const PAGE: u64 = sandglass_description::archive::PAGE as u64;
/// How often a component is restarted unless the description says otherwise.
const DEFAULT_TIMES: u32 = 3;
const DEFAULT_WITHIN_US: u64 = 10_000_000;

/// What happens when a component fails, and how that is noticed.
#[derive(Debug, Clone, Copy)]
pub struct Recovery {
    pub restart: Option<Restart>,
    pub watchdog: Option<Watchdog>,
}

impl Checker<'_> {
    /// Restarts and watchdogs of all components. Threads and their handlers are known by now.
    pub(super) fn restarts(&mut self) {
        let document = self.document;
        let mut signals = 0;
        for (index, component) in document.components.iter().enumerate() {
            let restart = self.restart(component);
            let watchdog = self.watchdog(index, component);
            if restart.is_some() {
                let ready = self.threads[index].iter().filter(|t| t.ready.is_some());
                signals += 1 + ready.count();
            }
            self.recoveries.push(Recovery { restart, watchdog });
        }
        if signals > MOST_RESTART_SIGNALS {
            self.found(
                Finding::new(
                    document.name.span(),
                    format!("restarts of this system need {signals} signals"),
                )
                .label(format!("must be at most {MOST_RESTART_SIGNALS}"))
                .help(
                    "each component with `restart` needs one, and one for each of its threads that is `passive` or \
                     `ready`: restart fewer components",
                ),
            );
        }
    }

    fn restart(&mut self, component: &Component) -> Option<Restart> {
        let policy = component.restart.as_ref();
        let policy = policy.filter(|policy| *policy.get_ref() != RestartPolicy::Never);
        let Some(policy) = policy else {
            if let Some(limit) = &component.restart_limit {
                self.found(
                    Finding::new(limit.span(), "a limit of restarts, and no restarts")
                        .label("has no effect")
                        .help("add `restart = \"on-fault\"` or `restart = \"always\"`"),
                );
            }
            return None;
        };
        let always = *policy.get_ref() == RestartPolicy::Always;
        if always && component.exit {
            self.found(
                Finding::new(policy.span(), "the system ends when this component ends")
                    .label("so it cannot be restarted always")
                    .help("use `restart = \"on-fault\"`, or remove `exit = true`"),
            );
        }
        self.refuse_restart(component, policy.span());
        let limit = component.restart_limit.as_ref().map(Spanned::get_ref);
        let times = limit.map(|limit| &limit.times);
        let most = i64::from(Restart::MOST_TIMES);
        let times = self.in_range("number of restarts", times, 1..=most, DEFAULT_TIMES.into());
        Some(Restart {
            always,
            times: times as u32,
            within_us: limit.map_or(DEFAULT_WITHIN_US, |limit| limit.within.get_ref().0),
        })
    }

    /// Whether somebody else relies on what a restart would take away behind his back.
    fn refuse_restart(&mut self, component: &Component, policy: Span) {
        let name = text(&component.name);
        let document = self.document;
        let mut refuse = |span: Span, why: &str, help: &str| {
            self.findings.push(
                Finding::new(policy.clone(), format!("`{name}` cannot be restarted"))
                    .label(why)
                    .related(span, "because of this")
                    .help(help),
            );
        };
        if let Some(spawns) = &component.spawns {
            let help = "remove `spawns` or `restart`";
            refuse(
                spawns.span(),
                "it makes threads, which the launcher does not know",
                help,
            );
        }
        let edf = document.edf.iter().flat_map(|edf| edf.tasks.get_ref());
        if let Some(task) = edf
            .map(|task| &task.component)
            .find(|task| text(task) == name)
        {
            let help = "its scheduler removes a task that fails: remove `restart`, or give it time of its own";
            refuse(task.span(), "it is a task of an `[[edf]]`", help);
            return;
        }
        let handled = component
            .threads
            .iter()
            .map(|t| (&t.fault_handler, &t.timeout_handler));
        let main = (&component.fault_handler, &component.timeout_handler);
        for (fault, timeout) in std::iter::once(main).chain(handled) {
            for handler in [fault, timeout].into_iter().flatten() {
                let help = "let the handler do what is to be done, or remove it";
                refuse(
                    handler.span(),
                    "another component handles what happens to it",
                    help,
                );
            }
        }
        let is_it = |path: &str| path.split('/').next() == Some(name);
        let controls = document.components.iter().flat_map(|c| &c.controls);
        if let Some(control) = controls.into_iter().find(|path| is_it(text(path))) {
            let help =
                "what holds its threads and contexts decides about them: remove one of the two";
            refuse(control.span(), "another component controls it", help);
        }
        let revokes = document.components.iter().flat_map(|c| &c.revokes);
        if let Some(revokes) = revokes.into_iter().find(|of| text(of) == name) {
            let help = "it would start with what is left of them: remove one of the two";
            refuse(
                revokes.span(),
                "another component may take its capabilities away",
                help,
            );
        }
        let tasks = document.modes.iter().flat_map(|modes| &modes.tasks);
        if let Some(task) = tasks
            .map(|task| &task.component)
            .find(|task| is_it(text(task)))
        {
            let help = "the mode manager ignores a task once it has failed: remove one of the two";
            refuse(task.span(), "it is a task of `[modes]`", help);
        }
        let gates = document.resources.iter().filter(|of| is_gated(of));
        let mut held = gates.flat_map(|gate| {
            gate.clients
                .iter()
                .map(|of| &of.component)
                .chain(&gate.server)
        });
        if let Some(place) = held.find(|of| text(of) == name) {
            let help = "a gate moves the time of its clients, and does not expect it to be taken away: remove `restart`";
            refuse(place.span(), "it has a gate, or is a client of one", help);
        }
        let resources = document.resources.iter();
        let servers =
            resources.filter(|resource| super::policies::is_proxied(*resource.protocol.get_ref()));
        let mut servers = servers.filter_map(|resource| resource.server.as_ref());
        if let Some(server) = servers.find(|server| is_it(text(server))) {
            let help =
                "a proxy does not serve a resource any more whose server has failed: use `ceiling`";
            refuse(server.span(), "its clients reach it through a proxy", help);
        }
    }

    fn watchdog(&mut self, index: usize, component: &Component) -> Option<Watchdog> {
        let period = component.watchdog.as_ref()?;
        let period_us = period.get_ref().0;
        if period_us < Watchdog::SHORTEST_US {
            self.found(
                Finding::new(period.span(), format!("a watchdog of {period_us} µs"))
                    .label(format!("must be at least {} µs", Watchdog::SHORTEST_US)),
            );
        }
        let memory = self.memory.len() as u32;
        self.memory.push(Memory {
            name: Watchdog::NAME.to_owned(),
            source: MemorySource::New { bytes: PAGE },
        });
        let map = Map {
            memory,
            writable: true,
            address: None,
        };
        let equipment = &mut self.equipment[index];
        equipment.add_map(Watchdog::NAME, map, &period.span(), &mut self.findings);
        Some(Watchdog { period_us, memory })
    }
}
