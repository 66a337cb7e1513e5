//! The operations that capabilities have, by name: what coverage is counted in.

use sandglass_abi::invocation as label;
use sandglass_model::state::{Cap, Level};

use crate::isa::{self, label as arch};

/// A kind of capability that is invoked by labels.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    Untyped,
    Thread,
    CNode,
    IrqControl,
    IrqHandler,
    Domain,
    SchedControl,
    SchedContext,
    Pdpt,
    PageDirectory,
    PageTable,
    Root,
    Frame,
    AsidControl,
    AsidPool,
    IoPortControl,
    IoPort,
    SgiSignal,
}

impl Kind {
    /// The kind of `cap`; `None` of those that send messages.
    pub fn of(cap: Cap) -> Option<Kind> {
        Some(match cap {
            Cap::Endpoint { .. } | Cap::Notification { .. } | Cap::Reply { .. } => return None,
            Cap::Untyped { .. } => Kind::Untyped,
            Cap::Thread(_) => Kind::Thread,
            Cap::CNode { .. } => Kind::CNode,
            Cap::IrqControl => Kind::IrqControl,
            Cap::IrqHandler { .. } => Kind::IrqHandler,
            Cap::Domain => Kind::Domain,
            Cap::SchedControl { .. } => Kind::SchedControl,
            Cap::SchedContext { .. } => Kind::SchedContext,
            Cap::Paging { level, .. } => match level {
                Level::Pdpt => Kind::Pdpt,
                Level::PageDirectory => Kind::PageDirectory,
                Level::PageTable | Level::Pml4 => Kind::PageTable,
            },
            Cap::Root { .. } => Kind::Root,
            Cap::Frame { .. } => Kind::Frame,
            Cap::AsidControl => Kind::AsidControl,
            Cap::AsidPool { .. } => Kind::AsidPool,
            Cap::IoPortControl => Kind::IoPortControl,
            Cap::IoPort { .. } => Kind::IoPort,
            Cap::SgiSignal { .. } => Kind::SgiSignal,
        })
    }
}

/// How an operation can end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ends {
    /// With success, and with errors of its own.
    Both,
    /// Once the capability is found, always with success.
    Success,
    /// Always with an error.
    Error,
}

/// An operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub kind: Kind,
    pub label: u64,
    pub name: &'static str,
    pub ends: Ends,
    /// How often it is tried, relative to others.
    pub weight: u32,
}

pub const fn operation(
    kind: Kind,
    label: u64,
    name: &'static str,
    ends: Ends,
    weight: u32,
) -> Operation {
    Operation {
        kind,
        label,
        name,
        ends,
        weight,
    }
}

/// The operations, part by part.
const PARTS: [&[Operation]; 6] = [
    FIRST,
    isa::IRQ_CONTROL,
    SECOND,
    isa::TABLES,
    SPACES,
    isa::DEVICES,
];

/// All operations: those that every architecture has, and those of one.
pub const OPERATIONS: &[Operation] = &join::<{ count(&PARTS) }>(&PARTS);

const fn count(parts: &[&[Operation]]) -> usize {
    let (mut sum, mut i) = (0, 0);
    while i < parts.len() {
        sum += parts[i].len();
        i += 1;
    }
    sum
}

const fn join<const N: usize>(parts: &[&[Operation]]) -> [Operation; N] {
    let mut all = [FIRST[0]; N];
    let (mut n, mut part) = (0, 0);
    while part < parts.len() {
        let mut i = 0;
        while i < parts[part].len() {
            all[n] = parts[part][i];
            (n, i) = (n + 1, i + 1);
        }
        part += 1;
    }
    all
}

const FIRST: &[Operation] = {
    use Ends::*;
    &[
        operation(
            Kind::Untyped,
            label::UNTYPED_RETYPE,
            "Untyped_Retype",
            Both,
            30,
        ),
        operation(
            Kind::Thread,
            label::TCB_READ_REGISTERS,
            "TCB_ReadRegisters",
            Both,
            6,
        ),
        operation(
            Kind::Thread,
            label::TCB_WRITE_REGISTERS,
            "TCB_WriteRegisters",
            Both,
            12,
        ),
        operation(
            Kind::Thread,
            label::TCB_COPY_REGISTERS,
            "TCB_CopyRegisters",
            Both,
            6,
        ),
        operation(Kind::Thread, label::TCB_CONFIGURE, "TCB_Configure", Both, 6),
        operation(
            Kind::Thread,
            label::TCB_SET_PRIORITY,
            "TCB_SetPriority",
            Both,
            14,
        ),
        operation(
            Kind::Thread,
            label::TCB_SET_MC_PRIORITY,
            "TCB_SetMCPriority",
            Both,
            6,
        ),
        operation(
            Kind::Thread,
            label::TCB_SET_SCHED_PARAMS,
            "TCB_SetSchedParams",
            Both,
            12,
        ),
        operation(
            Kind::Thread,
            label::TCB_SET_TIMEOUT_ENDPOINT,
            "TCB_SetTimeoutEndpoint",
            Both,
            8,
        ),
        operation(
            Kind::Thread,
            label::TCB_SET_IPC_BUFFER,
            "TCB_SetIPCBuffer",
            Both,
            6,
        ),
        operation(Kind::Thread, label::TCB_SET_SPACE, "TCB_SetSpace", Both, 6),
        operation(Kind::Thread, label::TCB_SUSPEND, "TCB_Suspend", Success, 6),
        operation(Kind::Thread, label::TCB_RESUME, "TCB_Resume", Success, 30),
        operation(
            Kind::Thread,
            label::TCB_BIND_NOTIFICATION,
            "TCB_BindNotification",
            Both,
            10,
        ),
        operation(
            Kind::Thread,
            label::TCB_UNBIND_NOTIFICATION,
            "TCB_UnbindNotification",
            Both,
            8,
        ),
        operation(
            Kind::Thread,
            label::TCB_SET_TLS_BASE,
            "TCB_SetTLSBase",
            Both,
            8,
        ),
        operation(Kind::Thread, label::TCB_SET_FLAGS, "TCB_SetFlags", Both, 8),
        operation(Kind::CNode, label::CNODE_REVOKE, "CNode_Revoke", Both, 10),
        operation(Kind::CNode, label::CNODE_DELETE, "CNode_Delete", Both, 30),
        operation(
            Kind::CNode,
            label::CNODE_CANCEL_BADGED_SENDS,
            "CNode_CancelBadgedSends",
            Both,
            10,
        ),
        operation(Kind::CNode, label::CNODE_COPY, "CNode_Copy", Both, 16),
        operation(Kind::CNode, label::CNODE_MINT, "CNode_Mint", Both, 16),
        operation(
            Kind::CNode,
            label::extension::CNODE_MINT_CALL,
            "CNode_MintCall",
            Both,
            10,
        ),
        operation(Kind::CNode, label::CNODE_MOVE, "CNode_Move", Both, 10),
        operation(Kind::CNode, label::CNODE_MUTATE, "CNode_Mutate", Both, 8),
        operation(Kind::CNode, label::CNODE_ROTATE, "CNode_Rotate", Both, 8),
    ]
};

const SECOND: &[Operation] = {
    use Ends::*;
    &[
        operation(
            Kind::IrqHandler,
            label::IRQ_HANDLER_ACK,
            "IRQHandler_Ack",
            Success,
            6,
        ),
        operation(
            Kind::IrqHandler,
            label::IRQ_HANDLER_SET_NOTIFICATION,
            "IRQHandler_SetNotification",
            Both,
            6,
        ),
        operation(
            Kind::IrqHandler,
            label::IRQ_HANDLER_CLEAR,
            "IRQHandler_Clear",
            Success,
            4,
        ),
        operation(Kind::Domain, label::DOMAIN_SET, "DomainSet_Set", Both, 5),
        operation(
            Kind::Domain,
            label::DOMAIN_SCHEDULE_CONFIGURE,
            "DomainSchedule_Configure",
            Both,
            5,
        ),
        operation(
            Kind::Domain,
            label::DOMAIN_SCHEDULE_SET_START,
            "DomainSchedule_SetStart",
            Both,
            4,
        ),
        operation(
            Kind::SchedControl,
            label::SCHED_CONTROL_CONFIGURE_FLAGS,
            "SchedControl_ConfigureFlags",
            Both,
            24,
        ),
        operation(
            Kind::SchedContext,
            label::SCHED_CONTEXT_BIND,
            "SchedContext_Bind",
            Both,
            24,
        ),
        operation(
            Kind::SchedContext,
            label::SCHED_CONTEXT_UNBIND,
            "SchedContext_Unbind",
            Both,
            6,
        ),
        operation(
            Kind::SchedContext,
            label::SCHED_CONTEXT_UNBIND_OBJECT,
            "SchedContext_UnbindObject",
            Both,
            8,
        ),
        operation(
            Kind::SchedContext,
            label::SCHED_CONTEXT_CONSUMED,
            "SchedContext_Consumed",
            Success,
            6,
        ),
        operation(
            Kind::SchedContext,
            label::SCHED_CONTEXT_YIELD_TO,
            "SchedContext_YieldTo",
            Both,
            12,
        ),
    ]
};

const SPACES: &[Operation] = {
    use Ends::*;
    &[
        operation(Kind::Frame, arch::PAGE_MAP, "Page_Map", Both, 14),
        operation(Kind::Frame, arch::PAGE_UNMAP, "Page_Unmap", Success, 6),
        operation(
            Kind::Frame,
            arch::PAGE_GET_ADDRESS,
            "Page_GetAddress",
            Success,
            2,
        ),
        operation(
            Kind::AsidControl,
            arch::ASID_CONTROL_MAKE_POOL,
            "ASIDControl_MakePool",
            Both,
            6,
        ),
        operation(
            Kind::AsidPool,
            arch::ASID_POOL_ASSIGN,
            "ASIDPool_Assign",
            Both,
            6,
        ),
    ]
};

/// The operation that `label` is of a capability of `kind`.
pub fn find(kind: Kind, label: u64) -> Option<&'static Operation> {
    OPERATIONS
        .iter()
        .find(|operation| operation.kind == kind && operation.label == label)
}
