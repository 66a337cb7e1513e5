//! The kernel's part of every address space: PML4 slot 511, the last 512 GiB.
//!
//! | from | PDPT entries | what |
//! | --- | --- | --- |
//! | `0xffffff80_00000000` | 0..=509 | physical memory from 0, the *window*, in 1 GiB pages |
//! | `0xffffffff_80000000` | 510 | uncached pages of the interrupt controllers |
//! | `0xffffffff_80100000` | 510 | the kernel's image, which lies from 1 MiB on in physical memory |

/// Slot of the kernel in a PML4.
pub const KERNEL_SLOT: usize = 511;

/// Where physical address 0 appears.
pub const WINDOW_BASE: u64 = 0xffff_ff80_0000_0000;

/// Number of 1 GiB pages of the window.
pub const WINDOW_PAGES: usize = 510;

/// Bytes of physical memory that the window covers.
pub const WINDOW_SIZE: u64 = (WINDOW_PAGES as u64) << 30;

/// What the kernel's image adds to its physical addresses; the linker script has the same number.
pub const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;

/// PDPT entry of [`KERNEL_BASE`].
pub const KERNEL_PDPT_ENTRY: usize = 510;

/// Virtual address of the first page of the interrupt controllers: below the image, whose page table
/// has room there.
const DEVICE_BASE: u64 = KERNEL_BASE;

/// Number of pages from [`DEVICE_BASE`] to the image.
pub const DEVICE_PAGES: usize = 256;

/// Page of the local APIC, counted from [`DEVICE_BASE`].
pub const LOCAL_APIC_PAGE: usize = 0;

/// Page of the first I/O APIC; the others follow.
pub const IO_APIC_PAGE: usize = 1;

/// Page of the HPET, while the clock is measured: the last.
pub const HPET_PAGE: usize = DEVICE_PAGES - 1;

/// Bytes of a small page.
pub const PAGE_SIZE: u64 = 4096;

/// Virtual address of page `page` of the interrupt controllers.
pub const fn device_page(page: usize) -> u64 {
    DEVICE_BASE.wrapping_add((page as u64).wrapping_mul(PAGE_SIZE))
}

/// Physical address of something inside the kernel's image.
pub fn physical<T: ?Sized>(item: *const T) -> u64 {
    (item.cast::<u8>() as u64).wrapping_sub(KERNEL_BASE)
}
