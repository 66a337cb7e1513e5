//! The kernel's own page tables.
//!
//! The kernel's address space has one PML4 entry, slot 511 ([`super::layout`]); start-up builds
//! its PDPT in 32-bit mode, here the rest is added.
//!
//! With the feature `isolation`, slot 511 of every user root is the *skeleton* instead: it maps
//! the trampoline (entry and exit code, descriptor tables, entry stacks) where the kernel's own
//! tables map it, and nothing else; the kernel runs in its own address space, in which no user
//! page is mapped. Without the feature, slot 511 of every user root is the kernel's PDPT.

use core::cell::Cell;

use super::layout::{
    device_page, physical, DEVICE_PDPT_ENTRY, IO_APIC_PAGE, KERNEL_PDPT_ENTRY, KERNEL_SLOT,
    LOCAL_APIC_PAGE, PAGE_SIZE, WINDOW_PAGES,
};
use super::pte::{self, Access, Level};

/// A page table of any level. Written during boot only, by the core that boots.
#[repr(C, align(4096))]
pub struct Table([Cell<u64>; pte::ENTRIES]);

// SAFETY: only the boot core writes a table, before anything else runs.
unsafe impl Sync for Table {}

impl Table {
    const fn new() -> Self {
        Table([const { Cell::new(0) }; pte::ENTRIES])
    }

    /// Sets entry `index`; nothing past the end.
    fn set(&self, index: usize, entry: u64) {
        if let Some(cell) = self.0.get(index) {
            cell.set(entry);
        }
    }
}

/// Root of the kernel's address space; the entry code loads it.
pub static KERNEL_PML4: Table = Table::new();
/// Root of the address space in which other cores start: the kernel's, and low memory.
pub static START_PML4: Table = Table::new();
/// The last 512 GiB; the entry code of start-up fills it.
pub static KERNEL_PDPT: Table = Table::new();
static DEVICE_DIRECTORY: Table = Table::new();
static DEVICE_TABLE: Table = Table::new();

/// Flags of the 1 GiB pages of the window and of the image: present, writable, large; global
/// where user and kernel share one address space.
pub const HUGE_PAGE_FLAGS: u32 = if cfg!(feature = "isolation") {
    0x83
} else {
    0x183
};
/// Flags of an entry for one of the kernel's tables: present, writable.
pub const TABLE_FLAGS: u32 = 0x3;

const _: () = assert!(WINDOW_PAGES <= KERNEL_PDPT_ENTRY && KERNEL_PDPT_ENTRY < DEVICE_PDPT_ENTRY);

/// Number of I/O APICs for which there are pages.
pub const MAX_IO_APICS: usize = pte::ENTRIES - IO_APIC_PAGE;

/// Uncached attributes: PWT and PCD, entry 3 of the page-attribute table.
const UNCACHED: u64 = 3;

/// Completes the kernel's address space and leaves the one that start-up used, which mapped low
/// memory besides.
pub fn init() {
    DEVICE_DIRECTORY.set(0, pte::kernel_table(physical(&DEVICE_TABLE)));
    KERNEL_PDPT.set(
        DEVICE_PDPT_ENTRY,
        pte::kernel_table(physical(&DEVICE_DIRECTORY)),
    );
    KERNEL_PML4.set(0, 0);
    #[cfg(feature = "isolation")]
    skeleton::init();
    // SAFETY: the present root, without what only start-up needed.
    unsafe { super::cpu::set_root(kernel_root()) }
}

/// Completes the address space in which other cores start.
pub fn init_start() {
    for slot in [0, KERNEL_SLOT] {
        START_PML4.set(slot, pte::kernel_table(physical(&KERNEL_PDPT)));
    }
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

/// Absent entries are not cached, so nothing is flushed.
fn map_device(page: usize, paddr: u64) -> u64 {
    let access = Access {
        user: false,
        write: true,
    };
    DEVICE_TABLE.set(page, pte::page(Level::PAGE_TABLE, paddr, access, UNCACHED));
    device_page(page).wrapping_add(paddr % PAGE_SIZE)
}

/// The entry of slot 511 of every user root.
pub fn kernel_root_entry() -> u64 {
    #[cfg(feature = "isolation")]
    return pte::kernel_table(skeleton::root_entry_table());
    #[cfg(not(feature = "isolation"))]
    return pte::kernel_table(physical(&KERNEL_PDPT));
}

/// Physical address of a root that maps nothing for users.
pub fn empty_root() -> u64 {
    #[cfg(feature = "isolation")]
    return skeleton::empty_root();
    #[cfg(not(feature = "isolation"))]
    return kernel_root();
}

/// What of the kernel is mapped while user code runs.
#[cfg(feature = "isolation")]
mod skeleton {
    use super::*;

    static ROOT: Table = Table::new();
    static PDPT: Table = Table::new();
    static DIRECTORY: Table = Table::new();
    static TABLE: Table = Table::new();

    unsafe extern "C" {
        // Bounds of the trampoline, from the linker script.
        static trampoline_text_start: u8;
        static trampoline_text_end: u8;
        static trampoline_data_start: u8;
        static trampoline_data_end: u8;
    }

    pub fn init() {
        let text =
            physical(&raw const trampoline_text_start)..physical(&raw const trampoline_text_end);
        let data =
            physical(&raw const trampoline_data_start)..physical(&raw const trampoline_data_end);
        for page in text.step_by(PAGE_SIZE as usize) {
            map(page, false);
        }
        for page in data.step_by(PAGE_SIZE as usize) {
            map(page, true);
        }
        DIRECTORY.set(0, pte::kernel_table(physical(&TABLE)));
        PDPT.set(KERNEL_PDPT_ENTRY, pte::kernel_table(physical(&DIRECTORY)));
        ROOT.set(KERNEL_SLOT, pte::kernel_table(physical(&PDPT)));
    }

    /// Maps the page of the image at `paddr`, in the first 2 MiB as the linker script asserts.
    fn map(paddr: u64, write: bool) {
        let access = Access { user: false, write };
        TABLE.set(
            Level::PAGE_TABLE.index(paddr),
            pte::page(Level::PAGE_TABLE, paddr, access, 0),
        );
    }

    pub fn root_entry_table() -> u64 {
        physical(&PDPT)
    }

    pub fn empty_root() -> u64 {
        physical(&ROOT)
    }
}
