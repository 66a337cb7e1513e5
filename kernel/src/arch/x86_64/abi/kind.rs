//! The kinds of capability that x86_64 adds (02, section 2).

use crate::mem::{ControlKind, Kind};

#[allow(non_upper_case_globals)] // As those of every architecture.
impl Kind {
    pub const PageTable: Kind = Kind::of_architecture(3);
    pub const PageDirectory: Kind = Kind::of_architecture(5);
    pub const Pdpt: Kind = Kind::of_architecture(7);
    pub const Pml4: Kind = Kind::of_architecture(9);
    pub const AsidControl: Kind = Kind::of_architecture(11);
    pub const AsidPool: Kind = Kind::of_architecture(13);
    /// With IOMMU support only (09, section 2.3).
    pub const IoPageTable: Kind = Kind::of_architecture(17);
    pub const IoPort: Kind = Kind::of_architecture(19);
    pub const IoPortControl: Kind = Kind::of_architecture(31);
}

macro_rules! controls {
    ($($kind:ident),*) => {
        #[allow(non_upper_case_globals)]
        impl ControlKind {
            $(
                pub const $kind: ControlKind = {
                    // SAFETY: `object/` gives no object this kind.
                    unsafe { ControlKind::of_architecture(Kind::$kind) }
                };
            )*
        }
    };
}

controls!(AsidControl, IoPort, IoPortControl);

/// What messages call `kind`, one of these.
pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::PageTable => "PageTable",
        Kind::PageDirectory => "PageDirectory",
        Kind::Pdpt => "Pdpt",
        Kind::Pml4 => "Pml4",
        Kind::AsidControl => "AsidControl",
        Kind::AsidPool => "AsidPool",
        Kind::IoPageTable => "IoPageTable",
        Kind::IoPort => "IoPort",
        Kind::IoPortControl => "IoPortControl",
        _ => "unknown",
    }
}
