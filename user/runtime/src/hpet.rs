//! A user-level timer: the High Precision Event Timer, interrupting through the IOAPIC or, where
//! it can, by messages ([`Route`]).
//!
//! The kernel masks an IOAPIC input from the interrupt until it is acknowledged, and edges of a
//! masked input are lost. So after every acknowledgement the comparator is checked against the
//! counter, and a spurious interrupt (the input may be shared) is told from a due timer.
//!
//! Timer 0 is used, in 64-bit mode, edge triggered, without legacy replacement. All times are
//! counter ticks or µs of the HPET's own clock, which starts at 0 when the timer is opened.

use alloc::format;
use core::fmt;

use tock_registers::interfaces::{Readable, Writeable};
use tock_registers::registers::{ReadOnly, ReadWrite, WriteOnly};
use tock_registers::{register_bitfields, register_structs};

use crate::cap::{IoApicPin, IoPort, IrqHandler, MessageSource, Notification};
use crate::env::Environment;
use crate::error::Error;
use crate::process::Process;
use crate::resources::SetupError;

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
const PIT_COMMAND: u16 = 0x43;
/// Channel 0, mode 0 (one interrupt when a count ends); no count is given.
const PIT_ONE_SHOT_WITHOUT_COUNT: u8 = 0b0011_0000;

/// Stops the interrupts of the PIT, which firmware leaves running at 18.2 Hz, for a timer that
/// shares its IOAPIC input. Root task only.
pub fn silence_pit(process: &mut Process) -> Result<(), SetupError> {
    const CHANNEL_0: u16 = 0x40;
    let ports = process.resources.io_ports(CHANNEL_0, PIT_COMMAND)?;
    let written = ports.out8(PIT_COMMAND, PIT_ONE_SHOT_WITHOUT_COUNT);
    process.resources.delete(ports)?;
    Ok(written?)
}

/// Why the HPET cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpetError {
    Setup(SetupError),
    /// The registers do not look like an HPET with a 64-bit counter.
    NoHpet {
        capabilities: u64,
    },
    /// No IOAPIC input can be chosen.
    NoRoute,
}

impl From<SetupError> for HpetError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<Error> for HpetError {
    fn from(error: Error) -> Self {
        Self::Setup(error.into())
    }
}

/// So that `main` may return a [`SetupError`] whatever it sets up.
impl From<HpetError> for SetupError {
    fn from(error: HpetError) -> Self {
        match error {
            HpetError::Setup(error) => error,
            HpetError::NoHpet { capabilities } => Self::NoHpet { capabilities },
            HpetError::NoRoute => Self::NoHpetRoute,
        }
    }
}

impl core::error::Error for HpetError {}

impl fmt::Display for HpetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => write!(f, "HPET: {error}"),
            Self::NoHpet { .. } | Self::NoRoute => SetupError::from(*self).fmt(f),
        }
    }
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
    pub unsafe fn open(base: *mut u8) -> Result<Self, HpetError> {
        let mut hpet = Self {
            registers: base.cast(),
            period_fs: 1,
        };
        let capabilities = hpet.registers().capabilities.extract();
        hpet.period_fs = capabilities.read(Capabilities::PERIOD);
        let valid = capabilities.is_set(Capabilities::COUNTER_64)
            && (1..=MAX_PERIOD_FS).contains(&hpet.period_fs);
        if !valid {
            return Err(HpetError::NoHpet {
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
    pub fn choose_pin(&self) -> Result<u64, HpetError> {
        let configuration = &self.registers().timer0_configuration;
        let routes = configuration.read(TimerConfiguration::ROUTES);
        routes
            .checked_ilog2()
            .map(u64::from)
            .ok_or(HpetError::NoRoute)
    }

    /// Whether timer 0 can interrupt by messages.
    fn has_messages(&self) -> bool {
        let configuration = &self.registers().timer0_configuration;
        configuration.is_set(TimerConfiguration::HAS_MESSAGES)
    }

    /// Lets timer 0 interrupt.
    fn route(&self, route: Route) {
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
    fn set_deadline(&self, deadline: u64) -> bool {
        self.registers().timer0_comparator.set(deadline);
        self.now() >= deadline
    }

    fn registers(&self) -> &Registers {
        // SAFETY: `open` was promised a mapping of the registers.
        unsafe { &*self.registers }
    }
}

/// The HPET's timer 0 with its interrupt: one deadline at a time, or periodic releases. Whoever
/// waits on it must be the only one.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    hpet: Hpet,
    route: Route,
    irq: IrqHandler,
    notification: Notification,
}

impl Timer {
    /// Takes the HPET as the root task, interrupting through `vector` (0 to 107): by messages if it
    /// can.
    pub fn new(process: &mut Process, vector: u64) -> Result<Self, HpetError> {
        let (_, address) = process
            .space
            .map_device(&mut process.resources, HPET_PADDR)?;
        // SAFETY: just mapped, and never unmapped.
        let hpet = unsafe { Hpet::open(address as *mut u8)? };
        let (route, irq) = if hpet.has_messages() {
            let source = MessageSource {
                vector,
                ..MessageSource::default()
            };
            let irq = process.resources.message_irq(source)?;
            (Route::Messages(vector), irq)
        } else {
            let pin = hpet.choose_pin()?;
            (Route::Pin(pin), Self::pin_irq(process, pin, vector)?)
        };
        let notification = process.resources.notification()?;
        irq.set_notification(notification)?;
        Self::with_parts(hpet, route, irq, notification)
    }

    fn pin_irq(process: &mut Process, pin: u64, vector: u64) -> Result<IrqHandler, SetupError> {
        if pin == PIT_PIN {
            silence_pit(process)?;
        }
        process.resources.ioapic_irq(IoApicPin {
            ioapic: 0,
            pin,
            level: false,
            active_low: false,
            vector,
        })
    }

    /// Puts a timer together of an opened HPET, the handler of its interrupt and the notification
    /// that the handler signals. What has been set is kept: the badge of the signal is that of the
    /// capability that was set.
    pub fn with_parts(
        hpet: Hpet,
        route: Route,
        irq: IrqHandler,
        notification: Notification,
    ) -> Result<Self, HpetError> {
        hpet.route(route);
        irq.ack()?;
        Ok(Self {
            hpet,
            route,
            irq,
            notification,
        })
    }

    /// The timer of a component of a described system: the HPET, through the input of the I/O APIC
    /// that it shares with the PIT, which is silenced. The component has, under these names, the
    /// HPET's registers as memory, the interrupt at pin 2, and the PIT's ports 0x40 to 0x43. Its
    /// signal has the badge 1, as the launcher has set it.
    ///
    /// # Panics
    /// It has not.
    pub fn described(
        env: &Environment,
        registers: &str,
        interrupt: &str,
        pit: &str,
    ) -> Result<Self, HpetError> {
        env.capability::<IoPort>(pit)
            .out8(PIT_COMMAND, PIT_ONE_SHOT_WITHOUT_COUNT)?;
        let registers = env.memory(registers);
        // SAFETY: memory of an environment is nothing that the compiler knows of, and stays mapped;
        // that it is a device's registers, uncached, is what its name says.
        let hpet = unsafe { Hpet::open(registers.as_mut_ptr())? };
        let signal = env.capability(&format!("{interrupt}.signal"));
        Self::with_parts(hpet, Route::Pin(PIT_PIN), env.capability(interrupt), signal)
    }

    pub const fn hpet(&self) -> Hpet {
        self.hpet
    }

    /// What the interrupt signals, for a caller that waits for more than the timer: arm with
    /// [`Self::arm`], wait there, and on each signal ask [`Self::expired`].
    pub const fn notification(&self) -> Notification {
        self.notification
    }

    /// Sets the deadline, in ticks of the counter. True if it has passed already: then do not
    /// wait.
    pub fn arm(&self, deadline: u64) -> bool {
        self.hpet.set_deadline(deadline)
    }

    /// Acknowledges the interrupt, if that is needed, and says whether `deadline` has passed.
    pub fn expired(&self, deadline: u64) -> Result<bool, HpetError> {
        match self.route {
            Route::Pin(_) => self.irq.ack()?,
            Route::Messages(_) => {}
        }
        Ok(self.hpet.now() >= deadline)
    }

    /// Waits until the counter has reached `deadline`, in ticks.
    pub fn wait_until(&self, deadline: u64) -> Result<(), HpetError> {
        if self.arm(deadline) {
            return Ok(());
        }
        loop {
            self.notification.wait();
            if self.expired(deadline)? {
                return Ok(());
            }
        }
    }

    /// Waits `us` µs.
    pub fn sleep_us(&self, us: u64) -> Result<(), HpetError> {
        self.wait_until(self.hpet.now().saturating_add(self.hpet.us_to_ticks(us)))
    }

    /// Periodic releases every `period_us` µs, the first one period from now, without drift.
    pub fn every_us(&self, period_us: u64) -> Periodic {
        let period = self.hpet.us_to_ticks(period_us).max(1);
        Periodic {
            timer: *self,
            period,
            next: self.hpet.now() + period,
        }
    }
}

/// Periodic releases.
#[derive(Clone, Copy, Debug)]
pub struct Periodic {
    timer: Timer,
    period: u64,
    next: u64,
}

impl Periodic {
    /// Waits for the next release; returns its time, in ticks of the counter. A release that has
    /// passed already is returned at once, so none is skipped.
    pub fn wait(&mut self) -> Result<u64, HpetError> {
        let release = self.next;
        self.next = release.saturating_add(self.period);
        self.timer.wait_until(release)?;
        Ok(release)
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
            assert_eq!(opened.err(), Some(HpetError::NoHpet { capabilities }));
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
        assert_eq!(routes(0), Err(HpetError::NoRoute));
    }
}
