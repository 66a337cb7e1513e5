//! What the root task is given and told on x86_64 (06, sections 2 to 4), and what its file must be.

#![forbid(unsafe_code)]

pub mod extra;

pub use super::firmware::{FirmwareInfo, Framebuffer, MemoryMapEntry, MAX_MEMORY_MAP};

use sandglass_abi::boot::{slot, NO_IOMMU_LEVELS};
use sandglass_abi::vspace::x86_64::ROOT_TASK_ASID;

use super::invoke::asid;
use super::object::asid::AsidPool;
use super::object::paging::{PageDirectory, PageTable, Pdpt, Pml4};
use super::object::table;
use super::pte::{Access, Level};
use super::{space, Mapping};
use crate::boot::{Contents, Range};
use crate::cap::Capability;
use crate::mem::objects::region::Region;
use crate::mem::{ControlKind, Ref, Slot, Tagged};
use crate::Kernel;

/// The object that an address space is.
pub type Root = Pml4;

/// What the boot information says about levels of I/O page tables (06, section 2).
pub const IO_PAGE_TABLE_LEVELS: u64 = NO_IOMMU_LEVELS;

/// Whether scheduling control comes before the paging structures (06, section 1.2).
pub const SCHED_CONTROL_FIRST: bool = true;

/// The capabilities that name no memory, and where they are.
pub const CONTROLS: [(u64, ControlKind); 4] = [
    (slot::IRQ_CONTROL, ControlKind::IrqControl),
    (slot::ASID_CONTROL, ControlKind::AsidControl),
    (slot::IO_PORT_CONTROL, ControlKind::IoPortControl),
    (slot::DOMAIN, ControlKind::Domain),
];

/// Machine number of ELF files, and what a message says about it.
pub const ELF_MACHINE: u64 = 62;
pub const ELF_MACHINE_IS: &str = "x86_64 is 0x3e";

/// Start of the kernel's alias of physical memory, whose alignment bounds the size of untyped
/// memory (06, section 5). Only from 512 GiB on does it make a difference.
pub const ALIAS: u64 = 0xffff_ff80_0000_0000;

/// The levels of tables below the root, in the order of their capabilities; each is named by the
/// level whose entries lead to it.
const TABLES: [Level; 3] = [Level::PML4, Level::PDPT, Level::PAGE_DIRECTORY];

/// Number of tables below the root that map `range`.
pub fn tables(range: Range) -> u64 {
    TABLES.into_iter().map(|level| spans(range, level)).sum()
}

/// Number of entries of tables of `level` that `range` touches.
fn spans(range: Range, level: Level) -> u64 {
    let last = range.end.saturating_sub(1) >> level.entry_bits();
    last.saturating_sub(range.start >> level.entry_bits()) + 1
}
/// A table below the root that is to be made: for what begins at this address.
pub struct Planned {
    level: Level,
    vaddr: u64,
}

impl Planned {
    /// Makes the table in `region` and installs it below `root`; returns its capability.
    pub fn install(&self, k: &mut Kernel, root: Ref<Root>, region: Region) -> Option<Capability> {
        let word = match self.level {
            Level::PML4 => region.into_zeroed::<Pdpt>()?,
            Level::PDPT => region.into_zeroed::<PageDirectory>()?,
            _ => region.into_zeroed::<PageTable>()?,
        };
        let parent = space::find(k, root.at(k).as_ref(), self.vaddr, self.level).ok()?;
        parent.set_table(k, self.level.index(self.vaddr), table::named(word)?, 0);
        Some(Capability::original(word).with_mapping(Some(mapping(self.vaddr))))
    }
}

/// The tables that map a range, in the order of their capabilities.
pub struct Tables {
    range: Range,
    level: usize,
    done: u64,
}

impl Tables {
    pub fn of(range: Range) -> Self {
        Tables {
            range,
            level: 0,
            done: 0,
        }
    }
}

impl Iterator for Tables {
    type Item = Planned;

    fn next(&mut self) -> Option<Planned> {
        loop {
            let level = *TABLES.get(self.level)?;
            if self.done < spans(self.range, level) {
                let size = 1u64 << level.entry_bits();
                let first = self.range.start & !(size - 1);
                let vaddr = first + self.done * size;
                self.done += 1;
                return Some(Planned { level, vaddr });
            }
            self.level += 1;
            self.done = 0;
        }
    }
}

/// Maps `frame`, of 4 KiB, at `vaddr` in the address space `root`; returns its capability. What is in it makes no
/// difference.
pub fn map(
    k: &Kernel,
    root: Ref<Root>,
    frame: Tagged,
    vaddr: u64,
    _: Contents,
) -> Option<Capability> {
    let level = Level::PAGE_TABLE;
    let table = space::find(k, root.at(k).as_ref(), vaddr, level).ok()?;
    let access = Access {
        user: true,
        write: true,
    };
    table.set_page(k, level, level.index(vaddr), frame, access, 0);
    Some(Capability::original(frame).with_mapping(Some(mapping(vaddr))))
}

/// Makes the first ASID pool in `region`, and names the address space in `root` by it; returns the
/// pool's capability.
pub fn first_pool(k: &Kernel, region: Region, root: Ref<Slot>) -> Option<Capability> {
    let word = region.into_zeroed::<AsidPool>()?;
    let pool = word.get::<AsidPool>()?;
    k.arch.asids.set(k, 0, Some(pool));
    asid::assign(k, root, pool, ROOT_TASK_ASID as u16);
    Some(Capability::original(word).with_number(0))
}

fn mapping(vaddr: u64) -> Mapping {
    Mapping {
        asid: ROOT_TASK_ASID as u16,
        vaddr,
    }
}
