//! The bare machine, as the kernel sees it.

use core::cell::Cell;
use core::sync::atomic::{AtomicU8, Ordering};

use sandglass_lock::Requests;

use super::apic::{self, IoApics, Mode, Pin, Signal, LOCAL_APIC};
use super::barriers;
use super::core_data;
use super::cpu::{self, Msr};
use super::layout::WINDOW_BASE;
use super::rate::Rate;
use super::vectors::LOOK;
use super::vectors::REMOTE_CALL;
use super::{paging, serial};
use crate::arch::abi::context::FpuState;
use crate::arch::abi::devices::{Devices, Line, PortWidth};
use crate::arch::abi::{Irq, Space};
use crate::arch::requests::{self, FLUSH, SAVE_FPU, STALL};
use crate::arch::Platform;
use crate::cores::{CoreId, Cores, CORES};
use crate::mem::PhysAddr;

/// Port of QEMU's `isa-debug-exit` device.
const DEBUG_EXIT: u16 = 0xf4;

/// First CPU vector of the interrupts that the kernel numbers from 0 (03, section 7.2).
const FIRST_VECTOR: u8 = 0x20;

/// The machine. Its memory and devices exist once; a value holds what was found out about them.
pub struct Machine {
    pub(in crate::arch::x86_64) io_apics: IoApics,
    cores: Cell<u8>,
    /// Ticks of the time-stamp counter in a microsecond.
    pub(in crate::arch::x86_64) ticks_per_us: Cell<u64>,
    pub(in crate::arch::x86_64) timer: Cell<Timer>,
}

/// How the local APIC timer is told a deadline.
#[derive(Clone, Copy)]
pub(in crate::arch::x86_64) enum Timer {
    /// As a value of the time-stamp counter.
    Deadline,
    /// As a count of its own clock, at this rate. The mode of the local APIC is here since here it costs no line of a cache.
    Count(Rate, Mode),
}

impl Machine {
    /// A machine of which nothing is known yet.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Machine {
            io_apics: IoApics::new(),
            cores: Cell::new(1),
            ticks_per_us: Cell::new(1),
            timer: Cell::new(Timer::Count(Rate::UNKNOWN, Mode::XApic)),
        }
    }
}

/// Whether other cores run, or the end of the machine has begun.
// Behind the other data, as `CORE_DATA`.
#[link_section = ".data"]
static STAGE: AtomicU8 = AtomicU8::new(ALONE);
const ALONE: u8 = 0;
const SEVERAL: u8 = 1;
const ENDING: u8 = 2;

/// Stops all cores but the one that executes this: they come to [`have_last_word`]. `false` if that had been done before.
fn end_others() -> bool {
    let before = STAGE.swap(ENDING, Ordering::Relaxed);
    if CORES > 1 && before == SEVERAL {
        LOCAL_APIC.interrupt_others();
    }
    before != ENDING
}

/// The machine is to end, and the core that executes this to say why. If another one does so already, or it has begun itself,
/// it stops instead.
pub fn have_last_word() {
    if !end_others() {
        cpu::stop()
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
    fn execute_on(&self, _core: CoreId) {}

    fn interrupt_core(&self, core: CoreId) {
        if !self.running(Cores::NONE.with(core)).is_empty() {
            self.signal(core, LOOK);
        }
    }

    fn stall_core(&self, core: CoreId) -> u64 {
        self.ask(Cores::NONE.with(core), STALL);
        requests::left_user_code_at()
    }

    fn others_wait(&self) -> bool {
        requests::others_wait()
    }

    /// No cache of a PC is passed by.
    #[inline(always)]
    fn zeroed(&self, _start: PhysAddr, _bytes: u64) {}

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
            Timer::Count(rate, mode) => {
                // Counted from this very moment: releases are to be exact, however long the path
                // that led here.
                let ticks = at.saturating_sub(cpu::time_stamp());
                LOCAL_APIC.set_count(mode, rate.counts(ticks));
            }
        }
    }

    #[inline(always)]
    fn ticks_per_unit(&self) -> u64 {
        self.ticks_per_us.get()
    }

    #[inline(always)]
    fn use_address_space(&self, last: u64, space: Option<Space>) -> Option<u64> {
        let root = match space {
            Some(space) => space.root().get(),
            None => paging::empty_root(),
        };
        if !paging::ISOLATED && root != last {
            // SAFETY: slot 511 of each root maps the kernel as the present one does (`paging::kernel_root_entry`).
            unsafe { cpu::set_root(root) }
        }
        Some(root)
    }

    fn interrupt_pending(&self) -> bool {
        LOCAL_APIC.is_pending()
    }

    fn route(&self, line: Line, irq: Irq) {
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
            self.io_apics
                .route(ioapic, pin, how, apic::id_of(CoreId::BOOT));
        }
    }

    fn set_masked(&self, line: Line, irq: Irq, masked: bool) {
        if let Line::IoApic { ioapic, pin, .. } = line {
            let vector = irq.wrapping_add(FIRST_VECTOR);
            self.io_apics.set_masked(ioapic, pin, vector, masked);
        }
    }

    fn mask_taken(&self, line: Line, irq: Irq) {
        self.set_masked(line, irq, true);
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
        end_others();
        cpu::stop()
    }

    fn fpu_save(&self, state: &FpuState) {
        core_data::save_fpu(state);
    }

    fn fpu_save_of(&self, core: CoreId, state: &FpuState) {
        requests::prepare_fpu_save(state);
        self.ask(Cores::NONE.with(core), SAVE_FPU);
    }

    #[inline(always)]
    fn fpu_switch(&self, from: Option<&FpuState>, to: &FpuState) {
        // SAFETY: user code may use the FPU, says `Platform`, so it is enabled.
        unsafe { core_data::switch_fpu(from, to) };
    }

    #[inline(always)]
    fn fpu_set_enabled(&self, enabled: bool) {
        cpu::set_fpu_enabled(enabled);
    }
}

impl Devices for Machine {
    /// As [`Self::flush_address_space`]: INVLPG would do, but QEMU goes on with what it has decoded elsewhere in a large page.
    #[inline(always)]
    fn flush_page(&self, _vaddr: u64) {
        self.flush_address_space();
    }

    /// With isolation, the entry has forgotten every user translation, and the kernel makes none.
    #[inline(always)]
    fn flush_address_space(&self) {
        if !paging::ISOLATED {
            cpu::forget_translations();
        }
    }

    fn flush_cores(&self, cores: Cores) {
        self.ask(cores, FLUSH);
    }

    fn forget_root(&self, root: PhysAddr) {
        barriers::forget_root(root.get());
    }

    fn kernel_root_entry(&self) -> u64 {
        paging::kernel_root_entry()
    }

    fn watches_eight_bytes(&self) -> bool {
        cpu::watches_eight_bytes()
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
}

impl Machine {
    /// The first core that does not run yet runs, and has told the number of its local APIC.
    pub(in crate::arch::x86_64) fn add_core(&self) {
        STAGE.store(SEVERAL, Ordering::Relaxed);
        self.cores.set(self.cores.get().wrapping_add(1));
    }

    /// Lets the timer of this core raise its interrupt.
    pub(in crate::arch::x86_64) fn start_timer(&self) {
        LOCAL_APIC.start_timer(matches!(self.timer.get(), Timer::Deadline));
    }

    /// Those of `cores` that run.
    fn running(&self, cores: Cores) -> Cores {
        cores
            .iter()
            .filter(|core| core.index() < usize::from(self.cores()))
            .fold(Cores::NONE, Cores::with)
    }

    /// Raises `vector` at another core, which runs.
    fn signal(&self, core: CoreId, vector: u8) {
        LOCAL_APIC.send(apic::id_of(core), Signal::Vector(vector));
    }

    /// Asks those of `cores`, others, that run for `what`, and returns when they have done it.
    fn ask(&self, cores: Cores, what: Requests) {
        if CORES > 1 {
            requests::ask(self.running(cores), what, |core| {
                self.signal(core, REMOTE_CALL)
            });
        }
    }
}
