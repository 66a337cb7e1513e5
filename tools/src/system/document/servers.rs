//! Where components call each other: endpoints and resources.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::{I64Deserializer, StrDeserializer, U64Deserializer};
use serde::de::{self, IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer};

use super::super::quantity::Micros;
use super::super::spanned::Spanned;
use super::{Integer, Text};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Endpoint {
    /// Under which server and clients find it.
    pub name: Text,
    /// The component that receives.
    pub server: Option<Text>,
    /// The components that may call.
    #[serde(default)]
    pub clients: Vec<Client>,
}

/// An endpoint that is shared by a protocol.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Resource {
    /// Under which server and clients find it.
    pub name: Text,
    /// How requests are ordered, and at which priority they are served.
    pub protocol: Spanned<SharingProtocol>,
    /// The component that receives.
    pub server: Option<Text>,
    /// The components that may call.
    #[serde(default)]
    pub clients: Vec<Client>,
    /// Behind a gate: the longest operation, by criticality.
    pub length: Option<Spanned<PerLevel<Micros>>>,
    /// Behind a gate: the most cores that requests come from, by criticality; those of its clients by default.
    pub clusters: Option<Spanned<PerLevel<i64>>>,
    /// Behind a gate: after which the slots of table-driven clients repeat.
    pub cycle: Option<Spanned<Micros>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
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
    McIpc,
    Fifo,
    Priority,
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Client {
    /// The client.
    pub component: Text,
    /// By which the server knows it; 0 by default.
    pub badge: Option<Integer>,
    /// What it may do.
    #[serde(default)]
    pub rights: ClientRights,
    /// Under which the client finds it; by default the endpoint's name.
    #[serde(rename = "as")]
    pub alias: Option<Text>,
    /// That a request takes at most.
    pub longest: Option<Spanned<Micros>>,
    /// Of a gate: requests of a job that its budget is for; 1 by default.
    pub requests: Option<Integer>,
    /// Of a gate: when it has budget; `sporadic` by default.
    pub kind: Option<Spanned<ClientKind>>,
    /// Of a gate, if it is table-driven: in order of time.
    pub slots: Option<Spanned<Vec<Slot>>>,
    /// Of a gate: components whose time is scheduled by others, for which this one asks as their courier.
    pub on_behalf_of: Option<Spanned<Vec<Text>>>,
}

impl Client {
    /// One that nobody described, and that may call.
    pub fn added(component: Text) -> Self {
        Self {
            component,
            badge: None,
            rights: ClientRights::Call,
            alias: None,
            longest: None,
            requests: None,
            kind: None,
            slots: None,
            on_behalf_of: None,
        }
    }
}

/// What a client may do with an endpoint.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
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

/// A value, or one for each level of criticality.
#[derive(Debug, Clone)]
pub enum PerLevel<T> {
    Same(T),
    /// By name of the level.
    Levels(BTreeMap<String, Spanned<T>>),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for PerLevel<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Kinds<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Kinds<T> {
            type Value = PerLevel<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value, or one for each criticality: `{ low = ..., high = ... }`")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<PerLevel<T>, E> {
                let value: I64Deserializer<E> = value.into_deserializer();
                T::deserialize(value).map(PerLevel::Same)
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<PerLevel<T>, E> {
                let value: U64Deserializer<E> = value.into_deserializer();
                T::deserialize(value).map(PerLevel::Same)
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<PerLevel<T>, E> {
                let value: StrDeserializer<'_, E> = value.into_deserializer();
                T::deserialize(value).map(PerLevel::Same)
            }

            fn visit_map<A: de::MapAccess<'de>>(
                self,
                mut keys: A,
            ) -> Result<PerLevel<T>, A::Error> {
                let mut levels = BTreeMap::new();
                while let Some((level, value)) = keys.next_entry()? {
                    levels.insert(level, value);
                }
                Ok(PerLevel::Levels(levels))
            }
        }

        deserializer.deserialize_any(Kinds(PhantomData))
    }
}

/// When a client of a gate has budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClientKind {
    /// Its budget in each of its periods.
    #[default]
    Sporadic,
    /// In slots of a table.
    TableDriven,
    /// Never: it runs when nobody else does.
    BestEffort,
}

/// When a client has the processor, in each cycle.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Slot {
    /// From the beginning of the cycle.
    pub at: Spanned<Micros>,
    /// How long it lasts.
    pub length: Spanned<Micros>,
}
