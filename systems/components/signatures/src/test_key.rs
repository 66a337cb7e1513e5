//! A TEST KEY, published with the sources: it protects nothing. `tests/test-key.pem` has it in `openssl`'s form and says how
//! it was made; a test compares both.

/// Bits of a prime.
pub const PRIME_BITS: u32 = 1024;
/// Public exponent.
pub const EXPONENT: u64 = 65_537;

/// Prime, hexadecimal.
pub const P: &str = concat!(
    "f8790b3bae13d13c605d33e496442d91a0ee0023976945f96440071b96e5d26a",
    "0a9da711d4b8e0c8363487460ee24f66f3ce779c3abc7626ca9e226c0704f47e",
    "fe089086fafeb89162fb67ff48b5478dc6ea0a8b20a83214a47bf1291bf1c0b8",
    "b026073047b6efe354e3f3163c79472e388dd29270be8e0dd43693b6d0ef11f9",
);

/// Prime, hexadecimal.
pub const Q: &str = concat!(
    "c87ef8eaee54bef3b3e33006a16155cc24f648eb92edb913207f9d6ba0612782",
    "b27297dcb8ae78056c64deae754e35a203c4566a585cdf5edc0ea1138cf2b340",
    "81ae29945623de2bf3a508ffe5306f2e26ff7186e02a78449c1b14c9259b2f35",
    "2eac3e1f2196b45dcaffd7a01be793d3e2caf29278eba0038497462c4b2afb7b",
);
