//! A user-level timer: the High Precision Event Timer, interrupting through the IOAPIC or, where
//! it can, by messages ([`Route`]).
//!
//! The kernel masks an IOAPIC input from the interrupt until it is acknowledged, and edges of a
//! masked input are lost. So after every acknowledgement the comparator is checked against the
//! counter, and a spurious interrupt (the input may be shared) is told from a due timer.
//!
//! Timer 0 is used, in 64-bit mode, edge triggered, without legacy replacement. All times are
//! counter ticks or µs of the HPET's own clock, which starts at 0 when the timer is opened. What uses it is a [`Timer`].

use tock_registers::interfaces::{Readable, Writeable};
use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};
use tock_registers::{register_bitfields, register_structs};

use crate::process::Process;
use crate::resources::SetupError;
use crate::timer::TimerError;

/// Physical address of the registers on PCs.
pub const HPET_PADDR: u64 = 0xfed0_0000;

register_bitfields![u64,
    Capabilities [
        /// The counter has 64 bits.
        COUNTER_64 OFFSET(13) NUMBITS(1) [],
        /// Femtoseconds per tick.
        PERIOD OFFSET(32) NUMBITS(32) [],
    ],
    Configuration [
        /// The counter runs. Legacy replacement is bit 1 and stays off.
        ENABLE OFFSET(0) NUMBITS(1) [],
    ],
    TimerConfiguration [
        INTERRUPT_ENABLE OFFSET(2) NUMBITS(1) [],
        /// The IOAPIC input.
        ROUTE OFFSET(9) NUMBITS(5) [],
        /// Interrupts are messages.
        MESSAGES OFFSET(14) NUMBITS(1) [],
        /// They can be.
        HAS_MESSAGES OFFSET(15) NUMBITS(1) [],
        /// IOAPIC inputs that can be chosen, a bit each.
        ROUTES OFFSET(32) NUMBITS(32) [],
    ],
    MessageRoute [
        VALUE OFFSET(0) NUMBITS(32) [],
        ADDRESS OFFSET(32) NUMBITS(32) [],
    ],
];

register_structs! {
    Registers {
        (0x000 => capabilities: ReadOnly<u64, Capabilities::Register>),
        (0x008 => _other),
        (0x010 => configuration: ReadWrite<u64, Configuration::Register>),
        (0x018 => _interrupt_status),
        (0x0f0 => counter: ReadWrite<u64>),
        (0x0f8 => _reserved),
        (0x100 => timer0_configuration: ReadWrite<u64, TimerConfiguration::Register>),
        (0x108 => timer0_comparator: WriteOnly<u64>),
        (0x110 => timer0_message: WriteOnly<u64, MessageRoute::Register>),
        (0x118 => @END),
    }
}

/// Slowest clock that the HPET's specification allows, fs per tick.
const MAX_PERIOD_FS: u64 = 100_000_000;
const FS_PER_US: u128 = 1_000_000_000;

/// The IOAPIC input of the PIT, the PC's oldest timer.
pub const PIT_PIN: u64 = 2;

/// I/O port of the PIT's commands.
pub(crate) const PIT_COMMAND: u16 = 0x43;
/// Channel 0, mode 0 (one interrupt when a count ends); no count is given.
pub(crate) const PIT_ONE_SHOT_WITHOUT_COUNT: u8 = 0b0011_0000;

/// Stops the interrupts of the PIT, which firmware leaves running at 18.2 Hz, for a timer that
/// shares its IOAPIC input. Root task only.
pub fn silence_pit(process: &mut Process) -> Result<(), SetupError> {
    const CHANNEL_0: u16 = 0x40;
    let ports = process.resources.io_ports(CHANNEL_0, PIT_COMMAND)?;
    let written = ports.out8(PIT_COMMAND, PIT_ONE_SHOT_WITHOUT_COUNT);
    process.resources.delete(ports)?;
    Ok(written?)
}

/// Where messages are written to for the local APIC of the first core (ABI 03, section 7.2).
const MESSAGE_ADDRESS: u64 = 0xfee0_0000;
/// The processor's vector of the kernel's vector 0.
const FIRST_VECTOR: u64 = 0x30;

/// How the HPET's interrupt gets to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// Through this IOAPIC input.
    Pin(u64),
    /// As a message for this vector (0 to 107). The kernel never masks it, so it need not be
    /// acknowledged, and none is lost.
    Messages(u64),
}

/// The registers, mapped.
#[derive(Clone, Copy, Debug)]
pub struct Hpet {
    registers: *const Registers,
    /// fs per tick; not 0.
    period_fs: u64,
}

// SAFETY: registers may be accessed from any thread.
unsafe impl Send for Hpet {}

impl Hpet {
    /// Takes over the HPET whose registers are mapped, uncached and writable, at `base`: stops
    /// it, sets its counter to 0 and starts it.
    ///
    /// # Safety
    /// `base` must be such a mapping of a page, for as long as this is used.
    pub unsafe fn open(base: *mut u8) -> Result<Self, TimerError> {
        let mut hpet = Self {
            registers: base.cast(),
            period_fs: 1,
        };
        let capabilities = hpet.registers().capabilities.extract();
        hpet.period_fs = capabilities.read(Capabilities::PERIOD);
        let valid = capabilities.is_set(Capabilities::COUNTER_64)
            && (1..=MAX_PERIOD_FS).contains(&hpet.period_fs);
        if !valid {
            return Err(TimerError::NoHpet {
                capabilities: capabilities.get(),
            });
        }
        let registers = hpet.registers();
        registers.configuration.set(0);
        registers.timer0_configuration.set(0);
        registers.counter.set(0);
        registers.configuration.write(Configuration::ENABLE::SET);
        Ok(hpet)
    }

    /// The IOAPIC input to use: the highest that timer 0 can reach, since low ones are shared
    /// with the devices of old PCs.
    pub fn choose_pin(&self) -> Result<u64, TimerError> {
        let configuration = &self.registers().timer0_configuration;
        let routes = configuration.read(TimerConfiguration::ROUTES);
        routes
            .checked_ilog2()
            .map(u64::from)
            .ok_or(TimerError::NoRoute)
    }

    /// Whether timer 0 can interrupt by messages.
    pub fn has_messages(&self) -> bool {
        let configuration = &self.registers().timer0_configuration;
        configuration.is_set(TimerConfiguration::HAS_MESSAGES)
    }

    /// Lets timer 0 interrupt.
    pub fn route(&self, route: Route) {
        let registers = self.registers();
        let way = match route {
            Route::Pin(pin) => TimerConfiguration::ROUTE.val(pin),
            Route::Messages(vector) => {
                let value = MessageRoute::VALUE.val(vector + FIRST_VECTOR);
                let address = MessageRoute::ADDRESS.val(MESSAGE_ADDRESS);
                registers.timer0_message.write(value + address);
                TimerConfiguration::MESSAGES::SET
            }
        };
        registers
            .timer0_configuration
            .write(way + TimerConfiguration::INTERRUPT_ENABLE::SET);
    }

    /// The counter, in ticks.
    pub fn now(&self) -> u64 {
        self.registers().counter.get()
    }

    /// Rounds up, so that no wait is shorter than asked for.
    pub const fn us_to_ticks(&self, us: u64) -> u64 {
        (us as u128 * FS_PER_US).div_ceil(self.period_fs as u128) as u64
    }

    /// Rounds down.
    pub const fn ticks_to_us(&self, ticks: u64) -> u64 {
        (ticks as u128 * self.period_fs as u128 / FS_PER_US) as u64
    }

    /// Lets timer 0 interrupt when the counter reaches `deadline`. True if that is not in the
    /// future any more: the interrupt may then have been missed.
    pub fn set_deadline(&self, deadline: u64) -> bool {
        self.registers().timer0_comparator.set(deadline);
        self.now() >= deadline
    }

    /// After an interrupt that came before the deadline: the comparator has it still.
    pub const fn keep_deadline(&self, _deadline: u64) -> bool {
        false
    }

    /// Takes an interrupt back that has arrived: one of an edge is over.
    pub const fn quieten(&self) {}

    fn registers(&self) -> &Registers {
        // SAFETY: `open` was promised a mapping of the registers.
        unsafe { &*self.registers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTER_64: u64 = 1 << 13;

    #[repr(C, align(4096))]
    struct Page([u8; 4096]);

    fn with_register(offset: usize, value: u64) -> Page {
        let mut registers = Page([0; 4096]);
        registers.0[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        registers
    }

    #[test]
    fn waits_are_never_shorter_than_asked_for() {
        // 69.841279 ns: a real HPET, whose ticks divide nothing evenly.
        let mut registers = with_register(0, 69_841_279 << 32 | COUNTER_64);
        // SAFETY: memory stands in for the registers.
        let hpet = unsafe { Hpet::open(registers.0.as_mut_ptr()) }.unwrap();
        for us in [0, 1, 999, 1_000_000_007] {
            let ticks = hpet.us_to_ticks(us);
            assert!(u128::from(ticks) * 69_841_279 >= u128::from(us) * FS_PER_US);
            assert!(hpet.ticks_to_us(ticks) >= us && hpet.ticks_to_us(ticks) <= us + 1);
        }
    }

    #[test]
    fn what_is_no_hpet_is_refused() {
        for capabilities in [0, u64::MAX, COUNTER_64, 10_000_000 << 32] {
            let mut registers = with_register(0, capabilities);
            // SAFETY: as above.
            let opened = unsafe { Hpet::open(registers.0.as_mut_ptr()) };
            assert_eq!(opened.err(), Some(TimerError::NoHpet { capabilities }));
        }
    }

    #[test]
    fn the_highest_reachable_input_is_chosen() {
        let routes = |mask: u64| {
            let offset = core::mem::offset_of!(Registers, timer0_configuration);
            let registers = with_register(offset, mask << 32);
            Hpet {
                registers: registers.0.as_ptr().cast(),
                period_fs: 1,
            }
            .choose_pin()
        };
        assert_eq!(routes(0xff_0104), Ok(23));
        assert_eq!(routes(0b100), Ok(2));
        assert_eq!(routes(0), Err(TimerError::NoRoute));
    }
}
