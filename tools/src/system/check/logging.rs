//! The log: the component that writes it, and memory for what each other component logs.

use crate::system::spanned::Spanned;
use sandglass_abi::rights::Rights;
use sandglass_description::policy::log::{badge, names, Log as Table};
use sandglass_description::policy::Table as _;
use sandglass_description::{
    log_memory, Grant, Log, Map, Memory, MemorySource, Object, LAUNCHER, LOG_BYTES, LOG_LEVEL,
    LOG_SIGNAL,
};

use super::super::document::{self, Component, Document};
use super::super::findings::Span;
use super::super::quantity::Micros;
use super::{text, Checker};

/// Package of the writer, and its component's name.
const WRITER: &str = "log-writer";
/// The lowest priority that the writer may have by default: above what only detects that nothing else runs.
const DEFAULT_PRIORITY: i64 = 1;
/// By default the writer runs on what nobody else needs.
const SLICE_US: u64 = 10_000;

/// Adds the writer, if a component logs or a `[log]` is described; returns its index among the components.
pub fn expand(document: &mut Document) -> Option<usize> {
    let logging = document.components.iter().find_map(|c| c.log.as_ref());
    let described = document.log.as_ref().map(Spanned::span);
    let span = described.or(logging.map(Spanned::span))?;
    let writer = writer(document.log.as_ref().map(Spanned::get_ref), &span);
    document.components.push(writer);
    Some(document.components.len() - 1)
}

fn writer(log: Option<&document::Log>, span: &Span) -> Component {
    let place = |text: &str| Spanned::new(span.clone(), text.to_owned());
    let slice = || Some(Spanned::new(span.clone(), Micros(SLICE_US)));
    let time = log.map(|log| (log.budget.clone(), log.period.clone()));
    let (budget, period) = match time {
        Some(time) if time != (None, None) => time,
        _ => (slice(), slice()),
    };
    let priority = log.and_then(|log| log.priority.clone());
    let priority = priority.unwrap_or(Spanned::new(span.clone(), DEFAULT_PRIORITY));
    Component {
        ready: true,
        budget,
        period,
        console: true,
        ..Component::added(place(WRITER), WRITER, priority)
    }
}

impl Checker<'_> {
    /// Gives components that log, the launcher and the writer what they need.
    pub(super) fn logging(&mut self) {
        let Some(writer) = self.writer else { return };
        let document = self.document;
        let span = document.components[writer].name.span();
        let wake = self.new_notification();
        let done = self.new_notification();
        self.give(writer, names::WAKE, wake, Rights::READ, 0, &span);
        self.give(writer, names::DONE, done, Rights::WRITE, 1, &span);
        let memory = self.log_memory(LAUNCHER, writer, &span);
        let mut sources = vec![LAUNCHER.to_owned()];
        for (index, component) in document.components.iter().enumerate() {
            let Some(level) = &component.log else {
                continue;
            };
            let name = text(&component.name);
            let memory = self.log_memory(name, writer, &level.span());
            self.map_log(index, memory, &level.span());
            self.give(
                index,
                LOG_SIGNAL,
                wake,
                Rights::WRITE,
                badge::WRITTEN,
                &level.span(),
            );
            self.equipment[index].add_parameter(
                LOG_LEVEL,
                level.get_ref().number(),
                &level.span(),
                &mut self.findings,
            );
            sources.push(name.to_owned());
        }
        self.give_table(writer, Table::NAME, &Table { sources }, &span);
        self.log = Some(Log {
            writer: self.position[writer],
            memory,
            wake,
            done,
        });
    }

    /// Makes the memory for what `source` logs, which the writer reads and empties; its index.
    fn log_memory(&mut self, source: &str, writer: usize, span: &Span) -> u32 {
        let index = self.memory.len() as u32;
        self.memory.push(Memory {
            name: log_memory(source),
            source: MemorySource::New { bytes: LOG_BYTES },
        });
        self.map_log(writer, index, span);
        index
    }

    fn map_log(&mut self, component: usize, memory: u32, span: &Span) {
        let map = Map {
            memory,
            writable: true,
            address: None,
        };
        let name = self.memory[memory as usize].name.clone();
        self.equipment[component].add_map(&name, map, span, &mut self.findings);
    }

    /// Gives a component a notification.
    fn give(
        &mut self,
        component: usize,
        name: &str,
        notification: u32,
        rights: Rights,
        badge: u64,
        span: &Span,
    ) {
        let grant = Grant {
            name: name.to_owned(),
            object: Object::Notification(notification),
            rights: rights.raw(),
            badge,
            calls_only: false,
        };
        self.equipment[component].add_grant(grant, span, &mut self.findings);
    }
}
