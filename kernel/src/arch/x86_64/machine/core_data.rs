//! What each core knows of its own beside the kernel's state, and what it does to its FPU.

use core::arch::asm;
use core::cell::Cell;

use super::barriers::Barriers;
use super::cpu;
use crate::arch::abi::context::{FpuState, HAS_AVX};
use crate::cores::{CoreId, CORES};

/// The data of one core, in a line of a cache of its own, of which most builds have no use.
#[repr(C, align(64))]
pub struct CoreData {
    /// Whether the processor watches anything for the thread that runs, or ran last.
    watches: Cell<bool>,
    /// What is done against speculation.
    pub(in crate::arch::x86_64) barriers: Barriers,
}

// SAFETY: each is accessed by its own core only, with interrupts off.
unsafe impl Sync for CoreData {}

// Behind the other data: of the zeroed, which are whole pages, it would take one more.
#[link_section = ".data"]
pub static CORE_DATA: [CoreData; CORES] = [const { CoreData::new() }; CORES];

impl CoreData {
    const fn new() -> Self {
        CoreData {
            watches: Cell::new(false),
            barriers: Barriers::new(),
        }
    }

    /// The data of `core`, for that core.
    #[inline(always)]
    pub const fn of(core: CoreId) -> &'static CoreData {
        &CORE_DATA[core.index()]
    }

    /// Whether the processor watches anything.
    #[cfg(feature = "hardware-debug")]
    #[inline(always)]
    pub fn watches(&self) -> bool {
        self.watches.get()
    }

    #[cfg(feature = "hardware-debug")]
    pub fn set_watches(&self, watches: bool) {
        self.watches.set(watches);
    }
}

/// The core, in the kernel, is in no address space of a user: the entry has seen to that.
#[inline(always)]
pub fn leave_user_space() {}

/// Whether there is anything that only a core itself can do to its part of the machine.
pub const HAS_OWN: bool = false;

/// Nothing: nobody asks for it.
pub fn do_own(_core: CoreId, _what: u32) {}

/// Stores the FPU's registers in `state`, also if user code may not use it.
pub fn save_fpu(state: &FpuState) {
    let enabled = cpu::fpu_is_enabled();
    cpu::set_fpu_enabled(true);
    // SAFETY: the FPU is enabled.
    unsafe { store_fpu(state) };
    cpu::set_fpu_enabled(enabled);
}

/// Loads the FPU's registers from `to`; those of before are stored in `from`.
///
/// # Safety
/// The FPU is enabled.
#[inline(always)]
pub unsafe fn switch_fpu(from: Option<&FpuState>, to: &FpuState) {
    if let Some(from) = from {
        // SAFETY: the caller's.
        unsafe { store_fpu(from) };
    }
    // SAFETY: as many readable bytes as the instruction loads, aligned as it wants; the FPU is enabled; the image
    // comes from `FpuState::new` or from `store_fpu`, so its MXCSR and its header are valid. The kernel has no values in
    // the registers that change.
    unsafe {
        if HAS_AVX {
            asm!("xrstor64 [{}]", in(reg) to.as_ptr(), in("eax") ALL_COMPONENTS, in("edx") ALL_COMPONENTS,
                 options(nostack, preserves_flags));
        } else {
            asm!("fxrstor64 [{}]", in(reg) to.as_ptr(), options(nostack, preserves_flags));
        }
    }
}

/// Asks XSAVE and XRSTOR for all components that XCR0 has.
const ALL_COMPONENTS: u32 = u32::MAX;

/// Stores this core's FPU registers in `state`.
///
/// # Safety
/// The FPU is enabled.
#[inline(always)]
unsafe fn store_fpu(state: &FpuState) {
    // SAFETY: as many writable bytes as the instruction stores, aligned as it wants, that nothing else uses meanwhile; the
    // FPU is enabled, says the caller.
    unsafe {
        if HAS_AVX {
            asm!("xsave64 [{}]", in(reg) state.as_ptr(), in("eax") ALL_COMPONENTS, in("edx") ALL_COMPONENTS,
                 options(nostack, preserves_flags));
        } else {
            asm!("fxsave64 [{}]", in(reg) state.as_ptr(), options(nostack, preserves_flags));
        }
    }
}
