//! The bare machine, as the kernel sees it.

use core::arch::asm;
use core::cell::Cell;

use super::apic::{IoApics, Pin, LOCAL_APIC};
use super::context::FpuState;
use super::cpu::{self, Msr};
use super::layout::WINDOW_BASE;
use super::rate::Rate;
use super::{entry, paging, serial};
use crate::arch::{Line, Platform, PortWidth};
use crate::cores::{CoreId, Cores};
use crate::mem::PhysAddr;

/// Port of QEMU's `isa-debug-exit` device.
const DEBUG_EXIT: u16 = 0xf4;

/// First CPU vector of the interrupts that the kernel numbers from 0 (03, section 7.2).
const FIRST_VECTOR: u8 = 0x20;

/// The machine. Its memory and devices exist once; a value holds what was found out about them.
pub struct Machine {
    pub(super) io_apics: IoApics,
    /// Number of this core's local APIC.
    pub(super) apic_id: Cell<u8>,
    /// Ticks of the time-stamp counter in a microsecond.
    pub(super) ticks_per_us: Cell<u64>,
    pub(super) timer: Cell<Timer>,
    fpu_enabled: Cell<bool>,
}

/// How the local APIC timer is told a deadline.
#[derive(Clone, Copy)]
pub(super) enum Timer {
    /// As a value of the time-stamp counter.
    Deadline,
    /// As a count of its own clock, at this rate.
    Count(Rate),
}

impl Machine {
    /// A machine of which nothing is known yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Machine {
            io_apics: IoApics::new(),
            apic_id: Cell::new(0),
            ticks_per_us: Cell::new(1),
            timer: Cell::new(Timer::Count(Rate::UNKNOWN)),
            fpu_enabled: Cell::new(false),
        }
    }
}

impl Platform for Machine {
    fn cores(&self) -> u8 {
        1
    }

    fn execute_on(&self, _core: CoreId) {}

    fn interrupt_core(&self, _core: CoreId) {}

    fn stall_core(&self, _core: CoreId) {}

    fn flush_cores(&self, _cores: Cores) {}

    #[inline(always)]
    fn base(&self) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(WINDOW_BASE as usize)
    }

    #[inline(always)]
    fn now(&self) -> u64 {
        cpu::time_stamp()
    }

    #[inline(always)]
    fn set_deadline(&self, at: u64) {
        match self.timer.get() {
            // SAFETY: the timer is in the mode that has the register, which only concerns time.
            // 0 would disarm it.
            Timer::Deadline => unsafe { cpu::write_msr(Msr::TscDeadline, at.max(1)) },
            Timer::Count(rate) => {
                // Counted from this very moment: releases are to be exact, however long the path
                // that led here.
                let ticks = at.saturating_sub(cpu::time_stamp());
                LOCAL_APIC.set_count(rate.counts(ticks));
            }
        }
    }

    #[inline(always)]
    fn ticks_per_us(&self) -> u64 {
        self.ticks_per_us.get()
    }

    #[inline(always)]
    fn use_address_space(&self, root: Option<PhysAddr>) {
        entry::set_user_root(match root {
            Some(root) => root.get(),
            None => paging::empty_root(),
        });
    }

    fn kernel_root_entry(&self) -> u64 {
        paging::kernel_root_entry()
    }

    fn flush_page(&self, vaddr: u64) {
        // With isolation, the return to user level loads the root, which forgets everything.
        #[cfg(feature = "isolation")]
        let _ = vaddr;
        #[cfg(not(feature = "isolation"))]
        cpu::flush_page(vaddr);
    }

    fn flush_address_space(&self) {
        #[cfg(not(feature = "isolation"))]
        // SAFETY: the root in use.
        unsafe {
            cpu::set_root(cpu::root())
        }
    }

    fn interrupt_pending(&self) -> bool {
        LOCAL_APIC.is_pending()
    }

    fn route(&self, line: Line, irq: u8) {
        if let Line::IoApic {
            ioapic,
            pin,
            level,
            active_low,
        } = line
        {
            let how = Pin {
                vector: irq.wrapping_add(FIRST_VECTOR),
                level,
                active_low,
            };
            self.io_apics.route(ioapic, pin, how, self.apic_id.get());
        }
    }

    fn set_masked(&self, line: Line, irq: u8, masked: bool) {
        if let Line::IoApic { ioapic, pin, .. } = line {
            let vector = irq.wrapping_add(FIRST_VECTOR);
            self.io_apics.set_masked(ioapic, pin, vector, masked);
        }
    }

    fn ioapics(&self) -> u8 {
        self.io_apics.count()
    }

    fn ioapic_pins(&self, ioapic: u8) -> u8 {
        self.io_apics.pins(ioapic)
    }

    fn port_in(&self, port: u16, width: PortWidth) -> u32 {
        // SAFETY: a port that user level holds a capability for, with the authority over what the
        // device behind it does.
        unsafe {
            match width {
                PortWidth::Byte => cpu::in8(port).into(),
                PortWidth::Word => cpu::in16(port).into(),
                PortWidth::Long => cpu::in32(port),
            }
        }
    }

    fn port_out(&self, port: u16, width: PortWidth, value: u32) {
        // SAFETY: as for `port_in`.
        unsafe {
            match width {
                PortWidth::Byte => cpu::out8(port, value as u8),
                PortWidth::Word => cpu::out16(port, value as u16),
                PortWidth::Long => cpu::out32(port, value),
            }
        }
    }

    fn put_char(&self, byte: u8) {
        serial::put(byte);
        #[cfg(feature = "debug")]
        super::screen::put(byte);
    }

    /// The machine stops here for good even where nobody watches.
    fn halt(&self, status: u8) {
        // SAFETY: the port ends the emulator or does nothing.
        unsafe { cpu::out8(DEBUG_EXIT, status) }
        cpu::stop()
    }

    fn fpu_save(&self, state: &FpuState) {
        self.with_fpu(|| {
            // SAFETY: 512 writable bytes, aligned to 16, that nothing else uses meanwhile; the FPU
            // is enabled.
            unsafe {
                asm!("fxsave64 [{}]", in(reg) state.as_ptr(), options(nostack, preserves_flags))
            }
        });
    }

    fn fpu_save_of(&self, _core: CoreId, _state: &FpuState) {}

    fn fpu_restore(&self, state: &FpuState) {
        self.with_fpu(|| {
            // SAFETY: as above; the image comes from `FpuState::new` or FXSAVE, so its MXCSR is
            // valid. The kernel has no values in the registers that change.
            unsafe {
                asm!("fxrstor64 [{}]", in(reg) state.as_ptr(), options(nostack, preserves_flags))
            }
        });
    }

    #[inline(always)]
    fn fpu_set_enabled(&self, enabled: bool) {
        if self.fpu_enabled.replace(enabled) != enabled {
            cpu::set_fpu_enabled(enabled);
        }
    }
}

impl Machine {
    /// Runs `access` with the FPU enabled, and leaves it as it was.
    #[inline(always)]
    fn with_fpu(&self, access: impl FnOnce()) {
        let enabled = self.fpu_enabled.get();
        self.fpu_set_enabled(true);
        access();
        self.fpu_set_enabled(enabled);
    }
}
