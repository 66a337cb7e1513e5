//! The tables of policies: timeouts, modes, EDF.

use sandglass_description::policy::edf;
use schemars::JsonSchema;
use serde::Deserialize;

use super::super::quantity::Micros;
use super::super::spanned::Spanned;
use super::{Integer, Text};

/// What happens when clients' time runs out in a server.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TimeoutPolicy {
    /// The passive server.
    pub server: Text,
    /// The thread that handles its timeouts.
    pub handler: Text,
    /// Whose requests the server serves; by default its only one.
    pub endpoint: Option<Text>,
    /// For clients that are not listed; `rollback` by default.
    #[serde(default)]
    pub default: LastPolicy,
    /// Policies of single clients.
    #[serde(default)]
    pub clients: Vec<ClientPolicy>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ClientPolicy {
    /// The client: a component or thread whose budget is below its period.
    pub component: Text,
    /// What happens when its budget runs out.
    pub policy: Spanned<PolicyName>,
    /// Of `extend`: time that is added to the budget.
    pub by: Option<Spanned<Micros>>,
    /// Of `emergency`: on which the request continues.
    pub budget: Option<Spanned<Micros>>,
    /// How often.
    pub limit: Option<Integer>,
    /// What follows when that was too often; `rollback` by default.
    pub then: Option<Spanned<LastPolicy>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    Rollback,
    Reset,
    Kill,
    Extend,
    Emergency,
}

/// What ends a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LastPolicy {
    #[default]
    Rollback,
    Reset,
    Kill,
}

/// Criticality modes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Modes {
    /// The component that changes the mode.
    pub manager: Text,
    /// Whose budgets and priorities depend on the mode.
    #[serde(default)]
    pub tasks: Vec<ModeTask>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ModeTask {
    /// A thread with time of its own.
    pub component: Text,
    /// By mode, from the lowest.
    pub budgets: Option<Spanned<Vec<Micros>>>,
    /// What happens when the mode is above its criticality; `keep` by default.
    #[serde(default)]
    pub below: BelowPolicy,
    /// When demoted.
    pub priority: Option<Integer>,
}

/// What happens when the mode is above a task's criticality.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BelowPolicy {
    #[default]
    Keep,
    Demote,
    Suspend,
}

/// A user-level EDF scheduler and its tasks.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Edf {
    /// Name of the scheduler.
    pub name: Text,
    /// How jobs end.
    pub mode: Spanned<EdfMode>,
    /// Of the scheduler, above its tasks.
    pub priority: Integer,
    /// Of scheduler and tasks; 0 by default.
    pub core: Option<Integer>,
    /// `hpet`, or `service`: the timer service, by default where others use timers.
    pub timer: Option<Text>,
    /// What becomes of releases that a late job has missed; `catch-up` by default.
    #[serde(default)]
    pub late: Late,
    /// What happens to a task whose budget runs out; `suspend` by default.
    pub overrun: Option<Spanned<Overrun>>,
    /// Whether deadlines must be shown to be met; `deadlines` by default.
    #[serde(default)]
    pub admission: Admission,
    /// Threads and servers whose time is not counted where it cannot be.
    #[serde(default)]
    pub trusted: Vec<Text>,
    /// The tasks.
    pub tasks: Spanned<Vec<EdfTask>>,
}

/// Whether deadlines are checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Admission {
    /// All of them must be met.
    #[default]
    Deadlines,
    /// Nothing is promised.
    None,
}

/// What becomes of releases that a late job has missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// They happen at once, one after the other.
    #[default]
    CatchUp,
    /// They do not happen.
    Skip,
}

impl From<Late> for edf::Late {
    fn from(late: Late) -> Self {
        match late {
            Late::CatchUp => Self::CatchUp,
            Late::Skip => Self::Skip,
        }
    }
}

/// What happens to a task whose budget runs out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Overrun {
    /// It waits for its next release.
    #[default]
    Suspend,
    /// It never runs again.
    Stop,
}

impl From<Overrun> for edf::Overrun {
    fn from(overrun: Overrun) -> Self {
        match overrun {
            Overrun::Suspend => Self::Suspend,
            Overrun::Stop => Self::Stop,
        }
    }
}

/// How a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EdfMode {
    /// By a call of its task.
    Cooperative,
    /// Also when its budget runs out.
    Preemptive,
}

/// Who gives out processor time by temporal capabilities.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TimeManager {
    /// Under which clients find it.
    pub name: Text,
    /// Of its scheduler, 3 to 252; clients have the priority below it while they have a turn.
    pub priority: Integer,
    /// Of a reservation; 1 ms by default.
    pub shortest_period: Option<Spanned<Micros>>,
    /// Who may ask for time.
    pub clients: Spanned<Vec<TimeClient>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TimeClient {
    /// The client; its priority and time are those of best effort.
    pub component: Text,
    /// What it may allocate: a part of the core, `"1/3"` or `"30%"`.
    pub share: Option<Text>,
    /// What it may allocate: what these tasks need.
    pub tasks: Option<Spanned<Vec<TimeTask>>>,
    /// Another client, whose capability it has when it has none.
    pub supplier: Option<Text>,
    /// Most allocations and reservations that it may make; 16 by default.
    pub records: Option<Integer>,
    /// Most capabilities that it may derive, grant and be supplied with; 8 by default.
    pub capabilities: Option<Integer>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TimeTask {
    /// Of each job.
    pub budget: Spanned<Micros>,
    /// Time between releases.
    pub period: Spanned<Micros>,
    /// From the release; the period by default.
    pub deadline: Option<Spanned<Micros>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct EdfTask {
    /// The task.
    pub component: Text,
    /// Time between releases.
    pub period: Spanned<Micros>,
    /// From the release; the period by default.
    pub deadline: Option<Spanned<Micros>>,
    /// From the start to the first release; 0 by default.
    pub offset: Option<Spanned<Micros>>,
    /// Of each job, in preemptive mode.
    pub budget: Option<Spanned<Micros>>,
    /// That a job takes at most, in cooperative mode.
    pub longest: Option<Spanned<Micros>>,
}
