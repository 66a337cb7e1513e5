//! Paging structures: the root, and tables of any level below (03, section 9).

use super::table::Table;

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $(
            $(#[$doc])*
            #[repr(transparent)]
            pub struct $name(Table);

            impl AsRef<Table> for $name {
                #[inline(always)]
                fn as_ref(&self) -> &Table {
                    &self.0
                }
            }
        )*
    };
}

tables! {
    /// A root table: an address space.
    VSpace;
    /// A table of any other level, which it gets where it is mapped.
    PageTable;
}
