//! The machine's timer: the physical timer of the first core, which the kernel lets user level have if it is built for that; or,
//! on a board that has one, a triple timer counter ([`Ttc`]), of which a component has the registers.

use alloc::format;
use core::arch::asm;

use crate::boot;
use crate::cap::IrqHandler;
use crate::env::Environment;
use crate::process::Process;
use crate::time::{self, Tsc};
use crate::timer::{Timer, TimerError};
use crate::ttc::Ttc;

/// Interrupt of the physical timer, private to each core.
const TIMER_IRQ: u64 = 30;

/// What counts, and what interrupts.
#[derive(Clone, Copy, Debug)]
pub struct TimerClock {
    frequency: Tsc,
    device: Device,
}

#[derive(Clone, Copy, Debug)]
enum Device {
    /// The physical counter, and the physical timer of the core that executes this: the first, whose interrupt the handler is
    /// of.
    Core,
    /// The virtual counter, which every component reads, and a device.
    Counter(Ttc),
}

impl TimerClock {
    fn open(device: Device) -> Result<Self, TimerError> {
        let hz: u64;
        // SAFETY: reads a register, which user level may wherever it reads a counter.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags));
        }
        let frequency = Tsc::from_hz(hz).ok_or(TimerError::NoFrequency)?;
        let clock = Self { frequency, device };
        clock.quieten();
        Ok(clock)
    }

    /// The counter, in ticks.
    pub fn now(&self) -> u64 {
        if let Device::Counter(_) = self.device {
            return time::ticks();
        }
        let ticks;
        // SAFETY: reads a register. ISB: not before what comes before.
        unsafe {
            asm!("isb", "mrs {}, cntpct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
        }
        ticks
    }

    /// Rounds up, so that no wait is shorter than asked for.
    pub const fn us_to_ticks(&self, us: u64) -> u64 {
        let (ticks, in_us) = self.frequency.ratio();
        (us as u128 * ticks as u128).div_ceil(in_us as u128) as u64
    }

    /// Rounds down.
    pub const fn ticks_to_us(&self, ticks: u64) -> u64 {
        self.frequency.ticks_to_us(ticks)
    }

    /// Lets the timer interrupt when the counter reaches `deadline`. True if that is not in the future any more: then it is
    /// off again, although the interrupt may have arrived.
    pub(crate) fn set_deadline(&self, deadline: u64) -> bool {
        match self.device {
            Device::Core => self.set_core_timer(deadline),
            Device::Counter(counter) => match deadline.checked_sub(self.now()) {
                Some(ticks @ 1..) => counter.interrupt_in(ticks, self.frequency),
                _ => counter.quieten(),
            },
        }
        let has_passed = self.now() >= deadline;
        if has_passed {
            self.quieten();
        }
        has_passed
    }

    /// As [`Self::set_deadline`], after an interrupt that came before the deadline: what counts no ticks of the counter may
    /// have to begin again.
    pub(crate) fn keep_deadline(&self, deadline: u64) -> bool {
        match self.device {
            Device::Core => false,
            Device::Counter(_) => self.set_deadline(deadline),
        }
    }

    fn set_core_timer(&self, deadline: u64) {
        const ENABLED: u64 = 1;
        // SAFETY: the timer concerns time only. ISB: its interrupt is not looked at before it is set.
        unsafe {
            asm!("msr cntp_cval_el0, {}", "msr cntp_ctl_el0, {}", "isb", in(reg) deadline, in(reg) ENABLED,
                 options(nomem, nostack, preserves_flags));
        }
    }

    /// Takes an interrupt back that has arrived: the timer interrupts as long as it is on and behind its deadline.
    pub(crate) fn quieten(&self) {
        if let Device::Counter(counter) = self.device {
            return counter.quieten();
        }
        // SAFETY: the timer concerns time only. ISB: it is off before the kernel lets its interrupt arrive again.
        unsafe {
            asm!(
                "msr cntp_ctl_el0, xzr",
                "isb",
                options(nomem, nostack, preserves_flags)
            );
        }
    }
}

/// See [`Timer::new`]. There are no vectors to choose from.
pub fn take_timer(process: &mut Process, _vector: u64) -> Result<Timer, TimerError> {
    let clock = TimerClock::open(Device::Core)?;
    let resources = &mut process.resources;
    let irq: IrqHandler = resources.fill_slot(|slot| boot::IRQ_CONTROL.get(TIMER_IRQ, slot))?;
    let notification = resources.notification()?;
    irq.set_notification(notification)?;
    irq.ack()?;
    Ok(Timer::of(clock, Some(irq), notification))
}

/// See [`Timer::described`].
pub fn described_timer(
    env: &Environment,
    registers: &str,
    interrupt: &str,
    _pit: &str,
) -> Result<Timer, TimerError> {
    let device = match env.find_memory(registers) {
        Some(memory) => {
            let hz = env.parameter(&format!("{interrupt}.hz"));
            // SAFETY: memory of an environment is nothing that the compiler knows of, and stays mapped; that it is a device's
            // registers, uncached, is what its name says.
            let counter = unsafe { Ttc::open(memory.as_mut_ptr(), hz) };
            Device::Counter(counter.ok_or(TimerError::NoFrequency)?)
        }
        None => Device::Core,
    };
    let clock = TimerClock::open(device)?;
    let irq: IrqHandler = env.capability(interrupt);
    irq.ack()?;
    let signal = env.capability(&format!("{interrupt}.signal"));
    Ok(Timer::of(clock, Some(irq), signal))
}

/// Whether a component has the timer under these names: the registers of a device; or the interrupt of the core's timer, by its
/// number.
pub fn has_timer(env: &Environment, registers: &str, interrupt: &str) -> bool {
    env.find_memory(registers).is_some()
        || env.find_parameter(&format!("{interrupt}.irq")) == Some(TIMER_IRQ)
}
