//! The parameters of arrangements, their values, and how they are written:
//! `OPERATION NAME=VALUE ...`, on one line; what is not named has its first value.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::order;

/// A measured operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    CancelBadgedSends,
    DeleteSenders,
    DeleteReceivers,
    DeleteNotification,
    /// Memory with a hundred endpoints.
    RevokeEndpoints,
    /// Memory with objects of all kinds.
    RevokeMixture,
    /// With one thread of many in a queue.
    Queued,
    Retype,
}

/// All of them.
pub const OPERATIONS: &[Operation] = &[
    Operation::CancelBadgedSends,
    Operation::DeleteSenders,
    Operation::DeleteReceivers,
    Operation::DeleteNotification,
    Operation::RevokeEndpoints,
    Operation::RevokeMixture,
    Operation::Queued,
    Operation::Retype,
];

impl Operation {
    /// How it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CancelBadgedSends => "cancel-badged-sends",
            Self::DeleteSenders => "endpoint-delete-senders",
            Self::DeleteReceivers => "endpoint-delete-receivers",
            Self::DeleteNotification => "notification-delete",
            Self::RevokeEndpoints => "revoke-100-endpoints",
            Self::RevokeMixture => "revoke-mixture",
            Self::Queued => "queued",
            Self::Retype => "retype",
        }
    }

    /// Whether its first parameter makes several operations of it, each with a row of its own.
    pub const fn has_kinds(self) -> bool {
        matches!(self, Self::Queued | Self::Retype)
    }

    /// Its parameters.
    pub const fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::CancelBadgedSends => CANCEL,
            Self::DeleteSenders | Self::DeleteReceivers => ENDPOINT,
            Self::DeleteNotification => NOTIFICATION,
            Self::RevokeEndpoints => ENDPOINTS,
            Self::RevokeMixture => MIXTURE,
            Self::Queued => QUEUED,
            Self::Retype => RETYPE,
        }
    }

    /// Whether its cost may depend on how many threads there are.
    pub const fn has_size(self) -> bool {
        !matches!(self, Self::Retype)
    }
}

/// A parameter, and the values that it has.
#[derive(Debug)]
pub struct Parameter {
    pub name: &'static str,
    pub values: &'static [&'static str],
}

const fn parameter(name: &'static str, values: &'static [&'static str]) -> Parameter {
    Parameter { name, values }
}

/// In which order threads that wait follow each other.
const PRIORITIES: Parameter = parameter("priorities", order::NAMES);
/// How many different priorities they have.
const DISTINCT: Parameter = parameter("distinct", &["2", "8", "32", "100", "200"]);
/// In what state their budgets are.
const BUDGETS: Parameter = parameter(
    "budgets",
    &["full", "sporadic", "fragmented", "none", "by-turns"],
);
/// In which order budgets that are used up come back.
const RELEASES: Parameter = parameter("releases", order::NAMES);
/// Which of many scattered orders.
const SEED: Parameter = parameter(
    "seed",
    &["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"],
);
/// Levels of the capability space in which the operation is called.
const LEVELS: Parameter = parameter("levels", &["8", "1", "32", "64"]);
/// How much time the thread has that calls the operation.
const CALLER: Parameter = parameter("caller", &["rich", "poor"]);
/// Whether threads that go on are above the one that calls the operation.
const RANK: Parameter = parameter("rank", &["below", "above"]);

/// What the threads wait with: senders call, receivers offer a reply object.
const MANNER: Parameter = parameter("manner", &["plain", "reply"]);
/// Endpoints that nobody uses in the same memory.
const BEFORE: Parameter = parameter("before", &["0", "1", "2", "3", "4", "5", "6", "7"]);

const CANCEL: &[Parameter] = &[
    PRIORITIES,
    DISTINCT,
    BUDGETS,
    SEED,
    LEVELS,
    CALLER,
    RANK,
    MANNER,
    // Which senders have the badge that is cancelled.
    parameter("badges", &["all", "half", "third"]),
];

const ENDPOINT: &[Parameter] = &[
    PRIORITIES, DISTINCT, BUDGETS, SEED, LEVELS, CALLER, RANK, MANNER,
];

const NOTIFICATION: &[Parameter] = &[PRIORITIES, DISTINCT, BUDGETS, SEED, LEVELS, CALLER, RANK];

const ENDPOINTS: &[Parameter] = &[
    PRIORITIES, DISTINCT, BUDGETS, SEED, LEVELS, CALLER, RANK, MANNER, BEFORE,
];

/// What is done with one of many threads in a queue: the rows of the table.
const ROWS: Parameter = parameter(
    "row",
    &[
        "endpoint-insert-sender",
        "endpoint-reprioritise-sender",
        "endpoint-parameters-sender",
        "endpoint-remove-sender",
        "endpoint-insert-receiver",
        "endpoint-reprioritise-receiver",
        "endpoint-parameters-receiver",
        "endpoint-remove-receiver",
        "notification-insert",
        "notification-reprioritise",
        "notification-parameters",
        "notification-remove",
        "release-insert",
        "release-reprioritise",
        "release-configure",
        "release-unbind",
        "release-remove",
    ],
);

const QUEUED: &[Parameter] = &[
    ROWS,
    PRIORITIES,
    DISTINCT,
    RELEASES,
    SEED,
    LEVELS,
    RANK,
    MANNER,
    // Which thread it is done with, in percent of those that were queued before it.
    parameter(
        "hit",
        &[
            "0", "10", "25", "33", "40", "50", "60", "66", "75", "90", "99",
        ],
    ),
    // The place that it gets, in percent of all places.
    parameter(
        "to",
        &[
            "0", "10", "25", "33", "40", "50", "60", "66", "75", "90", "100",
        ],
    ),
];

/// Kinds of objects in a mixture.
const KINDS: &[&str] = &[
    "endpoint",
    "notification",
    "reply",
    "reply-offered",
    "context",
    "context-used-up",
    "thread",
    "thread-without-time",
    "frame",
    "cnode",
];

const MIXTURE: &[Parameter] = &[
    PRIORITIES,
    DISTINCT,
    BUDGETS,
    RELEASES,
    SEED,
    LEVELS,
    CALLER,
    RANK,
    // What the first, the second, ... of each four objects is.
    parameter("a", KINDS),
    parameter("b", KINDS),
    parameter("c", KINDS),
    parameter("d", KINDS),
    BEFORE,
];

const RETYPE: &[Parameter] = &[
    parameter(
        "type",
        &[
            "untyped",
            "tcb",
            "endpoint",
            "notification",
            "reply",
            "cnode",
            "sched-context",
            "page",
            "page-table",
            "page-directory",
            "pdpt",
            "pml4",
        ],
    ),
    LEVELS,
    CALLER,
    parameter("count", &["256", "255", "100", "8", "7", "1"]),
    // log2 of the bytes of objects that come in several sizes.
    parameter("bits", &["12", "7", "8", "10", "13"]),
    // Bytes of the memory that were in use.
    parameter(
        "used",
        &[
            "0", "16", "256", "272", "512", "1024", "1040", "1536", "1792", "1808", "2048", "4096",
            "65536",
        ],
    ),
    // Whether the memory has an object already, so that it is not reset.
    parameter("children", &["no", "yes"]),
    // Where among the slots of its CNode the first new one is.
    parameter("first", &["0", "1", "255", "256"]),
];

/// An operation, and a value for each of its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Arrangement {
    operation: usize,
    /// For each parameter the number of its value.
    chosen: Vec<u8>,
}

impl Arrangement {
    /// All parameters have their first values.
    pub fn plain(operation: Operation) -> Self {
        let operation = OPERATIONS.iter().position(|&known| known == operation);
        let operation = operation.unwrap_or(0);
        let count = OPERATIONS[operation].parameters().len();
        Self {
            operation,
            chosen: vec![0; count],
        }
    }

    pub fn operation(&self) -> Operation {
        OPERATIONS[self.operation]
    }

    /// The value of parameter `name`; empty, if the operation has no such parameter.
    pub fn value(&self, name: &str) -> &'static str {
        let parameters = self.operation().parameters();
        let at = parameters.iter().position(|known| known.name == name);
        at.map_or("", |at| parameters[at].values[usize::from(self.chosen[at])])
    }

    /// The name of the operation, as the table has it.
    pub fn row(&self) -> String {
        match self.operation() {
            Operation::Retype => format!("retype-{}", self.value("type")),
            Operation::Queued => self.value("row").to_owned(),
            operation => operation.name().to_owned(),
        }
    }

    /// The value of parameter `name`, a number; 0, if the operation has no such parameter.
    pub fn number(&self, name: &str) -> u64 {
        self.value(name).parse().unwrap_or(0)
    }

    /// The same, with value `number` of parameter number `at`: modulo what there is.
    #[must_use]
    pub fn with(&self, at: usize, number: usize) -> Self {
        let parameters = self.operation().parameters();
        let at = at % parameters.len();
        let mut changed = self.clone();
        changed.chosen[at] = (number % parameters[at].values.len()) as u8;
        changed
    }

    /// The same, with `value` of parameter `name`; `None`, if there is no such.
    #[must_use]
    pub fn with_named(&self, name: &str, value: &str) -> Option<Self> {
        let parameters = self.operation().parameters();
        let at = parameters.iter().position(|known| known.name == name)?;
        let number = parameters[at]
            .values
            .iter()
            .position(|&known| known == value)?;
        Some(self.with(at, number))
    }

    /// Reads a line.
    ///
    /// # Errors
    /// The word of it that is not known.
    pub fn parse(line: &str) -> Result<Self, &str> {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or("");
        let operation = OPERATIONS.iter().find(|known| known.name() == name);
        let mut read = Self::plain(*operation.ok_or(name)?);
        for word in words {
            let (name, value) = word.split_once('=').ok_or(word)?;
            read = read.with_named(name, value).ok_or(word)?;
        }
        Ok(read)
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation().name())?;
        for (parameter, &number) in self.operation().parameters().iter().zip(&self.chosen) {
            if number != 0 {
                let value = parameter.values[usize::from(number)];
                write!(f, " {}={value}", parameter.name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn what_is_written_is_read() {
        for &operation in OPERATIONS {
            let mut arrangement = Arrangement::plain(operation);
            for at in 0..operation.parameters().len() {
                arrangement = arrangement.with(at, at + 1);
            }
            assert_eq!(
                Arrangement::parse(&arrangement.to_string()),
                Ok(arrangement)
            );
        }
    }

    #[test]
    fn what_is_not_known_is_refused() {
        assert_eq!(Arrangement::parse("delete-all"), Err("delete-all"));
        let line = "retype type=tcb count=1000";
        assert_eq!(Arrangement::parse(line), Err("count=1000"));
    }

    #[test]
    fn the_known_arrangements_are_read() {
        let known = crate::known(crate::FEW).unwrap();
        for &operation in OPERATIONS {
            assert!(known.iter().any(|known| known.operation() == operation));
        }
    }
}
