//! The hosted machine: a byte array, a clock that is set by hand, and records of what the kernel
//! asked for. It speaks the ABI that the kernel is built for, whose devices are in `arch/<isa>/hosted`; its users are
//! scripts that set registers and raise events.

pub mod aside;
mod boot;
mod record;
pub(super) mod words;

/// What tests of the boot expect.
#[cfg(test)]
pub use super::isa::hosted::expected;
/// End of what is handed out as device memory.
pub use super::isa::hosted::DEVICE_TOP;
pub use boot::{boot, boot_loaded};
pub use record::Seen;

use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::cell::{Cell, RefCell};
use std::vec::Vec;

use super::abi::context::FPU_WORDS;
use super::abi::{Line, Space};
use super::isa::hosted::{root_of, Board};
use super::{FpuState, Platform};
use crate::arch::abi::Irq;
use crate::arch::PhysAddr;
use crate::cores::{CoreId, CORES};

/// Alignment of the memory, so that aligned physical addresses are aligned addresses.
const ALIGNMENT: usize = 1 << 21;

/// What each core has for itself.
#[derive(Default)]
struct Core {
    clock: Cell<u64>,
    deadline: Cell<Option<u64>>,
    space: Cell<Option<Space>>,
    fpu: Cell<Registers>,
    fpu_enabled: Cell<bool>,
    /// Looks that were raised and not taken.
    is_interrupted: Cell<bool>,
    stalls: Cell<u64>,
    /// When it arrives at the kernel by itself, unless it is stalled before.
    arrives: Cell<Option<u64>>,
    stalled_at: Cell<u64>,
    services: Cell<u64>,
    flushes: Cell<u64>,
}

/// The FPU's registers, as a thread's state has them.
#[derive(Clone, Copy)]
struct Registers([u64; FPU_WORDS]);

impl Default for Registers {
    fn default() -> Self {
        Registers([0; FPU_WORDS])
    }
}

/// A machine in an ordinary process. Physical addresses are offsets in its memory.
pub struct Machine {
    /// Where its memory begins, a multiple of [`ALIGNMENT`].
    base: *mut u8,
    /// Bytes of memory.
    bytes: usize,
    /// What the host gave, for what; the memory is a part of it.
    allocated: *mut u8,
    layout: Layout,
    ticks_per_unit: u64,
    cores: [Core; CORES],
    executing: Cell<CoreId>,
    running: Cell<u8>,
    interrupt_pending: Cell<bool>,
    quiet_looks: Cell<Option<u64>>,
    ticks_per_look: Cell<u64>,
    clock_observer: Cell<Option<fn()>>,
    ticks_per_remote_call: Cell<u64>,
    pub(in crate::arch) board: Board,
    console: RefCell<Vec<u8>>,
    halted: Cell<Option<u8>>,
    recorder: record::Recorder,
}

impl Machine {
    /// A machine with `bytes` of zeroed memory, rounded up to 2 MiB, and a clock of
    /// `ticks_per_unit`.
    ///
    /// # Panics
    /// If `bytes` is 0 or more than the process can have.
    pub fn new(bytes: usize, ticks_per_unit: u64) -> Self {
        assert!(bytes > 0, "a machine needs memory");
        let bytes = bytes.next_multiple_of(ALIGNMENT);
        // Not with our alignment: hosts give memory of a larger alignment than their own by writing all the zeros,
        // and else pages that cost nothing until they are touched, of which most machines here touch few.
        let layout = Layout::array::<u128>((bytes + ALIGNMENT) / size_of::<u128>())
            .expect("a size below the address space");
        // SAFETY: the size is not 0.
        let allocated = unsafe { alloc_zeroed(layout) };
        if allocated.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: what is added is less than the alignment, by which more was asked for.
        let base = unsafe { allocated.add(allocated.align_offset(ALIGNMENT)) };
        Machine {
            base,
            bytes,
            allocated,
            layout,
            ticks_per_unit,
            cores: Default::default(),
            executing: Cell::new(CoreId::BOOT),
            running: Cell::new(CORES as u8),
            interrupt_pending: Cell::new(false),
            quiet_looks: Cell::new(None),
            ticks_per_look: Cell::new(0),
            clock_observer: Cell::new(None),
            ticks_per_remote_call: Cell::new(0),
            board: Board::default(),
            console: RefCell::default(),
            halted: Cell::new(None),
            recorder: record::Recorder::default(),
        }
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn core(&self) -> &Core {
        self.core_of(self.executing.get())
    }

    fn core_of(&self, core: CoreId) -> &Core {
        &self.cores[core.index()]
    }

    /// Lets `ticks` pass on the core that executes.
    pub fn advance(&self, ticks: u64) {
        let clock = &self.core().clock;
        clock.set(clock.get() + ticks);
    }

    /// The clock of the core that executes, in ticks.
    pub fn clock(&self) -> u64 {
        self.core().clock.get()
    }

    /// The clock of `core`, in ticks.
    pub fn clock_of(&self, core: CoreId) -> u64 {
        self.core_of(core).clock.get()
    }

    /// Sets the clock of `core`, in ticks: its users keep the clocks of a machine's cores in step, as
    /// far as an order of events on several cores needs it.
    pub fn set_clock_of(&self, core: CoreId, at: u64) {
        self.core_of(core).clock.set(at);
    }

    /// When the timer of the core that executes is to fire, in ticks.
    pub fn deadline(&self) -> u64 {
        self.deadline_of(self.executing.get())
    }

    /// When the timer of `core` is to fire, in ticks.
    pub fn deadline_of(&self, core: CoreId) -> u64 {
        self.core_of(core).deadline.get().unwrap_or(u64::MAX)
    }

    /// Makes a machine of `cores` of the cores that the kernel is built for, at least the first.
    pub fn set_cores(&self, cores: u8) {
        self.running.set(cores.clamp(1, CORES as u8));
    }

    /// Whether `core` was asked to look at its queues; it is not any more.
    pub fn take_interrupted(&self, core: CoreId) -> bool {
        self.core_of(core).is_interrupted.take()
    }

    /// Whether `core` was asked to look at its queues and has not done so.
    pub fn is_interrupted(&self, core: CoreId) -> bool {
        self.core_of(core).is_interrupted.get()
    }

    /// Number of times that `core` was made to leave user code.
    pub fn stalls_of(&self, core: CoreId) -> u64 {
        self.core_of(core).stalls.get()
    }

    /// `core` arrives at the kernel at the tick `at` (of the clock of whoever is in it), and waits for
    /// its turn from then on; with `None`, not before it is told so.
    pub fn set_arrival(&self, core: CoreId, at: Option<u64>) {
        self.core_of(core).arrives.set(at);
    }

    /// When `core` arrives at the kernel by itself, as it was told.
    pub fn arrival_of(&self, core: CoreId) -> Option<u64> {
        self.core_of(core).arrives.get()
    }

    /// When `core` was last stalled, in ticks of the core that did it.
    pub fn stalled_at(&self, core: CoreId) -> u64 {
        self.core_of(core).stalled_at.get()
    }

    /// Number of times that `core` did something for another one without leaving what it did:
    /// forgot translations, stored the registers of its FPU.
    pub fn services_of(&self, core: CoreId) -> u64 {
        self.core_of(core).services.get()
    }

    /// `core` does what it is asked for, by another: a machine of its own would not do what a core asks itself.
    pub(in crate::arch) fn serve(&self, core: CoreId) {
        assert!(core != self.executing(), "a core asks itself");
        let services = &self.core_of(core).services;
        services.set(services.get() + 1);
    }

    /// Lets `ticks` pass on the core that executes whenever it has other cores do something and
    /// waits for them.
    pub fn set_ticks_per_remote_call(&self, ticks: u64) {
        self.ticks_per_remote_call.set(ticks);
    }

    pub(in crate::arch) fn wait_for_others(&self) {
        self.advance(self.ticks_per_remote_call.get() + self.recorder.delay());
    }

    /// Makes preemption points see a pending interrupt, or none.
    pub fn set_interrupt_pending(&self, pending: bool) {
        self.interrupt_pending.set(pending);
    }

    /// Makes the preemption points that come after the next `looks` ones see a pending interrupt,
    /// for ever; with `None`, takes that back.
    pub fn set_interrupt_after(&self, looks: Option<u64>) {
        self.quiet_looks.set(looks);
    }

    /// Lets `ticks` pass at each preemption point, after it has looked at the clock.
    pub fn set_ticks_per_look(&self, ticks: u64) {
        self.ticks_per_look.set(ticks);
    }

    /// Lets these ticks pass, one after the other and from the beginning again, before each time that
    /// the kernel reads the clock, and whenever it waits for other cores. They begin anew when [`Self::take_seen`] is called.
    pub fn set_delays(&self, delays: Vec<u64>) {
        self.recorder.set_delays(delays);
    }

    /// What was seen since this was last asked, as it is before and after every event; nothing before
    /// it was asked first.
    pub fn take_seen(&self) -> Vec<Seen> {
        self.recorder.take()
    }

    /// Has `observer` called whenever the clock is read: on entry to the kernel, and at each
    /// preemption point.
    pub fn set_clock_observer(&self, observer: Option<fn()>) {
        self.clock_observer.set(observer);
    }

    /// Root table of the address space in use.
    pub fn address_space(&self) -> Option<PhysAddr> {
        self.core().space.get().map(root_of)
    }

    /// The core that executes the kernel.
    pub fn executing(&self) -> CoreId {
        self.executing.get()
    }

    /// Number of times that translations were forgotten by the core that executes.
    pub fn flushes(&self) -> u64 {
        self.flushes_of(self.executing.get())
    }

    /// Number of times that `core` forgot translations.
    pub fn flushes_of(&self, core: CoreId) -> u64 {
        self.core_of(core).flushes.get()
    }

    pub(in crate::arch) fn flush(&self, core: CoreId) {
        let flushes = &self.core_of(core).flushes;
        flushes.set(flushes.get() + 1);
    }

    /// What was written to the console since it was last taken.
    pub fn take_console(&self) -> Vec<u8> {
        self.console.take()
    }

    /// The status with which the kernel stopped the machine.
    pub fn halted(&self) -> Option<u8> {
        self.halted.get()
    }

    /// The FPU's registers, as user code would see them.
    pub fn fpu_registers(&self) -> [u64; FPU_WORDS] {
        self.core().fpu.get().0
    }

    /// Changes the FPU's registers, as user code would.
    pub fn set_fpu_registers(&self, registers: [u64; FPU_WORDS]) {
        self.core().fpu.set(Registers(registers));
    }

    /// Whether user code may use the FPU.
    pub fn fpu_enabled(&self) -> bool {
        self.core().fpu_enabled.get()
    }

    /// Copies out the `bytes` of physical memory at `start`; `None` if they are not all there.
    pub fn read_memory(&self, start: u64, bytes: usize) -> Option<Vec<u8>> {
        let end = usize::try_from(start).ok()?.checked_add(bytes)?;
        if end > self.bytes {
            return None;
        }
        let mut copy = std::vec![0; bytes];
        // SAFETY: the range lies in this machine's memory, of which the kernel holds no exclusive
        // borrow outside of an event.
        unsafe {
            self.base
                .add(start as usize)
                .copy_to_nonoverlapping(copy.as_mut_ptr(), bytes)
        };
        Some(copy)
    }

    /// Shows `look` the `count` words of physical memory from `start` on, a multiple of 8.
    ///
    /// # Panics
    /// If the machine has no such memory.
    pub fn look_at<T>(&self, start: u64, count: u64, look: impl FnOnce(&[u64]) -> T) -> T {
        let first = start as usize;
        assert!(
            first.is_multiple_of(8) && start.saturating_add(count * 8) <= self.bytes as u64,
            "the memory ends at {:#x}, and words are aligned",
            self.bytes
        );
        // SAFETY: the range lies in this machine's memory, which is aligned; any bits are a word,
        // and neither the kernel nor a user writes while `look` has it: `self` is not `Sync`.
        look(unsafe {
            std::slice::from_raw_parts(self.base.add(first).cast::<u64>(), count as usize)
        })
    }

    /// Writes `bytes` to physical memory at `start`, as a boot loader or a user would.
    ///
    /// # Safety
    /// No kernel object lies there.
    ///
    /// # Panics
    /// If the machine has no such memory.
    pub unsafe fn write_memory(&self, start: u64, bytes: &[u8]) {
        let end = start as usize + bytes.len();
        assert!(end <= self.bytes, "the memory ends at {:#x}", self.bytes);
        // SAFETY: the range lies in this machine's memory; the caller says that it holds no
        // object.
        unsafe {
            self.base
                .add(start as usize)
                .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it with this layout.
        unsafe { dealloc(self.allocated, self.layout) }
    }
}

impl Platform for Machine {
    fn cores(&self) -> u8 {
        self.running.get()
    }

    fn execute_on(&self, core: CoreId) {
        self.executing.set(core);
    }

    fn interrupt_core(&self, core: CoreId) {
        self.core_of(core).is_interrupted.set(true);
    }

    fn stall_core(&self, core: CoreId) -> u64 {
        let stalled = self.core_of(core);
        stalled.stalls.set(stalled.stalls.get() + 1);
        self.wait_for_others();
        let now = self.clock();
        stalled.stalled_at.set(now);
        self.recorder.see(Seen::Stall(core, now));
        stalled.arrives.get().unwrap_or(u64::MAX).min(now)
    }

    fn others_wait(&self) -> bool {
        let now = self.clock();
        let others = CoreId::all().filter(|&core| core != self.executing.get());
        others
            .filter_map(|core| self.core_of(core).arrives.get())
            .any(|at| at <= now)
    }

    fn zeroed(&self, start: PhysAddr, bytes: u64) {
        self.board.zeroed(start, bytes);
    }

    fn base(&self) -> *mut u8 {
        self.base
    }

    fn now(&self) -> u64 {
        if let Some(observe) = self.clock_observer.get() {
            observe();
        }
        self.advance(self.recorder.delay());
        self.recorder.see(Seen::Reading(self.clock()));
        self.clock()
    }

    fn set_deadline(&self, at: u64) {
        self.core().deadline.set(Some(at));
    }

    fn ticks_per_unit(&self) -> u64 {
        self.ticks_per_unit
    }

    fn use_address_space(&self, _last: u64, space: Option<Space>) -> Option<u64> {
        self.core().space.set(space);
        None
    }

    fn interrupt_pending(&self) -> bool {
        self.recorder.see(Seen::Look(self.clock()));
        self.advance(self.ticks_per_look.get());
        match self.quiet_looks.get() {
            Some(0) => true,
            Some(looks) => {
                self.quiet_looks.set(Some(looks - 1));
                self.interrupt_pending.get()
            }
            None => self.interrupt_pending.get(),
        }
    }

    fn route(&self, line: Line, irq: Irq) {
        self.board.route(line, irq);
    }

    fn set_masked(&self, line: Line, irq: Irq, masked: bool) {
        self.board.set_masked(line, irq, masked);
    }

    fn mask_taken(&self, line: Line, irq: Irq) {
        self.set_masked(line, irq, true);
    }

    fn put_char(&self, byte: u8) {
        self.console.borrow_mut().push(byte);
    }

    fn halt(&self, status: u8) {
        self.halted.set(Some(status));
    }

    fn fpu_save(&self, state: &FpuState) {
        // SAFETY: the image is a cell of this many words inside a TCB.
        unsafe { state.as_ptr().write(self.core().fpu.get().0) }
    }

    fn fpu_save_of(&self, core: CoreId, state: &FpuState) {
        // SAFETY: as in `fpu_save`.
        unsafe { state.as_ptr().write(self.core_of(core).fpu.get().0) }
        self.serve(core);
        self.wait_for_others();
    }

    fn fpu_switch(&self, from: Option<&FpuState>, to: &FpuState) {
        if let Some(from) = from {
            self.fpu_save(from);
        }
        // SAFETY: as in `fpu_save`.
        let registers = unsafe { to.as_ptr().read() };
        self.core().fpu.set(Registers(registers));
    }

    fn fpu_set_enabled(&self, enabled: bool) {
        self.core().fpu_enabled.set(enabled);
    }
}
