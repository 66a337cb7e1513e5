//! The plan of the root task's address space and capability space (06, sections 1.2 and 3), made
//! and checked before anything is.

use sandglass_abi::boot::{slot, ROOT_CNODE_RADIX};
use sandglass_abi::object::{
    ASID_POOL_BITS, MIN_SCHED_CONTEXT_BITS, PAGING_STRUCTURE_BITS, SLOT_BITS, TCB_BITS,
};

use super::elf::PAGE;
use super::{Range, Refusal};
use crate::arch::abi::boot as arch;
use crate::arch::abi::boot::extra::Pages;
use crate::arch::abi::USER_TOP_EXCLUSIVE;
use crate::cores::CORES;
use crate::object::irq::IRQ_SLOTS_RADIX;

/// log2 of the bytes of the root CNode.
pub const CNODE_BITS: u8 = (ROOT_CNODE_RADIX + SLOT_BITS) as u8;
/// Pages of the slots of the interrupts.
const IRQ_PAGES: u64 = (1 << (IRQ_SLOTS_RADIX as u32 + SLOT_BITS)) / PAGE;
const _: () = assert!(IRQ_PAGES > 0);
/// Slots of the root CNode.
pub const SLOTS: u64 = 1 << ROOT_CNODE_RADIX;

/// Where everything in the root task's address space is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    pub image: Range,
    /// All that is mapped.
    pub mapped: Range,
    tables: u64,
    extra: Pages,
}

impl Plan {
    /// Plans the address space around `image`, with these pages of extra boot information.
    ///
    /// # Errors
    /// The image leaves no room for the pages behind it below the user's top; or it has more
    /// pages than there are slots.
    pub fn new(image: Range, extra: Pages) -> Result<Plan, Refusal> {
        let behind = (2 + extra.span()) * PAGE;
        let end = image.end.saturating_add(behind);
        if end > USER_TOP_EXCLUSIVE {
            return Err(Refusal::File {
                what: "image ends at",
                found: image.end,
                right: "behind it there must be room for 3 pages of user memory",
            });
        }
        let mapped = Range {
            start: image.start,
            end,
        };
        let tables = arch::tables(mapped);
        let plan = Plan {
            image,
            mapped,
            tables,
            extra,
        };
        let others = slot::FIRST_DYNAMIC + CORES as u64 + tables + extra.count();
        let slots = SLOTS.saturating_sub(others);
        if plan.image_pages() > slots {
            return Err(Refusal::TooManyPages {
                pages: plan.image_pages(),
                slots,
            });
        }
        Ok(plan)
    }

    pub fn image_bytes(self) -> u64 {
        self.image.end.saturating_sub(self.image.start)
    }

    pub fn image_pages(self) -> u64 {
        self.image_bytes() / PAGE
    }

    pub fn ipc_buffer(self) -> u64 {
        self.image.end
    }

    pub fn boot_info(self) -> u64 {
        self.image.end + PAGE
    }

    /// Where the pages of extra boot information are.
    pub fn extra(self) -> impl Iterator<Item = u64> {
        (2..2 + self.extra.count()).map(move |page| self.image.end + page * PAGE)
    }

    /// Bytes of all objects but the image; the largest is the root CNode, by whose size they are
    /// aligned.
    pub fn object_bytes(self) -> u64 {
        let pages = 1 // root table
            + self.extra.count()
            + 1 // ASID pool
            + IRQ_PAGES // slots of the interrupts
            + 2 // IPC buffer, boot information
            + self.tables;
        const { assert!(PAGING_STRUCTURE_BITS == 12 && ASID_POOL_BITS == 12) };
        (1 << CNODE_BITS) + pages * PAGE + (1 << TCB_BITS) + (1 << MIN_SCHED_CONTEXT_BITS)
    }
}
