//! The policies that are measured, and what was.

use anyhow::{bail, ensure, Context, Result};

/// A way to handle timeouts.
#[derive(Debug)]
pub struct Case {
    pub name: &'static str,
    /// In the system's description.
    pub policy: &'static str,
    /// Whether the handler waits for the server, and makes it passive itself.
    pub waits: bool,
    /// Length of the client's requests, µs.
    pub steps: u32,
    /// Means of the thesis on x64, µs: with hot and with cold caches.
    pub thesis: Option<[f64; 2]>,
}

/// A request that never ends.
const ENDLESS: u32 = 1_000_000;

/// All cases, the cheapest of the thesis first.
pub const CASES: [Case; 6] = [
    Case {
        name: "extend",
        policy: "policy = \"extend\", by = 1, limit = 9000",
        waits: false,
        steps: ENDLESS,
        thesis: Some([0.81, 2.98]),
    },
    Case {
        name: "emergency",
        // The client's budget of 100 µs is not enough for its requests of some 150 µs.
        policy: "policy = \"emergency\", budget = \"1ms\"",
        waits: false,
        steps: 150,
        thesis: Some([3.39, 7.06]),
    },
    Case {
        name: "kill",
        policy: "policy = \"kill\"",
        waits: false,
        steps: ENDLESS,
        thesis: Some([3.94, 12.25]),
    },
    Case {
        name: "reset",
        policy: "policy = \"reset\"",
        waits: false,
        steps: ENDLESS,
        thesis: None,
    },
    Case {
        name: "rollback",
        policy: "policy = \"rollback\"",
        waits: false,
        steps: ENDLESS,
        thesis: Some([5.54, 13.26]),
    },
    Case {
        name: "rollback, waiting",
        policy: "policy = \"rollback\"",
        waits: true,
        steps: ENDLESS,
        thesis: Some([5.54, 13.26]),
    },
];

/// What one case costs, instructions.
#[derive(Debug)]
pub struct Cost {
    pub case: &'static Case,
    pub samples: Vec<u64>,
}

impl Cost {
    /// Reads the samples that a machine printed.
    ///
    /// # Errors
    /// There are none, or a line is no sample.
    pub fn of(case: &'static Case, console: &str) -> Result<Self> {
        let lines = console
            .lines()
            .filter_map(|line| line.strip_prefix("sample "));
        let samples = lines
            .map(|number| number.trim().parse().context("a sample is no number"))
            .collect::<Result<Vec<u64>>>()?;
        ensure!(!samples.is_empty(), "`{}` measured nothing", case.name);
        Ok(Self { case, samples })
    }

    pub fn least(&self) -> u64 {
        self.samples.iter().copied().min().unwrap_or(0)
    }

    pub fn most(&self) -> u64 {
        self.samples.iter().copied().max().unwrap_or(0)
    }

    pub fn mean(&self) -> f64 {
        self.samples.iter().sum::<u64>() as f64 / self.samples.len() as f64
    }

    /// The standard deviation.
    pub fn deviation(&self) -> f64 {
        let mean = self.mean();
        let squares = self
            .samples
            .iter()
            .map(|&sample| (sample as f64 - mean).powi(2));
        (squares.sum::<f64>() / self.samples.len() as f64).sqrt()
    }
}

/// The cost of the case called `name`.
///
/// # Errors
/// There is none.
pub fn find<'c>(costs: &'c [Cost], name: &str) -> Result<&'c Cost> {
    match costs.iter().find(|cost| cost.case.name == name) {
        Some(cost) => Ok(cost),
        None => bail!("`{name}` was not measured"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_and_summarised() {
        let cost = Cost::of(&CASES[0], "noise\nsample 10\nsample 14\r\n").unwrap();
        assert_eq!((cost.least(), cost.most()), (10, 14));
        assert_eq!((cost.mean(), cost.deviation()), (12.0, 2.0));
        assert!(Cost::of(&CASES[0], "noise").is_err());
        assert!(Cost::of(&CASES[0], "sample x").is_err());
    }
}
