//! What policies are told: the tables of a description that name a policy's library become
//! capabilities and a table ([`sandglass_description::policy`]) for the component that has it.
//!
//! There is a module for each library in `user/policies`, with the same name; [`machine_timer`] gives one of them the device that
//! there is one of.

mod allocations;
mod edf;
mod machine_timer;
pub(super) mod mc_ipc;
mod modes;
mod partitions;
pub(super) mod sharing;
mod timeouts;
mod timers;

use sandglass_description::policy::Table;

use super::super::document::{Document, SharingProtocol};
use super::super::findings::{Finding, Span};
use super::{text, Checker, Content};

pub(super) use machine_timer::has_timer;

/// Whether clients of a resource of this protocol reach its server through a proxy.
pub(super) fn is_proxied(protocol: SharingProtocol) -> bool {
    sharing::proxied(protocol).is_some()
}

/// Adds to a description what its policies stand for, or need beside what is written: components,
/// endpoints, devices. Returns what is wrong about that; the rest is found later, by the checks of what
/// was added and by [`Checker::policies`].
pub fn expand(document: &mut Document) -> Vec<Finding> {
    machine_timer::expand(document);
    let mut findings = mc_ipc::expand(document);
    sharing::expand(document);
    // Their scheduler has a timer, which the others then share, and may be a client of the time manager.
    findings.extend(partitions::expand(document));
    findings.extend(allocations::expand(document));
    findings.extend(edf::expand(document));
    findings.extend(timers::expand(document));
    findings
}

impl Checker<'_> {
    /// All policies. Components, endpoints and handlers are known by now.
    pub(super) fn policies(&mut self) {
        self.timeout_policies();
        self.timers();
        self.modes();
        self.sharing();
        self.edf();
        self.allocations();
        self.partitions();
        self.gates();
    }

    /// Whether a component calls a server other than `own`, so that it may be answered when its time
    /// has run out.
    fn calls_servers(&self, component: usize, own: Option<&str>) -> bool {
        let name = text(&self.document.components[component].name);
        let mut endpoints = self.document.endpoints.iter();
        endpoints.any(|endpoint| {
            let mut clients = endpoint.clients.iter();
            endpoint.server.as_ref().map(text) != own
                && clients.any(|client| text(&client.component) == name)
        })
    }

    /// Gives a component the table of a policy under `name`.
    pub(super) fn give_table(
        &mut self,
        component: usize,
        name: &str,
        table: &impl Table,
        span: &Span,
    ) {
        match table.encode() {
            Ok(bytes) => {
                let len = bytes.len() as u64;
                let index = self.packed_file(name, Content::Bytes(bytes), len, span.clone());
                self.show_file(component, name, index, span);
            }
            Err(error) => self.found(Finding::new(
                span.clone(),
                format!("the table of this policy cannot be encoded: {error}"),
            )),
        }
    }
}
