//! The messages between a client and the server. Both fit in registers.

use crate::cipher::BLOCK_BYTES;

/// The label of every request.
pub const ENCRYPT: u64 = 1;

/// "Encrypt bytes `from` to `from + len` of my buffer." Which client asks is the badge's to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the client, and returned: an answer with another ticket speaks of another
    /// request.
    pub ticket: u64,
    /// Number of the lap, which chooses the initialisation vector.
    pub lap: u64,
    /// Offset in the lap and in the buffers, bytes; a multiple of [`BLOCK_BYTES`].
    pub from: u64,
    /// Bytes.
    pub len: u64,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not [`ENCRYPT`].
    UnknownLabel,
    /// The badge belongs to no client with buffers.
    UnknownClient,
    /// Beyond the end of the buffers, or not at the start of a block.
    Range,
}

impl Request {
    pub const fn words(self) -> [u64; 4] {
        [self.ticket, self.lap, self.from, self.len]
    }

    pub const fn from_words([ticket, lap, from, len]: [u64; 4]) -> Self {
        Self {
            ticket,
            lap,
            from,
            len,
        }
    }

    /// Checks the request against the length of the client's buffers, bytes.
    pub const fn check(self, buffer_bytes: u64) -> Result<(), Refusal> {
        match self.from.checked_add(self.len) {
            Some(end) if end <= buffer_bytes && self.from.is_multiple_of(BLOCK_BYTES) => Ok(()),
            _ => Err(Refusal::Range),
        }
    }
}

/// The server's answer, or its timeout handler's in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// All is done.
    Done {
        ticket: u64,
        bytes: u64,
    },
    /// The client's budget ran out. The first `bytes` bytes of the request `ticket` are done; if
    /// that is not the client's request, none are.
    RolledBack {
        ticket: u64,
        bytes: u64,
    },
    Refused(Refusal),
}

impl Answer {
    const DONE: u64 = 1;
    const ROLLED_BACK: u64 = 2;
    const REFUSED: u64 = 3;

    /// Label and words.
    pub const fn encode(self) -> (u64, [u64; 2]) {
        match self {
            Self::Done { ticket, bytes } => (Self::DONE, [ticket, bytes]),
            Self::RolledBack { ticket, bytes } => (Self::ROLLED_BACK, [ticket, bytes]),
            Self::Refused(refusal) => (Self::REFUSED, [refusal as u64, 0]),
        }
    }

    /// `None` for what no server sends.
    pub const fn decode(label: u64, [first, second]: [u64; 2]) -> Option<Self> {
        match label {
            Self::DONE => Some(Self::Done {
                ticket: first,
                bytes: second,
            }),
            Self::ROLLED_BACK => Some(Self::RolledBack {
                ticket: first,
                bytes: second,
            }),
            Self::REFUSED => match first {
                0 => Some(Self::Refused(Refusal::UnknownLabel)),
                1 => Some(Self::Refused(Refusal::UnknownClient)),
                2 => Some(Self::Refused(Refusal::Range)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Bytes of `request` that this answer says are done, never more than it asked for.
    pub const fn progress(self, request: Request) -> u64 {
        match self {
            Self::Done { ticket, bytes } | Self::RolledBack { ticket, bytes }
                if ticket == request.ticket =>
            {
                if bytes < request.len {
                    bytes
                } else {
                    request.len
                }
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: Request = Request {
        ticket: 9,
        lap: 2,
        from: 512,
        len: 1000,
    };

    #[test]
    fn messages_round_trip() {
        assert_eq!(Request::from_words(REQUEST.words()), REQUEST);
        let answers = [
            Answer::Done {
                ticket: 1,
                bytes: 2,
            },
            Answer::RolledBack {
                ticket: 3,
                bytes: 4,
            },
            Answer::Refused(Refusal::UnknownLabel),
            Answer::Refused(Refusal::UnknownClient),
            Answer::Refused(Refusal::Range),
        ];
        for answer in answers {
            let (label, words) = answer.encode();
            assert_eq!(Answer::decode(label, words), Some(answer));
        }
        assert_eq!(Answer::decode(0, [0, 0]), None);
        assert_eq!(Answer::decode(Answer::REFUSED, [3, 0]), None);
    }

    #[test]
    fn requests_beyond_the_buffer_are_refused() {
        assert_eq!(REQUEST.check(1512), Ok(()));
        assert_eq!(REQUEST.check(1511), Err(Refusal::Range));
        let overflowing = Request {
            len: u64::MAX,
            ..REQUEST
        };
        assert_eq!(overflowing.check(u64::MAX), Err(Refusal::Range));
        let inside_a_block = Request {
            from: 513,
            ..REQUEST
        };
        assert_eq!(inside_a_block.check(1 << 20), Err(Refusal::Range));
    }

    #[test]
    fn an_answer_to_another_request_is_no_progress() {
        let answer = |ticket, bytes| Answer::RolledBack { ticket, bytes };
        assert_eq!(answer(9, 512).progress(REQUEST), 512);
        assert_eq!(answer(8, 512).progress(REQUEST), 0);
        assert_eq!(answer(9, 5000).progress(REQUEST), REQUEST.len);
    }
}
