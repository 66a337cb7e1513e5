//! The control law, and a model of what it controls: pure logic, without a machine. Temperatures are in
//! thousandths of a degree.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// A proportional-integral controller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Controller {
    /// Sum of the errors, in thousandths of a degree.
    sum: i64,
}

/// Most that a heater gives, in watts.
const MOST_WATTS: i64 = 1000;

impl Controller {
    /// The power, in watts, that leads from the temperature `is` to `wanted`. To be called once in a
    /// period.
    pub fn step(&mut self, is: i64, wanted: i64) -> i64 {
        let error = wanted - is;
        let watts = (error * 20 + self.sum) / 1000;
        // At its limit, a heater does not get stronger: what it cannot give is not summed up.
        if (0..=MOST_WATTS).contains(&watts) {
            self.sum += error;
        }
        watts.clamp(0, MOST_WATTS)
    }
}

/// An oven: the model that takes the place of sensor and heater.
#[derive(Clone, Copy, Debug)]
pub struct Oven {
    pub temperature: i64,
}

/// Of the room.
const OUTSIDE: i64 = 20_000;

impl Oven {
    pub const fn cold() -> Self {
        Self {
            temperature: OUTSIDE,
        }
    }

    /// A period of heating: some of the heat stays, some is lost.
    pub fn heat(&mut self, watts: i64) {
        self.temperature += watts * 10 - (self.temperature - OUTSIDE) / 50;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: i64 = 180_000;

    /// The temperatures of 200 periods.
    fn course() -> Vec<i64> {
        let (mut controller, mut oven) = (Controller::default(), Oven::cold());
        let step = |_| {
            oven.heat(controller.step(oven.temperature, WANTED));
            oven.temperature
        };
        (0..200).map(step).collect()
    }

    #[test]
    fn the_oven_gets_hot_and_stays_so() {
        for temperature in &course()[150..] {
            assert!((temperature - WANTED).abs() < 2_000, "{temperature}");
        }
    }

    #[test]
    fn it_never_gets_much_too_hot() {
        let hottest = course().into_iter().max().unwrap();
        assert!(hottest < WANTED + WANTED / 10, "{hottest}");
    }

    #[test]
    fn the_power_stays_within_the_heaters_limits() {
        let mut controller = Controller::default();
        for temperature in [0, WANTED, 10 * WANTED] {
            let watts = controller.step(temperature, WANTED);
            assert!((0..=MOST_WATTS).contains(&watts), "{watts}");
        }
    }
}
