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

/// Ticks before the end of a wait from which on every reading of the counter counts: more than a call of the kernel takes.
const FAR: u64 = 32_768;

/// Spins until the counter that [`ticks`] reads is at `until` or just behind. As long as that is far away, it looks seldom.
pub fn spin_until(until: u64) {
    while ticks() + FAR < until {
        for _ in 0..FAR / PASSED / 2 {
            pass();
        }
    }
    while ticks() < until {}
}

/// Instructions of a step of [`work`].
pub const STEP: u64 = 4;

/// The frequency of the counter that [`ticks`] reads, as the kernel reports it: of the time-stamp counter (ABI 06, section 4),
/// on aarch64 of the virtual counter, which need not have a whole number of ticks in a µs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tsc {
    /// So many ticks in `us` µs, in lowest terms; not 0.
    ticks: u32,
    us: u32,
}

impl Tsc {
    /// `mhz` ticks per µs; `None` for 0.
    pub const fn new(mhz: u32) -> Option<Self> {
        Self::of(mhz, 1)
    }

    /// `ticks` ticks in `us` µs; `None` if one of them is 0.
    pub const fn of(ticks: u32, us: u32) -> Option<Self> {
        if ticks == 0 || us == 0 {
            return None;
        }
        let divisor = common_divisor(ticks, us);
        Some(Self {
            ticks: ticks / divisor,
            us: us / divisor,
        })
    }

    /// `hz` ticks in a second; `None` for 0, and for more than 2^32.
    pub const fn from_hz(hz: u64) -> Option<Self> {
        if hz > u32::MAX as u64 {
            return None;
        }
        Self::of(hz as u32, 1_000_000)
    }

    /// Ticks per µs, rounded down: for what need not be exact.
    #[inline]
    pub const fn mhz(self) -> u32 {
        self.ticks / self.us
    }

    /// Ticks per ms, rounded down.
    #[inline]
    pub const fn khz(self) -> u64 {
        self.ticks as u64 * 1000 / self.us as u64
    }

    /// So many ticks, in so many µs, in lowest terms.
    #[inline]
    pub const fn ratio(self) -> (u32, u32) {
        (self.ticks, self.us)
    }

    /// Rounds down, and saturates.
    #[inline]
    pub const fn us_to_ticks(self, us: u64) -> u64 {
        scale(us, self.ticks, self.us)
    }

    /// Rounds down, and saturates.
    #[inline]
    pub const fn ticks_to_us(self, ticks: u64) -> u64 {
        scale(ticks, self.us, self.ticks)
    }

    /// Rounds down, exact for any number of ticks whose result fits.
    #[inline]
    pub const fn ticks_to_ns(self, ticks: u64) -> u64 {
        (ticks as u128 * self.us as u128 * 1000 / self.ticks as u128) as u64
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

/// `value` times `by`, divided by `over`, which is not 0.
const fn scale(value: u64, by: u32, over: u32) -> u64 {
    if let Some(product) = value.checked_mul(by as u64) {
        return product / over as u64;
    }
    let exact = value as u128 * by as u128 / over as u128;
    if exact > u64::MAX as u128 {
        return u64::MAX;
    }
    exact as u64
}

/// The greatest; neither is 0.
const fn common_divisor(mut a: u32, mut b: u32) -> u32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
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

    #[test]
    fn a_wait_ends_at_its_tick_or_behind_it() {
        for far in [0, 1, FAR, 3 * FAR + 1] {
            let until = ticks() + far;
            spin_until(until);
            assert!(ticks() >= until, "{far}");
        }
        // What is past is over.
        spin_until(0);
    }

    #[test]
    fn a_tick_need_not_be_a_whole_part_of_a_microsecond() {
        let tsc = Tsc::from_hz(62_500_000).unwrap();
        assert_eq!(tsc.ratio(), (125, 2));
        assert_eq!((tsc.mhz(), tsc.khz()), (62, 62_500));
        assert_eq!(tsc.us_to_ticks(3), 187);
        assert_eq!(tsc.ticks_to_us(187), 2);
        assert_eq!(tsc.ticks_to_us(188), 3);
        assert_eq!(tsc.ticks_to_ns(1), 16);
        // Exact where the product does not fit, saturated where the result does not.
        assert_eq!(tsc.ticks_to_us(u64::MAX), 295_147_905_179_352_825);
        assert_eq!(tsc.us_to_ticks(u64::MAX), u64::MAX);
        assert_eq!(Tsc::from_hz(0), None);
        assert_eq!(Tsc::from_hz(1 << 33), None);
        assert_eq!(Tsc::from_hz(3_000_000_000), Tsc::new(3000));
    }
}
