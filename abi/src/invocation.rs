//! Invocation labels (ABI 03, section 2; ABI 09, section 2.2): tables from which the numbers follow, since what a
//! profile has shifts all that come behind.

use crate::profile::{Profile, THIS};

/// Label 0, which no object understands.
pub const INVALID: u64 = 0;

/// What a profile must have for an invocation to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Always,
    HardwareDebug,
    Iommu,
}

/// An invocation in the order of the labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// As in ABI 03, section 2.
    pub name: &'static str,
    /// What descriptions of a kernel for x86_64 call it (ABI 09, section 2.2); empty for what only aarch64 has.
    pub key: &'static str,
    pub condition: Condition,
}

impl Label {
    /// Whether a kernel of `profile` has it.
    pub const fn exists_in(self, profile: &Profile) -> bool {
        match self.condition {
            Condition::Always => true,
            Condition::HardwareDebug => profile.hardware_debug,
            Condition::Iommu => profile.iommu,
        }
    }
}

/// How many of the first `end` of `labels` a profile has.
const fn count(profile: &Profile, labels: &[Label], end: usize) -> u64 {
    let mut count = 0;
    let mut i = 0;
    while i < end {
        if labels[i].exists_in(profile) {
            count += 1;
        }
        i += 1;
    }
    count
}

/// The number of entry `place` of `labels`, of which the first that exists is `first`. Where a profile has no such
/// invocation, it is a number that no message can have (a label has 52 bits), and another for each.
const fn number(profile: &Profile, labels: &[Label], place: usize, first: u64) -> u64 {
    if labels[place].exists_in(profile) {
        first + count(profile, labels, place)
    } else {
        u64::MAX - first - place as u64
    }
}

/// A table of labels, behind those that are `before` in each profile, and the number of each in [`THIS`] profile.
macro_rules! labels {
    (behind $before:expr; $($(#[$doc:meta])* $constant:ident = $name:literal $(, $key:literal)? $(if $option:ident)?;)*) => {
        /// All of them, in the order of their numbers.
        pub const TABLE: &[Label] = &[$(Label {
            name: $name,
            key: concat!($($key)?),
            condition: labels!(@ $($option)?),
        }),*];

        /// The number of the first.
        pub const fn first(profile: &Profile) -> u64 {
            let before: &[Label] = $before;
            1 + count(profile, before, before.len())
        }

        #[allow(non_camel_case_types)] // Named as the constants.
        enum Place { $($constant),* }

        $($(#[$doc])* pub const $constant: u64 = number(&THIS, TABLE, Place::$constant as usize, first(&THIS));)*
    };
    (@) => { Condition::Always };
    (@ hardware_debug) => { Condition::HardwareDebug };
    (@ iommu) => { Condition::Iommu };
}

labels! {
    behind &[];

    UNTYPED_RETYPE = "Untyped_Retype", "UntypedRetype";

    TCB_READ_REGISTERS = "TCB_ReadRegisters", "TCBReadRegisters";
    TCB_WRITE_REGISTERS = "TCB_WriteRegisters", "TCBWriteRegisters";
    TCB_COPY_REGISTERS = "TCB_CopyRegisters", "TCBCopyRegisters";
    TCB_CONFIGURE = "TCB_Configure", "TCBConfigure";
    TCB_SET_PRIORITY = "TCB_SetPriority", "TCBSetPriority";
    TCB_SET_MC_PRIORITY = "TCB_SetMCPriority", "TCBSetMCPriority";
    TCB_SET_SCHED_PARAMS = "TCB_SetSchedParams", "TCBSetSchedParams";
    TCB_SET_TIMEOUT_ENDPOINT = "TCB_SetTimeoutEndpoint", "TCBSetTimeoutEndpoint";
    TCB_SET_IPC_BUFFER = "TCB_SetIPCBuffer", "TCBSetIPCBuffer";
    TCB_SET_SPACE = "TCB_SetSpace", "TCBSetSpace";
    TCB_SUSPEND = "TCB_Suspend", "TCBSuspend";
    TCB_RESUME = "TCB_Resume", "TCBResume";
    TCB_BIND_NOTIFICATION = "TCB_BindNotification", "TCBBindNotification";
    TCB_UNBIND_NOTIFICATION = "TCB_UnbindNotification", "TCBUnbindNotification";
    TCB_SET_BREAKPOINT = "TCB_SetBreakpoint", "TCBSetBreakpoint" if hardware_debug;
    TCB_GET_BREAKPOINT = "TCB_GetBreakpoint", "TCBGetBreakpoint" if hardware_debug;
    TCB_UNSET_BREAKPOINT = "TCB_UnsetBreakpoint", "TCBUnsetBreakpoint" if hardware_debug;
    TCB_CONFIGURE_SINGLE_STEPPING = "TCB_ConfigureSingleStepping", "TCBConfigureSingleStepping" if hardware_debug;
    TCB_SET_TLS_BASE = "TCB_SetTLSBase", "TCBSetTLSBase";
    TCB_SET_FLAGS = "TCB_SetFlags", "TCBSetFlags";

    CNODE_REVOKE = "CNode_Revoke", "CNodeRevoke";
    CNODE_DELETE = "CNode_Delete", "CNodeDelete";
    CNODE_CANCEL_BADGED_SENDS = "CNode_CancelBadgedSends", "CNodeCancelBadgedSends";
    CNODE_COPY = "CNode_Copy", "CNodeCopy";
    CNODE_MINT = "CNode_Mint", "CNodeMint";
    CNODE_MOVE = "CNode_Move", "CNodeMove";
    CNODE_MUTATE = "CNode_Mutate", "CNodeMutate";
    CNODE_ROTATE = "CNode_Rotate", "CNodeRotate";

    IRQ_CONTROL_GET = "IRQControl_Get", "IRQIssueIRQHandler";
    IRQ_HANDLER_ACK = "IRQHandler_Ack", "IRQAckIRQ";
    IRQ_HANDLER_SET_NOTIFICATION = "IRQHandler_SetNotification", "IRQSetIRQHandler";
    IRQ_HANDLER_CLEAR = "IRQHandler_Clear", "IRQClearIRQHandler";

    DOMAIN_SET = "DomainSet_Set", "DomainSetSet";
    DOMAIN_SCHEDULE_CONFIGURE = "Domain_ScheduleConfigure", "DomainScheduleConfigure";
    DOMAIN_SCHEDULE_SET_START = "Domain_ScheduleSetStart", "DomainScheduleSetStart";

    SCHED_CONTROL_CONFIGURE_FLAGS = "SchedControl_ConfigureFlags", "SchedControlConfigureFlags";

    SCHED_CONTEXT_BIND = "SchedContext_Bind", "SchedContextBind";
    SCHED_CONTEXT_UNBIND = "SchedContext_Unbind", "SchedContextUnbind";
    SCHED_CONTEXT_UNBIND_OBJECT = "SchedContext_UnbindObject", "SchedContextUnbindObject";
    SCHED_CONTEXT_CONSUMED = "SchedContext_Consumed", "SchedContextConsumed";
    SCHED_CONTEXT_YIELD_TO = "SchedContext_YieldTo", "SchedContextYieldTo";
}

/// Labels of Sandglass, outside those of the ABI: a kernel without them answers IllegalOperation, as to
/// every label that it does not know (ABI 03, section 1). A new one takes the next number; none is used again.
pub mod extension {
    /// As CNODE_MINT, of an endpoint capability: the new one can be called, and not sent to
    /// (decision *calls only*).
    pub const CNODE_MINT_CALL: u64 = 0x5a6c_0000;

    /// All of them, with their names.
    pub const ALL: [(u64, &str); 1] = [(CNODE_MINT_CALL, "CNode_MintCall")];
}

/// Flag bits of the first word of TCB_ReadRegisters, WriteRegisters and CopyRegisters
/// (ABI 03, sections 4.1 to 4.3).
pub mod registers_flags {
    pub const READ_SUSPEND_SOURCE: u64 = 1 << 0;
    pub const WRITE_RESUME_TARGET: u64 = 1 << 0;
    pub const COPY_SUSPEND_SOURCE: u64 = 1 << 0;
    pub const COPY_RESUME_TARGET: u64 = 1 << 1;
    pub const COPY_TRANSFER_FRAME: u64 = 1 << 2;
    pub const COPY_TRANSFER_INTEGER: u64 = 1 << 3;
}

/// Thread flags of TCB_SetFlags (ABI 03, section 4.13).
pub mod tcb_flags {
    /// The thread may not use the FPU (ABI 07, section 4).
    pub const FPU_DISABLED: u64 = 1 << 0;
    /// Every flag that exists; others are ignored.
    pub const ALL: u64 = FPU_DISABLED;
}

/// Labels of x86_64: huge pages, no VT-x; identical with several cores.
pub mod x86_64 {
    use super::{count, number, Condition, Label};
    use crate::profile::{Profile, THIS};

    labels! {
        behind super::TABLE;

        PDPT_MAP = "PDPT_Map", "X86PDPTMap";
        PDPT_UNMAP = "PDPT_Unmap", "X86PDPTUnmap";
        PAGE_DIRECTORY_MAP = "PageDirectory_Map", "X86PageDirectoryMap";
        PAGE_DIRECTORY_UNMAP = "PageDirectory_Unmap", "X86PageDirectoryUnmap";
        PAGE_TABLE_MAP = "PageTable_Map", "X86PageTableMap";
        PAGE_TABLE_UNMAP = "PageTable_Unmap", "X86PageTableUnmap";
        IO_PAGE_TABLE_MAP = "IOPageTable_Map", "X86IOPageTableMap" if iommu;
        IO_PAGE_TABLE_UNMAP = "IOPageTable_Unmap", "X86IOPageTableUnmap" if iommu;
        PAGE_MAP = "Page_Map", "X86PageMap";
        PAGE_UNMAP = "Page_Unmap", "X86PageUnmap";
        PAGE_MAP_IO = "Page_MapIO", "X86PageMapIO" if iommu;
        PAGE_GET_ADDRESS = "Page_GetAddress", "X86PageGetAddress";
        ASID_CONTROL_MAKE_POOL = "ASIDControl_MakePool", "X86ASIDControlMakePool";
        ASID_POOL_ASSIGN = "ASIDPool_Assign", "X86ASIDPoolAssign";
        IO_PORT_CONTROL_ISSUE = "IOPortControl_Issue", "X86IOPortControlIssue";
        IO_PORT_IN8 = "IOPort_In8", "X86IOPortIn8";
        IO_PORT_IN16 = "IOPort_In16", "X86IOPortIn16";
        IO_PORT_IN32 = "IOPort_In32", "X86IOPortIn32";
        IO_PORT_OUT8 = "IOPort_Out8", "X86IOPortOut8";
        IO_PORT_OUT16 = "IOPort_Out16", "X86IOPortOut16";
        IO_PORT_OUT32 = "IOPort_Out32", "X86IOPortOut32";
        IRQ_CONTROL_GET_IOAPIC = "IRQControl_GetIOAPIC", "X86IRQIssueIRQHandlerIOAPIC";
        IRQ_CONTROL_GET_MSI = "IRQControl_GetMSI", "X86IRQIssueIRQHandlerMSI";
    }
}

/// Labels of aarch64: kernel in EL1, no SMMU.
pub mod aarch64 {
    use super::{count, number, Condition, Label};
    use crate::profile::{Profile, THIS};

    labels! {
        behind super::TABLE;

        VSPACE_CLEAN_DATA = "VSpace_Clean_Data";
        VSPACE_INVALIDATE_DATA = "VSpace_Invalidate_Data";
        VSPACE_CLEAN_INVALIDATE_DATA = "VSpace_CleanInvalidate_Data";
        VSPACE_UNIFY_INSTRUCTION = "VSpace_Unify_Instruction";
        /// Reserved: there are no SMC capabilities in the profile.
        SMC_CALL = "SMC_Call";
        PAGE_TABLE_MAP = "PageTable_Map";
        PAGE_TABLE_UNMAP = "PageTable_Unmap";
        PAGE_MAP = "Page_Map";
        PAGE_UNMAP = "Page_Unmap";
        PAGE_CLEAN_DATA = "Page_Clean_Data";
        PAGE_INVALIDATE_DATA = "Page_Invalidate_Data";
        PAGE_CLEAN_INVALIDATE_DATA = "Page_CleanInvalidate_Data";
        PAGE_UNIFY_INSTRUCTION = "Page_Unify_Instruction";
        PAGE_GET_ADDRESS = "Page_GetAddress";
        ASID_CONTROL_MAKE_POOL = "ASIDControl_MakePool";
        ASID_POOL_ASSIGN = "ASIDPool_Assign";
        IRQ_CONTROL_GET_TRIGGER = "IRQControl_GetTrigger";
        /// One core only.
        IRQ_CONTROL_ISSUE_SGI_SIGNAL = "IRQControl_IssueSGISignal";
    }
    /// Several cores only: the same number.
    pub const IRQ_CONTROL_GET_TRIGGER_CORE: u64 = IRQ_CONTROL_ISSUE_SGI_SIGNAL;
}

/// The invocations of a kernel of `profile`, with their numbers, in that order, where `own` are those of its
/// architecture.
pub fn all<'a>(
    profile: &'a Profile,
    own: &'a [Label],
) -> impl Iterator<Item = (u64, &'a Label)> + 'a {
    let all = TABLE.iter().chain(own);
    (1..).zip(all.filter(|label| label.exists_in(profile)))
}

/// What the invocation with the number `label` is called in [`THIS`] profile, where `own` are those of the architecture.
pub fn name(label: u64, own: &[Label]) -> Option<&'static str> {
    let found = all(&THIS, own).find(|&(number, _)| number == label);
    let ours = || extension::ALL.iter().find(|&&(number, _)| number == label);
    match found {
        Some((_, label)) => Some(label.name),
        None => ours().map(|&(_, name)| name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{self, BASE, MICROKIT_DEBUG, MICROKIT_RELEASE};

    fn label(profile: &Profile, name: &str) -> Option<u64> {
        let found = all(profile, x86_64::TABLE).find(|(_, label)| label.key == name);
        found.map(|(number, _)| number)
    }

    /// Numbers from the pages, by hand: of base (ABI 03, section 2), R and D (ABI 09, section 2.2); 0 for none.
    const PAGES: &[(&str, [u64; 3])] = &[
        ("UntypedRetype", [1, 1, 1]),
        ("TCBReadRegisters", [2, 2, 2]),
        ("TCBUnbindNotification", [15, 15, 15]),
        ("TCBSetBreakpoint", [0, 0, 16]),
        ("TCBConfigureSingleStepping", [0, 0, 19]),
        ("TCBSetTLSBase", [16, 16, 20]),
        ("TCBSetFlags", [17, 17, 21]),
        ("CNodeRevoke", [18, 18, 22]),
        ("CNodeRotate", [25, 25, 29]),
        ("IRQIssueIRQHandler", [26, 26, 30]),
        ("IRQClearIRQHandler", [29, 29, 33]),
        ("DomainSetSet", [30, 30, 34]),
        ("DomainScheduleSetStart", [32, 32, 36]),
        ("SchedControlConfigureFlags", [33, 33, 37]),
        ("SchedContextBind", [34, 34, 38]),
        ("SchedContextYieldTo", [38, 38, 42]),
        ("X86PDPTMap", [39, 39, 43]),
        ("X86PageTableUnmap", [44, 44, 48]),
        ("X86IOPageTableMap", [0, 45, 49]),
        ("X86IOPageTableUnmap", [0, 46, 50]),
        ("X86PageMap", [45, 47, 51]),
        ("X86PageUnmap", [46, 48, 52]),
        ("X86PageMapIO", [0, 49, 53]),
        ("X86PageGetAddress", [47, 50, 54]),
        ("X86ASIDControlMakePool", [48, 51, 55]),
        ("X86ASIDPoolAssign", [49, 52, 56]),
        ("X86IOPortControlIssue", [50, 53, 57]),
        ("X86IOPortOut32", [56, 59, 63]),
        ("X86IRQIssueIRQHandlerIOAPIC", [57, 60, 64]),
        ("X86IRQIssueIRQHandlerMSI", [58, 61, 65]),
    ];

    #[test]
    fn labels_are_those_of_the_pages() {
        for &(name, numbers) in PAGES {
            let found = [BASE, MICROKIT_RELEASE, MICROKIT_DEBUG].map(|it| label(&it, name));
            assert_eq!(found.map(Option::unwrap_or_default), numbers, "{name}");
        }
        let last = |profile: &Profile| all(profile, x86_64::TABLE).map(|(number, _)| number).last();
        let last = profile::ALL.map(|profile| last(&profile));
        assert_eq!(last, [58, 58, 65, 61, 65, 61].map(Some));
    }

    #[test]
    fn the_constants_are_those_of_this_profile() {
        let of = |name| label(&THIS, name);
        assert_eq!(of("TCBSetFlags"), Some(TCB_SET_FLAGS));
        assert_eq!(of("X86PageMap"), Some(x86_64::PAGE_MAP));
        assert_eq!(
            of("X86IRQIssueIRQHandlerMSI"),
            Some(x86_64::IRQ_CONTROL_GET_MSI)
        );
        let shift = if THIS.hardware_debug { 4 } else { 0 };
        assert_eq!(aarch64::IRQ_CONTROL_ISSUE_SGI_SIGNAL, 56 + shift);
    }

    /// So that no invocation is taken for one that is not there.
    #[test]
    fn what_a_profile_lacks_has_a_number_of_its_own_that_no_message_has() {
        let mut labels = [
            TCB_SET_BREAKPOINT,
            TCB_GET_BREAKPOINT,
            TCB_UNSET_BREAKPOINT,
            TCB_CONFIGURE_SINGLE_STEPPING,
            x86_64::IO_PAGE_TABLE_MAP,
            x86_64::IO_PAGE_TABLE_UNMAP,
            x86_64::PAGE_MAP_IO,
        ];
        labels.sort_unstable();
        assert!(
            labels.windows(2).all(|pair| pair[0] < pair[1]),
            "{labels:?}"
        );
        let missing = labels.iter().filter(|&&label| label >> 52 != 0).count();
        let debug = if THIS.hardware_debug { 0 } else { 4 };
        assert_eq!(missing, debug + if THIS.iommu { 0 } else { 3 });
    }
}
