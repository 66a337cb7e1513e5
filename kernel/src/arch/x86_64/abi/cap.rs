//! The capabilities that x86_64 adds, and what copying and deriving mean for them (02, sections 5 and 6).
//!
//! Second word, by kind:
//!
//! | kind | second word |
//! | --- | --- |
//! | PDPT, page directory, page table | mapping: ASID in bits 0–11, virtual address above; 0 if not mapped |
//! | PML4 | ASID; 0 if it has none |
//! | I/O page table | 0 |
//! | ASID pool | its number |
//! | I/O port | first port in bits 0–15, last in bits 16–31 |

use sandglass_abi::object as sizes;
use sandglass_abi::profile::THIS as PROFILE;

use super::object::ioport::Ports;
use super::Mapping;
use crate::cap::derivation::DeriveError;
use crate::cap::Capability;
use crate::mem::{ControlKind, Kind, Tagged};

/// A PDPT, page directory or page table.
#[derive(Clone, Copy)]
pub struct PagingCap {
    pub word: Tagged,
    pub mapping: Option<Mapping>,
}

impl Capability {
    pub fn io_port(ports: Ports) -> Self {
        Self::control(
            ControlKind::IoPort,
            u64::from(ports.first) | u64::from(ports.last) << 16,
        )
    }

    pub fn paging(self) -> Option<PagingCap> {
        match self.kind() {
            Kind::Pdpt | Kind::PageDirectory | Kind::PageTable => Some(PagingCap {
                word: self.word(),
                mapping: Mapping::decode(self.data()),
            }),
            _ => None,
        }
    }

    /// ASID of a root table; `None` if it has none, or is no root table.
    #[inline(always)]
    pub fn root_asid(self) -> Option<u16> {
        (self.is(Kind::Pml4) && self.data() != 0).then_some(self.data() as u16)
    }

    /// Number of an ASID pool.
    pub fn pool_number(self) -> u64 {
        self.data()
    }

    pub fn io_ports(self) -> Option<Ports> {
        self.is(Kind::IoPort).then_some(Ports {
            first: self.data() as u16,
            last: (self.data() >> 16) as u16,
        })
    }

    /// The frame or paging-structure capability, mapped as `mapping` says.
    #[must_use]
    pub fn with_mapping(self, mapping: Option<Mapping>) -> Self {
        Capability::from_parts(self.word(), Mapping::encode(mapping))
    }

    /// The root-table capability with an ASID (0 for none), or the pool with its number.
    #[must_use]
    pub fn with_number(self, number: u64) -> Self {
        Capability::from_parts(self.word(), number)
    }
}

/// The capability that a copy of `cap` would be, as [`crate::cap::derivation::derive`] says.
pub fn derive(kind: Kind, cap: Capability) -> Result<Capability, DeriveError> {
    match kind {
        Kind::IoPortControl => Ok(Capability::NULL),
        // None is ever mapped: there is no IOMMU (09, section 4).
        Kind::IoPageTable if PROFILE.iommu => Err(DeriveError::NotMapped),
        Kind::Pml4 if cap.root_asid().is_none() => Err(DeriveError::NotMapped),
        Kind::Pdpt | Kind::PageDirectory | Kind::PageTable
            if cap.paging().is_some_and(|table| table.mapping.is_none()) =>
        {
            Err(DeriveError::NotMapped)
        }
        _ => Ok(cap),
    }
}

/// Whether a capability of `kind`, a copy of `source`, is revocable on its own.
pub fn changed(kind: Kind, source: Capability) -> bool {
    kind == Kind::IoPort && source.is(Kind::IoPortControl)
}

/// Whether IRQ control is what capabilities of `kind` come from: itself, and handlers.
pub fn of_irq_control(kind: Kind) -> bool {
    matches!(kind, Kind::IrqControl | Kind::IrqHandler)
}

/// Whether capabilities of `kind` that were made for the same thing, each by itself, are no children of one another.
pub const fn stands_alone(_kind: Kind) -> bool {
    false
}

/// Whether what `b` names is part of what `a`, of `kind`, names (02, section 5.2).
pub fn same_region(kind: Kind, a: Capability, b: Capability) -> bool {
    match kind {
        Kind::PageTable | Kind::PageDirectory | Kind::Pdpt | Kind::Pml4 | Kind::AsidPool => {
            a.word().same(b.word())
        }
        Kind::IoPageTable if PROFILE.iommu => a.word().same(b.word()),
        Kind::AsidControl => b.is(kind),
        Kind::IoPortControl => matches!(b.kind(), Kind::IoPortControl | Kind::IoPort),
        Kind::IoPort => b.is(kind) && a.io_ports() == b.io_ports(),
        _ => false,
    }
}

/// Whether `a` and `b`, both of `kind`, name the same if that is a number; true if it is an object, or a control.
pub fn same_number(kind: Kind, a: Capability, b: Capability) -> bool {
    kind != Kind::IoPort || a.io_ports() == b.io_ports()
}

/// log2 of the bytes of an object of `kind`; `None` if it has no memory.
pub fn object_bits(kind: Kind) -> Option<u32> {
    match kind {
        Kind::PageTable | Kind::PageDirectory | Kind::Pdpt | Kind::Pml4 => {
            Some(sizes::PAGING_STRUCTURE_BITS)
        }
        Kind::IoPageTable if PROFILE.iommu => Some(sizes::PAGING_STRUCTURE_BITS),
        Kind::AsidPool => Some(sizes::ASID_POOL_BITS),
        _ => None,
    }
}
