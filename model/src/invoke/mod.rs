//! Invocations: one file per kind of object (page 03).

pub mod asid;
pub mod cnode;
pub mod domain;
pub mod irq;
pub mod sched_context;
pub mod sched_control;
pub mod tcb;
pub mod untyped;

use crate::error::Error;
use crate::isa;
use crate::state::{Cap, CoreId, SlotId, State, ThreadId};
use crate::time::cores;

/// An invocation that is being decoded.
#[derive(Clone, Debug)]
pub struct Call {
    pub caller: ThreadId,
    /// Where the invoked capability is, and what it is.
    pub slot: SlotId,
    pub cap: Cap,
    pub label: u64,
    /// The message, as long as it effectively is (01, section 5.1).
    pub words: Vec<u64>,
    /// The slots of the extra capabilities that were supplied; a slot may be empty.
    pub extra: Vec<SlotId>,
}

impl Call {
    /// The extra capability `i`: `None` if fewer were supplied, `Some(None)` for a null one.
    pub fn extra_cap(&self, s: &State, i: usize) -> Option<Option<Cap>> {
        let slot = self.extra.get(i)?;
        Some(s.caps.slots.get(slot).map(|held| held.cap))
    }

    /// # Errors
    /// The message has fewer than `words` words or `extra` capabilities.
    pub fn require(&self, words: usize, extra: usize) -> Result<(), Error> {
        if self.words.len() < words || self.extra.len() < extra {
            Err(Error::TruncatedMessage)
        } else {
            Ok(())
        }
    }
}

/// What an invocation that was not refused comes to.
#[must_use]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Done; the result is the empty message.
    Done,
    /// Done; the result is these words.
    Words(Vec<u64>),
}

/// Carries `call` out.
///
/// # Errors
/// It is refused, and nothing has changed.
pub fn invoke(s: &mut State, call: &Call) -> Result<Outcome, Error> {
    match call.cap {
        Cap::Untyped { .. } => untyped::invoke(s, call),
        Cap::CNode { .. } => cnode::invoke(s, call),
        // 03, sections 4 and 6.2: what runs on another core is stalled before the operation is decoded.
        Cap::Thread(thread) => {
            cores::stall(s, thread);
            tcb::invoke(s, call, thread)
        }
        Cap::SchedContext { object, .. } => {
            cores::stall_user(s, object);
            sched_context::invoke(s, call, object)
        }
        Cap::SchedControl { core } => sched_control::invoke(s, call, CoreId(core as usize)),
        Cap::Domain => domain::invoke(s, call),
        Cap::IrqControl => isa::irq::invoke_control(s, call),
        Cap::IrqHandler { irq } => irq::invoke_handler(s, call, irq),
        Cap::Frame { .. }
        | Cap::Paging { .. }
        | Cap::Root { .. }
        | Cap::IoPortControl
        | Cap::IoPort { .. }
        | Cap::SgiSignal { .. } => isa::invoke(s, call),
        Cap::AsidControl => asid::invoke_control(s, call),
        Cap::AsidPool { object, number } => asid::invoke_pool(s, call, object, number),
        // Messages: not invocations (01, section 5.1).
        Cap::Endpoint { .. } | Cap::Notification { .. } | Cap::Reply { .. } => {
            Err(Error::InvalidCapability(0))
        }
    }
}
