//! Maintenance of caches (07, section 9): of a part of a page, in steps between which the kernel looks for interrupts.

use sandglass_abi::invocation::aarch64 as label;

use super::steps::Steps;
use crate::arch::abi::devices::{Devices, Maintenance, MAINTENANCE_BYTES};
use crate::arch::abi::object::{Progress, Work};
use crate::invoke::Invocation;
use crate::object::ResumePoint;
use crate::time::Preempted;
use crate::Kernel;

/// What the invocation asks for, of a page or of an address space.
pub fn requested(call: &Invocation) -> Option<Maintenance> {
    Some(match call.label() {
        label::VSPACE_CLEAN_DATA | label::PAGE_CLEAN_DATA => Maintenance::Clean,
        label::VSPACE_INVALIDATE_DATA | label::PAGE_INVALIDATE_DATA => Maintenance::Invalidate,
        label::VSPACE_CLEAN_INVALIDATE_DATA | label::PAGE_CLEAN_INVALIDATE_DATA => {
            Maintenance::CleanInvalidate
        }
        label::VSPACE_UNIFY_INSTRUCTION | label::PAGE_UNIFY_INSTRUCTION => Maintenance::Unify,
        _ => return None,
    })
}

/// Does `work`, from where a preempted execution of this very call has come.
///
/// # Errors
/// It is to go on later.
pub fn perform(k: &Kernel, call: &Invocation, work: Work) -> Result<(), Preempted> {
    let caller = call.caller.at(k);
    let mut done = match caller.progress() {
        Some(ResumePoint::Arch(begun)) if begun.work == work => begun.done,
        _ => 0,
    };
    let mut steps = Steps::<4>::new();
    while done < work.bytes {
        let at = work.start.offset(done);
        // Up to a boundary, so that only the first and the last step have parts of lines.
        let step = MAINTENANCE_BYTES - at.get() % MAINTENANCE_BYTES;
        let step = step.min(work.bytes - done);
        k.machine.maintain(work.what, at, step);
        done += step;
        if done < work.bytes && steps.point(k).is_err() {
            caller.leave_progress(k, ResumePoint::Arch(Progress { work, done }));
            return Err(Preempted);
        }
    }
    Ok(())
}
