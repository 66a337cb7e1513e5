//! The server's side: the key, and the sequence of what it signs.

use core::fmt;

use crypto_bigint::BoxedUint;
use rsa::traits::PublicKeyParts;
use rsa::PrivateKey;
use sha2::Sha256;

use crate::message::{Signed, Statement};
use crate::test_key::{EXPONENT, P, PRIME_BITS, Q};
use crate::{DIGEST_BYTES, SIGNATURE_BYTES};

/// What could not be done, because the key is not one or the machine computed wrongly. Nothing was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The primes are none, are too short, or do not go with the exponent.
    Key,
    /// The signature was wrong when it was verified.
    Signature,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key => "the key is none: must be two different primes of 1024 bits that go with the public exponent",
            Self::Signature => "a signature was computed wrongly, and was thrown away",
        })
    }
}

impl core::error::Error for Failed {}

/// A private key of 2048 bits.
#[derive(Debug)]
pub struct Key(PrivateKey);

impl Key {
    /// From its two primes, in hexadecimal, of 256 digits each.
    ///
    /// # Errors
    /// [`Failed::Key`]. That both are prime is not looked at.
    pub fn of_primes(p: &str, q: &str, exponent: u64) -> Result<Self, Failed> {
        let prime = |text: &str| {
            // Another length would be a panic.
            let fits = text.len() == PRIME_BITS as usize / 4;
            let number = fits.then(|| BoxedUint::from_be_hex(text, PRIME_BITS).into_option());
            number.flatten().ok_or(Failed::Key)
        };
        let key = PrivateKey::from_p_q(prime(p)?, prime(q)?, BoxedUint::from(exponent))
            .map_err(|_| Failed::Key)?;
        if key.size() != SIGNATURE_BYTES {
            return Err(Failed::Key);
        }
        Ok(Self(key))
    }

    /// The TEST KEY, which everybody knows: for demonstrations and measurements.
    ///
    /// # Errors
    /// [`Failed::Key`], if the machine computes wrongly.
    pub fn for_tests() -> Result<Self, Failed> {
        Self::of_primes(P, Q, EXPONENT)
    }

    /// Signs a statement. The memory that it takes meanwhile, it gives back.
    ///
    /// # Errors
    /// [`Failed::Signature`].
    pub fn sign(&self, statement: &Statement) -> Result<[u8; SIGNATURE_BYTES], Failed> {
        self.0
            .pkcs1v15_sign::<Sha256>(&statement.bytes())
            .ok()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(Failed::Signature)
    }
}

/// A key, and how many statements it has signed.
#[derive(Debug)]
pub struct Signer {
    key: Key,
    signed: u64,
}

impl Signer {
    pub const fn new(key: Key) -> Self {
        Self { key, signed: 0 }
    }

    /// Signs that data with this digest was there at `timestamp`, with the next sequence number.
    ///
    /// # Errors
    /// [`Failed::Signature`]. The number is used up all the same, so that it is in no other statement.
    pub fn sign(&mut self, digest: [u8; DIGEST_BYTES], timestamp: u64) -> Result<Signed, Failed> {
        self.signed += 1;
        let statement = Statement {
            digest,
            timestamp,
            sequence: self.signed,
        };
        let signature = self.key.sign(&statement)?;
        Ok(Signed {
            timestamp,
            sequence: statement.sequence,
            signature,
        })
    }
}
