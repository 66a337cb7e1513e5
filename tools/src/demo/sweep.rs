//! The points of the sweep: the budgets of A and B add up to the period, from none to all.

use std::fmt;

use demo_protocol::cipher::lap_bytes;

/// Release period and relative deadline of the control task, µs.
pub const CONTROL_PERIOD_US: u64 = 5_000;
pub const CONTROL_DEADLINE_US: u64 = 1_000;

/// Periods of the clients' scheduling contexts, µs.
pub const PERIODS_US: [u64; 2] = [10_000, 100_000];

/// Bytes that a client wants encrypted per period in the demonstration: 384 KiB. At one instruction
/// per ns this takes some 35 ms: out of reach in a period of 10 ms, and less than half of one of
/// 100 ms.
pub const DEMAND_BYTES: u64 = 384 << 10;

/// Least time that passes before measuring begins, µs.
const WARM_UP_US: u64 = 100_000;

/// One configuration of the system: a machine of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Of the clients' scheduling contexts, µs.
    pub period_us: u64,
    /// Budgets of A and B in percent of the period.
    pub percents: [u64; 2],
    /// Bytes that each client wants encrypted per period; a multiple of
    /// [`demo_protocol::cipher::BATCH_BYTES`].
    pub demand_bytes: u64,
    /// Measured window, µs; a multiple of the period and of [`CONTROL_PERIOD_US`].
    pub window_us: u64,
    /// Whether the machine sends A's first ciphertext.
    pub sends_ciphertext: bool,
    /// Whether the report shows who ran.
    pub shows_timeline: bool,
}

impl Point {
    /// Budgets of A and B, µs.
    pub fn budgets_us(&self) -> [u64; 2] {
        self.percents.map(|percent| self.period_us * percent / 100)
    }

    /// Whether a client has the whole period: it never sleeps, and is never rolled back.
    pub fn has_all(&self, client: usize) -> bool {
        self.percents[client] == 100
    }

    /// Releases of the control task up to the measured window, which begins with the last of them. It
    /// begins a client's period too: so the window has whole periods of the clients.
    pub const fn warm_up_releases(&self) -> u64 {
        WARM_UP_US.next_multiple_of(self.period_us) / CONTROL_PERIOD_US + 1
    }

    /// All releases of the control task.
    pub const fn releases(&self) -> u64 {
        self.warm_up_releases() + self.window_us / CONTROL_PERIOD_US
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = self.percents;
        let (period_ms, demand) = (self.period_us / 1000, self.demand_bytes / 1024);
        write!(
            f,
            "period {period_ms:>3} ms, A {a:>3} %, B {b:>3} %, {demand} KiB each"
        )
    }
}

/// The size of the sweep.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// Percent of the period from point to point; divides 50.
    step: u64,
    /// Periods to measure, for each of [`PERIODS_US`].
    periods: [u64; 2],
}

const FULL: Size = Size {
    step: 5,
    periods: [50, 10],
};
const QUICK: Size = Size {
    step: 25,
    periods: [30, 4],
};

/// A client with half of a period gets more than this many bytes encrypted in a second.
const CERTAIN_BYTES_PER_S: u64 = 4 << 20;

/// The points for an input of `input_bytes`, in the order in which they are best run: long ones
/// first.
pub fn points(quick: bool, input_bytes: u64) -> Vec<Point> {
    let size = if quick { QUICK } else { FULL };
    let mut points = Vec::new();
    for (period_us, periods) in PERIODS_US.into_iter().zip(size.periods).rev() {
        for percent_a in (0..=100).step_by(size.step as usize) {
            let sends_ciphertext = period_us == PERIODS_US[0] && percent_a == 50;
            let least_us = if sends_ciphertext {
                lap_bytes(input_bytes, DEMAND_BYTES) * 1_000_000 / CERTAIN_BYTES_PER_S
            } else {
                0
            };
            points.push(Point {
                period_us,
                percents: [percent_a, 100 - percent_a],
                demand_bytes: DEMAND_BYTES,
                window_us: (period_us * periods).max(least_us.next_multiple_of(period_us)),
                sends_ciphertext,
                shows_timeline: percent_a == 25,
            });
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_sweep_from_none_to_all_for_both_periods() {
        for quick in [false, true] {
            let points = points(quick, 1);
            for period_us in PERIODS_US {
                let of_period = || points.iter().filter(|point| point.period_us == period_us);
                for percent in [0, 25, 50, 75, 100] {
                    assert_eq!(of_period().filter(|p| p.percents[0] == percent).count(), 1);
                }
                assert_eq!(of_period().filter(|point| point.shows_timeline).count(), 1);
            }
            assert_eq!(points.iter().filter(|p| p.sends_ciphertext).count(), 1);
        }
    }

    #[test]
    fn budgets_add_up_and_are_none_or_above_the_kernels_minimum() {
        for point in points(false, 1) {
            let [a, b] = point.budgets_us();
            assert_eq!(a + b, point.period_us);
            assert!([a, b].iter().all(|&budget| budget == 0 || budget >= 20));
        }
    }

    #[test]
    fn windows_are_whole_periods_of_clients_and_control_task() {
        let large = demo_protocol::cipher::MAX_INPUT_BYTES;
        for point in points(true, large).into_iter().chain(points(false, 1)) {
            assert_eq!(point.window_us % point.period_us, 0);
            assert_eq!(point.window_us % CONTROL_PERIOD_US, 0);
            let begin_us = (point.warm_up_releases() - 1) * CONTROL_PERIOD_US;
            assert!(begin_us >= WARM_UP_US && begin_us.is_multiple_of(point.period_us));
            assert!(point.releases() <= demo_protocol::board::MAX_RELEASES as u64);
        }
    }
}
