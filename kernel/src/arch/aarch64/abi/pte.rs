//! Entries of translation tables and their levels on aarch64: pure numbers (07, sections 6 and 7). What they say of memory
//! depends on what the machine has in its control registers: [`MAIR`], a granule of 4 KiB, and 48 bits of address.

use crate::cores::CORES;

/// Entries in a table of any level.
pub const ENTRIES: usize = 512;

const VALID: u64 = 1 << 0;
/// At the last level of a page, at others of a table; without it an entry of those is a block.
const TABLE_OR_PAGE: u64 = 1 << 1;
const ATTRIBUTES_SHIFT: u32 = 2;
/// AP[1]: EL0 may access it.
const USER: u64 = 1 << 6;
/// AP[2]: nobody may write it.
const READ_ONLY: u64 = 1 << 7;
const INNER_SHAREABLE: u64 = 0b11 << 8;
const ACCESSED: u64 = 1 << 10;
const NOT_GLOBAL: u64 = 1 << 11;
const PRIVILEGED_EXECUTE_NEVER: u64 = 1 << 53;
const EXECUTE_NEVER: u64 = 1 << 54;
/// Free for software: the entry leads to a paging structure that user level mapped. Only such an
/// entry is ever followed, whatever level it is read at.
const USER_TABLE: u64 = 1 << 55;
const ADDRESS: u64 = 0x0000_ffff_ffff_f000;

/// Numbers of memory types in entries.
const DEVICE: u64 = 0;
const NORMAL: u64 = 1;

/// What MAIR_EL1 must say for the entries here: type 0 is a device's memory (nGnRnE), type 1 is normal memory, write-back,
/// allocating on reads and writes.
pub const MAIR: u64 = 0x00 << (8 * DEVICE) | 0xff << (8 * NORMAL);

/// How normal memory is shared: with other cores, if there are any (07, section 6). The kernel's own entries for the same
/// memory must say the same.
pub const SHAREABILITY: u64 = if CORES > 1 { INNER_SHAREABLE } else { 0 };

/// A level of the four-level table, named by the table that holds the entries: log2 of the
/// bytes that one of these covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Level(u8);

impl Level {
    pub const ROOT: Level = Level(39);
    /// Of the tables below the root, from the top to the bottom.
    pub const BELOW: [Level; 3] = [Level(30), Level(21), Level::LAST];
    /// That of 4 KiB pages.
    pub const LAST: Level = Level(12);

    /// log2 of the bytes that one entry of a table of this level covers.
    #[inline(always)]
    pub const fn entry_bits(self) -> u8 {
        self.0
    }

    /// Whether its tables hold pages of 2^`bits` bytes.
    #[inline(always)]
    pub const fn holds(self, bits: u8) -> bool {
        self.0 == bits
    }

    /// Whether its entries can lead to tables.
    #[inline(always)]
    pub const fn has_tables(self) -> bool {
        self.0 != Level::LAST.0
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
    /// A page or block.
    Page(Page),
}

/// What an entry says of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// Its physical address.
    pub start: u64,
    /// Whether user code may write to it.
    pub is_writable: bool,
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

/// Reads the entry `raw` of a table of any level.
#[inline(always)]
pub const fn decode(raw: u64) -> Entry {
    if raw & VALID == 0 {
        return Entry::Absent;
    }
    if raw & USER_TABLE != 0 {
        return Entry::Table(raw & ADDRESS);
    }
    Entry::Page(Page {
        start: raw & ADDRESS,
        is_writable: raw & USER != 0 && raw & READ_ONLY == 0,
    })
}

/// The entry for a table at `paddr`.
pub const fn table(paddr: u64) -> u64 {
    (paddr & ADDRESS) | USER_TABLE | TABLE_OR_PAGE | VALID
}

/// The entry for a page at `paddr` in a table of `level`; of `attributes`, bits 0 (cacheable) and 2 (execute never)
/// count. The kernel executes none.
#[inline(always)]
pub const fn page(level: Level, paddr: u64, access: Access, attributes: u64) -> u64 {
    use sandglass_abi::vspace::aarch64::attributes as bits;
    let kind = if level.has_tables() { 0 } else { TABLE_OR_PAGE };
    let memory = if attributes & bits::CACHEABLE != 0 {
        NORMAL << ATTRIBUTES_SHIFT | SHAREABILITY
    } else {
        DEVICE << ATTRIBUTES_SHIFT
    };
    let never = if attributes & bits::EXECUTE_NEVER != 0 {
        EXECUTE_NEVER
    } else {
        0
    };
    let rights = match (access.user, access.write) {
        (true, true) => USER,
        (true, false) => USER | READ_ONLY,
        (false, _) => 0,
    };
    (paddr & ADDRESS)
        | kind
        | memory
        | never
        | rights
        | PRIVILEGED_EXECUTE_NEVER
        | NOT_GLOBAL
        | ACCESSED
        | VALID
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
    const PADDR: u64 = 0x0000_5555_4000_0000 | 0x0005_0000_0000_0000 & ADDRESS;

    /// 07, section 6: cacheable and execute never, what makes a page of 4 KiB, and what all pages are.
    #[test]
    fn a_page_has_its_attributes_at_the_bits_of_its_level() {
        let levels = [Level::ROOT].into_iter().chain(Level::BELOW).skip(1);
        for (level, kind) in levels.zip([0, 0, 1 << 1]) {
            for attributes in 0..8 {
                let bit = |number: u64, is: u64| if attributes & number != 0 { is } else { 0 };
                let shared = if CORES > 1 { 0b11 << 8 } else { 0 };
                let memory = bit(1, 1 << 2 | shared) | bit(4, 1 << 54);
                let always = 1 << 53 | 1 << 11 | 1 << 10 | 1;
                let entry = page(level, ADDRESS_AND_MORE, USERS, attributes);
                let right = PADDR | always | kind | memory | 0b01 << 6;
                assert_eq!(entry, right, "{level:?} {attributes}");
                let read = Page {
                    start: PADDR,
                    is_writable: true,
                };
                assert_eq!(decode(entry), Entry::Page(read));
                assert_eq!(child_table(entry), None);
            }
        }
    }

    #[test]
    fn rights_of_a_page_are_its_access_permissions() {
        for (user, write, bits) in [(true, true, 0b01), (true, false, 0b11), (false, true, 0b00)] {
            let entry = page(Level::LAST, PADDR, Access { user, write }, 0);
            assert_eq!(entry >> 6 & 0b11, bits);
            let Entry::Page(page) = decode(entry) else {
                panic!("a page");
            };
            assert_eq!(page.is_writable, user && write);
        }
    }

    #[test]
    fn a_table_is_followed_if_it_is_a_users() {
        let entry = table(ADDRESS_AND_MORE);
        assert_eq!(entry, PADDR | 1 << 55 | 0b11);
        assert_eq!(decode(entry), Entry::Table(PADDR));
        assert_eq!(child_table(entry), Some(PADDR));
        assert_eq!(decode(0), Entry::Absent);
    }

    #[test]
    fn levels_are_those_of_the_abi() {
        let bits = [Level::ROOT].into_iter().chain(Level::BELOW);
        let bits = bits.map(|level| u32::from(level.entry_bits()));
        assert!(bits.eq(sandglass_abi::vspace::aarch64::ENTRY_COVERAGE_BITS));
    }
}
