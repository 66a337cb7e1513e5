//! The kinds of capability that aarch64 adds (02, section 2).

use crate::mem::{ControlKind, Kind};

#[allow(non_upper_case_globals)] // As those of every architecture.
impl Kind {
    /// A paging structure of any level below the root.
    pub const PageTable: Kind = Kind::of_architecture(3);
    /// A root table.
    pub const VSpace: Kind = Kind::of_architecture(9);
    pub const AsidControl: Kind = Kind::of_architecture(11);
    pub const AsidPool: Kind = Kind::of_architecture(13);
    pub const SgiSignal: Kind = Kind::of_architecture(27);
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

controls!(AsidControl, SgiSignal);

/// What messages call `kind`, one of these.
pub fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::PageTable => "PageTable",
        Kind::VSpace => "VSpace",
        Kind::AsidControl => "AsidControl",
        Kind::AsidPool => "AsidPool",
        Kind::SgiSignal => "SgiSignal",
        _ => "unknown",
    }
}
