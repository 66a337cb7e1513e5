//! The local APIC (interrupt delivery, timer) and the I/O APICs (device lines).
//!
//! A local APIC has two modes: in xAPIC mode its registers are a page of memory, and cores have numbers of 8 bits; in x2APIC
//! mode they are model-specific registers, and the numbers have 32 (Intel's manual, volume 3, section "Extended XAPIC
//! (x2APIC)"). The kernel takes the mode that the firmware has left it in: the second cannot be left, and firmware must leave
//! it on where numbers above 254 make it necessary (the same section). All cores have the same.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::acpi::NOBODY;
use super::cpu::{self, Msr};
use super::layout::{device_page, LOCAL_APIC_PAGE};
use super::paging::{map_io_apic, map_local_apic};
use super::vectors::{FIRST_INTERRUPT, LOOK, TIMER};
use crate::arch::bounds::turns;
use crate::cores::{CoreId, CORES};

/// Whether the local APICs are in x2APIC mode. Known before anything else of them is done, and never changes then.
// Behind the other data, as `CORE_DATA`.
#[link_section = ".data"]
pub static IS_X2APIC: AtomicBool = AtomicBool::new(false);

/// Numbers of the local APICs of the cores that run. Written before a core counts as one.
#[link_section = ".data"]
static IDS: [AtomicU32; CORES] = [const { AtomicU32::new(NOBODY) }; CORES];

/// `core`, which executes this, or is the first, tells its number, before it counts as one that runs.
pub fn set_id(core: CoreId, id: u32) {
    if let Some(place) = IDS.get(core.index()) {
        place.store(id, Ordering::Relaxed);
    }
}

/// Number of the local APIC of a core that runs.
pub fn id_of(core: CoreId) -> u32 {
    IDS.get(core.index())
        .map_or(NOBODY, |id| id.load(Ordering::Relaxed))
}

/// What the registers of a local APIC are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A page of memory.
    XApic,
    /// Model-specific registers.
    X2Apic,
}

/// The mode of all local APICs.
#[inline(always)]
pub fn mode() -> Mode {
    if IS_X2APIC.load(Ordering::Relaxed) {
        Mode::X2Apic
    } else {
        Mode::XApic
    }
}

fn is_x2apic() -> bool {
    mode() == Mode::X2Apic
}

/// Registers of the local APIC: byte offsets in its page. In x2APIC mode each has the number [`FIRST_MSR`] and a sixteenth of
/// that; there are neither [`Self::LogicalDestination`] to be written, nor [`Self::DestinationFormat`] and
/// [`Self::CommandTarget`].
#[derive(Clone, Copy)]
#[repr(u64)]
enum Register {
    Id = 0x20,
    Version = 0x30,
    TaskPriority = 0x80,
    EndOfInterrupt = 0xb0,
    LogicalDestination = 0xd0,
    DestinationFormat = 0xe0,
    Spurious = 0xf0,
    /// First of eight, 16 bytes apart; likewise the next.
    InService = 0x100,
    InterruptRequest = 0x200,
    Command = 0x300,
    CommandTarget = 0x310,
    TimerEntry = 0x320,
    PerformanceEntry = 0x340,
    Lint0Entry = 0x350,
    Lint1Entry = 0x360,
    ErrorEntry = 0x370,
    InitialCount = 0x380,
    CurrentCount = 0x390,
    DivideConfiguration = 0x3e0,
}

/// Enable bit of the spurious-interrupt register, with vector 255.
const ENABLED_SPURIOUS_255: u32 = 0x1ff;
const ENTRY_MASKED: u32 = 1 << 16;
/// An entry, or a command: a non-maskable interrupt.
const NON_MASKABLE: u32 = 4 << 8;
/// Highest entry, in the version register, from which on there is one of performance counters.
const HAS_PERFORMANCE_ENTRY: u32 = 4;
/// Timer entry: fires when the time-stamp counter reaches the deadline register.
const TIMER_TSC_DEADLINE: u32 = 2 << 17;
/// The timer counts at the undivided rate.
const DIVIDE_BY_1: u32 = 0xb;
const FIRST_MSR: u32 = 0x800;
/// Flat logical destinations: a bit for each core.
const FLAT: u32 = u32::MAX;

/// Command: the interrupt before has not been sent yet.
const COMMAND_PENDING: u32 = 1 << 12;
/// Command: an assertion; all commands are (only the oldest APICs know another kind).
const COMMAND_ASSERT: u32 = 1 << 14;
const COMMAND_RESET: u32 = 5 << 8;
const COMMAND_START: u32 = 6 << 8;
/// Where numbers and logical destinations are in the registers of xAPIC mode.
const DESTINATION: u32 = 24;
/// Looks at the command before an interrupt that is not sent is given up: it takes microseconds.
const PATIENCE: u32 = 1_000_000;

/// What one core sends to another.
#[derive(Clone, Copy)]
pub enum Signal {
    /// An interrupt.
    Vector(u8),
    /// Back to the state after a reset, and wait for a start (INIT).
    Reset,
    /// Begin in real mode at this page below the first MiB (SIPI).
    Start { page: u8 },
    /// A non-maskable interrupt.
    NonMaskable,
}

impl Signal {
    const fn command(self) -> u32 {
        COMMAND_ASSERT
            | match self {
                Signal::Vector(vector) => vector as u32,
                Signal::Reset => COMMAND_RESET,
                Signal::Start { page } => COMMAND_START | page as u32,
                Signal::NonMaskable => NON_MASKABLE,
            }
    }
}

/// ApicBase: globally enabled.
const BASE_ENABLED: u64 = 1 << 11;
/// ApicBase: x2APIC mode, in which the page does not exist.
const BASE_X2APIC: u64 = 1 << 10;
const BASE_ADDRESS: u64 = 0x000f_ffff_ffff_f000;

/// The local APIC of the core that executes.
#[derive(Clone, Copy)]
pub struct LocalApic(());

/// Before [`LocalApic::init`] maps its page, any access is an exception inside the kernel.
pub const LOCAL_APIC: LocalApic = LocalApic(());

impl LocalApic {
    /// Enables the APIC of the core that boots, in the mode in which it is; in xAPIC mode its page is mapped. The address in
    /// the processor is the truth, whatever tables say. Returns its physical address.
    pub fn init(self) -> u64 {
        // SAFETY: processors with long mode have the register.
        let base = unsafe { cpu::read_msr(Msr::ApicBase) };
        let paddr = base & BASE_ADDRESS;
        if base & BASE_X2APIC != 0 {
            IS_X2APIC.store(true, Ordering::Relaxed);
        } else {
            map_local_apic(paddr);
        }
        self.enable(CoreId::BOOT, paddr);
        set_id(CoreId::BOOT, self.id());
        paddr
    }

    /// Enables the APIC of `core`, which executes this; it is not in x2APIC mode unless the kernel is. Its physical address is to be the one that
    /// is mapped. Masks what it could raise by itself; a non-maskable interrupt of the machine's gets through.
    pub fn enable(self, core: CoreId, paddr: u64) {
        // SAFETY: as above; enables the APIC, whose interrupts are off, at an address that is its. From being off there is no
        // way into x2APIC mode but over the other one.
        unsafe {
            let base = cpu::read_msr(Msr::ApicBase) & !BASE_ADDRESS | paddr | BASE_ENABLED;
            cpu::write_msr(Msr::ApicBase, base);
            if is_x2apic() {
                cpu::write_msr(Msr::ApicBase, base | BASE_X2APIC);
            }
        }
        if !is_x2apic() {
            self.write(Register::DestinationFormat, FLAT);
            let destination = 1 << DESTINATION << core.index();
            self.write(Register::LogicalDestination, destination);
        }
        self.write(Register::TaskPriority, 0);
        self.write(Register::TimerEntry, ENTRY_MASKED);
        self.write(Register::Lint0Entry, ENTRY_MASKED);
        self.write(Register::Lint1Entry, NON_MASKABLE);
        self.write(Register::ErrorEntry, ENTRY_MASKED);
        if self.read(Register::Version) >> 16 & 0xff >= HAS_PERFORMANCE_ENTRY {
            self.write(Register::PerformanceEntry, ENTRY_MASKED);
        }
        self.write(Register::Spurious, ENABLED_SPURIOUS_255);
        // What was in service before the kernel keeps out what comes below it. An end without a begin does nothing.
        for _ in 0..=u8::MAX {
            self.end_interrupt();
        }
        self.write(Register::DivideConfiguration, DIVIDE_BY_1);
    }

    /// Number by which interrupts are sent to this core.
    fn id(self) -> u32 {
        let id = self.read(Register::Id);
        if is_x2apic() {
            id
        } else {
            id >> DESTINATION
        }
    }

    /// Lets the timer raise its vector, once per deadline or count.
    pub fn start_timer(self, tsc_deadline: bool) {
        let mode = if tsc_deadline { TIMER_TSC_DEADLINE } else { 0 };
        self.write(Register::TimerEntry, mode | u32::from(TIMER));
        // The entry must be in place before a deadline is written, which does not wait for it.
        // SAFETY: orders memory accesses, nothing else.
        unsafe { core::arch::asm!("mfence", options(nostack, preserves_flags)) }
    }

    /// Makes the timer fire after `count` periods of its clock; not at all for 0. `mode` is that of all local APICs.
    #[inline(always)]
    pub fn set_count(self, mode: Mode, count: u32) {
        self.write_in(mode, Register::InitialCount, count);
    }

    /// Periods left.
    pub fn count(self) -> u32 {
        self.read(Register::CurrentCount)
    }

    /// Ends the handling of the interrupt of the highest priority that was delivered.
    pub fn end_interrupt(self) {
        self.write(Register::EndOfInterrupt, 0);
    }

    /// The same, inlined.
    #[inline(always)]
    pub fn end_interrupt_at_once(self) {
        self.write_in(mode(), Register::EndOfInterrupt, 0);
    }

    /// Whether the interrupt `vector` was delivered and has not been ended: so it came from a device or
    /// a core, and not from an instruction or an exception of this core.
    pub fn is_in_service(self, vector: u8) -> bool {
        let (word, bit) = (vector / 32, vector % 32);
        let bits = self.read_at(Register::InService as u64 + 16 * u64::from(word));
        bits & 1 << bit != 0
    }

    /// Sends `signal` to the core whose local APIC has the number `target`.
    pub fn send(self, target: u32, signal: Signal) {
        if is_x2apic() {
            let command = u64::from(target) << 32 | u64::from(signal.command());
            let register = number(Register::Command as u64);
            // SAFETY: the register is there in this mode. What was written before is to be seen by who is interrupted, and
            // this write does not wait for it.
            unsafe {
                core::arch::asm!("mfence", "lfence", options(nostack, preserves_flags));
                cpu::write_numbered_msr(register, command);
            }
        } else {
            self.await_sending();
            self.write(Register::CommandTarget, target << DESTINATION);
            self.write(Register::Command, signal.command());
        }
    }

    /// Raises a non-maskable interrupt at all other cores that the kernel runs on, whatever they do.
    pub fn interrupt_others(self) {
        let own = self.id();
        for id in turns::<{ CORES as u64 }, _>(CoreId::all().map(id_of)) {
            if id != own && id != NOBODY {
                self.send(id, Signal::NonMaskable);
            }
        }
    }

    /// Waits until the command register is free, which it is at once but on the oldest machines.
    fn await_sending(self) {
        for _ in turns::<{ PATIENCE as u64 }, _>(0..PATIENCE) {
            if self.read(Register::Command) & COMMAND_PENDING == 0 {
                return;
            }
            core::hint::spin_loop();
        }
    }

    /// Whether an interrupt of the kernel's vectors waits for delivery. Long operations ask it at each step.
    pub fn is_pending(self) -> bool {
        const FIRST: u64 = FIRST_INTERRUPT / WORD_BITS;
        const LAST: u64 = LOOK as u64 / WORD_BITS;
        // The number of words that are read below.
        const _: () = assert!(LAST - FIRST == 3);
        let mode = mode();
        let word = |number| self.read_in(mode, Register::InterruptRequest as u64 + 16 * number);
        word(FIRST) | word(FIRST + 1) | word(FIRST + 2) | word(LAST) != 0
    }

    fn read(self, register: Register) -> u32 {
        self.read_at(register as u64)
    }

    #[inline(never)]
    fn read_at(self, offset: u64) -> u32 {
        self.read_in(mode(), offset)
    }

    #[inline(always)]
    fn read_in(self, mode: Mode, offset: u64) -> u32 {
        if mode == Mode::X2Apic {
            // SAFETY: a register that there is in this mode, too.
            return unsafe { cpu::read_numbered_msr(number(offset)) } as u32;
        }
        let address = device_page(LOCAL_APIC_PAGE).wrapping_add(offset) as *const u32;
        // SAFETY: an aligned device register; its page is mapped since boot, and only here.
        unsafe { address.read_volatile() }
    }

    #[inline(never)]
    fn write(self, register: Register, value: u32) {
        self.write_in(mode(), register, value);
    }

    #[inline(always)]
    fn write_in(self, mode: Mode, register: Register, value: u32) {
        if mode == Mode::X2Apic {
            // SAFETY: as for reading; what the registers do is the machine's matter, not memory's.
            return unsafe {
                cpu::write_numbered_msr(number(register as u64), value.into());
            };
        }
        let address = device_page(LOCAL_APIC_PAGE).wrapping_add(register as u64) as *mut u32;
        // SAFETY: likewise.
        unsafe { address.write_volatile(value) }
    }
}

/// Bits of a register, of those that have one for each vector.
const WORD_BITS: u64 = u32::BITS as u64;

/// The number, in x2APIC mode, of the register at `offset`.
const fn number(offset: u64) -> u32 {
    FIRST_MSR.wrapping_add((offset >> 4) as u32)
}

/// Most I/O APICs that the kernel drives.
const MAX: usize = 8;
const _: () = assert!(MAX <= super::paging::MAX_IO_APICS);

/// Byte offsets of the two registers that the processor sees.
const SELECT: u64 = 0x00;
const DATA: u64 = 0x10;
/// Indirect registers.
const VERSION: u32 = 1;
const REDIRECTION: u32 = 0x10;

const ACTIVE_LOW: u32 = 1 << 13;
const LEVEL: u32 = 1 << 15;
const MASKED: u32 = 1 << 16;

/// How a pin raises its interrupt.
#[derive(Clone, Copy)]
pub struct Pin {
    pub vector: u8,
    pub level: bool,
    pub active_low: bool,
}

/// One I/O APIC.
#[derive(Clone, Copy)]
struct IoApic {
    /// Virtual address, mapped.
    address: u64,
    pins: u8,
}

impl IoApic {
    fn read(self, register: u32) -> u32 {
        self.select(register);
        // SAFETY: a device register, mapped uncached by `IoApics::add`.
        unsafe { (self.address.wrapping_add(DATA) as *const u32).read_volatile() }
    }

    fn write(self, register: u32, value: u32) {
        self.select(register);
        // SAFETY: as in `read`.
        unsafe { (self.address.wrapping_add(DATA) as *mut u32).write_volatile(value) }
    }

    fn select(self, register: u32) {
        // SAFETY: as in `read`.
        unsafe { (self.address.wrapping_add(SELECT) as *mut u32).write_volatile(register) }
    }
}

/// The I/O APICs of the machine, in the order of the firmware's table.
pub struct IoApics {
    found: [Cell<Option<IoApic>>; MAX],
    count: Cell<u8>,
}

impl IoApics {
    pub const fn new() -> Self {
        IoApics {
            found: [const { Cell::new(None) }; MAX],
            count: Cell::new(0),
        }
    }

    pub fn count(&self) -> u8 {
        self.count.get()
    }

    /// Number of pins of I/O APIC `number`; 0 if there is none.
    pub fn pins(&self, number: u8) -> u8 {
        self.get(number).map_or(0, |apic| apic.pins)
    }

    /// Adds the I/O APIC at the physical address `paddr` and masks its pins. `false`, and nothing
    /// done, if there are too many, or if no register can be at the address.
    #[must_use]
    pub fn add(&self, paddr: u64) -> bool {
        let number = self.count.get();
        let Some(place) = self.found.get(usize::from(number)) else {
            return false;
        };
        if !paddr.is_multiple_of(16) {
            return false;
        }
        let mut apic = IoApic {
            address: map_io_apic(number.into(), paddr),
            pins: 0,
        };
        // The version's third byte is the highest pin.
        apic.pins = (apic.read(VERSION) >> 16 & 0xff).wrapping_add(1).min(240) as u8;
        for pin in 0..apic.pins {
            apic.write(low(pin), MASKED);
        }
        place.set(Some(apic));
        self.count.set(number.wrapping_add(1));
        true
    }

    /// Programs a pin, unmasked, to interrupt the core with the local APIC number `target`, below [`BROADCAST`](super::acpi::BROADCAST).
    pub fn route(&self, number: u8, pin: u8, how: Pin, target: u32) {
        let Some(apic) = self.with_pin(number, pin) else {
            return;
        };
        let mut value = u32::from(how.vector);
        if how.level {
            value |= LEVEL;
        }
        if how.active_low {
            value |= ACTIVE_LOW;
        }
        // Masked while the halves do not belong together.
        apic.write(low(pin), MASKED);
        apic.write(low(pin).wrapping_add(1), target << 24);
        apic.write(low(pin), value);
    }

    /// Masks a pin, or lets it through, if it raises `vector`: it may have been routed to another
    /// one since, whose handler alone may touch it then. So no pin is open for a vector that
    /// nobody handles, which would keep a level-triggered line coming for ever.
    pub fn set_masked(&self, number: u8, pin: u8, vector: u8, masked: bool) {
        let Some(apic) = self.with_pin(number, pin) else {
            return;
        };
        let value = apic.read(low(pin));
        if value as u8 != vector {
            return;
        }
        apic.write(
            low(pin),
            if masked {
                value | MASKED
            } else {
                value & !MASKED
            },
        );
    }

    fn get(&self, number: u8) -> Option<IoApic> {
        self.found.get(usize::from(number))?.get()
    }

    fn with_pin(&self, number: u8, pin: u8) -> Option<IoApic> {
        self.get(number).filter(|apic| pin < apic.pins)
    }
}

/// Register of the low half of a pin's redirection entry; the high half follows.
fn low(pin: u8) -> u32 {
    REDIRECTION.wrapping_add(u32::from(pin).wrapping_mul(2))
}
