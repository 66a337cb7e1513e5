//! What the tasks compute: pure logic, without a machine.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// A low-pass filter: exponential smoothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowPass {
    /// 16 times the output.
    state: i64,
}

impl LowPass {
    /// The output after the next sample.
    pub fn step(&mut self, sample: i64) -> i64 {
        self.state += sample - self.state / 16;
        self.state / 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_comes_through() {
        let mut filter = LowPass::default();
        let last = (0..200).map(|_| filter.step(1000)).last();
        assert!((990..=1000).contains(&last.unwrap()), "{last:?}");
    }

    #[test]
    fn what_alternates_does_not() {
        let mut filter = LowPass::default();
        for sample in 0..200 {
            let output = filter.step(if sample % 2 == 0 { 1000 } else { -1000 });
            assert!(output.abs() < 100, "{output}");
        }
    }
}
