//! Reading and converting time. No floating point.

use core::arch::asm;

pub use crate::arch::{pause, ticks, work};

/// An instruction that does nothing: the body of a loop that stands for work.
///
/// Not [`core::hint::spin_loop`], which says that this thread waits for another core: the emulator then looks whether one
/// has something to do, which takes it much longer than an instruction. Where other cores are to go on meanwhile in the
/// emulator, `spin_loop` is right.
#[inline(always)]
pub fn nop() {
    // SAFETY: it changes nothing.
    unsafe { asm!("nop", options(nomem, nostack, preserves_flags)) }
}

/// Instructions of [`pass`].
pub const PASSED: u64 = 64;

/// [`PASSED`] instructions that do nothing: between two looks at the counter, for whoever waits for it, or for ever, for
/// whoever is to run.
///
/// An emulator takes no longer for all of them than for one, and much longer for a jump, for [`nop`] in a loop therefore, or
/// for a look at the counter.
#[inline(always)]
pub fn pass() {
    // SAFETY: it changes nothing.
    unsafe {
        asm!(
            ".rept {passed}",
            "nop",
            ".endr",
            passed = const PASSED,
            options(nomem, nostack, preserves_flags)
        );
    }
}

/// Instructions of a step of [`work`].
pub const STEP: u64 = 4;

/// The frequency of the time-stamp counter, as the kernel reports it (ABI 06, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tsc {
    /// Ticks per µs; not 0.
    mhz: u32,
}

impl Tsc {
    /// `mhz` ticks per µs; `None` for 0.
    pub const fn new(mhz: u32) -> Option<Self> {
        if mhz == 0 {
            None
        } else {
            Some(Self { mhz })
        }
    }

    /// Ticks per µs.
    #[inline]
    pub const fn mhz(self) -> u32 {
        self.mhz
    }

    /// Saturates.
    #[inline]
    pub const fn us_to_ticks(self, us: u64) -> u64 {
        us.saturating_mul(self.mhz as u64)
    }

    /// Rounds down.
    #[inline]
    pub const fn ticks_to_us(self, ticks: u64) -> u64 {
        ticks / self.mhz as u64
    }

    /// Rounds down, exact for any number of ticks whose result fits.
    #[inline]
    pub const fn ticks_to_ns(self, ticks: u64) -> u64 {
        (ticks as u128 * 1000 / self.mhz as u128) as u64
    }

    /// Time since the counter was zero, µs.
    #[inline]
    pub fn now_us(self) -> u64 {
        self.ticks_to_us(ticks())
    }

    /// Executes instructions until `us` µs of wall-clock time have passed: a delay that burns
    /// budget. Preemption counts.
    pub fn spin_us(self, us: u64) {
        let start = ticks();
        let wanted = self.us_to_ticks(us);
        while ticks().wrapping_sub(start) < wanted {
            pass();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_round_down_and_saturate() {
        let tsc = Tsc::new(3000).unwrap();
        assert_eq!(tsc.ticks_to_us(5999), 1);
        assert_eq!(tsc.ticks_to_ns(u64::MAX), 6_148_914_691_236_517_205);
        assert_eq!(tsc.us_to_ticks(u64::MAX), u64::MAX);
        assert_eq!(Tsc::new(0), None);
    }
}
