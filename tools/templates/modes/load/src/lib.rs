//! How much work a job is: pure logic, without a machine.

#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

/// Every so many jobs there may be more to do.
const RARELY: u64 = 8;

/// Work of a task's jobs, in steps.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub usual: u64,
    pub rare: u64,
}

impl Load {
    /// Steps of the job of that number, from 0 on.
    pub const fn of_job(self, job: u64) -> u64 {
        match job % RARELY == RARELY - 1 {
            true => self.rare,
            false => self.usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_in_eight_is_large() {
        let load = Load { usual: 1, rare: 5 };
        let steps: Vec<u64> = (0..9).map(|job| load.of_job(job)).collect();
        assert_eq!(steps, [1, 1, 1, 1, 1, 1, 1, 5, 1]);
    }
}
