//! Types of objects that each architecture has of its own, by the names of x86_64: on aarch64 tables below the root are of one type.

#[cfg(not(all(target_arch = "aarch64", target_os = "none")))]
pub use sandglass_abi::object::x86_64::{PAGE, PAGE_DIRECTORY, PAGE_TABLE, PDPT, PML4};

/// On the bare kernel for aarch64; the hosted one, on any host, is that for x86_64.
#[cfg(all(target_arch = "aarch64", target_os = "none"))]
mod bare {
    pub use sandglass_abi::object::aarch64::{
        PAGE_TABLE, PAGE_TABLE as PAGE_DIRECTORY, PAGE_TABLE as PDPT, SMALL_PAGE as PAGE,
        VSPACE as PML4,
    };
}
#[cfg(all(target_arch = "aarch64", target_os = "none"))]
pub use bare::*;
