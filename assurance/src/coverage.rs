//! Which operations were done, and how they ended.

use std::collections::BTreeMap;
use std::fmt;

use sandglass_abi::error::ErrorNumber;
use sandglass_abi::message::MessageInfo;
use sandglass_abi::syscall::Syscall;
use sandglass_model::cap::lookup;
use sandglass_model::isa::{MESSAGE_INFO, PC};
use sandglass_model::state::{State, ThreadId, ThreadState};

use crate::operations::{self, Ends, Kind, OPERATIONS};
use crate::script::{Action, Call};

/// How an operation or a system call ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Outcome {
    /// It went on, with success.
    Done,
    /// With this error.
    Error(u8),
    /// The thread waits for somebody.
    Blocked,
    /// The thread faulted.
    Fault,
    /// The thread stopped, was deleted, or is to repeat the call.
    Other,
}

/// Number of times that each operation ended in each way.
#[derive(Clone, Default, Debug)]
pub struct Coverage {
    counts: BTreeMap<(&'static str, Outcome), u64>,
}

/// A system call that is about to be made.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    thread: ThreadId,
    name: &'static str,
    answered: bool,
}

impl Coverage {
    /// What `action` is about to ask for.
    pub fn ask(state: &State, action: &Action) -> Option<Asked> {
        let (Action::Call(call) | Action::Preempted(_, call)) = action else {
            return None;
        };
        let thread = state.core().thread?;
        if let Some(name) = operation(state, thread, call) {
            return Some(Asked {
                thread,
                name,
                answered: true,
            });
        }
        Some(Asked {
            thread,
            name: name(Syscall::from_raw(call.number as u64)),
            answered: false,
        })
    }

    /// Counts how `asked` ended.
    pub fn count(&mut self, asked: Option<Asked>, state: &State) {
        let Some(asked) = asked else { return };
        let outcome = outcome(asked, state);
        *self.counts.entry((asked.name, outcome)).or_default() += 1;
    }

    /// Adds what `other` has counted.
    pub fn add(&mut self, other: &Coverage) {
        for (&key, count) in &other.counts {
            *self.counts.entry(key).or_default() += count;
        }
    }

    fn of(&self, name: &str, wanted: impl Fn(Outcome) -> bool) -> u64 {
        let counts = self.counts.iter();
        counts
            .filter(|((other, outcome), _)| *other == name && wanted(*outcome))
            .map(|(_, count)| count)
            .sum()
    }

    /// Operations that did not end in every way in which they can, with what is missing.
    pub fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for operation in OPERATIONS {
            let done = self.of(operation.name, |outcome| outcome == Outcome::Done);
            let refused = self.of(operation.name, |o| matches!(o, Outcome::Error(_)));
            if done == 0 && operation.ends != Ends::Error {
                missing.push(format!("{} never succeeded", operation.name));
            }
            if refused == 0 && operation.ends != Ends::Success {
                missing.push(format!("{} was never refused", operation.name));
            }
        }
        missing
    }
}

/// The operation that a Call is, if the capability is found and is the kernel's.
fn operation(state: &State, thread: ThreadId, call: &Call) -> Option<&'static str> {
    if call.number != Syscall::Call as i64 {
        return None;
    }
    let slot = lookup::of_syscall(state, thread, call.cap).ok()?;
    let kind = Kind::of(state.caps.slots.get(&slot)?.cap)?;
    let label = MessageInfo::from_raw(call.info).label();
    Some(operations::find(kind, label).map_or("another label", |operation| operation.name))
}

fn name(call: Option<Syscall>) -> &'static str {
    match call {
        Some(Syscall::Call) => "Call",
        Some(Syscall::ReplyRecv) => "ReplyRecv",
        Some(Syscall::NBSendRecv) => "NBSendRecv",
        Some(Syscall::NBSendWait) => "NBSendWait",
        Some(Syscall::Send) => "Send",
        Some(Syscall::NBSend) => "NBSend",
        Some(Syscall::Recv) => "Recv",
        Some(Syscall::NBRecv) => "NBRecv",
        Some(Syscall::Wait) => "Wait",
        Some(Syscall::NBWait) => "NBWait",
        Some(Syscall::Yield) => "Yield",
        Some(Syscall::SetTLSBase) => "SetTLSBase",
        _ => "an unknown system call",
    }
}

fn outcome(asked: Asked, state: &State) -> Outcome {
    let Some(thread) = state.threads.get(&asked.thread) else {
        return Outcome::Other;
    };
    let registers = &thread.registers;
    if thread.fault.is_some() {
        return Outcome::Fault;
    }
    match thread.state {
        ThreadState::Running if registers.next_ip != registers.user[PC] => {
            let label = MessageInfo::from_raw(registers.user[MESSAGE_INFO]).label();
            match ErrorNumber::from_raw(label) {
                Some(error) if asked.answered && error != ErrorNumber::NoError => {
                    Outcome::Error(error as u8)
                }
                _ => Outcome::Done,
            }
        }
        ThreadState::Running | ThreadState::Restart | ThreadState::Inactive => Outcome::Other,
        _ => Outcome::Blocked,
    }
}

/// The errors, in the order of their numbers.
const ERRORS: [&str; 10] = [
    "argument", "cap", "illegal", "range", "align", "lookup", "trunc", "delete", "revoke", "memory",
];

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<28}{:>9}", "operation", "done")?;
        for error in ERRORS {
            write!(f, "{error:>9}")?;
        }
        writeln!(f, "{:>9}{:>9}{:>9}", "blocked", "fault", "other")?;
        let mut names: Vec<&str> = self.counts.keys().map(|(name, _)| *name).collect();
        names.dedup();
        for name in names {
            write!(f, "{name:<28}")?;
            let errors = (1..=10).map(Outcome::Error);
            let columns = std::iter::once(Outcome::Done).chain(errors);
            for outcome in columns.chain([Outcome::Blocked, Outcome::Fault, Outcome::Other]) {
                match self.of(name, |other| other == outcome) {
                    0 => write!(f, "{:>9}", "")?,
                    count => write!(f, "{count:>9}")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
