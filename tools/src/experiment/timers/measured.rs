//! What the systems print.

use anyhow::{ensure, Context, Result};

/// What something takes, in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    pub mean: u64,
    pub most: u64,
}

/// What was measured in one system: by name and number of armed timers, in the order of the lines.
#[derive(Debug)]
pub struct Figures(pub Vec<(String, u64, Figure)>);

impl Figures {
    /// Reads lines `figure NAME TIMERS MEAN MOST`.
    ///
    /// # Errors
    /// There are none, or one is of another form.
    pub fn of(console: &str) -> Result<Self> {
        let lines = console
            .lines()
            .filter_map(|line| line.strip_prefix("figure "));
        let figures = lines
            .map(|line| figure(line).with_context(|| format!("`{line}` is no figure")))
            .collect::<Result<Vec<_>>>()?;
        ensure!(!figures.is_empty(), "nothing was measured");
        Ok(Self(figures))
    }

    /// The figure called `name` with so many timers.
    ///
    /// # Errors
    /// It was not measured.
    pub fn get(&self, name: &str, timers: u64) -> Result<Figure> {
        let mut figures = self.0.iter();
        let found = figures.find(|(own, armed, _)| own == name && *armed == timers);
        let found = found.with_context(|| format!("`{name}` of {timers} timers is missing"))?;
        Ok(found.2)
    }
}

fn figure(line: &str) -> Option<(String, u64, Figure)> {
    let mut words = line.split_whitespace();
    let name = words.next()?.to_owned();
    let mut number = || words.next()?.parse().ok();
    let (timers, mean, most) = (number()?, number()?, number()?);
    Some((name, timers, Figure { mean, most }))
}

/// What became of a task of the example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    pub jobs: u64,
    pub missing: u64,
    /// Releases that were not on the grid.
    pub astray: u64,
    pub late: u64,
    /// Between a release and the beginning of its job, ms, rounded up.
    pub latest: u64,
}

/// What the example's judge says.
#[derive(Debug)]
pub struct Drift {
    /// When the judge's own timer woke it, µs after its time.
    pub woken: u64,
    pub tasks: Vec<Task>,
}

impl Drift {
    /// Reads the judge's lines.
    ///
    /// # Errors
    /// They are of another form.
    pub fn of(console: &str) -> Result<Self> {
        let numbers = |line: &str| -> Vec<u64> {
            let words = line.split(|c: char| !c.is_ascii_digit());
            words.filter_map(|word| word.parse().ok()).collect()
        };
        let starting = |start: &'static str| {
            let lines = console.lines();
            lines.filter(move |line| line.starts_with(start))
        };
        let woken = starting("woken ").next().map(numbers);
        let woken = woken.and_then(|numbers| numbers.first().copied());
        let tasks = starting("task ").map(|line| match numbers(line).as_slice() {
            &[_, jobs, missing, astray, late, latest] => Ok(Task {
                jobs,
                missing,
                astray,
                late,
                latest,
            }),
            _ => anyhow::bail!("`{line}` says nothing of a task"),
        });
        Ok(Self {
            woken: woken.context("the judge was not woken")?,
            tasks: tasks.collect::<Result<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_is_read() {
        let figures = Figures::of("x\nfigure arm 10 1399 1512\n").unwrap();
        let most = figures.get("arm", 10).unwrap().most;
        assert_eq!(most, 1512);
        assert!(figures.get("arm", 11).is_err());
        assert!(Figures::of("figure arm 10 1399\n").is_err());
        let drift = Drift::of(
            "woken 4 us after 2 s\ntask 1: 15 jobs, 0 missing, 1 astray, 2 late, begun within 5 ms of their release\n",
        );
        let drift = drift.unwrap();
        assert_eq!(drift.woken, 4);
        assert_eq!(drift.tasks[0].astray, 1);
        assert_eq!(drift.tasks[0].latest, 5);
    }
}
