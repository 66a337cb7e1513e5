//! The root task's own image, as its program headers describe it.

use crate::prelude::*;

pub const PAGE: u64 = 0x1000;

/// Where the image lies: the span of all program headers with a size, in whole pages.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    pub start: u64,
    pub end: u64,
}

extern "C" {
    /// The ELF header, at the start of the image.
    static __ehdr_start: u8;
}

impl Image {
    pub fn own() -> Self {
        // SAFETY: the headers lie at the start of the image; the offsets are those of ELF64.
        unsafe {
            let base = &raw const __ehdr_start;
            let headers = base.add(0x20).cast::<u64>().read() as usize;
            let size = usize::from(base.add(0x36).cast::<u16>().read());
            let count = usize::from(base.add(0x38).cast::<u16>().read());
            let (mut start, mut end) = (u64::MAX, 0);
            for i in 0..count {
                let field = |at: usize| base.add(headers + i * size + at).cast::<u64>().read();
                let (vaddr, bytes) = (field(0x10), field(0x28));
                if bytes > 0 {
                    start = start.min(vaddr);
                    end = end.max(vaddr + bytes);
                }
            }
            Self {
                start,
                end: end.next_multiple_of(PAGE),
            }
        }
    }

    pub const fn pages(self) -> u64 {
        (self.end - self.start) / PAGE
    }
}

/// Bytes of the region for extra boot information (06, section 3).
pub fn extra_region(f: &Fixture) -> u64 {
    match f.boot.raw().extra_len {
        0 => 0,
        bytes => bytes.next_power_of_two().max(PAGE),
    }
}

/// The paging structures that the initial address space needs, level by level from the second.
pub fn paging_structures(f: &Fixture, image: Image) -> [u64; 3] {
    let end = image.end + 2 * PAGE + extra_region(f);
    [39, 30, 21].map(|bits| ((end - 1) >> bits) - (image.start >> bits) + 1)
}
