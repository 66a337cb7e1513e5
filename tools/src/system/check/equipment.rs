//! What one component gets, and the names under which it finds it.

use std::collections::HashMap;

use sandglass_abi::rights::Rights;
use sandglass_description::{limits, Grant, Map, Object, Parameter, Spawning};

use super::super::document::Component;
use super::super::findings::{Finding, Span};

/// Capabilities that the launcher gives on its own: the launcher's endpoint, the console, and the
/// null slot, which stays empty.
const OWN_SLOTS: usize = 3;
/// Entries of the environment that the launcher adds: the launcher's endpoint, the console.
const OWN_ENTRIES: usize = 2;

/// What a name stands for; names of different kinds do not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Capability,
    Memory,
    Parameter,
}

impl Kind {
    const fn noun(self) -> &'static str {
        match self {
            Self::Capability => "capability",
            Self::Memory => "memory",
            Self::Parameter => "parameter",
        }
    }
}

#[derive(Debug)]
pub struct Equipment {
    pub grants: Vec<Grant>,
    pub maps: Vec<Map>,
    pub parameters: Vec<Parameter>,
    /// Threads that it may make.
    pub spawning: Option<Spawning>,
    names: HashMap<(Kind, String), Span>,
    /// Threads beside the main one: each has a stack.
    further_threads: usize,
}

impl Equipment {
    pub fn new() -> Self {
        let mut names = HashMap::new();
        for reserved in [sandglass_description::LAUNCHER, "console"] {
            names.insert((Kind::Capability, reserved.to_owned()), 0..0);
        }
        Self {
            grants: Vec::new(),
            maps: Vec::new(),
            parameters: Vec::new(),
            spawning: None,
            names,
            further_threads: 0,
        }
    }

    /// Gives a capability with all rights and no badge.
    pub fn add_capability(
        &mut self,
        name: &str,
        object: Object,
        span: &Span,
        findings: &mut Vec<Finding>,
    ) {
        let grant = Grant {
            name: name.to_owned(),
            object,
            rights: Rights::ALL.raw(),
            badge: 0,
            calls_only: false,
        };
        self.add_grant(grant, span, findings);
    }

    pub fn add_grant(&mut self, grant: Grant, span: &Span, findings: &mut Vec<Finding>) {
        self.name(Kind::Capability, &grant.name, span, findings);
        self.grants.push(grant);
    }

    /// Gives several capabilities: the first under `name`, and the others behind it, without names.
    pub fn add_all(
        &mut self,
        name: &str,
        grants: impl Iterator<Item = Grant>,
        span: &Span,
        findings: &mut Vec<Finding>,
    ) {
        for (number, grant) in grants.enumerate() {
            if number == 0 {
                let name = name.to_owned();
                self.add_grant(Grant { name, ..grant }, span, findings);
            } else {
                self.grants.push(grant);
            }
        }
    }

    pub fn add_map(&mut self, name: &str, map: Map, span: &Span, findings: &mut Vec<Finding>) {
        self.name(Kind::Memory, name, span, findings);
        self.maps.push(map);
    }

    pub fn add_parameter(
        &mut self,
        name: &str,
        value: u64,
        span: &Span,
        findings: &mut Vec<Finding>,
    ) {
        self.name(Kind::Parameter, name, span, findings);
        self.parameters.push(Parameter {
            name: name.to_owned(),
            value,
        });
    }

    /// Notes what the launcher gives a component for a further thread of its own.
    pub fn add_own_thread(&mut self, name: &str, span: &Span, findings: &mut Vec<Finding>) {
        self.name(Kind::Memory, &format!("{name}.stack"), span, findings);
        self.further_threads += 1;
    }

    /// Lets the component make threads.
    pub fn add_spawning(&mut self, spawning: Spawning, span: &Span, findings: &mut Vec<Finding>) {
        for name in Spawning::CAPABILITIES {
            self.name(Kind::Capability, name, span, findings);
        }
        for name in Spawning::PARAMETERS {
            self.name(Kind::Parameter, name, span, findings);
        }
        self.spawning = Some(spawning);
    }

    /// Slots and entries that the launcher fills for the threads that the component makes.
    fn room_to_spawn(&self) -> (usize, usize) {
        let Some(spawning) = &self.spawning else {
            return (0, 0);
        };
        let named = Spawning::CAPABILITIES.len();
        let slots = u64::from(spawning.threads) * spawning.slots_per_thread();
        (named + slots as usize, named + Spawning::PARAMETERS.len())
    }

    fn name(&mut self, kind: Kind, name: &str, span: &Span, findings: &mut Vec<Finding>) {
        let noun = kind.noun();
        if name.len() > limits::NAME_BYTES {
            findings.push(
                Finding::new(span.clone(), format!("the name `{name}` is too long")).label(
                    format!(
                        "a component finds it under names of at most {} bytes",
                        limits::NAME_BYTES
                    ),
                ),
            );
        }
        let key = (kind, name.to_owned());
        let Some(first) = self.names.get(&key) else {
            self.names.insert(key, span.clone());
            return;
        };
        let finding = Finding::new(
            span.clone(),
            format!("the component already has a {noun} called `{name}`"),
        )
        .label("this one");
        findings.push(if first.is_empty() {
            finding.help(format!("the launcher gives every component `{name}`"))
        } else {
            finding
                .related(first.clone(), "the other")
                .help("rename one of them (endpoints and notifications: `as = \"...\"`)")
        });
    }

    /// Whether everything fits into the component's CNode and its environment.
    pub fn check_room(
        &self,
        component: &Component,
        cspace_bits: i64,
        most_bits: i64,
        findings: &mut Vec<Finding>,
    ) {
        let name = component.name.get_ref();
        let (spawning_slots, spawning_entries) = self.room_to_spawn();
        let slots = OWN_SLOTS + self.grants.len() + spawning_slots;
        let span = match &component.cspace_bits {
            Some(bits) => bits.span(),
            None => component.name.span(),
        };
        let fits = (1..=most_bits).contains(&cspace_bits) && slots <= 1 << cspace_bits;
        if !fits {
            let least = slots.next_power_of_two().ilog2();
            findings.push(
                Finding::new(
                    span,
                    format!("`{name}` gets {slots} capabilities, each of which needs a slot"),
                )
                .label(format!("`cspace-bits` must be from {least} to {most_bits}")),
            );
        }
        let entries = OWN_ENTRIES
            + self.grants.iter().filter(|grant| grant.is_named()).count()
            + self.maps.len()
            + self.parameters.len()
            + self.further_threads
            + spawning_entries;
        if entries > limits::ENVIRONMENT_ENTRIES {
            findings.push(
                Finding::new(
                    component.name.span(),
                    format!("`{name}` is given {entries} named resources"),
                )
                .label(format!(
                    "a component can have at most {}",
                    limits::ENVIRONMENT_ENTRIES
                ))
                .help("give it fewer, or split it into two components"),
            );
        }
    }
}
