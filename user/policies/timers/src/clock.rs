//! What wakes a scheduler: the HPET, if it has that for itself, or a timer of the service that shares it.

use sandglass::cap::Notification;
use sandglass::time::Tsc;
use sandglass::timer::{Timer, TimerError};
use sandglass::Environment;

use crate::{alarm, Armed};

/// What rings at a time of the time-stamp counter.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The HPET: setting it is an access to its registers.
    Own(alarm::Alarm),
    /// A timer of the service: setting it is a call.
    Served(crate::Timer),
}

/// Under which names a component finds its clock.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// The HPET's registers, if it has that for itself.
    pub registers: &'static str,
    /// The HPET's interrupt, or its timer of the service.
    pub timer: &'static str,
    /// Ports of the PIT, which shares the HPET's input of the I/O APIC.
    pub pit: &'static str,
}

impl Clock {
    /// The HPET, if the builder gave the component that; else its timer of the service.
    ///
    /// # Errors
    /// There is no HPET.
    ///
    /// # Panics
    /// The component has neither.
    pub fn described(env: &Environment, names: Names) -> Result<Self, TimerError> {
        if !Timer::is_described(env, names.registers, names.timer) {
            return Ok(Self::Served(crate::Timer::described(env, names.timer)));
        }
        let tsc = env.tsc().expect("the kernel reports the clock's frequency");
        let timer = Timer::described(env, names.registers, names.timer, names.pit)?;
        Ok(Self::own(timer, tsc))
    }

    /// The HPET, which nobody else uses.
    pub fn own(timer: Timer, tsc: Tsc) -> Self {
        Self::Own(alarm::Alarm::new(timer, tsc))
    }

    /// What it signals, to be bound to the scheduler's thread.
    pub const fn notification(&self) -> Notification {
        match self {
            Self::Own(alarm) => alarm.timer().notification(),
            Self::Served(timer) => timer.signal(),
        }
    }

    /// Lets it ring at the time `at`. True if that has passed: then it may not.
    fn set(&self, at: u64) -> bool {
        match self {
            Self::Own(alarm) => alarm.set(at),
            // The service refuses numbers that there are no timers of, and 0 is one.
            Self::Served(timer) => timer.at(at) == Ok(Armed::Passed),
        }
    }

    fn clear(&self) {
        match self {
            Self::Own(alarm) => alarm.clear(),
            Self::Served(timer) => _ = timer.cancel(),
        }
    }

    fn acknowledge(&self) -> Result<(), TimerError> {
        match self {
            Self::Own(alarm) => alarm.acknowledge(),
            Self::Served(_) => Ok(()),
        }
    }
}

/// A clock, and what it is set to.
#[derive(Debug)]
pub struct Alarm {
    clock: Clock,
    /// Until it has rung.
    set_to: Option<u64>,
}

impl Alarm {
    /// A clock that is not set.
    pub const fn new(clock: Clock) -> Self {
        Self {
            clock,
            set_to: None,
        }
    }

    /// Lets it ring at the time `at`, if that is any. True if that has passed: then it may not.
    pub fn set(&mut self, at: Option<u64>) -> bool {
        let Some(at) = at.filter(|_| at != self.set_to) else {
            return false;
        };
        let has_passed = self.clock.set(at);
        self.set_to = (!has_passed).then_some(at);
        has_passed
    }

    /// Lets it not ring any more.
    ///
    /// # Errors
    /// The kernel refuses to acknowledge the interrupt.
    pub fn silence(&mut self) -> Result<(), TimerError> {
        self.clock.clear();
        // It may have rung before that.
        self.clock.notification().poll();
        self.acknowledge()
    }

    /// Takes note that it has rung.
    ///
    /// # Errors
    /// The kernel refuses to acknowledge the interrupt.
    pub fn acknowledge(&mut self) -> Result<(), TimerError> {
        self.set_to = None;
        self.clock.acknowledge()
    }
}
