//! What the system prints.

use anyhow::{ensure, Context, Result};

/// Mean and most of something, in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub mean: u64,
    pub most: u64,
}

/// What an invocation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One release, or one budget that is used up.
    One,
    /// Several of these at the same instant.
    Several,
    /// Threads within a partition.
    Threads,
}

impl Class {
    pub const ALL: [Self; 3] = [Self::One, Self::Several, Self::Threads];

    /// As the system prints it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Several => "several",
            Self::Threads => "threads",
        }
    }
}

/// The invocations of one class with so many partitions and threads in each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    pub partitions: u64,
    pub threads: u64,
    pub class: Class,
    pub count: u64,
    pub invocation: Cost,
    /// What the state machine takes of it,
    pub decision: Cost,
    /// and what is between that and the next thread's first instruction.
    pub switch: Cost,
}

/// A stretch in which a partition's threads ran, in ticks from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ran {
    pub partition: usize,
    pub from: u64,
    pub to: u64,
}

/// A partition whose requests are in service when its window ends, and the windows of the other one, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Served {
    pub request: u64,
    /// What a request may take after the end of a window.
    pub bound: u64,
    pub budget: u64,
    /// Requests that have ended.
    pub ended: u64,
    pub shortest: u64,
    /// The beginning of a window after its time, at most.
    pub latest: u64,
}

/// A partition whose threads do what they can to disturb, and the windows of the other one, in ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attacked {
    /// What they do.
    pub name: String,
    pub budget: u64,
    pub shortest: u64,
    /// The beginning of a window after its time, at most.
    pub latest: u64,
}

/// The windows of the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    pub seconds: u64,
    pub windows: u64,
    /// Those that were not of the partition's last release.
    pub astray: u64,
    /// From a release to the beginning of its window, ticks, at most.
    pub latest: u64,
}

/// All of it.
#[derive(Debug)]
pub struct Measured {
    pub figures: Vec<Figure>,
    /// Ticks of a unit in the run of Figure 10.
    pub unit: u64,
    pub ran: Vec<Ran>,
    pub served: Vec<Served>,
    pub attacked: Vec<Attacked>,
    pub drift: Drift,
}

impl Measured {
    /// Reads the console.
    ///
    /// # Errors
    /// Something is missing, or of another form.
    pub fn read(console: &str) -> Result<Self> {
        let lines = |what: &'static str| {
            let lines = console.lines().map(str::trim_end);
            lines.filter_map(move |line| line.strip_prefix(what)?.strip_prefix(' '))
        };
        let figures = lines("figure")
            .map(|line| figure(line).with_context(|| format!("`figure {line}` is no figure")))
            .collect::<Result<Vec<_>>>()?;
        ensure!(!figures.is_empty(), "nothing was measured");
        let one = |what| {
            let line = lines(what).next();
            line.with_context(|| format!("there is no line `{what}`"))
        };
        let ran = lines("ran").map(|line| {
            let [partition, from, to] = numbers(line)?;
            Ok(Ran {
                partition: partition as usize,
                from,
                to,
            })
        });
        let served = lines("served").map(|line| {
            let [request, bound, budget, ended, shortest, latest] = numbers(line)?;
            Ok(Served {
                request,
                bound,
                budget,
                ended,
                shortest,
                latest,
            })
        });
        let served = served.collect::<Result<Vec<_>>>()?;
        ensure!(!served.is_empty(), "no requests were made");
        let attacked = lines("attacked").map(|line| {
            let (name, rest) = line.split_once(' ').context("numbers are missing")?;
            let [budget, shortest, latest] = numbers(rest)?;
            Ok(Attacked {
                name: name.to_owned(),
                budget,
                shortest,
                latest,
            })
        });
        let attacked = attacked.collect::<Result<Vec<_>>>()?;
        ensure!(!attacked.is_empty(), "nobody was attacked");
        let [unit] = numbers(one("unit")?)?;
        let [seconds, windows, astray, latest] = numbers(one("drift")?)?;
        Ok(Self {
            figures,
            unit,
            ran: ran.collect::<Result<_>>()?,
            served,
            attacked,
            drift: Drift {
                seconds,
                windows,
                astray,
                latest,
            },
        })
    }

    /// The numbers of partitions that were measured.
    pub fn partitions(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self
            .figures
            .iter()
            .map(|figure| figure.partitions)
            .collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The numbers of threads that were measured.
    pub fn threads(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.figures.iter().map(|figure| figure.threads).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The figure of a class; `None` if no invocation was of it.
    pub fn get(&self, partitions: u64, threads: u64, class: Class) -> Option<&Figure> {
        self.figures.iter().find(|figure| {
            let is_it = (figure.partitions, figure.threads) == (partitions, threads);
            is_it && figure.class == class && figure.count > 0
        })
    }
}

fn figure(line: &str) -> Result<Figure> {
    let mut words = line.splitn(4, ' ');
    let mut next = || words.next().context("words are missing");
    let (partitions, threads) = (next()?.parse()?, next()?.parse()?);
    let name = next()?;
    let class = Class::ALL.into_iter().find(|class| class.name() == name);
    let [count, mean, most, deciding, most_deciding, switching, most_switching] = numbers(next()?)?;
    let cost = |mean, most| Cost { mean, most };
    Ok(Figure {
        partitions,
        threads,
        class: class.context("there is no such class")?,
        count,
        invocation: cost(mean, most),
        decision: cost(deciding, most_deciding),
        switch: cost(switching, most_switching),
    })
}

fn numbers<const N: usize>(line: &str) -> Result<[u64; N]> {
    let words = line.split(' ').map(str::parse);
    let numbers = words.collect::<Result<Vec<u64>, _>>();
    let numbers = numbers.with_context(|| format!("`{line}`: not all are numbers"))?;
    let count = numbers.len();
    let array = numbers.try_into();
    array.map_err(|_| anyhow::anyhow!("`{line}`: {count} numbers, not {N}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSOLE: &str = "figure 2 1 one 77 2775 3078 796 892 1203 1794\nunit 100\nran 0 3 100\r\nserved 60 100 400 3 396 37\nattacked spins 400 396 3\ndrift 10 528 0 99\n";

    #[test]
    fn what_is_printed_is_read() {
        let measured = Measured::read(CONSOLE).unwrap();
        let figure = measured.get(2, 1, Class::One).unwrap();
        assert_eq!((figure.invocation.mean, figure.switch.most), (2775, 1794));
        assert_eq!(measured.ran[0].to, 100);
        assert_eq!(measured.drift.windows, 528);
        assert!(measured.get(2, 1, Class::Several).is_none());
    }

    #[test]
    fn what_is_missing_or_misshapen_is_an_error() {
        for (from, to) in [
            ("figure", "figures"),
            ("unit", "units"),
            ("served", "s"),
            ("attacked", "a"),
            ("drift 10", "drift"),
            (" 77", ""),
        ] {
            assert!(
                Measured::read(&CONSOLE.replace(from, to)).is_err(),
                "{from}"
            );
        }
    }
}
