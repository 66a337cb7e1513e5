//! Is a description right? And what exactly does it describe?
//!
//! [`check`] collects everything that is wrong, so that one run shows it all; a description in
//! which nothing is wrong comes out with all names replaced by numbers, ready to be packed.
//!
//! - [`names`] finds what names mean, [`calls`] who calls whom;
//! - [`threads`] checks components' threads: priorities, time, handlers;
//! - [`jobs`] tells traces how often threads are to have jobs;
//! - [`wiring`] gives components what they share: endpoints, notifications, memory, files;
//! - [`devices`] gives them interrupts, ports, and the output to the host;
//! - [`policies`] give components what their policies are told;
//! - [`logging`] adds the writer of the log, and the memory for what components log;
//! - [`restart`] checks which components can be started anew, and watched;
//! - [`order`] decides who starts when;
//! - [`outlook`] says what is to be expected of the system, and warns;
//! - [`equipment`] collects what one component gets, under names that must be unique.

mod calls;
mod devices;
mod equipment;
mod jobs;
mod logging;
mod monitor;
pub(super) mod names;
mod order;
mod outlook;
mod policies;
mod restart;
mod threads;
mod wiring;

use std::collections::HashMap;
use std::path::PathBuf;

use crate::system::spanned::Spanned;
use sandglass_description::{Component, Log, Memory, MemorySource, Status, System};

use self::equipment::Equipment;
use self::names::Names;
pub use self::outlook::{Asked, Assumption, Blocking, Bound, CoreLoad, Outlook, Requests};
use super::document::{self, Document, Integer};
use super::executable::{self, Executable};
use super::findings::{Finding, Report, Span};
use super::parse::parse;
use super::Source;
use crate::arch::Arch;
use crate::board::{self, Devices, Timer};
use crate::cores::MOST_CORES;
use crate::project::Project;
use crate::trace::check::{gates, Plan, Promises};

/// MiB of the machine, unless the description says otherwise.
const DEFAULT_MEMORY_MIB: u32 = crate::qemu::DEFAULT_MEMORY_MIB;
/// With less memory, kernel and launcher do not start.
const MIN_MEMORY_MIB: i64 = 16;
const MAX_MEMORY_MIB: i64 = 1 << 20;
const MAX_CORES: i64 = MOST_CORES as i64;
/// Log2 slots of a component's CNode.
const DEFAULT_CSPACE_BITS: i64 = 8;
const MAX_CSPACE_BITS: i64 = 16;
/// Missing programs after which no more are looked for: that many are not read.
const MOST_MISSING: usize = 50;
const LAUNCHER_PRIORITY: i64 = 255;
const MIB: u64 = 1 << 20;

/// A description in which nothing is wrong.
#[derive(Debug)]
pub struct Description {
    pub source: Source,
    pub arch: Arch,
    /// A component has the machine's timer.
    pub has_timer: bool,
    /// On aarch64, what the machine has for components.
    pub board: &'static Devices,
    pub memory_mib: u32,
    pub cores: u32,
    /// The system; its blobs are still to be filled in.
    pub system: System,
    /// Of each component, in the system's order.
    pub executables: Vec<Packed>,
    /// Files, and which of the system's memories show them.
    pub files: Vec<PackedFile>,
    /// Mappings at fixed addresses, which must not meet the component's image.
    pub fixed_maps: Vec<FixedMap>,
    /// Name of the output to the host.
    pub output: Option<String>,
    /// Place of the machine's memory, or of the system's name.
    pub machine_span: Span,
    pub outlook: Outlook,
    /// What a trace is to show.
    pub expected: Promises,
}

/// An executable to pack.
#[derive(Debug)]
pub struct Packed {
    pub executable: Executable,
    pub span: Span,
}

/// A file to pack.
#[derive(Debug)]
pub struct PackedFile {
    pub content: Content,
    /// Index in [`System::memory`].
    pub memory: usize,
    pub span: Span,
}

/// What a packed file holds.
#[derive(Debug)]
pub enum Content {
    /// That of a file of the host.
    Path(PathBuf),
    /// What the builder made.
    Bytes(Vec<u8>),
}

/// Memory at an address that the description fixes.
#[derive(Debug, Clone)]
pub struct FixedMap {
    /// Index in [`System::components`].
    pub component: usize,
    pub start: u64,
    pub end: u64,
    pub span: Span,
}

/// Checks a description.
///
/// # Errors
/// All that is wrong.
pub fn check(source: &Source) -> Result<Description, Report> {
    check_on(source, None)
}

/// As [`check`], for the board `model`, QEMU's `-machine`, in place of the one that the description names, if it is a known
/// one.
///
/// # Errors
/// All that is wrong.
pub fn check_on(source: &Source, model: Option<&str>) -> Result<Description, Report> {
    let mut document =
        parse(&source.text).map_err(|finding| Report::new(source, vec![*finding]))?;
    document.arch = source.arch.unwrap_or(document.arch);
    if let Some(board) = model.and_then(board::devices) {
        let span = document.name.span();
        document.machine.board = Some(Spanned::new(span, board.name.to_owned()));
    }
    let expanded = policies::expand(&mut document);
    let writer = logging::expand(&mut document);
    let mut checker = Checker::new(source, &document);
    checker.findings.extend(expanded);
    checker.writer = writer;
    checker.machine();
    checker.order();
    checker.components();
    checker.endpoints();
    checker.handlers();
    checker.notifications();
    checker.memory();
    checker.files();
    checker.logging();
    checker.devices();
    checker.policies();
    checker.restarts();
    checker.monitor();
    checker.accepts();
    let own_clients: Vec<Finding> = checker.own_clients().collect();
    let impossible = own_clients
        .into_iter()
        .filter(|finding| finding.warning.is_none());
    checker.findings.extend(impossible);
    checker.finish()
}

/// The state of a check. Components are counted in the order of the file; [`Checker::finish`]
/// brings them into the order of the start.
struct Checker<'a> {
    source: &'a Source,
    document: &'a Document,
    names: Names<'a>,
    findings: Vec<Finding>,
    memory_mib: u32,
    cores: u32,
    launcher_priority: u8,
    /// Position in the start order of each component.
    position: Vec<u32>,
    equipment: Vec<Equipment>,
    threads: Vec<Vec<sandglass_description::Thread>>,
    endpoints: u32,
    notifications: u32,
    log: Option<Log>,
    /// The component that writes the log.
    writer: Option<usize>,
    /// Of each component.
    recoveries: Vec<restart::Recovery>,
    memory: Vec<Memory>,
    files: Vec<PackedFile>,
    fixed_maps: Vec<FixedMap>,
    ports: Vec<devices::PortRange<'a>>,
    output: Option<&'a document::Output>,
    /// What the launcher tells the monitor.
    status: Option<Status>,
    /// Indices of the endpoints that each component serves.
    served: Vec<Vec<(u32, &'a str)>>,
    /// What the scheduler of partitions is to do.
    windows: Option<Plan>,
    /// What gates are to do.
    gates: Vec<gates::Plan>,
}

impl<'a> Checker<'a> {
    fn new(source: &'a Source, document: &'a Document) -> Self {
        let mut findings = Vec::new();
        let names = Names::collect(document, &mut findings);
        let count = document.components.len();
        Self {
            source,
            document,
            names,
            findings,
            memory_mib: DEFAULT_MEMORY_MIB,
            cores: 1,
            launcher_priority: 255,
            position: Vec::new(),
            equipment: (0..count).map(|_| Equipment::new()).collect(),
            threads: Vec::new(),
            endpoints: 0,
            notifications: 0,
            log: None,
            writer: None,
            recoveries: Vec::new(),
            memory: Vec::new(),
            files: Vec::new(),
            fixed_maps: Vec::new(),
            ports: Vec::new(),
            output: None,
            status: None,
            served: vec![Vec::new(); count],
            windows: None,
            gates: Vec::new(),
        }
    }

    fn found(&mut self, finding: Finding) {
        self.findings.push(finding);
    }

    /// The value of a number that must lie in a range; `default` if it is not given or wrong.
    fn in_range(
        &mut self,
        what: &str,
        value: Option<&Integer>,
        range: std::ops::RangeInclusive<i64>,
        default: i64,
    ) -> i64 {
        let Some(value) = value else { return default };
        if range.contains(value.get_ref()) {
            return *value.get_ref();
        }
        let (least, most) = range.into_inner();
        self.found(
            Finding::new(
                value.span(),
                format!("{what} {} is out of range", value.get_ref()),
            )
            .label(format!("must be from {least} to {most}")),
        );
        default
    }

    /// As [`Self::in_range`], for the number of a core.
    fn core(&mut self, value: Option<&Integer>) -> u32 {
        let Some(value) = value else { return 0 };
        let core = *value.get_ref();
        match u32::try_from(core) {
            Ok(core) if core < self.cores => core,
            _ => {
                let cores = self.cores;
                self.found(
                    Finding::new(value.span(), format!("there is no core {core}"))
                        .label(match cores {
                            1 => "the machine has one core, 0".to_owned(),
                            _ => format!("the machine has the cores 0 to {}", cores - 1),
                        })
                        .help("the number of cores is set by `machine = { cores = N }`"),
                );
                0
            }
        }
    }

    fn machine(&mut self) {
        let document = self.document;
        let machine = &document.machine;
        let mebibytes = machine.memory.as_ref().map(|memory| {
            let value = i64::try_from(memory.get_ref().0).unwrap_or(i64::MAX);
            Spanned::new(memory.span(), value)
        });
        let memory = self.in_range(
            "memory (MiB)",
            mebibytes.as_ref(),
            MIN_MEMORY_MIB..=MAX_MEMORY_MIB,
            DEFAULT_MEMORY_MIB.into(),
        );
        let cores = self.in_range("number of cores", machine.cores.as_ref(), 1..=MAX_CORES, 1);
        let priority = self.in_range(
            "the launcher's priority",
            document.launcher_priority.as_ref(),
            0..=LAUNCHER_PRIORITY,
            LAUNCHER_PRIORITY,
        );
        self.board();
        self.memory_mib = memory as u32;
        self.cores = cores as u32;
        self.launcher_priority = priority as u8;
        if document.components.is_empty() {
            self.found(
                Finding::new(document.name.span(), "the system has no component")
                    .help("add a `[[component]]` with `name`, `executable` and `priority`"),
            );
        }
    }

    /// A board that is named must be a known one, whatever the system is built for.
    fn board(&mut self) {
        let Some(name) = &self.document.machine.board else {
            return;
        };
        if board::all_devices().any(|board| board.name == name.get_ref()) {
            return;
        }
        let known: Vec<&str> = board::all_devices().map(|board| board.name).collect();
        self.found(
            Finding::new(name.span(), format!("there is no board `{}`", text(name)))
                .label("not known")
                .help(format!("the boards are `{}`", known.join("` and `"))),
        );
    }

    /// The device tree that the machine must have, since components have devices of that board.
    fn tree(&self) -> Option<String> {
        let board = self.document.board();
        let has_device = match board.timer {
            Timer::Core { .. } => self.output.is_some(),
            Timer::Counter(_) => self.output.is_some() || policies::has_timer(self.document),
        };
        let is_one = self.document.arch == Arch::Aarch64 && has_device;
        is_one.then(|| board.tree.to_owned())
    }

    /// What components have of their own.
    fn components(&mut self) {
        let document = self.document;
        for (index, component) in document.components.iter().enumerate() {
            let threads = self.component_threads(index, component);
            self.threads.push(threads);
            let level = self.criticality(component.criticality.as_ref());
            let span = component.name.span();
            let equipment = &mut self.equipment[index];
            let findings = &mut self.findings;
            equipment.add_parameter("criticality", level, &span, findings);
            for (name, value) in &component.parameters {
                equipment.add_parameter(name, value.get_ref().0, &value.span(), findings);
            }
            for core in &component.scheduling_control {
                let number = self.core(Some(core));
                self.equipment[index].add_capability(
                    &format!("sched-control.{number}"),
                    sandglass_description::Object::SchedControl(number),
                    &core.span(),
                    &mut self.findings,
                );
            }
            for path in &component.controls {
                if let Some(thread) = self.find_thread(path) {
                    self.give_thread(index, thread, path);
                }
            }
            for name in &component.revokes {
                if let Some(of) = self.find_component(name) {
                    let cnode = sandglass_description::Object::CNode(self.position[of]);
                    self.give_once(index, &format!("{}.cnode", text(name)), cnode, name);
                }
            }
        }
    }

    /// The index of a criticality, from the lowest on.
    fn criticality(&mut self, criticality: Option<&document::Text>) -> u64 {
        let level = self.level(criticality);
        if let (None, Some(criticality)) = (level, criticality) {
            self.found(
                Finding::new(
                    criticality.span(),
                    format!("unknown criticality `{}`", text(criticality)),
                )
                .label("not a level of this system")
                .help(format!(
                    "the levels are, from the lowest: {}; `criticalities = [...]` sets them",
                    self.levels().join(", ")
                )),
            );
        }
        level.unwrap_or(0) as u64
    }

    /// As [`Self::criticality`]; `None` if there is none of that name.
    fn level(&self, criticality: Option<&document::Text>) -> Option<usize> {
        match criticality {
            None => Some(0),
            Some(criticality) => {
                let mut levels = self.levels().into_iter();
                levels.position(|level| level == text(criticality))
            }
        }
    }

    /// The names of the criticalities, from the lowest.
    fn levels(&self) -> Vec<&'a str> {
        match &self.document.criticalities {
            Some(levels) => levels
                .iter()
                .map(|level| level.get_ref().as_str())
                .collect(),
            None => vec!["low", "high"],
        }
    }

    /// Puts the system together, if nothing is wrong.
    fn finish(mut self) -> Result<Description, Report> {
        self.memory_suffices();
        let executables = self.executables();
        let outlook = match self.findings.is_empty() {
            true => self.outlook(),
            false => Outlook::default(),
        };
        let expected = Promises {
            jobs: self.expected_jobs(),
            windows: self.windows.take(),
            gates: std::mem::take(&mut self.gates),
        };
        let board = self.tree();
        let document = self.document;
        let mut components = Vec::new();
        let parts = document.components.iter().zip(self.equipment);
        let parts = parts.zip(self.recoveries);
        for (((component, equipment), recovery), threads) in parts.zip(self.threads) {
            let bits = component.cspace_bits.as_ref();
            let bits = bits.map_or(DEFAULT_CSPACE_BITS, |bits| *bits.get_ref());
            equipment.check_room(component, bits, MAX_CSPACE_BITS, &mut self.findings);
            components.push(Component {
                name: component.name.get_ref().clone(),
                executable: super::NO_BLOB,
                cspace_bits: bits.clamp(1, MAX_CSPACE_BITS) as u32,
                threads,
                console: component.console,
                exit: component.exit,
                grants: equipment.grants,
                maps: equipment.maps,
                parameters: equipment.parameters,
                spawning: equipment.spawning,
                restart: recovery.restart,
                watchdog: recovery.watchdog,
            });
        }
        if !self.findings.is_empty() {
            self.findings.sort_by_key(|finding| finding.span.start);
            return Err(Report::new(self.source, self.findings));
        }
        let mut packed = in_order(executables, &self.position);
        let executables = packed.iter_mut().filter_map(Option::take).collect();
        let machine_span = match &document.machine.memory {
            Some(memory) => memory.span(),
            None => document.name.span(),
        };
        Ok(Description {
            source: self.source.clone(),
            arch: document.arch,
            board: document.board(),
            has_timer: policies::has_timer(document),
            memory_mib: self.memory_mib,
            cores: self.cores,
            system: System {
                name: document.name.get_ref().clone(),
                board,
                launcher_priority: self.launcher_priority,
                endpoints: self.endpoints,
                notifications: self.notifications,
                memory: self.memory,
                trace: None,
                log: self.log,
                status: self.status,
                components: in_order(components, &self.position),
            },
            executables,
            files: self.files,
            fixed_maps: self
                .fixed_maps
                .into_iter()
                .map(|map| FixedMap {
                    component: self.position[map.component] as usize,
                    ..map
                })
                .collect(),
            output: self.output.map(|output| output.name.get_ref().clone()),
            machine_span,
            outlook,
            expected,
        })
    }

    /// What components run, in the file's order.
    fn executables(&mut self) -> Vec<Option<Packed>> {
        let document = self.document;
        let names = document.components.iter().map(|c| &c.executable);
        let project = match Project::around(&self.source.folder) {
            Ok(project) => project,
            Err(error) => {
                let span = names
                    .clone()
                    .next()
                    .map_or(document.name.span(), Spanned::span);
                self.found(Finding::new(span, format!("{error:#}")));
                return names.map(|_| None).collect();
            }
        };
        // Looking is not free, and many components may have one program.
        let mut known: HashMap<&str, Executable> = HashMap::new();
        let mut missing = 0;
        let mut packed = Vec::new();
        for name in names {
            let span = name.span();
            let called = match name.get_ref() {
                document::Executable::Name(called) => Some(called.as_str()),
                document::Executable::Sources(_) => None,
            };
            let before = called.and_then(|called| known.get(called).cloned());
            let found = match before {
                Some(executable) => Some(Packed { executable, span }),
                None if missing >= MOST_MISSING => None,
                None => self.executable(name, project.as_ref()),
            };
            match (&found, called) {
                (Some(packed), Some(called)) => {
                    known.insert(called, packed.executable.clone());
                }
                (Some(_), None) => {}
                (None, _) => missing += 1,
            }
            packed.push(found);
        }
        packed
    }

    fn executable(
        &mut self,
        described: &Spanned<document::Executable>,
        project: Option<&Project>,
    ) -> Option<Packed> {
        let span = described.span();
        let arch = self.document.arch;
        match executable::find(described.get_ref(), &self.source.folder, project, arch) {
            Ok(executable) => Some(Packed { executable, span }),
            Err(missing) => {
                self.found(
                    Finding::new(missing.span.unwrap_or(span), missing.what)
                        .label("cannot be used as an executable")
                        .help(missing.help),
                );
                None
            }
        }
    }

    /// Memory for the threads that components may make.
    fn spawned_bytes(&self) -> impl Iterator<Item = u64> + '_ {
        let equipment = self.equipment.iter();
        equipment.filter_map(|equipment| Some(equipment.spawning?.bytes()))
    }

    /// Whether the memory that the description names fits into the machine at all.
    fn memory_suffices(&mut self) {
        let total: u64 = self
            .memory
            .iter()
            .filter(|memory| !matches!(memory.source, MemorySource::Device { .. }))
            .map(|memory| memory.source.bytes())
            .chain(self.spawned_bytes())
            .fold(0, u64::saturating_add);
        let machine = u64::from(self.memory_mib) * MIB;
        if total < machine {
            return;
        }
        let largest = self
            .document
            .memory
            .iter()
            .max_by_key(|memory| memory.size.get_ref().0);
        let span = match largest {
            Some(memory) => memory.size.span(),
            None => self.document.name.span(),
        };
        self.found(
            Finding::new(
                span,
                format!(
                    "the system's memory and files need {} MiB, but the machine has {} MiB",
                    total.div_ceil(MIB),
                    self.memory_mib
                ),
            )
            .label("the largest")
            .help("make memory smaller, or the machine larger: `machine = { memory = MIB }`"),
        );
    }
}

/// Brings what is in the file's order into the order of the start.
fn in_order<T>(items: Vec<T>, position: &[u32]) -> Vec<T> {
    let mut numbered: Vec<(u32, T)> = position.iter().copied().zip(items).collect();
    numbered.sort_by_key(|(position, _)| *position);
    numbered.into_iter().map(|(_, item)| item).collect()
}

/// Text of a value with a place.
fn text(spanned: &Spanned<String>) -> &str {
    spanned.get_ref()
}

#[cfg(test)]
mod tests;
