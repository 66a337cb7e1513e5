//! Page-table entries and paging levels of x86_64: pure numbers (07, sections 6 and 7).

/// Entries in a table of any level.
pub const ENTRIES: usize = 512;

const PRESENT: u64 = 1 << 0;
const WRITE: u64 = 1 << 1;
const USER: u64 = 1 << 2;
const PWT: u64 = 1 << 3;
const PCD: u64 = 1 << 4;
const LARGE: u64 = 1 << 7;
const PAT_SMALL: u64 = 1 << 7;
const PAT_LARGE: u64 = 1 << 12;
/// Reserved, unless the processor is told that it means: nothing below this entry is executed.
/// User entries never have it (07, section 6).
pub const NO_EXECUTE: u64 = 1 << 63;
/// Free for software: the entry leads to a paging structure that user level mapped. Only such an
/// entry is ever followed, whatever level it is read at.
const USER_TABLE: u64 = 1 << 9;
const ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// A level of the four-level page table, named by the table that holds the entries: log2 of the
/// bytes that one of these covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level(u8);

impl Level {
    pub const PML4: Level = Level(39);
    pub const PDPT: Level = Level(30);
    pub const PAGE_DIRECTORY: Level = Level(21);
    pub const PAGE_TABLE: Level = Level(12);

    /// log2 of the bytes that one entry of a table of this level covers.
    #[inline(always)]
    pub const fn entry_bits(self) -> u8 {
        self.0
    }

    /// The level whose tables hold pages of 2^`bits` bytes: 12, 21 or 30.
    #[inline(always)]
    pub const fn of_page(bits: u8) -> Level {
        Level(bits)
    }

    /// Index of `vaddr` in a table of this level, below [`ENTRIES`].
    #[inline(always)]
    pub const fn index(self, vaddr: u64) -> usize {
        (vaddr.wrapping_shr(self.0 as u32) & 0x1ff) as usize
    }
}

/// What an entry says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    Absent,
    /// The next table, at this physical address.
    Table(u64),
    /// A page, at this physical address (cut to 4 KiB, so bit 12 of a large page may be its PAT).
    Page(u64),
}

/// Rights of a mapping (07, section 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    pub user: bool,
    pub write: bool,
}

/// The address of the table that the entry `raw` leads to, at whatever level.
#[inline(always)]
pub const fn child_table(raw: u64) -> Option<u64> {
    if raw & USER_TABLE != 0 {
        Some(raw & ADDRESS)
    } else {
        None
    }
}

/// Reads the entry `raw` of a table of `level`.
#[inline(always)]
pub const fn decode(level: Level, raw: u64) -> Entry {
    if raw & PRESENT == 0 {
        return Entry::Absent;
    }
    if raw & USER_TABLE != 0 {
        return Entry::Table(raw & ADDRESS);
    }
    match level {
        // The kernel's own entry.
        Level::PML4 => Entry::Absent,
        Level::PAGE_TABLE => Entry::Page(raw & ADDRESS),
        _ => Entry::Page(raw & ADDRESS & !PAT_LARGE),
    }
}

/// The entry for a table at `paddr`; of `attributes`, bits 0 (PWT) and 1 (PCD) count.
pub const fn table(paddr: u64, attributes: u64) -> u64 {
    (paddr & ADDRESS) | cache_bits(attributes) | USER_TABLE | USER | WRITE | PRESENT
}

/// The entry for a table at `paddr` below which nothing is for users.
pub const fn kernel_table(paddr: u64) -> u64 {
    (paddr & ADDRESS) | WRITE | PRESENT
}

/// The entry for a page at `paddr` in a table of `level`; of `attributes`, bits 0 (PWT), 1 (PCD)
/// and, but for 1 GiB pages, 2 (PAT) count.
#[inline(always)]
pub const fn page(level: Level, paddr: u64, access: Access, attributes: u64) -> u64 {
    let pat = attributes & 4 != 0;
    let size = match level {
        Level::PAGE_TABLE if pat => PAT_SMALL,
        Level::PAGE_TABLE => 0,
        Level::PAGE_DIRECTORY if pat => LARGE | PAT_LARGE,
        _ => LARGE,
    };
    let user = if access.user { USER } else { 0 };
    let write = if access.write { WRITE } else { 0 };
    (paddr & ADDRESS) | cache_bits(attributes) | size | user | write | PRESENT
}

const fn cache_bits(attributes: u64) -> u64 {
    (if attributes & 1 != 0 { PWT } else { 0 }) | (if attributes & 2 != 0 { PCD } else { 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: Access = Access {
        user: true,
        write: true,
    };
    /// Aligned to 1 GiB; above its bits those that no address has.
    const ADDRESS_AND_MORE: u64 = 0xfff5_5555_4000_0000;
    const PADDR: u64 = 0x0005_5555_4000_0000;

    /// 07, section 6: write-through, cache disabled and PAT, and what makes a page large.
    #[test]
    fn a_page_has_its_attributes_at_the_bits_of_its_level() {
        for (level, size, pat) in [
            (Level::PAGE_TABLE, 0, 1 << 7),
            (Level::PAGE_DIRECTORY, 1 << 7, 1 << 12),
            (Level::PDPT, 1 << 7, 0),
        ] {
            for attributes in 0..8 {
                let bit = |number: u64, is: u64| if attributes & number != 0 { is } else { 0 };
                let kind = size | bit(1, 1 << 3) | bit(2, 1 << 4) | bit(4, pat);
                let entry = page(level, ADDRESS_AND_MORE, USERS, attributes);
                assert_eq!(entry, PADDR | kind | 0b111, "{level:?} {attributes}");
                assert_eq!(decode(level, entry), Entry::Page(PADDR));
                assert_eq!(child_table(entry), None);
            }
        }
    }

    #[test]
    fn rights_of_a_page_are_its_users_and_write_bits() {
        for (user, write, bits) in [
            (true, true, 0b111),
            (true, false, 0b101),
            (false, true, 0b11),
        ] {
            let access = Access { user, write };
            assert_eq!(page(Level::PAGE_TABLE, PADDR, access, 0), PADDR | bits);
        }
    }

    #[test]
    fn a_table_is_followed_if_it_is_a_users() {
        for level in [Level::PML4, Level::PDPT, Level::PAGE_DIRECTORY] {
            for (attributes, bits) in [(0, 0), (1, 1 << 3), (2, 1 << 4), (7, 0b11 << 3)] {
                let entry = table(ADDRESS_AND_MORE, attributes);
                assert_eq!(entry, PADDR | bits | USER_TABLE | 0b111);
                assert_eq!(decode(level, entry), Entry::Table(PADDR));
                assert_eq!(child_table(entry), Some(PADDR));
            }
        }
        let kernels = kernel_table(ADDRESS_AND_MORE);
        assert_eq!(kernels, PADDR | 0b11);
        assert_eq!(decode(Level::PML4, kernels), Entry::Absent);
        assert_eq!(child_table(kernels), None);
        assert_eq!(decode(Level::PAGE_TABLE, 0), Entry::Absent);
    }
}
