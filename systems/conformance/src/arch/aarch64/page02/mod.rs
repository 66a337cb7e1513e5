//! Page 02: what aarch64 adds.

mod signals;

use crate::page02::support::Kind;
use crate::prelude::*;

/// The checks, file by file.
pub const CHECKS: &[&[Check]] = &[signals::CHECKS];

/// One label of each kind that, sent without words and capabilities, is truncated (ABI page 03).
pub const TRUNCATED: &[(u64, Kind)] = &[(label::IRQ_CONTROL_GET, Kind::IrqControl)];
/// The same of the root of an address space.
pub const ROOT_LABEL: Option<u64> = Some(arch_label::VSPACE_CLEAN_DATA);

/// Kinds of paging structures, from the root down.
pub const TABLES: [Kind; 3] = [Kind::PageTable; 3];
/// Kind of what [`conformance_kit::arch::made`] makes.
pub const MADE: Kind = Kind::SgiSignal;

/// Types of objects (ABI 02, section 1): number, size argument, kind, size as log2 bytes; but for that of 1 GiB.
pub const TYPES: &[(u64, u64, Kind, u32)] = &[
    (8, 0, Kind::Pml4, 12),
    (9, 0, Kind::Frame, 12),
    (10, 0, Kind::Frame, 21),
    (11, 0, Kind::PageTable, 12),
];
/// The type of a frame of 1 GiB.
pub const HUGE_FRAME: u64 = 7;
