//! The case study of Brandenburg's paper on MC-IPC (section VI): a key server, and clients of high and low criticality that
//! fail in eight phases. The simulation (`assurance/gates`) and the system that runs in the emulator are both made from it.
//!
//! All times are those of the paper, in ms. The emulator's are longer, all by one factor.

#![no_std]
#![forbid(unsafe_code)]

pub mod record;

/// Phases of the study, from 1 on.
pub const PHASES: usize = 8;
/// After which slots repeat.
pub const CYCLE_MS: u64 = 100;
/// All slots and periods are multiples of this.
pub const TICK_MS: u64 = 50;
/// The longest operation of the server, all included.
pub const OPERATION_MS: u64 = 2;
/// Most that a job computes before its request.
pub const PROCESSING_MS: u64 = 4;

/// Some phases.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Phases(u16);

impl Phases {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self((2 << PHASES) - 2);

    pub const fn of(phases: &[usize]) -> Self {
        let (mut bits, mut next) = (0, 0);
        while next < phases.len() {
            bits |= 1 << phases[next];
            next += 1;
        }
        Self(bits)
    }

    /// As a number: bit N stands for phase N.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Those of a number of [`Self::bits`].
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// 0 and what is beyond the last phase are none.
    pub const fn contains(self, phase: usize) -> bool {
        phase < 16 && self.0 & 1 << phase != 0
    }
}

/// A slot of a table-driven client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    pub at_ms: u64,
    pub length_ms: u64,
}

const fn slot(at_ms: u64, length_ms: u64) -> Slot {
    Slot { at_ms, length_ms }
}

/// A reservation of high criticality, R1 to R4, whose client is table-driven: one job in each slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct High {
    pub core: usize,
    pub slot: Slot,
    /// When its client asks as often as it can.
    pub floods: Phases,
}

/// R1 to R4: on four cores where the paper has them; on fewer, on those cores that there are, with slots that do not overlap.
/// The client of the first one, T1, is observed.
pub const fn high(cores: usize) -> [High; 4] {
    let places = match cores {
        1 => [
            (0, slot(0, 25)),
            (0, slot(25, 25)),
            (0, slot(50, 25)),
            (0, slot(75, 25)),
        ],
        2 => [
            (0, slot(0, 50)),
            (1, slot(0, 50)),
            (1, slot(50, 50)),
            (0, slot(50, 50)),
        ],
        _ => [
            (0, slot(0, 50)),
            (1, slot(0, 50)),
            (1, slot(50, 50)),
            (2, slot(0, 50)),
        ],
    };
    let floods = [
        Phases::NONE,
        Phases::of(&[5, 7]),
        Phases::NONE,
        Phases::of(&[4, 5]),
    ];
    let mut all = [High {
        core: 0,
        slot: places[0].1,
        floods: Phases::NONE,
    }; 4];
    let mut number = 0;
    while number < all.len() {
        let (core, slot) = places[number];
        all[number] = High {
            core,
            slot,
            floods: floods[number],
        };
        number += 1;
    }
    all
}

/// Reservations of low criticality, whose clients are sporadic: on each of two cores, with these periods and this budget.
pub const LOW_PERIODS_MS: [u64; 5] = [100, 150, 250, 500, 1_000];
pub const LOW_BUDGET_MS: u64 = 20;

/// The cores of those of low criticality.
pub const fn low_cores(cores: usize) -> [usize; 2] {
    match cores {
        1 => [0, 0],
        2 => [0, 1],
        _ => [2, 3],
    }
}

/// When the client of a low reservation asks as often as it can: the first one of the second core.
pub const fn low_floods(which_core: usize, number: usize) -> Phases {
    if which_core == 1 && number == 0 {
        Phases::of(&[2])
    } else {
        Phases::NONE
    }
}

/// Sporadic clients that are launched on every core, in one phase, in the middle of its first cycle: budget and period.
pub const LAUNCHED_IN: usize = 3;
pub const LAUNCHED_BUDGET_MS: u64 = 100;
pub const LAUNCHED_PERIOD_MS: u64 = 3_000;
/// Clients that R4 launches beside its own, and when.
pub const MORE: usize = 15;
pub const MORE_IN: Phases = Phases::of(&[6, 7]);
/// The phase in which there are clients without a reservation on every core.
pub const BEST_EFFORT_IN: usize = 8;

/// How many clients there are on each core beyond those with reservations of the study.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Crowd {
    /// Launched in phase [`LAUNCHED_IN`].
    pub launched: usize,
    /// Without a reservation, in phase [`BEST_EFFORT_IN`].
    pub best_effort: usize,
}

impl Crowd {
    /// As many as in the paper.
    pub const PAPER: Self = Self {
        launched: 16,
        best_effort: 20,
    };
    /// In the emulator: each is a component with an executable of its own, for which an image has room.
    pub const EMULATED: Self = Self {
        launched: 4,
        best_effort: 5,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_those_that_were_named() {
        let phases = Phases::of(&[1, 8]);
        let contained: [bool; 10] = core::array::from_fn(|phase| phases.contains(phase));
        let expected: [bool; 10] = core::array::from_fn(|phase| phase == 1 || phase == 8);
        assert_eq!(contained, expected);
        assert_eq!(Phases::from_bits(phases.bits()), phases);
        let all = (0..100).filter(|phase| Phases::ALL.contains(*phase));
        assert!(all.eq(1..=PHASES));
    }

    #[test]
    fn slots_of_a_core_do_not_overlap() {
        for cores in [1, 2, 4] {
            let all = high(cores);
            for (number, one) in all.iter().enumerate() {
                assert!(one.core < cores);
                assert!(one.slot.at_ms + one.slot.length_ms <= CYCLE_MS);
                let others = all[number + 1..].iter().filter(|of| of.core == one.core);
                for other in others {
                    let (a, b) = (one.slot, other.slot);
                    assert!(a.at_ms + a.length_ms <= b.at_ms || b.at_ms + b.length_ms <= a.at_ms);
                }
            }
        }
    }
}
