//! What is managed: a file per object, with its layout, its invariants and its invocations
//! (ABI page 03).
//!
//! An invocation is decoded into an [`Operation`], which checks everything and changes nothing,
//! and then committed, which cannot fail. A preemptible commit keeps its finished steps and is
//! decoded anew when the system call restarts.

#![forbid(unsafe_code)]

pub mod asid;
pub mod check;
pub mod cnode;
pub mod debug;
pub mod deletion;
pub mod domain;
pub mod endpoint;
pub mod error;
pub mod finalise;
pub mod frame;
pub mod ioport;
pub mod irq;
pub mod notification;
pub mod paging;
pub mod reply;
pub mod sched_context;
pub mod sched_control;
pub mod tcb;
pub mod untyped;
pub mod vspace;

use crate::cap::{lookup, Capability, Slot};
use crate::ipc::caps::ExtraCaps;
use crate::ipc::message::Reader;
use crate::mem::{Kind, Ref};
use crate::Kernel;
use error::Error;
use tcb::Tcb;

/// An invocation of a capability: the user's claims, not yet checked.
#[derive(Clone, Copy)]
pub struct Invocation<'k> {
    pub k: &'k Kernel,
    pub caller: Ref<Tcb>,
    /// Slot of the invoked capability.
    pub slot: Ref<Slot>,
    pub cap: Capability,
    pub label: u64,
    pub message: Reader<'k>,
    pub extra: ExtraCaps,
    /// How far a preempted execution of this or another call has come.
    pub begun: Option<tcb::Progress>,
    /// The invocation is the send phase of a call that also receives (01, section 5.1).
    pub first_phase: bool,
}

impl Invocation<'_> {
    /// Message word `i`, at most as many as [`Self::need`] has checked.
    #[inline(always)]
    pub fn word(&self, i: usize) -> u64 {
        self.message.word(i)
    }

    /// Refuses a message of less than `words` words.
    #[inline(always)]
    pub fn need(&self, words: usize) -> Result<(), Error> {
        if self.message.length() < words {
            return Err(Error::TruncatedMessage);
        }
        Ok(())
    }

    /// Slot of extra capability `i`, which must have been sent; it may be empty.
    #[inline(always)]
    pub fn extra_slot(&self, i: usize) -> Result<Ref<Slot>, Error> {
        self.extra.get(i).ok_or(Error::TruncatedMessage)
    }

    /// Extra capability `i`, which must have been sent; it may be null.
    #[inline(always)]
    pub fn extra_cap(&self, i: usize) -> Result<Capability, Error> {
        Ok(self.extra_slot(i)?.at(self.k).cap())
    }

    /// The slot for a new capability, by index and depth below `root`: it must be empty.
    pub fn empty_slot(&self, root: Capability, index: u64, depth: u64) -> Result<Ref<Slot>, Error> {
        let slot = target_slot(self.k, root, index, depth)?;
        if !slot.at(self.k).is_empty() {
            return Err(Error::DeleteFirst);
        }
        Ok(slot)
    }
}

/// The destination slot of an operation.
pub fn target_slot(
    k: &Kernel,
    root: Capability,
    index: u64,
    depth: u64,
) -> Result<Ref<Slot>, Error> {
    lookup::exact_slot(k, root, index, depth).map_err(|e| Error::from_slot(e, false))
}

/// The source slot of an operation.
pub fn source_slot(
    k: &Kernel,
    root: Capability,
    index: u64,
    depth: u64,
) -> Result<Ref<Slot>, Error> {
    lookup::exact_slot(k, root, index, depth).map_err(|e| Error::from_slot(e, true))
}

/// A checked invocation: everything that its commit needs.
#[must_use]
#[derive(Clone, Copy)]
pub enum Operation {
    Untyped(untyped::Retype),
    CNode(cnode::Operation),
    Tcb(tcb::Operation),
    SchedControl(sched_control::Configure),
    SchedContext(sched_context::Operation),
    Domain(domain::Operation),
    IrqControl(irq::Issue),
    IrqHandler(irq::HandlerOperation),
    Frame(frame::Operation),
    Paging(paging::Operation),
    MakePool(asid::MakePool),
    AssignAsid(asid::Assign),
    IoPortControl(ioport::Issue),
    IoPort(ioport::Access),
}

/// How a committed operation ended.
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done, nothing to tell.
    Done,
    /// Done, with a result.
    Value(u64),
    /// Done; the operation has answered the caller, or will, or stopped it.
    Answered,
    /// Not finished: the system call is to be executed again. With what its next execution needs
    /// to know, where the objects do not tell.
    Preempted(Option<tcb::Progress>),
}

/// Checks an invocation of a capability that is no endpoint, notification or reply.
#[inline(always)]
pub fn decode(call: &Invocation) -> Result<Operation, Error> {
    match call.cap.kind() {
        Kind::Tcb | Kind::Domain | Kind::CNode | Kind::SchedControl | Kind::SchedContext
            if call.first_phase =>
        {
            Err(Error::InvalidCapability(0))
        }
        Kind::Untyped => untyped::decode(call).map(Operation::Untyped),
        Kind::CNode => cnode::decode(call).map(Operation::CNode),
        Kind::Tcb => tcb::decode(call).map(Operation::Tcb),
        Kind::SchedControl => sched_control::decode(call).map(Operation::SchedControl),
        Kind::SchedContext => sched_context::decode(call).map(Operation::SchedContext),
        Kind::Domain => domain::decode(call).map(Operation::Domain),
        Kind::IrqControl => irq::decode_control(call).map(Operation::IrqControl),
        Kind::IrqHandler => irq::decode_handler(call).map(Operation::IrqHandler),
        Kind::Frame => frame::decode(call).map(Operation::Frame),
        Kind::Pdpt | Kind::PageDirectory | Kind::PageTable => {
            paging::decode(call).map(Operation::Paging)
        }
        // A root table has no invocations (03, section 8.1).
        Kind::Pml4 => Err(Error::IllegalOperation),
        Kind::AsidControl => asid::decode_control(call).map(Operation::MakePool),
        Kind::AsidPool => asid::decode_pool(call).map(Operation::AssignAsid),
        Kind::IoPortControl => ioport::decode_control(call).map(Operation::IoPortControl),
        Kind::IoPort => ioport::decode(call).map(Operation::IoPort),
        Kind::Null | Kind::Zombie | Kind::Endpoint | Kind::Notification | Kind::Reply => {
            Err(Error::InvalidCapability(0))
        }
    }
}

/// Performs a checked operation for `caller`, which calls if `is_call`.
#[inline(always)]
pub fn commit(k: &mut Kernel, caller: Ref<Tcb>, is_call: bool, operation: Operation) -> Outcome {
    match operation {
        Operation::Untyped(retype) => untyped::commit(k, retype),
        Operation::CNode(operation) => cnode::commit(k, operation),
        Operation::Tcb(operation) => tcb::commit(k, caller, is_call, operation),
        Operation::SchedControl(configure) => sched_control::commit(k, configure),
        Operation::SchedContext(operation) => sched_context::commit(k, caller, operation),
        Operation::Domain(operation) => domain::commit(k, operation),
        Operation::IrqControl(issue) => irq::commit_control(k, issue),
        Operation::IrqHandler(operation) => irq::commit_handler(k, operation),
        Operation::Frame(operation) => frame::commit(k, operation),
        Operation::Paging(operation) => paging::commit(k, operation),
        Operation::MakePool(make) => asid::commit_make_pool(k, make),
        Operation::AssignAsid(assign) => asid::commit_assign(k, assign),
        Operation::IoPortControl(issue) => ioport::commit_control(k, issue),
        Operation::IoPort(access) => ioport::commit(k, access),
    }
}
