//! What was measured, and the line through it.

use anyhow::{ensure, Context, Result};

/// What a machine with so many threads measured, instructions.
#[derive(Debug)]
pub struct Point {
    pub threads: usize,
    /// Of each rise of the mode, and of each fall.
    pub rises: Vec<u64>,
    pub falls: Vec<u64>,
    /// Of changing one thread's priority, down and up.
    pub changes: Vec<u64>,
}

impl Point {
    /// Reads what a machine printed.
    ///
    /// # Errors
    /// Something is missing, or no number.
    pub fn of(threads: usize, console: &str) -> Result<Self> {
        let pairs = |what: &str| -> Result<Vec<(u64, u64)>> {
            let lines = console.lines().filter_map(|line| line.strip_prefix(what));
            lines
                .map(|line| {
                    let (first, second) = line.trim().split_once(' ').context("half a line")?;
                    Ok((first.parse()?, second.parse()?))
                })
                .collect()
        };
        let (rises, falls): (Vec<u64>, Vec<u64>) = pairs("switch ")?.into_iter().unzip();
        let changes = pairs("change ")?;
        let changes: Vec<u64> = changes
            .into_iter()
            .flat_map(|(down, up)| [down, up])
            .collect();
        ensure!(
            !rises.is_empty() && !changes.is_empty(),
            "with {threads} threads, nothing was measured"
        );
        Ok(Self {
            threads,
            rises,
            falls,
            changes,
        })
    }
}

/// The mean of numbers of which there is at least one.
pub fn mean(numbers: &[u64]) -> f64 {
    numbers.iter().sum::<u64>() as f64 / numbers.len() as f64
}

/// A line, by least squares.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    pub at_zero: f64,
    pub slope: f64,
    /// How much of the variance it explains, up to 1.
    pub fit: f64,
}

impl Line {
    fn through(points: &[(f64, f64)]) -> Self {
        let count = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| {
            (x + point.0 / count, y + point.1 / count)
        });
        let sum = |of: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>();
        let slope =
            sum(&|point| (point.0 - x) * (point.1 - y)) / sum(&|point| (point.0 - x).powi(2));
        let at_zero = y - slope * x;
        let left = sum(&|point| (point.1 - at_zero - slope * point.0).powi(2));
        Self {
            at_zero,
            slope,
            fit: 1.0 - left / sum(&|point| (point.1 - y).powi(2)),
        }
    }
}

/// All points, and their lines.
#[derive(Debug)]
pub struct Outcome {
    pub points: Vec<Point>,
    pub rise: Line,
    pub fall: Line,
    /// Mean cost of changing one priority.
    pub change: f64,
}

impl Outcome {
    /// # Errors
    /// Two points are needed for a line.
    pub fn new(points: Vec<Point>) -> Result<Self> {
        ensure!(points.len() > 1, "a line needs two points");
        let line = |of: fn(&Point) -> &[u64]| {
            let points = points.iter();
            let points: Vec<_> = points
                .map(|point| (point.threads as f64, mean(of(point))))
                .collect();
            Line::through(&points)
        };
        let changes: Vec<u64> = points
            .iter()
            .flat_map(|point| point.changes.clone())
            .collect();
        Ok(Self {
            rise: line(|point| &point.rises),
            fall: line(|point| &point.falls),
            change: mean(&changes),
            points,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_told_from_a_curve() {
        let line = Line::through(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)]);
        assert!((line.at_zero - 3.0).abs() < 1e-9 && (line.slope - 2.0).abs() < 1e-9);
        assert!((line.fit - 1.0).abs() < 1e-9);
        let curve = Line::through(&[(1.0, 1.0), (2.0, 4.0), (4.0, 16.0), (8.0, 64.0)]);
        assert!(curve.fit < 0.97);
    }

    #[test]
    fn points_are_read() {
        let point = Point::of(2, "switch 10 20\nswitch 12 22\nchange 3 5\n").unwrap();
        assert_eq!((mean(&point.rises), mean(&point.falls)), (11.0, 21.0));
        assert_eq!(point.changes, [3, 5]);
        assert!(Point::of(2, "switch 10\n").is_err());
        assert!(Point::of(2, "").is_err());
    }
}
