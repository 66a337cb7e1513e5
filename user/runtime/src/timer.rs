//! The machine's timer, for a program that has it to itself: the HPET on PCs ([`crate::hpet`]); on aarch64, where machines of
//! emulators need not have a timer device, the physical timer of the first core, if the kernel lets user level have it; in a described
//! system for a board with a triple timer counter, that ([`crate::ttc`]).

use core::fmt;

use crate::arch;
use crate::cap::{IrqHandler, Notification};
use crate::env::Environment;
use crate::error::Error;
use crate::process::Process;
use crate::resources::SetupError;

/// What counts and interrupts.
pub use crate::arch::TimerClock as Clock;

/// Why the machine's timer cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerError {
    Setup(SetupError),
    /// The registers do not look like an HPET with a 64-bit counter.
    NoHpet {
        capabilities: u64,
    },
    /// No IOAPIC input can be chosen.
    NoRoute,
    /// The firmware tells no frequency of the processor's counter.
    NoFrequency,
}

impl From<SetupError> for TimerError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl From<Error> for TimerError {
    fn from(error: Error) -> Self {
        Self::Setup(error.into())
    }
}

/// So that `main` may return a [`SetupError`] whatever it sets up.
impl From<TimerError> for SetupError {
    fn from(error: TimerError) -> Self {
        match error {
            TimerError::Setup(error) => error,
            TimerError::NoHpet { capabilities } => Self::NoHpet { capabilities },
            TimerError::NoRoute => Self::NoHpetRoute,
            TimerError::NoFrequency => Self::NoFrequency,
        }
    }
}

impl core::error::Error for TimerError {}

impl fmt::Display for TimerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => write!(f, "timer: {error}"),
            Self::NoHpet { .. } | Self::NoRoute | Self::NoFrequency => {
                SetupError::from(*self).fmt(f)
            }
        }
    }
}

/// The timer with its interrupt: one deadline at a time, or periodic releases. Whoever waits on it must be the only one.
#[derive(Clone, Copy, Debug)]
pub struct Timer {
    clock: Clock,
    /// If the kernel masks the interrupt until it is acknowledged.
    irq: Option<IrqHandler>,
    notification: Notification,
}

impl Timer {
    /// Takes the timer as the root task, interrupting on PCs through `vector` (0 to 107).
    pub fn new(process: &mut Process, vector: u64) -> Result<Self, TimerError> {
        arch::take_timer(process, vector)
    }

    /// A timer of its parts: the interrupt, if the kernel masks it, and the notification that it signals.
    pub(crate) const fn of(
        clock: Clock,
        irq: Option<IrqHandler>,
        notification: Notification,
    ) -> Self {
        Self {
            clock,
            irq,
            notification,
        }
    }

    /// The timer of a component of a described system that has the `[timer-device]`. Its signal has the badge 1, as the
    /// launcher has set it.
    ///
    /// # Panics
    /// It has not.
    pub fn device(env: &Environment) -> Result<Self, TimerError> {
        Self::described(env, "hpet", "timer", "pit")
    }

    /// As [`Self::device`], of parts with these names: on PCs the HPET's registers as memory, the interrupt at pin 2, and the
    /// PIT's ports 0x40 to 0x43; on aarch64 the interrupt alone, or the interrupt and registers of a
    /// triple timer counter, and the rate of its clock as the parameter `INTERRUPT.hz`.
    ///
    /// # Panics
    /// It has not.
    pub fn described(
        env: &Environment,
        registers: &str,
        interrupt: &str,
        pit: &str,
    ) -> Result<Self, TimerError> {
        arch::described_timer(env, registers, interrupt, pit)
    }

    /// Whether the component has a timer under these names.
    pub fn is_described(env: &Environment, registers: &str, interrupt: &str) -> bool {
        arch::has_timer(env, registers, interrupt)
    }

    /// Its counter.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// What the interrupt signals, for a caller that waits for more than the timer: arm with
    /// [`Self::arm`], wait there, and on each signal ask [`Self::expired`].
    pub const fn notification(&self) -> Notification {
        self.notification
    }

    /// Sets the deadline, in ticks of the counter. True if it has passed already: then do not
    /// wait.
    pub fn arm(&self, deadline: u64) -> bool {
        self.clock.set_deadline(deadline)
    }

    /// Acknowledges the interrupt, if that is needed, and says whether `deadline` has passed. If it has not, the interrupt was
    /// one of an earlier deadline, and the timer stays armed.
    pub fn expired(&self, deadline: u64) -> Result<bool, TimerError> {
        let mut has_passed = self.clock.now() >= deadline;
        if has_passed {
            self.clock.quieten();
        } else {
            has_passed = self.clock.keep_deadline(deadline);
        }
        if let Some(irq) = self.irq {
            irq.ack()?;
        }
        // An edge is lost that came before the acknowledgement: whether it did is seen behind that only.
        Ok(has_passed || self.clock.now() >= deadline)
    }

    /// Waits until the counter has reached `deadline`, in ticks.
    pub fn wait_until(&self, deadline: u64) -> Result<(), TimerError> {
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
    pub fn sleep_us(&self, us: u64) -> Result<(), TimerError> {
        self.wait_until(self.clock.now().saturating_add(self.clock.us_to_ticks(us)))
    }

    /// Periodic releases every `period_us` µs, the first one period from now, without drift.
    pub fn every_us(&self, period_us: u64) -> Periodic {
        let period = self.clock.us_to_ticks(period_us).max(1);
        Periodic {
            timer: *self,
            period,
            next: self.clock.now() + period,
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
    pub fn wait(&mut self) -> Result<u64, TimerError> {
        let release = self.next;
        self.next = release.saturating_add(self.period);
        self.timer.wait_until(release)?;
        Ok(release)
    }
}
