//! What the root task is given and told on aarch64 (06, sections 1 to 4), and what its file must be.

#![forbid(unsafe_code)]

pub mod extra;

use sandglass_abi::boot::slot;
use sandglass_abi::vspace::aarch64::{attributes, ROOT_TASK_ASID};

use super::devices::{steps, Devices, Maintenance, MAINTENANCE_BYTES};
use super::invoke::asid;
use super::object::asid::AsidPool;
use super::object::paging::{PageTable, VSpace};
use super::pte::{Access, Level};
use super::{space, Mapping};
use crate::boot::{Contents, Range};
use crate::cap::Capability;
use crate::mem::objects::region::Region;
use crate::mem::objects::Ram;
use crate::mem::{ControlKind, Ref, Slot, Tagged};
use crate::Kernel;

/// The object that an address space is.
pub type Root = VSpace;

/// What the boot information says about levels of I/O page tables (06, section 2).
pub const IO_PAGE_TABLE_LEVELS: u64 = 0;

/// Whether scheduling control comes before the paging structures (06, section 1.2).
pub const SCHED_CONTROL_FIRST: bool = false;

/// The capabilities that name no memory, and where they are.
pub const CONTROLS: [(u64, ControlKind); 3] = [
    (slot::IRQ_CONTROL, ControlKind::IrqControl),
    (slot::ASID_CONTROL, ControlKind::AsidControl),
    (slot::DOMAIN, ControlKind::Domain),
];

/// Machine number of ELF files, and what a message says about it.
pub const ELF_MACHINE: u64 = 183;
pub const ELF_MACHINE_IS: &str = "aarch64 is 0xb7";

/// Start of the kernel's alias of physical memory, whose alignment bounds the size of untyped
/// memory (06, section 5). Only from 512 GiB on does it make a difference.
pub const ALIAS: u64 = 0xffff_ff80_0000_0000;

/// Most pieces of memory that a device tree may tell of.
pub const MAX_MEMORY_MAP: usize = 32;

/// What firmware and loader told, for the boot information only.
pub struct FirmwareInfo {
    /// The device tree as it lies in memory: exactly its bytes.
    pub tree: Option<Ram>,
}

/// The levels of tables below the root, in the order of their capabilities; each is named by the
/// level whose entries lead to it.
const TABLES: [Level; 3] = [Level::ROOT, Level::BELOW[0], Level::BELOW[1]];

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
    vaddr: u64,
}

impl Planned {
    /// Makes the table in `region` and installs it below `root`, at the first level that is missing there; returns its
    /// capability.
    pub fn install(&self, k: &mut Kernel, root: Ref<Root>, region: Region) -> Option<Capability> {
        let word = region.into_zeroed::<PageTable>()?;
        let place = space::find(k, root.at(k).as_ref(), self.vaddr);
        place.table.set_table(k, place.index, word.get()?);
        k.machine.tables_written();
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
                return Some(Planned { vaddr });
            }
            self.level += 1;
            self.done = 0;
        }
    }
}

/// Maps `frame`, of 4 KiB with these contents, at `vaddr` in the address space `root`; returns its capability. What was
/// written as data is executed, if it is the image; the IPC buffer and the boot information never are (06, section 3).
pub fn map(
    k: &Kernel,
    root: Ref<Root>,
    frame: Tagged,
    vaddr: u64,
    contents: Contents,
) -> Option<Capability> {
    let place = space::find(k, root.at(k).as_ref(), vaddr);
    let access = Access {
        user: true,
        write: true,
    };
    let attributes = match contents {
        Contents::Image | Contents::Extra => attributes::DEFAULT,
        Contents::Data => attributes::DEFAULT | attributes::EXECUTE_NEVER,
    };
    if contents == Contents::Image {
        const BYTES: u64 = 1 << Level::LAST.entry_bits();
        let steps = steps::<{ BYTES / MAINTENANCE_BYTES }>(frame.address(), BYTES);
        for (at, bytes) in steps {
            k.machine.maintain(Maintenance::Unify, at, bytes);
        }
    }
    let (table, level, index) = (place.table, place.level, place.index);
    table.set_page(k, level, index, frame, access, attributes);
    k.machine.tables_written();
    let is_last = level.holds(Level::LAST.entry_bits());
    is_last.then(|| Capability::original(frame).with_mapping(Some(mapping(vaddr))))
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
