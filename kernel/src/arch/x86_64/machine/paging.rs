//! The kernel's own page tables.
//!
//! The kernel's address space has one PML4 entry, slot 511 ([`super::layout`]); start-up builds
//! its PDPT in 32-bit mode, here the rest is added.
//!
//! Slot 511 of every user root is the *skeleton* instead: it maps the trampoline (entry and exit
//! code, descriptor tables, entry stacks) where the kernel's own tables map it, and nothing else;
//! the kernel runs in its own address space, in which no user page is mapped. Every entry loads the
//! kernel's root and every exit the user's, and no translation is global, so that none of the user's
//! outlives an entry, on any core.
//!
//! A kernel [without isolation](ISOLATED) has its own tables in slot 511 of every user root, and enters and leaves without
//! another root. It is for one core: others would keep translations while they wait for their turn.

use core::arch::global_asm;
use core::cell::Cell;

use super::cpu;
use super::layout::{
    device_page, physical, HPET_PAGE, IO_APIC_PAGE, KERNEL_PDPT_ENTRY, KERNEL_SLOT,
    LOCAL_APIC_PAGE, PAGE_SIZE, WINDOW_PAGES,
};
use super::speculation::Asked;
use crate::arch::abi::pte::{self, Access, Level};
use crate::cores::CORES;

/// A page table of any level, or several that follow each other in memory and in what they map. Written during boot only,
/// by the core that boots.
#[repr(C, align(4096))]
pub struct Table<const TABLES: usize = 1>([[Cell<u64>; pte::ENTRIES]; TABLES]);

// SAFETY: only the boot core writes a table, before anything else runs.
unsafe impl<const TABLES: usize> Sync for Table<TABLES> {}

impl<const TABLES: usize> Table<TABLES> {
    /// Entries of all its tables: a power of two, as `TABLES` is.
    const ENTRIES: usize = TABLES * pte::ENTRIES;

    const fn new() -> Self {
        Table([const { [const { Cell::new(0) }; pte::ENTRIES] }; TABLES])
    }

    /// Sets entry `index`; nothing past the end.
    fn set(&self, index: usize, entry: u64) {
        if let Some(cell) = self.0.as_flattened().get(index) {
            cell.set(entry);
        }
    }
}

/// Root of the kernel's address space; the entry code loads it.
pub static KERNEL_PML4: Table = Table::new();
/// Root of the address space in which other cores start: the kernel's, and the first GiB where it is.
pub static START_PML4: Table = Table::new();
static START_PDPT: Table = Table::new();
/// The last 512 GiB; the entry code of start-up fills it.
pub static KERNEL_PDPT: Table = Table::new();
static IMAGE_DIRECTORY: Table = Table::new();
/// The image, and below it the interrupt controllers.
static IMAGE_TABLE: Table<IMAGE_TABLES> = Table::new();

/// Page tables for the image. The stacks of more than four cores reach beyond the first 2 MiB.
const IMAGE_TABLES: usize = if CORES > 4 { 2 } else { 1 };

// What the linker script wants to know.
global_asm!(
    ".global sandglass_image_tables",
    ".set sandglass_image_tables, {tables}",
    tables = const IMAGE_TABLES,
);

/// Flags of the 1 GiB pages of the window, and of the image during start-up: present, writable, large.
pub const HUGE_PAGE_FLAGS: u32 = 0x83;
/// Flags of an entry for one of the kernel's tables: present, writable.
pub const TABLE_FLAGS: u32 = 0x3;

const _: () = assert!(WINDOW_PAGES <= KERNEL_PDPT_ENTRY);

/// Whether the kernel is not mapped while user code runs.
pub const ISOLATED: bool = cfg!(not(feature = "no-isolation"));

const _: () = assert!(
    ISOLATED || !Asked::ANY,
    "what is done against speculation relies on the load of CR3 at an exit: leave out `no-isolation`"
);
const _: () = assert!(
    ISOLATED || CORES == 1,
    "a kernel for several cores has page-table isolation: leave out `no-isolation`"
);

/// Number of I/O APICs for which there are pages.
pub const MAX_IO_APICS: usize = HPET_PAGE - IO_APIC_PAGE;

/// Uncached attributes: PWT and PCD, entry 3 of the page-attribute table.
const UNCACHED: u64 = 3;

unsafe extern "C" {
    // Bounds of the image's parts, multiples of a page, from the linker script.
    static rodata_start: u8;
    static init_text_start: u8;
    static init_text_end: u8;
    static data_start: u8;
    static kernel_end: u8;
    static trampoline_text_start: u8;
    static trampoline_text_end: u8;
    static trampoline_data_start: u8;
    static trampoline_data_end: u8;
}

/// What the kernel does with a page of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Constants,
    Code,
    Data,
}

impl Use {
    /// The entry of a page of the image at `paddr`: nothing that is written is executed.
    fn page(self, paddr: u64) -> u64 {
        let access = Access {
            user: false,
            write: self == Use::Data,
        };
        let page = pte::page(Level::PAGE_TABLE, paddr, access, 0);
        match self {
            Use::Code => page,
            Use::Constants | Use::Data => page | no_execute(),
        }
    }
}

/// The bit of an entry below which no instruction is executed; none if the processor has no such bit.
fn no_execute() -> u64 {
    if cpu::has_no_execute() {
        pte::NO_EXECUTE
    } else {
        0
    }
}

/// Maps the part of the image from `start` to `end` in `tables`, which cover memory from 0 on; the
/// linker script asserts that it lies there.
fn map_image<const TABLES: usize>(
    tables: &Table<TABLES>,
    start: *const u8,
    end: *const u8,
    what: Use,
) {
    for paddr in (physical(start)..physical(end)).step_by(PAGE_SIZE as usize) {
        let page = (paddr / PAGE_SIZE) as usize;
        tables.set(page % Table::<TABLES>::ENTRIES, what.page(paddr));
    }
}

/// Completes the kernel's address space and leaves the one that start-up used, which mapped low
/// memory besides, and in which everything could be executed. After [`cpu::init`].
pub fn init() {
    let no_execute = no_execute();
    for page in 0..WINDOW_PAGES {
        let paddr = (page as u64) << 30;
        KERNEL_PDPT.set(page, u64::from(HUGE_PAGE_FLAGS) | paddr | no_execute);
    }
    map_image(
        &IMAGE_TABLE,
        &raw const rodata_start,
        &raw const init_text_start,
        Use::Constants,
    );
    map_image(
        &IMAGE_TABLE,
        &raw const init_text_start,
        &raw const data_start,
        Use::Code,
    );
    map_image(
        &IMAGE_TABLE,
        &raw const data_start,
        &raw const kernel_end,
        Use::Data,
    );
    for (entry, table) in IMAGE_TABLE.0.iter().enumerate() {
        IMAGE_DIRECTORY.set(entry, pte::kernel_table(physical(table)));
    }
    KERNEL_PDPT.set(
        KERNEL_PDPT_ENTRY,
        pte::kernel_table(physical(&IMAGE_DIRECTORY)),
    );
    KERNEL_PML4.set(0, 0);
    if ISOLATED {
        skeleton::init();
    }
    // SAFETY: the present root, without what only start-up needed.
    unsafe { cpu::set_root(kernel_root()) }
}

/// Unmaps the code that runs once, which no core executes any more: what is in its memory from now on is no code of the
/// kernel's. What other cores remember of these pages they forget when they load their next root.
#[inline(always)]
pub fn unmap_init_text() {
    let (start, end) = (&raw const init_text_start, &raw const init_text_end);
    for paddr in (physical(start)..physical(end)).step_by(PAGE_SIZE as usize) {
        IMAGE_TABLE.set((paddr / PAGE_SIZE) as usize, 0);
    }
    // SAFETY: the present root, which forgets the pages.
    unsafe { cpu::set_root(kernel_root()) }
}

/// Completes the address space in which other cores start.
pub fn init_start() {
    START_PDPT.set(0, HUGE_PAGE_FLAGS.into());
    START_PML4.set(0, pte::kernel_table(physical(&START_PDPT)));
    START_PML4.set(KERNEL_SLOT, pte::kernel_table(physical(&KERNEL_PDPT)));
}

/// Physical address of the root of the kernel's address space.
pub fn kernel_root() -> u64 {
    physical(&KERNEL_PML4)
}

/// Maps the local APIC at the physical address `paddr`. Returns its virtual address.
pub fn map_local_apic(paddr: u64) -> u64 {
    map_device(LOCAL_APIC_PAGE, paddr)
}

/// Maps I/O APIC `number`, below [`MAX_IO_APICS`], at the physical address `paddr`. Returns its
/// virtual address.
pub fn map_io_apic(number: usize, paddr: u64) -> u64 {
    map_device(IO_APIC_PAGE.wrapping_add(number), paddr)
}

/// Maps the HPET at the physical address `paddr`, until [`unmap_hpet`]. Returns its virtual address.
pub fn map_hpet(paddr: u64) -> u64 {
    map_device(HPET_PAGE, paddr)
}

/// Its registers are the root task's.
pub fn unmap_hpet() {
    IMAGE_TABLE.set(HPET_PAGE, 0);
    // SAFETY: the present root, which forgets the page.
    unsafe { cpu::set_root(kernel_root()) }
}

/// Absent entries are not cached, so nothing is flushed.
fn map_device(page: usize, paddr: u64) -> u64 {
    let access = Access {
        user: false,
        write: true,
    };
    IMAGE_TABLE.set(
        page,
        pte::page(Level::PAGE_TABLE, paddr, access, UNCACHED) | no_execute(),
    );
    device_page(page).wrapping_add(paddr % PAGE_SIZE)
}

/// The entry of slot 511 of every user root.
pub fn kernel_root_entry() -> u64 {
    pte::kernel_table(if ISOLATED {
        skeleton::root_entry_table()
    } else {
        physical(&KERNEL_PDPT)
    })
}

/// Physical address of a root that maps nothing for users.
pub fn empty_root() -> u64 {
    if ISOLATED {
        skeleton::empty_root()
    } else {
        kernel_root()
    }
}

/// What of the kernel is mapped while user code runs.
mod skeleton {
    use super::*;

    static ROOT: Table = Table::new();
    static PDPT: Table = Table::new();
    static DIRECTORY: Table = Table::new();
    static TABLE: Table = Table::new();

    pub fn init() {
        map_image(
            &TABLE,
            &raw const trampoline_text_start,
            &raw const trampoline_text_end,
            Use::Code,
        );
        map_image(
            &TABLE,
            &raw const trampoline_data_start,
            &raw const trampoline_data_end,
            Use::Data,
        );
        DIRECTORY.set(0, pte::kernel_table(physical(&TABLE)));
        PDPT.set(KERNEL_PDPT_ENTRY, pte::kernel_table(physical(&DIRECTORY)));
        ROOT.set(KERNEL_SLOT, pte::kernel_table(physical(&PDPT)));
    }

    pub fn root_entry_table() -> u64 {
        physical(&PDPT)
    }

    pub fn empty_root() -> u64 {
        physical(&ROOT)
    }
}
