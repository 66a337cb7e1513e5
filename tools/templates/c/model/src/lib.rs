//! An oven: the model that takes the place of sensor and heater. Pure logic, without a machine.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Of the room, in thousandths of a degree.
const OUTSIDE: u64 = 20_000;
/// Most that the heater gives, in watts.
const MOST_WATTS: u64 = 1000;

#[derive(Clone, Copy, Debug)]
pub struct Oven {
    /// In thousandths of a degree.
    pub temperature: u64,
}

impl Oven {
    pub const fn cold() -> Self {
        Self {
            temperature: OUTSIDE,
        }
    }

    /// A period of heating: some of the heat stays, some is lost. Whoever asks, the heater gives what it can.
    pub fn heat(&mut self, watts: u64) {
        self.temperature += watts.min(MOST_WATTS) * 10;
        self.temperature -= (self.temperature - OUTSIDE) / 50;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_overheats_it() {
        let mut oven = Oven::cold();
        for _ in 0..10_000 {
            oven.heat(u64::MAX);
        }
        assert!((500_000..600_000).contains(&oven.temperature), "{oven:?}");
        for _ in 0..10_000 {
            oven.heat(0);
        }
        assert!(oven.temperature < OUTSIDE + 1_000, "{oven:?}");
    }
}
