//! Invocations of the objects that aarch64 adds (03, sections 7 and 9).

#![forbid(unsafe_code)]

pub mod asid;
mod cache;
pub mod frame;
pub mod irq;
pub mod paging;
pub mod profile;
mod steps;
mod vspace;

use crate::arch::abi::object::paging::VSpace;
use crate::arch::abi::{space, Devices};
use crate::cap::Capability;
use crate::invoke::{Error, Invocation, Outcome, Stop};
use crate::mem::{Kind, Ref};
use crate::object::Tcb;
use crate::time::Turn;
use crate::{Kernel, View};

/// Invokes a capability of `kind`, as [`crate::invoke::invoke`] does.
///
/// # Errors
/// The first check that failed, in the order of the ABI; or the operation was preempted.
#[inline(always)]
pub fn invoke(k: &mut Kernel, call: &Invocation, kind: Kind) -> Result<Outcome, Stop> {
    match kind {
        Kind::PageTable => Ok(paging::invoke(k, call)?),
        Kind::VSpace => vspace::invoke(k, call),
        Kind::AsidControl => Ok(asid::invoke_control(k, call)?),
        Kind::AsidPool => Ok(asid::invoke_pool(k, call)?),
        Kind::SgiSignal => {
            // Whatever the label (03, section 7.5).
            if let Some(sgi) = call.cap.sgi() {
                k.machine.raise_sgi(sgi.number, sgi.target);
            }
            Ok(Outcome::Done)
        }
        _ => Err(Error::InvalidCapability(0).into()),
    }
}

/// Invokes a TCB in a way that only this architecture has: none.
///
/// # Errors
/// Always.
#[inline(always)]
pub fn thread(_k: &Kernel, _call: &Invocation, _thread: Ref<Tcb>) -> Result<Outcome, Stop> {
    Err(Error::IllegalOperation.into())
}

/// The last capability to an object of `kind` goes: one bounded step ends it.
pub fn finalise(k: &Kernel, turn: &Turn, kind: Kind, cap: Capability) {
    match kind {
        Kind::AsidPool => asid::remove_pool(k, turn, cap),
        Kind::VSpace => asid::free(k, turn, cap),
        Kind::PageTable => paging::unmap(k, cap),
        _ => {}
    }
}

/// The root table of the capability `number` of the invocation, `cap`, whose identifier is `asid`, if that still names it.
#[inline(always)]
fn resolve(k: &View, cap: Capability, asid: u16, number: u64) -> Result<Ref<VSpace>, Error> {
    let root = space::root_of(k, asid).ok_or(Error::invalid_root())?;
    if cap.root() != Some(root) {
        return Err(Error::InvalidCapability(number));
    }
    Ok(root)
}
