//! The description as it is written: the keys of `SYSTEM.toml`, each with its place in the file.
//!
//! What a key means stands in the book's reference of system descriptions. Here only the shape is
//! checked (unknown keys, missing keys, kinds of values); the rest is [`super::check`]'s. The tables of policies are in
//! [`policies`] and [`partitions`], and where components call each other in [`servers`].

mod partitions;
mod policies;
mod servers;

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{self, value::MapAccessDeserializer, Visitor};
use serde::{Deserialize, Deserializer};

use super::quantity::{Bytes, Mebibytes, Micros, Number};
use super::spanned::Spanned;
use super::warning::Warning;
use crate::arch::Arch;
use crate::board::{self, Devices};

pub use partitions::*;
pub use policies::*;
pub use servers::*;

pub type Text = Spanned<String>;
pub type Integer = Spanned<i64>;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Document {
    /// Name of the system.
    pub name: Text,
    /// What it is built for, unless a command says otherwise: `x86_64` (the default) or `aarch64`.
    #[serde(default)]
    pub arch: Arch,
    /// The machine that the system runs on.
    #[serde(default)]
    pub machine: Machine,
    /// Names of the levels of criticality, from the lowest; `low` and `high` by default.
    pub criticalities: Option<Vec<Text>>,
    /// Priority of the launcher once everything runs, 0 to 255; 255 by default.
    pub launcher_priority: Option<Integer>,
    /// Warnings that are right as they are, with the reason.
    #[serde(default)]
    pub accept: Vec<Accept>,
    /// The writer of the log.
    pub log: Option<Spanned<Log>>,
    /// Programs, each in an address space of its own.
    #[serde(default, rename = "component")]
    pub components: Vec<Component>,
    /// Where clients call a server.
    #[serde(default, rename = "endpoint")]
    pub endpoints: Vec<Endpoint>,
    /// Endpoints that are shared by a protocol.
    #[serde(default, rename = "resource")]
    pub resources: Vec<Resource>,
    /// Signals from components to one that waits.
    #[serde(default, rename = "notification")]
    pub notifications: Vec<Notification>,
    /// Memory that components share, and registers of devices.
    #[serde(default)]
    pub memory: Vec<Memory>,
    /// Interrupts of devices.
    #[serde(default, rename = "interrupt")]
    pub interrupts: Vec<Interrupt>,
    /// Who has the machine's timer to itself.
    pub timer_device: Option<TimerDevice>,
    /// I/O ports, on x86_64.
    #[serde(default)]
    pub ports: Vec<Ports>,
    /// Bytes to the host, through another serial port; at most one.
    #[serde(default, rename = "output")]
    pub outputs: Vec<Output>,
    /// Files that components see, read-only.
    #[serde(default, rename = "file")]
    pub files: Vec<File>,
    /// Timers of the timer service.
    #[serde(default, rename = "timer")]
    pub timers: Vec<Timer>,
    /// What happens when clients' budgets run out in a server.
    #[serde(default, rename = "timeout-policy")]
    pub timeout_policies: Vec<TimeoutPolicy>,
    /// Which tasks give way when a critical one needs more time.
    pub modes: Option<Modes>,
    /// Who looks at the threads of the system.
    pub monitor: Option<Monitor>,
    /// Tasks that are scheduled by their deadlines.
    #[serde(default, rename = "edf")]
    pub edf: Vec<Edf>,
    /// Who gives out processor time.
    pub time_manager: Option<TimeManager>,
    /// Who schedules the partitions.
    #[serde(rename = "partitions")]
    pub partitioning: Option<Partitioning>,
    /// Threads that share windows of time.
    #[serde(default, rename = "partition")]
    pub partitions: Vec<Partition>,
    /// Tables of windows; the first one takes effect at the start.
    #[serde(default, rename = "frame")]
    pub frames: Vec<Frame>,
}

/// A warning that is accepted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Accept {
    /// The kind of warning, as messages name it in brackets.
    pub warning: Spanned<Warning>,
    /// The component or thread that it is about; without it, all of the kind are accepted.
    pub of: Option<Text>,
    /// Why this is right here.
    pub reason: Text,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Machine {
    /// Memory: an integer of MiB, or text like `64MiB`.
    pub memory: Option<Spanned<Mebibytes>>,
    /// Number of cores, 1 to 4; 1 by default.
    pub cores: Option<Integer>,
    /// On aarch64, the board whose devices components have: `virt`, the default, or `xlnx-zcu102`.
    pub board: Option<Text>,
}

impl Document {
    /// On aarch64, what the board has that is named, or meant.
    pub fn board(&self) -> &'static Devices {
        let named = self.machine.board.as_ref();
        named
            .and_then(|name| board::devices(name.get_ref()))
            .unwrap_or(board::default_devices())
    }
}

/// When a component is started anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RestartPolicy {
    Never,
    /// After a fault, a panic, an end with a status other than 0, or a silence that its watchdog noticed.
    OnFault,
    /// After any end.
    Always,
}

/// How often it is.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RestartLimit {
    /// Most restarts, 1 to 100.
    pub times: Integer,
    /// In this time; after that it stays stopped.
    pub within: Spanned<Micros>,
}

/// The writer of the log.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Log {
    /// Of the writer.
    pub priority: Option<Integer>,
    /// Of the writer, in every period.
    pub budget: Option<Spanned<Micros>>,
    /// Of the writer.
    pub period: Option<Spanned<Micros>>,
}

/// What is logged: this, and all that is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    /// As the parameter of a component.
    pub fn number(self) -> u64 {
        self as u64 + 1
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Component {
    /// How others refer to it.
    pub name: Text,
    /// A user program; the path of an ELF file, with a `/`; or sources in C. Paths are relative to the description's folder.
    pub executable: Spanned<Executable>,
    /// One of `criticalities`; the lowest by default.
    pub criticality: Option<Text>,
    /// Core that the thread runs on, from 0 on; 0 by default.
    pub core: Option<Integer>,
    /// Priority, 0 to 254; higher runs first.
    pub priority: Integer,
    /// Highest priority that it may give to itself and others; 0 by default.
    pub mcp: Option<Integer>,
    /// A server without time of its own: it runs on its clients' budgets.
    pub passive: Option<Spanned<bool>>,
    /// It signals when it is ready, and the launcher waits for that.
    #[serde(default)]
    pub ready: bool,
    /// Processor time in every period; equal to the period: round robin, without a limit.
    pub budget: Option<Spanned<Micros>>,
    /// In which the budget may be used, up to an hour.
    pub period: Option<Spanned<Micros>>,
    /// By when each job is to end, from its release; at most the period. Traces are checked for it.
    pub deadline: Option<Spanned<Micros>>,
    /// Time between releases of jobs, for checks of traces: the period by default; 0 for jobs that begin at events.
    pub interval: Option<Spanned<Micros>>,
    /// Sporadic server instead of constant bandwidth.
    #[serde(default)]
    pub sporadic: bool,
    /// Replenishments beyond two, 0 to 126: into how many pieces preemptions may split the budget.
    pub extra_refills: Option<Integer>,
    /// What timeout faults on this budget report.
    pub timeout_badge: Option<Integer>,
    /// Component that receives the thread's faults; the launcher by default.
    pub fault_handler: Option<Text>,
    /// Component that receives the thread's timeout faults.
    pub timeout_handler: Option<Text>,
    /// It may print on the console.
    #[serde(default)]
    pub console: bool,
    /// What it says in the log: this, and all that is more urgent; nothing by default.
    pub log: Option<Spanned<LogLevel>>,
    /// When it is started anew; `never` by default.
    pub restart: Option<Spanned<RestartPolicy>>,
    /// How often it is; 3 times within 10 s by default.
    pub restart_limit: Option<Spanned<RestartLimit>>,
    /// Longest time, at least 8 ms, without a sign of life.
    pub watchdog: Option<Spanned<Micros>>,
    /// The system ends when it ends.
    #[serde(default)]
    pub exit: bool,
    /// Numbers and times (which become µs) for the program.
    #[serde(default)]
    pub parameters: BTreeMap<String, Spanned<Number>>,
    /// Threads whose TCB and scheduling context it gets.
    #[serde(default)]
    pub controls: Vec<Text>,
    /// Components whose CNode it gets, with which it may take their capabilities away.
    #[serde(default)]
    pub revokes: Vec<Text>,
    /// Cores whose time it may give out.
    #[serde(default)]
    pub scheduling_control: Vec<Integer>,
    /// Log2 slots of its CNode, 1 to 16; 8 by default.
    pub cspace_bits: Option<Integer>,
    /// Threads that it makes at run time.
    pub spawns: Option<Spanned<Spawns>>,
    /// Further threads, in the same address space.
    #[serde(default, rename = "thread")]
    pub threads: Vec<Thread>,
}

impl Component {
    /// One that nobody described: of `name`, with an executable and a priority, and else as if no other key were
    /// given.
    pub fn added(name: Text, executable: &str, priority: Integer) -> Self {
        let executable = Spanned::new(name.span(), executable.to_owned().into());
        Component {
            name,
            executable,
            criticality: None,
            core: None,
            priority,
            mcp: None,
            passive: None,
            ready: false,
            budget: None,
            period: None,
            deadline: None,
            interval: None,
            sporadic: false,
            extra_refills: None,
            timeout_badge: None,
            fault_handler: None,
            timeout_handler: None,
            console: false,
            log: None,
            restart: None,
            restart_limit: None,
            watchdog: None,
            exit: false,
            parameters: BTreeMap::new(),
            controls: Vec::new(),
            revokes: Vec::new(),
            scheduling_control: Vec::new(),
            cspace_bits: None,
            spawns: None,
            threads: Vec::new(),
        }
    }
}

/// What a component runs.
#[derive(Debug, Clone)]
pub enum Executable {
    /// A user program, a file, or one source in C.
    Name(String),
    Sources(Sources),
}

impl From<String> for Executable {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

/// A program in C.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Sources {
    /// Paths of the sources.
    pub c: Vec<Text>,
    /// Folders of headers.
    #[serde(default)]
    pub include: Vec<Text>,
    /// For the compiler.
    #[serde(default)]
    pub flags: Vec<Text>,
}

impl<'de> Deserialize<'de> for Executable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kinds;

        impl<'de> Visitor<'de> for Kinds {
            type Value = Executable;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text in quotes, or `{ c = [\"SOURCE.c\"] }`")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Executable, E> {
                Ok(Executable::Name(name.to_owned()))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, keys: A) -> Result<Executable, A::Error> {
                Sources::deserialize(MapAccessDeserializer::new(keys)).map(Executable::Sources)
            }
        }

        deserializer.deserialize_any(Kinds)
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Thread {
    /// Its name within the component.
    pub name: Text,
    /// Core that the thread runs on, from 0 on; 0 by default.
    pub core: Option<Integer>,
    /// Priority, 0 to 254; higher runs first.
    pub priority: Integer,
    /// Highest priority that it may give to itself and others; 0 by default.
    pub mcp: Option<Integer>,
    /// A server without time of its own: it runs on its clients' budgets.
    pub passive: Option<Spanned<bool>>,
    /// It signals when it is ready, and the launcher waits for that.
    #[serde(default)]
    pub ready: bool,
    /// Processor time in every period; equal to the period: round robin, without a limit.
    pub budget: Option<Spanned<Micros>>,
    /// In which the budget may be used, up to an hour.
    pub period: Option<Spanned<Micros>>,
    /// By when each job is to end, from its release; at most the period. Traces are checked for it.
    pub deadline: Option<Spanned<Micros>>,
    /// Time between releases of jobs, for checks of traces: the period by default; 0 for jobs that begin at events.
    pub interval: Option<Spanned<Micros>>,
    /// Sporadic server instead of constant bandwidth.
    #[serde(default)]
    pub sporadic: bool,
    /// Replenishments beyond two, 0 to 126: into how many pieces preemptions may split the budget.
    pub extra_refills: Option<Integer>,
    /// What timeout faults on this budget report.
    pub timeout_badge: Option<Integer>,
    /// Component that receives the thread's faults; the launcher by default.
    pub fault_handler: Option<Text>,
    /// Component that receives the thread's timeout faults.
    pub timeout_handler: Option<Text>,
    /// Size of its stack; 16 KiB by default.
    pub stack: Option<Spanned<Bytes>>,
}

impl Thread {
    /// As [`Component::added`].
    pub fn added(name: Text, priority: Integer) -> Self {
        Thread {
            name,
            core: None,
            priority,
            mcp: None,
            passive: None,
            ready: false,
            budget: None,
            period: None,
            deadline: None,
            interval: None,
            sporadic: false,
            extra_refills: None,
            timeout_badge: None,
            fault_handler: None,
            timeout_handler: None,
            stack: None,
        }
    }
}

/// Threads that a component makes at run time.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Spawns {
    /// How many at a time, at most 64.
    pub threads: Integer,
    /// Size of the stack of each; 16 KiB by default.
    pub stack: Option<Spanned<Bytes>>,
    /// Their priority, above the component's; one above by default.
    pub priority: Option<Integer>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Notification {
    /// Under which it is found.
    pub name: Text,
    /// The component that waits.
    pub waiter: Text,
    /// The components that signal.
    #[serde(default)]
    pub signallers: Vec<Signaller>,
    /// Under which the waiter finds it, of one that a policy brings.
    #[serde(skip)]
    pub alias: Option<Text>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Signaller {
    /// The component that signals; with `at`, a component or thread.
    pub component: Text,
    /// Is ORed into what the waiter gets; 0 by default.
    pub badge: Option<Integer>,
    /// Under which the component finds it; by default the notification's name.
    #[serde(rename = "as")]
    pub alias: Option<Text>,
    /// It does not signal by itself.
    pub at: Option<Spanned<At>>,
}

/// When the launcher signals for a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// When its component has ended, or a fault has stopped it that the launcher hears of.
    End,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Memory {
    /// Under which it is found.
    pub name: Text,
    /// Size, in whole pages of 4 KiB.
    pub size: Spanned<Bytes>,
    /// Of a device's registers, their physical address.
    pub physical: Option<Integer>,
    /// Who sees it.
    pub maps: Vec<Map>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Map {
    /// Who sees it.
    pub component: Text,
    /// `read` by default.
    #[serde(default)]
    pub rights: MapRights,
    /// Virtual address; without it, the launcher chooses one.
    pub address: Option<Integer>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MapRights {
    #[default]
    Read,
    ReadWrite,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Interrupt {
    /// Under which its handler is found.
    pub name: Text,
    /// Who gets it.
    pub component: Text,
    /// Pin of the I/O APIC, 0 to 23; on aarch64, number in the GIC, 0 to 159, or to 187 on `xlnx-zcu102`.
    pub pin: Integer,
    /// `edge` by default.
    #[serde(default)]
    pub trigger: Trigger,
    /// `high` by default.
    #[serde(default)]
    pub polarity: Polarity,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    #[default]
    Edge,
    Level,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Polarity {
    #[default]
    High,
    Low,
}

/// The machine's timer: the HPET of PCs, and on aarch64 the physical timer of the first core.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TimerDevice {
    /// Who gets it.
    pub component: Text,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ports {
    /// Under which they are found.
    pub name: Text,
    /// Who gets them.
    pub component: Text,
    /// The first port.
    pub first: Integer,
    /// The last port, included.
    pub last: Integer,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Output {
    /// Under which it is found.
    pub name: Text,
    /// Who writes to it.
    pub component: Text,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    /// Under which it is found.
    pub name: Text,
    /// Path, relative to the description's folder.
    pub path: Text,
    /// Who sees it, read-only.
    pub components: Vec<Text>,
}

/// Timers of the timer service that one capability stands for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Timer {
    /// Under which the component finds it.
    pub name: Text,
    /// Who uses it.
    pub component: Text,
    /// The shortest period, and the mean time between expiries.
    pub every: Spanned<Micros>,
    /// How many may expire at once; 1 by default.
    pub burst: Option<Integer>,
    /// How many timers there are; 1 by default.
    pub count: Option<Integer>,
    /// What is signalled; without it, one of its own.
    pub notification: Option<Text>,
    /// With which it is signalled.
    pub badge: Option<Integer>,
}

/// Who looks at the threads of the system.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Monitor {
    /// The component.
    pub component: Text,
    /// Components, and threads as `COMPONENT/THREAD`; by default all.
    pub threads: Option<Vec<Text>>,
}
