//! What the root task finds (ABI page 06).

use crate::profile::THIS;

/// Fixed slots of the root CNode (ABI 06, section 1.2). Dynamic slots start at
/// [`slot::FIRST_DYNAMIC`]; their regions are in [`BootInfo`].
pub mod slot {
    pub const NULL: u64 = 0;
    pub const TCB: u64 = 1;
    pub const CNODE: u64 = 2;
    pub const VSPACE: u64 = 3;
    pub const IRQ_CONTROL: u64 = 4;
    pub const ASID_CONTROL: u64 = 5;
    pub const ASID_POOL: u64 = 6;
    /// x86_64 only: null on aarch64.
    pub const IO_PORT_CONTROL: u64 = 7;
    /// Null without an IOMMU.
    pub const IO_SPACE: u64 = 8;
    pub const BOOT_INFO_FRAME: u64 = 9;
    pub const IPC_BUFFER: u64 = 10;
    pub const DOMAIN: u64 = 11;
    /// SMMU SID and CB control; null in the profile.
    pub const SMMU_SID_CONTROL: u64 = 12;
    pub const SMMU_CB_CONTROL: u64 = 13;
    pub const SCHED_CONTEXT: u64 = 14;
    /// Null in the profile.
    pub const SMC: u64 = 15;
    pub const FIRST_DYNAMIC: u64 = 16;
}

/// Radix of the root CNode (ABI 06, section 1.1); its guard is 64 − radix zeroes.
pub const ROOT_CNODE_RADIX: u32 = THIS.root_cnode_bits;
/// Most untypeds that the boot information describes (ABI 06, section 2).
pub const MAX_UNTYPEDS: usize = 230;
/// Bytes of the boot-information frame.
pub const BOOT_INFO_FRAME_BITS: u32 = 12;

/// Slots `start..end` of the root CNode; empty is (0, 0).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotRegion {
    pub start: u64,
    pub end: u64,
}

impl SlotRegion {
    pub const EMPTY: Self = Self { start: 0, end: 0 };

    /// Number of slots.
    #[inline]
    pub const fn len(self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    #[inline]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

/// One initial untyped (ABI 06, section 2).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UntypedDesc {
    /// Physical address of its first byte.
    pub paddr: u64,
    /// Size as log2 bytes.
    pub size_bits: u8,
    /// 1 for memory that the kernel never touches, which only frames can be made of.
    pub is_device: u8,
    pub padding: [u8; 6],
}

/// The boot-information page (ABI 06, section 2).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootInfo {
    /// Bytes of extra boot information, which starts one page after this one; 0 if none.
    pub extra_len: u64,
    pub node_id: u64,
    /// Cores found and booted.
    pub num_nodes: u64,
    /// All ones on x86_64 without IOMMU support; 0 if it finds none, and on aarch64.
    pub num_io_pt_levels: u64,
    /// Virtual address of the root task's IPC buffer.
    pub ipc_buffer: u64,
    pub empty: SlotRegion,
    pub shared_frames: SlotRegion,
    pub user_image_frames: SlotRegion,
    pub user_image_paging: SlotRegion,
    pub io_space_caps: SlotRegion,
    pub extra_bi_pages: SlotRegion,
    pub init_thread_cnode_size_bits: u64,
    pub init_thread_domain: u64,
    pub sched_control: SlotRegion,
    pub untyped: SlotRegion,
    /// Entry *i* describes slot `untyped.start + i`.
    pub untyped_list: [UntypedDesc; MAX_UNTYPEDS],
}

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<SlotRegion>() == 16);
    assert!(size_of::<UntypedDesc>() == 16);
    assert!(size_of::<BootInfo>() == 3864);
    assert!(offset_of!(BootInfo, ipc_buffer) == 32);
    assert!(offset_of!(BootInfo, empty) == 40);
    assert!(offset_of!(BootInfo, user_image_frames) == 72);
    assert!(offset_of!(BootInfo, user_image_paging) == 88);
    assert!(offset_of!(BootInfo, extra_bi_pages) == 120);
    assert!(offset_of!(BootInfo, init_thread_cnode_size_bits) == 136);
    assert!(offset_of!(BootInfo, init_thread_domain) == 144);
    assert!(offset_of!(BootInfo, sched_control) == 152);
    assert!(offset_of!(BootInfo, untyped) == 168);
    assert!(offset_of!(BootInfo, untyped_list) == 184);
};

/// `num_io_pt_levels` on x86_64 without an IOMMU (ABI 06, section 2; ABI 09, section 2.4).
pub const NO_IOMMU_LEVELS: u64 = if THIS.iommu { 0 } else { u64::MAX };

/// Extra boot information: chunks of a header and a payload, without padding between them, so
/// that chunks after the first may be unaligned (ABI 06, section 4).
pub mod extra {
    pub const PADDING: u64 = 0;
    pub const X86_VBE: u64 = 1;
    pub const X86_MEMORY_MAP: u64 = 2;
    pub const X86_ACPI_RSDP: u64 = 3;
    pub const X86_FRAMEBUFFER: u64 = 4;
    pub const X86_TSC_MHZ: u64 = 5;
    pub const DEVICE_TREE: u64 = 6;
    /// Outside the ABI's numbers, on x86_64: how the clock was measured, a [`Clock`].
    pub const X86_CLOCK: u64 = u64::from_le_bytes(*b"SandClck");
    /// Outside the ABI's numbers, the last of all chunks: what this kernel's time is made of, a [`Timing`].
    pub const TIMING: u64 = u64::from_le_bytes(*b"SandTime");

    /// The head of a chunk: the id, then the length in bytes, head included.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Header {
        pub id: u64,
        pub len: u64,
    }
    pub const HEADER_LEN: usize = 16;
    const _: () = assert!(core::mem::size_of::<Header>() == HEADER_LEN);

    /// The payload of [`TIMING`]: eight numbers of eight bytes. The last four are 0 in a kernel whose binary was not
    /// analysed.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Timing {
        /// Ticks of the clock in a second.
        pub frequency: u64,
        /// What the kernel assumes that its longest path takes, in ticks (ABI 04, section 1).
        pub kernel_wcet: u64,
        /// Least budget and period, in ticks.
        pub min_budget: u64,
        /// Longest period, in ticks.
        pub max_period: u64,
        /// The longest path of this binary without a check for interrupts, in instructions, as it was computed.
        pub path: u64,
        /// What an interrupt may have to wait until whoever waits for it runs, in instructions.
        pub latency: u64,
        /// Both on the platform for which the kernel was built, in ns.
        pub path_ns: u64,
        pub latency_ns: u64,
    }

    /// The payload of [`X86_CLOCK`]: seven numbers of eight bytes.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Clock {
        /// Frequency of the time-stamp counter in Hz, before it was rounded to whole MHz.
        pub hz: u64,
        /// Bounds of it, in Hz: what the measurements leave open, and 100 ppm for the crystals that they rest on.
        pub least_hz: u64,
        pub most_hz: u64,
        /// By what it is known, a bit each ([`clock_source`]).
        pub sources: u64,
        /// Windows of at least 10 ms that were measured, and agree.
        pub windows: u64,
        /// Times that all was measured again, since windows contradicted each other or said too little.
        pub repeated: u64,
        /// What the processor says of its clock and its timer, a bit each ([`clock_flag`]).
        pub flags: u64,
    }

    /// Bits of [`Clock::sources`].
    pub mod clock_source {
        /// What the processor says (CPUID 0x15, 0x16).
        pub const PROCESSOR: u64 = 1 << 0;
        pub const HPET: u64 = 1 << 1;
        /// ACPI's power-management timer.
        pub const POWER_TIMER: u64 = 1 << 2;
        pub const PIT: u64 = 1 << 3;
    }

    /// Bits of [`Clock::flags`].
    pub mod clock_flag {
        /// The time-stamp counter is invariant; if clear, an emulator or a hypervisor does not say so.
        pub const INVARIANT: u64 = 1 << 0;
        /// The timer waits for values of the time-stamp counter (TSC-deadline mode).
        pub const DEADLINE: u64 = 1 << 1;
        /// The timer goes on in the processor's deepest sleep.
        pub const LASTING_TIMER: u64 = 1 << 2;
    }

    /// Whole lengths of chunks, bytes.
    pub const X86_CLOCK_LEN: usize = HEADER_LEN + core::mem::size_of::<Clock>();
    pub const TIMING_LEN: usize = HEADER_LEN + core::mem::size_of::<Timing>();
    pub const X86_VBE_LEN: usize = 800;
    pub const X86_MEMORY_MAP_LEN: usize = 1220;
    pub const X86_ACPI_RSDP_LEN: usize = 52;
    pub const X86_FRAMEBUFFER_LEN: usize = 38;
    pub const X86_TSC_MHZ_LEN: usize = 20;
    /// The memory map: bytes of used entries (u32), then packed entries of u32 size, u64 base,
    /// u64 length, u32 type.
    pub const X86_MEMORY_MAP_ENTRIES: usize = 50;
    pub const X86_MEMORY_MAP_ENTRY_LEN: usize = 24;
    // The length of a DEVICE_TREE is HEADER_LEN and that of the blob.
    const _: () = assert!(
        X86_MEMORY_MAP_LEN == HEADER_LEN + 4 + X86_MEMORY_MAP_ENTRIES * X86_MEMORY_MAP_ENTRY_LEN
    );
}
