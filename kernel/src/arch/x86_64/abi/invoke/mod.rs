//! Invocations of the objects that x86_64 adds (03, sections 7.2 and 8).

#![forbid(unsafe_code)]

pub mod asid;
#[cfg(feature = "hardware-debug")]
mod debugging;
pub mod frame;
pub mod iommu;
pub mod ioport;
pub mod irq;
pub mod paging;
pub mod profile;

use sandglass_abi::profile::THIS as PROFILE;

use crate::arch::abi::object::paging::Pml4;
use crate::arch::abi::space;
use crate::cap::Capability;
use crate::invoke::{Error, Invocation, Outcome, Stop};
use crate::mem::{Kind, Ref};
use crate::object::Tcb;
use crate::time::Turn;
use crate::{Kernel, View};

/// Invokes a capability of `kind`, as [`crate::invoke::invoke`] does.
///
/// # Errors
/// The first check that failed, in the order of the ABI.
#[inline(always)]
pub fn invoke(k: &mut Kernel, call: &Invocation, kind: Kind) -> Result<Outcome, Stop> {
    Ok(match kind {
        Kind::Pdpt | Kind::PageDirectory | Kind::PageTable => paging::invoke(k, call, kind),
        // A root table has no invocations (03, section 8.1).
        Kind::Pml4 => Err(Error::IllegalOperation),
        Kind::IoPageTable if PROFILE.iommu => iommu::invoke(call),
        Kind::AsidControl => asid::invoke_control(k, call),
        Kind::AsidPool => asid::invoke_pool(k, call),
        Kind::IoPortControl => ioport::invoke_control(k, call),
        Kind::IoPort => ioport::invoke(k, call),
        _ => Err(Error::InvalidCapability(0)),
    }?)
}

/// Invokes the TCB of `thread` in a way that only this architecture has, or none.
///
/// # Errors
/// As [`invoke`].
#[inline(always)]
pub fn thread(k: &Kernel, call: &Invocation, thread: Ref<Tcb>) -> Result<Outcome, Stop> {
    #[cfg(feature = "hardware-debug")]
    return debugging::invoke(k, call, thread);
    #[cfg(not(feature = "hardware-debug"))]
    {
        let _ = (k, call, thread);
        Err(Error::IllegalOperation.into())
    }
}

/// The last capability to an object of `kind` goes: one bounded step ends it.
pub fn finalise(k: &Kernel, turn: &Turn, kind: Kind, cap: Capability) {
    match kind {
        Kind::IoPort => {
            if let Some(ports) = cap.io_ports() {
                ioport::release(k, ports);
            }
        }
        Kind::AsidPool => asid::remove_pool(k, turn, cap),
        Kind::Pml4 => asid::free(k, turn, cap),
        Kind::Pdpt | Kind::PageDirectory | Kind::PageTable => paging::unmap(k, kind, cap),
        _ => {}
    }
}

/// The root table of `cap`, whose identifier is `asid`, if that still names it.
#[inline(always)]
pub fn resolve(k: &View, cap: Capability, asid: u16) -> Result<Ref<Pml4>, Error> {
    let root = space::root_of(k, asid).ok_or(Error::invalid_root())?;
    if cap.word().get::<Pml4>() != Some(root) {
        return Err(Error::InvalidCapability(1));
    }
    Ok(root)
}
