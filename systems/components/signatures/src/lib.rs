//! What a key server does with a client's data: it takes the time, gives it a sequence number, and signs all of that, so that
//! the data cannot be changed or replayed (Brandenburg, *A Synchronous IPC Protocol for Predictable Access to Shared Resources
//! in Mixed-Criticality Systems*, section VI). Only the server has the private key.
//!
//! The signature is RSA's with 2048 bits, PKCS #1 v1.5 with SHA-256 (RFC 8017, 8.2). Clients send the digest of their
//! data ([`digest`]), not the data: a request has the same length whatever is signed.
//!
//! # Constant work
//!
//! A server's longest operation is what its clients' budgets depend on, so a signature should always take as long. It does:
//! the arithmetic takes the same steps for all secrets and messages of a length. `systems/signature-tests` measures the same
//! number of instructions for every signature, 18.7 million; but for some fifty of the heap's allocator, if others ask it for
//! memory in between.
//!
//! # No blinding
//!
//! Blinding multiplies what is signed by a random number, so that whoever can time the server, or measure its power, cannot
//! relate that to what was signed. It is off. First, it needs random numbers that nobody can guess, and a machine need not have
//! a source of them: a generator with a seed from the image would be blinding that the reader of the image removes. Second,
//! its steps depend on the random number: a number that is too large is thrown away, and another one drawn. Third, PKCS #1 v1.5
//! signs a digest that no client chooses alone, because the server adds time and number; and the arithmetic is in constant
//! time. A system with a source of randomness whose attackers measure power should sign with blinding (`rsa` takes a generator
//! for each signature), and account for a longer operation.
//!
//! Each signature is verified before it is given away, by `rsa`: one made from a wrong intermediate result, because of a
//! fault of the hardware, would tell the private key.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod known;
mod message;
mod signer;
mod test_key;

pub use message::{digest, Signed, Statement, Words, DIGEST_WORDS, SIGNED_WORDS};
pub use signer::{Failed, Key, Signer};

/// Bytes of a signature: as many as the key has.
pub const SIGNATURE_BYTES: usize = 256;
/// Bytes of a digest: SHA-256.
pub const DIGEST_BYTES: usize = 32;
