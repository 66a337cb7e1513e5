//! A client of a gate, as a component of a described system; or a thread that asks through such a client, its courier.

use core::fmt;

use sandglass::cap::{Endpoint, Notification};
use sandglass::server::FAILED;
use sandglass::{Environment, Message};
use sandglass_description::policy::mc_ipc::names;

use crate::driver::{Control, BUSY, DONE, FAULTED, GONE, MALFORMED, WORDS};
use crate::mail::{self, Mail};

/// A gate that this component may call.
#[derive(Clone, Copy, Debug)]
pub struct Gate {
    endpoint: Endpoint,
}

/// Why a request was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A request of this client is in the gate already.
    Busy,
    /// It has more than [`WORDS`] words.
    TooLong,
    /// The operation has failed, and the gate goes on. Nobody knows how much of the request was carried out.
    Faulted,
    /// Whoever controls this component has told the gate that it is gone. The request was withdrawn, and is carried out only if
    /// it had begun to be.
    Withdrawn,
    /// The gate has failed. Nobody knows whether the request was carried out.
    Failed,
    /// By whoever answered in the gate's place: the kernel, with the number of its error, if the capability is gone.
    Unknown { label: u64 },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => {
                f.write_str("a request of this client is in the gate: must be one at a time")
            }
            Self::TooLong => write!(
                f,
                "the request is too long: must have at most {WORDS} words"
            ),
            Self::Faulted => {
                f.write_str("the operation has failed, and may have been carried out in part")
            }
            Self::Withdrawn => f.write_str(
                "whoever controls this component has told the gate that it is gone: the request was withdrawn",
            ),
            Self::Failed => {
                f.write_str("the gate has failed, and may have carried the request out")
            }
            Self::Unknown { label } => {
                write!(f, "an answer with the label {label}, which no gate gives")
            }
        }
    }
}

impl core::error::Error for Refusal {}

impl Gate {
    /// The gate of the resource `name`, or of what the description calls so for this client.
    ///
    /// # Panics
    /// There is none of that name.
    pub fn described(env: &Environment, name: &str) -> Self {
        Self {
            endpoint: env.capability(name),
        }
    }

    /// The gate behind `endpoint`, which a client of it has handed on: whoever calls by that is this client for the gate.
    pub const fn of(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    /// Makes a request of at most [`WORDS`] words, waits until it is carried out, and copies the words of the answer that fit
    /// to `answer`. Returns how many those are. `label` is the operation's to interpret.
    ///
    /// # Errors
    /// It was refused, or the gate is gone.
    pub fn call(self, label: u64, request: &[u64], answer: &mut [u64]) -> Result<usize, Refusal> {
        if request.len() > WORDS {
            return Err(Refusal::TooLong);
        }
        let answered = self.endpoint.call(Message::long(label, request));
        outcome(answered.label())?;
        Ok(answered.copy_words(answer))
    }
}

/// What the label of an answer means.
const fn outcome(label: u64) -> Result<(), Refusal> {
    match label {
        DONE => Ok(()),
        BUSY => Err(Refusal::Busy),
        MALFORMED => Err(Refusal::TooLong),
        FAULTED => Err(Refusal::Faulted),
        GONE => Err(Refusal::Withdrawn),
        FAILED => Err(Refusal::Failed),
        label => Err(Refusal::Unknown { label }),
    }
}

/// The courier that asks at a gate for this component. Nothing here waits: the component's time is not its own, and passes while
/// a request is carried out.
#[derive(Debug)]
pub struct Courier {
    post: Notification,
    mail: mail::Sender<'static>,
}

impl Courier {
    /// That at the gate of the resource `name`. A component has at most one of these at a time: a second one would take
    /// the first one's answers.
    ///
    /// # Panics
    /// No client of the resource asks on behalf of this component.
    pub fn described(env: &Environment, name: &str) -> Self {
        Self {
            post: env.capability(&names::post(name)),
            mail: mail::Sender::new(Mail::described(env, name, env.name())),
        }
    }

    /// Leaves a request of at most [`WORDS`] words for the courier. `label` is the operation's to interpret.
    ///
    /// # Errors
    /// [`Refusal::Busy`]: the last one is not carried out. [`Refusal::TooLong`].
    pub fn post(&mut self, label: u64, request: &[u64]) -> Result<(), Refusal> {
        if request.len() > WORDS {
            return Err(Refusal::TooLong);
        }
        if !self.mail.post(label, request) {
            return Err(Refusal::Busy);
        }
        self.post.signal();
        Ok(())
    }

    /// The answer to the last request, once: the words that fit are copied to `answer`, and their number is returned. `None` as
    /// long as there is none.
    ///
    /// # Errors
    /// The gate refused the request, or is gone.
    pub fn take(&mut self, answer: &mut [u64]) -> Option<Result<usize, Refusal>> {
        let (label, count) = self.mail.take(answer)?;
        Some(outcome(label).map(|()| count))
    }
}

/// The slots of this component, if it is table-driven.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    begins: Notification,
}

impl Slots {
    /// Those that the resource `name` gives.
    ///
    /// # Panics
    /// It gives none.
    pub fn described(env: &Environment, name: &str) -> Self {
        let begins = env.capability(&names::own_slot(name));
        Self { begins }
    }

    /// Waits until the next slot begins. One that has begun since the last one was waited for counts.
    pub fn next(self) {
        self.begins.wait();
    }
}

/// A client of a gate, for whoever controls it (`controls` of a description).
#[derive(Clone, Copy, Debug)]
pub struct Supervised {
    endpoint: Endpoint,
}

impl Supervised {
    /// The component `client`, as a client of the resource `gate`.
    ///
    /// # Panics
    /// This component does not control it, or it is no client of that.
    pub fn described(env: &Environment, client: &str, gate: &str) -> Self {
        Self {
            endpoint: env.capability(&names::supervised(client, gate)),
        }
    }

    /// Tells the gate that the client is gone. A request that waits is not served any more, and its context is the client's
    /// again; one in service is finished. To be called after the client was stopped: one that runs just asks again. And by
    /// who takes a client's context away while its request is in the gate, and binds it to the client again: nobody tells the
    /// gate of that, so it might wait for the client's spinner to run.
    ///
    /// # Errors
    /// The gate is gone.
    pub fn withdraw(self) -> Result<(), Refusal> {
        let withdraw = Message::new(Control::Withdraw.label(), []);
        match self.endpoint.call(withdraw).label() {
            DONE => Ok(()),
            FAILED => Err(Refusal::Failed),
            label => Err(Refusal::Unknown { label }),
        }
    }
}

#[cfg(test)]
mod tests {
    use sandglass::abi::error::ErrorNumber;

    use super::*;

    #[test]
    fn what_the_kernel_answers_is_not_taken_for_an_answer_of_the_gate() {
        let refusals = [BUSY, MALFORMED, FAULTED, GONE, FAILED].map(outcome);
        for (number, refusal) in refusals.iter().enumerate() {
            assert!(!refusals[..number].contains(refusal), "{refusal:?}");
        }
        let errors =
            (1..=u64::from(u8::MAX)).filter(|label| ErrorNumber::from_raw(*label).is_some());
        for label in errors {
            assert_eq!(outcome(label), Err(Refusal::Unknown { label }));
        }
    }
}
