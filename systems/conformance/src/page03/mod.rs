//! Page 03: object invocations.

pub mod asids;
pub mod common;
mod domain;
mod errors;
mod irq_handler;
pub mod levels;
pub mod pages;
pub mod raw;
mod retype_arguments;
mod retype_memory;
mod retype_objects;
mod sched_context;
mod sched_control;
pub mod stale;
pub mod tables;
mod tcb_registers;
mod tcb_running;
mod tcb_scheduling;
mod tcb_space;
mod tcb_space_effects;

use crate::harness::Check;

/// The checks of this page, file by file.
pub const CHECKS: &[&[Check]] = &[
    errors::CHECKS,
    retype_arguments::CHECKS,
    retype_memory::CHECKS,
    retype_objects::CHECKS,
    tcb_registers::CHECKS,
    tcb_space::CHECKS,
    tcb_space_effects::CHECKS,
    tcb_scheduling::CHECKS,
    tcb_running::CHECKS,
    sched_control::CHECKS,
    sched_context::CHECKS,
    domain::CHECKS,
    irq_handler::CHECKS,
];
