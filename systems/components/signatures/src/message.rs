//! What is signed, and how it is written in messages.

use sha2::{Digest, Sha256};

use crate::{DIGEST_BYTES, SIGNATURE_BYTES};

/// Bytes of a word of a message.
const WORD: usize = 8;
/// Words of a request: the digest of what is to be signed.
pub const DIGEST_WORDS: usize = DIGEST_BYTES / WORD;
/// Words of an answer: timestamp, sequence number, signature.
pub const SIGNED_WORDS: usize = 2 + SIGNATURE_BYTES / WORD;

/// The digest of `data` that a client sends.
pub fn digest(data: &[u8]) -> [u8; DIGEST_BYTES] {
    Sha256::digest(data).into()
}

/// What the server says of a client's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Of the data.
    pub digest: [u8; DIGEST_BYTES],
    /// When it was signed, in the unit of the server's clock.
    pub timestamp: u64,
    /// From 1; no two statements of one server have the same.
    pub sequence: u64,
}

impl Statement {
    /// Bytes of [`Self::bytes`].
    pub const BYTES: usize = DIGEST_BYTES + 2 * WORD;

    /// What is signed: digest, timestamp and sequence number, numbers with the most significant byte first.
    pub fn bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let (digest, numbers) = bytes.split_at_mut(DIGEST_BYTES);
        digest.copy_from_slice(&self.digest);
        let (timestamp, sequence) = numbers.split_at_mut(WORD);
        timestamp.copy_from_slice(&self.timestamp.to_be_bytes());
        sequence.copy_from_slice(&self.sequence.to_be_bytes());
        bytes
    }
}

/// What the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signed {
    pub timestamp: u64,
    pub sequence: u64,
    /// Of [`Statement::bytes`], most significant byte first.
    pub signature: [u8; SIGNATURE_BYTES],
}

impl Signed {
    /// What was signed, of the data with this digest.
    pub const fn statement(&self, digest: [u8; DIGEST_BYTES]) -> Statement {
        Statement {
            digest,
            timestamp: self.timestamp,
            sequence: self.sequence,
        }
    }
}

/// What is sent as the words of a message.
pub trait Words<const N: usize>: Sized {
    fn to_words(&self) -> [u64; N];

    /// `None`: there are more words, or fewer.
    fn from_words(words: &[u64]) -> Option<Self>;
}

impl Words<DIGEST_WORDS> for [u8; DIGEST_BYTES] {
    fn to_words(&self) -> [u64; DIGEST_WORDS] {
        words(self)
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        let words: &[u64; DIGEST_WORDS] = words.try_into().ok()?;
        Some(bytes(words))
    }
}

impl Words<SIGNED_WORDS> for Signed {
    fn to_words(&self) -> [u64; SIGNED_WORDS] {
        let mut all = [0; SIGNED_WORDS];
        all[0] = self.timestamp;
        all[1] = self.sequence;
        let signature: [u64; SIGNED_WORDS - 2] = words(&self.signature);
        all[2..].copy_from_slice(&signature);
        all
    }

    fn from_words(words: &[u64]) -> Option<Self> {
        let &[timestamp, sequence, ref signature @ ..] = words else {
            return None;
        };
        let signature: &[u64; SIGNED_WORDS - 2] = signature.try_into().ok()?;
        Some(Self {
            timestamp,
            sequence,
            signature: bytes(signature),
        })
    }
}

/// Bytes as words, the first byte the least significant: as they are in the memory of this machine.
fn words<const N: usize>(bytes: &[u8]) -> [u64; N] {
    let mut words = [0; N];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(WORD)) {
        let mut of_word = [0; WORD];
        of_word.copy_from_slice(chunk);
        *word = u64::from_le_bytes(of_word);
    }
    words
}

fn bytes<const N: usize>(words: &[u64]) -> [u8; N] {
    let mut bytes = [0; N];
    for (chunk, word) in bytes.chunks_exact_mut(WORD).zip(words) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}
