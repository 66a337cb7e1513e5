//! Hands libFuzzer's inputs to one target, which the environment names.

#![no_main]

use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use sandglass_fuzz_targets::{find, Target};

/// Environment variable with the target's name.
const VARIABLE: &str = "SANDGLASS_FUZZ_TARGET";

fn target() -> &'static Target {
    static TARGET: OnceLock<Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var(VARIABLE).unwrap_or_default();
        find(&name).unwrap_or_else(|| panic!("{VARIABLE} is `{name}`, which is no target"))
    })
}

fuzz_target!(|input: &[u8]| (target().run)(input));
