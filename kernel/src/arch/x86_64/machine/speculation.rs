//! What a build of the kernel does against speculation, and what of it a processor makes possible or needless. Pure: from
//! what the processor says of itself to what is done.
//!
//! The numbers of bits are those of Intel's manual, volume 4, table 2-2 (`IA32_ARCH_CAPABILITIES`, `IA32_SPEC_CTRL`) and
//! volume 2, CPUID leaf 7, and of AMD's manual, volume 3, appendix E (CPUID 8000_0008 and 8000_0021).

/// What is asked for, each by a feature of the build.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Other predictions of indirect branches for each address space: a barrier at a switch.
    pub ibpb: bool,
    /// Predictions that user code has made are not the kernel's.
    pub ibrs: bool,
    /// Nor those of the other hardware thread of the core, which the kernel does not start.
    pub stibp: bool,
    /// No load passes a store whose address is not known yet.
    pub ssbd: bool,
    /// Buffers are empty when user code runs.
    pub verw: bool,
    /// The first data cache is empty when another address space runs.
    pub l1d: bool,
    /// Predictions of returns lead nowhere when another address space runs.
    pub rsb: bool,
    /// All that is asked for is done, whatever the processor says: for emulators, which say nothing and ignore it.
    pub assumed: bool,
}

/// What this kernel was built with.
pub const ASKED: Asked = Asked {
    ibpb: cfg!(feature = "speculation-ibpb"),
    ibrs: cfg!(feature = "speculation-ibrs"),
    stibp: cfg!(feature = "speculation-stibp"),
    ssbd: cfg!(feature = "speculation-ssbd"),
    verw: cfg!(feature = "speculation-verw"),
    l1d: cfg!(feature = "speculation-l1d"),
    rsb: cfg!(feature = "speculation-rsb"),
    assumed: cfg!(feature = "speculation-assumed"),
};

impl Asked {
    /// Something is done when user code of another address space than before is to run.
    pub const AT_SWITCH: bool = ASKED.ibpb || ASKED.l1d || ASKED.rsb;
    /// A register controls speculation.
    pub const CONTROL: bool = ASKED.ibrs || ASKED.stibp || ASKED.ssbd;
    /// Anything is asked for.
    pub const ANY: bool = Self::AT_SWITCH || Self::CONTROL || ASKED.verw;
}

// What a core does, time and again: bits of `Plan::actions`.

/// At a switch: the barrier for predictions of indirect branches (`IA32_PRED_CMD`, bit 0).
pub const BARRIER: u32 = 1 << 0;
/// At a switch: the first data cache is flushed (`IA32_FLUSH_CMD`, bit 0).
pub const FLUSH: u32 = 1 << 1;
/// At a switch: the stack of returns is filled with harmless ones.
pub const FILL_RETURNS: u32 = 1 << 2;
/// At each entry and exit: `IA32_SPEC_CTRL` has another value in the kernel.
pub const CONTROL: u32 = 1 << 3;
/// At each exit: VERW, which empties buffers.
pub const CLEAR: u32 = 1 << 4;

/// Bits of `IA32_SPEC_CTRL`.
const IBRS: u32 = 1 << 0;
const STIBP: u32 = 1 << 1;
const SSBD: u32 = 1 << 2;

/// What a core does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Plan {
    pub actions: u32,
    /// `IA32_SPEC_CTRL` in the kernel, and in user code.
    pub kernel_control: u32,
    pub user_control: u32,
    /// The register is there.
    pub has_control: bool,
    /// AMD's automatic IBRS, a bit of EFER.
    pub automatic: bool,
    /// What is asked for and needed, as far as the processor says, and not there.
    pub missing: Missing,
}

/// Names of what is missing, in the order of the options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Missing(pub [Option<&'static str>; 6]);

/// What a processor says of itself; 0 where it has no such leaf or register.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Processor {
    /// Made by AMD, or by Hygon to its plans.
    pub is_amd: bool,
    /// Family with the extended one, of CPUID 1.
    pub family: u32,
    /// CPUID 7, EBX and EDX.
    pub features_ebx: u32,
    pub features_edx: u32,
    /// CPUID 8000_0008, EBX.
    pub amd_ebx: u32,
    /// CPUID 8000_0021, EAX and ECX.
    pub amd_eax21: u32,
    pub amd_ecx21: u32,
    /// `IA32_ARCH_CAPABILITIES`.
    pub capabilities: u64,
}

/// CPUID 7, EBX.
const EBX_RTM: u32 = 1 << 11;
/// CPUID 7, EDX.
const EDX_MD_CLEAR: u32 = 1 << 10;
const EDX_IBRS_IBPB: u32 = 1 << 26;
const EDX_STIBP: u32 = 1 << 27;
const EDX_L1D_FLUSH: u32 = 1 << 28;
pub const EDX_CAPABILITIES: u32 = 1 << 29;
const EDX_SSBD: u32 = 1 << 31;
/// CPUID 8000_0008, EBX.
const AMD_IBPB: u32 = 1 << 12;
const AMD_IBRS: u32 = 1 << 14;
const AMD_STIBP: u32 = 1 << 15;
const AMD_IBRS_ALWAYS: u32 = 1 << 16;
const AMD_SSBD: u32 = 1 << 24;
const AMD_SSB_NO: u32 = 1 << 26;
const AMD_IBPB_RETURNS: u32 = 1 << 30;
/// CPUID 8000_0021, EAX and ECX.
const AMD_VERW: u32 = 1 << 5;
const AMD_AUTOMATIC: u32 = 1 << 8;
const AMD_TSA_NO: u32 = 1 << 1 | 1 << 2;
/// `IA32_ARCH_CAPABILITIES`.
const RDCL_NO: u64 = 1 << 0;
const IBRS_ALL: u64 = 1 << 1;
const SSB_NO: u64 = 1 << 4;
const MDS_NO: u64 = 1 << 5;
const TAA_NO: u64 = 1 << 8;
/// SBDR_SSDP_NO, FBSDP_NO, PSDP_NO: the three ways of stale data of MMIO.
const MMIO_NO: u64 = 1 << 13 | 1 << 14 | 1 << 15;
const FB_CLEAR: u64 = 1 << 17;
const RFDS_NO: u64 = 1 << 27;
const RFDS_CLEAR: u64 = 1 << 28;

/// The family that EAX of CPUID 1 says, with the extended one.
pub fn family(version: u32) -> u32 {
    match version >> 8 & 0xf {
        0xf => (version >> 20 & 0xff).wrapping_add(0xf),
        family => family,
    }
}

impl Processor {
    /// One of which everything that is asked for is expected. IBRS is the kind that costs at each entry.
    pub const ASSUMED: Processor = Processor {
        is_amd: false,
        family: 6,
        features_ebx: 0,
        features_edx: EDX_MD_CLEAR | EDX_IBRS_IBPB | EDX_STIBP | EDX_L1D_FLUSH | EDX_SSBD,
        amd_ebx: 0,
        amd_eax21: 0,
        amd_ecx21: 0,
        capabilities: 0,
    };

    fn has(&self, intel: u32, amd: u32) -> bool {
        self.features_edx & intel != 0 || self.amd_ebx & amd != 0
    }

    fn says(&self, what: u64) -> bool {
        self.capabilities & what == what
    }

    /// User code may read what is mapped for the kernel alone (Meltdown; Intel's *Rogue Data Cache Load*): unless the processor
    /// says that it does not, or is of those that never did.
    pub fn leaks_what_is_mapped(&self) -> bool {
        !self.is_amd && !self.says(RDCL_NO)
    }

    /// Nothing stays in buffers that VERW would empty: the processor says so.
    fn leaves_nothing(&self) -> bool {
        const ZEN_3_AND_4: u32 = 0x19;
        if self.is_amd {
            return self.family != ZEN_3_AND_4 || self.amd_ecx21 & AMD_TSA_NO == AMD_TSA_NO;
        }
        let no_aborts = self.features_ebx & EBX_RTM == 0 || self.says(TAA_NO);
        no_aborts && self.says(MDS_NO | MMIO_NO | RFDS_NO)
    }

    /// VERW empties buffers.
    fn clears(&self) -> bool {
        self.features_edx & EDX_MD_CLEAR != 0
            || self.capabilities & (FB_CLEAR | RFDS_CLEAR) != 0
            || self.amd_eax21 & AMD_VERW != 0
    }

    /// IBRS need be set only once.
    fn has_lasting_ibrs(&self) -> bool {
        self.says(IBRS_ALL) || self.amd_ebx & AMD_IBRS_ALWAYS != 0
    }

    fn has_ibrs(&self) -> bool {
        self.has(EDX_IBRS_IBPB, AMD_IBRS)
    }

    /// What this processor does of what is asked for.
    pub fn plan(&self, asked: &Asked) -> Plan {
        let mut plan = Plan::default();
        let barrier = self.has(EDX_IBRS_IBPB, AMD_IBPB);
        plan.act(asked.ibpb && barrier, BARRIER);
        plan.act(asked.l1d && self.has(EDX_L1D_FLUSH, 0), FLUSH);
        // One barrier is for returns, too.
        let by_barrier = asked.ibpb && barrier && self.amd_ebx & AMD_IBPB_RETURNS != 0;
        plan.act(asked.rsb && !by_barrier, FILL_RETURNS);
        plan.act(asked.verw && self.clears() && !self.leaves_nothing(), CLEAR);
        self.plan_control(asked, &mut plan);
        plan.missing = self.missing(asked);
        plan
    }

    /// The register, and automatic IBRS in its place.
    fn plan_control(&self, asked: &Asked, plan: &mut Plan) {
        plan.automatic = asked.ibrs && self.amd_eax21 & AMD_AUTOMATIC != 0;
        plan.has_control = self.has_ibrs() || self.has(EDX_STIBP | EDX_SSBD, AMD_STIBP | AMD_SSBD);
        let mut always = 0;
        if asked.stibp && self.has(EDX_STIBP, AMD_STIBP) {
            always |= STIBP;
        }
        if asked.ssbd && self.has(EDX_SSBD, AMD_SSBD) && !self.passes_no_store() {
            always |= SSBD;
        }
        let ibrs = asked.ibrs && self.has_ibrs() && !plan.automatic;
        if ibrs && self.has_lasting_ibrs() {
            always |= IBRS;
        }
        (plan.kernel_control, plan.user_control) = (always, always);
        if ibrs && !self.has_lasting_ibrs() {
            plan.kernel_control |= IBRS;
            plan.act(true, CONTROL);
        }
    }

    fn passes_no_store(&self) -> bool {
        self.says(SSB_NO) || self.amd_ebx & AMD_SSB_NO != 0
    }

    /// What of `asked` is not there, and not needless either, as far as the processor says.
    fn missing(&self, asked: &Asked) -> Missing {
        let automatic = self.amd_eax21 & AMD_AUTOMATIC != 0;
        let unless = |asked: bool, fine: bool, name| (asked && !fine).then_some(name);
        Missing([
            unless(asked.ibpb, self.has(EDX_IBRS_IBPB, AMD_IBPB), "ibpb"),
            unless(asked.ibrs, automatic || self.has_ibrs(), "ibrs"),
            unless(asked.stibp, self.has(EDX_STIBP, AMD_STIBP), "stibp"),
            unless(
                asked.ssbd,
                self.has(EDX_SSBD, AMD_SSBD) || self.passes_no_store(),
                "ssbd",
            ),
            unless(asked.verw, self.clears() || self.leaves_nothing(), "verw"),
            unless(asked.l1d, self.has(EDX_L1D_FLUSH, 0), "l1d"),
        ])
    }
}

impl Plan {
    fn act(&mut self, condition: bool, action: u32) {
        if condition {
            self.actions |= action;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const ALL: Asked = Asked {
        ibpb: true,
        ibrs: true,
        stibp: true,
        ssbd: true,
        verw: true,
        l1d: true,
        rsb: true,
        assumed: false,
    };
    const NOTHING: Asked = Asked {
        ibpb: false,
        ibrs: false,
        stibp: false,
        ssbd: false,
        verw: false,
        l1d: false,
        rsb: false,
        assumed: false,
    };

    /// Intel's controls of leaf 7, after the microcode of 2018, and MD_CLEAR of 2019.
    const CONTROLS: u32 = EDX_IBRS_IBPB | EDX_STIBP | EDX_SSBD | EDX_L1D_FLUSH;

    fn intel(features_edx: u32, features_ebx: u32, capabilities: u64) -> Processor {
        let told = if capabilities == 0 {
            0
        } else {
            EDX_CAPABILITIES
        };
        Processor {
            family: 6,
            features_edx: features_edx | told,
            features_ebx,
            capabilities,
            ..Processor::default()
        }
    }

    fn amd(family: u32, amd_ebx: u32, amd_eax21: u32, amd_ecx21: u32) -> Processor {
        Processor {
            is_amd: true,
            family,
            amd_ebx,
            amd_eax21,
            amd_ecx21,
            ..Processor::default()
        }
    }

    fn missing(plan: &Plan) -> Vec<&'static str> {
        plan.missing.0.into_iter().flatten().collect()
    }

    #[test]
    fn a_processor_without_controls_is_said_to_lack_them() {
        // Nehalem, and Skylake with the microcode that it was sold with.
        for processor in [intel(0, 0, 0), intel(0, EBX_RTM, 0)] {
            let plan = processor.plan(&ALL);
            assert_eq!(plan.actions, FILL_RETURNS);
            assert!(!plan.has_control && !plan.automatic);
            assert_eq!(
                missing(&plan),
                ["ibpb", "ibrs", "stibp", "ssbd", "verw", "l1d"]
            );
        }
    }

    #[test]
    fn what_is_mapped_is_safe_with_who_says_so_and_with_amd() {
        assert!(intel(0, 0, 0).leaks_what_is_mapped());
        assert!(intel(CONTROLS, EBX_RTM, IBRS_ALL).leaks_what_is_mapped());
        assert!(!intel(CONTROLS, EBX_RTM, IBRS_ALL | RDCL_NO).leaks_what_is_mapped());
        let amd = Processor {
            is_amd: true,
            ..intel(0, 0, 0)
        };
        assert!(!amd.leaks_what_is_mapped());
    }

    #[test]
    fn skylake_switches_ibrs_and_does_everything() {
        // Client and server (with RTM) say the same: MD_CLEAR, and capabilities without a word of safety (RSBA, bit 2).
        for rtm in [0, EBX_RTM] {
            let plan = intel(CONTROLS | EDX_MD_CLEAR, rtm, 1 << 2).plan(&ALL);
            assert_eq!(
                plan.actions,
                BARRIER | FLUSH | FILL_RETURNS | CONTROL | CLEAR
            );
            assert_eq!(
                (plan.kernel_control, plan.user_control),
                (IBRS | STIBP | SSBD, STIBP | SSBD)
            );
            assert_eq!(missing(&plan), [""; 0]);
        }
    }

    #[test]
    fn ice_lake_sets_ibrs_once_and_empties_buffers_for_devices_data() {
        // RDCL_NO, IBRS_ALL, SKIP_L1DFL_VMENTRY, MDS_NO, and PSCHANGE_MC_NO; with FB_CLEAR (bit 17) since 2022.
        let before = 1 | IBRS_ALL | 1 << 3 | MDS_NO | 1 << 6 | TAA_NO;
        let old = intel(CONTROLS, EBX_RTM, before).plan(&ALL);
        assert_eq!(old.actions, BARRIER | FLUSH | FILL_RETURNS);
        assert_eq!(old.kernel_control, IBRS | STIBP | SSBD);
        assert_eq!(old.user_control, old.kernel_control);
        assert_eq!(missing(&old), ["verw"]);
        let new = intel(CONTROLS, EBX_RTM, before | FB_CLEAR).plan(&ALL);
        assert_eq!(new.actions, old.actions | CLEAR);
        assert_eq!(missing(&new), [""; 0]);
    }

    #[test]
    fn who_is_not_affected_needs_no_verw() {
        // Sapphire Rapids, with all that it says.
        let safe = 1 | IBRS_ALL | 1 << 3 | MDS_NO | TAA_NO | MMIO_NO | FB_CLEAR | RFDS_NO;
        let of = |capabilities| intel(CONTROLS | EDX_MD_CLEAR, EBX_RTM, capabilities).plan(&ALL);
        assert_eq!(of(safe).actions & CLEAR, 0);
        assert_eq!(missing(&of(safe)), [""; 0]);
        for doubt in [MDS_NO, TAA_NO, 1 << 13, 1 << 14, 1 << 15, RFDS_NO] {
            assert_eq!(of(safe & !doubt).actions & CLEAR, CLEAR, "{doubt:#x}");
        }
        // Without transactions, none is aborted.
        let none = intel(CONTROLS | EDX_MD_CLEAR, 0, safe & !TAA_NO).plan(&ALL);
        assert_eq!(none.actions & CLEAR, 0);
        // Atoms of Gracemont's kind have their own.
        let atom = intel(CONTROLS, 0, safe & !(RFDS_NO | FB_CLEAR) | RFDS_CLEAR).plan(&ALL);
        assert_eq!(atom.actions & CLEAR, CLEAR);
    }

    #[test]
    fn who_lets_no_load_pass_needs_no_ssbd() {
        let ssbd = Asked {
            ssbd: true,
            ..NOTHING
        };
        let safe = intel(EDX_SSBD, 0, SSB_NO).plan(&ssbd);
        assert_eq!((safe.user_control, missing(&safe).len()), (0, 0));
        let affected = intel(EDX_SSBD, 0, 0).plan(&ssbd);
        assert_eq!(
            (affected.user_control, affected.kernel_control),
            (SSBD, SSBD)
        );
        let amd = amd(0x1a, AMD_SSBD | AMD_SSB_NO, 0, 0).plan(&ssbd);
        assert_eq!((amd.user_control, missing(&amd).len()), (0, 0));
    }

    #[test]
    fn epyc_has_its_own_bits() {
        // Naples (Zen 1): the barrier alone. Its SSBD is a register of its own, which is not driven.
        let naples = amd(0x17, AMD_IBPB, 0, 0).plan(&ALL);
        assert_eq!(naples.actions, BARRIER | FILL_RETURNS);
        assert_eq!(missing(&naples), ["ibrs", "stibp", "ssbd", "l1d"]);
        // Rome (Zen 2): IBRS that must be switched.
        let rome = amd(0x17, AMD_IBPB | AMD_IBRS | AMD_STIBP | AMD_SSBD, 0, 0).plan(&ALL);
        assert_eq!(rome.actions, BARRIER | FILL_RETURNS | CONTROL);
        assert_eq!(missing(&rome), ["l1d"]);
        // Milan (Zen 3): affected by TSA; VERW empties with the microcode of 2025, and says so.
        let milan = AMD_IBPB | AMD_IBRS | AMD_STIBP | AMD_IBRS_ALWAYS | AMD_SSBD;
        let old = amd(0x19, milan, 0, 0).plan(&ALL);
        assert_eq!(missing(&old), ["verw", "l1d"]);
        let new = amd(0x19, milan, AMD_VERW, 0).plan(&ALL);
        assert_eq!(new.actions, BARRIER | FILL_RETURNS | CLEAR);
        assert_eq!(new.kernel_control, new.user_control);
        assert_eq!(missing(&new), ["l1d"]);
    }

    #[test]
    fn zen_4_and_5_have_automatic_ibrs_and_a_barrier_for_returns() {
        let ebx = AMD_IBPB | AMD_IBRS | AMD_STIBP | AMD_SSBD | AMD_IBPB_RETURNS;
        let genoa = amd(0x19, ebx, AMD_AUTOMATIC | AMD_VERW, 0).plan(&ALL);
        assert!(genoa.automatic);
        assert_eq!(genoa.actions, BARRIER | CLEAR);
        assert_eq!(genoa.kernel_control, STIBP | SSBD);
        let turin = amd(0x1a, ebx, AMD_AUTOMATIC, 0).plan(&ALL);
        assert_eq!(turin.actions, BARRIER);
        assert_eq!(missing(&turin), ["l1d"]);
        // Without the barrier, returns need their own.
        let alone = Asked {
            rsb: true,
            ..NOTHING
        };
        assert_eq!(amd(0x1a, ebx, 0, 0).plan(&alone).actions, FILL_RETURNS);
    }

    #[test]
    fn families_are_with_their_extension() {
        // Skylake, Rome, Milan, Turin.
        let families = [0x506e3, 0x0083_0f10, 0x00a0_0f11, 0x00b0_0f21].map(family);
        assert_eq!(families, [6, 0x17, 0x19, 0x1a]);
    }

    #[test]
    fn nothing_is_done_unasked() {
        for processor in [
            Processor::ASSUMED,
            amd(0x19, u32::MAX, u32::MAX, 0),
            intel(u32::MAX, 0, IBRS_ALL),
        ] {
            let plan = processor.plan(&NOTHING);
            assert_eq!((plan.actions, plan.user_control), (0, 0));
            assert_eq!((plan.kernel_control, plan.automatic), (0, false));
            assert_eq!(missing(&plan), [""; 0]);
        }
    }

    #[test]
    fn what_is_assumed_is_all() {
        let plan = Processor::ASSUMED.plan(&ALL);
        assert_eq!(
            plan.actions,
            BARRIER | FLUSH | FILL_RETURNS | CONTROL | CLEAR
        );
        assert_eq!(missing(&plan), [""; 0]);
    }
}
