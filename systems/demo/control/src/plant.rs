//! A control loop with something to control: a mass on a rail, driven by noise, held in place by
//! a PID controller. All in fixed point, so that it is the same everywhere.

/// Fraction bits of all numbers.
const FRACTION: u32 = 16;

/// Steps of the model per release: the work of one release, some 100 µs at one instruction per
/// ns.
const STEPS: u32 = 2_000;
/// Steps between two looks at the clock: a few µs.
const STEPS_PER_LOOK: u32 = 500;

/// Gains of the controller, and friction of the rail.
const PROPORTIONAL: i64 = 3 << FRACTION;
const INTEGRAL: i64 = 1 << (FRACTION - 4);
const DERIVATIVE: i64 = 2 << FRACTION;
const FRICTION: i64 = 1 << (FRACTION - 6);
/// Length of a step.
const STEP: i64 = 1 << (FRACTION - 8);

pub struct ControlLoop {
    position: i64,
    velocity: i64,
    integral: i64,
    noise: u32,
}

impl ControlLoop {
    pub const fn new() -> Self {
        Self {
            position: 1 << FRACTION,
            velocity: 0,
            integral: 0,
            noise: 1,
        }
    }

    /// Computes one release's work; returns the position. Calls `look` every few µs.
    pub fn step(&mut self, mut look: impl FnMut()) -> i64 {
        for step in 0..STEPS {
            self.advance();
            if step % STEPS_PER_LOOK == 0 {
                look();
            }
        }
        self.position
    }

    fn advance(&mut self) {
        // xorshift32: never 0.
        self.noise ^= self.noise << 13;
        self.noise ^= self.noise >> 17;
        self.noise ^= self.noise << 5;
        let push = i64::from(self.noise as i16);

        let error = -self.position;
        self.integral += multiply(error, STEP);
        let force = multiply(PROPORTIONAL, error) + multiply(INTEGRAL, self.integral)
            - multiply(DERIVATIVE, self.velocity);
        self.velocity += multiply(force + push - multiply(FRICTION, self.velocity), STEP);
        self.position += multiply(self.velocity, STEP);
    }
}

const fn multiply(a: i64, b: i64) -> i64 {
    (a * b) >> FRACTION
}
