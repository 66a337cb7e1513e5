//! What requests at gates may take of their clients' budgets, by level of criticality (paper, theorem 1 and section VII).

use sandglass_description::policy::mc_ipc::Protocol;
use sandglass_mc_ipc::bound::{Caller, Calls};

use super::super::super::super::document::{ClientKind, Resource};
use super::super::super::super::findings::Finding;
use super::super::super::super::spanned::Spanned;
use super::super::super::{text, Checker};
use super::levels::differs;
use super::{gated, is_gated, kind, requests, Member};

/// A cluster is a core.
pub(super) const PROCESSORS: u64 = 1;

/// What the requests of a client take of its budget at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requests {
    /// The component.
    pub client: String,
    /// The level of criticality at which this is assumed: the client's own, or one below.
    pub criticality: String,
    /// Of a job, all together, µs; `None`: others may delay it without limit.
    pub takes_us: Option<u64>,
    /// What it has for a job, with its own work: its budget in a period, or its shortest slot, µs.
    pub budget_us: u64,
    /// Where it asks.
    pub gates: Vec<Asked>,
}

/// The requests of a job at one gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub gate: String,
    pub requests: u64,
    /// What one of them takes at most, its own operation included, µs.
    pub each_us: Option<u64>,
}

impl<'a> Checker<'a> {
    /// Refuses budgets that are not enough for the requests alone.
    pub(super) fn gate_budgets(&mut self) {
        for row in self.requests() {
            let component = self.names.component(&row.client);
            let own = component.map(|index| {
                let level = self.level(self.document.components[index].criticality.as_ref());
                self.levels()[level.unwrap_or(0)]
            });
            if own == Some(row.criticality.as_str()) {
                self.budget_suffices(&row);
            }
        }
    }

    fn budget_suffices(&mut self, row: &Requests) {
        let Some(takes) = row.takes_us.filter(|takes| *takes > row.budget_us) else {
            return;
        };
        let Some(index) = self.names.component(&row.client) else {
            return;
        };
        let budget = self.document.components[index].budget.as_ref();
        let slots = super::slots_of(self.document, &row.client);
        let slots = slots.and_then(|(_, client)| client.slots.as_ref());
        let (span, what) = match (slots, budget) {
            (Some(slots), _) => (slots.span(), "shortest slot"),
            (None, Some(budget)) => (budget.span(), "budget"),
            (None, None) => return,
        };
        let asked: Vec<String> = row.gates.iter().map(Asked::explained).collect();
        self.found(
            Finding::new(
                span,
                format!(
                    "the requests of `{}` may take {takes} µs, and its {what} is {} µs",
                    row.client, row.budget_us
                ),
            )
            .label(format!(
                "must be at least {takes} µs, and what its own work takes"
            ))
            .help(format!(
                "at criticality `{}`: {}; or fewer requests, shorter operations, fewer cores",
                row.criticality,
                asked.join(" + ")
            )),
        );
    }

    /// What requests take, of all clients that make some, in the file's order; by criticality where that matters.
    pub(in super::super::super) fn requests(&self) -> Vec<Requests> {
        let mut rows = Vec::new();
        for component in &self.document.components {
            let name = text(&component.name);
            let asked = self.gates_of(name);
            if asked.is_empty() {
                continue;
            }
            let own = self.level(component.criticality.as_ref()).unwrap_or(0);
            let by_level = asked
                .iter()
                .any(|(gate, ..)| differs(gate.length.as_ref()) || differs(gate.clusters.as_ref()));
            let first = if by_level { 0 } else { own };
            for level in first..=own {
                rows.extend(self.requests_at(name, level, &asked));
            }
        }
        rows
    }

    /// Where a client with budget makes requests.
    fn gates_of(&self, name: &str) -> Vec<(&'a Resource, Vec<Member<'a>>, usize)> {
        let document = self.document;
        let gates = document.resources.iter().filter(|of| is_gated(of));
        let asked = gates.filter_map(|gate| {
            let members = self.members_of(gate);
            let own = members.iter().position(|member| member.name() == name)?;
            let member = &members[own];
            let asks = member.is_real_time() && requests(member.described) > 0;
            asks.then_some((gate, members, own))
        });
        asked.collect()
    }

    fn requests_at(
        &self,
        name: &str,
        level: usize,
        asked: &[(&'a Resource, Vec<Member<'a>>, usize)],
    ) -> Option<Requests> {
        let (_, members, own) = asked.first()?;
        let gates: Vec<Asked> = asked
            .iter()
            .map(|(gate, members, own)| self.asked(gate, members, *own, level))
            .collect();
        let takes = gates.iter().map(|asked| {
            let each = asked.each_us?;
            Some(each.saturating_mul(asked.requests))
        });
        let takes = takes.reduce(|one, other| Some(one?.saturating_add(other?)));
        Some(Requests {
            client: name.to_owned(),
            criticality: (*self.levels().get(level)?).to_owned(),
            takes_us: takes.flatten(),
            budget_us: self.has_for_a_job(&members[*own]),
            gates,
        })
    }

    /// One request, with what is assumed at a level of criticality.
    fn one_request(&self, gate: &Resource, members: &[Member<'_>], level: usize) -> Calls {
        let length = gate.length.as_ref();
        let length = length.and_then(|length| self.at_level(length.get_ref(), Some(level)));
        Calls {
            count: 1,
            longest: length.map_or(0, |length| length.0),
            clusters: self.clusters_at(gate, members, Some(level)),
        }
    }

    /// As [`Self::one_request`], at a client's own level.
    pub(super) fn assumed(
        &self,
        gate: &Resource,
        members: &[Member<'_>],
        own: &Member<'_>,
    ) -> Calls {
        let level = self.level(own.component.criticality.as_ref());
        self.one_request(gate, members, level.unwrap_or(0))
    }

    fn asked(&self, gate: &Resource, members: &[Member<'_>], own: usize, level: usize) -> Asked {
        let one = self.one_request(gate, members, level);
        let length = one.longest;
        let each_us = match gated(*gate.protocol.get_ref()) {
            Some(Protocol::McIpc) => {
                let caller = Caller {
                    processors: PROCESSORS,
                    is_first: is_first(&members[own], members),
                };
                Some(one.delay(caller))
            }
            // Behind one request of each other client.
            Some(Protocol::Fifo) => Some(length.saturating_mul(members.len() as u64)),
            // More urgent ones may make any number of requests.
            Some(Protocol::Priority) | None => None,
        };
        Asked {
            gate: text(&gate.name).to_owned(),
            requests: requests(members[own].described),
            each_us,
        }
    }

    /// µs.
    fn has_for_a_job(&self, member: &Member<'_>) -> u64 {
        match (kind(member.described), &member.described.slots) {
            (ClientKind::TableDriven, Some(slots)) => {
                let lengths = slots.get_ref().iter();
                let lengths = lengths.map(|slot| slot.length.get_ref().0);
                lengths.min().unwrap_or(0)
            }
            _ => member
                .component
                .budget
                .as_ref()
                .map_or(0, |budget: &Spanned<_>| budget.get_ref().0),
        }
    }
}

impl Asked {
    /// For people.
    pub fn explained(&self) -> String {
        let plural = if self.requests == 1 { "" } else { "s" };
        let each = match self.each_us {
            Some(each) => format!("at most {each} µs each"),
            None => "no limit".to_owned(),
        };
        format!(
            "{} request{plural} to `{}`, {each}",
            self.requests, self.gate
        )
    }
}

/// Whether nobody on the core of a client can be more urgent while that one has budget. Of equal priorities, any may be.
pub(super) fn is_first(own: &Member<'_>, members: &[Member<'_>]) -> bool {
    // Nobody else with slots on this core has budget in its slot, and those without are below it.
    if kind(own.described) == ClientKind::TableDriven {
        return true;
    }
    let mut others = members
        .iter()
        .filter(|other| other.index != own.index && other.core == own.core && other.is_real_time());
    !others.any(|other| other.priority >= own.priority)
}
