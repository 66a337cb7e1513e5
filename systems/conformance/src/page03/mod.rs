//! Page 03: object invocations.

mod asid;
mod common;
mod domain;
mod errors;
#[cfg(target_arch = "x86_64")]
mod io_ports;
#[cfg(target_arch = "x86_64")]
mod irq_control;
mod irq_handler;
#[cfg(target_arch = "x86_64")]
mod irq_lines;
mod pages;
pub mod paging;
mod raw;
mod retype_arguments;
mod retype_memory;
mod retype_objects;
mod sched_context;
mod sched_control;
pub mod stale;
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
    #[cfg(target_arch = "x86_64")]
    irq_control::CHECKS,
    irq_handler::CHECKS,
    #[cfg(target_arch = "x86_64")]
    irq_lines::CHECKS,
    paging::CHECKS,
    pages::CHECKS,
    asid::CHECKS,
    #[cfg(target_arch = "x86_64")]
    io_ports::CHECKS,
];
