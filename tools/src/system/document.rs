//! The description as it is written: the keys of `SYSTEM.toml`, each with its place in the file.
//!
//! What a key means stands in the book's reference of system descriptions. Here only the shape is
//! checked (unknown keys, missing keys, kinds of values); the rest is [`super::check`]'s.

use std::collections::BTreeMap;

use crate::system::spanned::Spanned;
use sandglass_description::policy::edf;
use serde::Deserialize;

use super::quantity::{Bytes, Mebibytes, Micros, Number};
use super::warning::Warning;

pub type Text = Spanned<String>;
pub type Integer = Spanned<i64>;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Document {
    pub name: Text,
    #[serde(default)]
    pub machine: Machine,
    pub criticalities: Option<Vec<Text>>,
    pub launcher_priority: Option<Integer>,
    #[serde(default)]
    pub accept: Vec<Accept>,
    #[serde(default, rename = "component")]
    pub components: Vec<Component>,
    #[serde(default, rename = "endpoint")]
    pub endpoints: Vec<Endpoint>,
    #[serde(default, rename = "resource")]
    pub resources: Vec<Resource>,
    #[serde(default, rename = "notification")]
    pub notifications: Vec<Notification>,
    #[serde(default)]
    pub memory: Vec<Memory>,
    #[serde(default, rename = "interrupt")]
    pub interrupts: Vec<Interrupt>,
    #[serde(default)]
    pub ports: Vec<Ports>,
    #[serde(default, rename = "output")]
    pub outputs: Vec<Output>,
    #[serde(default, rename = "file")]
    pub files: Vec<File>,
    #[serde(default, rename = "timeout-policy")]
    pub timeout_policies: Vec<TimeoutPolicy>,
    pub modes: Option<Modes>,
    #[serde(default, rename = "edf")]
    pub edf: Vec<Edf>,
}

/// A warning that is accepted.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Accept {
    pub warning: Spanned<Warning>,
    /// The component or thread that it is about; without it, all of the kind are accepted.
    pub of: Option<Text>,
    pub reason: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Machine {
    /// MiB.
    pub memory: Option<Spanned<Mebibytes>>,
    pub cores: Option<Integer>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Component {
    pub name: Text,
    pub executable: Text,
    pub criticality: Option<Text>,
    pub core: Option<Integer>,
    pub priority: Integer,
    pub mcp: Option<Integer>,
    pub passive: Option<Spanned<bool>>,
    #[serde(default)]
    pub ready: bool,
    pub budget: Option<Spanned<Micros>>,
    pub period: Option<Spanned<Micros>>,
    pub deadline: Option<Spanned<Micros>>,
    pub interval: Option<Spanned<Micros>>,
    #[serde(default)]
    pub sporadic: bool,
    pub extra_refills: Option<Integer>,
    pub timeout_badge: Option<Integer>,
    pub fault_handler: Option<Text>,
    pub timeout_handler: Option<Text>,
    #[serde(default)]
    pub console: bool,
    #[serde(default)]
    pub exit: bool,
    #[serde(default)]
    pub parameters: BTreeMap<String, Spanned<Number>>,
    #[serde(default)]
    pub controls: Vec<Text>,
    #[serde(default)]
    pub scheduling_control: Vec<Integer>,
    pub cspace_bits: Option<Integer>,
    pub spawns: Option<Spanned<Spawns>>,
    #[serde(default, rename = "thread")]
    pub threads: Vec<Thread>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Thread {
    pub name: Text,
    pub core: Option<Integer>,
    pub priority: Integer,
    pub mcp: Option<Integer>,
    pub passive: Option<Spanned<bool>>,
    #[serde(default)]
    pub ready: bool,
    pub budget: Option<Spanned<Micros>>,
    pub period: Option<Spanned<Micros>>,
    pub deadline: Option<Spanned<Micros>>,
    pub interval: Option<Spanned<Micros>>,
    #[serde(default)]
    pub sporadic: bool,
    pub extra_refills: Option<Integer>,
    pub timeout_badge: Option<Integer>,
    pub fault_handler: Option<Text>,
    pub timeout_handler: Option<Text>,
    pub stack: Option<Spanned<Bytes>>,
}

/// Threads that a component makes at run time.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Spawns {
    pub threads: Integer,
    pub stack: Option<Spanned<Bytes>>,
    pub priority: Option<Integer>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Endpoint {
    pub name: Text,
    pub server: Option<Text>,
    #[serde(default)]
    pub clients: Vec<Client>,
}

/// An endpoint that is shared by a protocol.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Resource {
    pub name: Text,
    pub protocol: Spanned<SharingProtocol>,
    pub server: Option<Text>,
    #[serde(default)]
    pub clients: Vec<Client>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SharingProtocol {
    None,
    Ceiling,
    BestEffort,
    Workers,
    StackSpawning,
    Blocking,
    Inheritance,
    OriginalCeiling,
    BandwidthInheritance,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Client {
    pub component: Text,
    pub badge: Option<Integer>,
    #[serde(default)]
    pub rights: ClientRights,
    #[serde(rename = "as")]
    pub alias: Option<Text>,
    /// That a request takes at most.
    pub longest: Option<Spanned<Micros>>,
}

/// What a client may do with an endpoint.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientRights {
    /// Call, and be answered: nothing else.
    #[default]
    Call,
    /// Send only.
    Send,
    /// Call, and send capabilities along.
    Grant,
    /// Let it be the fault or timeout handler of threads. Who has it can also send.
    Handler,
}

impl ClientRights {
    /// Whether the receiver gets nothing but calls.
    pub fn is_call(self) -> bool {
        match self {
            Self::Call | Self::Grant => true,
            Self::Send | Self::Handler => false,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Notification {
    pub name: Text,
    pub waiter: Text,
    #[serde(default)]
    pub signallers: Vec<Signaller>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Signaller {
    pub component: Text,
    pub badge: Option<Integer>,
    #[serde(rename = "as")]
    pub alias: Option<Text>,
    /// It does not signal by itself.
    pub at: Option<Spanned<At>>,
}

/// When the launcher signals for a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// When its component has ended, or a fault has stopped it that the launcher hears of.
    End,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Memory {
    pub name: Text,
    pub size: Spanned<Bytes>,
    pub physical: Option<Integer>,
    pub maps: Vec<Map>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Map {
    pub component: Text,
    #[serde(default)]
    pub rights: MapRights,
    pub address: Option<Integer>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MapRights {
    #[default]
    Read,
    ReadWrite,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Interrupt {
    pub name: Text,
    pub component: Text,
    pub pin: Integer,
    #[serde(default)]
    pub trigger: Trigger,
    #[serde(default)]
    pub polarity: Polarity,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trigger {
    #[default]
    Edge,
    Level,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Polarity {
    #[default]
    High,
    Low,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Ports {
    pub name: Text,
    pub component: Text,
    pub first: Integer,
    pub last: Integer,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Output {
    pub name: Text,
    pub component: Text,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct File {
    pub name: Text,
    pub path: Text,
    pub components: Vec<Text>,
}

/// What happens when clients' time runs out in a server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TimeoutPolicy {
    pub server: Text,
    pub handler: Text,
    pub endpoint: Option<Text>,
    #[serde(default)]
    pub default: LastPolicy,
    #[serde(default)]
    pub clients: Vec<ClientPolicy>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClientPolicy {
    pub component: Text,
    pub policy: Spanned<PolicyName>,
    /// Of an extension.
    pub by: Option<Spanned<Micros>>,
    /// Of an emergency.
    pub budget: Option<Spanned<Micros>>,
    pub limit: Option<Integer>,
    pub then: Option<Spanned<LastPolicy>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    Rollback,
    Reset,
    Kill,
    Extend,
    Emergency,
}

/// What ends a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LastPolicy {
    #[default]
    Rollback,
    Reset,
    Kill,
}

/// Criticality modes.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Modes {
    pub manager: Text,
    #[serde(default)]
    pub tasks: Vec<ModeTask>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModeTask {
    pub component: Text,
    /// By mode, from the lowest.
    pub budgets: Option<Spanned<Vec<Micros>>>,
    #[serde(default)]
    pub below: BelowPolicy,
    /// When demoted.
    pub priority: Option<Integer>,
}

/// What happens when the mode is above a task's criticality.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BelowPolicy {
    #[default]
    Keep,
    Demote,
    Suspend,
}

/// A user-level EDF scheduler and its tasks.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Edf {
    pub name: Text,
    pub mode: Spanned<EdfMode>,
    pub priority: Integer,
    pub core: Option<Integer>,
    pub timer: Option<Text>,
    #[serde(default)]
    pub late: edf::Late,
    pub overrun: Option<Spanned<edf::Overrun>>,
    #[serde(default)]
    pub admission: Admission,
    #[serde(default)]
    pub trusted: Vec<Text>,
    pub tasks: Spanned<Vec<EdfTask>>,
}

/// Whether deadlines are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// All of them must be met.
    #[default]
    Deadlines,
    /// Nothing is promised.
    None,
}

/// How a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EdfMode {
    /// By a call of its task.
    Cooperative,
    /// Also when its budget runs out.
    Preemptive,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EdfTask {
    pub component: Text,
    pub period: Spanned<Micros>,
    pub deadline: Option<Spanned<Micros>>,
    pub offset: Option<Spanned<Micros>>,
    pub budget: Option<Spanned<Micros>>,
    /// That a job takes at most, in cooperative mode.
    pub longest: Option<Spanned<Micros>>,
}
