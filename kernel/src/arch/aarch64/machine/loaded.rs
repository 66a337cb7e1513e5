//! What the reference's loader tells of the root task, which it has put into memory as it is to run (06, section 7).

use crate::arch::abi::USER_TOP_EXCLUSIVE;
use crate::arch::device_tree::PAGE_SIZE;
use crate::arch::Range;

/// What it tells, in registers: all claims of its own.
#[derive(Clone, Copy)]
pub struct Loaded {
    /// The first physical address, and the end: 0 if another loader has left the root task's file.
    pub start: u64,
    pub end: u64,
    /// What a virtual address is less than the physical one.
    pub offset: u64,
    /// The virtual address where it begins to run.
    pub entry: u64,
}

impl Loaded {
    /// Whether there is one.
    pub const fn is_there(self) -> bool {
        self.end != 0
    }

    /// The physical addresses, and the first virtual one.
    ///
    /// # Errors
    /// It does not consist of pages of user memory, or does not begin to run inside.
    pub fn image(self) -> Result<(Range, u64), &'static str> {
        const PAGES: &str = "the loader's root task does not consist of pages of user memory";
        const ENTRY: &str = "the loader's root task does not begin to run inside its image";
        let Loaded { start, end, .. } = self;
        let bytes = end
            .checked_sub(start)
            .filter(|&bytes| bytes > 0)
            .ok_or(PAGES)?;
        let image = start.wrapping_sub(self.offset);
        let is_whole = [start, end, image].iter().all(|at| at % PAGE_SIZE == 0);
        let image_end = image.checked_add(bytes).ok_or(PAGES)?;
        if !is_whole || image_end > USER_TOP_EXCLUSIVE {
            return Err(PAGES);
        }
        if !(image..image_end).contains(&self.entry) {
            return Err(ENTRY);
        }
        Ok((Range { start, end }, image))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x4100_0000;
    const IMAGE: u64 = 0x40_0000;
    const RIGHT: Loaded = Loaded {
        start: START,
        end: START + 0x3000,
        offset: START - IMAGE,
        entry: IMAGE + 0x123,
    };

    fn refusal(loaded: Loaded) -> &'static str {
        loaded.image().expect_err("it is refused")
    }

    #[test]
    fn virtual_addresses_are_physical_ones_less_the_offset() {
        let range = Range {
            start: START,
            end: START + 0x3000,
        };
        assert_eq!(RIGHT.image(), Ok((range, IMAGE)));
        // The offset is signed.
        let above = Loaded {
            offset: START.wrapping_sub(0x7000_0000),
            entry: 0x7000_0000,
            ..RIGHT
        };
        let image = above.image().map(|(_, start)| start);
        assert_eq!(image, Ok(0x7000_0000));
    }

    #[test]
    fn what_is_no_image_is_refused() {
        let last = USER_TOP_EXCLUSIVE - 0x2000;
        for loaded in [
            Loaded {
                end: START,
                ..RIGHT
            },
            Loaded {
                end: START - 0x1000,
                ..RIGHT
            },
            Loaded {
                end: START + 0x2fff,
                ..RIGHT
            },
            Loaded {
                start: START + 8,
                ..RIGHT
            },
            Loaded {
                offset: START - IMAGE + 8,
                ..RIGHT
            },
            Loaded {
                offset: START.wrapping_sub(last),
                entry: last,
                ..RIGHT
            },
            Loaded {
                offset: START.wrapping_add(0x1000),
                entry: 0,
                ..RIGHT
            },
        ] {
            assert!(
                refusal(loaded).contains("pages of user memory"),
                "{:x}",
                loaded.offset
            );
        }
        for entry in [0, IMAGE - 1, IMAGE + 0x3000, u64::MAX] {
            assert!(
                refusal(Loaded { entry, ..RIGHT }).contains("inside its image"),
                "{entry:x}"
            );
        }
    }
}
