//! What each core knows of its own: the user side that the entry code serves, and its FPU.

use core::arch::{asm, global_asm};
use core::cell::Cell;
use core::mem::{offset_of, size_of};

use super::barriers::Barriers;
use super::{cpu, paging};
use crate::arch::abi::context::{Context, FpuState, HAS_AVX};
use crate::cores::{CoreId, CORES};

/// The data of one core, in a line of a cache of its own. The order is the entry code's matter.
#[repr(C, align(64))]
pub struct CoreData {
    /// Context of the thread that runs, where its registers are stored.
    pub(in crate::arch::x86_64) context: Cell<*const Context>,
    /// Root of the address space to return to; without [isolation](paging::ISOLATED), of the one in use, too.
    pub(in crate::arch::x86_64) root: Cell<u64>,
    /// GS base in the processor.
    pub(in crate::arch::x86_64) gs_base: Cell<u64>,
    /// Whether the FPU can be used.
    fpu_enabled: Cell<bool>,
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

// As in `turn`: where the oracle for time finds who runs.
global_asm!(
    ".globl sandglass_watch_running",
    ".set sandglass_watch_running, {core_data} + {context}",
    // And where whoever watches the exits finds the root that they load, of the first core, and how far that of the next is.
    ".globl sandglass_exit_root",
    ".set sandglass_exit_root, {core_data} + {root}",
    ".globl sandglass_exit_root_step",
    ".set sandglass_exit_root_step, {step}",
    core_data = sym CORE_DATA,
    context = const offset_of!(CoreData, context),
    root = const offset_of!(CoreData, root),
    step = const size_of::<CoreData>(),
);

impl CoreData {
    const fn new() -> Self {
        CoreData {
            context: Cell::new(core::ptr::null()),
            root: Cell::new(0),
            gs_base: Cell::new(0),
            fpu_enabled: Cell::new(false),
            watches: Cell::new(false),
            barriers: Barriers::new(),
        }
    }

    /// The data of `core`, for that core.
    #[inline(always)]
    pub const fn of(core: CoreId) -> &'static CoreData {
        &CORE_DATA[core.index()]
    }

    /// Makes the next return go to the address space of `root`.
    #[inline(always)]
    pub fn set_user_root(&self, root: u64) {
        if self.root.replace(root) != root && !paging::ISOLATED {
            // SAFETY: slot 511 of each root maps the kernel as the present one does (`paging::kernel_root_entry`).
            unsafe { cpu::set_root(root) }
        }
    }

    /// The core, in the kernel, is in no address space of a user: the entry has seen to that.
    #[inline(always)]
    pub fn leave_user_space(&self) {}

    /// Whether there is anything that only a core itself can do to its part of the machine.
    pub const HAS_OWN: bool = false;

    /// Nothing: nobody asks for it.
    pub fn do_own(_core: CoreId, _what: u32) {}

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

    /// Lets user code use the FPU, or makes its use an exception.
    #[inline(always)]
    pub fn set_fpu_enabled(&self, enabled: bool) {
        if self.fpu_enabled.get() != enabled {
            self.fpu_enabled.set(enabled);
            cpu::set_fpu_enabled(enabled);
        }
    }

    /// Stores the FPU's registers in `state`, also if user code may not use it.
    pub fn save_fpu(&self, state: &FpuState) {
        let enabled = self.fpu_enabled.get();
        self.set_fpu_enabled(true);
        // SAFETY: the FPU is enabled.
        unsafe { save_fpu(state) };
        self.set_fpu_enabled(enabled);
    }

    /// Lets user code use the FPU, with the registers in `to`; those of before are stored in `from`.
    #[inline(always)]
    pub fn switch_fpu(&self, from: Option<&FpuState>, to: &FpuState) {
        self.set_fpu_enabled(true);
        if let Some(from) = from {
            // SAFETY: the FPU is enabled.
            unsafe { save_fpu(from) };
        }
        // SAFETY: as many readable bytes as the instruction loads, aligned as it wants; the FPU is enabled; the image
        // comes from `FpuState::new` or from `save_fpu`, so its MXCSR and its header are valid. The kernel has no values in
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
}

/// Asks XSAVE and XRSTOR for all components that XCR0 has.
const ALL_COMPONENTS: u32 = u32::MAX;

/// Stores this core's FPU registers in `state`.
///
/// # Safety
/// The FPU is enabled.
#[inline(always)]
unsafe fn save_fpu(state: &FpuState) {
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
