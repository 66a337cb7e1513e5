//! What else untyped memory becomes on aarch64: frames and paging structures (02, section 2).
//!
//! A new frame is zero in RAM, however it is mapped, as the machine sees to when memory is zeroed (`Platform::zeroed`):
//! nothing writes to it from then on until it is somebody's.

use sandglass_abi::object::aarch64 as types;
use sandglass_abi::object::PAGING_STRUCTURE_BITS;

use super::object::paging::{PageTable, VSpace};
use crate::mem::objects::region::Region;
use crate::mem::Tagged;
use crate::Kernel;

/// A type of object that Retype makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    HugePage,
    VSpace,
    SmallPage,
    LargePage,
    PageTable,
}

impl Type {
    pub fn new(number: u64) -> Option<Type> {
        Some(match number {
            types::HUGE_PAGE => Type::HugePage,
            types::VSPACE => Type::VSpace,
            types::SMALL_PAGE => Type::SmallPage,
            types::LARGE_PAGE => Type::LargePage,
            types::PAGE_TABLE => Type::PageTable,
            _ => return None,
        })
    }

    /// log2 of the bytes of an object.
    pub fn bits(self) -> u64 {
        u64::from(match self {
            Type::SmallPage => types::SMALL_PAGE_BITS,
            Type::LargePage => types::LARGE_PAGE_BITS,
            Type::HugePage => types::HUGE_PAGE_BITS,
            Type::VSpace | Type::PageTable => PAGING_STRUCTURE_BITS,
        })
    }

    /// Whether device memory can become such an object.
    pub fn suits_device(self) -> bool {
        matches!(self, Type::SmallPage | Type::LargePage | Type::HugePage)
    }

    /// Puts an object of this type into `region`, of the right size.
    pub fn place(self, k: &mut Kernel, region: Region) -> Option<Tagged> {
        match self {
            Type::SmallPage | Type::LargePage | Type::HugePage => Some(region.into_frame()),
            Type::VSpace => root_table(k, region),
            Type::PageTable => region.into_zeroed::<PageTable>(),
        }
    }
}

/// A root table is empty: the kernel is in another one (07, section 7).
pub fn root_table(_: &mut Kernel, region: Region) -> Option<Tagged> {
    region.into_zeroed::<VSpace>()
}
