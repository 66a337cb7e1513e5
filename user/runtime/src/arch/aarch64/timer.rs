//! The machine's timer: the physical timer of the first core, which the kernel lets user level have if it is built for that.

use alloc::format;
use core::arch::asm;

use crate::boot;
use crate::cap::IrqHandler;
use crate::env::Environment;
use crate::process::Process;
use crate::time::Tsc;
use crate::timer::{Timer, TimerError};

/// Interrupt of the physical timer, private to each core.
const TIMER_IRQ: u64 = 30;

/// The physical counter, and the physical timer of the core that executes this: the first, whose interrupt the handler is of.
#[derive(Clone, Copy, Debug)]
pub struct TimerClock {
    frequency: Tsc,
}

impl TimerClock {
    fn open() -> Result<Self, TimerError> {
        let hz: u64;
        // SAFETY: reads a register, which user level may wherever it reads a counter.
        unsafe {
            asm!("mrs {}, cntfrq_el0", out(reg) hz, options(nomem, nostack, preserves_flags));
        }
        let frequency = Tsc::from_hz(hz).ok_or(TimerError::NoFrequency)?;
        let clock = Self { frequency };
        clock.quieten();
        Ok(clock)
    }

    /// The counter, in ticks.
    pub fn now(&self) -> u64 {
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
        const ENABLED: u64 = 1;
        // SAFETY: the timer concerns time only. ISB: its interrupt is not looked at before it is set.
        unsafe {
            asm!("msr cntp_cval_el0, {}", "msr cntp_ctl_el0, {}", "isb", in(reg) deadline, in(reg) ENABLED,
                 options(nomem, nostack, preserves_flags));
        }
        let has_passed = self.now() >= deadline;
        if has_passed {
            self.quieten();
        }
        has_passed
    }

    /// Takes an interrupt back that has arrived: the timer interrupts as long as it is on and behind its deadline.
    pub(crate) fn quieten(&self) {
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
    let clock = TimerClock::open()?;
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
    _registers: &str,
    interrupt: &str,
    _pit: &str,
) -> Result<Timer, TimerError> {
    let clock = TimerClock::open()?;
    let irq: IrqHandler = env.capability(interrupt);
    irq.ack()?;
    let signal = env.capability(&format!("{interrupt}.signal"));
    Ok(Timer::of(clock, Some(irq), signal))
}

/// Whether a component has the timer under these names: its interrupt, by its number.
pub fn has_timer(env: &Environment, _registers: &str, interrupt: &str) -> bool {
    env.find_parameter(&format!("{interrupt}.irq")) == Some(TIMER_IRQ)
}
