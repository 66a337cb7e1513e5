//! The cases, by the kind of the invoked object.

pub mod cnodes;
pub mod devices;
pub mod kinds;
pub mod memory;
pub mod spaces;
pub mod threads;
pub mod time;

use alloc::vec::Vec;

use crate::case::Case;
use crate::scene::Scene;

/// At least one for each check, but for those of a system without identifiers ([`spaces::without_identifiers`]).
pub fn of_checks(s: &Scene) -> Vec<Case> {
    [
        memory::cases(s),
        cnodes::cases(s),
        threads::cases(s),
        time::cases(s),
        devices::cases(s),
        spaces::cases(s),
    ]
    .concat()
}
