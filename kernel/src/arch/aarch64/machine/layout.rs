//! The kernel's addresses: the last 512 GiB, which have tables of their own (TTBR1).
//!
//! | from | entries of the first level | what |
//! | --- | --- | --- |
//! | `0xffffff80_00000000` | 0..=509 | physical memory from 0, the *window*: where there is RAM |
//! | `0xffffffff_c0000000` | 511 | the kernel's image, wherever the loader put it; the device tree; devices |
//!
//! The window has nothing but RAM, since what is mapped as normal memory may be read at any time, without
//! anybody asking for it.

use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a small page.
pub const PAGE_SIZE: u64 = 4096;
/// Bytes of a block of the second level.
pub const BLOCK: u64 = 2 << 20;
/// Bytes of a block of the first level.
pub const HUGE_BLOCK: u64 = 1 << 30;

/// Where physical address 0 appears.
pub const WINDOW_BASE: u64 = 0xffff_ff80_0000_0000;
/// Number of entries of the first level of the window.
pub const WINDOW_ENTRIES: usize = 510;
/// Bytes of physical memory that the window covers.
pub const WINDOW_SIZE: u64 = (WINDOW_ENTRIES as u64) << 30;

/// Where the kernel's image begins (06, section 7); the linker script has the same number.
pub const KERNEL_BASE: u64 = 0xffff_ffff_c000_0000;
/// Entry of the first level for [`KERNEL_BASE`].
pub const KERNEL_ENTRY: usize = 511;

/// Entries of the second level: the image.
pub const IMAGE_ENTRY: usize = 0;
/// The device tree: of 2 MiB at most, and so in two blocks.
pub const TREE_ENTRY: usize = 2;
/// Devices.
pub const DEVICE_ENTRIES: core::ops::Range<usize> = 8..512;

/// What is to be added to an address in the image to make it a physical one. Written once, by the core that
/// boots, before anything else is done; relaxed, as other cores start later.
static TO_PHYSICAL: AtomicU64 = AtomicU64::new(0);

/// The image begins at the physical address `paddr`.
#[cfg(target_os = "none")]
pub(in crate::arch::aarch64) fn set_image(paddr: u64) {
    TO_PHYSICAL.store(paddr.wrapping_sub(KERNEL_BASE), Ordering::Relaxed);
}

/// Physical address of something inside the kernel's image.
pub fn physical<T: ?Sized>(item: *const T) -> u64 {
    (item.cast::<u8>() as u64).wrapping_add(TO_PHYSICAL.load(Ordering::Relaxed))
}

/// Where entry `entry` of the second level begins.
pub const fn block(entry: usize) -> u64 {
    KERNEL_BASE.wrapping_add((entry as u64).wrapping_mul(BLOCK))
}
