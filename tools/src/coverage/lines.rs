//! Executed lines, from LLVM's export in the `lcov` format.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

/// Line number to number of executions, of the lines that have code.
pub type Counts = BTreeMap<u32, u64>;

/// Executions of the lines of some source files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// By path below the root of the measured package.
    pub files: BTreeMap<String, Counts>,
}

impl Coverage {
    /// Reads the `SF:` and `DA:` records of `lcov`: those of files whose path `name` gives a name.
    ///
    /// # Errors
    /// A line's record is not two numbers.
    pub fn parse(lcov: &str, name: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let mut coverage = Coverage::default();
        let mut file = None;
        for line in lcov.lines() {
            if let Some(path) = line.strip_prefix("SF:") {
                file = name(path);
            } else if let (Some(record), Some(file)) = (line.strip_prefix("DA:"), &file) {
                let (number, count) = numbers(record)
                    .with_context(|| format!("`{line}` is not a line and its executions"))?;
                let counts = coverage.files.entry(file.clone()).or_default();
                *counts.entry(number).or_default() += count;
            }
        }
        Ok(coverage)
    }

    /// Number of lines with code.
    pub fn lines(&self) -> usize {
        self.files.values().map(BTreeMap::len).sum()
    }

    /// Number of lines that were executed.
    pub fn executed(&self) -> usize {
        let counts = self.files.values().flat_map(BTreeMap::values);
        counts.filter(|&&count| count > 0).count()
    }

    /// Share of the lines that were executed, in percent.
    pub fn share(&self) -> f64 {
        100.0 * self.executed() as f64 / self.lines().max(1) as f64
    }
}

fn numbers(record: &str) -> Option<(u32, u64)> {
    let mut fields = record.split(',');
    let number = fields.next()?.parse().ok()?;
    let count = fields.next()?.parse().ok()?;
    Some((number, count))
}

#[cfg(test)]
mod tests {
    use super::Coverage;

    #[test]
    fn executions_of_wanted_files_are_added_up() {
        let lcov = "SF:/a/src/x.rs\nFN:3,f\nDA:3,0\nDA:4,7\nend_of_record\n\
                    SF:/b/y.rs\nDA:1,1\nend_of_record\nSF:/a/src/x.rs\nDA:3,2\n";
        let name = |path: &str| path.strip_prefix("/a/").map(str::to_owned);
        let coverage = Coverage::parse(lcov, name).expect("well formed");
        assert_eq!(coverage.lines(), 2);
        assert_eq!(coverage.files["src/x.rs"][&3], 2);
        assert_eq!(coverage.share(), 100.0);
    }

    #[test]
    fn a_damaged_record_is_an_error() {
        assert!(Coverage::parse("SF:x\nDA:3\n", |path| Some(path.into())).is_err());
    }
}
