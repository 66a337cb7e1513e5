//! The invocations: label, what is invoked, and how often.

use sandglass::abi::invocation::*;
use sandglass::abi::sched::domain::DOMAINS;

use crate::arch::operations as own;
use crate::catalogue::Kind;

/// A label, its name, what is invoked with it, and its weight.
#[derive(Clone, Copy)]
pub struct Operation {
    pub label: u64,
    pub name: &'static str,
    pub invoked: Kind,
    pub weight: u64,
}

impl Operation {
    /// Whether the profile has it: others are never chosen.
    pub fn exists(&self) -> bool {
        self.weight > 0
    }

    /// Whether the ABI has a way for it to succeed here.
    pub fn can_succeed(&self) -> bool {
        let has_authority = self.invoked != Kind::Domain || DOMAINS == 1;
        self.label != INVALID
            && self.exists()
            && has_authority
            && !own::HOPELESS.contains(&self.label)
    }
}

pub const fn operation(label: u64, name: &'static str, invoked: Kind, weight: u64) -> Operation {
    Operation {
        label,
        name,
        invoked,
        weight,
    }
}

/// Those of every architecture. The weights are chosen so that each succeeds many times in a run and
/// that what destroys does not outrun what makes.
const COMMON: [Operation; 40] = [
    operation(INVALID, "invalid", Kind::Tcb, 2),
    operation(UNTYPED_RETYPE, "Untyped_Retype", Kind::Untyped, 60),
    operation(TCB_READ_REGISTERS, "TCB_ReadRegisters", Kind::Tcb, 12),
    operation(TCB_WRITE_REGISTERS, "TCB_WriteRegisters", Kind::Tcb, 14),
    operation(TCB_COPY_REGISTERS, "TCB_CopyRegisters", Kind::Tcb, 5),
    operation(TCB_CONFIGURE, "TCB_Configure", Kind::Tcb, 10),
    operation(TCB_SET_PRIORITY, "TCB_SetPriority", Kind::Tcb, 14),
    operation(TCB_SET_MC_PRIORITY, "TCB_SetMCPriority", Kind::Tcb, 8),
    operation(TCB_SET_SCHED_PARAMS, "TCB_SetSchedParams", Kind::Tcb, 12),
    operation(
        TCB_SET_TIMEOUT_ENDPOINT,
        "TCB_SetTimeoutEndpoint",
        Kind::Tcb,
        8,
    ),
    operation(TCB_SET_IPC_BUFFER, "TCB_SetIPCBuffer", Kind::Tcb, 8),
    operation(TCB_SET_SPACE, "TCB_SetSpace", Kind::Tcb, 8),
    operation(TCB_SUSPEND, "TCB_Suspend", Kind::Tcb, 8),
    operation(TCB_RESUME, "TCB_Resume", Kind::Tcb, 20),
    operation(TCB_BIND_NOTIFICATION, "TCB_BindNotification", Kind::Tcb, 12),
    operation(
        TCB_UNBIND_NOTIFICATION,
        "TCB_UnbindNotification",
        Kind::Tcb,
        8,
    ),
    operation(TCB_SET_TLS_BASE, "TCB_SetTLSBase", Kind::Tcb, 6),
    operation(TCB_SET_FLAGS, "TCB_SetFlags", Kind::Tcb, 8),
    operation(CNODE_REVOKE, "CNode_Revoke", Kind::MainNode, 10),
    operation(CNODE_DELETE, "CNode_Delete", Kind::MainNode, 45),
    operation(
        CNODE_CANCEL_BADGED_SENDS,
        "CNode_CancelBadgedSends",
        Kind::MainNode,
        10,
    ),
    operation(CNODE_COPY, "CNode_Copy", Kind::MainNode, 40),
    operation(CNODE_MINT, "CNode_Mint", Kind::MainNode, 30),
    operation(
        extension::CNODE_MINT_CALL,
        "CNode_MintCall",
        Kind::MainNode,
        20,
    ),
    operation(CNODE_MOVE, "CNode_Move", Kind::MainNode, 16),
    operation(CNODE_MUTATE, "CNode_Mutate", Kind::MainNode, 10),
    operation(CNODE_ROTATE, "CNode_Rotate", Kind::MainNode, 14),
    operation(IRQ_CONTROL_GET, "IRQControl_Get", Kind::IrqControl, 2),
    operation(IRQ_HANDLER_ACK, "IRQHandler_Ack", Kind::IrqHandler, 8),
    operation(
        IRQ_HANDLER_SET_NOTIFICATION,
        "IRQHandler_SetNotification",
        Kind::IrqHandler,
        8,
    ),
    operation(IRQ_HANDLER_CLEAR, "IRQHandler_Clear", Kind::IrqHandler, 4),
    operation(DOMAIN_SET, "DomainSet_Set", Kind::Domain, 5),
    operation(
        DOMAIN_SCHEDULE_CONFIGURE,
        "Domain_ScheduleConfigure",
        Kind::Domain,
        4,
    ),
    operation(
        DOMAIN_SCHEDULE_SET_START,
        "Domain_ScheduleSetStart",
        Kind::Domain,
        3,
    ),
    operation(
        SCHED_CONTROL_CONFIGURE_FLAGS,
        "SchedControl_ConfigureFlags",
        Kind::SchedControl,
        18,
    ),
    operation(
        SCHED_CONTEXT_BIND,
        "SchedContext_Bind",
        Kind::SchedContext,
        22,
    ),
    operation(
        SCHED_CONTEXT_UNBIND,
        "SchedContext_Unbind",
        Kind::SchedContext,
        5,
    ),
    operation(
        SCHED_CONTEXT_UNBIND_OBJECT,
        "SchedContext_UnbindObject",
        Kind::SchedContext,
        14,
    ),
    operation(
        SCHED_CONTEXT_CONSUMED,
        "SchedContext_Consumed",
        Kind::SchedContext,
        8,
    ),
    operation(
        SCHED_CONTEXT_YIELD_TO,
        "SchedContext_YieldTo",
        Kind::SchedContext,
        14,
    ),
];

/// All of them: those of every architecture, then this one's own.
pub const OPERATIONS: [Operation; COMMON.len() + own::OPERATIONS.len()] = {
    let mut all =
        [const { operation(INVALID, "", Kind::Null, 0) }; COMMON.len() + own::OPERATIONS.len()];
    let mut i = 0;
    while i < all.len() {
        all[i] = match i < COMMON.len() {
            true => COMMON[i],
            false => own::OPERATIONS[i - COMMON.len()],
        };
        i += 1;
    }
    all
};

/// Weights of [`OPERATIONS`].
pub const WEIGHTS: [u64; OPERATIONS.len()] = {
    let mut weights = [0; OPERATIONS.len()];
    let mut i = 0;
    while i < weights.len() {
        weights[i] = OPERATIONS[i].weight;
        i += 1;
    }
    weights
};
