//! The kernel's own page tables (TTBR1), and the two that user code runs without and cores start with (TTBR0).
//!
//! Start-up builds what it needs with the MMU off: the image, the device tree, and the same addresses for the code that
//! turns the MMU on. Here the rest is added: RAM in the window, and devices. What is added was absent before, so that
//! nothing has to be forgotten.

use core::cell::Cell;

use super::layout::{
    block, physical, BLOCK, DEVICE_ENTRIES, HUGE_BLOCK, PAGE_SIZE, TREE_ENTRY, WINDOW_BASE,
    WINDOW_SIZE,
};
use super::mmio::Registers;
use super::{cpu, tlb};
use crate::arch::abi::pte::{MAIR, SHAREABILITY};
use crate::arch::Range;

/// Entries of a table.
pub const ENTRIES: usize = 512;

/// A page table of any level. Written during boot only, by the core that boots.
#[repr(C, align(4096))]
pub struct Table([Cell<u64>; ENTRIES]);

// SAFETY: only the boot core writes a table, before anything else runs.
unsafe impl Sync for Table {}

impl Table {
    const fn new() -> Self {
        Table([const { Cell::new(0) }; ENTRIES])
    }

    /// Sets entry `index`; nothing past the end.
    fn set(&self, index: usize, entry: u64) {
        if let Some(cell) = self.0.get(index) {
            cell.set(entry);
        }
    }

    fn get(&self, index: usize) -> u64 {
        self.0.get(index).map_or(0, Cell::get)
    }

    /// Whether it maps nothing.
    fn is_empty(&self) -> bool {
        self.0.iter().all(|entry| entry.get() == 0)
    }
}

/// Root of the tables with which a core starts, and the second of them: the gigabyte of the image where it is.
pub static START_ROOT: Table = Table::new();
pub static START_HUGE: Table = Table::new();
/// What leads from a loader's tables to none: the gigabyte of the image where it is. Not zeroes, so that what any core
/// writes there stays: each core that a loader starts writes the same, whenever it comes.
#[unsafe(link_section = ".data")]
pub static BRIDGE_ROOT: Table = Table::new();
#[unsafe(link_section = ".data")]
pub static BRIDGE_HUGE: Table = Table::new();
/// The kernel's root, which is a table of the first level, and its second level; start-up fills their beginning.
pub static KERNEL_ROOT: Table = Table::new();
pub static KERNEL_BLOCKS: Table = Table::new();
/// The image, by pages.
pub static IMAGE_PAGES: Table = Table::new();
/// A root that maps nothing.
static EMPTY_ROOT: Table = Table::new();

/// Gigabytes of which only a part is RAM.
const MOST_PARTIAL: usize = 8;
static PARTIAL: [Table; MOST_PARTIAL] = [const { Table::new() }; MOST_PARTIAL];

/// Blocks of which only a part is RAM.
const MOST_EDGES: usize = 8;
static EDGES: [Table; MOST_EDGES] = [const { Table::new() }; MOST_EDGES];

/// An entry leads to a table.
pub const TABLE: u64 = 3;
/// An entry is a block, or on the last level a page.
pub const IS_BLOCK: u64 = 1;
pub const IS_PAGE: u64 = 3;
/// It has been accessed: the processor need not tell.
const ACCESSED: u64 = 1 << 10;
/// As in the entries of users: what is shared is shared alike by whoever maps it.
const SHARED: u64 = SHAREABILITY;
/// Nobody writes there.
const READ_ONLY: u64 = 1 << 7;
/// The kernel does not execute it, nor do users.
const NO_EXECUTE_KERNEL: u64 = 1 << 53;
const NO_EXECUTE_USER: u64 = 1 << 54;

/// Memory types, by the number that an entry has: those of the entries of users, too (07, section 6).
const DEVICE: u64 = 0 << 2;
const NORMAL: u64 = 1 << 2;
pub const MEMORY_TYPES: u64 = MAIR;

/// Attributes of the parts of the image.
pub const CODE: u64 = NORMAL | SHARED | ACCESSED | NO_EXECUTE_USER | READ_ONLY;
pub const CONSTANTS: u64 = CODE | NO_EXECUTE_KERNEL;
pub const DATA: u64 = CONSTANTS & !READ_ONLY;

/// Controls of translation, but for the size of physical addresses: 48 bits of addresses for users and 39 for the kernel,
/// pages of 4 KiB, tables in write-back memory that is shared as all memory is, identifiers of 16 bits from TTBR0.
pub const CONTROL: u64 = WALKS << 8 | WALKS << 24 | 16 | 25 << 16 | 2 << 30 | 1 << 36;
/// How tables are read: inner and outer write-back, shared.
const WALKS: u64 = 5 | SHAREABILITY >> 4;

/// The controls for the tables of users alone, in the lower half of the register; and their bit that turns these tables off.
pub const BRIDGE_CONTROL: u64 = WALKS << 8 | 16;
pub const BRIDGE_OFF: u64 = 1 << 7;
/// The memory type of what the bridge maps, the last number, which is the type of normal memory whatever else the loader
/// has numbered.
pub const BRIDGE_TYPE: u64 = 0xff;
pub const BRIDGE: u64 = 7 << 2 | SHARED | ACCESSED | READ_ONLY | NO_EXECUTE_USER | IS_BLOCK;

/// Physical address of a root that maps nothing for users.
pub fn empty_root() -> u64 {
    physical(&raw const EMPTY_ROOT)
}

unsafe extern "C" {
    // Bounds of the code that runs once, multiples of a page, from the linker script.
    static init_text_start: u8;
    static init_text_end: u8;
}

/// Unmaps the code that runs once, which no core executes any more: what is in its memory from now on is no code of the
/// kernel's. All cores forget it.
#[inline(always)]
pub fn unmap_init_text() {
    let (start, end) = (&raw const init_text_start, &raw const init_text_end);
    let mut at = start as u64;
    while at < end as u64 {
        IMAGE_PAGES.set((at / PAGE_SIZE) as usize % ENTRIES, 0);
        at = at.wrapping_add(PAGE_SIZE);
    }
    tlb::forget_all();
}

/// How RAM is mapped could not be written down.
#[derive(Debug)]
pub struct TooFragmented;

/// Maps `ram`, of whole pages, in the window.
///
/// # Errors
/// Too many gigabytes, or too many blocks, are RAM in part only.
pub fn map_ram(ram: Range) -> Result<(), TooFragmented> {
    let end = ram.end.min(WINDOW_SIZE);
    let mut start = ram.start;
    while start < end {
        let next = behind(start, HUGE_BLOCK).min(end);
        let huge = (start / HUGE_BLOCK) as usize;
        if next.wrapping_sub(start) == HUGE_BLOCK {
            KERNEL_ROOT.set(huge, start | DATA | IS_BLOCK);
        } else {
            let table = below(&KERNEL_ROOT, huge, &PARTIAL).ok_or(TooFragmented)?;
            map_blocks(table, Range { start, end: next })?;
        }
        start = next;
    }
    cpu::tables_written();
    Ok(())
}

/// As [`map_ram`], inside the gigabyte of `table`.
fn map_blocks(table: &Table, ram: Range) -> Result<(), TooFragmented> {
    let mut start = ram.start;
    while start < ram.end {
        let next = behind(start, BLOCK).min(ram.end);
        let index = (start / BLOCK) as usize % ENTRIES;
        if next.wrapping_sub(start) == BLOCK {
            table.set(index, start | DATA | IS_BLOCK);
        } else {
            let pages = below(table, index, &EDGES).ok_or(TooFragmented)?;
            map_pages(pages, Range { start, end: next });
        }
        start = next;
    }
    Ok(())
}

/// As [`map_ram`], inside the block of `table`.
fn map_pages(table: &Table, ram: Range) {
    let mut at = ram.start;
    while at < ram.end {
        let index = (at / PAGE_SIZE) as usize % ENTRIES;
        table.set(index, at | DATA | IS_PAGE);
        at = at.wrapping_add(PAGE_SIZE);
    }
}

/// The next multiple of `size`, a power of two, behind `address`.
fn behind(address: u64, size: u64) -> u64 {
    (address | size.wrapping_sub(1)).wrapping_add(1)
}

/// The table to which entry `index` of `table` leads: the one of `tables` that it has, or a new one, which is then in
/// nobody's use.
fn below(table: &Table, index: usize, tables: &'static [Table]) -> Option<&'static Table> {
    let entry = table.get(index);
    let is_its = |table: &&Table| entry == physical(*table) | TABLE;
    if let Some(table) = tables.iter().find(is_its) {
        return Some(table);
    }
    if entry != 0 {
        return None;
    }
    // What is in use maps something.
    let below = tables.iter().find(|table| table.is_empty())?;
    table.set(index, physical(below) | TABLE);
    Some(below)
}

/// Maps the `bytes` of a device at `paddr`, for good. `None` if there is no room for it, or no physical memory there.
/// What else is in the same blocks is mapped, too, and never accessed.
pub fn map_device(paddr: u64, bytes: u64) -> Option<Registers> {
    let last = paddr.checked_add(bytes.checked_sub(1)?)?;
    let first = paddr & !(BLOCK - 1);
    // Addresses of an entry have 48 bits.
    if last >> 48 != 0 {
        return None;
    }
    let blocks = (last.wrapping_sub(first) / BLOCK).wrapping_add(1);
    let entry = |number: u64| {
        let at = first.wrapping_add(number.wrapping_mul(BLOCK));
        at | DEVICE | ACCESSED | NO_EXECUTE_KERNEL | NO_EXECUTE_USER | IS_BLOCK
    };
    // The place where it is mapped already, or the first free one.
    let mut run = 0;
    for index in DEVICE_ENTRIES {
        let found = KERNEL_BLOCKS.get(index);
        run = if found == 0 || found == entry(run) {
            run.wrapping_add(1)
        } else if found == entry(0) {
            1
        } else {
            0
        };
        if run == blocks {
            let begin = index.wrapping_add(1).wrapping_sub(blocks as usize);
            for number in 0..blocks {
                KERNEL_BLOCKS.set(begin.wrapping_add(number as usize), entry(number));
            }
            cpu::tables_written();
            let address = block(begin).wrapping_add(paddr.wrapping_sub(first));
            // SAFETY: it has just been mapped as a device's, for good. What its driver writes there is the driver's
            // affair: each has registers that only concern its own device.
            return Some(unsafe { Registers::at(address) });
        }
    }
    None
}

/// Where the device tree at the physical address `paddr` is mapped by start-up.
pub fn tree_at(paddr: u64) -> u64 {
    block(TREE_ENTRY).wrapping_add(paddr % BLOCK)
}

/// Where RAM at the physical address `paddr` is in the window.
pub fn in_window(paddr: u64) -> u64 {
    WINDOW_BASE.wrapping_add(paddr)
}
