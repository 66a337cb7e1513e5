//! What is said of a gate for each level of criticality (paper, section VII).

use std::collections::{BTreeMap, BTreeSet};

use sandglass_description::policy::mc_ipc::SHORTEST_US;

use super::super::super::super::document::{PerLevel, Resource};
use super::super::super::super::findings::{Finding, Span};
use super::super::super::super::spanned::Spanned;
use super::super::super::{text, Checker};
use super::Member;

impl<'a> Checker<'a> {
    /// The lengths of operations, and from how many cores requests come.
    pub(super) fn gate_levels(&mut self, gate: &'a Resource, members: &[Member<'_>]) {
        self.gate_lengths(gate);
        let Some(clusters) = &gate.clusters else {
            return;
        };
        let span = clusters.span();
        let levels = self.by_level("clusters", &span, clusters.get_ref(), |count| *count);
        let most = i64::from(self.cores);
        for (count, span) in &levels {
            if !(1..=most).contains(count) {
                self.found(
                    Finding::new(span.clone(), format!("requests from {count} cores")).label(
                        format!("must be from 1 to {most}, the cores of the machine"),
                    ),
                );
            }
        }
        let cores: BTreeSet<u32> = members.iter().map(|member| member.core).collect();
        let needed = cores.len() as i64;
        let highest = levels
            .last()
            .filter(|(count, _)| *count >= 1 && *count < needed);
        if let Some((count, span)) = highest {
            let names: Vec<String> = cores.iter().map(u32::to_string).collect();
            self.found(
                Finding::new(
                    span.clone(),
                    format!("the clients of `{}` are on more than {count} cores", text(&gate.name)),
                )
                .label(format!("must be at least {needed}: the cores {}", names.join(", ")))
                .help("leave `clusters` out, or assume fewer at lower criticalities only: `clusters = { low = N, high = M }`"),
            );
        }
        self.rising("clusters", &levels);
    }

    fn gate_lengths(&mut self, gate: &'a Resource) {
        let Some(length) = &gate.length else {
            self.found(
                Finding::new(
                    gate.name.span(),
                    format!(
                        "`{}` does not say how long an operation takes",
                        text(&gate.name)
                    ),
                )
                .related(gate.protocol.span(), "the protocol")
                .help("say what the longest one takes, all included: `length = \"2ms\"`"),
            );
            return;
        };
        let span = length.span();
        let levels = self.by_level("length", &span, length.get_ref(), |length| length.0 as i64);
        for (length, span) in &levels {
            if *length < SHORTEST_US as i64 {
                self.found(
                    Finding::new(span.clone(), format!("operations of {length} µs"))
                        .label(format!("must be at least {SHORTEST_US} µs"))
                        .help(
                            "the longest operation, with what the server does before and after it",
                        ),
                );
            }
        }
        self.rising("length", &levels);
    }

    /// Values and their places from the lowest level on; empty if one is missing, which is found here.
    fn by_level<T>(
        &mut self,
        key: &str,
        place: &Span,
        given: &PerLevel<T>,
        value: impl Fn(&T) -> i64,
    ) -> Vec<(i64, Span)> {
        let names = self.levels();
        let levels = match given {
            PerLevel::Same(given) => return vec![(value(given), place.clone())],
            PerLevel::Levels(levels) => levels,
        };
        let before = self.findings.len();
        self.unknown_levels(key, levels.iter().map(|(name, given)| (name, given.span())));
        let missing: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| !levels.contains_key(*name))
            .collect();
        if !missing.is_empty() {
            self.found(
                Finding::new(
                    place.clone(),
                    format!(
                        "`{key}` says nothing of the criticality `{}`",
                        missing.join("`, `")
                    ),
                )
                .help(format!(
                    "give one for each of {}, or a single one for all",
                    names.join(", ")
                )),
            );
        }
        if self.findings.len() > before {
            return Vec::new();
        }
        let given = names.iter().filter_map(|name| levels.get(*name));
        given
            .map(|given| (value(given.get_ref()), given.span()))
            .collect()
    }

    fn unknown_levels<'n>(&mut self, key: &str, given: impl Iterator<Item = (&'n String, Span)>) {
        let names = self.levels();
        for (name, span) in given {
            if !names.contains(&name.as_str()) {
                self.found(
                    Finding::new(span, format!("`{key}` for an unknown criticality `{name}`"))
                        .label("not a level of this system")
                        .help(format!(
                            "the levels are, from the lowest: {}",
                            names.join(", ")
                        )),
                );
            }
        }
    }

    /// What is assumed at a higher level is no less.
    fn rising(&mut self, key: &str, levels: &[(i64, Span)]) {
        for pair in levels.windows(2) {
            let ((low, place), (high, span)) = (&pair[0], &pair[1]);
            if high < low {
                self.found(
                    Finding::new(
                        span.clone(),
                        format!("a higher criticality assumes less: `{key}` falls"),
                    )
                    .label(format!("must be at least {low}"))
                    .related(place.clone(), "of the criticality below"),
                );
            }
        }
    }

    /// The value of a level; that of the highest for `None`.
    pub(super) fn at_level<T: Copy>(&self, given: &PerLevel<T>, level: Option<usize>) -> Option<T> {
        match given {
            PerLevel::Same(given) => Some(*given),
            PerLevel::Levels(levels) => {
                let names = self.levels();
                let name = level.map_or(names.last(), |level| names.get(level))?;
                levels.get(*name).map(|given: &Spanned<T>| *given.get_ref())
            }
        }
    }

    /// The cores that requests come from at a level of criticality; at the highest for `None`.
    pub(super) fn clusters_at(
        &self,
        gate: &Resource,
        members: &[Member<'_>],
        level: Option<usize>,
    ) -> u64 {
        let cores: BTreeSet<u32> = members.iter().map(|member| member.core).collect();
        let given = gate.clusters.as_ref();
        let given = given.and_then(|given| self.at_level(given.get_ref(), level));
        given.map_or(cores.len() as u64, |given| {
            u64::try_from(given).unwrap_or(0)
        })
    }
}

/// Whether something is said level by level.
pub(super) fn differs<T>(given: Option<&Spanned<PerLevel<T>>>) -> bool {
    let levels: Option<&BTreeMap<String, Spanned<T>>> = match given.map(Spanned::get_ref) {
        Some(PerLevel::Levels(levels)) => Some(levels),
        _ => None,
    };
    levels.is_some()
}
