//! How fast the time-stamp counter and the local APIC timer run, measured by clocks whose frequency
//! is known. Pure numbers, and whatever reads the clocks.
//!
//! A *window* is what passes between two readings of a known clock. The time-stamp counter is read before
//! and after each of them, so that a window says between which two values the frequency lies. Whatever
//! disturbs it, an interrupt of the firmware or a host that lets others run, makes a window say less, but
//! nothing wrong. So windows that do not overlap mean a clock that is not what it says, or one that went
//! round unseen: all is measured again then, and the machine is refused in the end.

use super::rate::Rate;
use crate::arch::list::List;

/// A clock of known frequency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Source {
    pub kind: Kind,
    /// Ticks in a second.
    pub hz: u64,
    /// The bits that count: it goes round after them. All ones below a power of two.
    pub mask: u64,
}

/// What the clock is. The numbers are told in the boot information, as bits of a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// The time-stamp counter itself, whose frequency the processor says.
    Processor = 0,
    Hpet = 1,
    PowerTimer = 2,
    Pit = 3,
}

/// Most sources.
pub const SOURCES: usize = 4;
/// Sources that are measured by, if as many run; the others are not touched.
const ENOUGH: usize = 2;

/// The clocks of a machine.
pub trait Clocks {
    /// The time-stamp counter: between what was read before, and what is read afterwards.
    fn time_stamp(&self) -> u64;
    /// Before a window of `source`: lets the local APIC timer count down from the most.
    fn prepare(&self, source: Kind);
    /// What that timer has left.
    fn timer(&self) -> u32;
    /// A known clock, which counts upwards.
    fn read(&self, source: Kind) -> u64;
    /// Lets a moment pass, which is longer than reading a clock takes.
    fn pass(&self);
}

/// Numbers from the least to the most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    pub least: u64,
    pub most: u64,
}

impl Interval {
    const ALL: Interval = Interval {
        least: 0,
        most: u64::MAX,
    };

    /// What is in both; `None` if nothing is.
    fn meet(self, other: Interval) -> Option<Interval> {
        let both = Interval {
            least: self.least.max(other.least),
            most: self.most.min(other.most),
        };
        (both.least <= both.most).then_some(both)
    }

    pub fn middle(self) -> u64 {
        self.least
            .wrapping_add(self.most.wrapping_sub(self.least) / 2)
    }

    /// That, and what a clock is allowed to be off.
    fn widened(self) -> Interval {
        Interval {
            least: self.least.wrapping_sub(self.least / TOLERANCE),
            most: self.most.saturating_add(self.most / TOLERANCE),
        }
    }

    /// Whether its ends are near enough to the middle to call it known.
    fn is_narrow(self) -> bool {
        self.most.wrapping_sub(self.least) / 2 <= self.middle() / PRECISION
    }
}

/// A crystal of a PC may be off by one part in so many: 100 ppm.
const TOLERANCE: u64 = 10_000;
/// The frequency is known when it is to one part in so many, what crystals may be off included: 400 ppm.
/// With the rounding to whole MHz it is so to 0.1 % from 1 GHz on.
const PRECISION: u64 = 2_500;
/// Frequencies of a time-stamp counter that are believed, in Hz: no processor with long mode is slower.
const PLAUSIBLE: Interval = Interval {
    least: 400_000_000,
    most: 10_000_000_000,
};

/// A window has at least one second divided by this.
const WINDOWS_IN_A_SECOND: u64 = 100;
/// Longest window, in ticks of the time-stamp counter, with which the arithmetic does not overflow: seconds.
const LONGEST: u64 = 1 << 33;
/// Fastest known clock, likewise.
const FASTEST: u64 = 1 << 29;
/// Readings of which the shortest counts.
const READINGS: u32 = 5;
/// Looks at a clock, of at least 100 ns, after which one that has not moved stands still.
const STILL: u32 = 10_000;
/// Looks at a clock until it is given up: a window of 10 ms has 100,000 at most.
const PATIENCE: u32 = 2_000_000;
/// Rounds through all sources until the frequency must be known.
const ROUNDS: u32 = 6;
/// Times that it is tried, when sources disagree or all windows say too little.
const ATTEMPTS: u32 = 8;
/// Fraction bits of the rate of two clocks, while windows are compared.
const FRACTION: u32 = 28;

/// What was found out.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The frequency of the time-stamp counter, in Hz.
    pub hz: Interval,
    /// How the timer's count goes with it; `None` if the timer stands still.
    pub rate: Option<Rate>,
    /// Bit n: the source of that number was measured by, or has said the frequency.
    pub sources: u64,
    /// Windows that agree.
    pub windows: u64,
    /// Times that everything was measured again before.
    pub repeated: u64,
}

/// Why the clock is not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// No source runs.
    NoSource,
    /// Sources, or windows of one, contradict each other, or the frequency is no processor's.
    Contradiction,
    /// The windows agree and say too little.
    Disturbed,
}

impl Unknown {
    pub const fn message(self) -> &'static str {
        match self {
            Unknown::NoSource => {
                "nothing runs by which the clock could be measured: a HPET or an ACPI power-management timer that \
                 the firmware's tables name, or a PIT (a firmware's settings may have them; QEMU: -machine \
                 q35,hpet=on)"
            }
            Unknown::Contradiction => {
                "the machine's clocks contradict each other: the time-stamp counter, measured by HPET, ACPI \
                 power-management timer or PIT, or as the processor says, has no one frequency from 0.4 to 10 GHz"
            }
            Unknown::Disturbed => {
                "the clock could not be measured to 0.04 %: something kept the processor away from it all the time"
            }
        }
    }
}

/// A reading of a known clock and of the timer, between two of the time-stamp counter.
#[derive(Clone, Copy)]
struct Reading {
    before: u64,
    value: u64,
    timer: u32,
    after: u64,
}

impl Reading {
    /// The shortest of a few.
    #[inline(never)]
    fn take(clocks: &impl Clocks, source: Kind) -> Reading {
        let mut best = Reading {
            before: 0,
            value: 0,
            timer: 0,
            after: u64::MAX,
        };
        for _ in 0..READINGS {
            let before = clocks.time_stamp();
            let value = clocks.read(source);
            let timer = clocks.timer();
            let after = clocks.time_stamp();
            if after.wrapping_sub(before) < best.after.wrapping_sub(best.before) {
                best = Reading {
                    before,
                    value,
                    timer,
                    after,
                };
            }
        }
        best
    }
}

/// What passed between two readings.
#[derive(Clone, Copy)]
struct Window {
    hz: Interval,
    /// Counts of the timer in a tick, with [`FRACTION`].
    rate: Interval,
    counts: u32,
    ticks: u64,
}

impl Window {
    /// Waits for a window of `source`; `None` if it stands still, or if the window is of no use.
    #[inline(never)]
    fn measure(clocks: &impl Clocks, source: &Source) -> Option<Window> {
        clocks.prepare(source.kind);
        let start = Reading::take(clocks, source.kind);
        let (mut last, mut still) = (start.value, 0);
        for _ in 0..PATIENCE {
            clocks.pass();
            let value = clocks.read(source.kind);
            let gone = value.wrapping_sub(start.value) & source.mask;
            if gone >= source.hz / WINDOWS_IN_A_SECOND {
                return Window::between(start, Reading::take(clocks, source.kind), source);
            }
            still = if value == last { still + 1 } else { 0 };
            last = value;
            if still == STILL {
                break;
            }
        }
        None
    }

    fn between(start: Reading, end: Reading, source: &Source) -> Option<Window> {
        let least = end.before.checked_sub(start.after)?;
        let most = end.after.checked_sub(start.before)?;
        if most >= LONGEST || source.hz >= FASTEST {
            return None;
        }
        // Both readings may be off by nearly one.
        let gone = end.value.wrapping_sub(start.value) & source.mask;
        let counts = start.timer.wrapping_sub(end.timer);
        let scaled = |counts: u32| u64::from(counts) << FRACTION;
        Some(Window {
            hz: Interval {
                least: (least * source.hz).checked_div(gone.checked_add(1)?)?,
                most: (most * source.hz).checked_div(gone.checked_sub(1)?)?,
            },
            rate: Interval {
                least: scaled(counts.saturating_sub(1)).checked_div(most)?,
                most: scaled(counts.saturating_add(1))
                    .checked_div(least)?
                    .wrapping_add(1),
            },
            counts,
            ticks: end.after.wrapping_sub(start.after),
        })
    }
}

/// What the windows of one attempt say together.
struct Estimate {
    hz: Interval,
    rate: Interval,
    /// The window that says most about the rate.
    best: Option<Window>,
    sources: u64,
    windows: u64,
}

impl Estimate {
    /// What the processor says.
    fn new(stated: Option<u64>) -> Estimate {
        let exactly = |hz| Interval {
            least: hz,
            most: hz,
        };
        Estimate {
            hz: stated.map_or(PLAUSIBLE, |hz| exactly(hz).widened()),
            rate: Interval::ALL,
            best: None,
            sources: u64::from(stated.is_some()),
            windows: 0,
        }
    }

    /// Adds a window by `source`. `None` if it contradicts.
    fn add(&mut self, window: Window, source: Kind) -> Option<()> {
        self.hz = self.hz.meet(window.hz.widened())?.meet(PLAUSIBLE)?;
        self.rate = self.rate.meet(window.rate)?;
        let width = |rate: Interval| rate.most.wrapping_sub(rate.least);
        if self
            .best
            .is_none_or(|best| width(window.rate) < width(best.rate))
        {
            self.best = Some(window);
        }
        self.sources |= 1 << source as u8;
        self.windows += 1;
        Some(())
    }

    fn is_known(&self) -> bool {
        self.windows >= ENOUGH as u64 && self.hz.is_narrow()
    }
}

/// Measures by `sources`, of which the first two that run are used; `stated` is the frequency that the
/// processor says.
///
/// # Errors
/// No source runs, or they go on to contradict each other.
pub fn find(
    clocks: &impl Clocks,
    sources: &List<Source, SOURCES>,
    stated: Option<u64>,
) -> Result<Known, Unknown> {
    let mut why = Unknown::NoSource;
    for repeated in 0..ATTEMPTS {
        match attempt(clocks, sources, stated) {
            Ok(Estimate {
                hz,
                best,
                sources,
                windows,
                ..
            }) => {
                return Ok(Known {
                    hz,
                    rate: best.and_then(|window| Rate::measured(window.counts, window.ticks)),
                    sources,
                    windows,
                    repeated: repeated.into(),
                })
            }
            Err(unknown) => why = unknown,
        }
    }
    Err(why)
}

#[inline(never)]
fn attempt(
    clocks: &impl Clocks,
    sources: &List<Source, SOURCES>,
    stated: Option<u64>,
) -> Result<Estimate, Unknown> {
    let mut estimate = Estimate::new(stated);
    for _ in 0..ROUNDS {
        let mut running = 0;
        for source in sources.iter() {
            if running == ENOUGH {
                break;
            }
            if let Some(window) = Window::measure(clocks, source) {
                running += 1;
                estimate
                    .add(window, source.kind)
                    .ok_or(Unknown::Contradiction)?;
            }
        }
        if running == 0 {
            return Err(Unknown::NoSource);
        }
        if estimate.is_known() {
            return Ok(estimate);
        }
    }
    Err(Unknown::Disturbed)
}

#[cfg(test)]
mod tests {
    use core::cell::{Cell, RefCell};
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    const PS_PER_SECOND: u128 = 1_000_000_000_000;
    const HPET: Source = Source {
        kind: Kind::Hpet,
        hz: 14_318_180,
        mask: 0xffff_ffff,
    };
    const POWER_TIMER: Source = Source {
        kind: Kind::PowerTimer,
        hz: 3_579_545,
        mask: 0xff_ffff,
    };
    const PIT: Source = Source {
        kind: Kind::Pit,
        hz: 1_193_182,
        mask: 0xffff,
    };

    /// A machine whose time passes when its clocks are read.
    struct Simulated {
        /// Since it was switched on, ps.
        time: Cell<u128>,
        tsc_hz: u64,
        timer_hz: u64,
        /// What each clock is off, ppm; one that is not there stands still.
        off: Vec<(Kind, i64)>,
        /// What the next accesses take besides, ps; for ever from the start again.
        stalls: RefCell<std::iter::Cycle<std::vec::IntoIter<u64>>>,
    }

    /// What an access to a device takes, ps.
    const ACCESS: u64 = 700_000;
    const MOMENT: u64 = 50_000;

    impl Simulated {
        fn new(tsc_hz: u64, off: &[(Kind, i64)], stalls: Vec<u64>) -> Simulated {
            Simulated {
                time: Cell::new(1_234_567_890_123),
                tsc_hz,
                timer_hz: 24_000_000,
                off: off.to_vec(),
                stalls: RefCell::new(stalls.into_iter().cycle()),
            }
        }

        fn take(&self, ps: u64) {
            let stall = self.stalls.borrow_mut().next().unwrap_or(0);
            self.time.set(self.time.get() + u128::from(ps + stall));
        }

        fn ticks(&self, hz: u64) -> u64 {
            (self.time.get() * u128::from(hz) / PS_PER_SECOND) as u64
        }

        fn find(&self, sources: &[Source], stated: Option<u64>) -> Result<Known, Unknown> {
            let mut list = List::new();
            for &source in sources {
                list.push(source).unwrap();
            }
            find(self, &list, stated)
        }
    }

    impl Clocks for Simulated {
        fn time_stamp(&self) -> u64 {
            self.take(10_000);
            self.ticks(self.tsc_hz)
        }

        fn prepare(&self, _: Kind) {}

        fn timer(&self) -> u32 {
            self.take(20_000);
            !(self.ticks(self.timer_hz) as u32)
        }

        fn read(&self, source: Kind) -> u64 {
            self.take(ACCESS / 2);
            let [hpet, power_timer, pit] = [HPET, POWER_TIMER, PIT];
            let of = |kind| self.off.iter().find(|(known, _)| *known == kind);
            let value = match (of(source), source) {
                (_, Kind::Processor) => self.ticks(self.tsc_hz),
                (None, _) => 7,
                (Some((_, off)), _) => {
                    let nominal = match source {
                        Kind::Hpet => hpet.hz,
                        Kind::PowerTimer => power_timer.hz,
                        _ => pit.hz,
                    };
                    let hz = nominal as i64 + nominal as i64 * off / 1_000_000;
                    self.ticks(hz as u64)
                }
            };
            self.take(ACCESS / 2);
            value
        }

        fn pass(&self) {
            self.take(MOMENT);
        }
    }

    fn contains(known: &Known, hz: u64) -> bool {
        (known.hz.least..=known.hz.most).contains(&hz)
    }

    #[test]
    fn a_quiet_machine_is_measured_to_half_of_what_is_asked_for() {
        for sources in [&[HPET, POWER_TIMER, PIT][..], &[POWER_TIMER], &[HPET]] {
            let all = [(Kind::Hpet, 0), (Kind::PowerTimer, 0), (Kind::Pit, 0)];
            let machine = Simulated::new(2_496_123_456, &all, std::vec![0]);
            let known = machine.find(sources, None).unwrap();
            assert!(contains(&known, 2_496_123_456) && known.repeated == 0);
            // 100 ppm for crystals, and 100 for itself.
            let width = known.hz.most - known.hz.least;
            assert!(width < 2 * 200 * 2_496, "{known:?}");
            assert_eq!(known.windows, 2);
        }
    }

    #[test]
    fn a_busy_machine_is_measured_as_well() {
        // Others run for 5 ms after each 997 accesses, of which a window has tens of thousands.
        let all = [(Kind::Hpet, 40), (Kind::PowerTimer, -60)];
        let mut stalls = std::vec![0; 997];
        stalls.push(5_000_000_000);
        let machine = Simulated::new(2_496_123_456, &all, stalls);
        let known = machine.find(&[HPET, POWER_TIMER], None).unwrap();
        assert!(contains(&known, 2_496_123_456), "{known:?}");
    }

    #[test]
    fn a_pit_alone_is_enough() {
        let machine = Simulated::new(3_200_000_000, &[(Kind::Pit, -90)], std::vec![0]);
        let known = machine.find(&[PIT], None).unwrap();
        assert!(contains(&known, 3_200_000_000));
        assert_eq!(known.sources, 1 << Kind::Pit as u8);
    }

    #[test]
    fn clocks_that_stand_still_are_not_believed() {
        let machine = Simulated::new(2_000_000_000, &[], std::vec![0]);
        let found = machine.find(&[HPET, POWER_TIMER, PIT], None);
        assert_eq!(found.err(), Some(Unknown::NoSource));
        // One that runs is enough.
        let machine = Simulated::new(2_000_000_000, &[(Kind::PowerTimer, 0)], std::vec![0]);
        let known = machine.find(&[HPET, POWER_TIMER, PIT], None).unwrap();
        assert_eq!(known.sources, 1 << Kind::PowerTimer as u8);
    }

    #[test]
    fn clocks_that_contradict_each_other_are_refused() {
        for off in [[0, 1_000], [1_000, 0], [0, -300_000], [10_000, 10_500]] {
            let off = [(Kind::Hpet, off[0]), (Kind::PowerTimer, off[1])];
            let machine = Simulated::new(2_000_000_000, &off, std::vec![0]);
            let found = machine.find(&[HPET, POWER_TIMER], None);
            assert_eq!(found.err(), Some(Unknown::Contradiction));
        }
    }

    #[test]
    fn what_the_processor_says_is_measured_too() {
        let machine = Simulated::new(2_000_000_000, &[(Kind::PowerTimer, 0)], std::vec![0]);
        let right = machine.find(&[POWER_TIMER], Some(2_000_100_000)).unwrap();
        assert_eq!(right.sources, 1 | 1 << Kind::PowerTimer as u8);
        let wrong = machine.find(&[POWER_TIMER], Some(2_002_000_000));
        assert_eq!(wrong.err(), Some(Unknown::Contradiction));
    }

    #[test]
    fn without_another_clock_the_processor_is_believed_and_its_timer_measured() {
        let hz = 2_400_000_000;
        let machine = Simulated::new(hz, &[], std::vec![0]);
        let itself = Source {
            kind: Kind::Processor,
            hz: 150_000_000,
            mask: u64::MAX >> 4,
        };
        let by_sixteenths = Sixteenths(machine);
        let mut sources = List::new();
        sources.push(PIT).unwrap();
        sources.push(itself).unwrap();
        let known = find(&by_sixteenths, &sources, Some(hz)).unwrap();
        assert!(contains(&known, hz) && known.sources == 1);
        let counts = known.rate.unwrap().counts(hz);
        assert!(counts.abs_diff(24_000_000) < 5_000, "{counts}");
    }

    /// Reads the processor's own clock in units that are slow enough for a source.
    struct Sixteenths(Simulated);

    impl Clocks for Sixteenths {
        fn time_stamp(&self) -> u64 {
            self.0.time_stamp()
        }
        fn prepare(&self, source: Kind) {
            self.0.prepare(source);
        }
        fn timer(&self) -> u32 {
            self.0.timer()
        }
        fn read(&self, source: Kind) -> u64 {
            match source {
                Kind::Processor => self.0.read(source) >> 4,
                _ => self.0.read(source),
            }
        }
        fn pass(&self) {
            self.0.pass();
        }
    }

    #[test]
    fn implausible_frequencies_are_refused() {
        for hz in [300_000_000, 12_000_000_000] {
            let machine = Simulated::new(hz, &[(Kind::Hpet, 0)], std::vec![0]);
            let found = machine.find(&[HPET], None);
            assert_eq!(found.err(), Some(Unknown::Contradiction));
        }
    }

    #[test]
    fn a_timer_that_stands_still_has_no_rate() {
        let mut machine = Simulated::new(2_000_000_000, &[(Kind::Hpet, 0)], std::vec![0]);
        machine.timer_hz = 0;
        assert!(machine.find(&[HPET], None).unwrap().rate.is_none());
    }

    #[test]
    fn a_machine_that_is_never_left_alone_is_refused() {
        // 20 us at each reading and each look, now and then: 10 ms are measured to 0.2 % at best.
        let stalls = std::vec![20_000_000, 0, 19_000_000];
        let machine = Simulated::new(2_000_000_000, &[(Kind::Hpet, 0)], stalls);
        let found = machine.find(&[HPET], None);
        assert_eq!(found.err(), Some(Unknown::Disturbed));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever is off by what crystals may be, and whoever takes the processor away, how often and for
        /// how long: the frequency lies where it is said to, and near enough, or it is refused.
        #[test]
        fn it_is_known_or_refused(
            tsc_hz in 500_000_000u64..6_000_000_000,
            hpet in -100i64..=100,
            power_timer in -100i64..=100,
            pit in -100i64..=100,
            present in 1usize..8,
            quiet in 20usize..3_000,
            stalls in prop::collection::vec(0u64..30_000_000_000, 0..12),
        ) {
            let all = [(HPET, hpet), (POWER_TIMER, power_timer), (PIT, pit)];
            let off: Vec<_> = (0..3)
                .filter(|number| present & 1 << number != 0)
                .map(|number| (all[number].0.kind, all[number].1))
                .collect();
            // Each stall is followed by quiet.
            let mut pattern = std::vec![0; quiet];
            for stall in stalls {
                pattern.push(stall);
                pattern.extend(std::iter::repeat_n(0, quiet));
            }
            let machine = Simulated::new(tsc_hz, &off, pattern);
            if let Ok(known) = machine.find(&[HPET, POWER_TIMER, PIT], None) {
                prop_assert!(contains(&known, tsc_hz), "{tsc_hz}: {known:?}");
                prop_assert!(known.hz.middle().abs_diff(tsc_hz) <= tsc_hz / PRECISION);
                let rate = known.rate.unwrap();
                let (counts, right) = (u64::from(rate.counts(tsc_hz)), machine.timer_hz);
                prop_assert!(counts.abs_diff(right) <= right / 100, "{counts} counts");
            }
        }
    }
}
