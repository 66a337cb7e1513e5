//! The tables of slots of a gate's clients.

use std::collections::BTreeSet;

use sandglass_description::policy::mc_ipc::{MOST_SLOTS, SHORTEST_GRANULE_US, SHORTEST_US};
use sandglass_description::policy::partitions::granule;

use super::super::super::super::document::{ClientKind, Resource, Slot};
use super::super::super::super::findings::Finding;
use super::super::super::super::quantity::Micros;
use super::super::super::super::spanned::Spanned;
use super::super::super::Checker;
use super::{kind, Member};

/// Longest cycle, µs: an hour.
const LONGEST_US: u64 = 3_600_000_000;

/// The slots of a client; none if there is none of the keys.
fn slots<'a>(member: &Member<'a>) -> &'a [Slot] {
    let slots = member.described.slots.as_ref();
    slots.map_or(&[], |slots| slots.get_ref())
}

impl<'a> Checker<'a> {
    /// Slots and their cycle.
    pub(super) fn gate_slots(&mut self, gate: &'a Resource, members: &[Member<'a>]) {
        for member in members {
            self.slots_are_where_they_belong(member);
        }
        let is_table_driven =
            |member: &&Member<'_>| kind(member.described) == ClientKind::TableDriven;
        let driven: Vec<&Member<'a>> = members.iter().filter(is_table_driven).collect();
        let (cycle, first) = match (&gate.cycle, driven.first()) {
            (None, None) => return,
            (Some(_), None) if members.iter().any(|member| !slots(member).is_empty()) => return,
            (Some(cycle), None) => {
                self.found(
                    Finding::new(cycle.span(), "a cycle, and no slots")
                        .label("has no effect")
                        .help("remove it; or give clients slots: `kind = \"table-driven\", slots = [{ at = \"0ms\", length = \"5ms\" }]`"),
                );
                return;
            }
            (None, Some(first)) => {
                let place = first.described.component.span();
                self.found(
                    Finding::new(place, format!("the slots of `{}` have no cycle", first.name()))
                        .related(gate.name.span(), "its gate")
                        .help("say in the resource after which time all slots repeat: `cycle = \"100ms\"`"),
                );
                return;
            }
            (Some(cycle), Some(first)) => (cycle, first),
        };
        let cycle_us = cycle.get_ref().0;
        if !(SHORTEST_GRANULE_US..=LONGEST_US).contains(&cycle_us) {
            self.found(
                Finding::new(cycle.span(), format!("a cycle of {cycle_us} µs"))
                    .label(format!(
                        "must be from {SHORTEST_GRANULE_US} to {LONGEST_US} µs"
                    ))
                    .related(first.described.component.span(), "of these slots"),
            );
            return;
        }
        let before = self.findings.len();
        for member in &driven {
            self.slots_in_order(member, cycle_us);
        }
        if self.findings.len() > before {
            return;
        }
        let cores: BTreeSet<u32> = driven.iter().map(|member| member.core).collect();
        for core in cores {
            let here: Vec<&Member<'a>> = driven
                .iter()
                .copied()
                .filter(|member| member.core == core)
                .collect();
            self.slots_of_core(core, cycle, &here);
        }
    }

    /// Slots are for those who are table-driven, and for all of them.
    fn slots_are_where_they_belong(&mut self, member: &Member<'a>) {
        let name = member.name();
        let described = member.described;
        let given = described.kind.as_ref().map(Spanned::span);
        let place = given.unwrap_or_else(|| described.component.span());
        match (kind(described), &described.slots) {
            (ClientKind::TableDriven, None) => self.found(
                Finding::new(place, format!("`{name}` has no slots"))
                    .label("would never run")
                    .help("say when it has the processor, in each cycle: `slots = [{ at = \"0ms\", length = \"5ms\" }]`"),
            ),
            (ClientKind::TableDriven, Some(slots)) if slots.get_ref().is_empty() => self.found(
                Finding::new(slots.span(), format!("`{name}` has no slots"))
                    .label("would never run")
                    .help("say when it has the processor, in each cycle: `slots = [{ at = \"0ms\", length = \"5ms\" }]`"),
            ),
            (ClientKind::Sporadic | ClientKind::BestEffort, Some(slots)) => self.found(
                Finding::new(slots.span(), format!("`{name}` has slots, and is not table-driven"))
                    .label("have no effect")
                    .related(place, "its kind")
                    .help("say so: `kind = \"table-driven\"`; or remove them"),
            ),
            _ => {}
        }
    }

    fn slots_in_order(&mut self, member: &Member<'a>, cycle_us: u64) {
        let mut earliest = 0;
        for slot in slots(member) {
            let (at, length) = (slot.at.get_ref().0, slot.length.get_ref().0);
            let end = at.saturating_add(length);
            if length < SHORTEST_US {
                self.found(
                    Finding::new(slot.length.span(), format!("a slot of {length} µs"))
                        .label(format!("must be at least {SHORTEST_US} µs")),
                );
            }
            if at < earliest {
                self.found(
                    Finding::new(slot.at.span(), format!("the slot begins at {at} µs"))
                        .label(format!(
                            "must be {earliest} µs or later, when the slot before it ends"
                        ))
                        .help("slots are listed in order of time, and do not overlap"),
                );
            } else if end > cycle_us {
                self.found(
                    Finding::new(slot.length.span(), format!("the slot ends at {end} µs"))
                        .label(format!("must end by {cycle_us} µs, the end of the cycle"))
                        .help("what is left over the end of a cycle is a slot of its own, at 0"),
                );
            }
            earliest = end;
        }
    }

    /// The slots of a core do not overlap, and their edges are far enough apart.
    fn slots_of_core(&mut self, core: u32, cycle: &Spanned<Micros>, here: &[&Member<'a>]) {
        let mut all: Vec<(&Slot, &Member<'a>)> = here
            .iter()
            .flat_map(|member| slots(member).iter().map(move |slot| (slot, *member)))
            .collect();
        all.sort_by_key(|(slot, _)| slot.at.get_ref().0);
        if let Some((more, _)) = all.get(MOST_SLOTS) {
            self.found(
                Finding::new(
                    more.at.span(),
                    format!("{} slots on core {core}", all.len()),
                )
                .label(format!("a core can have {MOST_SLOTS}")),
            );
            return;
        }
        for pair in all.windows(2) {
            let ((slot, member), (next, other)) = (pair[0], pair[1]);
            let end = slot.at.get_ref().0.saturating_add(slot.length.get_ref().0);
            if next.at.get_ref().0 < end {
                self.found(
                    Finding::new(
                        next.at.span(),
                        format!(
                            "slots of `{}` and `{}` overlap on core {core}",
                            member.name(),
                            other.name()
                        ),
                    )
                    .label(format!("must be {end} µs or later"))
                    .related(slot.length.span(), "of the slot before it")
                    .help("a core has one slot at a time; or put one of the two on another core"),
                );
            }
        }
        let edges = all.iter().flat_map(|(slot, _)| {
            let at = slot.at.get_ref().0;
            [at, at.saturating_add(slot.length.get_ref().0)]
        });
        let granule = granule(edges.chain([cycle.get_ref().0]));
        if granule < SHORTEST_GRANULE_US {
            self.found(
                Finding::new(
                    cycle.span(),
                    format!("the slots of core {core} and the cycle have in common only that they are multiples of {granule} µs"),
                )
                .label(format!("must be multiples of {SHORTEST_GRANULE_US} µs or more"))
                .help("a thread looks at the table that often; choose a cycle, beginnings and lengths that are multiples of a longer time"),
            );
        }
    }
}
