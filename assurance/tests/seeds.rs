//! Single seeds of the lock step, each a test: what mutants are judged by, a seed at a time.

use sandglass_assurance::campaign;

/// A test for each seed.
macro_rules! seeds {
    ($($name:ident: $seed:literal,)*) => {
        $(
            #[test]
            fn $name() {
                if let Err(failure) = campaign::check($seed) {
                    panic!("{failure}");
                }
            }
        )*
    };
}

seeds! {
    seed_1001: 1001,
    seed_1002: 1002,
    seed_1003: 1003,
    seed_1004: 1004,
    seed_1005: 1005,
    seed_1006: 1006,
    seed_1007: 1007,
    seed_1008: 1008,
    seed_1009: 1009,
    seed_1010: 1010,
    seed_1011: 1011,
    seed_1012: 1012,
    seed_1013: 1013,
    seed_1014: 1014,
    seed_1015: 1015,
    seed_1016: 1016,
    seed_1038: 1038,
    seed_1041: 1041,
    seed_1052: 1052,
    seed_1093: 1093,
}
