//! Forgetting translations, on every core: the processor broadcasts what is to be forgotten, and waits for all of them.
//!
//! Each begins with a barrier, so that no walk of a table that comes after the invalidation finds the former entry: what
//! this core has stored is seen by the walks of all cores (DSB ISHST). Each ends with one that waits until every core has
//! forgotten, and has finished the accesses by what it has forgotten (DSB ISH), and with an ISB, so that this core
//! executes nothing that was fetched or translated before.

use core::arch::asm;

/// Forgets the translation of the page at `vaddr` in the address space `asid`, and the paging structures that led to it.
pub fn forget_page(asid: u16, vaddr: u64) {
    const PAGE_NUMBERS: u64 = (1 << 44) - 1;
    let what = u64::from(asid) << 48 | vaddr >> 12 & PAGE_NUMBERS;
    // SAFETY: translations can be forgotten at any time. The barriers are argued above.
    unsafe {
        asm!("dsb ishst", "tlbi vae1is, {}", "dsb ish", "isb", in(reg) what,
             options(nostack, preserves_flags));
    }
}

/// Forgets every translation of the address space `asid`, and its paging structures.
pub fn forget_space(asid: u16) {
    // SAFETY: as for a page.
    unsafe {
        asm!("dsb ishst", "tlbi aside1is, {}", "dsb ish", "isb", in(reg) u64::from(asid) << 48,
             options(nostack, preserves_flags));
    }
}

/// Forgets every translation.
pub fn forget_all() {
    // SAFETY: as for a page.
    unsafe {
        asm!(
            "dsb ishst",
            "tlbi vmalle1is",
            "dsb ish",
            "isb",
            options(nostack, preserves_flags)
        );
    }
}
