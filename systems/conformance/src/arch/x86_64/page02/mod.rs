//! Page 02: what x86_64 adds.

mod ports;

use crate::page02::support::Kind;
use crate::prelude::*;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[ports::CHECKS];

/// One label of each kind that, sent without words and capabilities, is truncated (ABI page 03).
pub const TRUNCATED: &[(u64, Kind)] = &[
    (arch_label::PDPT_MAP, Kind::Pdpt),
    (arch_label::PAGE_DIRECTORY_MAP, Kind::PageDirectory),
    (arch_label::IO_PORT_CONTROL_ISSUE, Kind::IoPortControl),
    (arch_label::IO_PORT_IN8, Kind::IoPort),
    (arch_label::IRQ_CONTROL_GET_IOAPIC, Kind::IrqControl),
];
/// The same of the root of an address space, which understands none.
pub const ROOT_LABEL: Option<u64> = None;

/// Kinds of paging structures, from the root down.
pub const TABLES: [Kind; 3] = [Kind::Pdpt, Kind::PageDirectory, Kind::PageTable];
/// Kind of what [`conformance_kit::arch::made`] makes.
pub const MADE: Kind = Kind::IoPort;

/// Types of objects (ABI 02, section 1): number, size argument, kind, size as log2 bytes; but for that of 1 GiB.
pub const TYPES: &[(u64, u64, Kind, u32)] = &[
    (7, 0, Kind::Pdpt, 12),
    (8, 0, Kind::Pml4, 12),
    (10, 0, Kind::Frame, 12),
    (11, 0, Kind::Frame, 21),
    (12, 0, Kind::PageTable, 12),
    (13, 0, Kind::PageDirectory, 12),
];
/// The type of a frame of 1 GiB.
pub const HUGE_FRAME: u64 = 9;
