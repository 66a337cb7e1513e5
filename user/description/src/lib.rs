//! What a described system consists of, as its builder on the host hands it to its launcher.
//!
//! The builder has checked everything and replaced all names by numbers; names remain where
//! components look things up by them, and for messages. [`archive`] is the form in which this
//! travels, together with the executables and files; [`policy`] has what policies are told.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod archive;
pub mod monitor;
pub mod policy;

use alloc::string::String;
use alloc::vec::Vec;

use sandglass_abi::object::TCB_BITS;
use serde::{Deserialize, Serialize};

pub use archive::Blob;

/// Name under which every component finds the endpoint that its end is told to.
pub const LAUNCHER: &str = "launcher";
/// Bytes of memory for what a component logs; the launcher's build asserts that the runtime agrees.
pub const LOG_BYTES: u64 = 4 << 12;
/// Name of the parameter of a component that logs: the least urgent level that it says, from 1 for errors to 5.
pub const LOG_LEVEL: &str = "log.level";
/// Name of the capability that a component that logs signals.
pub const LOG_SIGNAL: &str = "log";

/// Name under which a component, and the writer of the log, find the memory for what `component` logs.
pub fn log_memory(component: &str) -> String {
    alloc::format!("log.{component}")
}

/// Prints and ends of the launcher itself: the first serial port, and QEMU's exit port.
pub const LAUNCHER_PORTS: [(u16, u16); 2] = [(0x3f8, 0x3ff), (0xf4, 0xf4)];
/// Ports of the second serial port, through which bulk output leaves.
pub const OUTPUT_PORTS: (u16, u16) = (0x2f8, 0x2ff);
/// On aarch64, the page with the registers of the port through which bulk output leaves, and its bytes: a serial port behind
/// the PCI bridge of QEMU's machine `virt`, where the launcher has it answer.
pub const OUTPUT_REGISTERS: (u64, u64) = (0x3eff_1000, 0x1000);

/// A system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct System {
    pub name: String,
    /// What the machine's device tree must be called, since components have devices that only this board has there; `None`: any
    /// machine will do.
    pub board: Option<String>,
    /// Priority at which the launcher reports faults and ends, once everything is started.
    pub launcher_priority: u8,
    /// Number of endpoints; each has a reply object of the same index.
    pub endpoints: u32,
    /// Number of notifications.
    pub notifications: u32,
    pub memory: Vec<Memory>,
    /// Memory for the records of an execution trace, on a kernel with traces; `None` if the system is
    /// not traced.
    pub trace: Option<Trace>,
    /// How components log; `None`: none of them does.
    pub log: Option<Log>,
    /// What the launcher tells a monitor; `None` if there is none.
    pub status: Option<Status>,
    /// In the order in which they start.
    pub components: Vec<Component>,
}

/// The writer of the log, and how the launcher uses it; see [`policy::log`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// Index of the component that writes, in [`System::components`].
    pub writer: u32,
    /// Index of the memory with the launcher's own lines.
    pub memory: u32,
    /// Index of the notification that wakes the writer.
    pub wake: u32,
    /// Index of the notification that the writer signals.
    pub done: u32,
}

/// What the launcher writes for a monitor ([`monitor::status`]).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Index in [`System::memory`].
    pub memory: u32,
    /// Of each object that threads can wait for: its component, and which of that one's grants it is.
    pub known: Vec<(u32, u32)>,
}

/// How a system is traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Memory for the records of each core, in frames of 2 MiB.
    pub frames_per_core: u32,
}

/// Memory that is mapped into components.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub name: String,
    pub source: MemorySource,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MemorySource {
    /// Fresh memory, zeroed; bytes, a multiple of the page size.
    New { bytes: u64 },
    /// Registers of a device; physical address and bytes, both multiples of the page size.
    Device { physical: u64, bytes: u64 },
    /// A part of the archive.
    File(Blob),
}

impl MemorySource {
    /// Bytes that it shows.
    pub const fn bytes(&self) -> u64 {
        match self {
            Self::New { bytes } | Self::Device { bytes, .. } => *bytes,
            Self::File(blob) => blob.len,
        }
    }
}

/// A program in its own address space and CSpace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    pub name: String,
    /// An ELF executable.
    pub executable: Blob,
    /// Log2 slots of its CNode.
    pub cspace_bits: u32,
    /// The first is the main thread, which starts at the executable's entry. The main thread of a
    /// component with others signals when it is ready.
    pub threads: Vec<Thread>,
    /// It may print on the console.
    pub console: bool,
    /// Its end is the system's.
    pub exit: bool,
    pub grants: Vec<Grant>,
    pub maps: Vec<Map>,
    pub parameters: Vec<Parameter>,
    /// `None`: it makes no threads at run time.
    pub spawning: Option<Spawning>,
    /// What happens when it fails; `None`: it stays as it is.
    pub restart: Option<Restart>,
    /// It counts as failed when it is not heard of for longer.
    pub watchdog: Option<Watchdog>,
}

/// When a component is started anew, with nothing of its state left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// Also when it has ended with status 0.
    pub always: bool,
    /// Most restarts within [`Self::within_us`]; with the next failure it stays stopped.
    pub times: u32,
    pub within_us: u64,
}

impl Restart {
    /// Most restarts that can be counted.
    pub const MOST_TIMES: u32 = 100;
    /// Bytes that a restart needs beside the component's: the thread that does it.
    pub const BYTES: u64 = 48 << 10;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watchdog {
    /// Longest time between two signs of life, µs.
    pub period_us: u64,
    /// Index of the memory in which it gives them.
    pub memory: u32,
}

impl Watchdog {
    /// Shortest period, µs.
    pub const SHORTEST_US: u64 = 8_000;
    /// Name under which the component finds the memory.
    pub const NAME: &'static str = "watchdog";

    /// How often one looks at the components that have the shortest of these periods, µs.
    pub fn look_us(periods_us: impl Iterator<Item = u64>) -> Option<u64> {
        periods_us.min().map(|shortest| shortest / 8)
    }
}

/// Most restarts and threads that say when they are ready, of components that can be restarted, in a system: each has a
/// bit of a badge.
pub const MOST_RESTART_SIGNALS: usize = 60;

/// Threads that a component may make at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spawning {
    /// At a time.
    pub threads: u32,
    /// Of each, a multiple of the page size.
    pub stack_bytes: u64,
    pub priority: u8,
}

impl Spawning {
    /// What a component finds beside memory, slots and addresses: capabilities.
    pub const CAPABILITIES: [&'static str; 4] = [
        "spawning.cspace",
        "spawning.vspace",
        "spawning.tcb",
        "spawning.faults",
    ];
    /// Numbers.
    pub const PARAMETERS: [&'static str; 5] = [
        "spawning.threads",
        "spawning.stack",
        "spawning.priority",
        "spawning.slot",
        "spawning.address",
    ];

    /// Slots of the component's CNode that each thread takes; the launcher's build asserts that the
    /// runtime agrees.
    pub const fn slots_per_thread(&self) -> u64 {
        // Its memory, its TCB, the pages of its stack and of its IPC buffer.
        3 + self.stack_bytes / archive::PAGE as u64
    }

    /// Log2 bytes of memory that each thread takes; as above.
    pub const fn bits_per_thread(&self) -> u32 {
        let bytes = self.stack_bytes + archive::PAGE as u64 + (1 << TCB_BITS);
        bytes.next_power_of_two().ilog2()
    }

    /// Bytes for all threads.
    pub const fn bytes(&self) -> u64 {
        (self.threads as u64) << self.bits_per_thread()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// The component's for a main thread, else its own within the component.
    pub name: String,
    pub priority: u8,
    /// Maximum controlled priority.
    pub mcp: u8,
    /// What it runs on; if it is passive, only until it is ready.
    pub time: Time,
    pub passive: bool,
    /// By when a job of it is to end, µs after its release.
    pub deadline_us: Option<u64>,
    /// Index of the notification that it signals when it is ready. A passive thread has one.
    pub ready: Option<u32>,
    /// Who handles its faults; `None`: the launcher.
    pub fault_handler: Option<Handler>,
    pub timeout_handler: Option<Handler>,
    /// What the launcher signals when the thread's component has ended, or when it hears that a fault has stopped the
    /// thread.
    pub end_signals: Vec<Signal>,
    /// Bytes, a multiple of the page size; 0 for a main thread, whose program has its own.
    pub stack_bytes: u64,
}

/// Content of a scheduling context (ABI 03, section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Time {
    pub core: u32,
    pub budget_us: u64,
    pub period_us: u64,
    pub sporadic: bool,
    pub extra_refills: u64,
    /// What a timeout fault reports.
    pub badge: u64,
}

/// Where faults or timeouts go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handler {
    /// Index of the endpoint.
    pub endpoint: u32,
    pub badge: u64,
}

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// Index of the notification.
    pub notification: u32,
    pub badge: u64,
}

/// A capability that a component finds under a name, or, if it has none, in the slot behind that of the grant before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// Empty: none.
    pub name: String,
    pub object: Object,
    /// Rights word (ABI 02, section 3).
    pub rights: u64,
    /// Of endpoints and notifications; 0: none.
    pub badge: u64,
    /// Of an endpoint: nothing but calls goes through it.
    pub calls_only: bool,
}

impl Grant {
    /// Whether there is an entry of the environment for it.
    pub const fn is_named(&self) -> bool {
        !self.name.is_empty()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Object {
    Endpoint(u32),
    /// The reply object of an endpoint.
    Reply(u32),
    Notification(u32),
    Tcb(ThreadId),
    /// The scheduling context of a thread; of a passive one, what it started on.
    SchedContext(ThreadId),
    /// Authority over the time of a core.
    SchedControl(u32),
    /// The CNode of a component, by its index: whoever has it can take its capabilities away.
    CNode(u32),
    /// I/O ports, both inclusive.
    Ports {
        first: u16,
        last: u16,
    },
    Interrupt(Interrupt),
}

/// An input of the first IOAPIC, on aarch64 of the GIC, and what it signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interrupt {
    pub pin: u8,
    pub level_triggered: bool,
    pub active_low: bool,
    /// 0 to 107, unique (ABI 03, section 7.2); of x86_64.
    pub vector: u8,
    /// Index of the notification.
    pub notification: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ThreadId {
    /// Index in [`System::components`].
    pub component: u32,
    /// Index in [`Component::threads`].
    pub thread: u32,
}

/// Memory as a component sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Map {
    /// Index in [`System::memory`].
    pub memory: u32,
    pub writable: bool,
    /// Virtual address; `None`: where there is room.
    pub address: Option<u64>,
}

/// A number that a component finds under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    pub name: String,
    pub value: u64,
}

/// What an environment holds; the launcher's build asserts that the runtime agrees.
pub mod limits {
    /// Named things of a component.
    pub const ENVIRONMENT_ENTRIES: usize = 254;
    /// Longest name, bytes.
    pub const NAME_BYTES: usize = 40;
}
