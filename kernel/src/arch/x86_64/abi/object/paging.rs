//! Paging structures: a type per level (03, section 8.1).

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
    Pml4;
    /// A table of 1 GiB pages and page directories.
    Pdpt;
    /// A table of 2 MiB pages and page tables.
    PageDirectory;
    /// A table of 4 KiB pages.
    PageTable;
    /// A table of an IOMMU. There is none, so it stays empty (09, section 4).
    IoPageTable;
}
