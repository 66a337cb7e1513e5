//! Address spaces (ABI 03, section 8, ABI 06, section 8, ABI 07, sections 6 to 8).

/// x86_64: four levels, 4 KiB, 2 MiB and 1 GiB frames.
pub mod x86_64 {
    /// The kernel's limit for user virtual addresses (ABI 03, section 8).
    pub const USER_TOP: u64 = 0x7fff_ffff_ffff;
    /// libsel4's exclusive end of user memory (ABI 06, section 8).
    pub const USER_TOP_EXCLUSIVE: u64 = 0x7fff_ffff_f000;
    /// The highest 4 KiB page that can be mapped.
    pub const HIGHEST_PAGE: u64 = 0x7fff_ffff_e000;

    /// Where the programs of this user level begin at the lowest. The kernel maps any address, but
    /// what lies below would be hit by null pointers, and, as a segment's descriptor table of the
    /// greatest size, by a processor that was told of one at 0.
    pub const LOWEST_PROGRAM: u64 = 0x1_0000;

    /// Virtual addresses that one table covers, as log2 bytes (ABI 03, section 8.2). A missing table is
    /// reported as MissingCapability with the bits that its own coverage leaves: a missing PDPT
    /// as 39, a page directory as 30, a page table as 21.
    pub const PDPT_COVERAGE_BITS: u32 = 39;
    pub const PAGE_DIRECTORY_COVERAGE_BITS: u32 = 30;
    pub const PAGE_TABLE_COVERAGE_BITS: u32 = 21;
    /// Entries of every table, as a power of two.
    pub const TABLE_INDEX_BITS: u32 = 9;

    /// Attribute word of the Map invocations (ABI 07, section 6).
    pub mod attributes {
        pub const WRITE_BACK: u64 = 0;
        pub const WRITE_THROUGH: u64 = 1;
        pub const UNCACHED_MINUS: u64 = 2;
        pub const UNCACHED: u64 = 3;
        pub const WRITE_COMBINING: u64 = 4;
        /// Bits of the word that mean something: PWT, PCD, PAT.
        pub const MASK: u64 = 0b111;
    }

    /// Address space identifiers (ABI 07, section 8).
    pub const ASID_POOLS: usize = 8;
    pub const ASIDS_PER_POOL: usize = 512;
    pub const ROOT_TASK_ASID: u64 = 1;

    /// Largest `vector` argument of IRQControl_GetIOAPIC and GetMSI (ABI 03, section 7.2).
    pub const MAX_IRQ_VECTOR: u64 = 107;
    /// Kernel interrupt number of a `vector` argument, minus that argument.
    pub const IRQ_USER_OFFSET: u64 = 16;
    /// CPU vector of a `vector` argument, minus that argument; MSI devices must write it.
    pub const IRQ_CPU_VECTOR_OFFSET: u64 = 0x30;
    /// Kernel interrupt numbers run from 0 to this (ABI 06, section 6).
    pub const MAX_IRQ: u64 = 127;
    pub const IRQ_TIMER: u64 = 125;
}

/// aarch64: four levels with a granule of 4 KiB; 4 KiB, 2 MiB and 1 GiB frames.
pub mod aarch64 {
    /// The highest user virtual address (ABI 03, section 9).
    pub const USER_TOP: u64 = 0x7fff_ffff_ffff;
    /// The first address that is no user's (ABI 06, section 8: libsel4's constant, which is inclusive, is
    /// [`USER_TOP`]).
    pub const USER_TOP_EXCLUSIVE: u64 = USER_TOP + 1;
    /// The highest 4 KiB page that can be mapped.
    pub const HIGHEST_PAGE: u64 = 0x7fff_ffff_f000;

    /// Where the programs of this user level begin at the lowest. The kernel maps any address, but
    /// what lies below would be hit by null pointers.
    pub const LOWEST_PROGRAM: u64 = 0x1_0000;

    /// Virtual addresses that an entry of a table covers, as log2 bytes, by level: of the root, and of the three levels
    /// of page tables (ABI 07, section 7). A level that is not the right one is reported as MissingCapability with
    /// its bits (ABI 03, section 9.3).
    pub const ENTRY_COVERAGE_BITS: [u32; 4] = [39, 30, 21, 12];
    /// Entries of every table, as a power of two.
    pub const TABLE_INDEX_BITS: u32 = 9;

    /// Attribute word of Page_Map (ABI 07, section 6).
    pub mod attributes {
        /// Normal memory, write-back; a device's (nGnRnE) without it.
        pub const CACHEABLE: u64 = 1 << 0;
        /// Ignored.
        pub const PARITY: u64 = 1 << 1;
        /// User code is not executed there.
        pub const EXECUTE_NEVER: u64 = 1 << 2;
        /// libsel4's default.
        pub const DEFAULT: u64 = CACHEABLE | PARITY;
    }

    /// Address space identifiers (ABI 07, section 8).
    pub const ASID_POOLS: usize = 128;
    pub const ASIDS_PER_POOL: usize = 512;
    pub const ROOT_TASK_ASID: u64 = 1;

    /// Physical addresses that are handed out end here (ABI 06, section 5).
    pub const DEVICE_TOP: u64 = 1 << 40;

    /// Interrupt numbers are those of the GIC, from 0 to this (ABI 06, section 7).
    pub const MAX_IRQ: u64 = 159;
    /// On Xilinx's Zynq UltraScale+, which has more devices, to this: the profile is that of QEMU's `virt`.
    pub const MAX_IRQ_ZYNQMP: u64 = 187;
    /// Numbers below are software-generated interrupts.
    pub const FIRST_PPI: u64 = 16;
    /// Numbers below are private to a core.
    pub const FIRST_SPI: u64 = 32;
    /// The kernel's timer: the virtual one.
    pub const IRQ_TIMER: u64 = 27;
    /// Software-generated interrupts, and the highest target of one that a GICv2 and a GICv3 know (ABI 03,
    /// section 7.5).
    pub const SGIS: u64 = 16;
    pub const MAX_SGI_TARGET_GICV2: u64 = 7;
    pub const MAX_SGI_TARGET_GICV3: u64 = u32::MAX as u64;
}
