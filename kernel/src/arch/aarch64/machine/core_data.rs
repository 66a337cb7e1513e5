//! What a core does to its own part of the machine: its address space, its private interrupts, the registers of its FPU.

use core::arch::asm;

use super::change::Change;
use super::gic::GIC;
use super::{cpu, paging};
use crate::arch::abi::context::FpuState;
use crate::cores::CoreId;

/// The core is in no address space of a user from here on: its walks of tables, of which it may make some without being
/// asked, do not touch what may be somebody's memory soon.
pub fn leave_user_space() {
    // SAFETY: a root that maps nothing, until the kernel says which comes next.
    unsafe { cpu::set_user_root(paging::empty_root()) }
    // It is so before the core says that it has left.
    cpu::synchronise();
}

/// Whether there is anything that only a core itself can do to its part of the machine: to its private interrupts of a
/// GICv2.
pub const HAS_OWN: bool = true;

/// Changes a private interrupt of `core`, which executes this, as `what` says.
pub fn do_own(core: CoreId, what: u32) {
    GIC.change(core, Change::from_bits(what));
}

/// Stores the FPU's registers in `state`, also if user code may not use it: the kernel always can. It does so to store and
/// load registers only: it is compiled without.
pub fn save_fpu(state: &FpuState) {
    // SAFETY: 528 writable bytes, aligned to 16, that nothing else uses meanwhile.
    unsafe {
        asm!(
            ".arch_extension fp",
            ".arch_extension simd",
            "stp q0, q1, [{state}]",
            "stp q2, q3, [{state}, #32]",
            "stp q4, q5, [{state}, #64]",
            "stp q6, q7, [{state}, #96]",
            "stp q8, q9, [{state}, #128]",
            "stp q10, q11, [{state}, #160]",
            "stp q12, q13, [{state}, #192]",
            "stp q14, q15, [{state}, #224]",
            "stp q16, q17, [{state}, #256]",
            "stp q18, q19, [{state}, #288]",
            "stp q20, q21, [{state}, #320]",
            "stp q22, q23, [{state}, #352]",
            "stp q24, q25, [{state}, #384]",
            "stp q26, q27, [{state}, #416]",
            "stp q28, q29, [{state}, #448]",
            "stp q30, q31, [{state}, #480]",
            "mrs {status}, fpsr",
            "mrs {control}, fpcr",
            "str {status}, [{state}, #512]",
            "str {control}, [{state}, #520]",
            state = in(reg) state.as_ptr(),
            status = out(reg) _,
            control = out(reg) _,
            options(nostack, preserves_flags)
        );
    }
}

/// Loads the registers in `to`; those of before are stored in `from`.
#[inline(always)]
pub fn switch_fpu(from: Option<&FpuState>, to: &FpuState) {
    if let Some(from) = from {
        save_fpu(from);
    }
    // SAFETY: 528 readable bytes, aligned to 16. The kernel has no values in the registers that change.
    unsafe {
        asm!(
            ".arch_extension fp",
            ".arch_extension simd",
            "ldp q0, q1, [{state}]",
            "ldp q2, q3, [{state}, #32]",
            "ldp q4, q5, [{state}, #64]",
            "ldp q6, q7, [{state}, #96]",
            "ldp q8, q9, [{state}, #128]",
            "ldp q10, q11, [{state}, #160]",
            "ldp q12, q13, [{state}, #192]",
            "ldp q14, q15, [{state}, #224]",
            "ldp q16, q17, [{state}, #256]",
            "ldp q18, q19, [{state}, #288]",
            "ldp q20, q21, [{state}, #320]",
            "ldp q22, q23, [{state}, #352]",
            "ldp q24, q25, [{state}, #384]",
            "ldp q26, q27, [{state}, #416]",
            "ldp q28, q29, [{state}, #448]",
            "ldp q30, q31, [{state}, #480]",
            "ldr {status}, [{state}, #512]",
            "ldr {control}, [{state}, #520]",
            "msr fpsr, {status}",
            "msr fpcr, {control}",
            state = in(reg) to.as_ptr(),
            status = out(reg) _,
            control = out(reg) _,
            options(nostack, preserves_flags)
        );
    }
}
