//! A user-level timer: the first counter of a triple timer counter (Cadence's, `cdns,ttc`), as Xilinx's Zynq have it.
//!
//! It counts 16 bits, on some machines more, of a clock that can be divided. So it is no clock to look at, but interrupts
//! once after a while, and whoever is interrupted looks at the processor's counter: a wait that is longer than it can count,
//! or that ends early because its rate is not quite what was told, is continued.
//!
//! It counts whole microseconds, if its clock has a whole number of ticks in one: QEMU 7.2 rounds the time of an interval to
//! nanoseconds, and in virtual time never comes to the end of one that is not as long.
//!
//! Its interrupt is a level that stays until its register is read ([`Ttc::quieten`]). What uses it is a
//! [`Timer`](crate::timer::Timer).

use tock_registers::interfaces::{Readable, Writeable};
use tock_registers::registers::{ReadOnly, ReadWrite};
use tock_registers::{register_bitfields, register_structs};

use crate::time::Tsc;

register_bitfields![u32,
    ClockControl [
        DIVIDE OFFSET(0) NUMBITS(1) [],
        /// By a power of two: this is its exponent, less one.
        DIVISOR OFFSET(1) NUMBITS(4) [],
    ],
    CounterControl [
        STOP OFFSET(0) NUMBITS(1) [],
        /// From zero to the interval, over and over.
        INTERVAL OFFSET(1) NUMBITS(1) [],
        /// Begins at zero.
        RESET OFFSET(4) NUMBITS(1) [],
        /// No output of a wave.
        NO_WAVE OFFSET(5) NUMBITS(1) [],
    ],
    Interrupts [
        /// The interval is over.
        INTERVAL OFFSET(0) NUMBITS(1) [],
    ],
];

register_structs! {
    /// Of the first counter; those of the others lie between.
    Registers {
        (0x00 => clock_control: ReadWrite<u32, ClockControl::Register>),
        (0x04 => _others0),
        (0x0c => counter_control: ReadWrite<u32, CounterControl::Register>),
        (0x10 => _others1),
        (0x24 => interval: ReadWrite<u32>),
        (0x28 => _others2),
        /// Reading clears it.
        (0x54 => interrupts: ReadOnly<u32, Interrupts::Register>),
        (0x58 => _others3),
        (0x60 => interrupts_enabled: ReadWrite<u32, Interrupts::Register>),
        (0x64 => @END),
    }
}

/// Most ticks of an interval: what every such counter can.
const MAX_TICKS: u64 = 1 << 16;
/// Fewest: an interval of one tick would not end.
const MIN_TICKS: u64 = 2;
/// The clock is divided by at most two to this: an interval stays below the 131 ms from which on QEMU rounds to microseconds,
/// too.
const MAX_DIVISOR_BITS: u32 = 8;

/// A counter, mapped.
#[derive(Clone, Copy, Debug)]
pub struct Ttc {
    registers: *const Registers,
    /// Of its clock, before it is divided.
    rate: Tsc,
}

// SAFETY: registers may be accessed from any thread.
unsafe impl Send for Ttc {}

/// How a wait is counted: so many ticks, of two to the power of `divisor_bits` of the clock's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    ticks: u64,
    divisor_bits: u32,
}

impl Count {
    /// Of `ticks` of the clock, in steps of `step` of them: at most that much longer if it can be counted without dividing the
    /// clock. Else it is shorter, by as little as can be.
    fn of(ticks: u64, step: u64) -> Self {
        let most = MAX_TICKS / step;
        let fewest = MIN_TICKS.div_ceil(step);
        let steps = ticks.div_ceil(step).max(fewest);
        let mut divisor_bits = 0;
        while steps >> divisor_bits > most && divisor_bits < MAX_DIVISOR_BITS {
            divisor_bits += 1;
        }
        Self {
            ticks: (steps >> divisor_bits).min(most) * step,
            divisor_bits,
        }
    }
}

/// In how many ticks of its clock it counts: those of a microsecond, if they are a whole number that leaves it some hundreds
/// of steps.
const fn step_of(rate: Tsc) -> u64 {
    match rate.ratio() {
        (ticks @ 1..=256, 1) => ticks as u64,
        _ => 1,
    }
}

impl Ttc {
    /// Takes over the counter whose registers are mapped, uncached and writable, at `base`, and stops it. Its clock has `hz`
    /// ticks in a second; `None` if that is 0, or 2^32 and more.
    ///
    /// # Safety
    /// `base` must be such a mapping of a page, for as long as this is used.
    pub unsafe fn open(base: *mut u8, hz: u64) -> Option<Self> {
        let ttc = Self {
            registers: base.cast(),
            rate: Tsc::from_hz(hz)?,
        };
        ttc.quieten();
        let enabled = &ttc.registers().interrupts_enabled;
        enabled.write(Interrupts::INTERVAL::SET);
        Some(ttc)
    }

    /// Lets it interrupt in `ticks` of a counter of the rate `of`, or at most a microsecond later; if they are more than it
    /// counts in one piece, earlier.
    pub fn interrupt_in(&self, ticks: u64, of: Tsc) {
        let count = Count::of(convert(ticks, of, self.rate), step_of(self.rate));
        self.quieten();
        let registers = self.registers();
        registers.clock_control.write(match count.divisor_bits {
            0 => ClockControl::DIVIDE::CLEAR,
            bits => ClockControl::DIVIDE::SET + ClockControl::DIVISOR.val(bits - 1),
        });
        registers.interval.set((count.ticks - 1) as u32);
        let run = CounterControl::INTERVAL::SET + CounterControl::NO_WAVE::SET;
        registers
            .counter_control
            .write(run + CounterControl::RESET::SET);
    }

    /// Stops it, and takes an interrupt back that has arrived.
    pub fn quieten(&self) {
        let registers = self.registers();
        let stopped = CounterControl::STOP::SET + CounterControl::NO_WAVE::SET;
        registers.counter_control.write(stopped);
        registers.interrupts.get();
    }

    fn registers(&self) -> &Registers {
        // SAFETY: `open` was promised a mapping of the registers.
        unsafe { &*self.registers }
    }
}

/// Ticks of the rate `from` in those of `to`, rounded up; saturates.
fn convert(ticks: u64, from: Tsc, to: Tsc) -> u64 {
    let ((from, from_us), (to, to_us)) = (from.ratio(), to.ratio());
    let up = u128::from(to) * u128::from(from_us);
    let down = u128::from(from) * u128::from(to_us);
    let product = u128::from(ticks).saturating_mul(up);
    product.div_ceil(down).try_into().unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    /// Ticks of the clock that a count takes.
    fn taken(count: Count) -> u64 {
        count.ticks << count.divisor_bits
    }

    /// Each wait ends at most a step too late, however long it is; and it is continued a few times only.
    #[test]
    fn waits_end_in_time_and_in_few_pieces() {
        let powers = (0..34).flat_map(|bits| {
            let power = 1u64 << bits;
            [power - 1, power, power + 1, power / 3 * 4 + 1]
        });
        for (ticks, step) in powers.flat_map(|ticks| [(ticks, 1), (ticks, 133), (ticks, 256)]) {
            let (mut left, mut pieces) = (ticks as i64, 0);
            while left > 0 {
                let count = Count::of(left as u64, step);
                assert!((MIN_TICKS..=MAX_TICKS).contains(&count.ticks), "{count:?}");
                assert_eq!(count.ticks % step, 0);
                left -= taken(count) as i64;
                pieces += 1;
            }
            assert!(
                -left <= step.max(MIN_TICKS) as i64,
                "{ticks} by {step}: {left}"
            );
            let longest = (MAX_TICKS - step) << MAX_DIVISOR_BITS;
            assert!(pieces <= 3 + ticks / longest, "{ticks} by {step}: {pieces}");
        }
    }

    #[test]
    fn steps_are_microseconds_where_the_clock_has_whole_ones() {
        let step = |hz| step_of(Tsc::from_hz(hz).unwrap());
        assert_eq!((step(133_000_000), step(100_000_000)), (133, 100));
        assert_eq!((step(62_500_000), step(33_333_333)), (1, 1));
        assert_eq!(step(1_000_000_000), 1);
    }

    #[test]
    fn rates_are_converted_so_that_no_time_is_lost() {
        let rate = |hz| Tsc::from_hz(hz).unwrap();
        assert_eq!(convert(0, rate(62_500_000), rate(133_000_000)), 0);
        assert_eq!(convert(1, rate(62_500_000), rate(133_000_000)), 3);
        assert_eq!(
            convert(62_500_000, rate(62_500_000), rate(133_000_000)),
            133_000_000
        );
        assert_eq!(convert(u64::MAX, rate(1), rate(133_000_000)), u64::MAX);
    }

    #[repr(C, align(4096))]
    struct Page([u32; 1024]);

    #[test]
    fn what_is_programmed_is_one_interval_that_interrupts() {
        let mut page = Page([0; 1024]);
        let read = |page: &Page, offset: usize| page.0[offset / 4];
        // SAFETY: memory stands in for the registers.
        let ttc = unsafe { Ttc::open(page.0.as_mut_ptr().cast(), 133_000_000) }.unwrap();
        assert_eq!(read(&page, offset_of!(Registers, counter_control)) & 1, 1);
        assert_eq!(read(&page, offset_of!(Registers, interrupts_enabled)), 1);
        // A millisecond: 133,000 ticks, of which every fourth is counted: 250 times 133.
        ttc.interrupt_in(62_500, Tsc::from_hz(62_500_000).unwrap());
        assert_eq!(
            read(&page, offset_of!(Registers, clock_control)),
            1 | 1 << 1
        );
        assert_eq!(read(&page, offset_of!(Registers, interval)), 33_250 - 1);
        let control = read(&page, offset_of!(Registers, counter_control));
        assert_eq!(control & 0x13, 0x12, "{control:#x}");
    }

    #[test]
    fn a_clock_without_a_rate_is_refused() {
        let mut page = Page([0; 1024]);
        for hz in [0, 1 << 32] {
            // SAFETY: as above.
            let opened = unsafe { Ttc::open(page.0.as_mut_ptr().cast(), hz) };
            assert!(opened.is_none());
        }
    }
}
