//! What a thread does, by its registers and by what the launcher tells.
//!
//! The ABI does not tell whether a thread is blocked. Its registers do: at a system call they say which one and on which
//! capability; when something arrives, a badge takes the place of that. Code that has the number of a system
//! call in rdx by chance is taken for one, and a badge that equals the capability for none.

use core::fmt;

use sandglass::arch::order;
use sandglass::context::UserContext;
use sandglass_abi::syscall::Syscall;
use sandglass_description::monitor::{status, Known};

/// What the launcher knows of a thread: words of the [`status`].
pub type Told = [u64; status::THREAD_WORDS];

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing<'a> {
    NotStarted,
    Ended {
        status: u64,
    },
    /// Stopped by a fault that reached the launcher.
    Faulted {
        label: u64,
        ip: u64,
        number: u64,
    },
    Calls(&'a Known),
    Sends(&'a Known),
    Receives(&'a Known),
    /// Until its next period.
    Yields,
    /// It could run, and does if it has time and nobody more urgent does.
    Runs,
}

impl<'a> Doing<'a> {
    /// What the launcher knows decides; else the registers, in which `find` recognises capabilities.
    pub fn of(told: Told, context: &UserContext, find: impl Fn(u64) -> Option<&'a Known>) -> Self {
        match told {
            [status::NOT_STARTED, ..] => Self::NotStarted,
            [status::ENDED, status, ..] => Self::Ended { status },
            [status::FAULTED, label, ip, number] => Self::Faulted { label, ip, number },
            _ => Self::by_registers(context, find),
        }
    }

    fn by_registers(context: &UserContext, find: impl Fn(u64) -> Option<&'a Known>) -> Self {
        let named = find(context.get(order::CAP));
        let doing = match Syscall::from_raw(context.get(order::CALL)) {
            Some(Syscall::Call) => named.map(Self::Calls),
            Some(Syscall::Send) => named.map(Self::Sends),
            Some(
                Syscall::ReplyRecv
                | Syscall::Recv
                | Syscall::Wait
                | Syscall::NBSendRecv
                | Syscall::NBSendWait,
            ) => named.map(Self::Receives),
            Some(Syscall::Yield) => Some(Self::Yields),
            _ => None,
        };
        doing.unwrap_or(Self::Runs)
    }

    /// One word for a column.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::NotStarted => "new",
            Self::Ended { .. } => "ended",
            Self::Faulted { .. } => "fault",
            Self::Calls(_) | Self::Sends(_) | Self::Receives(_) => "waits",
            Self::Yields => "sleeps",
            Self::Runs => "runs",
        }
    }
}

impl fmt::Display for Doing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("has not been started"),
            Self::Ended { status } => write!(f, "ended with status {status}"),
            Self::Faulted { label, ip, number } => {
                let what = match label {
                    1 => "sent to no capability",
                    2 => "made no system call",
                    3 => "raised the exception",
                    5 => "ran out of budget after us",
                    _ => "accessed no memory at",
                };
                write!(f, "{what} {number:#x}, at instruction {ip:#x}")
            }
            Self::Calls(known) => match &known.server {
                Some(server) => write!(f, "for the answer of {server} ({})", known.name),
                None => write!(f, "for an answer at {}", known.name),
            },
            Self::Sends(known) => write!(f, "to send to {}", known.name),
            Self::Receives(known) => match &known.server {
                Some(_) => write!(f, "for requests at {}", known.name),
                None => write!(f, "for {}", known.name),
            },
            Self::Yields => f.write_str("until its next period"),
            Self::Runs => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(server: Option<&str>) -> Known {
        Known {
            component: 0,
            grant: 0,
            name: "door".into(),
            server: server.map(Into::into),
        }
    }

    fn at(call: Syscall, cap: u64) -> UserContext {
        let mut context = UserContext::default();
        context.set(order::CALL, call.raw());
        context.set(order::CAP, cap);
        context
    }

    const STARTED: Told = [status::STARTED, 0, 0, 0];

    #[test]
    fn a_thread_at_a_system_call_waits_until_something_has_arrived() {
        let door = known(Some("porter"));
        let find = |cap| (cap == 7).then_some(&door);
        let doing = |call, cap| Doing::of(STARTED, &at(call, cap), find);
        assert_eq!(doing(Syscall::Call, 7), Doing::Calls(&door));
        // An answer has no badge.
        assert_eq!(doing(Syscall::Call, 0), Doing::Runs);
        assert_eq!(doing(Syscall::ReplyRecv, 7), Doing::Receives(&door));
        // A badge.
        assert_eq!(doing(Syscall::ReplyRecv, 1), Doing::Runs);
        assert_eq!(doing(Syscall::Wait, 7), Doing::Receives(&door));
        assert_eq!(doing(Syscall::Yield, 0), Doing::Yields);
        // These never wait.
        assert_eq!(doing(Syscall::NBSend, 7), Doing::Runs);
        assert_eq!(doing(Syscall::NBRecv, 7), Doing::Runs);
        assert_eq!(
            Doing::of(STARTED, &UserContext::default(), find),
            Doing::Runs
        );
        let answer = doing(Syscall::Call, 7).to_string();
        assert_eq!(answer, "for the answer of porter (door)");
    }

    #[test]
    fn the_launcher_knows_better() {
        let context = at(Syscall::Wait, 7);
        let none = |_| None;
        let told = |told| Doing::of(told, &context, none);
        assert_eq!(told([status::NOT_STARTED, 0, 0, 0]), Doing::NotStarted);
        assert_eq!(told([status::ENDED, 3, 0, 0]), Doing::Ended { status: 3 });
        let fault = told([status::FAULTED, 6, 0x40_1000, 0x10]);
        assert_eq!(fault.word(), "fault");
        assert_eq!(
            fault.to_string(),
            "accessed no memory at 0x10, at instruction 0x401000"
        );
    }
}
