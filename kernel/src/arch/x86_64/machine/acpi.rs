//! The few things that the kernel wants to know from ACPI: where the interrupt controllers are, and the
//! clocks of known frequency.
//!
//! Tables are claims of the firmware: every length is checked against what can be read, every
//! checksum against its sum, and every walk ends at the table's length.

/// Bytes at physical addresses.
pub trait PhysicalMemory {
    /// The byte at `paddr`; `None` where there is no memory to read.
    fn byte(&self, paddr: u64) -> Option<u8>;
}

/// Longest table that is looked at, in bytes. QEMU's largest have a few KiB.
const LONGEST_TABLE: u64 = 1 << 16;

/// The first tables carry their RSDP version 1, which is 20 bytes, within the 36 of version 2.
pub const RSDP_V1_LENGTH: u64 = 20;
/// Bytes of the RSDP as boot information has it (06, section 4).
pub const RSDP_LENGTH: usize = 36;

const HEADER_LENGTH: u64 = 36;

/// Where firmware of a PC without a boot loader's word leaves its RSDP.
const RSDP_SEARCH: core::ops::Range<u64> = 0xe_0000..0x10_0000;
const RSDP_STEP: usize = 16;

const MADT_ENTRIES: u64 = 44;
const MADT_LOCAL_APIC: u8 = 0;
const MADT_LOCAL_X2APIC: u8 = 9;
const MADT_IO_APIC: u8 = 1;
const MADT_LOCAL_APIC_ADDRESS: u8 = 5;
/// Flag of a processor that can be used now.
const MADT_ENABLED: u64 = 1 << 0;

/// The local APIC number that stands for all processors in xAPIC mode, and to I/O APICs: what these reach is below.
pub const BROADCAST: u32 = 255;
/// The one that stands for all in x2APIC mode: no processor has it.
pub const NOBODY: u32 = u32::MAX;

/// Why ACPI could not be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// No root pointer with a right checksum.
    NoRsdp,
    /// The root table is not readable, too long, or its sum is wrong.
    BadRoot,
    /// The root table names no readable interrupt-controller table with a right sum.
    NoMadt,
}

impl Error {
    pub const fn message(self) -> &'static str {
        match self {
            Error::NoRsdp => "no ACPI root pointer (RSDP) with a valid checksum",
            Error::BadRoot => "the ACPI root table is not valid",
            Error::NoMadt => "no valid ACPI interrupt-controller table (MADT)",
        }
    }
}

/// The ACPI root pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rsdp {
    paddr: u64,
}

impl Rsdp {
    /// The root pointer at `hint`, if it is one, else the first one in the BIOS area.
    pub fn find(memory: &impl PhysicalMemory, hint: u64) -> Result<Rsdp, Error> {
        core::iter::once(hint)
            .filter(|&paddr| paddr != 0)
            .chain(RSDP_SEARCH.step_by(RSDP_STEP))
            .map(|paddr| Rsdp { paddr })
            .find(|rsdp| rsdp.is_valid(memory))
            .ok_or(Error::NoRsdp)
    }

    fn is_valid(self, memory: &impl PhysicalMemory) -> bool {
        has_bytes(memory, self.paddr, b"RSD PTR ")
            && sum(memory, self.paddr, RSDP_V1_LENGTH) == Some(0)
    }

    /// The first 36 bytes as boot information reports them: those of version 1, and the others
    /// only if the pointer has them.
    pub fn bytes(self, memory: &impl PhysicalMemory) -> [u8; RSDP_LENGTH] {
        let mut bytes = [0; RSDP_LENGTH];
        let length = if self.is_v2(memory) {
            RSDP_LENGTH
        } else {
            RSDP_V1_LENGTH as usize
        };
        for (offset, byte) in bytes.iter_mut().enumerate().take(length) {
            *byte = memory
                .byte(self.paddr.wrapping_add(offset as u64))
                .unwrap_or(0);
        }
        bytes
    }

    fn is_v2(self, memory: &impl PhysicalMemory) -> bool {
        memory
            .byte(self.paddr.wrapping_add(15))
            .is_some_and(|revision| revision >= 2)
            && sum(memory, self.paddr, RSDP_LENGTH as u64) == Some(0)
    }

    /// The root table and the size of its entries: the XSDT of a version 2 pointer, else the
    /// RSDT.
    fn root(self, memory: &impl PhysicalMemory) -> Result<(Table, u64), Error> {
        let xsdt = if self.is_v2(memory) {
            number(memory, self.paddr + 24, 8)
        } else {
            None
        };
        let (paddr, entry) = match xsdt.filter(|&xsdt| xsdt != 0) {
            Some(xsdt) => (xsdt, 8),
            None => (number(memory, self.paddr + 16, 4).ok_or(Error::BadRoot)?, 4),
        };
        Ok((Table::at(memory, paddr).ok_or(Error::BadRoot)?, entry))
    }
}

/// A table that is readable and whose sum is right.
#[derive(Clone, Copy)]
struct Table {
    paddr: u64,
    length: u64,
}

impl Table {
    fn at(memory: &impl PhysicalMemory, paddr: u64) -> Option<Table> {
        let length = number(memory, paddr.checked_add(4)?, 4)?;
        if !(HEADER_LENGTH..=LONGEST_TABLE).contains(&length) {
            return None;
        }
        (sum(memory, paddr, length)? == 0).then_some(Table { paddr, length })
    }

    /// The first table of this name that the root pointer leads to, if there is one.
    #[inline(never)]
    fn named(
        memory: &impl PhysicalMemory,
        rsdp: Rsdp,
        name: [u8; 4],
    ) -> Result<Option<Table>, Error> {
        let (root, size) = rsdp.root(memory)?;
        let mut offset = HEADER_LENGTH;
        while let Some(paddr) = root.number(memory, offset, size) {
            if has_bytes(memory, paddr, &name) {
                if let Some(table) = Table::at(memory, paddr) {
                    return Ok(Some(table));
                }
            }
            offset += size;
        }
        Ok(None)
    }

    /// The little-endian number of `size` bytes at `offset`; `None` past the table's end.
    fn number(self, memory: &impl PhysicalMemory, offset: u64, size: u64) -> Option<u64> {
        if offset.checked_add(size)? > self.length {
            return None;
        }
        number(memory, self.paddr.checked_add(offset)?, size)
    }
}

/// Offsets in the fixed description table (ACPI's specification): the power-management timer's port, and bytes of it.
const FADT_TIMER: u64 = 76;
const FADT_TIMER_LENGTH: u64 = 91;
/// Offsets in HPET's table (its specification): whether its registers are in memory, 0, and where.
const HPET_SPACE: u64 = 40;
const HPET_ADDRESS: u64 = 44;

/// I/O port of ACPI's power-management timer, of 32 bits, if the tables name one.
pub fn power_timer(memory: &impl PhysicalMemory, rsdp: Rsdp) -> Option<u16> {
    let fadt = Table::named(memory, rsdp, *b"FACP").ok()??;
    let port = fadt.number(memory, FADT_TIMER, 4)?;
    let length = fadt.number(memory, FADT_TIMER_LENGTH, 1)?;
    u16::try_from(port)
        .ok()
        .filter(|&port| port != 0 && length == 4)
}

/// Physical address of the registers of the HPET, if the tables name one.
pub fn hpet(memory: &impl PhysicalMemory, rsdp: Rsdp) -> Option<u64> {
    let table = Table::named(memory, rsdp, *b"HPET").ok()??;
    let in_memory = table.number(memory, HPET_SPACE, 1)? == 0;
    let paddr = table.number(memory, HPET_ADDRESS, 8)?;
    (in_memory && paddr != 0).then_some(paddr)
}

/// Where the interrupt controllers are.
#[derive(Clone, Copy)]
pub struct Madt {
    table: Table,
}

impl Madt {
    /// Finds the table through the root pointer.
    pub fn find(memory: &impl PhysicalMemory, rsdp: Rsdp) -> Result<Madt, Error> {
        let table = Table::named(memory, rsdp, *b"APIC")?.ok_or(Error::NoMadt)?;
        Ok(Madt { table })
    }

    /// Physical address of the local APIC.
    pub fn local_apic(self, memory: &impl PhysicalMemory) -> Option<u64> {
        let mut address = self.table.number(memory, HEADER_LENGTH, 4);
        self.each(memory, MADT_LOCAL_APIC_ADDRESS, |entry| {
            if let Some(wide) = self.table.number(memory, entry + 4, 8) {
                address = Some(wide);
            }
        });
        address
    }

    /// Calls `visit` with the local APIC's number of each processor that can be used, and whose number is below `end`; those
    /// with x2APIC entries come last. Entries of the old kind have no number from 255 on. A table that names a processor
    /// twice is wrong.
    pub fn processors(self, memory: &impl PhysicalMemory, end: u32, mut visit: impl FnMut(u32)) {
        let number = |entry, offset, size| self.table.number(memory, entry + offset, size);
        // Where the number stands, its size, where the flags stand, and where the numbers end.
        for (kind, id, size, flags, end) in [
            (MADT_LOCAL_APIC, 3, 1, 4, end.min(BROADCAST)),
            (MADT_LOCAL_X2APIC, 4, 4, 8, end),
        ] {
            self.each(memory, kind, |entry| {
                let enabled =
                    number(entry, flags, 4).is_some_and(|flags| flags & MADT_ENABLED != 0);
                let id = number(entry, id, size).filter(|_| enabled);
                if let Some(id) = id.filter(|&id| id < u64::from(end)) {
                    visit(id as u32);
                }
            });
        }
    }

    /// Calls `visit` with the physical address of each I/O APIC, in the table's order.
    pub fn io_apics(self, memory: &impl PhysicalMemory, mut visit: impl FnMut(u64)) {
        self.each(memory, MADT_IO_APIC, |entry| {
            if let Some(address) = self.table.number(memory, entry + 4, 4) {
                visit(address);
            }
        });
    }

    /// Calls `visit` with the offset of each entry of `kind`. An entry shorter than its own head
    /// ends the walk, which thereby advances by two bytes at least.
    fn each(self, memory: &impl PhysicalMemory, kind: u8, mut visit: impl FnMut(u64)) {
        let mut offset = MADT_ENTRIES;
        while let (Some(found), Some(length @ 2..)) = (
            self.table.number(memory, offset, 1),
            self.table.number(memory, offset + 1, 1),
        ) {
            if found == u64::from(kind) {
                visit(offset);
            }
            offset += length;
        }
    }
}

fn has_bytes(memory: &impl PhysicalMemory, paddr: u64, bytes: &[u8]) -> bool {
    bytes.iter().enumerate().all(|(offset, &byte)| {
        paddr
            .checked_add(offset as u64)
            .and_then(|paddr| memory.byte(paddr))
            == Some(byte)
    })
}

/// The little-endian number of `size` bytes, up to 8, at `paddr`. Not inlined, since it has many
/// callers, and none is in a hurry.
#[inline(never)]
pub(in crate::arch::x86_64) fn number(
    memory: &impl PhysicalMemory,
    paddr: u64,
    size: u64,
) -> Option<u64> {
    let mut value = 0;
    for i in (0..size).rev() {
        value = value << 8 | u64::from(memory.byte(paddr.checked_add(i)?)?);
    }
    Some(value)
}

/// Sum of `length` bytes, modulo 256.
fn sum(memory: &impl PhysicalMemory, paddr: u64, length: u64) -> Option<u8> {
    let mut sum = 0u8;
    for i in 0..length {
        sum = sum.wrapping_add(memory.byte(paddr.checked_add(i)?)?);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::super::bytes::Bytes;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const RSDP_AT: usize = 0xe_0010;
    const RSDT_AT: usize = 0x1000;
    const MADT_AT: usize = 0x2000;

    fn put(memory: &mut Bytes, at: usize, bytes: &[u8]) {
        memory.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Makes the byte at `place` bring the sum of the table to 0.
    fn seal(memory: &mut Bytes, at: usize, length: usize, place: usize) {
        memory.0[place] = 0;
        let sum = sum(memory, at as u64, length as u64).unwrap();
        memory.0[place] = sum.wrapping_neg();
    }

    fn table(memory: &mut Bytes, at: usize, signature: &[u8], body: &[u8]) {
        let length = 36 + body.len();
        put(memory, at, signature);
        put(memory, at + 4, &(length as u32).to_le_bytes());
        put(memory, at + 36, body);
        seal(memory, at, length, at + 9);
    }

    /// A machine with two I/O APICs.
    fn machine() -> Bytes {
        let mut memory = Bytes(vec![0; 0x10_0000]);
        let mut madt = vec![];
        madt.extend(0xfee0_0000u32.to_le_bytes());
        madt.extend([1, 0, 0, 0]);
        madt.extend([0, 8, 0, 0, 1, 0, 0, 0]);
        madt.extend([1, 12, 0, 0, 0, 0, 0xc0, 0xfe, 0, 0, 0, 0]);
        madt.extend([1, 12, 1, 0, 0, 0x10, 0xc0, 0xfe, 24, 0, 0, 0]);
        table(&mut memory, MADT_AT, b"APIC", &madt);
        table(
            &mut memory,
            RSDT_AT,
            b"RSDT",
            &(MADT_AT as u32).to_le_bytes(),
        );
        put(&mut memory, RSDP_AT, b"RSD PTR ");
        put(&mut memory, RSDP_AT + 16, &(RSDT_AT as u32).to_le_bytes());
        seal(&mut memory, RSDP_AT, 20, RSDP_AT + 8);
        memory
    }

    fn io_apics(memory: &Bytes) -> Vec<u64> {
        let madt = Madt::find(memory, Rsdp::find(memory, 0).unwrap()).unwrap();
        let mut found = vec![];
        madt.io_apics(memory, |paddr| found.push(paddr));
        found
    }

    #[test]
    fn the_controllers_are_found() {
        let memory = machine();
        let rsdp = Rsdp::find(&memory, 0).unwrap();
        assert_eq!(rsdp.bytes(&memory)[..8], *b"RSD PTR ");
        let madt = Madt::find(&memory, rsdp).unwrap();
        assert_eq!(madt.local_apic(&memory), Some(0xfee0_0000));
        assert_eq!(io_apics(&memory), [0xfec0_0000, 0xfec0_1000]);
    }

    /// A machine whose root table names one more table.
    fn machine_with(signature: &[u8; 4], body: &[u8]) -> Bytes {
        const AT: usize = 0x3000;
        let mut memory = machine();
        table(&mut memory, AT, signature, body);
        let entries = [MADT_AT as u32, AT as u32].map(u32::to_le_bytes).concat();
        table(&mut memory, RSDT_AT, b"RSDT", &entries);
        memory
    }

    fn clocks(memory: &Bytes) -> (Option<u16>, Option<u64>) {
        let rsdp = Rsdp::find(memory, 0).unwrap();
        (power_timer(memory, rsdp), hpet(memory, rsdp))
    }

    #[test]
    fn clocks_are_found_where_the_tables_name_them() {
        assert_eq!(clocks(&machine()), (None, None));
        // From the end of a table's head on.
        let mut fadt = vec![0; 80];
        fadt[40..44].copy_from_slice(&0x608u32.to_le_bytes());
        fadt[55] = 4;
        assert_eq!(clocks(&machine_with(b"FACP", &fadt)), (Some(0x608), None));
        let mut hpet = vec![0; 20];
        hpet[8..16].copy_from_slice(&0xfed0_0000u64.to_le_bytes());
        let memory = machine_with(b"HPET", &hpet);
        assert_eq!(clocks(&memory), (None, Some(0xfed0_0000)));
    }

    #[test]
    fn clocks_that_are_not_there_or_not_reached_so_are_none() {
        let mut fadt = vec![0; 80];
        fadt[55] = 4;
        assert_eq!(clocks(&machine_with(b"FACP", &fadt)).0, None);
        fadt[40..44].copy_from_slice(&0x1_0608u32.to_le_bytes());
        assert_eq!(clocks(&machine_with(b"FACP", &fadt)).0, None);
        fadt[40..44].copy_from_slice(&0x608u32.to_le_bytes());
        fadt[55] = 0;
        assert_eq!(clocks(&machine_with(b"FACP", &fadt)).0, None);
        assert_eq!(clocks(&machine_with(b"FACP", &fadt[..50])).0, None);
        let mut hpet = vec![0; 20];
        assert_eq!(clocks(&machine_with(b"HPET", &hpet)).1, None);
        // In I/O space.
        hpet[4] = 1;
        hpet[8..16].copy_from_slice(&0xfed0_0000u64.to_le_bytes());
        assert_eq!(clocks(&machine_with(b"HPET", &hpet)).1, None);
    }

    /// The table with these entries behind its own address and flags, in memory of its own.
    fn madt_of(entries: &[u8]) -> (Bytes, Madt) {
        let mut memory = Bytes(vec![0; 0x10_0000]);
        let body = [&[0; 8], entries].concat();
        table(&mut memory, MADT_AT, b"APIC", &body);
        let table = Table::at(&memory, MADT_AT as u64).unwrap();
        (memory, Madt { table })
    }

    fn processors(entries: &[u8], end: u32) -> Vec<u32> {
        let (memory, madt) = madt_of(entries);
        let mut found = vec![];
        madt.processors(&memory, end, |id| found.push(id));
        found
    }

    fn x2apic_entry(id: u32, flags: u32) -> Vec<u8> {
        let words = [id, flags, 0].map(u32::to_le_bytes).concat();
        [vec![9, 16, 0, 0], words].concat()
    }

    /// Enabled, online-capable and not enabled, neither; numbers that stand for all; and an entry cut off before its flags.
    #[test]
    fn processors_are_those_that_can_be_used_and_addressed() {
        const END: u32 = NOBODY;
        let mut entries = vec![];
        for (uid, id, flags) in [(0, 0, 1), (1, 4, 1), (2, 6, 0), (3, 8, 2), (4, 255, 1)] {
            entries.extend([0, 8, uid, id, flags, 0, 0, 0]);
        }
        for (id, flags) in [
            (0x105, 1),
            (254, 1),
            (255, 3),
            (9, 0),
            (10, 2),
            (END, 1),
            (END - 1, 1),
        ] {
            entries.extend(x2apic_entry(id, flags));
        }
        entries.extend([0, 4, 5, 5]);
        assert_eq!(processors(&entries, BROADCAST), [0, 4, 254]);
        let far = [0, 4, 0x105, 254, 255, END - 1];
        assert_eq!(processors(&entries, END), far);
    }

    #[test]
    fn entries_that_are_too_short_or_reach_beyond_the_table_name_nobody() {
        let end = NOBODY;
        let whole = x2apic_entry(300, 1);
        for length in 0..12 {
            assert_eq!(processors(&whole[..length], end), [], "{length} bytes");
        }
        // From its flags on, nothing of it matters.
        for length in 12..16 {
            assert_eq!(processors(&whole[..length], end), [300], "{length} bytes");
        }
        // Without a length, or with that of its kind alone, an entry ends the walk, or the next begins within it.
        for length in [0, 1] {
            let head = [0, length, 0, 7, 1, 0, 0, 0];
            assert_eq!(processors(&[&head, &whole[..]].concat(), end), []);
        }
        let longest = [vec![0x7f, 255], vec![9; 253], whole].concat();
        assert_eq!(processors(&longest, end), [300]);
    }

    #[test]
    fn a_table_of_nothing_but_processors_names_each() {
        let ids: Vec<u32> = (0..4000).map(|i| i * 7).collect();
        let entries: Vec<u8> = ids.iter().flat_map(|&id| x2apic_entry(id, 1)).collect();
        assert_eq!(processors(&entries, u32::MAX), ids);
        let near = ids.iter().filter(|&&id| id < BROADCAST).count();
        assert_eq!(processors(&entries, BROADCAST).len(), near);
    }

    #[test]
    fn a_wrong_hint_does_not_hide_the_root_pointer() {
        let memory = machine();
        assert_eq!(Rsdp::find(&memory, 0x3000), Rsdp::find(&memory, 0));
        assert_eq!(Rsdp::find(&memory, u64::MAX), Rsdp::find(&memory, 0));
    }

    #[test]
    fn wrong_sums_are_refused() {
        for (at, error) in [
            (RSDP_AT + 12, Error::NoRsdp),
            (RSDT_AT + 12, Error::BadRoot),
            (MADT_AT + 12, Error::NoMadt),
        ] {
            let mut memory = machine();
            memory.0[at] ^= 1;
            let found = Rsdp::find(&memory, 0).and_then(|rsdp| Madt::find(&memory, rsdp).map(drop));
            assert_eq!(found, Err(error));
        }
    }

    #[test]
    fn claimed_lengths_are_checked() {
        for length in [0, 35, 0x10_0001, u32::MAX] {
            let mut memory = machine();
            put(&mut memory, RSDT_AT + 4, &length.to_le_bytes());
            let rsdp = Rsdp::find(&memory, 0).unwrap();
            assert_eq!(Madt::find(&memory, rsdp).map(drop), Err(Error::BadRoot));
        }
    }

    #[test]
    fn an_entry_without_length_ends_the_walk() {
        let mut memory = machine();
        memory.0[MADT_AT + 44 + 8 + 1] = 0;
        seal(&mut memory, MADT_AT, 36 + 8 + 32, MADT_AT + 9);
        assert_eq!(io_apics(&memory), [0u64; 0]);
    }
}
