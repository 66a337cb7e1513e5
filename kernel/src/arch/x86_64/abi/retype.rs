//! What else untyped memory becomes on x86_64: frames and paging structures (02, section 2).

use sandglass_abi::object::x86_64 as types;
use sandglass_abi::object::PAGING_STRUCTURE_BITS;
use sandglass_abi::profile::THIS as PROFILE;

use super::object::paging::{IoPageTable, PageDirectory, PageTable, Pdpt, Pml4};
use super::Devices;
use crate::mem::objects::region::Region;
use crate::mem::Tagged;
use crate::Kernel;

/// A type of object that Retype makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    Pdpt,
    Pml4,
    HugePage,
    Page,
    LargePage,
    PageTable,
    PageDirectory,
    IoPageTable,
}

impl Type {
    pub fn new(number: u64) -> Option<Type> {
        Some(match number {
            types::PDPT => Type::Pdpt,
            types::PML4 => Type::Pml4,
            types::HUGE_PAGE => Type::HugePage,
            types::PAGE => Type::Page,
            types::LARGE_PAGE => Type::LargePage,
            types::PAGE_TABLE => Type::PageTable,
            types::PAGE_DIRECTORY => Type::PageDirectory,
            types::IO_PAGE_TABLE if PROFILE.iommu => Type::IoPageTable,
            _ => return None,
        })
    }

    /// log2 of the bytes of an object.
    pub fn bits(self) -> u64 {
        u64::from(match self {
            Type::Page => types::PAGE_BITS,
            Type::LargePage => types::LARGE_PAGE_BITS,
            Type::HugePage => types::HUGE_PAGE_BITS,
            Type::Pdpt | Type::Pml4 | Type::PageTable | Type::PageDirectory | Type::IoPageTable => {
                PAGING_STRUCTURE_BITS
            }
        })
    }

    /// Whether device memory can become such an object.
    pub fn suits_device(self) -> bool {
        matches!(self, Type::Page | Type::LargePage | Type::HugePage)
    }

    /// Puts an object of this type into `region`, of the right size.
    pub fn place(self, k: &mut Kernel, region: Region) -> Option<Tagged> {
        match self {
            Type::Page | Type::LargePage | Type::HugePage => Some(region.into_frame()),
            Type::Pml4 => root_table(k, region),
            Type::Pdpt => region.into_zeroed::<Pdpt>(),
            Type::PageDirectory => region.into_zeroed::<PageDirectory>(),
            Type::IoPageTable if PROFILE.iommu => region.into_zeroed::<IoPageTable>(),
            // Without support for an IOMMU, no number is the latter's.
            Type::PageTable | Type::IoPageTable => region.into_zeroed::<PageTable>(),
        }
    }
}

/// A root table is empty but for the kernel's entry (07, section 7).
pub fn root_table(k: &mut Kernel, region: Region) -> Option<Tagged> {
    let word = region.into_zeroed::<Pml4>()?;
    let root = word.get::<Pml4>()?;
    k.machine.forget_root(root.address());
    root.at(k)
        .as_ref()
        .set_kernel_entry(k, k.machine.kernel_root_entry());
    Some(word)
}
