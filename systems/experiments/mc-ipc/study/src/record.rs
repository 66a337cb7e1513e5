//! What clients record in the emulator, and how it leaves the machine: words of 64 bits, the least significant byte first.
//!
//! A client's log is memory that it alone writes: [`ASKED`], [`ANSWERED`], and [`Request`]s from [`LOG_HEADER`] on, as many as
//! were answered. The record is [`BEGIN`], the ticks of a µs, and the number of phases; of each phase, when it began, in ticks; the
//! number of clients; of each client, its log up to the last request; and [`END`].

/// Words of a digest, and of what the server answers: time, sequence number and signature (`systems/components/signatures`).
pub const DIGEST_WORDS: usize = 4;
pub const SIGNED_WORDS: usize = 34;

/// The places of a log's numbers: requests that were begun, and those that were answered.
pub const ASKED: usize = 0;
pub const ANSWERED: usize = 1;
/// Words before the first request.
pub const LOG_HEADER: usize = 2;

pub const BEGIN: u64 = u64::from_le_bytes(*b"keyserve");
pub const END: u64 = u64::from_le_bytes(*b"that was");

/// A request that was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// When it was made, and when it was answered, in ticks.
    pub called: u64,
    pub answered: u64,
    /// What was to be signed.
    pub digest: [u64; DIGEST_WORDS],
    /// The answer.
    pub signed: [u64; SIGNED_WORDS],
}

impl Request {
    /// Words of a request.
    pub const WORDS: usize = 2 + DIGEST_WORDS + SIGNED_WORDS;

    pub fn to_words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        [words[0], words[1]] = [self.called, self.answered];
        let (digest, signed) = words[2..].split_at_mut(DIGEST_WORDS);
        digest.copy_from_slice(&self.digest);
        signed.copy_from_slice(&self.signed);
        words
    }

    pub fn from_words(words: &[u64; Self::WORDS]) -> Self {
        let [called, answered, ref rest @ ..] = *words;
        let mut request = Self {
            called,
            answered,
            digest: [0; DIGEST_WORDS],
            signed: [0; SIGNED_WORDS],
        };
        let (digest, signed) = rest.split_at(DIGEST_WORDS);
        request.digest.copy_from_slice(digest);
        request.signed.copy_from_slice(signed);
        request
    }
}

/// Bytes of a log with room for so many requests.
pub const fn log_bytes(requests: usize) -> usize {
    (LOG_HEADER + requests * Request::WORDS) * size_of::<u64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let words: [u64; Request::WORDS] = core::array::from_fn(|place| place as u64);
        let request = Request::from_words(&words);
        assert_eq!((request.called, request.answered), (0, 1));
        assert_eq!((request.digest[0], request.signed[0]), (2, 6));
        assert_eq!(request.to_words(), words);
    }
}
