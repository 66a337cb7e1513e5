//! What users and the service say to each other. A request of any other form is refused, and changes nothing.

use sandglass::Message;

use crate::decide::{Armed, Refusal, Timing};

/// Labels of requests.
mod ask {
    pub const ONCE: u64 = 1;
    pub const EVERY: u64 = 2;
    pub const CANCEL: u64 = 3;
    pub const EXPIRIES: u64 = 4;
}

/// Labels of answers. Label 0 is left to those who answer in the service's place.
mod tell {
    pub const SET: u64 = 1;
    pub const PASSED: u64 = 2;
    pub const NUMBER: u64 = 3;
    pub const NO_SUCH_TIMER: u64 = 4;
    pub const TOO_FREQUENT: u64 = 5;
    pub const NO_SUCH_REQUEST: u64 = 6;
}

/// What a user asks for. `timer` is a number within the group of the user's capability; times are ticks of the
/// time-stamp counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Arm { timer: u64, timing: Timing },
    Cancel { timer: u64 },
    Expiries { timer: u64 },
}

impl Request {
    #[inline]
    pub const fn message(self) -> Message {
        match self {
            Self::Arm { timer, timing } => match timing.period {
                None => Message::new(ask::ONCE, [timer, timing.first]),
                Some(period) => Message::new(ask::EVERY, [timer, timing.first, period]),
            },
            Self::Cancel { timer } => Message::new(ask::CANCEL, [timer]),
            Self::Expiries { timer } => Message::new(ask::EXPIRIES, [timer]),
        }
    }

    /// `None`: it is no request. Words that were not sent count as 0.
    #[inline]
    pub fn of(message: Message) -> Option<Self> {
        let [timer, first, period] = [0, 1, 2].map(|index| message.word(index));
        let arm = |period| Self::Arm {
            timer,
            timing: Timing { first, period },
        };
        match message.label() {
            ask::ONCE => Some(arm(None)),
            ask::EVERY => Some(arm(Some(period))),
            ask::CANCEL => Some(Self::Cancel { timer }),
            ask::EXPIRIES => Some(Self::Expiries { timer }),
            _ => None,
        }
    }
}

/// What the service answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Armed(Armed),
    /// How often the timer has expired; whether it was armed (1) or not (0).
    Number(u64),
    Refused(Refusal),
}

impl Answer {
    #[inline]
    pub const fn message(self) -> Message {
        let label = match self {
            Self::Armed(Armed::Set) => tell::SET,
            Self::Armed(Armed::Passed) => tell::PASSED,
            Self::Number(number) => return Message::new(tell::NUMBER, [number]),
            Self::Refused(Refusal::NoSuchTimer) => tell::NO_SUCH_TIMER,
            Self::Refused(Refusal::TooFrequent) => tell::TOO_FREQUENT,
            Self::Refused(Refusal::NoSuchRequest) => tell::NO_SUCH_REQUEST,
        };
        Message::new(label, [])
    }

    #[inline]
    pub fn of(message: Message) -> Self {
        match message.label() {
            tell::SET => Self::Armed(Armed::Set),
            tell::PASSED => Self::Armed(Armed::Passed),
            tell::NUMBER => Self::Number(message.word(0)),
            tell::NO_SUCH_TIMER => Self::Refused(Refusal::NoSuchTimer),
            tell::TOO_FREQUENT => Self::Refused(Refusal::TooFrequent),
            _ => Self::Refused(Refusal::NoSuchRequest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let timings = [None, Some(0), Some(u64::MAX)].map(|period| Timing { first: 7, period });
        let arms = timings.map(|timing| Request::Arm { timer: 3, timing });
        let others = [Request::Cancel { timer: 1 }, Request::Expiries { timer: 2 }];
        for request in arms.into_iter().chain(others) {
            assert_eq!(Request::of(request.message()), Some(request));
        }
        let refusals = [
            Refusal::NoSuchTimer,
            Refusal::TooFrequent,
            Refusal::NoSuchRequest,
        ];
        let refused = refusals.map(Answer::Refused);
        let others = [
            Answer::Armed(Armed::Set),
            Answer::Armed(Armed::Passed),
            Answer::Number(9),
        ];
        for answer in refused.into_iter().chain(others) {
            assert_eq!(Answer::of(answer.message()), answer);
        }
    }

    #[test]
    fn anything_else_is_no_request() {
        for label in [0, 5, u64::MAX >> 12] {
            assert_eq!(Request::of(Message::new(label, [1, 2, 3, 4])), None);
        }
    }
}
