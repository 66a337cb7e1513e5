//! Profiles: configurations of the ABI, as data (ABI 09, section 1).
//!
//! A program is built for one profile, and so is a kernel; which one is a feature of this crate, named as the
//! profile. What differs is a constant here or follows from one: the labels of [`crate::invocation`], types of
//! objects, what boot information tells. Code does not ask for a profile by its name, only for what it has.

/// Whether a kernel prints and has the debug system calls (ABI 01, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Printing {
    /// The profile leaves it to who builds the kernel.
    Either,
    On,
    Off,
}

/// For how many cores a kernel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// One; or this number, as who builds the kernel says.
    OneOr(u32),
    One,
    /// At most this number.
    Several(u32),
}

impl Nodes {
    /// Most cores that a kernel for several is for.
    pub const fn most(self) -> u32 {
        match self {
            Nodes::One => 1,
            Nodes::OneOr(most) | Nodes::Several(most) => most,
        }
    }
}

/// How many cores a kernel of this crate's profile is for: `several` says whether for one or for more.
pub const fn cores(several: bool) -> usize {
    if several {
        THIS.nodes.most() as usize
    } else {
        1
    }
}

/// A bit for each core of this crate's profile.
#[cfg(any(feature = "microkit-smp-debug", feature = "microkit-smp-release"))]
pub type CoreBits = u16;
/// A bit for each core of this crate's profile.
#[cfg(not(any(feature = "microkit-smp-debug", feature = "microkit-smp-release")))]
pub type CoreBits = u8;

/// Who sets the FS and GS bases of a thread on x86_64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentBases {
    /// The kernel alone: user code has no instruction for it.
    Kernel,
    /// User code, too, with RDFSBASE and the like (ABI 09, section 2.5).
    Instructions,
}

/// How the state of the FPU is kept on x86_64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fpu {
    /// As FXSAVE has it, 512 bytes. User code has no XSAVE.
    Fxsave,
    /// As XSAVE has it: bytes, and the mask of the components that there are.
    Xsave { bytes: u32, features: u64 },
}

/// A configuration of the ABI. What is not here is the same in all (ABI README, profile).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// On the command line, and as a feature of this crate.
    pub name: &'static str,
    /// Who builds programs for it.
    pub about: &'static str,
    /// Whether it exists on aarch64, too: the others are of x86_64.
    pub on_aarch64: bool,
    pub printing: Printing,
    /// Four invocations of threads by which they are watched and stepped (ABI 09, section 3).
    pub hardware_debug: bool,
    /// I/O page tables, and the invocations that go with them (ABI 09, section 4).
    pub iommu: bool,
    /// Radix of the root task's CNode.
    pub root_cnode_bits: u32,
    /// Number of domains (ABI 04, section 11).
    pub domains: u64,
    /// Entries of the domain schedule, the last of which always ends it.
    pub schedule_entries: usize,
    pub nodes: Nodes,
    pub segment_bases: SegmentBases,
    /// On x86_64, a system call by which a thread sets its TLS base.
    pub set_tls_base_call: bool,
    pub fpu: Fpu,
}

/// The configuration that the ABI pages describe.
pub const BASE: Profile = Profile {
    name: "base",
    about: "the configuration of the ABI pages",
    on_aarch64: true,
    printing: Printing::Either,
    hardware_debug: false,
    iommu: false,
    root_cnode_bits: 13,
    domains: 1,
    schedule_entries: 2,
    nodes: Nodes::OneOr(4),
    segment_bases: SegmentBases::Kernel,
    set_tls_base_call: true,
    fpu: Fpu::Fxsave,
};

/// The board `x86_64_generic` of Microkit 2.3, configuration `release`.
pub const MICROKIT_RELEASE: Profile = Profile {
    name: "microkit-release",
    about: "Microkit 2.3, board x86_64_generic, configuration release",
    on_aarch64: false,
    printing: Printing::Off,
    hardware_debug: false,
    iommu: true,
    root_cnode_bits: 17,
    domains: 16,
    schedule_entries: 100,
    nodes: Nodes::One,
    segment_bases: SegmentBases::Instructions,
    set_tls_base_call: false,
    fpu: Fpu::Xsave {
        bytes: 576,
        features: 3,
    },
};

/// Its configuration `debug`.
pub const MICROKIT_DEBUG: Profile = Profile {
    name: "microkit-debug",
    about: "Microkit 2.3, board x86_64_generic, configuration debug",
    printing: Printing::On,
    hardware_debug: true,
    ..MICROKIT_RELEASE
};

/// Its configuration `smp-release`.
pub const MICROKIT_SMP_RELEASE: Profile = Profile {
    name: "microkit-smp-release",
    about: "Microkit 2.3, board x86_64_generic, configuration smp-release",
    domains: 1,
    schedule_entries: 2,
    nodes: Nodes::Several(16),
    ..MICROKIT_RELEASE
};

/// Its configuration `smp-debug`.
pub const MICROKIT_SMP_DEBUG: Profile = Profile {
    name: "microkit-smp-debug",
    about: "Microkit 2.3, board x86_64_generic, configuration smp-debug",
    printing: Printing::On,
    hardware_debug: true,
    ..MICROKIT_SMP_RELEASE
};

/// An option of this kernel, which the ABI does not have: user code has AVX.
pub const AVX: Profile = Profile {
    name: "avx",
    about: "the configuration of the ABI pages, and AVX for user code",
    on_aarch64: false,
    fpu: Fpu::Xsave {
        bytes: 832,
        features: 7,
    },
    ..BASE
};

/// All of them.
pub const ALL: [Profile; 6] = [
    BASE,
    AVX,
    MICROKIT_DEBUG,
    MICROKIT_RELEASE,
    MICROKIT_SMP_DEBUG,
    MICROKIT_SMP_RELEASE,
];

/// The profile that this crate is built for.
pub const THIS: Profile = {
    let chosen = [
        (cfg!(feature = "avx"), AVX),
        (cfg!(feature = "microkit-debug"), MICROKIT_DEBUG),
        (cfg!(feature = "microkit-release"), MICROKIT_RELEASE),
        (cfg!(feature = "microkit-smp-debug"), MICROKIT_SMP_DEBUG),
        (cfg!(feature = "microkit-smp-release"), MICROKIT_SMP_RELEASE),
    ];
    let mut this = BASE;
    let mut count = 0;
    let mut i = 0;
    while i < chosen.len() {
        if chosen[i].0 {
            this = chosen[i].1;
            count += 1;
        }
        i += 1;
    }
    assert!(count <= 1, "one profile at a time");
    this
};

impl Profile {
    /// The profile of this name.
    pub fn named(name: &str) -> Option<&'static Profile> {
        ALL.iter().find(|profile| profile.name == name)
    }
}
