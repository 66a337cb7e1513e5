//! A signature by the TEST KEY that is known, for tests on the machine: there is no other implementation there.

use crate::message::{digest, Statement};

/// What is signed.
pub fn known() -> Statement {
    Statement {
        digest: digest(b"a sample"),
        timestamp: 5,
        sequence: 1,
    }
}

/// The first eight bytes of its signature, most significant first. A test of the host compares them with what `openssl`
/// signs.
pub const KNOWN_BEGIN: u64 = 0x799d_e800_3e0e_1b3c;
