//! What a run printed: what was executed in the window that was measured, and all jobs.

use anyhow::{ensure, Context, Result};

use super::systems::{TaskSet, TASKS};

/// Instructions between the logger's last look at the clock and the first instruction of a job, if nobody ran in between:
/// far more than that takes, and less than any job.
const CLOSE: u64 = 100_000;
/// A release that preempts the logger is so close to its last look, instructions.
const AT_ONCE: u64 = 10_000;

/// A job; times in ticks, which are instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// From 0, by its release.
    pub number: u64,
    pub release: u64,
    pub begin: u64,
    pub end: u64,
    /// Only the logger wanted the processor when it was released.
    pub is_alone: bool,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The window that was measured.
    pub begin: u64,
    pub end: u64,
    /// What best effort had of it.
    pub left: u64,
    /// What each task had of it for its own instructions.
    pub worked: [u64; TASKS.len()],
    /// Of each task, also those before the window.
    pub jobs: [Vec<Job>; TASKS.len()],
    per_us: u64,
    periods: [u64; TASKS.len()],
}

/// As it is printed: release, begin, end, look.
type Printed = [u64; 4];

impl Run {
    /// Reads a console.
    ///
    /// # Errors
    /// It is of another form, or lacks something.
    pub fn of(tasks: &TaskSet, console: &str) -> Result<Self> {
        let lines = |name: &'static str| {
            let lines = console.lines();
            lines.filter_map(move |line| line.strip_prefix(name)?.strip_prefix(' '))
        };
        let window = lines("window")
            .next()
            .context("it has measured no window")?;
        let [begin, end, left, per_us] = numbers(window)?;
        let mut worked = [0; TASKS.len()];
        for line in lines("row") {
            let [task, ticks] = numbers(line)?;
            *worked.get_mut(task as usize).context("an unknown task")? = ticks;
        }
        let mut printed: [Vec<Printed>; TASKS.len()] = Default::default();
        for line in lines("job") {
            let [task, job @ ..]: [u64; 5] = numbers(line)?;
            let jobs = printed.get_mut(task as usize);
            jobs.context("an unknown task")?.push(job);
        }
        let periods = tasks.0.map(|task| task.period * per_us);
        let jobs = jobs(&printed, periods)?;
        Ok(Self {
            begin,
            end,
            left,
            worked,
            jobs,
            per_us,
            periods,
        })
    }

    pub const fn length(&self) -> u64 {
        self.end - self.begin
    }

    /// Ticks as µs.
    pub fn us(&self, ticks: u64) -> f64 {
        ticks as f64 / self.per_us as f64
    }

    pub fn period(&self, task: usize) -> u64 {
        self.periods[task]
    }

    /// Jobs of a task that are released and due in the window.
    pub fn due(&self, task: usize) -> impl Iterator<Item = &Job> {
        let (begin, end, period) = (self.begin, self.end, self.periods[task]);
        let jobs = self.jobs[task].iter();
        jobs.filter(move |job| job.release >= begin && job.release + period <= end)
    }

    /// How many jobs should be due in the window, by the first release of the task.
    fn due_count(&self, task: usize) -> u64 {
        let period = self.periods[task];
        let Some(first) = self.jobs[task].first() else {
            return self.length() / period;
        };
        let origin = first.release - first.number * period;
        let before = self.begin.saturating_sub(origin).div_ceil(period);
        (self.end.saturating_sub(origin) / period).saturating_sub(before)
    }

    /// Jobs due in the window that ended later or never, or were left out.
    pub fn missed(&self, task: usize) -> u64 {
        let in_time = self
            .due(task)
            .filter(|job| job.end <= job.release + self.periods[task]);
        self.due_count(task).saturating_sub(in_time.count() as u64)
    }
}

fn numbers<const N: usize>(line: &str) -> Result<[u64; N]> {
    let words = line.split_whitespace().map(str::parse);
    let numbers: Vec<u64> = words
        .collect::<Result<_, _>>()
        .with_context(|| format!("`{line}` is not {N} numbers"))?;
    let count = numbers.len();
    numbers
        .try_into()
        .map_err(|_| anyhow::anyhow!("`{line}` has {count} numbers, not {N}"))
}

fn jobs(
    printed: &[Vec<Printed>; TASKS.len()],
    periods: [u64; TASKS.len()],
) -> Result<[Vec<Job>; TASKS.len()]> {
    let is_told = printed.iter().flatten().all(|&[release, ..]| release != 0);
    let grid = if is_told {
        None
    } else {
        Some(grid(&printed[0], periods[0])?)
    };
    let mut all: [Vec<Job>; TASKS.len()] = Default::default();
    for ((jobs, printed), period) in all.iter_mut().zip(printed).zip(periods) {
        let mut first = None;
        for &[told, begin, end, look] in printed {
            let release = match grid {
                None => told,
                Some(grid) => begin - begin.saturating_sub(grid) % period,
            };
            let number = (release - *first.get_or_insert(release)) / period;
            let is_alone = look.abs_diff(release) <= AT_ONCE && begin - look <= CLOSE;
            jobs.push(Job {
                number,
                release,
                begin,
                end,
                is_alone,
            });
        }
    }
    Ok(all)
}

/// The first release of a policy that does not tell it to its threads: the logger has just looked at the clock when a release
/// preempts it. So the release is between that look and the next one, which would come 100 instructions later: the latest
/// such look, whole periods taken off, is the closest.
fn grid(first_task: &[Printed], period: u64) -> Result<u64> {
    let first = first_task.first().context("no job was done")?[1];
    let preempting = first_task
        .iter()
        .filter(|[_, begin, _, look]| begin - look <= CLOSE);
    let origins = preempting.map(|[_, begin, _, look]| {
        let periods = (begin - first + period / 2) / period;
        look - periods * period
    });
    let origin = origins
        .max()
        .context("no release has preempted the logger")?;
    ensure!(
        origin <= first,
        "the first job began {} instructions before its release",
        origin - first
    );
    Ok(origin)
}

#[cfg(test)]
mod tests {
    use super::super::systems::Task;
    use super::*;

    fn tasks() -> TaskSet {
        let task = |name, period| Task {
            name,
            is_high: true,
            period,
            reserved: 2,
            work: 1,
        };
        TaskSet([task("a", 10), task("b", 10), task("c", 20), task("d", 40)])
    }

    /// Window 1000 µs to 1041 µs of 1,000 ticks each; jobs of the first task as they are given.
    fn run(jobs: &[Printed]) -> Run {
        let mut console = "window 1000000 1041000 5 1000\nrow 0 7\n".to_owned();
        for [release, begin, end, look] in jobs {
            console += &format!("job 0 {release} {begin} {end} {look}\n");
        }
        Run::of(&tasks(), &console).unwrap()
    }

    #[test]
    fn jobs_that_are_late_or_left_out_are_missed() {
        let job = |at: u64, takes: u64| [at, at + 5, at + takes, at];
        let all = [1_000_500, 1_010_500, 1_020_500, 1_030_500];
        assert_eq!(run(&all.map(|at| job(at, 100))).missed(0), 0);
        assert_eq!(run(&all.map(|at| job(at, 10_001))).missed(0), 4);
        assert_eq!(run(&[job(all[0], 9), job(all[2], 9)]).missed(0), 2);
        // Tasks without any job, too.
        assert_eq!(run(&[job(all[0], 9)]).missed(2), 2);
    }

    #[test]
    fn releases_that_are_not_told_are_found() {
        let job = |at: u64, look: u64| [0, at + 3_000, at + 4_000, look];
        let run = run(&[
            job(1_000_500, 1_000_420),
            job(1_010_500, 1_010_480),
            job(1_020_500, 1_000_000),
        ]);
        let releases: Vec<u64> = run.jobs[0].iter().map(|job| job.release).collect();
        assert_eq!(releases, [1_000_480, 1_010_480, 1_020_480]);
    }

    #[test]
    fn what_is_no_run_is_refused() {
        assert!(Run::of(&tasks(), "").is_err());
        assert!(Run::of(&tasks(), "window 1 2 3\n").is_err());
    }
}
