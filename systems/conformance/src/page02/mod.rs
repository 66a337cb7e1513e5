//! Page 02: capabilities, CSpace, derivation.

mod boot_lists;
mod cancellation;
mod cnode_operations;
mod deletion_ipc;
mod deletion_objects;
mod derivation;
mod lookup;
mod made_at_objects;
mod nested_deletion;
mod object_types;
mod receive_slots;
mod reply;
mod revocation;
mod rights;
pub mod support;
mod transfer;
mod update_derive;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    object_types::CHECKS,
    rights::CHECKS,
    lookup::CHECKS,
    made_at_objects::CHECKS,
    nested_deletion::CHECKS,
    derivation::CHECKS,
    boot_lists::CHECKS,
    cnode_operations::CHECKS,
    update_derive::CHECKS,
    deletion_ipc::CHECKS,
    deletion_objects::CHECKS,
    revocation::CHECKS,
    cancellation::CHECKS,
    transfer::CHECKS,
    receive_slots::CHECKS,
    reply::CHECKS,
];
