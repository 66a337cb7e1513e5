//! What a system of this experiment prints: see the conductor, `systems/experiments/sharing/lab`.

use anyhow::{ensure, Context, Result};

/// The tasks, in the order of the log.
pub const TASKS: [&str; 4] = ["high", "middle", "low", "lowest"];
pub const HIGH: usize = 0;
pub const MIDDLE: usize = 1;

/// Something of each task; `None` for those that are not in a round.
pub type PerTask = [Option<u64>; TASKS.len()];

/// Everything that a system printed. Times are in instructions, except releases.
#[derive(Debug, Clone)]
pub struct Log {
    /// What a request costs that asks for nothing: least, mean, most.
    pub cost: [u64; 3],
    /// Threads that servers made, and what the most expensive one cost; `None` if they make none.
    pub spawned: Option<[u64; 2]>,
    /// A round of each task alone.
    pub alone: [Round; TASKS.len()],
    /// The others.
    pub rounds: Vec<Round>,
}

#[derive(Debug, Clone)]
pub struct Round {
    /// µs after the round's start.
    pub releases: PerTask,
    /// From release to end.
    pub responses: PerTask,
    /// From the first request to the last answer.
    pub requests: PerTask,
    pub preemptions: u64,
    pub watchdog: bool,
}

impl Log {
    /// Reads a console.
    ///
    /// # Errors
    /// It is not complete.
    pub fn parse(console: &str) -> Result<Self> {
        let lines = |kind: &'static str| {
            let lines = console
                .lines()
                .filter_map(move |line| line.strip_prefix(kind));
            lines.map(str::trim)
        };
        let cost = lines("probe,").next().context("there is no line `probe`")?;
        let spawned = lines("spawned,").next().map(numbers).transpose()?;
        let rounds = lines("round,")
            .map(Round::parse)
            .collect::<Result<Vec<_>>>()?;
        ensure!(
            rounds.len() > TASKS.len(),
            "only {} rounds were run",
            rounds.len()
        );
        let (alone, rounds) = rounds.split_at(TASKS.len());
        Ok(Self {
            cost: numbers(cost)?,
            spawned,
            alone: alone.to_vec().try_into().ok().context("a round for each")?,
            rounds: rounds.to_vec(),
        })
    }

    /// The response time of an undisturbed task.
    pub fn alone(&self, task: usize) -> u64 {
        self.alone[task].responses[task].unwrap_or(0)
    }

    /// How much longer than alone a task took in a round, for which others ran before it.
    pub fn delay(&self, task: usize, round: &Round) -> Option<u64> {
        Some(round.responses[task]?.saturating_sub(self.alone(task)))
    }

    /// The requests of an undisturbed task, from the first to the last.
    pub fn requests_alone(&self, task: usize) -> u64 {
        self.alone[task].requests[task].unwrap_or(0)
    }
}

/// The numbers of a line.
fn numbers<const N: usize>(line: &str) -> Result<[u64; N]> {
    let numbers: Vec<u64> = line
        .split(',')
        .map(|field| field.parse().with_context(|| format!("`{field}`")))
        .collect::<Result<_>>()?;
    let numbers = numbers.try_into().ok();
    numbers.with_context(|| format!("`{line}` should be {N} numbers"))
}

impl Round {
    fn parse(line: &str) -> Result<Self> {
        let mut fields = line.split(',');
        let mut field = || {
            fields
                .next()
                .with_context(|| format!("`{line}` is too short"))
        };
        let number =
            |text: &str| -> Result<u64> { text.parse().with_context(|| format!("`{text}`")) };
        let mut groups = [PerTask::default(); 3];
        for group in &mut groups {
            for value in group.iter_mut() {
                let text = field()?;
                if !text.is_empty() {
                    *value = Some(number(text)?);
                }
            }
        }
        let [releases, responses, requests] = groups;
        Ok(Self {
            releases,
            responses,
            requests,
            preemptions: number(field()?)?,
            watchdog: number(field()?)? != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_console_is_read() {
        let round = "round,20,,,0,900,,,1700,80,,,300,2,1\n";
        let console = format!("probe,1,2,3\r\n{}", round.repeat(5));
        let log = Log::parse(&console).unwrap();
        assert_eq!((log.cost, log.rounds.len()), ([1, 2, 3], 1));
        assert_eq!(log.spawned, None);
        let spawned = Log::parse(&format!("{console}spawned,2,20000\n"));
        assert_eq!(spawned.unwrap().spawned, Some([2, 20_000]));
        assert_eq!(log.rounds[0].responses, [Some(900), None, None, Some(1700)]);
        assert_eq!(log.rounds[0].requests[3], Some(300));
        assert!(log.rounds[0].watchdog && log.rounds[0].preemptions == 2);
        assert!(Log::parse("probe,1,2,3\n").is_err());
        assert!(Log::parse(&console.replace("1700", "x")).is_err());
    }
}
