//! The capabilities that aarch64 adds, and what copying and deriving mean for them (02, sections 5 and 6).
//!
//! Second word, by kind:
//!
//! | kind | second word |
//! | --- | --- |
//! | page table | mapping: ASID in bits 48–63, virtual address below; 0 if not mapped |
//! | VSpace | ASID; 0 if it has none |
//! | ASID pool | its number |
//! | SGI signal | interrupt in bits 0–7, target in bits 8–39 |

use sandglass_abi::object as sizes;

use super::object::paging::VSpace;
use super::Mapping;
use crate::cap::derivation::DeriveError;
use crate::cap::Capability;
use crate::mem::{ControlKind, Kind, Ref};

/// A software-generated interrupt that user level may raise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sgi {
    /// Below 16.
    pub number: u8,
    /// As the interrupt controller numbers targets.
    pub target: u32,
}

impl Capability {
    pub fn sgi_signal(sgi: Sgi) -> Self {
        Self::control(
            ControlKind::SgiSignal,
            u64::from(sgi.number) | u64::from(sgi.target) << 8,
        )
    }

    pub fn sgi(self) -> Option<Sgi> {
        self.is(Kind::SgiSignal).then_some(Sgi {
            number: self.data() as u8,
            target: (self.data() >> 8) as u32,
        })
    }

    /// Where the page table is mapped.
    pub fn table_mapping(self) -> Option<Mapping> {
        Mapping::decode(self.data()).filter(|_| self.is(Kind::PageTable))
    }

    /// The root table, if it is one.
    pub fn root(self) -> Option<Ref<VSpace>> {
        self.word().get()
    }

    /// ASID of a root table; `None` if it has none, or is no root table.
    #[inline(always)]
    pub fn root_asid(self) -> Option<u16> {
        (self.is(Kind::VSpace) && self.data() != 0).then_some(self.data() as u16)
    }

    /// Number of an ASID pool.
    pub fn pool_number(self) -> u64 {
        self.data()
    }

    /// The frame or page-table capability, mapped as `mapping` says.
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
        Kind::VSpace if cap.root_asid().is_none() => Err(DeriveError::NotMapped),
        Kind::PageTable if cap.table_mapping().is_none() => Err(DeriveError::NotMapped),
        _ => Ok(cap),
    }
}

/// Whether a capability of `kind`, a copy of `source`, is revocable on its own.
pub fn changed(kind: Kind, source: Capability) -> bool {
    kind == Kind::SgiSignal && source.is(Kind::IrqControl)
}

/// Whether IRQ control is what capabilities of `kind` come from: itself, handlers, and signals.
pub fn of_irq_control(kind: Kind) -> bool {
    matches!(kind, Kind::IrqControl | Kind::IrqHandler | Kind::SgiSignal)
}

/// Whether capabilities of `kind` that were made for the same thing, each by itself, are no children of one another (02,
/// section 5.2, rule 3).
pub fn stands_alone(kind: Kind) -> bool {
    kind == Kind::SgiSignal
}

/// Whether what `b` names is part of what `a`, of `kind`, names (02, section 5.2).
pub fn same_region(kind: Kind, a: Capability, b: Capability) -> bool {
    match kind {
        Kind::PageTable | Kind::VSpace | Kind::AsidPool => a.word().same(b.word()),
        Kind::AsidControl => b.is(kind),
        Kind::SgiSignal => b.is(kind) && a.sgi() == b.sgi(),
        _ => false,
    }
}

/// Whether `a` and `b`, both of `kind`, name the same if that is a number; true if it is an object, or a control.
pub fn same_number(kind: Kind, a: Capability, b: Capability) -> bool {
    kind != Kind::SgiSignal || a.sgi() == b.sgi()
}

/// log2 of the bytes of an object of `kind`; `None` if it has no memory.
pub fn object_bits(kind: Kind) -> Option<u32> {
    match kind {
        Kind::PageTable | Kind::VSpace => Some(sizes::PAGING_STRUCTURE_BITS),
        Kind::AsidPool => Some(sizes::ASID_POOL_BITS),
        _ => None,
    }
}
