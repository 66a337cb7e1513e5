//! What can be built, and will probably hurt: the names of the warnings, which a description can accept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of warning.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Warning {
    /// A client's time never runs out, so a server's timeout policy never ends its requests.
    PolicyNeverActs,
    /// A client's time never runs out, so its requests may keep a server from others for ever.
    RoundRobinClient,
    /// An endpoint's server has a lower priority than one of its clients.
    ServerBelowClient,
    /// The budgets on a core add up to more than the core.
    Overload,
    /// A budget of which nothing is left with which the kernel lets a thread in.
    LeastBudget,
    /// No component ends the system.
    NoExit,
    /// Servers call each other in a circle.
    Cycle,
    /// A component is its own client.
    OwnClient,
    /// An accepted warning that there is not.
    UnusedAccept,
}

impl Warning {
    pub const ALL: [Self; 9] = [
        Self::PolicyNeverActs,
        Self::RoundRobinClient,
        Self::ServerBelowClient,
        Self::Overload,
        Self::LeastBudget,
        Self::NoExit,
        Self::Cycle,
        Self::OwnClient,
        Self::UnusedAccept,
    ];

    /// As descriptions and JSON write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PolicyNeverActs => "policy-never-acts",
            Self::RoundRobinClient => "round-robin-client",
            Self::ServerBelowClient => "server-below-client",
            Self::Overload => "overload",
            Self::LeastBudget => "least-budget",
            Self::NoExit => "no-exit",
            Self::Cycle => "cycle",
            Self::OwnClient => "own-client",
            Self::UnusedAccept => "unused-accept",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Warning;

    #[test]
    fn names_are_those_that_descriptions_write() {
        for warning in Warning::ALL {
            let written = serde_json::to_string(&warning).unwrap();
            assert_eq!(written, format!("\"{}\"", warning.name()));
        }
    }
}
