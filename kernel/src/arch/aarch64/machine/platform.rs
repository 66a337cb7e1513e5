//! The bare machine, as the kernel sees it.

use core::cell::Cell;

use sandglass_abi::vspace::aarch64::MAX_IRQ;
use sandglass_lock::Requests;

use super::change::Change;
use super::core_data;
use super::gic::GIC;
use super::layout::WINDOW_BASE;
use super::{cache, cpu, debugger, firmware, paging, serial, tlb};
use crate::arch::abi::context::FpuState;
use crate::arch::abi::devices::{steps, Devices, Line, Maintenance, Space};
use crate::arch::abi::Irq;
use crate::arch::requests::{self, SAVE_FPU, STALL};
use crate::arch::{PhysAddr, Platform};
use crate::cores::{CoreId, Cores, CORES};

/// The software-generated interrupt that comes with a request, and the one by which another core asks this one to look
/// at its queues (04, section 15).
pub const REMOTE_CALL: u8 = 0;
pub const LOOK: u8 = 1;
/// The first interrupt that is not one of these.
pub const FIRST_FREE: u32 = 2;

/// The machine. Its memory and devices exist once; a value holds what was found out about them.
pub struct Machine {
    cores: Cell<u8>,
    /// The core that executes the kernel.
    here: Cell<CoreId>,
    /// Ticks of the counter in [`crate::arch::abi::clock::UNIT_US`] microseconds.
    pub(in crate::arch::aarch64) ticks_per_unit: Cell<u64>,
    /// The highest interrupt that user level may name.
    pub(in crate::arch::aarch64) max_irq: Cell<u64>,
}

impl Machine {
    /// A machine of which nothing is known yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Machine {
            cores: Cell::new(1),
            here: Cell::new(CoreId::BOOT),
            ticks_per_unit: Cell::new(1000),
            max_irq: Cell::new(MAX_IRQ),
        }
    }

    /// One more core runs: the first that did not.
    pub(in crate::arch::aarch64) fn add_core(&self) {
        self.cores.set(self.cores.get().wrapping_add(1));
    }

    /// Whether `core` runs.
    fn runs(&self, core: CoreId) -> bool {
        core.index() < usize::from(self.cores())
    }

    /// Asks `core`, another, for `what`, and returns when it has done it.
    fn ask(&self, core: CoreId, what: Requests) {
        if CORES > 1 && self.runs(core) {
            requests::ask(Cores::NONE.with(core), what, |core| {
                GIC.signal(core, REMOTE_CALL)
            });
        }
    }
}

impl Machine {
    /// Changes the interrupt `line`: by itself, or by its core, if nobody else reaches it.
    fn change(&self, line: Line, route: bool, masked: bool) {
        let change = Change {
            number: line.id.into(),
            trigger: line.trigger,
            route,
            masked,
        };
        if !GIC.has(change.number) {
            return;
        }
        let elsewhere = CORES > 1 && self.here.get() != line.core;
        if elsewhere && change.is_private() && GIC.is_banked() {
            self.ask(line.core, requests::own(change.bits()));
        } else {
            GIC.change(line.core, change);
        }
    }
}

impl Platform for Machine {
    #[inline(always)]
    fn cores(&self) -> u8 {
        if CORES > 1 {
            self.cores.get()
        } else {
            1
        }
    }

    #[inline(always)]
    fn execute_on(&self, core: CoreId) {
        self.here.set(core);
    }

    fn interrupt_core(&self, core: CoreId) {
        if self.runs(core) {
            GIC.signal(core, LOOK);
        }
    }

    fn stall_core(&self, core: CoreId) -> u64 {
        self.ask(core, STALL);
        requests::left_user_code_at()
    }

    fn others_wait(&self) -> bool {
        requests::others_wait()
    }

    #[inline(always)]
    fn base(&self) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(WINDOW_BASE as usize)
    }

    fn zeroed(&self, start: PhysAddr, bytes: u64) {
        // One, while there are users: a reset has zeroed a piece. The boot, which nothing bounds, zeroes whole objects.
        for (at, bytes) in steps::<1>(start, bytes) {
            cache::maintain(Maintenance::Clean, at.get(), bytes);
        }
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        cpu::time_stamp()
    }

    #[inline(always)]
    fn set_deadline(&self, at: u64) {
        cpu::set_timer(at);
    }

    #[inline(always)]
    fn ticks_per_unit(&self) -> u64 {
        self.ticks_per_unit.get()
    }

    #[inline(always)]
    fn use_address_space(&self, _last: u64, space: Option<Space>) -> Option<u64> {
        let root = match space {
            Some(space) => space.word(),
            None => paging::empty_root(),
        };
        // SAFETY: a root that the kernel keeps as long as it is in use, or the one that maps nothing. The kernel's own
        // addresses are not translated by it, and leaving the kernel synchronises.
        unsafe { cpu::set_user_root(root) }
        None
    }

    #[inline(always)]
    fn interrupt_pending(&self) -> bool {
        cpu::interrupt_waits()
    }

    fn route(&self, line: Line, _irq: Irq) {
        self.change(line, true, false);
    }

    fn set_masked(&self, line: Line, _irq: Irq, masked: bool) {
        self.change(line, false, masked);
    }

    #[inline(always)]
    fn mask_taken(&self, line: Line, _irq: Irq) {
        GIC.set_masked(line.core, line.id.into(), true);
    }

    fn put_char(&self, byte: u8) {
        serial::put(byte);
    }

    fn halt(&self, status: u8) {
        debugger::exit(status);
        // Off is what a good end looks like: nobody is to take another one for it.
        if status == 0 {
            firmware::turn_off();
        }
        cpu::stop()
    }

    fn fpu_save(&self, state: &FpuState) {
        core_data::save_fpu(state);
    }

    fn fpu_save_of(&self, core: CoreId, state: &FpuState) {
        requests::prepare_fpu_save(state);
        self.ask(core, SAVE_FPU);
    }

    #[inline(always)]
    fn fpu_switch(&self, from: Option<&FpuState>, to: &FpuState) {
        core_data::switch_fpu(from, to);
    }

    #[inline(always)]
    fn fpu_set_enabled(&self, enabled: bool) {
        cpu::set_fpu_enabled(enabled);
    }
}

impl Devices for Machine {
    fn tables_written(&self) {
        cpu::tables_written();
    }

    fn forget_page(&self, asid: u16, vaddr: u64) {
        tlb::forget_page(asid, vaddr);
    }

    fn forget_space(&self, asid: u16) {
        tlb::forget_space(asid);
    }

    fn forget_spaces(&self) {
        tlb::forget_all();
    }

    fn maintain(&self, what: Maintenance, start: PhysAddr, bytes: u64) {
        cache::maintain(what, start.get(), bytes);
    }

    fn max_irq(&self) -> u64 {
        self.max_irq.get()
    }

    fn max_sgi_target(&self) -> u64 {
        GIC.max_target()
    }

    fn raise_sgi(&self, sgi: u8, target: u32) {
        GIC.signal_target(target, sgi);
    }

    fn signal(&self, core: CoreId, sgi: u8) {
        GIC.signal(core, sgi);
    }
}
