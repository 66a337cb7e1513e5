//! Page 03: what only x86_64 has of it.

mod asid;
mod io_ports;
mod irq_control;
mod irq_lines;
mod labels;
mod pages;
mod paging;

use crate::harness::Check;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[
    asid::CHECKS,
    io_ports::CHECKS,
    irq_control::CHECKS,
    irq_lines::CHECKS,
    labels::CHECKS,
    pages::CHECKS,
    paging::CHECKS,
];
